"""Reproduction 000, KAFKA-14172: a stream that gives each key an ID, and must never give one ID to two keys.

The application keeps a counter and the IDs given so far in two stores, with a standby replica, under exactly-once.
An ID is `counter * partitions + partition`, so the output is a pure function of the input's order within a
partition: replaying the input gives every ID that must be emitted, and any other is an anomaly.

What can go wrong: a thread that held a task active, then standby, then active again (it was *recycled*, not closed)
finds its old record cache, because what was restored meanwhile bypassed the cache. It then continues from an old
counter and gives IDs a second time. So a trial is *exercised* when the assignments prove that a task came back like
this, another thread had advanced it meanwhile, and the thread processed records of it afterwards. With caching off, or
a cache of no bytes, the same journey must do no harm.

The reproduction makes the group rebalance by a third stream. Usually that is a thread that comes and goes in the second
instance, which takes no time; `THIRD_INSTANCE` starts a process, and stops the second. `SEED_SCHEDULE` keeps the
reproduction's own schedule: 60,000 records at full speed, 5 seconds, a third instance. On brokers as fast as these
everything is processed before that, so no ID comes twice and a healthy release is not exercised; the stale counter
still shows, in the store at the end (`wrong-store`).

Where a fault is injected, the group is not scaled: the trial is exercised when the fault took effect. What must be
emitted is the same under each.

In a restart cell both instances are closed after the first bulk and started on the other release, over their state
directories; the journey is made there. In a cell that rolls they move one by one while the second bulk flows.
"""

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from pydantic import Field

from onceproof.faults import OF_DISK, OF_GROUPS
from onceproof.faults.base import Instance, run_fault
from onceproof.model.cell import Trial
from onceproof.model.parameter import Share
from onceproof.model.release import Release
from onceproof.model.timeline import return_text
from onceproof.scenarios.base import (
    JAVA_21,
    JAVA_25,
    ROLLING,
    ROLLING_BACK,
    STATIC_MEMBERSHIP,
    STATIC_STREAMS_PROTOCOL,
    STREAMS_PROTOCOL,
    TRANSACTIONAL,
    Bulk,
    Exercise,
    Group,
    Role,
    Runtime,
    Scenario,
    ScenarioContext,
    StoreKind,
    System,
    TransactionalStores,
    Variant,
    Workload,
    find_recycled_returns,
    membership,
    refuse_fault_of_disk,
    refuse_membership,
    refuse_restart_pair,
    refuse_rolling,
    rolls,
    runtime,
    transactional_stores,
    values_in,
    variants_of,
)

PARTITIONS = 2
FIRST, SECOND = 3_000, 60_000
RATE = 5_000.0  # records/s while the group is scaled: unpaced, everything is processed before any rebalance
ROUNDS = 3  # how often the driver scales out and in before it gives up
WAITS = 5.0  # seconds of the reproduction between the records and the third stream
PATIENCE = 2.0  # seconds that the group has to answer
SESSION = 4.0  # seconds after which a thread that was removed without leaving the group is missed
LASTS = 8.0  # seconds for which records last when a step begins
SETTLED_WITHIN = 5.0  # seconds that an instance has to run as many threads as it was asked to

# --- variants ------------------------------------------------------------------------------------------------


class Parameters(Group, TransactionalStores, Runtime):
    """The stores that give out IDs, and how soon a lagging task may move."""

    stores: StoreKind = Field("rocksdb", description="kind of the stores")
    caching: bool = Field(True, description="whether the stores are cached")
    cache_bytes: int = Field(-1, ge=-1, description="size of an instance's cache; -1 is Kafka Streams' own")
    acceptable_recovery_lag: int = Field(-1, ge=-1, description="as Kafka Streams knows it; -1 is its own")
    scale: Literal["thread", "instance"] = Field(
        "thread", description="what comes and goes: a thread of the second instance, or further instances"
    )
    paced: bool = Field(
        True, description="whether the second bulk is paced, so that the group is scaled while it flows"
    )
    repeated_keys: Share = Field(0.0, description="share of the second bulk whose keys were seen before")


