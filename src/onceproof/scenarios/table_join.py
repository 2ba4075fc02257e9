"""Tables that are joined, and sums of what the join gives, through three sub-topologies: the end is that of the input.

Two tables are made from the input and joined by their key (inner, left or outer). What the join gives is grouped by
another key and summed, and the last three digits of these sums are grouped and summed again, each behind a repartition
topic. A change goes that way as the old value, which is subtracted, and the new one, which is added: if a task takes up
again with a store that does not belong to the offsets that are committed, or if a change is passed on twice or not at
all, sums are wrong forever, and nothing fails. So this shows more than the join alone, whose results are put right by
the next change. If whole sums were passed on, the last ones would be right where a sum is wrong by what it had before.

A fault is injected into one of two instances while the tables change. How many results there are varies with what a
repartition topic holds when its task continues; the table that they make at the end does not, nor how old its results
are, and it is compared key by key: the join's, and the last sums'. All records of a key, of the group of its remainder
by 5,000 and of the last sum of that group come from one partition of the input.

Repartition topics are purged of what is committed, by default every 30 s, which is longer than most trials take. If
what is not committed were purged, too, the next owner of the task would continue after it, and changes would be lost
forever (variant `PURGED`).

Changelogs are compacted: at last no record is left of a key that was deleted. Where brokers compact them all the time
(variants `COMPACTED`), an instance goes away while records flow, another one takes over all of its tasks, and the first
one comes back alone as soon as deletions of that time are forgotten. Over nothing it must restore what is due, and no
key that was deleted; and so over the state that it left, of which no record says what was deleted (KAFKA-19943).

Tables on disk may have the form that keeps headers (KIP-1271, variants with `HEADERS`), also from an upgrade on: then
each entry is carried over when it is read. Up to 4.4.0 no operator puts headers into a table: `stream-join` has some.

KAFKA-20685: an instance that is killed within a transaction may find stores that hold writes of it, and trust them.
What it restores puts right all keys that changed since the checkpoint, so keys and groups change in turn: what the
transaction changed had not changed since.
"""

import random
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, Literal

from pydantic import Field

from onceproof.faults import OF_DISK, OF_GROUPS, bounce, instance_kill
from onceproof.model.capability import Capability
from onceproof.model.cell import Trial
from onceproof.model.files import StorePlan
from onceproof.model.promise import TRANSACTION_ATOMICITY, promises_of
from onceproof.scenarios.base import (
    HEADERS,
    ROLLING,
    ROLLING_HEADERS,
    ROLLING_TRANSACTIONAL,
    TRANSACTIONAL,
    Exercise,
    Group,
    Role,
    Scenario,
    ScenarioContext,
    StoreHeaders,
    StoreKind,
    System,
    TransactionalStores,
    Variant,
    Workload,
    membership,
    partition_of_key,
    refuse_fault_of_disk,
    refuse_headers,
    store_headers,
    transactional_stores,
    values_in,
    variants_of,
)
from onceproof.scenarios.two_instances import OTHER, WITHIN, drain, inject, join_in, refuse_group, start_other

NAME = "instance-1"
RATE = 4_000.0  # records/s until the fault is over
FLUSHED = 8_000  # changes after which the least write buffers have been flushed
JOINS = ("inner", "left", "outer")  # a fact is the place of one
FIRST_TOTAL = 1_000_000  # the key of the first of the last sums in the output
GROUPS, TOTALS = 5_000, 10  # the group of a key is its remainder, and so is the last sum of a group
DELETED = 1  # value that deletes
LARGEST = 1_000  # value, so that no sum overflows
COMPACTED_RATE = 1_500.0  # records/s while changelogs are compacted
FORGOTTEN = 20  # deletions of which no record is left when the instance comes back
AFTERWARDS = 2_000  # changes that it processes then
FORGOTTEN_WITHIN = 60.0  # seconds
FLOWS = 15.0  # seconds for which records flow at any time: a log is compacted behind its last segment
MAX_AGE = 3_000  # ms; less than an instance is away
FLOWING = 60_000  # records that last on the way there and back

