"""The files of the run folder that one room leaves for the others."""

import socket
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any

from pydantic import AliasChoices, Field

from onceproof.model.anomaly import Comparison, Findings, Witness, count_comparisons, first_of_each, witnesses_of
from onceproof.model.cell import Cell, Trial
from onceproof.model.json_file import JsonFile, encode, read_as, write_json
from onceproof.model.promise import Least
from onceproof.model.verdict import Standing, Verdict

WITNESSES = 20  # of each anomaly that are kept


@dataclass(frozen=True)
class Produced:
    """The records that the producer delivered to the input."""

    records: int
    keys: int  # distinct ones


@dataclass(frozen=True)
class Planted:
    """The outcome of a planted bug: the methods that it altered, and how often it fired in all instances."""

    name: str
    altered: tuple[str, ...]
    fired: int


@dataclass(frozen=True)
class FaultOutcome:
    """The outcome of a fault: whether it took effect, how or why not in words, and the proof."""

    name: str
    bit: bool
    # `told` before 0.2.0
    summary: Annotated[str, Field(validation_alias=AliasChoices("summary", "told"))]
    observed: Mapping[str, Any]  # as the fault's page in docs/faults.md has it; empty if the drive ended before


@dataclass(frozen=True, kw_only=True)
class Outcome(JsonFile):
    """`outcome.json`: how a trial ended."""

    trial: Trial
    error: str | None = None  # the sentence, if the harness failed; then nothing else counts
    void: str | None = None  # why it says nothing, if some process got no CPU time, or it was killed
    failed: str | None = None  # what Kafka did that ended the drive
    exercised: bool
    reason: str
    steps: int | None = None  # that the driver took
    all_steps_tried: bool
    produced: Produced
    facts: Mapping[str, int] = field(default_factory=dict)  # that the checks need to know in addition to the records
    attested: Mapping[str, Mapping[str, Any]]  # by start of an instance, what it reported about itself
    plant: Planted | None = None
    fault: FaultOutcome | None = None  # that was injected in addition to the scenario's own steps
    harness: str | None = None  # its version
    host: str | None = None  # name of the machine that drove it
    machine: str | None = None  # what kind it is, with its JDK (`lab.machine`)
    seconds: Mapping[str, float]  # by phase, and their total

    @classmethod
    def of_error(cls, trial: Trial, sentence: str) -> "Outcome":
        """For a trial that the lab could not finish."""
        return replace(cls._make_unfinished(trial, sentence), error=sentence, host=socket.gethostname())

    @classmethod
    def of_void(cls, trial: Trial, sentence: str) -> "Outcome":
        """For a trial that says nothing about Kafka, and was not at fault."""
        return replace(cls._make_unfinished(trial, sentence), void=sentence)

    @classmethod
    def _make_unfinished(cls, trial: Trial, sentence: str) -> "Outcome":
        return cls(
            trial=trial,
            exercised=False,
            reason=sentence,
            all_steps_tried=False,
            produced=Produced(0, 0),
            attested={},
            seconds={"total": 0.0},
        )

    @property
    def says_something(self) -> bool:
        """Whether the trial is judged by its topics."""
        return self.error is None and self.void is None

    @property
    def has_fired(self) -> bool:
        """Whether a planted bug took effect."""
        return self.plant is not None and self.plant.fired > 0