VARIANTS = variants_of(
    Variant("DEFAULT_CONFIG", "Stores cached, Kafka Streams' own acceptable.recovery.lag."),
    Variant("CACHING_DISABLED", "Stores without caching.", {"caching": False}),
    Variant(
        "NO_LAG_ACCEPTABLE",
        "acceptable.recovery.lag=0: a task moves only when its new owner has caught up completely.",
        {"acceptable.recovery.lag": 0},
    ),
    Variant("CACHE_SIZE_ZERO", "Stores cached, but the instance's cache has no bytes.", {"cache.bytes": 0}),
    Variant("IN_MEMORY", "As DEFAULT_CONFIG with stores in memory, and standbys of these.", {"stores": "in-memory"}),
    Variant(
        "THIRD_INSTANCE",
        "A third process joins and the second leaves, instead of threads.",
        {"scale": "instance"},
    ),
    Variant(
        "SEED_SCHEDULE",
        "The reproduction's own schedule: 60,000 records at full speed, 5 s, a third instance.",
        {"scale": "instance", "paced": False},
    ),
    Variant(
        "REPEATED_KEYS",
        "As DEFAULT_CONFIG; a fifth of the second bulk repeats keys, whose IDs must stay.",
        {"repeated.keys": 0.2},
    ),
    Variant(
        "PAUSED",
        "As DEFAULT_CONFIG; instead of the scaling an instance stands still, loses its tasks, and wakes as a zombie.",
        {"fault": "pause"},
    ),
    Variant(
        "PAUSED_IN_SESSION",
        "As PAUSED, for 11 s within its session: only the coordinator aborts its transaction, which may take 10 s.",
        {"fault": "pause", "pause.seconds": 11.0, "pause.session": 30.0, "pause.transaction.timeout.ms": 10_000},
    ),
    Variant(
        "TOPOLOGY_PAUSED",
        "As DEFAULT_CONFIG; instead of the scaling an instance pauses its processing and resumes it (KAFKA-20731).",
        {"fault": "topology-pause"},
    ),
    Variant(
        "DISK_FULL",
        "As DEFAULT_CONFIG; instead of the scaling the disk of an instance is full, and it is started again later.",
        {"fault": "disk-full"},
    ),
    Variant(
        "STATE_RESTORED",
        "As DEFAULT_CONFIG; instead of the scaling an older snapshot of an instance's state is put back.",
        {"fault": "state-restored"},
    ),
    ROLLING,
    ROLLING_BACK,
    STREAMS_PROTOCOL,
    STATIC_MEMBERSHIP,
    STATIC_STREAMS_PROTOCOL,
    Variant("TRANSACTIONAL", "As DEFAULT_CONFIG with transactional stores (KIP-892).", {TRANSACTIONAL: True}),
    JAVA_21,
    JAVA_25,
)


SHORT_SESSION = {"main.consumer.session.timeout.ms": str(int(SESSION * 1_000))}


values = values_in(Parameters, VARIANTS)


def workload(trial: Trial) -> Workload:
    """3,000 records with new keys, then 60,000; key and value are equal, the order is drawn from the seed."""
    rng = random.Random(trial.seed)
    keys = list(range(FIRST + SECOND))
    rng.shuffle(keys)
    first, second = keys[:FIRST], keys[FIRST:]
    share = values(trial).repeated_keys
    for place in rng.sample(range(SECOND), int(share * SECOND)):
        second[place] = rng.choice(first)
    return Workload([(key, key) for key in first], [(key, key) for key in second])


def app(trial: Trial) -> Mapping[str, Any]:
    """Settings of the topology `enumerator`."""
    parameters = values(trial)
    return {
        "input.topic": trial.topic("input"),
        "output.topic": trial.topic("output"),
        "partitions": PARTITIONS,
        "stores": parameters.stores,
        "caching": parameters.caching,
    }


def config(trial: Trial) -> Mapping[str, str]:
    """Kafka Streams configuration of the reproduction."""
    parameters = values(trial)
    chosen = {
        trial.cell.running.cache_size_config: parameters.cache_bytes,
        "acceptable.recovery.lag": parameters.acceptable_recovery_lag,
    }
    return {
        "processing.guarantee": "exactly_once_v2",
        "num.standby.replicas": "1",
        "num.stream.threads": "1",
        **{name: str(value) for name, value in chosen.items() if value >= 0},
        **({} if trial.cell.running.removed_threads_leave_group else SHORT_SESSION),
        **membership(parameters),
        **transactional_stores(parameters),
        **runtime(parameters),
    }


