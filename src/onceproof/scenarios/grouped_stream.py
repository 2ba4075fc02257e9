"""KAFKA-19668: an aggregate of a stream is by its key, whatever changes the key before.

A stream whose key has changed goes through a repartition topic before it is aggregated: records of a key must meet in
one task. Optimized (`topology.optimization=all`), Kafka Streams puts that topic as far up as the operation that changes
the key, so that one topic serves all that follows. It takes `process` of the Processor API for an operation that leaves
the key as it is. If `process` changes the key behind another operation that does, the topic comes before `process`:
records are spread by a key that they no longer have, and each task keeps an aggregate of its own for the same key.
Nothing fails. If a join lies between them, the topology does not build (`Found a null keyChangingChild node`).

From 4.0.1, 4.1.1 and 4.2.0 on an internal setting fixes that. It is off by default, as it changes the topology of
applications that run.

Two instances sum the values of each group, whose records come from all partitions by keys that are each there once. An
instance is killed while records flow. The sums at the end must be those of all values in the input. A trial is
*exercised* when the fault took effect.
"""

import random
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from onceproof.faults import Injection, instance_kill
from onceproof.model.cell import Trial
from onceproof.model.release import Release
from onceproof.scenarios.base import (
    Exercise,
    Role,
    Scenario,
    ScenarioContext,
    StoreKind,
    System,
    Variant,
    Workload,
    refuse_restarts,
    runs_its_task,
    values_in,
    variants_of,
)
from onceproof.scenarios.grouped_table import GROUPS, NAMES, RATE
from onceproof.scenarios.two_instances import inject

FIX = "__enable.process.processValue.fix__"
FIXED = (Release(4, 0, 1), Release(4, 1, 1), Release(4, 2, 0))  # the first of each line that knows it
PROCESSED_SINCE = Release(3, 3, 0)  # since which `process` returns a stream (KIP-820)

# --- variants ------------------------------------------------------------------------------------------------


class Parameters(Injection):
    """Which operator changes the key before records are grouped, and whether the topology is optimized."""

    by: Literal["selectKey", "process"] = Field("selectKey", description="operation that makes the group the key")
    optimized: bool = Field(True, description="whether the topology is optimized (topology.optimization=all)")
    fix: bool = Field(False, description=f"whether {FIX} is set, which is internal")
    committed: int = Field(1_000, ge=1, description="records before the fault")
    records: int = Field(30_000, ge=1, description="records that flow when the fault is injected")
    partitions: int = Field(2, ge=1, description="partitions of the input and of the sums")
    stores: StoreKind = Field("rocksdb", description="kind of the store of the sums")
    caching: bool = Field(False, description="whether the sums are cached")


KILLED = {"fault": instance_kill.FAULT.name}
VARIANTS = variants_of(
    Variant("DEFAULT_CONFIG", "Optimized; selectKey changes the key twice; an instance is killed.", KILLED),
    Variant("PROCESSED", "As DEFAULT_CONFIG; the second time a processor changes it.", {**KILLED, "by": "process"}),
    Variant(
        "PROCESSED_PLAIN",
        "As PROCESSED, not optimized.",
        {**KILLED, "by": "process", "optimized": False},
    ),
    Variant(
        "PROCESSED_FIXED",
        "As PROCESSED, with the internal setting that fixes it.",
        {**KILLED, "by": "process", "fix": True},
    ),
)


values = values_in(Parameters, VARIANTS)


def has_fix(release: Release) -> bool:
    """Whether a release knows the setting that fixes it."""
    of_line = [first for first in FIXED if first.line == release.line]
    return release.since(of_line[0] if of_line else FIXED[-1])


def refusal(trial: Trial) -> str | None:
    """Refuses releases that lack what is asked for, and partitions by which a group would not be in order."""
    cell, parameters = trial.cell, values(trial)
    if parameters.by == "process" and not cell.streams.since(PROCESSED_SINCE):
        return f"`process` of {cell.streams} returns no stream (KIP-820); take {PROCESSED_SINCE} or later."
    if parameters.fix and not has_fix(cell.streams):
        known = ", ".join(map(str, FIXED))
        return f"{cell.streams} does not know {FIX}; take {known} or later, or fix=false."
    if GROUPS % parameters.partitions:
        return (
            f"the records of a group must be in one partition, so partitions must divide {GROUPS}, and "
            f"{parameters.partitions} does not."
        )
    return refuse_restarts(cell)


def workload(trial: Trial) -> Workload:
    """Distinct keys, with values that are drawn from the seed."""
    parameters, rng = values(trial), random.Random(trial.seed)
    records = [(key, rng.randint(1, 1_000_000)) for key in range(parameters.committed + parameters.records)]
    return Workload(records[: parameters.committed], records[parameters.committed :])


def app(trial: Trial) -> Mapping[str, Any]:
    """Settings of `grouped-table`, whose input is a stream here."""
    parameters = values(trial)
    return {
        "input.topic": trial.topic("input"),
        "output.topic": trial.topic("output"),
        "grouped.by": parameters.by,
        "stores": parameters.stores,
        "caching": parameters.caching,
    }


def config(trial: Trial) -> Mapping[str, str]:
    """Optimization, and the internal setting that fixes KAFKA-19668, as the variant asks."""
    parameters = values(trial)
    return {
        "processing.guarantee": "exactly_once_v2",
        "num.standby.replicas": "0",
        "num.stream.threads": "1",
        "commit.interval.ms": "100",
        "topology.optimization": "all" if parameters.optimized else "none",
        **({FIX: "true"} if parameters.fix else {}),
    }


# --- drive ---------------------------------------------------------------------------------------------------


def drive(lab: ScenarioContext) -> Exercise:
    """Have two instances keep sums, inject the fault while records flow, drain."""
    fault, first = values(lab.trial).injected or instance_kill.FAULT, lab.workload.first
    with lab.phase("first records"):
        one = lab.instances.start(NAMES[0])
        lab.await_(f"{len(first):,} records to be committed", lambda: lab.count_committed() >= len(first))
        other = lab.instances.start(NAMES[1])
        lab.await_("both instances to have tasks", lambda: runs_its_task(one) and runs_its_task(other))
    exercise = Exercise.of(inject(lab, fault, "records", lab.workload.second, rate=RATE, after=len(first)))
    with lab.phase("leave"):
        lab.close_instances()
    return exercise


# --- system --------------------------------------------------------------------------------------------------

SYSTEM = System(
    topology="grouped-table",
    roles={role: Role() for role in ("input", "output", "sums-changelog")},
    promises=("grouped", "stores"),
    stores=1,
)

SCENARIO = Scenario(
    name="grouped-stream",
    title="An aggregate of a stream is by its key, whatever changes the key before (KAFKA-19668)",
    parameters=Parameters,
    faults=(instance_kill.FAULT,),
    variants=VARIANTS,
    system=lambda _: SYSTEM,
    partitions=lambda trial: values(trial).partitions,
    workload=workload,
    app=app,
    config=config,
    drive=drive,
    positive_control=("PROCESSED", "4.4.0"),
    refusal=refusal,
    seconds=20,
    alike="final",
)
