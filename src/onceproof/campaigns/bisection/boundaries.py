"""Which releases have a bug: a search over release lines, with trials that may miss it.

Releases are not a single sequence: 3.4.1 fixes what 3.5.0 fixes, and 3.3.2, published after both, does not. So each
line (3.3, 3.4, ...) is searched separately. A red trial is certain. What a green one says depends on the nearest bad
release, of its own line if there is one: that is tried some more times, a number fixed beforehand; the trial that first
showed it to be bad does not count, for without it there would be no control. How often those are red says how many
trials of the good release must be green so that, if it were as bad, it would be missed with a probability of at most
`risk` (`onceproof.statistics`). Rates of different releases are never averaged. A green that turns red moves its
boundary.

The first and the last release of a line are tried; between two that differ, the interval is halved. A bug that came and
went between two good releases of one line is not looked for.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from onceproof.model.release import Release
from onceproof.model.sensitivity import NOTHING, Tally
from onceproof.statistics import control_trials, greens_needed, probability_missed

ATTEMPTS = 3  # trials of a release, until one is exercised
COLUMNS = ("line", "last_good", "first_bad", "last_bad", "first_good", "missed")


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
    missed: float | None  # that last_good or first_good is as bad, and was missed, at most; None without any

    def to_dict(self) -> dict[str, str | float | None]:
        """JSON form; releases as texts."""
        named = {name: getattr(self, name) for name in ("last_good", "first_bad", "last_bad", "first_good")}
        releases = {name: None if release is None else str(release) for name, release in named.items()}
        return {"line": self.line, **releases, "missed": None if self.missed is None else round(self.missed, 4)}


def row(boundary: Mapping[str, Any]) -> tuple[str, ...]:
    """A boundary's JSON form as texts, by `COLUMNS`."""
    missed = "—" if boundary["missed"] is None else f"≤ {boundary['missed']:.1%}".replace("%", " %")
    return (*("—" if boundary[name] is None else str(boundary[name]) for name in COLUMNS[:-1]), missed)


