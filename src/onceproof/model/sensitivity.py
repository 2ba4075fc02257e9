"""The results of planted bugs: the record of one planted trial, and what such trials add up to for a plant on a
release.

A planted trial says nothing about Kafka: it is kept apart from the trials of cells, and is never part of a cell's
history."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from onceproof.model.cell import Cell


@dataclass(frozen=True)
class PlantedTrial:
    """One trial with a bug planted into the release under test.

    The number of trials of a plant is fixed before the first of them, and all of them are recorded, including those
    that failed, or in which the plant did not fire.
    """

    run: str  # id of the run folder
    trial: str  # its key there
    plant: str
    cell: Cell  # whose release carries the plant
    commit: str  # of Kafka Streams, as the instances attested it; empty if none came up
    harness: str  # version of what ran it (`onceproof.harness`)
    seed: int
    fired: int  # how often the plant did what it was planted for, over all instances
    exercised: bool  # it fired, and the trial met the scenario's precondition
    found: bool  # a promise that must see it was broken
    anomalies: Mapping[str, int] = field(default_factory=dict)
    seconds: float | None = None
    error: str | None = None  # the sentence, if the harness failed or the readers disagree
    found_by: tuple[str, ...] = ()  # the readers that saw such a breach
    machine: str = ""  # that drove it, with its JDK (`lab.machine`); empty if it is not known

    def to_dict(self) -> dict[str, object]:
        """JSON form: the fields, those of the cell among them."""
        own = {name: value for name, value in vars(self).items() if name != "cell"}
        return {**self.cell.to_dict(), **own, "anomalies": dict(self.anomalies), "found_by": list(self.found_by)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "PlantedTrial":
        """Read what `to_dict` wrote."""
        own = {name: data[name] for name in cls.__dataclass_fields__ if name != "cell"}
        return cls(cell=Cell.from_dict(data), **(own | {"found_by": tuple(data["found_by"])}))


@dataclass(frozen=True)
class Tally:
    """`red` of `counted` trials showed an anomaly."""

    red: int = 0
    counted: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.red + other.red, self.counted + other.counted)

    def __str__(self) -> str:
        return f"{self.red} of {self.counted} {'trial' if self.counted == 1 else 'trials'}"


NOTHING = Tally()


@dataclass(frozen=True)
class Stratum:
    """Where trials may be counted together: everything is the same, so only chance makes them differ.

    Releases do not change: evidence of one commit adds up over nights, as long as harness and machine stay the same.
    """

    scenario: str
    variant: str
    streams: str  # release of Kafka Streams
    restart_on: str | None
    commit: str
    harness: str
    broker: str  # release of the brokers
    machine: str  # what kind it is, with its JDK (`lab.machine`)

    @classmethod
    def of(cls, cell: Cell, commit: str, harness: str, machine: str) -> "Stratum":
        """The place of a trial of a cell."""
        restart = str(cell.restart_on) if cell.restart_on else None
        own = (cell.scenario, cell.variant, str(cell.streams), restart)
        return cls(*own, commit, harness, str(cell.broker), machine)

    @property
    def is_known(self) -> bool:
        """Whether it is known where that was; if not, other trials may have been elsewhere."""
        return bool(self.commit and self.harness and self.machine)


@dataclass(frozen=True)
class Sensitivity:
    """The sum of the trials of a plant in one place."""

    plant: str
    place: Stratum
    trials: tuple[PlantedTrial, ...]

    @property
    def planned(self) -> int:
        """Trials whose number was fixed beforehand."""
        return len(self.trials)

    @property
    def tally(self) -> Tally:
        """How many found it, of those in which the plant fired and the scenario's precondition was met."""
        exercised = [trial for trial in self.trials if trial.exercised]
        return Tally(sum(trial.found for trial in exercised), len(exercised))


def commit_of(cell: Cell, attested: Mapping[str, Mapping[str, Any]]) -> str:
    """The commit of Kafka Streams of a trial, by what its instances attested; of both releases if it was restarted.

    Empty if not all of it was attested. Where the jars name no commit, as those of the 3.3 line, the release stands for
    it: what is published under a release does not change.
    """
    commits = {}
    for versions in attested.values():
        release = versions.get(
            "release", versions["streams_version"]
        )  # before there were builds, the version said it all
        commits[release] = versions["streams_commit"] or release
    wanted = [str(cell.streams), *([str(cell.restart_on)] if cell.restart_on else [])]
    return " → ".join(commits[release] for release in wanted) if all(r in commits for r in wanted) else ""


def sensitivities(trials: Iterable[PlantedTrial]) -> list[Sensitivity]:
    """The sums of trials, by plant and place, in the order of their first."""
    together: dict[tuple[str, Stratum], list[PlantedTrial]] = defaultdict(list)
    for trial in trials:
        together[trial.plant, Stratum.of(trial.cell, trial.commit, trial.harness, trial.machine)].append(trial)
    return [Sensitivity(plant, place, tuple(of_plant)) for (plant, place), of_plant in together.items()]
