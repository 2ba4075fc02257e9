"""KAFKA-20254: a group that went over to the streams protocol must be loaded when its broker starts again.

What a broker knows of groups it keeps in `__consumer_offsets`, a compacted log, and reads it again when it starts. A
group that goes from the classic to the streams protocol (KIP-1071) leaves there positions that it committed before, and
a tombstone of the classic group. Once the log is compacted so far that the tombstone is gone, and a partition has not
been committed since, a position is the first that the broker reads of the group. Brokers with the bug make a group
without a protocol of it, and then refuse what the streams group wrote ("Group ... is not a streams group"): that
partition of the log is not loaded, and no group of it can commit or find its positions.

The application commits positions of two partitions under the classic protocol, leaves, comes back under the streams
protocol and commits those of the second partition only, while the log is compacted. When nothing shows any more that
the group was classic, it is closed, the broker starts again, and the application, too. A trial is *exercised* when the
log of the group then began with a position, and had records of the streams group behind it.

The broker is to blame, and is changed for all groups: each trial has brokers of its own.
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import count, islice
from typing import Any

from pydantic import Field

from onceproof.faults.base import log_lines
from onceproof.model.capability import Capability
from onceproof.model.cell import Trial
from onceproof.model.parameter import BaseParameters
from onceproof.model.phrases import NOT_STREAMS
from onceproof.model.promise import TRANSACTION_ATOMICITY, promises_of
from onceproof.model.segments import CLASSIC, POSITION, STREAMS
from onceproof.scenarios.base import (
    PROTOCOL,
    Exercise,
    Guarantee,
    Membership,
    Role,
    Scenario,
    ScenarioContext,
    System,
    Variant,
    Workload,
    partition_of_key,
    refuse_membership,
    refuse_restarts,
    values_in,
    variants_of,
)

PARTITIONS = 2
NODE = 1  # the broker
BEFORE, SINCE, AFTER = "instance-1", "instance-2", "instance-3"
COMPACTED_WITHIN = 60.0  # seconds that the log has to forget
LOADED_WITHIN = 20.0  # seconds that a broker has to load a group, or to say that it cannot
GOES_ON_WITHIN = 15.0  # seconds that the application has for the rest

# --- variants ------------------------------------------------------------------------------------------------


class Parameters(BaseParameters):
    """The records that are committed before and after the group changes to the streams protocol."""

    committed: int = Field(200, ge=2, description="records that are committed under the classic protocol")
    flow: int = Field(1_200, ge=1, description="records that flow while the log is compacted")
    rate: float = Field(20.0, ge=1.0, description="of these a second")
    rest: int = Field(200, ge=1, description="records that come after the broker has started again")
    compacted: bool = Field(True, description="whether the log of positions is compacted")
    migrated: bool = Field(True, description="whether the application comes back under the streams protocol")
    guarantee: Guarantee = Field("at_least_once", description="processing guarantee")


VARIANTS = variants_of(
    Variant("DEFAULT_CONFIG", "The log forgets that the group was classic; then its broker starts again."),
    Variant(
        "EXACTLY_ONCE", "As DEFAULT_CONFIG; positions are committed in transactions.", {"guarantee": "exactly_once_v2"}
    ),
    Variant("NOT_COMPACTED", "As DEFAULT_CONFIG; the log forgets nothing.", {"compacted": False, "flow": 100}),
    Variant("NOT_MIGRATED", "As DEFAULT_CONFIG; the group stays classic.", {"migrated": False, "flow": 100}),
)


values = values_in(Parameters, VARIANTS)


def workload(trial: Trial) -> Workload:
    """Distinct keys with values drawn from the seed: of both partitions, then of the last one only, then of both."""
    parameters, rng = values(trial), random.Random(trial.seed)
    of_last = (key for key in count(parameters.committed) if partition_of_key(key, PARTITIONS) == PARTITIONS - 1)
    flow = list(islice(of_last, parameters.flow))
    rest = range(flow[-1] + 1, flow[-1] + 1 + parameters.rest)
    records = [(key, rng.randrange(1, 2**31)) for key in (*range(parameters.committed), *flow, *rest)]
    return Workload(records[: parameters.committed], records[parameters.committed :])


def app(trial: Trial) -> Mapping[str, Any]:
    """Settings of the topology `copy`."""
    return {"input.topic": trial.topic("input"), "output.topic": trial.topic("output")}


def config(trial: Trial) -> Mapping[str, str]:
    """Kafka Streams configuration; the application is classic at first all the same."""
    parameters = values(trial)
    return {
        "processing.guarantee": parameters.guarantee,
        "num.standby.replicas": "0",
        "num.stream.threads": "1",
        "commit.interval.ms": "100",
        PROTOCOL: STREAMS if parameters.migrated else CLASSIC,
    }


def refusal(trial: Trial) -> str | None:
    """Why a cell cannot be run: both sides must know the streams protocol."""
    return refuse_restarts(trial.cell) or refuse_membership(trial.cell, Membership.of({PROTOCOL: STREAMS}))


# --- drive ---------------------------------------------------------------------------------------------------


def drive(lab: ScenarioContext) -> Exercise:
    """Commit under one protocol, go over to the other, let the log forget, and have the broker start again."""
    parameters, first = values(lab.trial), lab.workload.first
    flow, rest = lab.workload.second[: parameters.flow], lab.workload.second[parameters.flow :]
    with lab.phase("classic"):
        lab.instances.start(BEFORE, config={PROTOCOL: CLASSIC})
        lab.await_(f"{len(first):,} records to be committed", lambda: lab.count_committed() >= len(first))
        lab.instances.stop(BEFORE, leave_group=True)
    with lab.phase("migration"):
        if parameters.compacted:
            lab.topics.compact_positions()
            lab.note("compacted")
        lab.instances.start(SINCE)
        bulk = lab.produce("flow", flow, rate=parameters.rate)
        lab.holds_within(COMPACTED_WITHIN, lambda: bulk.is_done() or _is_forgotten(lab.topics.group_records()))
        bulk.full_speed()
        lab.await_drained()
        lab.instances.stop(SINCE, leave_group=True)
    with lab.phase("broker starts again"):
        records = lab.topics.group_records()
        exercised = _is_forgotten(records)
        if exercised:
            lab.note("exercised")
        lab.brokers.kill(NODE, orderly=True)
        lab.brokers.start(NODE)
        lab.holds_within(LOADED_WITHIN, lambda: lab.count_committed() or _find_refusal(lab))
        if said := _find_refusal(lab):
            lab.note("refused", node=NODE, said=said)
    with lab.phase("goes on"):
        everything = len(first) + len(flow) + len(rest)
        lab.instances.start(AFTER)
        lab.produce("rest", rest)
        lab.await_(
            f"{len(rest):,} records to be committed after the broker has started again",
            lambda: lab.count_committed() >= everything,
            GOES_ON_WITHIN,
        )
        lab.await_drained()
    with lab.phase("leave"):
        lab.close_instances()
    counts = ", ".join(f"{number} {kind}" for kind, number in Counter(records).items())
    reason = f"When its broker started again the log held of the group, in the order of their first: {counts}."
    return Exercise(exercised, reason, all_steps_tried=True)


def _is_forgotten(records: Sequence[str]) -> bool:
    """Whether nothing shows that the group was classic, a position comes first, and the streams group behind it."""
    return CLASSIC not in records and STREAMS in records and records[0] == POSITION


def _find_refusal(lab: ScenarioContext) -> str | None:
    """The line of the broker's log if it refuses the group."""
    lines = (said for _, said in log_lines(lab.brokers.log(NODE), 0, NOT_STREAMS.pattern))
    return next((said for said in lines if f"Group {lab.trial.application_id} " in said), None)


# --- system --------------------------------------------------------------------------------------------------

SYSTEM = System(
    topology="copy",
    roles={"input": Role(), "output": Role()},
    promises=("deliveries", "output-order"),
    stores=0,
    requires=frozenset({Capability.KILL_NODE}),
    not_looked_at={
        promise.name: "what groups committed in transactions is compacted away"
        for promise in promises_of(TRANSACTION_ATOMICITY)
    },
)
SCENARIO = Scenario(
    name="migration",
    title="A group that went over to the streams protocol is loaded by its broker (KAFKA-20254)",
    parameters=Parameters,
    variants=VARIANTS,
    system=lambda _: SYSTEM,
    partitions=lambda _: PARTITIONS,
    workload=workload,
    app=app,
    config=config,
    drive=drive,
    positive_control=("DEFAULT_CONFIG", "4.3.1"),
    control_broker="4.2.0",
    refusal=refusal,
    own_brokers=True,
    seconds=38,
)
