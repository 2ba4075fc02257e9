"""Records that cannot be read or processed are skipped, and nothing else is lost by it.

An exception handler that continues skips a record: of the deserialization (KIP-161), or of the processing (KIP-1033,
from 3.9.0). From 4.2.0 on it also writes the record to a dead letter queue (KIP-1034), in the transaction in which the
task continues after it. So under exactly-once each skipped record is in the queue once, with its own key, value,
timestamp and headers, and each other record is in the output once, whatever happens to the instances.

Up to 3.9.0 a task may stop forever behind skipped records (KAFKA-17299). A partition whose buffer is full is paused,
and resumed when a record is taken off a buffer that is exactly full. Skipped records are taken off several at once, so
the moment is missed. The thread runs, and its lag grows until the next rebalance.

A task deserializes the next record as it takes one from its queue, skips poison until there is a good one, and writes
the dead letters at once. So at a commit those behind the last good record of the queue are in the transaction, and the
position must be behind their records. Where it is not, they are written once more after a failure.

Good records and poison (a value below 0) come in runs, with a buffer of a few records. A trial is *exercised* when
poison was skipped; where a fault is injected, when it took effect; with `commits`, when the instance was killed after a
commit at which poison was all that was left in the queue.
"""

import random
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import count, islice
from typing import Any, Literal

from pydantic import Field

from onceproof.faults import OF_GROUPS
from onceproof.model.cell import Trial
from onceproof.model.release import Release
from onceproof.scenarios.base import (
    ROLLING,
    Exercise,
    Group,
    Guarantee,
    Role,
    Scenario,
    ScenarioContext,
    System,
    Variant,
    Workload,
    membership,
    partition_of_key,
    values_in,
    variants_of,
)
from onceproof.scenarios.two_instances import inject, refuse_group, start_other

NAME = "instance-1"
DESERIALIZATION, PROCESSING = "deserialization", "processing"
HANDLERS = {  # the property that names the handler, as all releases take it, and the handler
    DESERIALIZATION: ("default.deserialization.exception.handler", "LogAndContinueExceptionHandler"),
    PROCESSING: ("processing.exception.handler", "LogAndContinueProcessingExceptionHandler"),
}
PROCESSING_FROM = Release(3, 9, 0)  # KIP-1033
QUEUE_FROM = Release(4, 2, 0)  # KIP-1034
QUEUE = "dead-letters"  # role of the queue
LONG_INTERVAL = 60_000  # ms, in which an application that requests its commits makes no other
AT_REQUEST = {
    "producer.transaction.timeout.ms": str(LONG_INTERVAL),
    "main.consumer.session.timeout.ms": "4000",  # after which the member that was killed is missed
}
LAST = 100  # good records at the end of the rest, so that the last position of each partition is committed
GOES_ON_WITHIN = 10.0  # seconds in which a healthy application makes progress
STANDS_STILL = 30.0  # seconds after which it will make no more

# --- variants ------------------------------------------------------------------------------------------------


class Parameters(Group):
    """Which records cannot be processed, where they fail, and what is committed around them."""

    committed: int = Field(3_000, ge=1, description="good records that are committed before any poison")
    records: int = Field(10_000, ge=1, description="records behind the first ones, good and poison")
    good: int = Field(25, ge=1, description="good records of a run")
    poison: int = Field(40, ge=1, description="records that cannot be read or processed, behind each run of good ones")
    failing: Literal["deserialization", "processing"] = Field("deserialization", description="where they fail")
    buffered: int = Field(20, ge=1, description="records that a task buffers of a partition before it is paused")
    partitions: int = Field(2, ge=1, description="partitions of the input")
    guarantee: Guarantee = Field("exactly_once_v2", description="processing guarantee")
    commits: bool = Field(
        False,
        description="whether the application commits by request, with each record it processes, and is killed",
    )


# All that is there before the kill is polled at once (`max.poll.records`), so that each queue ends in poison.
REQUESTED = {"commits": True, "committed": 40, "records": 260}
VARIANTS = variants_of(
    Variant("DEFAULT_CONFIG", "Runs of records that cannot be deserialized; the buffer is smaller than a run."),
    Variant("AT_LEAST_ONCE", "As DEFAULT_CONFIG without transactions.", {"guarantee": "at_least_once"}),
    Variant("PROCESSING", "As DEFAULT_CONFIG; the records fail when they are processed.", {"failing": PROCESSING}),
    Variant("LARGE_BUFFER", "As DEFAULT_CONFIG; no partition is paused.", {"buffered": 100_000}),
    Variant("KILLED", "As DEFAULT_CONFIG; one of two instances is killed meanwhile.", {"fault": "instance-kill"}),
    Variant(
        "PROCESSING_KILLED",
        "As PROCESSING; one of two instances is killed meanwhile.",
        {"failing": PROCESSING, "fault": "instance-kill"},
    ),
    Variant(
        "COMMITTED_AHEAD",
        "Killed when a commit was requested by the last good record, behind which there is poison only.",
        REQUESTED,
    ),
    Variant(
        "PROCESSING_COMMITTED_AHEAD",
        "The control of COMMITTED_AHEAD: the records fail when they are processed.",
        {**REQUESTED, "failing": PROCESSING},
    ),
    ROLLING,
)


