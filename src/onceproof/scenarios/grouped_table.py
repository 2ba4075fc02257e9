"""KIP-904: an aggregate of a grouped table must survive a rolling upgrade.

`KTable.groupBy` sends each change of the table through a repartition topic: the old value, to be subtracted from the
aggregate of its group, and the new one, to be added. Up to 3.4 these are two records; from 3.5 on they are one, if the
group stays, unless `upgrade.from` names an older release. An instance of the older form takes that record for one new
value. If the deserializer of the values does not mind the bytes that follow, something is added that was never sent,
and nothing is subtracted: the aggregate is wrong forever, and nothing fails.

Two instances keep the sums of the last values of each group, and move to the other release one by one while records
flow. The sums at the end must be those of the last values in the input, whatever the order of the groups and however
many results there were on the way. A trial is *exercised* when an instance of the older release kept sums while one of
the newer release wrote changes.

Optimized (`topology.optimization=all`), the table has no changelog of its own: it is restored from the input, only up
to the position that is committed. What comes behind it is still to be processed, and takes the old values that the
table has then: if these are younger, too much is subtracted, and sums are wrong forever. So an instance is killed
while records flow, and the sums must be right all the same (variant `OPTIMIZED`). That is exercised when the fault bit.
"""

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import Field

from onceproof.faults import Injection, instance_kill, rolling_bounce
from onceproof.faults.base import run_fault
from onceproof.faults.rolling_bounce import UPGRADE_FROM
from onceproof.model.cell import Trial
from onceproof.model.files import FaultOutcome
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
    refuse_rolling,
    rolls,
    runs_its_task,
    values_in,
    variants_of,
)
from onceproof.scenarios.two_instances import inject

GROUPS = 100  # the group of a key is its remainder
NAMES = ("instance-1", "instance-2")
RATE = 3_000.0  # records/s while the group moves
SUMS = "1_"  # tasks that keep sums; the others write changes

# --- variants ------------------------------------------------------------------------------------------------


class Parameters(Injection):
    """The parameters of this scenario."""

    keys: int = Field(1_000, ge=1, description=f"keys of the table; their remainder by {GROUPS} is their group")
    records: int = Field(30_000, ge=1, description="changes of the table while the group moves")
    partitions: int = Field(2, ge=1, description="partitions of the input and of the table")
    stores: StoreKind = Field("rocksdb", description="kind of the stores")
    caching: bool = Field(False, description="whether the table and the sums are cached")
    optimized: bool = Field(
        False, description="whether the input is the changelog of the table (topology.optimization=all)"
    )


VARIANTS = variants_of(
    Variant(
        "DEFAULT_CONFIG",
        "Goes over to another release instance by instance, without upgrade.from.",
        {"fault": rolling_bounce.NAME, UPGRADE_FROM: False},
    ),
    Variant(
        "UPGRADE_FROM",
        "As DEFAULT_CONFIG, with upgrade.from and a second bounce where Kafka Streams asks for it.",
        {"fault": rolling_bounce.NAME},
    ),
    Variant(
        "OPTIMIZED",
        "The input is the changelog of the table (topology.optimization=all); an instance is killed.",
        {"optimized": True, "fault": instance_kill.FAULT.name},
    ),
    Variant(
        "OPTIMIZED_IN_MEMORY",
        "As OPTIMIZED with stores in memory.",
        {"optimized": True, "fault": instance_kill.FAULT.name, "stores": "in-memory"},
    ),
)


values = values_in(Parameters, VARIANTS)


def refusal(trial: Trial) -> str | None:
    """Refuses a group that does not move to another release, or cannot."""
    cell, parameters = trial.cell, values(trial)
    if not rolls(parameters) and (not parameters.optimized or parameters.injected is None):
        return f"its group must have instances of two releases; leave out fault={parameters.fault}."
    if GROUPS % parameters.partitions:
        return (
            f"a group must be in one partition, so partitions must divide {GROUPS}, and {parameters.partitions} "
            "does not."
        )
    return (
        refuse_rolling(cell, parameters, on_disk=parameters.stores == "rocksdb")
        if rolls(parameters)
        else refuse_restarts(cell)
    )


