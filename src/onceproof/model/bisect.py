"""Which releases have a bug: a search over release lines, with trials that may miss it.

Releases are not one row: 3.4.1 fixes what 3.5.0 fixes, and 3.3.2, published after both, does not. So each line (3.3,
3.4, ...) is searched for itself. A red trial is certain. A green one has the power that the run itself has shown: of n
trials on releases that turned out bad, k were red, so one more misses the bug with probability (n - k + 1/2) / (n + 1),
the posterior mean under Jeffreys' prior. Greens beside a boundary are repeated until they carry the confidence.

Of a line the first and the last release are tried; if they differ, the releases between are halved. What came and went
between two good releases of one line is not looked for.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from onceproof.model.release import Release

ATTEMPTS = 3  # trials of a release, until one is exercised


@dataclass(frozen=True)
class Probe:
    """One trial of a release: red, green (exercised, and nothing seen), or neither, with the reason."""

    red: bool
    green: bool
    reason: str = ""


@dataclass(frozen=True)
class Boundary:
    """Where a line is bad; None where there is no such release in the range."""

    line: str
    last_good: Release | None  # the last good release before the bad ones
    first_bad: Release
    last_bad: Release
    first_good: Release | None  # the first good release after the bad ones
    confidence: float  # that last_good and first_good are good

    def to_dict(self) -> dict[str, Any]:
        """JSON form; releases as texts."""
        named = {name: getattr(self, name) for name in ("last_good", "first_bad", "last_bad", "first_good")}
        releases = {name: None if release is None else str(release) for name, release in named.items()}
        return {"line": self.line, **releases, "confidence": round(self.confidence, 4)}


def lines_of(releases: Iterable[Release]) -> dict[str, list[Release]]:
    """The releases by line, for example `3.4`, both in order."""
    lines: dict[str, list[Release]] = defaultdict(list)
    for release in sorted(set(releases)):
        lines[f"{release.major}.{release.minor}"].append(release)
    return dict(lines)


@dataclass
class Bisection:
    """A search in progress; `run` carries it out."""

    lines: Mapping[str, Sequence[Release]]
    probe: Callable[[Release], Probe]
    wanted: float = 0.95  # confidence
    budget: int = 100  # trials in all
    trials: int = 0
    greens: dict[Release, int] = field(default_factory=dict)
    reds: dict[Release, int] = field(default_factory=dict)
    unknown: dict[Release, str] = field(default_factory=dict)

    def run(self) -> list[Boundary]:
        """The boundaries of every line that has a bad release, in order."""
        found = {line: self._search(releases) for line, releases in self.lines.items()}
        for bad in found.values():
            for release in self._beside(bad) if bad else ():
                while self._power(release) < self.wanted and self.trials < self.budget and release not in self.reds:
                    if self._is_bad(release, again=True) is None:
                        break
        # A green that turned red when it was repeated moves its boundary.
        return [
            boundary
            for line, releases in self.lines.items()
            if (boundary := self._boundary(line, releases)) is not None
        ]

    def _search(self, releases: Sequence[Release]) -> tuple[Release | None, Release | None] | None:
        """Settle the line; the good releases beside its bad ones, None if it has none."""
        first, last = 0, len(releases) - 1
        ends = self._is_bad(releases[first]), self._is_bad(releases[last])
        while last - first > 1 and None not in ends and ends[0] != ends[1]:
            middle = (first + last) // 2
            state = self._is_bad(releases[middle])
            if state is None:
                break
            first, last = (middle, last) if state == ends[0] else (first, middle)
        boundary = self._boundary("", releases)
        return (boundary.last_good, boundary.first_good) if boundary else None

    def _boundary(self, line: str, releases: Sequence[Release]) -> Boundary | None:
        bad = [release for release in releases if release in self.reds]
        if not bad:
            return None
        good = [release for release in releases if release in self.greens and release not in self.reds]
        before = max((release for release in good if release < bad[0]), default=None)
        after = min((release for release in good if release > bad[-1]), default=None)
        confidence = 1.0
        for release in self._beside((before, after)):
            confidence *= self._power(release)
        return Boundary(line, before, bad[0], bad[-1], after, confidence)

    @staticmethod
    def _beside(found: tuple[Release | None, Release | None]) -> list[Release]:
        return [release for release in found if release is not None]

    def _power(self, release: Release) -> float:
        """How sure it is that a release of which only green trials were seen is good."""
        red = sum(self.reds.values())
        tried = red + sum(count for release, count in self.greens.items() if release in self.reds)
        missed = (tried - red + 0.5) / (tried + 1)
        return 1 - float(missed ** self.greens.get(release, 0))

    def _is_bad(self, release: Release, again: bool = False) -> bool | None:
        """Try a release, or say what is known of it; None if nothing can be learned."""
        if not again and release in self.reds:
            return True
        if not again and release in self.greens:
            return False
        for _ in range(ATTEMPTS):
            if release in self.unknown or self.trials >= self.budget:
                return None
            self.trials += 1
            outcome = self.probe(release)
            if outcome.red:
                self.reds[release] = self.reds.get(release, 0) + 1
                return True
            if outcome.green:
                self.greens[release] = self.greens.get(release, 0) + 1
                return False
            reason = outcome.reason
        self.unknown[release] = reason
        return None
