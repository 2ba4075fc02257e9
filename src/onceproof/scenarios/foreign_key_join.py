"""KAFKA-16407 and KAFKA-16434: an inner foreign-key join must follow a key that changes from or to null.

Both tables are made from the input; while it flows, records of the left table change the key by which they ask for one
of the right table, again and again, also from null and to null, and records of the right table change their value.
Releases with the bug ignore a change from null (no result, or that of an older key) and to null (the result stays).

The join asks and answers through topics of its own, so the order and the number of its results vary; but the table that
they make at the end is that of the join of both tables, and is compared key by key. Everything has been processed when
the last record of the left table has its result: it comes after all others in each of those topics.

Every foreign key that is not null exists in the right table. If some do not (parameter `absent`), or if the tables are
cached, there is a race: the answer that removes a result may meet a row that has changed meanwhile, and is dropped; if
nothing asks again, the result stays (docs/findings/foreign-key-join-stale-result.md). The parameter `race` provokes it:
each row of the left table has a result, and then changes twice, the second time before the first change is answered.
For this a row has a second attribute in addition to its foreign key: a change of it changes the row, and not the key.
Half of the rows come to ask for a key that is there, so that a join which gives nothing at all is seen, too. The trial
is exercised if the application counted answers that were dropped.

KAFKA-18713: a left join to a table of several partitions. For a foreign key that changes, releases with the bug let
both the old key and the new one answer: that there is nothing, and what there is. The task of the old key may be
slower; then its answer, which comes last, removes the result.

Where a fault is injected while the tables change, the trial is exercised when it took effect. Under exactly-once a
subscription or an answer is there if and only if what asked for it is committed, and each way of a key keeps its order,
so the table at the end is the same. Then the last results get lost: what the join asks and answers must have
been processed to the end.
"""

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from pydantic import Field

from onceproof.faults import OF_GROUPS
from onceproof.model.cell import Trial
from onceproof.model.files import StorePlan
from onceproof.model.parameter import Share
from onceproof.scenarios.base import (
    ROLLING,
    Exercise,
    Group,
    Guarantee,
    Role,
    Scenario,
    ScenarioContext,
    StoreKind,
    System,
    Variant,
    Workload,
    membership,
    values_in,
    variants_of,
)
from onceproof.scenarios.two_instances import inject, refuse_at_least_once, refuse_group, start_other

NAME = "instance-1"
NULL = 0  # value of a record of the left table without a foreign key
ATTRIBUTE = 1_000_000  # a value of the left table is its second attribute times this, and what it asks for
DELETED = ATTRIBUTE - 1  # the value that deletes a row of the left table
RACES = {"same-key": None, "null": NULL, "insert": DELETED}  # how a row changes first; None: as the second time
AT_ONCE = 5_000  # records a second where rows race
JOINS = ("inner", "left")  # a fact is the place of one
REPARTITION = "right-repartition"  # through which the right table goes, if it has several partitions

# --- variants ------------------------------------------------------------------------------------------------


class Parameters(Group):
    """The rows of both tables, and which changes of the left one race with answers from the right one."""

    left: int = Field(1_000, ge=1, description="keys of the left table")
    right: int = Field(300, ge=1, description="keys of the right table")
    records: int = Field(6_000, ge=1, description="changes of the tables, six of seven of the left one")
    no_key: bool = Field(True, description="whether foreign keys come from null and become null")
    join: Literal["inner", "left"] = Field("inner", description="kind of the join")
    partitions: int = Field(1, ge=1, description="partitions of the input and of both tables")
    absent: Share = Field(0.0, description="share of the right table's keys that have no record")
    race: Literal["none", "same-key", "null", "insert"] = Field(
        "none",
        description="instead of these changes, how each row of the left table loses its result in two changes: to "
        "another foreign key and then to another attribute (same-key), to null (null) or deleted (insert) and then to "
        "another key",
    )
    apart: int = Field(
        1, ge=1, description="number of rows that race at once: the second change comes so many records later"
    )
    stores: StoreKind = Field("rocksdb", description="kind of the stores")
    caching: bool = Field(False, description="whether the tables are cached")
    guarantee: Guarantee = Field("exactly_once_v2", description="processing guarantee")