values = values_in(Parameters, VARIANTS)


def workload(trial: Trial) -> Workload:
    """Distinct keys; good records only, then runs of good ones and of poison, and good ones at the end.

    The first part is there before the application starts: the good ones, or with `commits` all but those at the end.
    The value of poison is its key below 0, that of the others is drawn from the seed. The handler leaves the partition
    of the queue to the producer: keys are those for which it chooses as the input does.
    """
    parameters, rng = values(trial), random.Random(trial.seed)
    run, partitions = parameters.good + parameters.poison, parameters.partitions
    keys = filter(partial(_stays, partitions), count())

    def good(key: int) -> tuple[int, int]:
        return key, rng.randint(0, 1_000_000)

    first = [good(key) for key in islice(keys, parameters.committed)]
    flow = [
        good(key) if number % run < parameters.good else (key, -key)
        for number, key in enumerate(islice(keys, parameters.records))
    ]
    last = [*map(good, islice(keys, LAST))]
    return Workload([*first, *flow], last) if parameters.commits else Workload(first, [*flow, *last])


def _stays(partitions: int, key: int) -> bool:
    """Whether a producer without a partitioner puts the key, and no other than 0, where the input has it."""
    return key > 0 and murmur2(key.to_bytes(4, "big")) % partitions == partition_of_key(key, partitions)


def murmur2(data: bytes) -> int:
    """The positive hash by which Kafka's producer chooses the partition of a key (`BuiltInPartitioner`)."""
    mask, mix = 0xFFFFFFFF, 0x5BD1E995
    found = 0x9747B28C ^ len(data)
    whole = len(data) // 4 * 4
    for start in range(0, whole, 4):
        word = int.from_bytes(data[start : start + 4], "little") * mix & mask
        found = (found * mix & mask) ^ ((word ^ word >> 24) * mix & mask)
    if data[whole:]:
        found = (found ^ int.from_bytes(data[whole:], "little")) * mix & mask
    found = (found ^ found >> 13) * mix & mask
    return (found ^ found >> 15) & 0x7FFFFFFF


def app(trial: Trial) -> Mapping[str, Any]:
    """Settings of the topology `dead-letters`."""
    return {
        "input.topic": trial.topic("input"),
        "output.topic": trial.topic("output"),
        "failing": values(trial).failing,
        "commits": values(trial).commits,
    }


def config(trial: Trial) -> Mapping[str, str]:
    """The exception handlers that skip records, and from 4.2.0 on the queue that gets them (KIP-1034)."""
    parameters = values(trial)
    name, handler = HANDLERS[parameters.failing]
    queue = {"errors.dead.letter.queue.topic.name": trial.topic(QUEUE)} if has_queue(trial) else {}
    return {
        "processing.guarantee": parameters.guarantee,
        "num.standby.replicas": "0",
        "num.stream.threads": "1",
        "commit.interval.ms": str(LONG_INTERVAL if parameters.commits else 100),
        "buffered.records.per.partition": str(parameters.buffered),
        name: f"org.apache.kafka.streams.errors.{handler}",
        **queue,
        **(AT_REQUEST if parameters.commits else {}),
        **membership(parameters),
    }


def has_queue(trial: Trial) -> bool:
    """Whether every release of the trial writes dead letters."""
    return min(trial.cell.streams, trial.cell.running) >= QUEUE_FROM


def refusal(trial: Trial) -> str | None:
    """Refuses a workload without poison, and a handler that a release does not have."""
    cell, parameters = trial.cell, values(trial)
    if parameters.records <= parameters.good:
        return f"none of {parameters.records} records would be skipped; raise records above good={parameters.good}."
    oldest = min(cell.streams, cell.running)
    if parameters.failing == PROCESSING and oldest < PROCESSING_FROM:
        return (
            f"Kafka Streams {oldest} has no handler of exceptions in the processing (KIP-1033); choose "
            f"{PROCESSING_FROM} or later, or failing={DESERIALIZATION}."
        )
    if parameters.commits and oldest < QUEUE_FROM:
        return (
            f"Kafka Streams {oldest} has no dead letter queue (KIP-1034); choose {QUEUE_FROM} or later, or leave out "
            "commits."
        )
    if parameters.commits and parameters.injected:
        return "with commits the instance is killed at the last commit; leave out the fault, or commits."
    return refuse_group(cell, parameters, on_disk=False)


