"""Topologies and records that are drawn by a seed, as values, and whatever is one reduction away from them.

`onceproof.streams.Drawn` builds them, `relational` says what they must emit, `printing` prints them as Java: the
four have the same operations. Keys and values are texts. A value is `foreign key|attribute`, or several of them that a
burst takes apart, `;` between them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise
from random import Random
from typing import Any

from onceproof.model.release import OLDEST, Release

BEGIN = 1_000_000  # epoch milliseconds, of the first record
MOST_RECORDS = 24
MOST_OPERATIONS = 5
NEVER = 3_600_000  # milliseconds of grace, or of history, that no case outlives
SHORT, LEAP = 100, 5_000  # milliseconds of a history that a case can outlive, and by which it does
MEMORY, ROCKSDB, VERSIONED = "memory", "rocksdb", "versioned"
DSL = "dsl"  # of the kind, and the format, that the configuration says
VERSIONED_SINCE, ON_CLOSE_SINCE = Release(3, 5, 0), Release(3, 3, 0)
CLOCK = "clock"  # the topic of what is no record: it advances the clock of the machine
SCHEDULES = 4  # that are tried of each reduction
EVERY = 100  # milliseconds between two punctuations
EXACTLY_ONCE = "processing.guarantee"
# Properties that are drawn, and the release that brought each.
PROPERTIES: Mapping[str, tuple[str, Release]] = {
    EXACTLY_ONCE: ("exactly_once_v2", Release(3, 0, 0)),
    "enable.transactional.statestores": ("true", Release(4, 4, 0)),
    "dsl.store.format": ("HEADERS", Release(4, 3, 0)),
}
TEXTS = "org.apache.kafka.common.serialization.Serdes$StringSerde"
KEYS = "aaaabbc"  # skewed
FOREIGN_KEYS = ("a", "a", "b", "c", "z", "z", "")  # z is the key of no record, and nothing stands for null


class StepKind(StrEnum):
    """The kind of thing that a step makes."""

    STREAM = "stream"
    TABLE = "table"
    WINDOWED = "windowed"  # a table whose keys have windows
    SUPPRESSED = "suppressed"  # a table whose changes are held back for some time
    GLOBAL = "global"


SOURCES: Mapping[str, StepKind] = {
    "stream": StepKind.STREAM,
    "table": StepKind.TABLE,
    "burst": StepKind.TABLE,  # a table of several updates by one record, none of which waits for what the last one did
    "globalTable": StepKind.GLOBAL,
}
# What each operation takes, and what it makes.
OPERATIONS: Mapping[str, tuple[tuple[StepKind, ...], StepKind]] = {
    "filter": ((StepKind.STREAM,), StepKind.STREAM),
    "mapValues": ((StepKind.STREAM,), StepKind.STREAM),
    "selectKey": ((StepKind.STREAM,), StepKind.STREAM),
    "rekey": ((StepKind.STREAM,), StepKind.STREAM),  # a processor that changes the key
    "merge": ((StepKind.STREAM, StepKind.STREAM), StepKind.STREAM),
    "repartition": ((StepKind.STREAM,), StepKind.STREAM),
    "toTable": ((StepKind.STREAM,), StepKind.TABLE),
    "count": ((StepKind.STREAM,), StepKind.TABLE),
    "latest": ((StepKind.STREAM,), StepKind.TABLE),
    "sum": ((StepKind.STREAM,), StepKind.TABLE),
    "windows": ((StepKind.STREAM,), StepKind.WINDOWED),
    "slides": ((StepKind.STREAM,), StepKind.WINDOWED),
    "sessions": ((StepKind.STREAM,), StepKind.WINDOWED),
    "cogroup": ((StepKind.STREAM, StepKind.STREAM), StepKind.TABLE),
    "remember": ((StepKind.STREAM,), StepKind.STREAM),  # a processor with a store, and perhaps a punctuator
    "suppress": ((StepKind.TABLE,), StepKind.SUPPRESSED),
    "lookup": ((StepKind.STREAM, StepKind.TABLE), StepKind.STREAM),
    "globalLookup": ((StepKind.STREAM, StepKind.GLOBAL), StepKind.STREAM),
    "streamJoin": ((StepKind.STREAM, StepKind.STREAM), StepKind.STREAM),
    "filterTable": ((StepKind.TABLE,), StepKind.TABLE),
    "mapTable": ((StepKind.TABLE,), StepKind.TABLE),
    "group": ((StepKind.TABLE,), StepKind.TABLE),
    "tableJoin": ((StepKind.TABLE, StepKind.TABLE), StepKind.TABLE),
    "foreignKeyJoin": ((StepKind.TABLE, StepKind.TABLE), StepKind.TABLE),
}
# How often these are drawn, where all others are drawn once.
WEIGHTS: Mapping[str, int] = {
    "foreignKeyJoin": 4,
    "streamJoin": 4,
    "lookup": 2,
    "group": 2,
}  # of 1: how often others are drawn
# Others since OLDEST.
OPERATIONS_SINCE: Mapping[str, Release] = {
    "streamJoin": Release(3, 1, 0),
    "remember": Release(3, 3, 0),
    "rekey": Release(3, 3, 0),
}
WITH_VERSIONS = ("table", "burst", "toTable")  # that may be kept in a versioned store
MAY_BE_KEPT = ("filterTable", "mapTable", "tableJoin")  # others that make tables must be
NOT_OF_VERSIONS = ("filterTable", "mapTable", "suppress")  # that take no versioned table
# Whose rows in the end hang neither on partitions nor on the order in which internal topics are read.
BY_TASKS = (
    "filter", "mapValues", "selectKey", "rekey", "merge", "repartition", "count", "sum", "cogroup", "filterTable",
    "mapTable", "group", "tableJoin", "foreignKeyJoin",
)  # fmt: skip
OF_WINDOWS = ("windows", "slides", "sessions")
BEFORE_A_CLOCK = ("stream", "filter", "mapValues", "merge")  # after which no record waits in a repartition topic
# By which one record of the input changes a row once, so that a suppression sees no more than the model does.
BEFORE_SUPPRESSION = (
    "stream", "table", "globalTable", "filter", "mapValues", "selectKey", "rekey", "merge", "repartition", "toTable",
    "count", "latest", "sum", "cogroup", "remember", "lookup", "globalLookup", "filterTable", "mapTable",
)  # fmt: skip
IN_ONE_ORDER = ("merge", "lookup", "streamJoin", "globalLookup")  # of inputs that no record may reach both


@dataclass(frozen=True)
class Step:
    """One step of a topology.

    Attributes:
        name: of the stream or table that it makes, and of the topic that it is written to if no step reads it.
        operation: of `SOURCES` or `OPERATIONS`.
        operands: names of steps; of a source, that of its topic.
        options: `store`, `history`, `cached`, `left`, `kind`, `size`, `grace`, `advance`, `final`, `onClose`, `clock`,
            as far as it has them; times are in milliseconds.
    """

    name: str
    operation: str
    operands: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def is_source(self) -> bool:
        """Whether it reads a topic."""
        return self.operation in SOURCES

    @property
    def makes(self) -> StepKind:
        """The kind of thing that it makes."""
        return SOURCES[self.operation] if self.is_source else OPERATIONS[self.operation][1]

    @property
    def is_versioned(self) -> bool:
        """Whether it is kept with its history."""
        return bool(self.options.get("store") == VERSIONED)

    @property
    def is_final(self) -> bool:
        """Whether a window is emitted once, when it has closed."""
        return bool(self.options.get("final") or self.options.get("onClose"))

    @property
    def is_outer(self) -> bool:
        """Whether it is a join of streams that emits records without a match."""
        return self.operation == "streamJoin" and bool(self.options["kind"] != "inner")

    @property
    def has_clock(self) -> bool:
        """Whether it emits what it remembers every so often."""
        return bool(self.options.get("clock", "none") != "none")

    @property
    def encoded(self) -> dict[str, object]:
        """One entry of `topology`, as the Java program reads it."""
        return {"as": self.name, "do": self.operation, "of": list(self.operands), **self.options}

    @classmethod
    def decode(cls, data: Mapping[str, Any]) -> "Step":
        """A step from its options, with its name, operation and operands."""
        options = {name: value for name, value in data.items() if name not in ("as", "do", "of")}
        return cls(data["as"], data["do"], tuple(data["of"]), options)

    def __str__(self) -> str:
        options = ", ".join(f"{name} {value}".lower() for name, value in self.options.items() if value is not False)
        return f"{self.name} = {self.operation} {' '.join(self.operands)}{f' ({options})' if options else ''}"


@dataclass(frozen=True)
class InputRecord:
    """A record of an input: its topic, time in epoch milliseconds, key and value.

    One of the topic `CLOCK` is none: the clock of the machine advances by as many milliseconds as its value says.
    """

    topic: str
    timestamp: int
    key: str
    value: str | None

    @property
    def parts(self) -> tuple[str | None, ...]:
        """The values that a burst takes it apart into."""
        return (None,) if self.value is None else tuple(part or None for part in self.value.split(";"))


@dataclass(frozen=True)
class Case:
    """A topology, its records in the order in which they are taken, and what else happens to it.

    Attributes:
        steps: each reads steps before it.
        records: of the topics of the sources.
        reopened: before which records, by their places, the stores are closed and opened again.
        optimized: whether the topology is built with all optimizations.
        restored: whether the stores are lost then, and restored from their changelogs.
        properties: of `PROPERTIES`, those that are set.
        partitions: of all topics, with a task each.
        schedule: the seed of the order in which tasks take what waits in internal topics.
        settled: whether tasks take no record of the input before nothing waits in internal topics.
    """

    steps: tuple[Step, ...]
    records: tuple[InputRecord, ...]
    reopened: tuple[int, ...] = ()
    optimized: bool = False
    restored: bool = False
    properties: tuple[str, ...] = ()
    partitions: int = 1
    schedule: int = 0
    settled: bool = False

    @property
    def is_on_disk(self) -> bool:
        """Whether it needs the state on the disk."""
        return bool(self.reopened) and not self.restored

    @property
    def named(self) -> dict[str, Step]:
        """The steps by their names."""
        return {step.name: step for step in self.steps}

    @property
    def leaves(self) -> tuple[Step, ...]:
        """The steps that no other step reads: their results are written to topics, except those of global tables."""
        used = {name for step in self.steps if not step.is_source for name in step.operands}
        return tuple(step for step in self.steps if step.name not in used and step.makes is not StepKind.GLOBAL)

    @property
    def since(self) -> Release:
        """The first release that has what it uses."""
        versioned = [VERSIONED_SINCE for step in self.steps if step.is_versioned]
        on_close = [ON_CLOSE_SINCE for step in self.steps if step.options.get("onClose")]
        operations = [OPERATIONS_SINCE.get(step.operation, OLDEST) for step in self.steps]
        return max((OLDEST, *versioned, *on_close, *operations, *(PROPERTIES[name][1] for name in self.properties)))

    @property
    def config(self) -> dict[str, str]:
        """The configuration of Kafka Streams."""
        return {
            "application.id": "fuzz",
            "bootstrap.servers": "localhost:1",
            "default.key.serde": TEXTS,
            "default.value.serde": TEXTS,
            "default.dsl.store": "rocksDB" if self.is_on_disk else "in_memory",
            "topology.optimization": "all" if self.optimized else "none",
            # Records of an outer join that have no match are otherwise emitted by the wall clock.
            "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__": "0",
            "__emit.interval.ms.kstreams.windowed.aggregation__": "0",
            **{name: PROPERTIES[name][0] for name in self.properties},
        }

    @property
    def encoded(self) -> dict[str, object]:
        """The whole case, as the Java program reads it."""
        return {
            "topology": [step.encoded for step in self.steps],
            "config": self.config,
            "records": [[one.topic, one.timestamp, one.key, one.value] for one in self.records],
            "reopened": list(self.reopened),
            "restored": self.restored,
            "partitions": self.partitions,
            "schedule": self.schedule,
            "settled": self.settled,
            "outputs": [step.name for step in self.leaves],
        }

    @classmethod
    def decode(cls, data: Mapping[str, Any]) -> "Case":
        """A case from what the program or `case.json` has."""
        return cls(
            tuple(Step.decode(step) for step in data["topology"]),
            tuple(InputRecord(*record) for record in data["records"]),
            tuple(data["reopened"]),
            data["config"]["topology.optimization"] == "all",
            data["restored"],
            tuple(name for name in PROPERTIES if name in data["config"]),
            data["partitions"],
            data["schedule"],
            data["settled"],
        )

    @property
    def operations(self) -> tuple[str, ...]:
        """Their names, sorted, each once."""
        return tuple(sorted({step.operation for step in self.steps}))

    @property
    def settings(self) -> tuple[str, ...]:
        """All that it has in addition to operations, in words, each once: stores, tasks, properties."""
        stores = {f"{store} store" for step in self.steps if (store := step.options.get("store"))}
        cached = {"cached" for step in self.steps if step.options.get("cached")}
        optimized = ["optimized"] if self.optimized else []
        reopened = ["stores restored" if self.restored else "stores opened again"] if self.reopened else []
        tasks = "one task" if self.partitions == 1 else f"{self.partitions} tasks by a schedule"
        properties = [f"{name}={PROPERTIES[name][0]}" for name in self.properties]
        properties += [] if EXACTLY_ONCE in self.properties else [f"{EXACTLY_ONCE}=at_least_once"]
        return (tasks, *sorted(stores), *cached, *optimized, *reopened, *properties)

    def __str__(self) -> str:
        lines = [str(step) for step in self.steps]
        lines += [f"optimized: {self.optimized}"] if self.optimized else []
        lines += [f"{name}={PROPERTIES[name][0]}" for name in self.properties]
        settled = ", each record when all before it is done" if self.settled else ""
        lines += [f"{self.partitions} partitions, schedule {self.schedule}{settled}"] if self.partitions > 1 else []
        reopening = f"the stores are {'lost and restored' if self.restored else 'closed and opened again'}"
        for place, record in enumerate(self.records):
            lines += [reopening] if place in self.reopened else []
            lines.append(f"{record.topic} at {record.timestamp - BEGIN}: {record.key} = {record.value}")
        return "\n".join(lines)


# --- drawing ---------------------------------------------------------------------------------------------------------


def draw(seed: int, number: int, release: Release, without: Collection[str] = (), *, uniform: bool = False) -> Case:
    """The case of this number of a search; the same for the same arguments, up to what the release does not have.

    Args:
        seed: of the search.
        number: of the case, from 0 on.
        release: that is searched: what it does not have is not drawn.
        without: operations and sources that are not drawn either.
        uniform: whether each operation is drawn as often as others, and versioned tables are as others.
    """
    random = Random(f"{seed} {number}")
    if random.random() < 0.3:
        return _by_tasks(random, without, uniform=uniform)
    is_of_versions = not uniform and release.since(VERSIONED_SINCE) and random.random() < 0.2
    is_closed = random.random() < (0.75 if is_of_versions else 0.25)
    is_restored = random.random() < (0.7 if is_of_versions else 0.5)
    stores = [ROCKSDB, DSL] if is_closed and not is_restored else [MEMORY, MEMORY, DSL]
    if release.since(VERSIONED_SINCE):
        stores += [VERSIONED] * (6 if is_of_versions else 1)
    operations = [one for one in OPERATIONS if release.since(OPERATIONS_SINCE.get(one, OLDEST))]
    steps = _steps(random, stores, _weigh(operations, without, uniform=uniform), without, 1 if is_of_versions else 3)
    if is_of_versions and not {"stream", "lookup"} & set(without):
        steps = _add_question(random, steps)
    steps = _keep_determined(steps, release, stores[0], is_closed=is_closed)
    if random.random() < (0.9 if is_of_versions else 0.5):
        steps = tuple(_forgetful(step) for step in steps)
    is_forgetful = any(step.options.get("history") == SHORT for step in steps)
    takes_order = any(_takes_order(step, is_closed) for step in steps)
    is_ordered = random.random() < (0.1 if is_forgetful else 0.4) or takes_order
    records = _records(random, steps, is_ordered)
    can_be_closed = is_closed and not any(_forgets(step, is_restored) for step in steps)
    reopened = (_restart(random, records),) if can_be_closed else ()
    if is_closed and not reopened:
        steps = tuple(_in_memory(step) for step in steps)
    optimized = random.random() < 0.3
    there = [name for name, (_, since) in PROPERTIES.items() if release.since(since)]
    if reopened and not is_restored:  # a store that has written nothing has no checkpoint, and the task is to be wiped
        there.remove(EXACTLY_ONCE)
    properties = tuple(name for name in there if random.random() < 0.25)
    return Case(steps, records, reopened, optimized, bool(reopened) and is_restored, properties)


def _keep_determined(steps: tuple[Step, ...], release: Release, store: str, *, is_closed: bool) -> tuple[Step, ...]:
    """Without what the release does not have, or what makes the results hang on more than the records.

    Args:
        steps: that were drawn.
        release: that is searched.
        store: of windows that can no longer be emitted on close.
        is_closed: whether the stores are closed at some time.
    """
    if any(_takes_order(step, is_closed) for step in steps):
        steps = tuple(_by_the_time_of_records(step) for step in steps)
    if not release.since(ON_CLOSE_SINCE) or any(step.is_outer for step in steps):  # which emits older records
        steps = tuple(_without_on_close(step, store) for step in steps)
    return steps


def _add_question(random: Random, steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """With a stream that looks into a versioned table, as nothing else sees its older versions.

    A clock would change the table behind the record that looks into it.
    """
    tables = [step for step in steps if step.is_versioned and CLOCK not in topics_of(step, steps)]
    if not tables:
        return steps
    number = sum(step.is_source for step in steps)
    stream = Step(f"s{number}", "stream", (f"in{number}",))
    table = random.choice(tables).name
    return (*steps, stream, Step("asked", "lookup", (stream.name, table), _options(random, "lookup", ())))


def _restart(random: Random, records: Sequence[InputRecord]) -> int:
    """The place of a restart: after the first record behind a leap, by which a history has been outlived, or any."""
    leapt = [at for at, (one, other) in enumerate(pairwise(records), 2) if other.timestamp - one.timestamp > LEAP // 2]
    return next((at for at in leapt if at < len(records)), random.randrange(1, len(records)))


def _weigh(operations: Collection[str], without: Collection[str], *, uniform: bool) -> dict[str, int]:
    """How often each operation is drawn, compared with others."""
    return {one: 1 if uniform else WEIGHTS.get(one, 1) for one in operations if one not in without}


def _by_tasks(random: Random, without: Collection[str], *, uniform: bool) -> Case:
    """A case of several tasks, by a schedule of its own."""
    weights = _weigh(BY_TASKS, without, uniform=uniform)
    steps = _steps(random, [MEMORY], weights, {*without, "globalTable"})
    records = _records(random, steps, is_ordered=random.random() < 0.4)
    properties = (EXACTLY_ONCE,) if random.random() < 0.25 else ()
    return Case(
        steps,
        records,
        optimized=random.random() < 0.3,
        properties=properties,
        partitions=2,
        schedule=random.randrange(1_000_000),
    )


def _by_the_time_of_records(step: Step) -> Step:
    """With no clock of the machine, which is ahead of the records."""
    return replace(step, options={**step.options, "clock": "stream"}) if step.has_clock else step


def _without_on_close(step: Step, store: str) -> Step:
    """With each update of its windows, which never close."""
    if "onClose" not in step.options:
        return step
    options = {name: value for name, value in step.options.items() if name != "onClose"}
    return replace(step, options={**options, "grace": NEVER, "store": store})


def _forgetful(step: Step) -> Step:
    """With so short a history that a case can outlive it."""
    return replace(step, options={**step.options, "history": SHORT}) if step.is_versioned else step


def _in_memory(step: Step) -> Step:
    """With its store in memory: RocksDB takes ten times as long, and here it makes no difference."""
    is_on_disk = step.options.get("store") == ROCKSDB and not step.options.get("onClose")
    return replace(step, options={**step.options, "store": MEMORY}) if is_on_disk else step


def _takes_order(step: Step, is_closed: bool) -> bool:
    """Whether its results are determined only if no record is late."""
    if step.is_outer or step.operation == "suppress" or step.options.get("onClose"):
        return True
    # The time that it had seen is forgotten; what a store has kept comes back by an internal topic, as of that time.
    return is_closed and (step.operation == "windows" or step.options.get("clock") == "stream")


def _forgets(step: Step, is_restored: bool) -> bool:
    """Whether it keeps something that neither the disk nor a changelog has here."""
    is_held_back = step.options.get("final") or step.operation == "suppress"
    if (
        step.is_outer or step.operation == "globalTable" or step.options.get("onClose")
    ):  # until when windows have been emitted
        return True
    return bool(is_held_back) and not is_restored


def _steps(
    random: Random, stores: Sequence[str], weights: Mapping[str, int], without: Collection[str], most: int = 3
) -> tuple[Step, ...]:
    steps: list[Step] = []
    for number in range(random.choice([count for count in (1, 2, 2, 2, 3) if count <= most])):
        others = ("globalTable",) if number else ()  # with which alone there is no output
        sources = ("stream", "stream", "table", "table", "burst", "burst", *others)
        operation = random.choice([one for one in sources if one not in without])
        options = {} if SOURCES[operation] is not StepKind.TABLE else _store(random, operation, stores)
        steps.append(Step(f"s{number}", operation, (f"in{number}",), options))
    for number in range(random.randint(1, MOST_OPERATIONS)):
        if step := _operation(random, f"n{number}", steps, stores, weights):
            steps.append(step)
    return tuple(steps)


def _operation(
    random: Random, name: str, steps: Sequence[Step], stores: Sequence[str], weights: Mapping[str, int]
) -> Step | None:
    """An operation on some of the steps, preferably of those that none reads yet; None if there is none."""
    leaves = {step.name for step in Case(tuple(steps), ()).leaves}
    found = [
        (operation, operands)
        for operation in weights
        for operands in _operands(operation, steps)
        if any(step.name in leaves for step in operands)
    ]
    if not found:
        return None
    there = sorted({operation for operation, _ in found})
    [operation] = random.choices(there, [weights[one] for one in there])
    operands = random.choice([operands for one, operands in found if one == operation])
    options = _options(random, operation, stores)
    if operation == "remember" and (
        any(step.has_clock for step in steps) or not _follows_only(BEFORE_A_CLOCK, operands[0], steps)
    ):
        options["clock"] = "none"
    return Step(name, operation, tuple(step.name for step in operands), options)


def _follows_only(operations: Sequence[str], step: Step, steps: Sequence[Step]) -> bool:
    """Whether a step and all before it are such operations without a clock."""
    named = {one.name: one for one in steps}
    waiting = [step]
    while waiting:
        one = waiting.pop()
        if one.operation not in operations or one.has_clock:
            return False
        waiting += [] if one.is_source else [named[name] for name in one.operands]
    return True


def _operands(operation: str, steps: Sequence[Step]) -> Iterator[tuple[Step, ...]]:
    takes, _ = OPERATIONS[operation]
    for first in steps:
        if first.makes is not takes[0] or (first.is_versioned and operation in NOT_OF_VERSIONS):
            continue
        if operation == "suppress" and not _follows_only(BEFORE_SUPPRESSION, first, steps):
            continue
        if len(takes) == 1:
            yield (first,)
            continue
        for second in steps:
            if second.makes is not takes[1] or second is first:
                continue
            if operation in IN_ONE_ORDER and topics_of(first, steps) & topics_of(second, steps):
                continue
            if operation == "lookup" and "store" not in second.options:
                continue
            yield (first, second)


def topics_of(step: Step, steps: Sequence[Step]) -> set[str]:
    """The topics that a step's records come from; a clock advances with the records of any topic."""
    if step.is_source:
        return set(step.operands)
    if step.has_clock:
        return {CLOCK, *(topic for one in steps if one.is_source for topic in one.operands)}
    named = {one.name: one for one in steps}
    return set().union(*(topics_of(named[name], steps) for name in step.operands))


