"""A cell as one run measured it, and which of several such measurements of a cell stands."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain

from onceproof.model.anomaly import Witness
from onceproof.model.cell import Cell
from onceproof.model.errors import UsageError
from onceproof.model.timeline import Event
from onceproof.model.verdict import UNDECIDED, Standing, Verdict

RED = (Verdict.REGRESSION, Verdict.KNOWN)


@dataclass(frozen=True)
class ControlSeen:
    """An affected cell of the same run, which was `red` in as many of its exercised trials."""

    cell: str  # its key
    red: int
    exercised: int


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """A verdict with what it rests on, without anything that belongs to one machine."""

    cell: Cell
    run: str
    created: str  # of the run, ISO 8601
    verdict: Verdict
    sentence: str
    commit: str  # of Kafka Streams, as its instances attested it; of both releases, if there are two
    harness: str  # version of what drove its trials; of several, all of them
    machine: str  # what kind it is, with its JDK
    trials: int
    exercised: int
    red: int
    anomalies: Mapping[str, int] = field(default_factory=dict)
    issues: tuple[str, ...] = ()  # keys of the registry
    witnesses: tuple[Witness, ...] = ()  # a few
    controls: tuple[ControlSeen, ...] = ()  # of a green: the affected cells nearest to it that were red in the run
    plants: tuple[Standing, ...] = ()  # of a green: bugs planted into the release itself that support it
    excluded_rate: float | None = None  # of a green: bugs that show so often, or oftener, are excluded with 95 %
    missed: float | None = None  # of the procedure that called it green: the probability that it misses a bug, at most
    arithmetic: str = ""  # the same in words
    unqualified: str = ""  # why the harness may have been blind on these releases; empty if they qualified
    seeds: tuple[int, ...] = ()
    seconds: float | None = None  # mean of its trials
    timeline: tuple[Event, ...] = ()  # of a red: one of its red trials, without what is sampled all the time

    @property
    def version(self) -> str:
        """The version of Onceproof that measured it, for example `0.1.0`."""
        return self.harness.partition("+")[0]

    @property
    def day(self) -> str:
        """When, for example `2026-11-27`."""
        return self.created[:10]

    @property
    def summary(self) -> str:
        """The version that measured it, and the day."""
        return f"measured by Onceproof {self.version} on {self.day}"

    @property
    def is_red(self) -> bool:
        """Whether it shows an anomaly."""
        return self.verdict in RED

    @property
    def is_decided(self) -> bool:
        """Whether it says something about Kafka."""
        return self.verdict not in UNDECIDED

    @property
    def place(self) -> tuple[object, ...]:
        """Where it stands in a file: by scenario, variant and release."""
        cell = self.cell
        restart = str(cell.restart_on or "")
        return (cell.scenario, cell.variant, cell.streams, restart, cell.broker, self.created, self.run)


def merge(*parts: Iterable[Measurement]) -> tuple[Measurement, ...]:
    """All measurements of several atlases, in order, those that say nothing more left out (`thin_out`).

    Raises:
        UsageError: two of them contradict each other about one cell of one run.
    """
    found: dict[tuple[object, ...], Measurement] = {}
    for measurement in chain.from_iterable(parts):
        # Older runs of two installations may have one id; neither their seconds nor their machines are then the same.
        key = measurement.cell, measurement.run, measurement.created, measurement.machine
        other = found.setdefault(key, measurement)
        if other != measurement:
            raise UsageError(
                f"Two of the atlases contradict each other about {measurement.cell.key} in run {measurement.run} "
                f"({other.verdict} and {measurement.verdict}): export that run again, and leave out what was "
                "exported before."
            )
    return thin_out(found.values())


def thin_out(measurements: Iterable[Measurement]) -> tuple[Measurement, ...]:
    """The newest red and the newest other decided one of each cell and harness; the newest if none decided.

    A red is proof, so no later green takes its place. Whatever else was measured adds nothing that people look up.
    """
    together: dict[tuple[Cell, str], list[Measurement]] = defaultdict(list)
    for measurement in measurements:
        together[measurement.cell, measurement.harness].append(measurement)
    kept = (measurement for of_cell in together.values() for measurement in _telling(of_cell))
    return tuple(sorted(kept, key=lambda measurement: measurement.place))


def _telling(of_cell: list[Measurement]) -> list[Measurement]:
    newest_first = sorted(of_cell, key=lambda measurement: (measurement.created, measurement.run), reverse=True)
    red = [measurement for measurement in newest_first if measurement.is_red]
    other = [measurement for measurement in newest_first if measurement.is_decided and not measurement.is_red]
    return [*red[:1], *other[:1]] or newest_first[:1]


def standing(measurements: Iterable[Measurement], harness: Mapping[str, str]) -> dict[Cell, Measurement]:
    """The measurement of each cell that stands.

    Decided before undecided, by this harness before others, red before green, then the newest.
    """
    found: dict[Cell, Measurement] = {}
    for measurement in measurements:
        other = found.get(measurement.cell)
        if other is None or _weight(measurement, harness) > _weight(other, harness):
            found[measurement.cell] = measurement
    return found


def _weight(measurement: Measurement, harness: Mapping[str, str]) -> tuple[object, ...]:
    return (
        measurement.is_decided,
        is_current(measurement, harness),
        measurement.is_red,
        measurement.created,
        measurement.run,
    )


def is_current(measurement: Measurement, harness: Mapping[str, str]) -> bool:
    """Whether the harness of this version would drive and read its trials in the same way."""
    return measurement.harness == harness.get(measurement.cell.scenario)