# --- variants ------------------------------------------------------------------------------------------------


class Parameters(Group, TransactionalStores, StoreHeaders):
    """The tables, and what happens to their changelogs and repartition topics while an instance is away."""

    keys: int = Field(10_000, ge=1, description="keys of both tables")
    records: int = Field(25_000, ge=1, description="changes of the tables while the fault is active")
    join: Literal["inner", "left", "outer"] = Field("inner", description="kind of the join")
    partitions: int = Field(2, ge=1, description="partitions of the input and of the tables")
    compacted: Literal["no", "state lost", "state kept", "state aged"] = Field(
        "no",
        description="whether changelogs are compacted, and what an instance finds of its state that was away meanwhile",
    )
    purged: bool = Field(
        False, description="whether repartition topics are purged as soon as they can be, and not every 30 s"
    )
    stores: StoreKind = Field("rocksdb", description="kind of the stores")


KILLED = {"fault": instance_kill.FAULT.name}
VARIANTS = variants_of(
    Variant("DEFAULT_CONFIG", "An inner join; an instance is killed and started again.", KILLED),
    Variant("LEFT", "As DEFAULT_CONFIG, to the left.", {**KILLED, "join": "left"}),
    Variant("OUTER", "As DEFAULT_CONFIG, outer.", {**KILLED, "join": "outer"}),
    Variant("IN_MEMORY", "As DEFAULT_CONFIG with stores in memory.", {**KILLED, "stores": "in-memory"}),
    Variant("TRANSACTIONAL", "As DEFAULT_CONFIG with transactional stores (KIP-892).", {**KILLED, TRANSACTIONAL: True}),
    Variant(
        "HEADERS",
        "As DEFAULT_CONFIG; tables on disk have the form that keeps headers (KIP-1271).",
        {**KILLED, HEADERS: True},
    ),
    Variant(
        "PURGED",
        "As IN_MEMORY; repartition topics are purged of what is committed every 100 ms.",
        {**KILLED, "stores": "in-memory", "purged": True},
    ),
    Variant(
        "COMPACTED",
        "Changelogs are compacted; an instance that was away meanwhile comes back over nothing.",
        {"compacted": "state lost", "records": FLOWING},
    ),
    Variant(
        "COMPACTED_KEPT",
        "As COMPACTED; it comes back over the state that it left.",
        {"compacted": "state kept", "records": FLOWING},
    ),
    Variant(
        "COMPACTED_AGED",
        "As COMPACTED_KEPT; state that is too old is removed at the start (KIP-1259).",
        {"compacted": "state aged", "records": FLOWING},
    ),
    Variant("BOUNCED", "As DEFAULT_CONFIG; the instance is closed cleanly.", {"fault": bounce.FAULT.name}),
    Variant("REBALANCED", "As DEFAULT_CONFIG; instead a second instance joins and takes tasks over."),
    replace(ROLLING, parameters={**ROLLING.parameters, "join": "outer"}),
    replace(ROLLING_HEADERS, parameters={**ROLLING_HEADERS.parameters, "join": "outer"}),
    replace(
        ROLLING_TRANSACTIONAL, parameters={**ROLLING_TRANSACTIONAL.parameters, "join": "outer", "records": FLOWING}
    ),
)


values = values_in(Parameters, VARIANTS)


def refusal(trial: Trial) -> str | None:
    """Refuses partitions that part a sum, a fault of a disk that is not used, and another release."""
    cell, parameters = trial.cell, values(trial)
    if TOTALS % parameters.partitions:
        return (
            f"a sum must be in one partition, so partitions must divide {TOTALS}, and {parameters.partitions} does not."
        )
    if parameters.compacted != "no" and parameters.injected:
        return "where changelogs are compacted no fault can be injected: leave out one of both."
    if parameters.compacted == "state aged" and not cell.running.removes_old_state:
        return f"Kafka Streams {cell.running} does not remove old state (KIP-1259); take 4.3.0 or later."
    on_disk = parameters.stores == "rocksdb"
    return (
        refuse_fault_of_disk(parameters, on_disk=on_disk)
        or refuse_headers(cell, parameters, on_disk=on_disk)
        or refuse_group(cell, parameters, on_disk=on_disk)
    )