def _options(random: Random, operation: str, stores: Sequence[str]) -> dict[str, object]:
    options: dict[str, Any] = {}
    if operation in ("tableJoin", "streamJoin"):
        options["kind"] = random.choice(("inner", "left", "outer"))
    if operation in ("lookup", "globalLookup", "foreignKeyJoin"):
        options["left"] = random.random() < 0.4
    if operation == "windows":
        options |= {"size": 60, "grace": random.choice((0, 30, NEVER)), "final": random.random() < 0.4}
        options |= {"advance": 20} if random.random() < 0.4 else {}
    if operation == "slides":
        options |= {"size": random.choice((20, 60)), "grace": NEVER}
    if operation == "sessions":
        options |= {"size": random.choice((10, 40)), "grace": NEVER}
    if operation in OF_WINDOWS and random.random() < 0.25:
        options |= {"grace": random.choice((0, 30)), "onClose": True}
        options.pop("final", None)
    if operation == "suppress":
        options["size"] = random.choice((20, 100))
    if operation == "remember":
        options |= {"clock": random.choice(("none", "stream", "wall"))}
        options |= _store(random, operation, stores)
    if operation == "streamJoin":
        options |= {"size": random.choice((10, 50)), "grace": NEVER if options["kind"] == "inner" else 0}
    makes = OPERATIONS[operation][1]
    if makes in (StepKind.TABLE, StepKind.WINDOWED) and (operation not in MAY_BE_KEPT or random.random() < 0.5):
        options |= {"store": DSL, "cached": False} if "onClose" in options else _store(random, operation, stores)
    return options