FLOWING = 20_000  # changes while a fault is active
LEFT = {"join": "left", "partitions": 2, "no.key": False}
SAME_KEY = {"race": "same-key", "absent": 0.5, "no.key": False}
CACHED = {"caching": True, "apart": 500}  # 100 ms: longer than until a commit flushes the first change
VARIANTS = variants_of(
    Variant("DEFAULT_CONFIG", "Three of ten records of the left table have no foreign key."),
    Variant("AT_LEAST_ONCE", "As DEFAULT_CONFIG without transactions.", {"guarantee": "at_least_once"}),
    Variant("CACHED", "As DEFAULT_CONFIG with cached tables.", {"caching": True}),
    Variant("NO_NULL_KEY", "Every record of the left table has a foreign key.", {"no.key": False}),
    Variant("LEFT", "A left join to a table of two partitions; every record has a foreign key.", LEFT),
    Variant(
        "LEFT_ONE_PARTITION", "As LEFT, with one partition, so that answers do not race.", {**LEFT, "partitions": 1}
    ),
    Variant(
        "KILLED",
        "As LEFT, inner; an instance is killed while the left table changes, and started again.",
        {**LEFT, "join": "inner", "fault": "instance-kill", "records": FLOWING},
    ),
    Variant(
        "SAME_KEY",
        "Each row of the left table changes to another foreign key, of which half are absent, and its other attribute "
        "right behind.",
        SAME_KEY,
    ),
    Variant(
        "SAME_KEY_CACHED", "As SAME_KEY with cached tables, the second change in the next commit.", SAME_KEY | CACHED
    ),
    Variant(
        "TO_NULL", "As SAME_KEY; the foreign key is null in between.", {**SAME_KEY, "race": "null", "no.key": True}
    ),
    Variant("REINSERTED", "As SAME_KEY; the row is deleted in between.", {**SAME_KEY, "race": "insert"}),
    replace(ROLLING, parameters={**LEFT, "join": "inner", **ROLLING.parameters, "records": FLOWING}),
)


values = values_in(Parameters, VARIANTS)


def refusal(trial: Trial) -> str | None:
    """Refuses changes that cannot be generated, or whose result does not differ from none; and a restart."""
    cell, parameters = trial.cell, values(trial)
    if parameters.right >= DELETED:
        return f"right is {parameters.right:,}, but a row has no place for more than {DELETED - 1:,} foreign keys."
    races = parameters.race != "none"
    if races and not parameters.absent:
        return "rows race only to foreign keys that are absent; add --set absent=0.5."
    if parameters.race == "null" and not parameters.no_key:
        return "race=null makes foreign keys null; add --set no.key=true."
    if parameters.join == "left" and parameters.no_key and not races:
        return "a left join gives a result also where there is no foreign key; add --set no.key=false."
    return refuse_at_least_once(parameters.injected, parameters.guarantee) or refuse_group(
        cell, parameters, on_disk=parameters.stores == "rocksdb"
    )


def last_key(trial: Trial) -> int:
    """The first of the last records' keys."""
    parameters = values(trial)
    return parameters.left + parameters.right


def last_records(trial: Trial) -> list[tuple[int, int]]:
    """Records of the left table that come last: of several partitions so many that there are some on each way.

    A way leads from a partition of the input through one of each table; which have which key Kafka's partitioner knows.
    """
    parameters = values(trial)
    asked = _there(parameters) if parameters.partitions > 1 else [0]
    senders = parameters.partitions
    first = last_key(trial)
    return [(first + senders * place + sender, key + 1) for place, key in enumerate(asked) for sender in range(senders)]


def _there(parameters: Parameters) -> range:
    """The keys of the right table."""
    return range(max(1, round(parameters.right * (1 - parameters.absent))))


def workload(trial: Trial) -> Workload:
    """Both tables, the right one first; then changes, and the last records.

    Of several partitions the right table changes first: a result that it changes has the timestamp of the right record
    also where the left one is younger, so that a task which is behind would leave an older one than the replay says.
    """
    parameters = values(trial)
    rng = random.Random(trial.seed)
    right, left = range(parameters.right), range(parameters.right, parameters.right + parameters.left)

    def of_right(key: int) -> tuple[int, int]:
        return key, -rng.randint(1, 1_000_000)

    def of_left(key: int) -> tuple[int, int]:
        return key, NULL if parameters.no_key and rng.random() < 0.3 else rng.choice(right) + 1

    there = _there(parameters)
    first = [of_right(key) for key in there]
    if parameters.race != "none":
        first += [(key, rng.choice(there) + 1) for key in left]
        return Workload(first, [*_races(parameters, rng, left, right), *last_records(trial)])
    first += [of_left(key) for key in left]
    second = [
        of_right(rng.choice(there)) if rng.random() < 1 / 7 else of_left(rng.choice(left))
        for _ in range(parameters.records)
    ]
    if parameters.partitions > 1:
        second.sort(key=lambda record: record[1] >= NULL)
    return Workload(first, [*second, *last_records(trial)])


def _races(parameters: Parameters, rng: random.Random, left: range, right: range) -> list[tuple[int, int]]:
    """Two changes of each row of the left table, `apart` records from one another."""
    between = RACES[parameters.race]
    changed = []
    for begin in range(0, len(left), parameters.apart):
        rows = [(key, rng.choice(right) + 1) for key in left[begin : begin + parameters.apart]]
        changed += [(key, asked if between is None else between) for key, asked in rows]
        changed += [(key, ATTRIBUTE + asked) for key, asked in rows]
    return changed


