"""Which releases have a bug: a search over release lines, with trials that may miss it.

Releases are not one row: 3.4.1 fixes what 3.5.0 fixes, and 3.3.2, published after both, does not. So each line (3.3,
3.4, ...) is searched for itself. A red trial is certain. A green one has the power that the search itself has shown:
how many trials of bad releases were red says how probable it is that a green one missed the bug
(`onceproof.statistics`). Where little is known of that, a bad release is repeated. Greens are repeated until they carry
the confidence; one that turns red moves its boundary.

Of a line the first and the last release are tried; between two that differ, what lies between is halved. What came and
went between two good releases of one line is not looked for.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
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

    def to_dict(self) -> dict[str, Any]:
        """JSON form; releases as texts."""
        named = {name: getattr(self, name) for name in ("last_good", "first_bad", "last_bad", "first_good")}
        releases = {name: None if release is None else str(release) for name, release in named.items()}
        return {"line": self.line, **releases, "confidence": round(self.confidence, 4)}


def lines_of(releases: Iterable[Release]) -> dict[str, list[Release]]:
    """The releases by line, for example `3.4`, both in order."""
    lines: dict[str, list[Release]] = defaultdict(list)
    for release in sorted(set(releases)):
        lines[release.line].append(release)
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
        tried = -1
        while self.trials > tried:  # until nothing is left to try, or the budget ends
            tried = self.trials
            for releases in self.lines.values():
                self._settle(releases)
            self._learn()
            for release in self.good:
                self._strengthen(release)
        for releases in self.lines.values():
            for release in self._open(releases):
                self.unknown.setdefault(release, "The trials were used up before it was tried.")
        return self._boundaries()

    @property
    def good(self) -> list[Release]:
        """The releases of which only green trials were seen."""
        return sorted(self.greens.keys() - self.reds.keys())

    @property
    def confidence(self) -> float | None:
        """That every good release is good, the least of them; None if none was bad: nobody knows what a green says."""
        if not self.reds:
            return None
        return min((self._power(release) for release in self.good), default=1.0)

    def _settle(self, releases: Sequence[Release]) -> None:
        """Try the ends of a line, and halve what is between releases that differ."""
        while self.trials < self.budget and (wanted := self._open(releases)):
            self._is_bad(wanted[len(wanted) // 2])

    def _open(self, releases: Sequence[Release]) -> list[Release]:
        """Releases of which one must be tried next: an end of the line, or between two neighbours that differ."""
        known = [release for release in releases if release not in self.unknown]
        for end in (known[:1], known[-1:]):
            if end and self._state(end[0]) is None:
                return end
        tried = [release for release in known if self._state(release) is not None]
        for one, other in pairwise(tried):
            between = [release for release in known if one < release < other]
            if between and self._state(one) != self._state(other):
                return between
        return []

    def _state(self, release: Release) -> bool | None:
        """Whether it is bad, as far as it was tried."""
        return True if release in self.reds else False if release in self.greens else None

    def _learn(self) -> None:
        """Repeat a bad release, which tells how often trials miss, as long as that costs less than repeating greens."""
        for _ in self._weak():
            if not self._weak() or self.trials >= self.budget:
                return
            self._is_bad(min(self.reds))

    def _weak(self) -> list[Release]:
        """Good releases that need more trials; none as long as nothing was bad."""
        return [release for release in self.good if self.reds and self._power(release) < self.wanted]

    def _strengthen(self, release: Release) -> None:
        """Repeat a green until it carries the confidence, turns red, or the budget ends."""
        while self.reds and self._state(release) is False and self._power(release) < self.wanted:
            if self._is_bad(release) is None:
                return

    def _boundaries(self) -> list[Boundary]:
        found = (self._boundary(line, releases) for line, releases in self.lines.items())
        return [boundary for boundary in found if boundary is not None]

    def _boundary(self, line: str, releases: Sequence[Release]) -> Boundary | None:
        bad = [release for release in releases if release in self.reds]
        if not bad:
            return None
        good = [release for release in releases if self._state(release) is False]
        before = max((release for release in good if release < bad[0]), default=None)
        after = min((release for release in good if release > bad[-1]), default=None)
        confidence = prod(self._power(release) for release in (before, after) if release is not None)
        return Boundary(line, before, bad[0], bad[-1], after, confidence)

    def _power(self, release: Release) -> float:
        """How sure it is that a release of which only green trials were seen is good."""
        red = sum(self.reds.values())
        tried = red + sum(count for release, count in self.greens.items() if release in self.reds)
        return 1 - self.missed(red, tried, self.greens.get(release, 0))

    def _is_bad(self, release: Release) -> bool | None:
        """Try a release; None if nothing can be learned."""
        reason = ""
        for _ in range(ATTEMPTS):
            if self.trials >= self.budget:
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
        if self._state(release) is None:
            self.unknown[release] = reason
        return None
