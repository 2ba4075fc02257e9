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
while records flow, and the sums must be right all the same (variant `OPTIMIZED`). That is exercised when the fault took
effect.

An application changes its topology with a deployment, too, on one release. Two of these changes must not change a sum:

- An operator is added to a stream, instance by instance, while records flow (`PROCESSOR_ADDED`). It moves the numbers
  in the names of all operators behind it. Those of the stores and of the repartition topic are given, so they stay, and
  operators keep nothing by their names (Kafka's guide "Naming Operators in a Streams DSL application"). Exercised:
  members with either topology had tasks while their group processed records.
- The optimization is switched on (`SWITCHED_ON`), so that the changelog of the table is another one from then on. That
  takes a group of which all members have stopped, as the members of a group must agree on the changelog. The positions
  that a store keeps of its former changelog say nothing of the new one, so the table is restored from the input, to the
  position that is committed. The instances are stopped and started in the same order, so that the first one finds
  tables that are older than the sums. Exercised: the other instance had processed records without it, and there was
  more input than is committed.

A group of the streams protocol keeps the changelogs of its first topology (KAFKA-20170), so there only an operator
can be added.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from onceproof.faults import instance_kill, rolling_bounce
from onceproof.faults.base import is_at_rest, run_fault, tasks_come_back
from onceproof.faults.rolling_bounce import UPGRADE_FROM
from onceproof.model.cell import Trial
from onceproof.model.files import FaultOutcome, Later
from onceproof.model.release import Release
from onceproof.scenarios.base import (
    PROTOCOL,
    Exercise,
    Group,
    Role,
    Scenario,
    ScenarioContext,
    StoreKind,
    System,
    Variant,
    Workload,
    find_restored_anew,
    membership,
    rolls,
    runs_its_task,
    values_in,
    variants_of,
)
from onceproof.scenarios.two_instances import WITHIN, inject, refuse_group

GROUPS = 100  # the group of a key is its remainder
NAMES = ("instance-1", "instance-2")
RATE = 3_000.0  # records/s while the group moves
SUMS = "1_"  # tasks that keep sums; the others write changes
TABLE = "table"
TOGETHER = 1_000  # records that members with either topology process, at least

# --- variants ------------------------------------------------------------------------------------------------


class Parameters(Group):
    """The groups that rows move between, and what a deployment changes."""

    keys: int = Field(1_000, ge=1, description=f"keys of the table; their remainder by {GROUPS} is their group")
    records: int = Field(30_000, ge=1, description="changes of the table while the group moves")
    partitions: int = Field(2, ge=1, description="partitions of the input and of the table")
    stores: StoreKind = Field("rocksdb", description="kind of the stores")
    caching: bool = Field(False, description="whether the table and the sums are cached")
    optimized: bool = Field(
        False, description="whether the input is the changelog of the table (topology.optimization=all)"
    )
    deployed: Literal["nothing", "operator", "optimization"] = Field(
        "nothing",
        description="what the topology of instances has, besides, when they are started again, without a fault",
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
    Variant(
        "PROCESSOR_ADDED",
        "Instance by instance an operator is added before the table, so that others get other names.",
        {"deployed": "operator"},
    ),
    Variant(
        "PROCESSOR_ADDED_STREAMS",
        "As PROCESSOR_ADDED; a broker assigns the tasks (KIP-1071).",
        {"deployed": "operator", PROTOCOL: "streams"},
    ),
    Variant(
        "SWITCHED_ON",
        "All instances are stopped and started again optimized: the input becomes the changelog of the table.",
        {"deployed": "optimization"},
    ),
)


values = values_in(Parameters, VARIANTS)


def refusal(trial: Trial) -> str | None:
    """Refuses a group that does not move to another release, or cannot, and a deployment that is not promised."""
    cell, parameters = trial.cell, values(trial)
    struck = parameters.injected is not None
    if parameters.deployed != "nothing" and (struck or parameters.optimized):
        return f"deployed={parameters.deployed} takes no fault, and a table that is not optimized; leave them out."
    if parameters.deployed == "optimization" and parameters.group_protocol == "streams":
        return "a group of the streams protocol keeps the changelogs of its first topology (KAFKA-20170)."
    if not rolls(parameters) and parameters.deployed == "nothing" and not (parameters.optimized and struck):
        return f"its group must have instances of two releases; leave out fault={parameters.fault}."
    if GROUPS % parameters.partitions:
        return (
            f"a group must be in one partition, so partitions must divide {GROUPS}, and {parameters.partitions} "
            "does not."
        )
    return refuse_group(cell, parameters, on_disk=parameters.stores == "rocksdb")


def workload(trial: Trial) -> Workload:
    """A value for each key, then changes, both drawn from the seed."""
    parameters, rng = values(trial), random.Random(trial.seed)

    def give_change(key: int) -> tuple[int, int]:
        return key, rng.randint(1, 1_000_000)

    first = [give_change(key) for key in range(parameters.keys)]
    return Workload(first, [give_change(rng.randrange(parameters.keys)) for _ in range(parameters.records)])


def app(trial: Trial) -> Mapping[str, Any]:
    """Settings of the topology `grouped-table`."""
    parameters = values(trial)
    return {
        "input.topic": trial.topic("input"),
        "output.topic": trial.topic("output"),
        "stores": parameters.stores,
        "caching": parameters.caching,
        "read.as": "optimized-source"
        if parameters.optimized
        else "source"
        if parameters.deployed == "optimization"
        else "stream",
    }


def later(trial: Trial) -> tuple[Later, ...]:
    """The topology of an instance that is started again, if another one is deployed."""
    read_as = {"operator": "longer-stream", "optimization": "optimized-source"}.get(values(trial).deployed)
    return (Later(2, {"read.as": read_as}, {}),) if read_as else ()


def config(trial: Trial) -> Mapping[str, str]:
    """Tasks that come back to an instance at once after a deployment."""
    parameters = values(trial)
    return {
        "processing.guarantee": "exactly_once_v2",
        "num.standby.replicas": "0",
        "num.stream.threads": "1",
        "commit.interval.ms": "100",
        **({} if parameters.deployed == "nothing" else tasks_come_back()),
        **membership(parameters),
    }


# --- drive ---------------------------------------------------------------------------------------------------


def drive(lab: ScenarioContext) -> Exercise:
    """Make the table, have the group move to the other release or topology while it changes, drain."""
    deployed = values(lab.trial).deployed
    fault, first = values(lab.trial).injected or rolling_bounce.FAULT, lab.workload.first
    with lab.phase("table"):
        first_instance = lab.instances.start(NAMES[0])
        await_committed(lab, len(first))
        second_instance = lab.instances.start(NAMES[1])
        lab.await_(
            "both instances to have tasks", lambda: runs_its_task(first_instance) and runs_its_task(second_instance)
        )
    if deployed != "nothing":
        with lab.phase("deployment"):
            exercise = add_operator(lab) if deployed == "operator" else switch_on(lab)
        with lab.phase("drain"):
            lab.await_drained()
            lab.await_internal_drained()
        with lab.phase("leave"):
            lab.close_instances()
        return exercise
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
        was_mixed = is_mixed(fault_outcome)
        if was_mixed:
            lab.note("mixed")
        lab.close_instances()
    kept = "kept sums of" if was_mixed else "kept no sums of"
    reason = f"{fault_outcome.summary} The older release {kept} what the newer one wrote."
    return Exercise(fault_outcome.bit and was_mixed, reason, all_steps_tried=fault_outcome.bit)


def is_mixed(fault_outcome: FaultOutcome) -> bool:
    """Whether an instance of the older release kept sums while one of the newer release wrote changes."""
    return any(
        Release.parse(release) > Release.parse(older)
        and together["processed"][writer] > 0
        and any(task.startswith(SUMS) for task in together["tasks"][keeper])
        for together in fault_outcome.observed.get("together", [])
        for writer, release in together["members"].items()
        for keeper, older in together["members"].items()
    )


def add_operator(lab: ScenarioContext) -> Exercise:
    """Close each instance and start it again with the longer topology; the other one works on meanwhile."""
    together = []
    flowing, *others = thirds(lab.workload.second)
    bulk = lab.produce("changes-1", flowing, RATE)
    for number, (name, records) in enumerate(zip(NAMES, others, strict=True), 2):
        lab.instances.stop(name, leave_group=True)
        lab.instances.start(name)
        have_tasks = lab.holds_within(WITHIN, lambda: all(map(runs_its_task, lab.instances.running.values())))
        bulk.await_delivered()
        before = lab.count_committed()
        bulk = lab.produce(f"changes-{number}", records, RATE)
        await_committed(lab, before + min(TOGETHER, len(records)))
        together.append(lab.count_committed() - before if have_tasks else 0)
    bulk.full_speed()
    longer, shorter = NAMES
    did = f"while {longer} had a task of the longer topology and {shorter} one of the shorter"
    return Exercise(
        together[0] >= TOGETHER, f"The group processed {together[0]:,} records {did}.", all_steps_tried=True
    )


def switch_on(lab: ScenarioContext) -> Exercise:
    """Stop all instances and start them optimized, one after the other, while records come in."""
    first, last = NAMES
    without_first, without_both, flowing = thirds(lab.workload.second)
    lab.instances.stop(first, leave_group=True)
    lab.produce("changes-1", without_first)
    await_committed(lab, len(lab.workload.first) + len(without_first))
    lab.instances.stop(last, leave_group=True)
    lab.produce("changes-2", without_both).await_delivered()
    backlog, began = lab.end("input") - lab.count_committed(), len(lab.events)
    bulk = lab.produce("changes-3", flowing, RATE)
    for name in NAMES:
        lab.instances.start(name)
        lab.await_(f"{name} to be at rest", lambda: is_at_rest(lab))
    bulk.full_speed()
    tables = [table for table in find_restored_anew(lab.events[began:]) if table.startswith(TABLE)]
    return Exercise(
        backlog >= len(without_both) > 0,
        f"{first} was started optimized after {last} had processed {len(without_first):,} records without it, when "
        f"{backlog:,} were not committed; {len(tables)} of {values(lab.trial).partitions} partitions of the table were "
        "restored from the beginning.",
        all_steps_tried=True,
    )


def await_committed(lab: ScenarioContext, enough: int) -> None:
    """Wait until so many records are committed."""
    lab.await_(f"{enough:,} records to be committed", lambda: lab.count_committed() >= enough)


def thirds(records: Sequence[tuple[int, int]]) -> list[Sequence[tuple[int, int]]]:
    """The records in three parts, in their order."""
    size = -(-len(records) // 3)
    return [records[number * size : (number + 1) * size] for number in range(3)]


# --- system --------------------------------------------------------------------------------------------------

SYSTEM = System(
    topology="grouped-table",
    roles={role: Role() for role in ("input", "output", "table-changelog", "sums-changelog")},
    promises=("grouped", "stores"),
    stores=2,
)


def system(trial: Trial) -> System:
    """The topology; if it is optimized at the end, the changelog of the table is the input."""
    parameters = values(trial)
    if not parameters.optimized and parameters.deployed != "optimization":
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
    later=later,
    drive=drive,
    positive_control=("DEFAULT_CONFIG", "3.4.1", "4.3.1"),
    refusal=refusal,
    seconds=27,
    alike="final",
)