def refusal(trial: Trial) -> str | None:
    """Why its releases cannot be run like this, or not one after the other."""
    cell, parameters = trial.cell, values(trial)
    on_disk = parameters.stores == "rocksdb"
    if reason := refuse_fault_of_disk(parameters, on_disk=on_disk):
        return reason
    if rolls(parameters):
        return refuse_membership(cell, parameters) or refuse_rolling(cell, parameters, on_disk=on_disk)
    return refuse_membership(cell, parameters) or (refuse_restart_pair(cell) if on_disk else None)


# --- drive ---------------------------------------------------------------------------------------------------


def drive(lab: ScenarioContext) -> Exercise:
    """The flow of the reproduction, with conditions for its waits."""
    with lab.phase("first bulk"):
        lab.instances.start("instance-1")
        lab.await_(f"{FIRST:,} records to be committed", lambda: lab.count_committed() >= FIRST)
    with lab.phase("sync"):
        second = _start_second(lab)
    fault, fault_outcome = values(lab.trial).injected, None
    if lab.trial.cell.restart_on and not rolls(values(lab.trial)):
        with lab.phase("restart"):
            for name in ("instance-1", "instance-2"):
                lab.instances.stop(name, leave_group=True)
            lab.instances.start("instance-1", lab.trial.cell.restart_on)
            second = _start_second(lab, lab.trial.cell.restart_on)
    paced = values(lab.trial).paced or fault is not None
    with lab.phase("fault" if fault else "rebalance"):
        bulk = lab.produce("second", lab.workload.second, RATE if paced else None)
        if fault:
            fault_outcome = run_fault(fault, lab, lambda: bulk.make_last(fault.lasts))
        elif not paced:
            steps = _join_as_in_the_reproduction(lab, bulk)
        elif values(lab.trial).scale == "instance":
            steps, second = _replace_until_returned(lab, second, bulk)
        else:
            steps = _scale_until_returned(lab, second, bulk)
    with lab.phase("drain"):
        bulk.full_speed()
        if not fault and not second.threads:  # a standby that lasts until the end is checked, too
            lab.instances.step("add-thread", second.name)
        lab.await_drained()
        if not fault:  # after which either may hold every task
            lab.await_("the standbys to sync", lambda: standbys_synced(lab.instances.running.values(), second))
    with lab.phase("leave"):
        lab.close_instances()
    return Exercise.of(fault_outcome) if fault_outcome else _exercise(lab, steps)


def _start_second(lab: ScenarioContext, release: Release | None = None) -> Instance:
    second = lab.instances.start("instance-2", release)
    lab.await_("instance-2 to sync", lambda: _is_synced(second))
    return second


def _is_synced(instance: Instance) -> bool:
    """Whether it runs and holds restored data of a store."""
    lags = instance.last.get("lags", {}).get("stores", [])
    return (
        instance.state == "RUNNING"
        and bool(instance.tasks("standby") or instance.tasks("active"))
        and any(store["position"] > 0 for store in lags)
    )


def standbys_synced(running: Iterable[Instance], second: Instance) -> bool:
    """Whether those that hold standbys have synced; until one does, the second instance is expected to.

    If it has taken over all tasks, the first one holds the standbys, and only standbys report how far they are.
    """
    return all(map(_is_synced, [instance for instance in running if instance.tasks("standby")] or [second]))


@dataclass
class Steps:
    """The actions of the driver on the group, and whether each step took effect while records flowed."""

    taken: int = 0
    all_tried: bool = True


def _scale_until_returned(lab: ScenarioContext, second: Instance, bulk: Bulk) -> Steps:
    """Scale the second instance out and in until a task has come back, or the rounds are used up."""
    steps = Steps()
    leaves = lab.trial.cell.running.removed_threads_leave_group
    answered_within = PATIENCE if leaves else PATIENCE + SESSION
    for _ in range(ROUNDS):
        _await_advance(lab, second)
        _step(lab, second, bulk, "add-thread", steps)
        owned = second.tasks("active")
        for _thread in list(second.threads):
            _step(lab, second, bulk, "remove-thread", steps)
        # The last thread has left, so what it owned goes back.
        if owned and lab.holds_within(answered_within, partial(_has_returned, lab)):
            return steps
        _step(lab, second, bulk, "add-thread", steps)
    return steps