@dataclass(frozen=True, kw_only=True)
class Reading(JsonFile):
    """`reader.json`: what the independent reader found; the counts are those of `model.anomaly.Findings`."""

    records: int
    outputs: int
    keys: int
    ids: int
    promises: Mapping[str, int] = field(default_factory=dict)  # comparisons
    anomalies: Mapping[str, int]  # witnesses
    witnesses: tuple[Witness, ...]  # of each anomaly the first
    unexplained: Mapping[str, int] = field(
        default_factory=dict
    )  # witnesses that no known issue, and no cause, explains

    @property
    def explained(self) -> tuple[str, ...]:
        """The anomalies of which known issues explain some witnesses."""
        return tuple(name for name, count in self.anomalies.items() if count > self.unexplained.get(name, 0))

    def is_whole(self, outcome: Outcome) -> bool:
        """Whether all that was delivered was processed, and can be read: else there are too few records."""
        return outcome.failed is None and "corrupt-record" not in self.anomalies

    @classmethod
    def of(cls, findings: Findings, unexplained: Mapping[str, int]) -> "Reading":
        """The part of the findings that is kept, with the part that no known issue explains."""
        return cls(
            records=findings.records,
            outputs=findings.outputs,
            keys=findings.keys,
            ids=findings.ids,
            promises=findings.promises,
            anomalies=findings.anomalies,
            witnesses=tuple(first_of_each(findings.witnesses, WITNESSES)),
            unexplained=unexplained,
        )

    def with_more(self, comparisons: Sequence[Comparison], unexplained: Mapping[str, int]) -> "Reading":
        """The same with further comparisons, and the witnesses among them that no known issue explains."""
        found = witnesses_of(comparisons)
        return replace(
            self,
            promises=_sum(self.promises, count_comparisons(comparisons)),
            anomalies=_sum(self.anomalies, Counter(witness.anomaly for witness in found)),
            witnesses=tuple(first_of_each([*self.witnesses, *found], WITNESSES)),
            unexplained=_sum(self.unexplained, unexplained),
        )


def _sum(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted((Counter(first) + Counter(second)).items()))


# Topics of a store that clients ask: what they were answered, and its changelog.
ANSWERS, CHANGELOG = "answers", "changelog"


@dataclass(frozen=True)
class Declared:
    """The declaration of users about a topic of their application."""

    name: str  # that brokers know it by
    # `input`, `output`, `global`: what is read into a global table or store, or, of a store that clients ask, `answers`
    # and `changelog`.
    plays: str
    key: str  # serdes
    value: str
    promises: tuple[str, ...] = ()  # of an output, see `readers.application`
    of: str | None = None  # the input whose records must be in it, each once
    # How far runs without a fault agree on it: `records`, `final` values, `keys`, or on `nothing`; None: not checked.
    agreed: str | None = None
    # How far it must be as it is replayed, by the same names; None: nothing was replayed yet.
    as_replayed: str | None = None
    ignored: tuple[str, ...] = ()  # fields of its JSON on which runs without a fault do not agree
    compare: str = "records"  # no more than that of an output: all `records` of a key, its `final` value, or the `keys`
    compare_also: tuple[str, ...] = ()  # of these records: `timestamp`, `headers`, as far as runs agree on them
    partitions: int | None = None  # None: as many as the trial says
    config: Mapping[str, str] = field(default_factory=dict)  # of the topic


WITH_INTEGERS = ("keys", "versions")  # forms of stores whose records are also read as integers


@dataclass(frozen=True)
class StorePlan:
    """The form of a store's entries, which are compared with its changelog as bytes, and for how long it keeps them.

    The form says what a key of the changelog is: `keys`, integers, so that its records are also read as such;
    `versions`, likewise, of a store that keeps its history; `windows` and `sessions`, which end with their times;
    `waiting`, records of a join that begin with their time; `subscriptions`, of a join by a foreign key, which end with
    the key of the row that asks; `buffer`, what `suppress` holds back.
    """

    form: str
    retention: int = 0  # ms; 0: forever

    @property
    def has_integers(self) -> bool:
        """Whether its records are also read as integers."""
        return self.form in WITH_INTEGERS