@dataclass(frozen=True, kw_only=True)
class Bisected:
    """The result of a bisection, as `bisect.json` has it."""

    boundaries: tuple[Mapping[str, str | float | None], ...]  # `Boundary.to_dict`
    trials: int
    sure: bool
    missed: float | None  # the largest of all good releases'; None if nothing was red
    bad: tuple[str, ...]
    good: tuple[str, ...]
    controls: Mapping[str, tuple[int, int]]  # bad release -> red, trials
    unknown: Mapping[str, str]  # release -> reason

    @property
    def summary(self) -> str:
        """For people: where it begins and ends."""
        bad, good = ([Release.parse(text) for text in texts] for texts in (self.bad, self.good))
        doubt = "" if self.sure else " Not all of this is sure."
        if not bad or not good:
            return (
                f"It is in every release that was tried: {', '.join(self.bad)}.{doubt}" if bad else "Nothing was red."
            )
        before = max((release for release in good if release < bad[0]), default=None)
        after = min((release for release in good if release > bad[-1]), default=None)
        begins = f"the last good one before it {before}" if before else "none before it is good"
        ends = f"the first good one after it {after}" if after else "none after it is good"
        return f"The first bad release is {bad[0]}, {begins}; the last bad one is {bad[-1]}, {ends}.{doubt}"

    @property
    def why_unknown(self) -> Mapping[str, list[str]]:
        """By reason the releases of which nothing is known."""
        reasons: dict[str, list[str]] = defaultdict(list)
        for release, reason in self.unknown.items():
            reasons[reason].append(release)
        return reasons


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
    risk: float = 0.05  # of a good release: that it is as bad as the nearest bad one, and was missed
    budget: int = 100  # trials in all
    trials: int = 0
    greens: dict[Release, int] = field(default_factory=dict)
    reds: dict[Release, int] = field(default_factory=dict)
    controls: dict[Release, Tally] = field(default_factory=dict)  # of bad releases, after they were known to be bad
    planned: dict[Release, int] = field(default_factory=dict)  # trials of these, fixed before the first
    unknown: dict[Release, str] = field(default_factory=dict)

    def run(self) -> list[Boundary]:
        """The boundaries of every line that has a bad release, in order."""
        tried = -1
        try:
            while self.trials > tried:  # until nothing is left to try, or the budget is used up
                tried = self.trials
                for releases in self.lines.values():
                    self._settle(releases)
                for release in self.good:
                    self._add_trials(release)
        finally:  # also where no time is left for probes
            for releases in self.lines.values():
                for release in self._open(releases):
                    self.unknown.setdefault(release, "Trials or time were used up before it was tried.")
        return self._boundaries()

    @property
    def result(self) -> Bisected:
        """The result so far."""
        return Bisected(
            boundaries=tuple(boundary.to_dict() for boundary in self._boundaries()),
            trials=self.trials,
            sure=self.is_sure,
            missed=None if self.missed is None else round(self.missed, 4),
            bad=tuple(str(release) for release in sorted(self.reds)),
            good=tuple(map(str, self.good)),
            controls={str(r): (tally.red, tally.counted) for r, tally in sorted(self.controls.items())},
            unknown={str(release): reason for release, reason in sorted(self.unknown.items())},
        )

    @property
    def good(self) -> list[Release]:
        """The releases with green trials only."""
        return sorted(self.greens.keys() - self.reds.keys())

    @property
    def missed(self) -> float | None:
        """That a good release is as bad as the bad one nearest to it, and was missed: the largest of all; 0 if none is
        good, None if none was bad: then it is not known what a green is worth.
        """
        if not self.reds:
            return None
        return max((self._bound_missed(release) for release in self.good), default=0.0)

    @property
    def is_sure(self) -> bool:
        """Whether something was bad, every good release is so within the risk, and nothing is unknown."""
        return bool(self.reds) and not self.unknown and all(self.greens[r] >= self._count_needed(r) for r in self.good)

    def _settle(self, releases: Sequence[Release]) -> None:
        """Try the ends of a line, and halve the interval between releases that differ."""
        while self.trials < self.budget and (wanted := self._open(releases)):
            self._try(wanted[len(wanted) // 2])

    def _open(self, releases: Sequence[Release]) -> list[Release]:
        """Releases, one of which must be tried next: an end of the line, or between two neighbours that differ."""
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
        """Whether it is bad, as far as it has been tried."""
        return True if release in self.reds else False if release in self.greens else None

    def _control(self, good: Release) -> Release | None:
        """The bad release that is nearest to a good one, of its own line if there is one."""
        releases = [release for line in self.lines.values() for release in line]
        place = {release: number for number, release in enumerate(releases)}
        return min(
            self.reds, key=lambda bad: (bad.line != good.line, abs(place[bad] - place[good]), place[bad]), default=None
        )

    def _add_trials(self, release: Release) -> None:
        """Repeat its control as often as needed, and then a green until it supports the claim or turns red."""
        control = self._control(release)
        if control is None:
            return
        standing = sum(self._control(good) == control for good in self.good)
        planned = self.planned.setdefault(control, control_trials(self.risk, standing))
        while self._count_known(control).counted < planned:
            red = self._try(control)
            if red is None:
                return
            self.controls[control] = self._count_known(control) + Tally(int(red), 1)
        while self._state(release) is False and self.greens[release] < self._count_needed(release):
            if (
                self.budget - self.trials < self._count_needed(release) - self.greens[release]
                or self._try(release) is None
            ):
                return

    def _count_known(self, control: Release | None) -> Tally:
        return NOTHING if control is None else self.controls.get(control, NOTHING)

    def _count_needed(self, good: Release) -> int:
        known = self._count_known(self._control(good))
        return greens_needed(known.red, known.counted, self.risk)

    def _bound_missed(self, good: Release) -> float:
        """That it is as bad as its control, and was missed, at most."""
        known = self._count_known(self._control(good))
        return probability_missed(known.red, known.counted, self.greens.get(good, 0))

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
        missed = [self._bound_missed(release) for release in (before, after) if release is not None]
        return Boundary(line, before, bad[0], bad[-1], after, min(sum(missed), 1.0) if missed else None)

    def _try(self, release: Release) -> bool | None:
        """Try a release: whether it was red; None if nothing can be learned."""
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
