"""A client that asks a store while tasks move is answered by the instance that has the key, and no answer is too old.

Applications ask the stores of Kafka Streams by interactive queries: which instance has a key (`queryMetadataForKey`),
and the value of the key there. While tasks move they ask again, or take what a standby or a store that is being
restored has (KIP-535, KIP-562), with the lag that it declares (`allLocalStorePartitionLags`).

What can go wrong: a store answers before it has been restored, or after its task has gone elsewhere; a standby declares
a position that it has not reached, or shows what was never committed; an answer claims a position in the input that its
value does not have (KIP-796; KAFKA-15770); an instance sends clients to one that has not the key any more.

A client runs in each instance, on a thread of its own (streams_app, `QueryClient`), and writes each answer to a topic,
with the offsets of the changelog and of the input that such an answer must hold, and must not go beyond. They are read
before the question, or after the answer, so they need no clock. The n-th record of a key has the value n, so each
answer says how far the store was. Exactly-once only: after a crash without transactions a store goes back.

A store without transactions of its own (KIP-892) also shows what is not committed yet, so there an answer of an active
store may be newer than what is committed, and another instance may answer with less. With `READ_COMMITTED` it may not.

An instance that has not noticed that others have its tasks answers with what it has, and Kafka Streams promises nothing
else: faults that freeze an instance, or part it from the brokers, are none of this scenario. A trial is *exercised*
when all tasks went to another instance and back while records flowed, or when the fault took effect.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

from pydantic import Field

from onceproof.faults import instance_kill
from onceproof.faults.base import Instance, is_at_rest
from onceproof.model.anomaly import Comparison
from onceproof.model.cell import Trial
from onceproof.model.release import Release
from onceproof.model.timeline import Event
from onceproof.scenarios import multirunner
from onceproof.scenarios.base import (
    INSTANCE,
    ROLLING,
    STREAMS_PROTOCOL,
    TRANSACTIONAL,
    Exercise,
    Group,
    Role,
    Scenario,
    ScenarioContext,
    StoreKind,
    System,
    TransactionalStores,
    Variant,
    Workload,
    membership,
    number_records,
    refuse_fault_of_disk,
    runs_its_task,
    transactional_stores,
    values_in,
    variants_of,
)
from onceproof.scenarios.routes import (
    NOTICED,
    PROMISE,
    ROUTED_WITHIN,
    Owners,
    Routes,
    all_routes,
    compare_routes,
    wrong_routes,
)
from onceproof.scenarios.two_instances import OTHER, RATE, WITHIN, inject, refuse_group, start_other

NAME = "instance-1"
ROUND_TRIPS = 2  # of all tasks, to the other instance and back
QUERY_FROM = Release(3, 2, 0)  # KIP-796
ISOLATION = "default.interactive.query.isolation.level"

# --- variants ------------------------------------------------------------------------------------------------

KILLED = {"fault": instance_kill.FAULT.name}
COMMITTED = {TRANSACTIONAL: True, "isolation": "read_committed", "by.query": True}


class Parameters(Group, TransactionalStores):
    """Which stores clients ask, in which way, and how far a standby may be behind."""

    standbys: int = Field(1, ge=0, description="standby replicas")
    partitions: int = Field(4, ge=1, description="partitions of the input")
    keys: int = Field(40, ge=1, description="distinct keys")
    first: int = Field(4_000, ge=1, description="records that are processed before tasks move")
    records: int = Field(30_000, ge=1, description="records that flow while tasks move, at most")
    pause: int = Field(20, ge=1, description="ms after each batch that is restored")
    stores: StoreKind = Field("rocksdb", description="kind of the store")
    by_query: bool = Field(False, description="whether clients also ask by KafkaStreams.query (KIP-796)")
    isolation: Literal["read_uncommitted", "read_committed"] = Field(
        "read_uncommitted", description="whether answers may have what is not committed"
    )


VARIANTS = variants_of(
    Variant("DEFAULT_CONFIG", "All tasks go from one of two instances to the other and back, twice; with standbys."),
    Variant("NO_STANDBY", "As DEFAULT_CONFIG without standbys, so that stores are restored.", {"standbys": 0}),
    Variant("IN_MEMORY", "As DEFAULT_CONFIG with stores in memory.", {"stores": "in-memory"}),
    Variant("QUERY", "As DEFAULT_CONFIG; clients also ask by KafkaStreams.query (KIP-796).", {"by.query": True}),
    Variant("QUERY_IN_MEMORY", "As QUERY with stores in memory.", {"by.query": True, "stores": "in-memory"}),
    Variant("KILLED", "As DEFAULT_CONFIG; instead an instance is killed.", KILLED),
    Variant("KILLED_NO_STANDBY", "As KILLED without standbys.", {**KILLED, "standbys": 0}),
    Variant("TRANSACTIONAL", "As DEFAULT_CONFIG with transactional stores (KIP-892).", {TRANSACTIONAL: True}),
    Variant("COMMITTED", "As TRANSACTIONAL; answers have what is committed only.", COMMITTED),
    Variant("COMMITTED_KILLED", "As COMMITTED; instead an instance is killed.", {**COMMITTED, **KILLED}),
    STREAMS_PROTOCOL,
    ROLLING,
)


values = values_in(Parameters, VARIANTS)


def refusal(trial: Trial) -> str | None:
    """Refuses an isolation that nothing keeps, or that a release lacks, and releases."""
    cell, parameters = trial.cell, values(trial)
    if parameters.isolation == "read_committed" and not parameters.transactional_stores:
        return (
            "isolation=read_committed needs transactional stores, as others show all they have; add "
            f"{TRANSACTIONAL}=true."
        )
    oldest = min(cell.streams, cell.running)
    if parameters.by_query and oldest < QUERY_FROM:
        return f"Kafka Streams {oldest} has no KafkaStreams.query (KIP-796); take {QUERY_FROM} or later."
    on_disk = parameters.stores == "rocksdb"
    return refuse_fault_of_disk(parameters, on_disk=on_disk) or refuse_group(cell, parameters, on_disk=on_disk)


def workload(trial: Trial) -> Workload:
    """Numbered records of drawn keys, so that a client sees by its number how old an answer is."""
    parameters = values(trial)
    made = number_records(trial.seed, parameters.keys, parameters.first + parameters.records)
    return Workload(made[: parameters.first], made[parameters.first :])


def app(trial: Trial) -> Mapping[str, Any]:
    """Settings of the topology `interactive-queries`."""
    parameters = values(trial)
    return {
        "input.topic": trial.topic("input"),
        "output.topic": trial.topic("output"),
        "answers.topic": trial.topic("answers"),
        "keys": parameters.keys,
        "partitions": parameters.partitions,
        "by.query": parameters.by_query,
        "restore.pause.ms": parameters.pause,
        "caching": False,
        "stores": parameters.stores,
    }


def config(trial: Trial) -> Mapping[str, str]:
    """An address for each instance, by which clients find the owner of a key (KIP-67)."""
    parameters = values(trial)
    committed = parameters.isolation == "read_committed"
    return {
        "processing.guarantee": "exactly_once_v2",
        "num.standby.replicas": str(parameters.standbys),
        "num.stream.threads": "1",
        "commit.interval.ms": "100",
        "application.server": f"{INSTANCE}:1",  # no client connects; it names the instance
        "restore.consumer.max.poll.records": "200",
        # With less, an instance that was away gets active tasks only with a probing rebalance, in ten minutes.
        "acceptable.recovery.lag": "1000000",
        **({ISOLATION: "READ_COMMITTED"} if committed else {}),
        **membership(parameters),
        **transactional_stores(parameters),
    }


# --- drive ---------------------------------------------------------------------------------------------------


def drive(lab: ScenarioContext) -> Exercise:
    """Have tasks move while records flow and clients ask, drain, and see where instances send clients in the end."""
    first, flow = lab.workload.first, lab.workload.second
    fault = values(lab.trial).injected
    with lab.phase("first"):
        lab.instances.start(NAME)
        lab.await_(f"{len(first):,} records to be committed", lambda: lab.count_committed() >= len(first))
        start_other(lab)
    exercise = Exercise.of(inject(lab, fault, "flow", flow)) if fault else _move(lab, flow)
    with lab.phase("routes"):
        lab.holds_within(ROUTED_WITHIN, lambda: is_at_rest(lab) and not wrong_routes(*_find_owners(lab)))
        owners, routes = _find_owners(lab)
        lab.note("routed", owners=owners, routes=routes)
    with lab.phase("leave"):
        lab.close_instances()
    return exercise


def _move(lab: ScenarioContext, flow: Sequence[tuple[int, int]]) -> Exercise:
    """Have all tasks go to the other instance and back while these records flow, then drain."""
    moves = 0
    with lab.phase("moves"):
        bulk = lab.produce("flow", flow, RATE)
        for _ in range(ROUND_TRIPS):
            for gone, stays in ((NAME, OTHER), (OTHER, NAME)):
                bulk.make_last(WITHIN)
                lab.instances.stop(gone, leave_group=True)
                took = lab.holds_within(WITHIN, partial(_has_all, lab, lab.instances.running[stays]))
                bulk.make_last(WITHIN)
                back = lab.instances.start(gone)
                moves += took and lab.holds_within(WITHIN, partial(runs_its_task, back)) and not bulk.is_done()
    with lab.phase("drain"):
        bulk.full_speed()
        lab.await_drained()
    all_moves = 2 * ROUND_TRIPS
    reason = f"{moves} of {all_moves} times all tasks went to one instance, and some back, while records flowed."
    return Exercise(moves > 0, reason, steps=all_moves, all_steps_tried=moves == all_moves)


def _has_all(lab: ScenarioContext, instance: Instance) -> bool:
    return instance.state == "RUNNING" and len(instance.tasks("active")) == values(lab.trial).partitions


def _find_owners(lab: ScenarioContext) -> tuple[Owners, Routes]:
    """The active tasks of each instance, and where it sends clients."""
    running = lab.instances.running
    owners = {
        name: [int(task.partition("_")[2]) for task in instance.tasks("active")] for name, instance in running.items()
    }
    known = {name: instance.last.get("routes", {"routes": []})["routes"] for name, instance in running.items()}
    return owners, {name: {str(row["partition"]): row["active"] for row in rows} for name, rows in known.items()}


def observe(trial: Trial, events: Sequence[Event]) -> list[Comparison]:
    """The assertions of the application, and where each instance sends clients at the end, and the owner of the key."""
    routed = [event for event in events if event["event"] == "routed"]
    rows = (row for event in routed for row in all_routes(event["owners"], event["routes"]))
    return [*multirunner.observe(trial, events), *compare_routes(rows)]


# --- system --------------------------------------------------------------------------------------------------

SYSTEM = System(
    topology="interactive-queries",
    roles={"input": Role(), "output": Role(value_bytes=8), "last-changelog": Role(), "answers": Role()},
    promises=("queries", PROMISE, "reads", "assertions", "deliveries", "output-order", "changelog", "stores"),
)
SCENARIO = Scenario(
    name="interactive-queries",
    title="A client that asks while tasks move gets no answer older than it may be (KAFKA-15770)",
    parameters=Parameters,
    faults=NOTICED,
    variants=VARIANTS,
    system=lambda _: SYSTEM,
    partitions=lambda trial: values(trial).partitions,
    workload=workload,
    app=app,
    config=config,
    drive=drive,
    positive_control=("QUERY", "3.7.2"),
    observe=observe,
    refusal=refusal,
    seconds=30,
    alike="records",
)