@dataclass(frozen=True)
class TopicPlan:
    """How a topic is read: whose it is, and what its values are."""

    topic: str  # the role whose topic it is
    value_bytes: int
    committed: bool = True  # false: with the records of aborted and open transactions
    may_refuse: bool = False  # created beforehand, so that `min.insync.replicas=2` makes it refuse records
    declared: Declared | None = None  # of your own application; then its records are bytes
    keys: str = "integers"  # or `windows` or `sessions`: each followed by the time of the record
    plays: str | None = None  # `input`, of one more input; None: what the name of its role says
    store: StorePlan | None = None  # whose changelog it is; then its records are read as bytes


@dataclass(frozen=True)
class Later:
    """The differences from a start of each instance on (the first is 1)."""

    start: int
    app: Mapping[str, Any]  # in addition to the plan's, and before it
    streams_config: Mapping[str, str]  # likewise


def since(config: Mapping[str, str], later: Sequence[Later]) -> list[Mapping[str, str]]:
    """The configuration at first, and that from each later start on."""
    return list(
        accumulate((change.streams_config for change in later), lambda before, new: {**before, **new}, initial=config)
    )


@dataclass(frozen=True, kw_only=True)
class TrialPlan(JsonFile):
    """`trial.json`: what a trial is, how its topics are read and judged, and every config that is used."""

    trial: Trial
    application_id: str
    description: str  # of the variant
    parameters: Mapping[str, Any] = field(default_factory=dict)
    plant: Mapping[str, Any] | None = None
    partitions: int
    roles: Mapping[str, TopicPlan]
    check: str  # the topology, and the name of its checks among those of both readers
    promises: Mapping[str, Least]  # that are looked at
    not_looked_at: Mapping[str, str] = field(default_factory=dict)  # promises, and why
    stores: int = 1
    partition_stores: int = 1  # all of them
    entry_stores: int = 0  # stores whose entries are compared as bytes, in all partitions
    app: Mapping[str, Any]
    streams_config: Mapping[str, str]  # of every instance
    later: tuple[Later, ...] = ()  # in the order of their starts
    group_config: Mapping[str, str] = field(default_factory=dict)  # of the group, on the brokers
    producer_config: Mapping[str, Any]
    broker_config: Mapping[str, str]  # files of embedded brokers by name
    broker_is_claimed: bool = False  # whether the cell's broker release is claimed for given brokers
    broker_hosts: tuple[str, ...] = ()  # names of the machines of external brokers, which reports hide
    seconds: Mapping[str, float] = field(default_factory=dict)  # by phase, in files of before; now `TrialProgress`
    # Records before it is driven; files of before have another name for it.
    preloaded: Annotated[int, Field(validation_alias=AliasChoices("preloaded", "seeded"))] = 0

    @property
    def standbys(self) -> int:
        """`num.standby.replicas`, of instances or of their group."""
        of_group = self.group_config.get("streams.num.standby.replicas", "0")
        return int(self.streams_config.get("num.standby.replicas", of_group))

    def topic(self, role: str) -> str:
        """The topic that plays the role, whether it is one that is read or another one of the application."""
        planned = self.roles.get(role)
        if planned is None:
            return self.trial.topic(role)
        return planned.declared.name if planned.declared else self.trial.topic(planned.topic)

    def partitions_of(self, role: str) -> int:
        """How many partitions the topic of a role has."""
        declared = self.roles[role].declared if role in self.roles else None
        return (declared and declared.partitions) or self.partitions

    @property
    def sizes(self) -> dict[str, int]:
        """How many partitions each topic that is read has, by its name."""
        return {self.topic(role): self.partitions_of(role) for role in self.roles}

    @property
    def byte_stores(self) -> dict[str, StorePlan]:
        """The stores whose entries are compared as bytes, by name."""
        return {role.removesuffix("-changelog"): of.store for role, of in self.roles.items() if of.store}

    @property
    def inputs(self) -> tuple[str, ...]:
        """The roles of the topics that only we write to."""
        return self._playing("input")

    @property
    def outputs(self) -> tuple[str, ...]:
        """The roles of the topics that only the application writes to, and only for others."""
        return self._playing("output")

    def _playing(self, plays: str) -> tuple[str, ...]:
        return tuple(
            role
            for role, planned in self.roles.items()
            if (planned.declared.plays if planned.declared else planned.plays or role) == plays
        )

    def topics_of(self, role: str) -> dict[str, int]:
        """The topics that play a role, and their partitions; an application may have several inputs."""
        roles = self.inputs if role == "input" else (role,)
        return {self.topic(name): self.partitions_of(name) for name in roles}

    def least(self, promise: str, produced: Produced) -> int:
        """The least number of comparisons that a promise must have had."""
        rule = self.promises[promise]
        counts = {"keys": produced.keys, "seeded": self.preloaded, **vars(self)}  # `seeded` is what old files say
        return rule if isinstance(rule, int) else counts[rule]