# --- drive ---------------------------------------------------------------------------------------------------


def drive(lab: ScenarioContext) -> Exercise:
    """Commit good records; then have poison among them, with the fault if there is one; drain."""
    parameters = values(lab.trial)
    first, flow = lab.workload.first, lab.workload.second
    if parameters.commits:
        return _kill_once_committed(lab)
    fault, fault_outcome = parameters.injected, None
    with lab.phase("first records"):
        lab.instances.start(NAME)
        lab.await_(f"{len(first):,} records to be committed", lambda: lab.count_committed() >= len(first))
        if fault:
            start_other(lab)
    if fault:
        fault_outcome = inject(lab, fault, "poison", flow)
    else:
        with lab.phase("poison"):
            lab.produce("poison", flow).await_delivered()
            _await_end(lab, len(first) + len(flow))
            lab.await_drained()
    with lab.phase("leave"):
        lab.close_instances()
    if fault_outcome:
        return Exercise.of(fault_outcome)
    poison = sum(value < 0 for _, value in flow)
    reason = f"{poison:,} of {len(first) + len(flow):,} records were skipped, in runs of {parameters.poison:,}."
    return Exercise(True, reason, all_steps_tried=True)


def _kill_once_committed(lab: ScenarioContext) -> Exercise:
    """Have all that is there committed, by request alone; kill the instance, start it again, drain.

    The last good record requests the last commit, when the dead letters of the poison behind it are written. A position
    that is one short in each partition is awaited too, as it is the failure that is looked for.
    """
    parameters, first = values(lab.trial), lab.workload.first
    with lab.phase("poison"):
        begin = lab.now()
        lab.instances.start(NAME)
        enough = len(first) - parameters.partitions
        lab.await_(
            f"{enough:,} records to be committed", lambda: lab.count_committed() >= enough, 2 * LONG_INTERVAL / 1_000
        )
        committed, took = lab.count_committed(), lab.now() - begin
        lab.note("crash", committed=committed, open=lab.open_input())
        lab.instances.kill(NAME)
    with lab.phase("restart"):
        lab.instances.start(NAME)
        lab.produce("last", lab.workload.second).await_delivered()
        lab.await_drained()
    with lab.phase("leave"):
        lab.close_instances()
    behind = first[-1][1] < 0
    by_request = took < LONG_INTERVAL / 1_000
    end = "poison" if behind else "a good record"
    commits = "by request alone" if by_request else "also by time"
    reason = f"Killed when {committed:,} of {len(first):,} records were committed, {commits}; {end} was the last."
    return Exercise(behind and by_request, reason, all_steps_tried=True)


def _await_end(lab: ScenarioContext, records: int) -> None:
    """Wait until all records are committed, and note a standstill: an application that runs and gets no further."""
    reached = lab.count_committed()
    while reached < records:
        if not lab.holds_within(GOES_ON_WITHIN, partial(_is_further, lab, reached)):
            lab.note("standstill", committed=reached, of=records)
            lab.note("exercised")
            further = f"more than {reached:,} of {records:,} records to be committed"
            lab.await_(further, partial(_is_further, lab, reached), STANDS_STILL)
        reached = lab.count_committed()


def _is_further(lab: ScenarioContext, reached: int) -> bool:
    return lab.count_committed() > reached


# --- system --------------------------------------------------------------------------------------------------

SYSTEM = System(
    topology="dead-letters",
    roles={"input": Role(), "output": Role()},
    promises=("skipping",),
    stores=0,
)
WITH_QUEUE = replace(SYSTEM, roles={**SYSTEM.roles, QUEUE: Role()}, promises=("skipping", "dead-letters"))
SCENARIO = Scenario(
    name="dead-letters",
    title="Records that cannot be read or processed are skipped, and nothing else is lost by it (KAFKA-17299)",
    parameters=Parameters,
    faults=OF_GROUPS,
    variants=VARIANTS,
    system=lambda trial: WITH_QUEUE if has_queue(trial) else SYSTEM,
    partitions=lambda trial: values(trial).partitions,
    workload=workload,
    app=app,
    config=config,
    facts=lambda trial: {"queue": int(has_queue(trial))},
    drive=drive,
    positive_control=("DEFAULT_CONFIG", "3.9.0"),
    refusal=refusal,
    seconds=12.0,
)
