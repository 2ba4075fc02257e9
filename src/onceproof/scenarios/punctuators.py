"""A punctuator releases what was held back, each record once and when it is due, whatever happens to the application.

Each record says for how long it is to be held back. A processor puts it into a buffer, a store with a changelog, and a
punctuator, by stream time or by the wall clock, emits what is due, in order, and deletes it from the buffer: an
outbox. No record of the input is processed in the transaction in which another one is emitted, so nothing that is
delivered again repairs what is wrong in the buffer.

What can go wrong: the new owner of the task must have the buffer, its own time, and the output as of one commit. A
deletion that outlives its transaction (KAFKA-20685) loses the record forever; one that is lost with its store has the
record emitted again; a task that is restored and has not got its punctuator, or its time, releases nothing, or too
early.

A record is due by its own time plus its wait, and when all that came before it in its partition are. By stream time a
punctuation comes when the time of the task, that of the youngest record of the partition so far, has passed a multiple
of the interval; it bears that time, which the output has, and must release all that is due at it. After a restart
there is one more, at once. By the wall clock it is not known what had arrived, so there a record must be emitted once,
in order, and not too early. A last record of each partition, which has not to wait, is due behind all others: in the
end the buffers are empty, and the processor reports so.

The application is closed cleanly before the fault, while its buffers are full, and started again as two
instances. So all stores were restored, and what is released while the fault is active had been put there before. A
trial is *exercised* when the fault took effect while records were held back, or, without a fault, when a buffer was
restored from its changelog while records were held back: one that the instance opens that had left it has lost nothing.
"""

import random
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from pydantic import Field

from onceproof.faults import OF_DISK, OF_GROUPS, instance_kill, pause
from onceproof.model.cell import Trial
from onceproof.scenarios.base import (
    ROLLING,
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
    find_restored_anew,
    membership,
    partition_of_key,
    refuse_fault_of_disk,
    runs_its_task,
    transactional_stores,
    values_in,
    variants_of,
)
from onceproof.scenarios.two_instances import inject, refuse_group, start_other

NAME = "instance-1"
CHANGELOG = "buffer-changelog"
CLOCKS = ("stream-time", "wall-clock")  # a fact is the place of one
OUT_OF_ORDER = 0.3  # share of the records

# --- variants ------------------------------------------------------------------------------------------------

KILLED = {"fault": instance_kill.FAULT.name}
WALL_CLOCK = {"clock": "wall-clock"}
SOON = {"wait": 2_000}  # after a fault the drive waits until all that flowed is due


class Parameters(Group, TransactionalStores):
    """The clock that a buffer goes by, and how long it holds records back."""

    clock: Literal["stream-time", "wall-clock"] = Field("stream-time", description="what the punctuator goes by")
    interval: int = Field(20, ge=1, description="ms between punctuations")
    wait: int = Field(12_000, ge=2, description="ms for which a record is held back, at most; at least half of it")
    jitter: int = Field(50, ge=1, description="ms by which records are out of order, at most")
    first: int = Field(12_000, ge=1, description="records before the fault, a millisecond apart")
    records: int = Field(18_000, ge=1, description="records that flow when the fault is injected, a millisecond apart")
    partitions: int = Field(2, ge=1, description="partitions of the input")
    commit_interval_ms: int = Field(1_000, ge=1, description="commit interval")
    stores: StoreKind = Field("rocksdb", description="kind of the buffer")


VARIANTS = variants_of(
    Variant("DEFAULT_CONFIG", "A punctuator by stream time; closed cleanly and started again, no fault."),
    Variant("WALL_CLOCK", "As DEFAULT_CONFIG by the wall clock.", WALL_CLOCK),
    Variant("KILLED", "As DEFAULT_CONFIG; then an instance is killed.", KILLED),
    Variant("KILLED_WALL_CLOCK", "As KILLED by the wall clock.", {**KILLED, **WALL_CLOCK, **SOON}),
    Variant("KILLED_IN_MEMORY", "As KILLED with buffers in memory.", {**KILLED, "stores": "in-memory"}),
    Variant("KILLED_TRANSACTIONAL", "As KILLED with transactional stores (KIP-892).", {**KILLED, TRANSACTIONAL: True}),
    Variant(
        "PAUSED",
        "As KILLED; instead an instance stands still, loses its tasks, and wakes as a zombie.",
        {"fault": pause.FAULT.name},
    ),
    ROLLING,
)


values = values_in(Parameters, VARIANTS)


def refusal(trial: Trial) -> str | None:
    """Why the fault cannot be injected: it needs stores on disk, or a group."""
    cell, parameters = trial.cell, values(trial)
    on_disk = parameters.stores == "rocksdb"
    return refuse_fault_of_disk(parameters, on_disk=on_disk) or refuse_group(cell, parameters, on_disk=on_disk)


class Held(NamedTuple):
    """A record with its wait and its time, both in ms, the latter from the first record on."""

    key: int
    wait: int
    at: int