def app(trial: Trial) -> Mapping[str, Any]:
    """Settings of the topology `foreign-key-join`."""
    parameters = values(trial)
    return {
        "input.topic": trial.topic("input"),
        "output.topic": trial.topic("output"),
        "join": parameters.join,
        "partitions": parameters.partitions,
        "caching": parameters.caching,
        "stores": parameters.stores,
        "last.key": last_key(trial),
        "last.keys": len(last_records(trial)),
    }


def config(trial: Trial) -> Mapping[str, str]:
    """A short commit interval: changes are committed while answers are under way."""
    parameters = values(trial)
    return {
        "processing.guarantee": parameters.guarantee,
        "num.standby.replicas": "0",
        "num.stream.threads": "1",
        "commit.interval.ms": "100",
        **membership(parameters),
    }


# --- drive ---------------------------------------------------------------------------------------------------


def drive(lab: ScenarioContext) -> Exercise:
    """Make both tables, change them, wait for the results of the last records."""
    parameters = values(lab.trial)
    first, second = lab.workload.first, lab.workload.second
    with lab.phase("tables"):
        instance = lab.instances.start(NAME)
        lab.await_(f"{len(first):,} records to be committed", lambda: lab.count_committed() >= len(first))
        fault, fault_outcome = parameters.injected, None
        if fault:
            start_other(lab)
        races = parameters.race != "none"
        if races:
            lab.await_(f"the results of {parameters.left:,} rows", lambda: lab.end("output") >= parameters.left)
            lab.await_internal_drained()
    with lab.phase("changes"):
        begin = 0
        if parameters.partitions > 1:
            begin = sum(value < NULL for _, value in second)
            if begin:
                lab.produce("right", second[:begin])
                lab.await_drained()
            lab.await_("the right table to be whole", lambda: lab.count_committed(REPARTITION) >= lab.end(REPARTITION))
        if not fault:
            lab.produce("changes", second[begin:], AT_ONCE if races else None)
            lab.await_drained()
            lab.await_("the results of the last records", lambda: "joined" in instance.last)
            if races:
                lab.await_internal_drained()
    if fault:
        fault_outcome = inject(lab, fault, "changes", second[begin:])
    with lab.phase("leave"):
        lab.close_instances()
    if fault_outcome:
        return Exercise.of(fault_outcome)
    if races:
        dropped = instance.last["joined"]["dropped"]
        reason = (
            f"{parameters.left:,} rows with a result changed twice; {dropped:,} answers were dropped, as the row "
            "had changed meanwhile."
        )
        return Exercise(dropped > 0, reason, all_steps_tried=True)
    changed = changes([(key, value) for key, value in (*first, *second) if value >= NULL])
    if parameters.join == "left":
        tasks = parameters.partitions
        reason = (
            f"{changed.to_another:,} foreign keys changed to another one, of a table of {tasks} "
            f"partition{'s' if tasks > 1 else ''}, before the last result came."
        )
        return Exercise(tasks > 1 and changed.to_another > 0, reason, all_steps_tried=True)
    reason = (
        f"{changed.from_null:,} foreign keys came from null and {changed.to_null:,} became null, before the last "
        "result came."
    )
    return Exercise(changed.from_null > 0 and changed.to_null > 0, reason, all_steps_tried=True)


class Changes(NamedTuple):
    """How many foreign keys came from null, became null, and became another one."""

    from_null: int
    to_null: int
    to_another: int


def changes(of_left: list[tuple[int, int]]) -> Changes:
    """How the foreign keys of the left table changed."""
    before: dict[int, int] = {}
    counted: Counter[str] = Counter()
    for key, value in of_left:
        old = before.get(key, value)
        if old != value:
            counted["from_null" if old == NULL else "to_null" if value == NULL else "to_another"] += 1
        before[key] = value
    return Changes(*(counted[kind] for kind in Changes._fields))


# --- system --------------------------------------------------------------------------------------------------

SYSTEM = System(
    topology="foreign-key-join",
    roles={
        "input": Role(),
        "output": Role(value_bytes=8),
        "left-changelog": Role(),
        "right-changelog": Role(),
        "joined-subscription-store-changelog": Role(store=StorePlan("subscriptions")),
    },
    promises=("joined", "stores", "entries"),
    stores=2,
    joins=("foreign-key", "table-table"),
)
SCENARIO = Scenario(
    name="foreign-key-join",
    title="A join by a foreign key follows a key from null and to null (KAFKA-16407, KAFKA-16434)",
    parameters=Parameters,
    faults=OF_GROUPS,
    variants=VARIANTS,
    system=lambda _: SYSTEM,
    partitions=lambda trial: values(trial).partitions,
    workload=workload,
    app=app,
    config=config,
    facts=lambda trial: {"join": JOINS.index(values(trial).join)},
    drive=drive,
    positive_control=("DEFAULT_CONFIG", "3.9.0"),
    refusal=refusal,
    seconds=7,
    alike="final",
)