def workload(trial: Trial) -> Workload:
    """A value for each key, then changes, both drawn from the seed."""
    parameters, rng = values(trial), random.Random(trial.seed)

    def changed(key: int) -> tuple[int, int]:
        return key, rng.randint(1, 1_000_000)

    first = [changed(key) for key in range(parameters.keys)]
    return Workload(first, [changed(rng.randrange(parameters.keys)) for _ in range(parameters.records)])


def app(trial: Trial) -> Mapping[str, Any]:
    """Settings of the topology `grouped-table`."""
    parameters = values(trial)
    return {
        "input.topic": trial.topic("input"),
        "output.topic": trial.topic("output"),
        "stores": parameters.stores,
        "caching": parameters.caching,
        "optimized": parameters.optimized,
    }


def config(_trial: Trial) -> Mapping[str, str]:
    """Kafka Streams configuration."""
    return {
        "processing.guarantee": "exactly_once_v2",
        "num.standby.replicas": "0",
        "num.stream.threads": "1",
        "commit.interval.ms": "100",
    }


# --- drive ---------------------------------------------------------------------------------------------------


def drive(lab: ScenarioContext) -> Exercise:
    """Make the table, have the group move to the other release while it changes, drain."""
    fault, first = values(lab.trial).injected or rolling_bounce.FAULT, lab.workload.first
    with lab.phase("table"):
        first_instance = lab.instances.start(NAMES[0])
        lab.await_(f"{len(first):,} records to be committed", lambda: lab.committed() >= len(first))
        second_instance = lab.instances.start(NAMES[1])
        lab.await_(
            "both instances to have tasks", lambda: runs_its_task(first_instance) and runs_its_task(second_instance)
        )
    if not rolls(values(lab.trial)):
        exercise = Exercise.of(inject(lab, fault, "changes", lab.workload.second, rate=RATE, after=len(first)))
        with lab.phase("leave"):
            lab.close_instances()
        return exercise
    with lab.phase("fault"):
        bulk = lab.produce("changes", lab.workload.second, RATE)
        fault_outcome = run_fault(fault, lab, lambda: bulk.make_last(fault.lasts))
    with lab.phase("drain"):
        bulk.full_speed()
        lab.await_drained()
        lab.await_internal_drained()
    with lab.phase("leave"):
        is_mixed = mixed(fault_outcome)
        if is_mixed:
            lab.note("mixed")
        lab.close_instances()
    kept = "kept sums of" if is_mixed else "kept no sums of"
    reason = f"{fault_outcome.summary} The older release {kept} what the newer one wrote."
    return Exercise(fault_outcome.bit and is_mixed, reason, all_steps_tried=fault_outcome.bit)


def mixed(fault_outcome: FaultOutcome) -> bool:
    """Whether an instance of the older release kept sums while one of the newer release wrote changes."""
    return any(
        Release.parse(release) > Release.parse(older)
        and together["processed"][writer] > 0
        and any(task.startswith(SUMS) for task in together["tasks"][keeper])
        for together in fault_outcome.observed.get("together", [])
        for writer, release in together["members"].items()
        for keeper, older in together["members"].items()
    )


# --- system --------------------------------------------------------------------------------------------------

SYSTEM = System(
    topology="grouped-table",
    roles={role: Role() for role in ("input", "output", "table-changelog", "sums-changelog")},
    promises=("grouped", "stores"),
    stores=2,
)


def system(trial: Trial) -> System:
    """The topology; optimized, the changelog of the table is the input."""
    if not values(trial).optimized:
        return SYSTEM
    return replace(SYSTEM, roles={**SYSTEM.roles, "table-changelog": Role(topic="input", committed=False)})


SCENARIO = Scenario(
    name="grouped-table",
    title="An aggregate of a grouped table survives a rolling upgrade (KIP-904)",
    parameters=Parameters,
    faults=(rolling_bounce.FAULT, instance_kill.FAULT),
    variants=VARIANTS,
    system=system,
    partitions=lambda trial: values(trial).partitions,
    workload=workload,
    app=app,
    config=config,
    drive=drive,
    positive_control=("DEFAULT_CONFIG", "3.4.1", "4.3.1"),
    refusal=refusal,
    seconds=27,
    alike="final",
)