def _store(random: Random, operation: str, stores: Sequence[str]) -> dict[str, object]:
    others = {VERSIONED} if operation not in WITH_VERSIONS else set()
    others |= {DSL} if operation in (*OF_WINDOWS, "remember") else set()
    store = random.choice([one for one in stores if one not in others])
    return (
        {"store": VERSIONED, "history": NEVER}
        if store == VERSIONED
        else {"store": store, "cached": random.random() < 0.3}
    )


def _records(random: Random, steps: Sequence[Step], is_ordered: bool) -> tuple[InputRecord, ...]:
    sources = [step for step in steps if step.is_source]
    is_forgetful = any(step.options.get("history") == SHORT for step in steps)
    lateness = (0, 0, 15, 50, 90) if is_forgetful else (0, 0, 0, 15, 50, 120)
    steps_of_time = (0, 0, 5, 5, 10, 10, 20) if is_forgetful else (0, 0, 5, 10, 10, 20, 40, 90)
    count = random.randint(MOST_RECORDS // 2 if is_forgetful else 3, MOST_RECORDS)
    has_clock = any(step.options.get("clock") == "wall" for step in steps)
    records: list[InputRecord] = []
    now = BEGIN + (SHORT if is_forgetful else 0)  # so that the first ones may be late, too
    for number in range(count):
        leaps = (LEAP, LEAP) if is_forgetful and 3 * number > 2 * count else ()  # over a history that there is by then
        source = random.choice(sources)
        now += random.choice((*steps_of_time, *leaps))
        if has_clock and records and random.random() < 0.2:
            records.append(InputRecord(CLOCK, now, "", str(random.choice((30, 100, 250)))))
        late = 0 if is_ordered else random.choice(lateness)
        value = _value(random, source, 0.4 if is_forgetful else 0.15)
        records.append(InputRecord(source.operands[0], max(BEGIN, now - late), random.choice(KEYS), value))
    return tuple(records)


def _value(random: Random, source: Step, deleted: float) -> str | None:
    if random.random() < (0.05 if source.makes is StepKind.STREAM else deleted):
        return None
    if source.operation == "burst":
        parts = [_one(random)]
        for _ in range(random.choice((0, 1, 1, 2))):  # as often as not only the attribute changes
            foreign = random.choice((parts[-1], _one(random))).partition("|")[0]
            parts.append("" if random.random() < 0.15 else f"{foreign}|{random.randrange(10)}")
        return ";".join(parts)
    return _one(random)


def _one(random: Random) -> str:
    return f"{random.choice(FOREIGN_KEYS)}|{random.randrange(10)}"


# --- shrinking -------------------------------------------------------------------------------------------------------


def smaller(case: Case) -> Iterator[Case]:
    """Everything that is one reduction away: fewer steps, then fewer records, then plainer ones.

    With fewer records a schedule has other turns, so others are tried, too.
    """
    if case.partitions == 1:
        yield from _smaller(case)
        return
    yield replace(case, partitions=1, schedule=0, settled=False)
    if not case.settled:
        yield replace(case, settled=True)
    for one in _smaller(case):
        yield one
        yield from (replace(one, schedule=schedule) for schedule in range(SCHEDULES))


def nearby(case: Case) -> Iterator[Case]:
    """Everything that is one reduction away, or another foreign key in one value."""
    yield from smaller(case)
    for place, record in enumerate(case.records):
        for other in _of_other_keys(record):
            yield replace(case, records=(*case.records[:place], other, *case.records[place + 1 :]))


def _of_other_keys(record: InputRecord) -> Iterator[InputRecord]:
    parts = () if record.value is None or record.topic == CLOCK else record.value.split(";")
    for at, part in enumerate(parts):
        foreign, bar, attribute = part.partition("|")
        for other in sorted({*FOREIGN_KEYS} - {foreign}) if bar else ():
            yield replace(record, value=";".join((*parts[:at], f"{other}|{attribute}", *parts[at + 1 :])))


def _smaller(case: Case) -> Iterator[Case]:
    if case.reopened:
        yield replace(case, reopened=(), restored=False)
    if case.optimized:
        yield replace(case, optimized=False)
    for name in case.properties:
        yield replace(case, properties=tuple(one for one in case.properties if one != name))
    for step in reversed(case.steps):
        yield from _without(case, step)
    size = max(1, len(case.records) // 2)
    while size:
        for at in range(0, len(case.records) - size + 1, size):
            yield _without_records(case, at, size)
        size //= 2
    for place, step in enumerate(case.steps):
        for options in _plainer(step, on_disk=case.is_on_disk):
            yield replace(case, steps=(*case.steps[:place], replace(step, options=options), *case.steps[place + 1 :]))
    is_ordered = any(_takes_order(step, bool(case.reopened)) for step in case.steps)
    for place, record in enumerate(case.records):
        for plain in _plain(record):
            if is_ordered and plain.timestamp != record.timestamp:
                continue
            yield replace(case, records=(*case.records[:place], plain, *case.records[place + 1 :]))


def _without(case: Case, gone: Step) -> Iterator[Case]:
    """Without a step: a leaf is left out; what reads another step reads its operand instead."""
    rest = tuple(step for step in case.steps if step is not gone)
    named, users = case.named, users_of(gone, rest)
    if not users:
        topics = {CLOCK, *(topic for step in rest if step.is_source for topic in step.operands)}
        left = [(place, record) for place, record in enumerate(case.records) if record.topic in topics]
        if any(record.topic != CLOCK for _, record in left) and Case(rest, ()).leaves:
            reopened = {sum(place < at for place, _ in left) for at in case.reopened}
            kept = tuple(sorted(at for at in reopened if 0 < at < len(left)))
            yield replace(case, steps=rest, records=tuple(record for _, record in left), reopened=kept)
        return
    for name in () if gone.is_source else gone.operands:
        if named[name].makes is gone.makes and not _clashes(named[name], gone, users):
            yield replace(case, steps=tuple(redirect(step, gone.name, name) for step in rest))


def users_of(one: Step, steps: Iterable[Step]) -> Sequence[Step]:
    """Those of the steps that read one."""
    return [step for step in steps if not step.is_source and one.name in step.operands]


def _clashes(one: Step, gone: Step, users: Sequence[Step]) -> bool:
    """Whether one that takes the place of another cannot be an operand of those that read that."""
    for user in users:
        other = [name for name in user.operands if name != gone.name]
        if one.name in other or (one.is_versioned and user.operation in NOT_OF_VERSIONS):
            return True
        if user.operation == "lookup" and user.operands[1] == gone.name and "store" not in one.options:
            return True
    return False


def redirect(step: Step, gone: str, to: str) -> Step:
    """A step that reads another one in place of one that is gone."""
    if step.is_source:
        return step
    return replace(step, operands=tuple(to if name == gone else name for name in step.operands))


def _without_records(case: Case, at: int, size: int) -> Case:
    records = (*case.records[:at], *case.records[at + size :])
    reopened = {
        at if at < place < at + size else place - size if place >= at + size else place for place in case.reopened
    }
    kept = tuple(sorted(place for place in reopened if 0 < place < len(records)))
    return replace(case, records=records, reopened=kept)


def _plainer(step: Step, *, on_disk: bool) -> Iterator[dict[str, Any]]:
    options = dict(step.options)
    if options.get("cached"):
        yield {**options, "cached": False}
    if options.get("store") == VERSIONED:
        plain = {name: value for name, value in options.items() if name != "history"}
        yield {**plain, "store": ROCKSDB, "cached": False}
        if options["history"] != NEVER:
            yield {**options, "history": NEVER}
    elif options.get("store") == ROCKSDB and not on_disk:
        yield {**options, "store": MEMORY}
    elif options.get("store") == DSL and "onClose" not in options:
        yield {**options, "store": ROCKSDB if on_disk else MEMORY}
    if options.get("final"):
        yield {**options, "final": False}
    if options.get("clock", "none") != "none":
        yield {**options, "clock": "none"}
    if options.get("left"):
        yield {**options, "left": False}
    if "advance" in options:
        yield {name: value for name, value in options.items() if name != "advance"}


def _plain(record: InputRecord) -> Iterator[InputRecord]:
    if record.topic == CLOCK:
        return
    parts = () if record.value is None else record.value.split(";")
    for at in range(len(parts)) if len(parts) > 1 else ():
        yield replace(record, value=";".join((*parts[:at], *parts[at + 1 :])))
    if record.key != "a":
        yield replace(record, key="a")
    for at, part in enumerate(parts):
        foreign, bar, attribute = part.partition("|")
        for plain in (f"{other}|{attribute}" for other in "az" if bar and foreign > other):
            yield replace(record, value=";".join((*parts[:at], plain, *parts[at + 1 :])))
        if bar and attribute not in ("0", "1"):
            for digit in ("0", "1"):
                yield replace(record, value=";".join((*parts[:at], f"{foreign}|{digit}", *parts[at + 1 :])))
    if record.timestamp != BEGIN:
        yield replace(record, timestamp=BEGIN)
