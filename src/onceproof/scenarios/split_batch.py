"""KAFKA-19479: an offset must not be committed before what was made of its record is published, also in parts.

Before Kafka Streams commits, it has its producer send everything (`flush`). A batch that the brokers refuse because it
is too large (MESSAGE_TOO_LARGE) is split and sent again; releases with the bug take it for done when it is split, so
the offsets are committed while its records are still in the memory of the process. If that dies, or gives up on them,
they are gone: at-least-once becomes at most once. Under exactly-once the end of the transaction waits for them.

Records are processed within a commit interval into one batch, which nothing but the flush sends (`linger.ms`), and the
topic of the output takes no batch of that size. Then the process is killed, the topic healed, and the process started
again. A trial is *exercised* when the log says that a batch was split. Releases before 4.2 split by `batch.size`, so
into one of the same size, again and again; nothing is emitted until the topic is healed. Later ones halve it.
"""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from onceproof.model.cell import Trial
from onceproof.model.parameter import BaseParameters
from onceproof.model.phrases import SPLIT
from onceproof.scenarios.base import (
    Exercise,
    Guarantee,
    Role,
    Scenario,
    ScenarioContext,
    System,
    Variant,
    Workload,
    behind,
    values_in,
    variants_of,
)

PARTITIONS = 1
NAME = "instance-1"
OUTPUT = "output"
COMMIT_INTERVAL = 0.5  # seconds
HELD = 3.0  # commit intervals that the process has for a commit: it has tried
TAKEN = 1_048_588  # bytes of a batch that a topic takes; Kafka's own

# --- variants ------------------------------------------------------------------------------------------------


class Parameters(BaseParameters):
    """A batch that is larger than what a broker takes, so that the producer must split it."""

    committed: int = Field(500, ge=1, description="records that are committed before")
    burst: int = Field(5_000, ge=1, description="records that are too large together")
    taken_bytes: int = Field(16_384, ge=1, description="batch that the topic of the output takes at most")
    batch_bytes: int = Field(262_144, ge=1, description="the producer's batch.size, into which all of them fit")
    guarantee: Guarantee = Field("at_least_once", description="processing guarantee")


VARIANTS = variants_of(
    Variant("DEFAULT_CONFIG", "A batch is refused because it is too large, and split; then the process is killed."),
    Variant("EXACTLY_ONCE", "As DEFAULT_CONFIG in transactions.", {"guarantee": "exactly_once_v2"}),
)


values = values_in(Parameters, VARIANTS)


def workload(trial: Trial) -> Workload:
    """Distinct keys with values drawn from the seed."""
    parameters, rng = values(trial), random.Random(trial.seed)
    records = [(key, rng.randrange(1, 2**31)) for key in range(parameters.committed + parameters.burst)]
    return Workload(records[: parameters.committed], records[parameters.committed :])


def app(trial: Trial) -> Mapping[str, Any]:
    """Settings of `copy`: its output is the topic that refuses large batches."""
    return {"input.topic": trial.topic("input"), "output.topic": trial.topic(OUTPUT)}


def config(trial: Trial) -> Mapping[str, str]:
    """A producer that sends only when it is flushed, so that batches grow until they must be split."""
    parameters = values(trial)
    return {
        "processing.guarantee": parameters.guarantee,
        "num.standby.replicas": "0",
        "num.stream.threads": "1",
        "commit.interval.ms": str(int(COMMIT_INTERVAL * 1_000)),
        "group.instance.id": NAME,  # so that it rejoins the group at once
        "producer.batch.size": str(parameters.batch_bytes),
        "producer.linger.ms": "60000",  # only a flush sends
        "producer.delivery.timeout.ms": "120000",
        # Without a store nothing aborts the transaction of the process that was killed before it is over.
        "producer.transaction.timeout.ms": "5000",
    }


# --- drive ---------------------------------------------------------------------------------------------------


def drive(lab: ScenarioContext) -> Exercise:
    """Commit some, let the topic refuse a batch, kill when its records are committed or not, heal, start again."""
    first, burst = lab.workload.first, lab.workload.second
    with lab.phase("first records"):
        instance = lab.instances.start(NAME)
        lab.await_(f"{len(first):,} records to be committed", lambda: lab.count_committed() >= len(first))
    with lab.phase("split"):
        lab.limits.alter_topic(OUTPUT, max_message_bytes=str(values(lab.trial).taken_bytes))
        before = lab.end(OUTPUT)
        lab.produce("burst", burst)
        everything = len(first) + len(burst)
        # Where the machine is slow a commit comes before all are processed, and may not end before the topic is healed.
        lab.await_(
            f"{everything:,} records to be processed, or a batch of them to be split",
            lambda: instance.processed >= everything or splits_in(instance.log) > 0,
        )
        lab.holds_within(HELD * COMMIT_INTERVAL, lambda: lab.count_committed() >= everything)
        committed = lab.count_committed() - len(first)
        lab.instances.kill(NAME)
        published, splits = lab.end(OUTPUT) - before, splits_in(instance.log)
        if splits:
            lab.note("split", splits=splits, committed=committed, published=published, open={"input": behind(first, 1)})
        lab.limits.alter_topic(OUTPUT, max_message_bytes=str(TAKEN))
    with lab.phase("drain"):
        lab.instances.start(NAME)
        lab.await_drained()
    with lab.phase("leave"):
        lab.close_instances()
    reason = (
        f"Batches were split {splits:,} times; when the process was killed {committed:,} of {len(burst):,} records "
        f"were committed and {published:,} published."
    )
    return Exercise(splits > 0, reason, all_steps_tried=True)


def splits_in(log: Path) -> int:
    """How often, by its log, a producer split a batch."""
    return sum(SPLIT.pattern.search(line) is not None for line in log.open(errors="replace"))


# --- system --------------------------------------------------------------------------------------------------

SYSTEM = System(
    topology="copy",
    roles={"input": Role(), OUTPUT: Role()},
    promises=("deliveries", "output-order"),
    stores=0,
)
SCENARIO = Scenario(
    name="split-batch",
    title="Committed records are published, also if their batch had to be split (KAFKA-19479)",
    parameters=Parameters,
    variants=VARIANTS,
    system=lambda _: SYSTEM,
    partitions=lambda _: PARTITIONS,
    workload=workload,
    app=app,
    config=config,
    drive=drive,
    positive_control=("DEFAULT_CONFIG", "3.9.1"),
    seconds=10,
    alike="records",
)
