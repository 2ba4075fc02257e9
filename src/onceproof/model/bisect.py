"""Which releases have a bug: a search over release lines, with trials that may miss it.

Releases are not one row: 3.4.1 fixes what 3.5.0 fixes, and 3.3.2, published after both, does not. So each line (3.3,
3.4, ...) is searched for itself. A red trial is certain. A green one has the power that the search itself has shown:
how many trials of bad releases were red says how probable it is that a green one missed the bug
(`onceproof.statistics`). Greens beside a boundary are repeated until they carry the confidence.

Of a line the first and the last release are tried; if they differ, the releases between are halved. What came and went
between two good releases of one line is not looked for.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
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

    @property
    def good(self) -> list[Release]:
        """The good releases beside the bad ones."""
        return [release for release in (self.last_good, self.first_good) if release is not None]

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
    missed: Callable[[int, int, int], float]  # (red, tried, greens) -> probability that a bad release was green
    wanted: float = 0.95  # confidence
    budget: int = 100  # trials in all
    trials: int = 0
    greens: dict[Release, int] = field(default_factory=dict)
    reds: dict[Release, int] = field(default_factory=dict)
    unknown: dict[Release, str] = field(default_factory=dict)

    def run(self) -> list[Boundary]:
        """The boundaries of every line that has a bad release, in order."""
        for releases in self.lines.values():
            self._settle(releases)
        for boundary in self._boundaries():
            self._strengthen(boundary)
        return self._boundaries()  # a green that turned red when it was repeated has moved its boundary

    def _settle(self, releases: Sequence[Release]) -> None:
        """Try the ends of a line, and halve what is between them if they differ."""
        first, last = 0, len(releases) - 1
        ends = self._is_bad(releases[first]), self._is_bad(releases[last])
        while last - first > 1 and None not in ends and ends[0] != ends[1]:
            middle = (first + last) // 2
            state = self._is_bad(releases[middle])
            if state is None:
                return
            first, last = (middle, last) if state == ends[0] else (first, middle)

    def _strengthen(self, boundary: Boundary) -> None:
        """Repeat the greens beside a boundary until they carry the confidence, turn red, or the budget ends."""
        for release in boundary.good:
            while self._power(release) < self.wanted and self.trials < self.budget and release not in self.reds:
                if self._is_bad(release, again=True) is None:
                    break

    def _boundaries(self) -> list[Boundary]:
        found = (self._boundary(line, releases) for line, releases in self.lines.items())
        return [boundary for boundary in found if boundary is not None]

    def _boundary(self, line: str, releases: Sequence[Release]) -> Boundary | None:
        bad = [release for release in releases if release in self.reds]
        if not bad:
            return None
        good = [release for release in releases if release in self.greens and release not in self.reds]
        before = max((release for release in good if release < bad[0]), default=None)
        after = min((release for release in good if release > bad[-1]), default=None)
        confidence = prod(self._power(release) for release in (before, after) if release is not None)
        return Boundary(line, before, bad[0], bad[-1], after, confidence)

    def _power(self, release: Release) -> float:
        """How sure it is that a release of which only green trials were seen is good."""
        red = sum(self.reds.values())
        tried = red + sum(count for release, count in self.greens.items() if release in self.reds)
        return 1 - self.missed(red, tried, self.greens.get(release, 0))

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