def generate(trial: Trial) -> list[Held]:
    """The records, whose keys are their numbers, drawn from the seed: most are in order, some a little out of it.

    The last ones, one a partition, are due at once, and so young that all others are due then, too.
    """
    parameters, rng = values(trial), random.Random(trial.seed)
    made = [
        Held(
            number,
            rng.randint(parameters.wait // 2, parameters.wait),
            number - (rng.randrange(parameters.jitter) if rng.random() < OUT_OF_ORDER else 0),
        )
        for number in range(parameters.first + parameters.records)
    ]
    end = len(made) + parameters.wait + parameters.interval
    return [*made, *(Held(len(made) + place, 0, end) for place in range(parameters.partitions))]


def workload(trial: Trial) -> Workload:
    """Numbers and waits of the records; none is preloaded, since they have their own times."""
    made = generate(trial)
    return Workload([], [(record.key, record.wait) for record in made], times=[record.at for record in made])


def app(trial: Trial) -> Mapping[str, Any]:
    """Settings of the topology `outbox`."""
    parameters = values(trial)
    return {
        "input.topic": trial.topic("input"),
        "output.topic": trial.topic("output"),
        "punctuate.ms": parameters.interval,
        "clock": parameters.clock,
        "stores": parameters.stores,
        "caching": False,
    }


def config(trial: Trial) -> Mapping[str, str]:
    """Commits as often as the variant asks, and a second instance that may take tasks that lag."""
    parameters = values(trial)
    return {
        "processing.guarantee": "exactly_once_v2",
        "num.standby.replicas": "0",
        "num.stream.threads": "1",
        "commit.interval.ms": str(parameters.commit_interval_ms),
        # With less, the second instance is given no task where a buffer's changelog is longer than that.
        "acceptable.recovery.lag": "1000000",
        **membership(parameters),
        **transactional_stores(parameters),
    }


def facts(trial: Trial) -> Mapping[str, int]:
    """The clock, as a number, and the interval in ms."""
    parameters = values(trial)
    return {"clock": CLOCKS.index(parameters.clock), "interval": parameters.interval}


# --- drive ---------------------------------------------------------------------------------------------------


def drive(lab: ScenarioContext) -> Exercise:
    """Fill the buffers, start again, inject the fault while records flow and are released, and empty them."""
    parameters, made = values(lab.trial), lab.workload.times
    fault = parameters.injected
    begin = int(lab.now() * 1_000) - made[-1]  # the youngest record is made now
    by_stream_time = parameters.clock == "stream-time"
    first, last = slice(parameters.first), slice(-parameters.partitions, None)
    flow = slice(parameters.first, -parameters.partitions)

    def times(of: slice) -> list[int] | None:
        """By the wall clock a record is made when it is sent."""
        return [begin + at for at in made[of]] if by_stream_time else None

    records = lab.workload.second
    with lab.phase("first"):
        instance = lab.instances.start(NAME)
        lab.await_("the instance to work", lambda: runs_its_task(instance))  # from now on a wait by the wall clock runs
        lab.produce("first", records[first], timestamps=times(first))
        lab.await_(f"{parameters.first:,} records to be committed", lambda: lab.count_committed() >= parameters.first)
        lab.instances.stop(NAME, leave_group=True)
    before = len(lab.events)
    with lab.phase("again"):
        lab.instances.start(NAME)
        start_other(lab)
    held = _count_held(lab)
    if fault:
        exercise = Exercise.of(inject(lab, fault, "flow", records[flow], times(flow)))
    else:
        with lab.phase("flow"):
            lab.produce("flow", records[flow], timestamps=times(flow))
            lab.await_drained()
        tasks = {name: instance.tasks("active") for name, instance in lab.instances.running.items()}
        exercise = conclude_released(tasks, find_restored_anew(lab.events[before:]), held)
    with lab.phase("empty"):
        lab.produce("last", records[last], timestamps=times(last))
        lab.await_drained()
        ends = {partition_of_key(key, parameters.partitions): key for key, _ in records}
        lab.await_("the buffers to be empty", lambda: read_emptied(lab) == ends)
        if not by_stream_time:  # no record of the input is processed in the last transaction, so nothing marks its end
            lab.holds_within(2 * parameters.commit_interval_ms / 1_000, lambda: False)
    with lab.phase("leave"):
        lab.close_instances()
    return exercise


def _count_held(lab: ScenarioContext) -> int:
    """How many of the first records are held back, at least.

    The buffers' changelog has a record for each, one for each that was released, and the ends of transactions.
    """
    return max(2 * values(lab.trial).first - lab.end(CHANGELOG), 0)


def conclude_released(tasks: Mapping[str, list[str]], anew: list[str], held: int) -> Exercise:
    """The conclusion without a fault from who had which tasks, what was restored, and how much was held back."""
    who = " and ".join(f"{name} ({', '.join(parameters) or 'no task'})" for name, parameters in sorted(tasks.items()))
    buffers = f"restored from the beginning: {', '.join(anew)}" if anew else "no buffer was restored"
    reason = f"{who} released {held:,} records that another one had held back; {buffers}."
    return Exercise(bool(anew) and held > 0, reason, all_steps_tried=True)


def read_emptied(lab: ScenarioContext) -> dict[int, int]:
    """The last key that left the buffer of each partition when it was emptied last."""
    events = [event for event in lab.events if event["event"] == "emptied"]
    return {int(event["task"].partition("_")[2]): event["last"] for event in events}


# --- system --------------------------------------------------------------------------------------------------

SYSTEM = System(
    topology="outbox",
    roles={"input": Role(), "output": Role(value_bytes=8), CHANGELOG: Role()},
    promises=("punctuations", "output-order", "changelog", "stores"),
)
SCENARIO = Scenario(
    name="punctuators",
    title="A punctuator releases what was held back once, in order, and when it is due (KAFKA-20685)",
    parameters=Parameters,
    faults=(*OF_GROUPS, *OF_DISK),
    variants=VARIANTS,
    system=lambda _: SYSTEM,
    partitions=lambda trial: values(trial).partitions,
    workload=workload,
    app=app,
    config=config,
    facts=facts,
    drive=drive,
    positive_control=("KILLED", "4.1.2"),
    refusal=refusal,
    seconds=28,
    alike="keys",
)