def workload(trial: Trial) -> Workload:
    """A record of each table for each key; then changes in turn, a tenth of which delete what is there."""
    parameters, rng = values(trial), random.Random(trial.seed)
    there: set[tuple[int, int]] = set()

    def give_change(key: int, side: int) -> tuple[int, int]:
        if (key, side) in there and rng.random() < 0.1:
            there.remove((key, side))
            return key, side * DELETED
        there.add((key, side))
        return key, side * rng.randint(DELETED + 1, LARGEST)

    first = [give_change(key, side) for side in (1, -1) for key in range(parameters.keys)]
    return Workload(
        first, [give_change(*change) for change in islice(_in_turn(parameters.keys, rng), parameters.records)]
    )


def _in_turn(keys: int, rng: random.Random) -> Iterator[tuple[int, int]]:
    """Keys and sides without end: group after group in an order that is drawn, and again when all have had a turn.

    So what changes within a transaction has not changed since the stores were restored, nor does so soon again.
    """
    while True:
        for group in rng.sample(range(GROUPS), GROUPS):
            of_group = [(key, side) for key in range(group, keys, GROUPS) for side in (1, -1)]
            yield from rng.sample(of_group, len(of_group))


def app(trial: Trial) -> Mapping[str, Any]:
    """Settings of the topology `table-join`."""
    parameters = values(trial)
    return {
        "input.topic": trial.topic("input"),
        "output.topic": trial.topic("output"),
        "join": parameters.join,
        "first.total": FIRST_TOTAL,
        "stores": parameters.stores,
        "caching": False,
    }


def config(trial: Trial) -> Mapping[str, str]:
    """Rare commits, so that an instance that dies leaves uncommitted writes on disk."""
    own = values(trial)
    return {
        "processing.guarantee": "exactly_once_v2",
        "num.standby.replicas": "0",
        "num.stream.threads": "1",
        "commit.interval.ms": "2000",  # so that much of what is on disk is not committed
        **({"repartition.purge.interval.ms": "100"} if own.purged else {}),  # else of a trial none is purged
        **({"state.cleanup.dir.max.age.ms": str(MAX_AGE)} if own.compacted == "state aged" else {}),
        **membership(own),
        **transactional_stores(own),
        **store_headers(own),
    }


# --- drive ---------------------------------------------------------------------------------------------------


