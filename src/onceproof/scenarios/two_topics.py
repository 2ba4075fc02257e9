"""KIP-695: a task takes the records of two topics in the order of their timestamps, as `max.task.idle.ms` asks for it.

A stream is joined with a table that another topic makes, so each result shows which entries the task had taken before
it. With `max.task.idle.ms=0`, the default, a task does not take records of one topic while it knows, or does not know
yet, that the broker has records of the other. With more it also waits for records that are still to come. With -1 it
takes what it has. So the order is a promise of the first, if all records are there before the application starts, and
of the second for any topic that lags behind the other by less.

The table has several entries for each record of the stream, and consumers fetch little at a time, so a task often has
records of one topic only. Timestamps grow within a partition, and no two records of the trial have the same one: what
must be emitted is a function of the input. Where the table lags, tasks wait for it for ten minutes, so no slow machine
makes the order a matter of chance. The rest, for which nothing more comes, is processed by an instance that does not
wait (`max.task.idle.ms=0`): all records are there then.

Meanwhile tasks move: their new owner must know as little, and wait as well. The table is in memory, so it is
restored from its changelog up to what is committed, and no older one on disk can be to blame.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import Field

from onceproof.faults import OF_GROUPS, instance_kill, rolling_bounce
from onceproof.faults.base import Fault, count_processed, run_fault, tasks_come_back
from onceproof.model.cell import Trial
from onceproof.model.release import Release
from onceproof.scenarios.base import (
    ROLLING,
    STATIC_STREAMS_PROTOCOL,
    STREAMS_PROTOCOL,
    Bulk,
    Exercise,
    Group,
    Role,
    Scenario,
    ScenarioContext,
    Stamped,
    StoreKind,
    System,
    Variant,
    Workload,
    membership,
    runs_its_task,
    values_in,
    variants_of,
)
from onceproof.scenarios.two_instances import LASTS, OTHER, WITHIN, refuse_group, start_other

NAME = "instance-1"
LAST = "instance-3"  # processes what is left when nothing more comes
ENTRIES = "entries"  # role of the topic that makes the table
RATE = 1_000.0  # records/s of the stream until the fault is over
NOT_AT_ALL, FOR_WHAT_IS_THERE, FOR_WHAT_COMES = -1, 0, 600_000  # max.task.idle.ms
LARGEST = 1_000_000  # entry

# --- variants ------------------------------------------------------------------------------------------------


class Parameters(Group):
    """The two topics that a task takes in the order of their timestamps, and how far one lags."""

    keys: int = Field(200, ge=1, description="keys of the stream and of the table")
    records: int = Field(30_000, ge=1, description="records of the stream")
    entries: int = Field(3, ge=1, description="entries of the table for each record of the stream")
    lag: int = Field(
        0, ge=0, description="ms that the table is behind the stream; 0: all is there before the application starts"
    )
    unordered: bool = Field(
        False, description="whether tasks do not wait for records on the broker (max.task.idle.ms=-1)"
    )
    partitions: int = Field(2, ge=1, description="partitions of both topics")
    stores: StoreKind = Field("in-memory", description="kind of the table's store")


KILLED = {"fault": instance_kill.FAULT.name}
LAGS = {"lag": 1_000}
VARIANTS = variants_of(
    Variant("DEFAULT_CONFIG", "All records are there; one of two instances is killed meanwhile.", KILLED),
    Variant("LAGGING", "The table lags behind the stream; a second instance joins meanwhile.", LAGS),
    Variant("LAGGING_KILLED", "As LAGGING; one of two instances is killed meanwhile.", {**LAGS, **KILLED}),
    Variant(
        "UNORDERED", "As DEFAULT_CONFIG; tasks do not wait, so the order is no promise.", {**KILLED, "unordered": True}
    ),
    replace(STREAMS_PROTOCOL, parameters={**STREAMS_PROTOCOL.parameters, **KILLED}),
    replace(STATIC_STREAMS_PROTOCOL, parameters={**STATIC_STREAMS_PROTOCOL.parameters, **KILLED}),
    replace(ROLLING, parameters={**ROLLING.parameters, **LAGS}),
)


values = values_in(Parameters, VARIANTS)


def workload(trial: Trial) -> Workload:
    """Records of the stream, whose values are their numbers; those of both topics are made by `stream` and `table`."""
    return Workload([], [(record.key, record.value) for record in stream(trial)])


def stream(trial: Trial) -> list[Stamped]:
    """The stream: numbers from 1 on, behind the entries that belong to each."""
    parameters, rng = values(trial), random.Random(trial.seed)
    step = parameters.entries + 1
    return [
        Stamped(rng.randrange(parameters.keys), number, number * step) for number in range(1, parameters.records + 1)
    ]


def table(trial: Trial) -> list[Stamped]:
    """The table: entries that are drawn, of keys that are drawn, one a millisecond but for those of the stream."""
    parameters, rng = values(trial), random.Random(f"{trial.seed} {ENTRIES}")
    step = parameters.entries + 1
    return [
        Stamped(rng.randrange(parameters.keys), rng.randint(1, LARGEST), at)
        for at in range(step, (parameters.records + 1) * step)
        if at % step
    ]


def app(trial: Trial) -> Mapping[str, Any]:
    """Settings of the topology `two-topics`."""
    return {
        "input.topic": trial.topic("input"),
        "entries.topic": trial.topic(ENTRIES),
        "output.topic": trial.topic("output"),
        "stores": values(trial).stores,
        "caching": False,
    }


def config(trial: Trial) -> Mapping[str, str]:
    """How long a task waits for the other topic (KIP-695), and fetches so small that one is often empty."""
    parameters = values(trial)
    waits = FOR_WHAT_COMES if parameters.lag else FOR_WHAT_IS_THERE
    return {
        "processing.guarantee": "exactly_once_v2",
        "num.standby.replicas": "0",
        "num.stream.threads": "1",
        "commit.interval.ms": "100",
        "max.task.idle.ms": str(NOT_AT_ALL if parameters.unordered else waits),
        # A task often has records of one topic only.
        "main.consumer.max.partition.fetch.bytes": "4096",
        "main.consumer.max.poll.records": "100",
        "buffered.records.per.partition": "100",
        **tasks_come_back(),
        **membership(parameters),
    }


# --- drive ---------------------------------------------------------------------------------------------------


def drive(lab: ScenarioContext) -> Exercise:
    """Inject the fault, or a second instance join, while tasks read both topics, and drain."""
    return _while_it_lags(lab) if values(lab.trial).lag else _from_a_backlog(lab)


def _from_a_backlog(lab: ScenarioContext) -> Exercise:
    """All records are there before an instance starts."""
    of_stream, of_table = stream(lab.trial), table(lab.trial)
    with lab.phase("backlog"):
        begin = _begin(lab, of_stream)
        _send(lab, "table", of_table, begin, ENTRIES).await_delivered()
        _send(lab, "stream", of_stream, begin, "input").await_delivered()
    with lab.phase("start"):
        lab.instances.start(NAME)
        if (fault := values(lab.trial).injected) is None:
            exercise = _join(lab, lambda: None)
        else:
            lab.instances.start(OTHER)
            lab.await_("a record to be processed", lambda: count_processed(lab) > 0)
            exercise = Exercise.of(run_fault(fault, lab, lambda: None))
    with lab.phase("drain"):
        lab.await_drained()
    with lab.phase("leave"):
        lab.close_instances()
    return exercise


def _while_it_lags(lab: ScenarioContext) -> Exercise:
    """Records flow into both topics, into that of the table later."""
    of_stream, of_table = stream(lab.trial), table(lab.trial)
    fault, rate = values(lab.trial).injected, RATE
    with lab.phase("start"):
        lab.instances.start(NAME)
        if fault:
            start_other(lab)
    with lab.phase("lag"):
        begin = _begin(lab, of_stream)
        bulks = [_send(lab, "stream", of_stream, begin, "input", rate)]
        lab.holds_within(values(lab.trial).lag / 1_000, lambda: False)
        bulks.append(_send(lab, "table", of_table, begin, ENTRIES, rate * values(lab.trial).entries))
    with lab.phase("fault"):
        exercise = _move(lab, fault, bulks)
    with lab.phase("rest"):
        for bulk in bulks:
            bulk.full_speed()
        for bulk in bulks:
            bulk.await_delivered()
        for name in list(lab.instances.running):
            lab.instances.stop(name, leave_group=True)
        lab.instances.start(LAST, _last_release(lab), {"max.task.idle.ms": str(_for_the_rest(lab))})
        lab.await_drained()
    with lab.phase("leave"):
        lab.close_instances()
    return exercise


def _begin(lab: ScenarioContext, of_stream: Sequence[Stamped]) -> int:
    """The time of the first record, in epoch milliseconds, so that the last one is made now."""
    return int(lab.now() * 1_000) - of_stream[-1].at


def _send(
    lab: ScenarioContext, name: str, records: Sequence[Stamped], begin: int, role: str, rate: float | None = None
) -> Bulk:
    of_records = [(record.key, record.value) for record in records]
    return lab.produce(name, of_records, rate, [begin + record.at for record in records], role)


def _move(lab: ScenarioContext, fault: Fault | None, bulks: Sequence[Bulk]) -> Exercise:
    """Have tasks move while records flow."""

    def go_on(seconds: float) -> None:
        for bulk in bulks:
            bulk.make_last(seconds)

    if fault is None:
        return _join(lab, lambda: go_on(LASTS))
    return Exercise.of(run_fault(fault, lab, lambda: go_on(fault.lasts)))


def _join(lab: ScenarioContext, slow_down: Callable[[], None]) -> Exercise:
    """Have a second instance join and take a task over while records are left."""
    lab.holds_within(WITHIN, lambda: lab.count_committed() > 0)
    slow_down()
    other = lab.instances.start(OTHER)
    took = lab.holds_within(LASTS, lambda: runs_its_task(other)) and lab.count_committed() < _all(lab)
    summary = f"took over {', '.join(other.tasks('active'))}" if took else "took no task over"
    return Exercise(took, f"{OTHER} joined and {summary} while records were left.", all_steps_tried=took)


def _all(lab: ScenarioContext) -> int:
    return values(lab.trial).records * (1 + values(lab.trial).entries)


def _last_release(lab: ScenarioContext) -> Release:
    """Where a rolling bounce has gone; else the only one."""
    cell = lab.trial.cell
    return cell.streams if rolling_bounce.Parameters.of(lab.parameters).back else cell.running


def _for_the_rest(lab: ScenarioContext) -> int:
    return NOT_AT_ALL if values(lab.trial).unordered else FOR_WHAT_IS_THERE


def refusal(trial: Trial) -> str | None:
    """Refuses another release otherwise than instance by instance, and a membership that the releases lack."""
    cell, parameters = trial.cell, values(trial)
    return refuse_group(cell, parameters, on_disk=parameters.stores == "rocksdb")


# --- system --------------------------------------------------------------------------------------------------

SYSTEM = System(
    topology="two-topics",
    roles={
        "input": Role(),
        ENTRIES: Role(committed=False, plays="input"),  # no transaction writes to it
        "output": Role(value_bytes=8),
    },
    promises=("time-order",),
    stores=0,  # what the table holds shows in the output
    joins=("stream-table",),
)
SCENARIO = Scenario(
    name="two-topics",
    title="A task takes the records of two topics in the order of their timestamps (KIP-695)",
    parameters=Parameters,
    faults=OF_GROUPS,
    variants=VARIANTS,
    system=lambda _: SYSTEM,
    partitions=lambda trial: values(trial).partitions,
    workload=workload,
    app=app,
    config=config,
    drive=drive,
    positive_control=("UNORDERED", "4.3.1"),
    refusal=refusal,
    seconds=25,
)