def _replace_until_returned(lab: ScenarioContext, second: Instance, bulk: Bulk) -> tuple[Steps, Instance]:
    """Let a further instance join and the one before leave, until a task has come back, or the rounds are used up."""
    steps = Steps()
    for number in range(3, 3 + ROUNDS):
        third = _join(lab, f"instance-{number}", bulk, steps)
        _await_advance(lab, second)
        lab.instances.stop(second.name, leave_group=True)
        steps.taken += 1
        second = third
        if lab.holds_within(PATIENCE + SESSION, partial(_has_returned, lab)):
            break
    return steps, second


def _join_as_in_the_reproduction(lab: ScenarioContext, bulk: Bulk) -> Steps:
    """Five seconds after the records a third instance joins; with two tasks it may get none."""
    steps = Steps()
    bulk.await_delivered()
    lab.holds_within(WAITS, lambda: False)
    _join(lab, "instance-3", bulk, steps)
    return steps


def _join(lab: ScenarioContext, name: str, bulk: Bulk, steps: Steps) -> Instance:
    instance = lab.instances.start(name)
    settled = lab.holds_within(SETTLED_WITHIN, partial(_is_settled, instance, 1))
    steps.taken += 1
    steps.all_tried = steps.all_tried and settled and not bulk.is_done()
    return instance


def _await_advance(lab: ScenarioContext, instance: Instance) -> None:
    """It must have advanced the keys of its task before the task goes back."""
    if lab.holds_within(PATIENCE, partial(instance.tasks, "active")):
        enough = instance.processed + lab.rng.randint(1_000, 3_000)
        lab.holds_within(PATIENCE, partial(_has_processed, instance, enough))


def _step(lab: ScenarioContext, instance: Instance, bulk: Bulk, command: str, steps: Steps) -> None:
    bulk.make_last(LASTS)
    threads = len(instance.threads) + (1 if command == "add-thread" else -1)
    lab.instances.step(command, instance.name)
    missed_after = 0.0 if lab.trial.cell.running.removed_threads_leave_group else SESSION
    settled = lab.holds_within(
        SETTLED_WITHIN + missed_after, lambda: _is_settled(instance, threads) and _is_whole(instance)
    )
    steps.taken += 1
    steps.all_tried = steps.all_tried and settled and not bulk.is_done()


def _has_processed(instance: Instance, records: int) -> bool:
    return instance.processed >= records


def _is_settled(instance: Instance, threads: int) -> bool:
    """Whether it runs this many threads, none of them still rebalancing."""
    return len(instance.threads) == threads and all(t["state"] == "RUNNING" for t in instance.threads)


def _is_whole(instance: Instance) -> bool:
    """Whether one of two instances, if it has threads, holds every task, as active or standby: the group has settled.

    A thread that is removed while it is assigned a task may keep that task's directory locked (KAFKA-19510).
    """
    return not instance.threads or len({*instance.tasks("active"), *instance.tasks("standby")}) == PARTITIONS


def _has_returned(lab: ScenarioContext) -> bool:
    return bool(find_recycled_returns(lab))


def _exercise(lab: ScenarioContext, steps: Steps) -> Exercise:
    proofs = find_recycled_returns(lab)
    reason = (
        return_text(proofs[0])
        if proofs
        else f"No task went active, standby, active on one thread while records flowed, in {steps.taken} steps of "
        "scaling out and in."
    )
    return Exercise(bool(proofs), reason, steps.taken, steps.all_tried)


# --- system --------------------------------------------------------------------------------------------------

SYSTEM = System(
    topology="enumerator",
    roles={role: Role() for role in ("input", "output", "counter-changelog", "ids-changelog")},
    promises=("identities", "counters", "output-order", "changelog", "stores"),
    stores=2,
)
SCENARIO = Scenario(
    name="enumerator",
    title="IDs given by a counter stay unique and stable when tasks move (reproduction 000, KAFKA-14172)",
    parameters=Parameters,
    faults=(*OF_GROUPS, *OF_DISK),
    variants=VARIANTS,
    system=lambda _: SYSTEM,
    partitions=lambda _: PARTITIONS,
    workload=workload,
    app=app,
    config=config,
    drive=drive,
    positive_control=("DEFAULT_CONFIG", "3.3.1"),
    refusal=refusal,
    seconds=12,
)
