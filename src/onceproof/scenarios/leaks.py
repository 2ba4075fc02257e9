"""An application that does the same again and again holds no more than before: it leaks nothing.

Applications run for months. Memory, threads, file handles or metrics that grow with each record or with each rebalance
end them, and nothing is wrong with the output until then. So the application does a round of work again and again:
it takes records, which scan a store or open and close windows. Or its tasks move to another thread, so that stores are
closed and opened. After each round it is at rest, and what it holds is counted (`scenarios.resources`).

Known leaks: 4.1.0 remembers the metric of each iterator over a range (KAFKA-19748). 3.3.0 to 3.4.0 leave the iterators
open with which they emit windows that have closed (KAFKA-14864). 4.3.0 forgets native objects of RocksDB when it closes
a store (KAFKA-20616).

A round takes seconds, so a trial shows what leaks by the record or by the rebalance. What leaks by the hour, or below
a class of Kafka or RocksDB, needs the variant `LONG`, and shows only if it is among what is counted.

The output must be right as well (`scan`, `windows`). A trial is *exercised* when
the tasks moved as often as they had to.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from onceproof.faults.base import Instance, tasks_come_back
from onceproof.model.anomaly import Comparison
from onceproof.model.cell import Trial
from onceproof.model.files import StorePlan
from onceproof.model.timeline import Event
from onceproof.scenarios import scan, windows
from onceproof.scenarios.base import (
    PROTOCOL,
    TRANSACTIONAL,
    Exercise,
    Membership,
    Role,
    Scenario,
    ScenarioContext,
    Stamped,
    StoreKind,
    System,
    TransactionalStores,
    Variant,
    Workload,
    membership,
    refuse_membership,
    refuse_restarts,
    transactional_stores,
    values_in,
    variants_of,
)
from onceproof.scenarios.internal_topics import keep_windows
from onceproof.scenarios.resources import PROMISE, ROUNDS, WARM, compare_resources

NAME = "instance-1"
SETTLES = 30.0  # seconds that tasks have to move to another thread
MOST = 100  # of a value
GRACE = 100  # ms for which windows wait for records that are out of order
SESSION = 30.0  # seconds: members say that they leave, and as long as no session ends nothing counted depends on time
REACH, ALL_EVERY = 16, 10  # of a scan: how far its keys may be from that of the record; every how many scan all
EMITTED_EVERY = "__emit.interval.ms.kstreams.windowed.aggregation__"  # internal: ms between looks for closed windows

# --- variants ------------------------------------------------------------------------------------------------


class Parameters(Membership, TransactionalStores):
    """The work that is repeated, and what each round opens and must close."""

    work: Literal["scan", "tumbling", "session"] = Field(
        "scan", description="what a record does: scan a store, or count for windows"
    )
    on_close: bool = Field(False, description="whether the aggregation itself emits windows that have closed (KIP-825)")
    size: int = Field(60, ge=2, le=10_000, description="ms of a window; of a session, the gap after which it ends")
    keys: int = Field(50, ge=1, description="keys of the records that are summed")
    rounds: int = Field(WARM + ROUNDS, ge=WARM + ROUNDS, description=f"rounds, of which the first {WARM} warm up")
    moves: int = Field(0, ge=0, description="times that all tasks move to a new thread in a round")
    records: int = Field(500, ge=2, multiple_of=2, description="records before and after each move")
    partitions: int = Field(2, ge=1, description="partitions of the input")
    stores: StoreKind = Field("rocksdb", description="kind of the store")


MOVED = {"work": "session", "moves": 1}
VARIANTS = variants_of(
    Variant("DEFAULT_CONFIG", "Every second record scans a store; the tasks stay where they are."),
    Variant("MOVED", "Sessions; in each round all tasks move to a new thread.", MOVED),
    Variant("IN_MEMORY", "As MOVED with sessions in memory.", {**MOVED, "stores": "in-memory"}),
    Variant("TRANSACTIONAL", "As MOVED with transactional stores (KIP-892).", {**MOVED, TRANSACTIONAL: True}),
    Variant("STREAMS_PROTOCOL", "As MOVED with group.protocol=streams (KIP-1071).", {**MOVED, PROTOCOL: "streams"}),
    Variant(
        "ON_CLOSE",
        "Tumbling windows, which the aggregation emits when they close (KIP-825); the tasks stay.",
        {"work": "tumbling", "size": 100, "on.close": True},
    ),
    Variant("LONG", "As MOVED for about an hour.", {**MOVED, "moves": 150}),
)


values = values_in(Parameters, VARIANTS)


def refusal(trial: Trial) -> str | None:
    """Why the work cannot be repeated as it is asked for."""
    cell, parameters = trial.cell, values(trial)
    if parameters.on_close and parameters.work != "tumbling":
        return "on.close is for windows that tumble here; take work=tumbling."
    if parameters.on_close and (reason := windows.refuse_on_close(cell)):
        return reason
    return refuse_membership(cell, parameters) or refuse_restarts(cell)


def workload(trial: Trial) -> Workload:
    """Records a millisecond apart; none is preloaded, since they have their own times."""
    parameters = values(trial)
    number = parameters.rounds * (1 + parameters.moves) * parameters.records
    made = _scans(number) if parameters.work == "scan" else _of_windows(trial, number)
    return Workload([], [(record.key, record.value) for record in made], times=[record.at for record in made])


def _scans(number: int) -> list[Stamped]:
    """Keys that are put, each followed by its deletion, which scans the store."""
    return [Stamped(at // 2, scan.DELETE if at % 2 else scan.PUT, at) for at in range(number)]


def _of_windows(trial: Trial, number: int) -> list[Stamped]:
    """Records drawn from the seed; then those, one a partition, that close all windows."""
    parameters, rng = values(trial), random.Random(trial.seed)
    made = [Stamped(rng.randrange(parameters.keys), rng.randint(1, MOST), at) for at in range(number)]
    end = number + 2 * (parameters.size + GRACE)
    return [*made, *(Stamped(parameters.keys + place, 1, end) for place in range(parameters.partitions))]


def app(trial: Trial) -> Mapping[str, Any]:
    """Settings of the topologies `scans` and `windows`."""
    parameters = values(trial)
    of_both = {
        "input.topic": trial.topic("input"),
        "output.topic": trial.topic("output"),
        "stores": parameters.stores,
        "caching": False,
    }
    if parameters.work == "scan":
        return {**of_both, "reach": REACH, "all.every": ALL_EVERY}
    return {
        **of_both,
        "kind": parameters.work,
        "cogrouped": False,
        "suppressed": False,
        "on.close": parameters.on_close,
        "retention.ms": _retention(parameters),
        "supplied": False,
        "size.ms": parameters.size,
        "grace.ms": GRACE,
    }


def _retention(parameters: Parameters) -> int:
    """Ms for which the store keeps windows; those that are emitted now and then need more than their own time."""
    return windows.KEPT if parameters.on_close else parameters.size + GRACE


def config(trial: Trial) -> Mapping[str, str]:
    """Counting of native objects, and tasks that come back at once, so that many moves fit into a trial."""
    parameters = values(trial)
    return {
        "processing.guarantee": "exactly_once_v2",
        "num.standby.replicas": "0",
        "num.stream.threads": "1",
        "commit.interval.ms": "100",
        "onceproof.native.objects": "true",
        **({EMITTED_EVERY: "0"} if parameters.on_close else {}),
        **tasks_come_back(SESSION),
        **membership(parameters),
        **transactional_stores(parameters),
    }


# --- drive ---------------------------------------------------------------------------------------------------


def drive(lab: ScenarioContext) -> Exercise:
    """Round by round: sum, move all tasks to a new thread, count what the process holds."""
    parameters = values(lab.trial)
    begin = int(lab.now() * 1_000) - lab.workload.times[-1]  # the youngest record is made now
    times = [begin + at for at in lab.workload.times]
    moved = produced = 0

    def produce(number: int) -> None:
        nonlocal produced
        of = slice(produced, produced + number)
        lab.produce(f"records-{produced}", lab.workload.second[of], timestamps=times[of])
        produced += number
        lab.await_(f"{produced:,} records to be committed", lambda: lab.count_committed() >= produced)

    instance = lab.instances.start(NAME)
    for number in range(1, parameters.rounds + 1):
        with lab.phase(f"round-{number}"):
            produce(parameters.records)
            for _ in range(parameters.moves):
                moved += _move(lab, instance)
                produce(parameters.records)
            lab.instances.step(PROMISE, NAME)
    with lab.phase("close"):
        produce(len(times) - produced)
        lab.await_drained()
    with lab.phase("leave"):
        lab.close_instances()
    all_moves = parameters.rounds * parameters.moves
    reason = f"{parameters.rounds} rounds; {moved:,} of {all_moves:,} times all tasks moved to a new thread."
    return Exercise(moved == all_moves, reason, steps=parameters.rounds, all_steps_tried=moved == all_moves)


def _facts(parameters: Parameters) -> dict[str, int]:
    """The facts that the checks of both topologies need."""
    if parameters.work == "scan":
        return {"reach": REACH, "all_every": ALL_EVERY}
    kind = windows.KINDS.index(parameters.work)
    finals_only = int(parameters.on_close)
    return {
        "kind": kind,
        "size": parameters.size,
        "grace": GRACE,
        "suppressed": finals_only,
        "cogrouped": 0,
        "limit": 0,
    }


def _move(lab: ScenarioContext, instance: Instance) -> bool:
    """Have all tasks move to a new thread; returns whether they did."""
    before = _owners(instance)
    lab.instances.step("add-thread", NAME)
    lab.holds_within(SETTLES, lambda: len(_owners(instance)) > len(before))
    lab.instances.step("remove-thread", NAME)
    partitions = values(lab.trial).partitions
    return lab.holds_within(
        SETTLES,
        lambda: (
            instance.state == "RUNNING"
            and len(instance.tasks("active")) == partitions
            and not before & _owners(instance)
        ),
    )


def _owners(instance: Instance) -> set[str]:
    """The threads that have active tasks."""
    return {thread["thread"] for thread in instance.threads if thread["active"]}


def observe(_trial: Trial, events: Sequence[Event]) -> list[Comparison]:
    """The resources that the application held after each round."""
    return list(compare_resources(events))


# --- system --------------------------------------------------------------------------------------------------


def system(trial: Trial) -> System:
    """One of the topologies `scans` and `windows`; changelogs of windows keep records as the parameters say."""
    parameters = values(trial)
    if parameters.work == "scan":
        return replace(scan.SYSTEM, promises=(*scan.SYSTEM.promises, PROMISE))
    changelog, retention = f"{windows.STORE}-changelog", _retention(parameters)
    store = StorePlan("sessions" if parameters.work == "session" else "windows", retention)
    return replace(
        windows.SYSTEM,
        roles={**windows.SYSTEM.roles, changelog: Role(store=store)},
        promises=(*windows.SYSTEM.promises, PROMISE),
        kept={changelog: keep_windows(retention)},
    )


SCENARIO = Scenario(
    name="leaks",
    title="An application that does the same again and again holds no more than before (KAFKA-19748)",
    parameters=Parameters,
    variants=VARIANTS,
    system=system,
    partitions=lambda trial: values(trial).partitions,
    workload=workload,
    app=app,
    config=config,
    facts=lambda trial: _facts(values(trial)),
    drive=drive,
    observe=observe,
    positive_control=("DEFAULT_CONFIG", "4.1.0"),
    refusal=refusal,
    seconds=45,
    stalled=int(SESSION * 1_000) // 2,
    alike="records",
)