@dataclass(frozen=True)
class TrialProgress(JsonFile):
    """`progress.json`: how far a trial has come before it is driven. Older trials have this in their plan."""

    seconds: Mapping[str, float] = field(default_factory=dict)  # by phase

    def and_then(self, phase: str, seconds: float) -> "TrialProgress":
        """The same after one more phase."""
        return TrialProgress({**self.seconds, phase: seconds})


@dataclass(frozen=True, kw_only=True)
class VerdictRow:
    """A row of `verdicts.json`: the verdict on a cell, with the arithmetic and what else tables for people need.

    Of a green, `excluded_rate` is about its own trials: bugs that show in this share of trials or more are excluded
    with 95 % confidence. `missed` is about the procedure, averaged over what control and cell might have shown: how
    probable it is, at most, that a control is red so often and a cell with a bug of its rate is green in all trials.
    """

    scenario: str
    variant: str
    streams: str
    broker: str
    restart_on: str | None
    cell: str  # its key
    verdict: Verdict
    sentence: str
    red: int
    counted: int
    trials: int
    anomalies: Mapping[str, int]
    issues: tuple[str, ...]
    errors: Mapping[str, str]  # by trial
    interval: tuple[float, float] | None = None
    excluded_rate: float | None = None
    missed: float | None = None
    plants: tuple[Standing, ...] = ()
    arithmetic: str = ""
    unqualified: str = ""  # why this version of the harness may be blind on these releases; empty if they qualified
    seeds: tuple[int, ...]
    seconds: float | None  # mean of its trials
    records: int  # these and further counts are the independent reader's, of all trials
    keys: int
    ids: int
    promises: Mapping[str, int] = field(default_factory=dict)
    not_looked_at: Mapping[str, str] = field(default_factory=dict)  # promises that no trial looked at, and why
    folders: tuple[str, ...]  # of its trials, within the run's

    @staticmethod
    def read_all(path: Path) -> "tuple[VerdictRow, ...]":
        """The rows of a file.

        Raises:
            HarnessError: it is missing, no JSON, or not of this form.
        """
        rows: tuple[VerdictRow, ...] = read_as(tuple[VerdictRow, ...], path)
        return rows

    @staticmethod
    def write_all(path: Path, rows: "Iterable[VerdictRow]") -> None:
        """Write the rows as a whole or not at all.

        Raises:
            HarnessError: the disk is full or read-only.
        """
        write_json(path, encode(tuple(rows)))

    @property
    def as_cell(self) -> Cell:
        """The cell that is judged."""
        return Cell.from_dict(vars(self))


def read_observations(path: Path) -> tuple[Comparison, ...]:
    """The comparisons of `observations.json`.

    Raises:
        HarnessError: it is missing, no JSON, or not of this form.
    """
    observed: tuple[Comparison, ...] = read_as(tuple[Comparison, ...], path)
    return observed


def write_observations(path: Path, observed: Iterable[Comparison]) -> None:
    """Write what promises expected and the timeline showed, as a whole or not at all.

    Raises:
        HarnessError: the disk is full or read-only.
    """
    write_json(path, encode(tuple(observed)))