def drive(lab: ScenarioContext) -> Exercise:
    """Make the tables, inject the fault while they change, or a second instance join, and drain."""
    fault, first, second = values(lab.trial).injected, lab.workload.first, lab.workload.second
    with lab.phase("tables"):
        lab.instances.start(NAME)
        lab.await_(f"{len(first):,} records to be committed", lambda: lab.count_committed() >= len(first))
        lab.await_internal_drained()
        lab.instances.stop(NAME, leave_group=True)  # so that all that begins to work now has restored its stores
        lab.instances.start(NAME)
        if fault:
            start_other(lab)
    if values(lab.trial).compacted != "no":
        exercise = _go_away(lab)
    elif fault:
        after = min(FLUSHED, len(second) // 3)
        exercise = Exercise.of(inject(lab, fault, "changes", second, rate=RATE, after=after))
    else:
        exercise = join_in(lab, "changes", second, RATE)
    with lab.phase("leave"):
        lab.close_instances()
    return exercise


def _go_away(lab: ScenarioContext) -> Exercise:
    """Compact the changelogs while the tables change, and have another instance do the work meanwhile."""
    compacted = values(lab.trial).compacted
    with lab.compact(*(f"{store}-changelog" for store in STORES)):
        with lab.phase("away"):
            enough = lab.count_committed() + min(FLUSHED, len(lab.workload.second) // 3)
            bulk = lab.produce("changes", lab.workload.second, COMPACTED_RATE)
            lab.await_(f"{enough:,} records to be committed", lambda: lab.count_committed() >= enough)
            lab.instances.stop(NAME, leave_group=True)
            before = _find_deleted(lab)
            lab.instances.start(OTHER)

            def is_forgotten() -> bool:
                bulk.make_last(FLOWS)
                return len(_find_forgotten(lab, before)) >= FORGOTTEN

            lab.holds_within(FORGOTTEN_WITHIN, is_forgotten)
            lab.instances.stop(OTHER, leave_group=True)
        with lab.phase("back"):
            forgotten = len(_find_forgotten(lab, before))
            if compacted == "state lost":
                shutil.rmtree(lab.instances.state_directory(NAME))
            lab.note("forgotten", instance=NAME, deletions=forgotten)
            if compacted == "state kept":
                lab.note("outdated", instance=NAME)
            lab.instances.start(NAME)
            enough = lab.count_committed() + AFTERWARDS
            lab.holds_within(WITHIN, lambda: lab.count_committed() >= enough)
            bulk.stop()  # before later changes of the same keys put everything right
        drain(lab, bulk)
    reason = (
        f"{NAME} was away while {OTHER} continued ({compacted}). When it came back, changelogs had no record left of "
        f"{forgotten:,} keys that had been deleted meanwhile."
    )
    return Exercise(forgotten >= FORGOTTEN, reason, all_steps_tried=True)


def _find_deleted(lab: ScenarioContext) -> set[tuple[int, int]]:
    """The keys, each with its side, that the last change deleted of those that are committed."""
    committed = {int(partition): offset for partition, (offset, _) in lab.open_input()["input"].items()}
    seen, last = Counter[int](), dict[tuple[int, int], int]()
    for key, value in (*lab.workload.first, *lab.workload.second):
        partition = partition_of_key(key, len(committed))
        if seen[partition] < committed[partition]:
            seen[partition] += 1
            last[key, 1 if value > 0 else -1] = abs(value)
    return {place for place, value in last.items() if value == DELETED}


def _find_forgotten(lab: ScenarioContext, before: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """Those that were not deleted before, and of which the changelog has no record left."""
    left = {side: lab.keys_left(f"{store}-changelog") for side, store in ((1, "left"), (-1, "right"))}
    return {(key, side) for key, side in _find_deleted(lab) - before if key not in left[side]}


# --- system --------------------------------------------------------------------------------------------------

STORES = ("left", "right", "groups", "totals")
SYSTEM = System(
    topology="table-join",
    roles={
        "input": Role(),
        "output": Role(value_bytes=8),
        **{f"{store}-changelog": Role(store=StorePlan("keys")) for store in STORES},
    },
    promises=("joined", "stores", "entries"),
    stores=len(STORES),
    joins=("table-table",),
)


def system(trial: Trial) -> System:
    """The topology; of what is compacted, transactions cannot be judged."""
    if values(trial).compacted == "no":
        return SYSTEM
    return replace(
        SYSTEM,
        requires=frozenset({Capability.COMPACT_TOPICS}),
        not_looked_at={
            promise.name: "what was written in transactions is compacted away"
            for promise in promises_of(TRANSACTION_ATOMICITY)
        },
    )


SCENARIO = Scenario(
    name="table-join",
    title="Joined tables and sums of them, through three sub-topologies, are those of the input (KAFKA-20685)",
    parameters=Parameters,
    faults=(*OF_GROUPS, *OF_DISK),
    variants=VARIANTS,
    system=system,
    partitions=lambda trial: values(trial).partitions,
    workload=workload,
    app=app,
    config=config,
    facts=lambda trial: {"join": JOINS.index(values(trial).join)},
    drive=drive,
    positive_control=("DEFAULT_CONFIG", "4.1.2"),
    refusal=refusal,
    seconds=40,
    alike="final",
)
