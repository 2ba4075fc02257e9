"""KAFKA-14862: when two streams are joined by time, each task must have a clock of its own.

A record of a left or outer join that finds no other within the window is emitted alone, once, as soon as its window has
closed by the task's stream time: the time of the newest record that the task has seen. Releases with the bug keep one
such clock for all tasks of an instance. If one task is ahead of another, records of the other are emitted alone before
their match has arrived, and those that waited for their window to close are never emitted.

The window need not be symmetric (KAFKA-15417): a record of the right stream may be older than one of the left by
`before` and younger by `window`. Releases with that bug look for records that waited too long on the wrong side, and
emit records alone that have a match (variants `ASYMMETRIC` and `ASYMMETRIC_LEFT`). There all tasks are in step.

One task is put ahead: all partitions but the first get records that are `lead` ms younger, and when these are
committed, the first gets its own. Records of a partition have growing timestamps, so what must be emitted is a function
of the input alone. A last record of each partition closes all windows. Releases look for closed windows only once a
second of wall-clock time; an internal setting, which Kafka's own tests use, makes them look at each record.

Records may arrive out of order (variants `OUT_OF_ORDER` and `LONG_GRACE`). One that is older than the youngest of its
partition by the grace at most must find all its matches, and is emitted alone only if none comes. Releases emit such a
record at once if its window has ended, though its grace has not: the match may come later, and is emitted, too
(KAFKA-19536, every release from 3.1.0 on). It takes a grace that is longer than the window, so `OUT_OF_ORDER` has a
shorter one. Of a record that comes later than that, Kafka Streams may still find some matches, since stores drop what
is old bit by bit. So no result is due in which it takes part, and none is wrong.

Where a fault is injected, all partitions stay in step, and the trial is exercised when the fault took effect. The
windows, and the records that wait for them to close, are restored from changelogs. A task's stream time need not be:
the next record of the partition is the youngest one, so the clock is right again before anything is judged by it, and
what must be emitted is the same function of the input.

Where stores keep headers (KIP-1271, variants with `HEADERS`) each record has one of its own, and the windows in a store
must have those of their changelog, also where they were restored from it.
"""

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from onceproof.faults import OF_GROUPS, state_lost
from onceproof.faults.base import Fault
from onceproof.model.cell import Trial
from onceproof.model.files import StorePlan
from onceproof.model.parameter import Share
from onceproof.model.release import Release
from onceproof.scenarios.base import (
    HEADERS,
    ROLLING,
    ROLLING_HEADERS,
    Exercise,
    Group,
    Guarantee,
    Role,
    Scenario,
    ScenarioContext,
    Stamped,
    StoreHeaders,
    System,
    Variant,
    Workload,
    membership,
    partition_of_key,
    refuse_headers,
    store_headers,
    switches_headers,
    values_in,
    variants_of,
)
from onceproof.scenarios.internal_topics import keep_joined
from onceproof.scenarios.two_instances import inject, refuse_at_least_once, refuse_group, start_other

NAME = "instance-1"
JOINS = ("inner", "left", "outer")  # a fact is the place of one
FIRST = 0  # the partition that stays behind
WAITS_FROM = Release(3, 1, 0)  # KIP-633
OWN_CLOCKS_FROM = Release(3, 4, 1)  # KAFKA-14862
FLOWING = 20_000  # records while a fault is active

# --- variants ------------------------------------------------------------------------------------------------


class Parameters(Group, StoreHeaders):
    """The windows of the join, and how late records may be, within the grace period and beyond."""

    keys: int = Field(200, ge=1, description="keys of the records")
    records: int = Field(6_000, ge=2, description="records of both streams, a millisecond apart")
    window: int = Field(100, ge=1, description="ms that records which are joined may be apart")
    before: int = Field(0, ge=0, description="ms that one of the right stream may be the older one; 0: as window")
    grace: int = Field(20, ge=1, description="ms for which a window waits for late records")
    lead: int = Field(60_000, ge=1, description="ms that all tasks but the first are ahead in the second half")
    out_of_order: Share = Field(0.0, description="share of the records that are out of order, within the grace")
    late: Share = Field(0.0, description="share of the records that come too late: by more than the grace")
    join: Literal["inner", "left", "outer"] = Field("outer", description="kind of the join")
    partitions: int = Field(2, ge=1, description="partitions of the input")
    guarantee: Guarantee = Field("exactly_once_v2", description="processing guarantee")


DISORDERED = {"out.of.order": 0.3, "late": 0.05, "grace": 80, "partitions": 1}
LONG_GRACE = {**DISORDERED, "grace": 500}
LONG_WINDOWS = {"records": FLOWING, "keys": 5_000, "window": 30_000}
VARIANTS = variants_of(
    Variant("DEFAULT_CONFIG", "An outer join; of two tasks of a thread one is a minute ahead."),
    Variant("LEFT", "As DEFAULT_CONFIG, to the left.", {"join": "left"}),
    Variant("AT_LEAST_ONCE", "As DEFAULT_CONFIG without transactions.", {"guarantee": "at_least_once"}),
    Variant("INNER", "As DEFAULT_CONFIG, inner: no record is emitted alone.", {"join": "inner"}),
    Variant("ONE_TASK", "As DEFAULT_CONFIG with one partition, so that there is no other task.", {"partitions": 1}),
    Variant(
        "KILLED",
        "All tasks in step; an instance is killed and started again.",
        {"fault": "instance-kill", "records": FLOWING},
    ),
    Variant(
        "HEADERS",
        "As KILLED; each record has a header, which stores keep (KIP-1271); windows hold all records to the end.",
        {"fault": "instance-kill", **LONG_WINDOWS, HEADERS: True},
    ),
    Variant(
        "ASYMMETRIC",
        "All tasks in step; a match of the left stream may be much younger, but hardly older.",
        {"window": 300, "before": 20, "records": 10_000},
    ),
    Variant(
        "ASYMMETRIC_LEFT",
        "As ASYMMETRIC, to the left.",
        {"window": 300, "before": 20, "records": 10_000, "join": "left"},
    ),
    Variant(
        "OUT_OF_ORDER",
        "One task; three records in ten are out of order within the grace, and one in twenty is too late.",
        DISORDERED,
    ),
    Variant("OUT_OF_ORDER_LEFT", "As OUT_OF_ORDER, to the left.", {**DISORDERED, "join": "left"}),
    Variant("LONG_GRACE", "As OUT_OF_ORDER, with a grace that is longer than the window (KAFKA-19536).", LONG_GRACE),
    Variant("LONG_GRACE_LEFT", "As LONG_GRACE, to the left.", {**LONG_GRACE, "join": "left"}),
    Variant("LONG_GRACE_INNER", "As LONG_GRACE, inner: no record is emitted alone.", {**LONG_GRACE, "join": "inner"}),
    replace(ROLLING, parameters={**ROLLING.parameters, "records": FLOWING}),
    replace(ROLLING_HEADERS, parameters={**ROLLING_HEADERS.parameters, **LONG_WINDOWS}),
)


values = values_in(Parameters, VARIANTS)


def workload(trial: Trial) -> Workload:
    """Records with numbers that grow, as values above 0 of the left stream, below 0 of the right one.

    First those of all partitions in step, then what comes of all but the first partition, then what comes of that;
    where they all stay in step, in the order of the numbers. The time of a record is its number, less what it is late.
    """
    parameters = values(trial)
    rng = random.Random(trial.seed)
    drawn = [
        (rng.randrange(parameters.keys), number if rng.random() < 0.5 else -number)
        for number in range(1, parameters.records + 1)
    ]
    made = [Stamped(key, value, abs(value) - _delay(parameters, rng)) for key, value in drawn]
    last = parameters.records + parameters.window + parameters.grace + 1
    closing = [Stamped(parameters.keys + place, last, last) for place in range(parameters.partitions)]  # neighbours
    half = _in_step(parameters)
    rest = [*made[half:], *closing]
    if not _stay_in_step(parameters):
        rest.sort(key=lambda record: partition_of_key(record.key, parameters.partitions) == FIRST)
    records = [*made[:half], *rest]
    return Workload(
        [],
        [(record.key, record.value) for record in records],
        times=[record.at for record in records],
        labelled=parameters.store_headers or switches_headers(parameters),
    )


def _delay(parameters: Parameters, rng: random.Random) -> int:
    """How much older a record is than those around it, in ms; a late one by more than the grace."""
    if not _is_disordered(parameters):
        return 0
    drawn = rng.random()
    if drawn < parameters.late:
        return rng.randint(parameters.grace + 1, 2 * (parameters.window + parameters.grace))
    return rng.randint(0, parameters.grace) if drawn < parameters.late + parameters.out_of_order else 0


def _before(parameters: Parameters) -> int:
    """How much older one of the right stream may be, in ms."""
    return parameters.before or parameters.window


def _is_asymmetric(parameters: Parameters) -> bool:
    return bool(_before(parameters) != parameters.window)


def _is_disordered(parameters: Parameters) -> bool:
    return bool(parameters.out_of_order or parameters.late)


def _stay_in_step(parameters: Parameters) -> bool:
    """Whether no task is put ahead of another."""
    return parameters.injected is not None or _is_asymmetric(parameters) or _is_disordered(parameters)


def _in_step(parameters: Parameters) -> int:
    return parameters.records // 2


def app(trial: Trial) -> Mapping[str, Any]:
    """Settings of the topology `stream-join`."""
    parameters = values(trial)
    return {
        "input.topic": trial.topic("input"),
        "output.topic": trial.topic("output"),
        "join": parameters.join,
        "caching": False,
        "window.ms": parameters.window,
        "grace.ms": parameters.grace,
        **({"before.ms": parameters.before} if _is_asymmetric(parameters) else {}),
    }


def config(trial: Trial) -> Mapping[str, str]:
    """Unmatched records are looked for at each record: Kafka's own interval of 1 s is internal (KAFKA-10847)."""
    parameters = values(trial)
    return {
        "processing.guarantee": parameters.guarantee,
        "num.standby.replicas": "0",
        "num.stream.threads": "1",
        "commit.interval.ms": "100",
        **membership(parameters),
        **store_headers(parameters),
        "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__": "0",
    }


# --- drive ---------------------------------------------------------------------------------------------------


def drive(lab: ScenarioContext) -> Exercise:
    """All partitions in step, then all but the first ahead, then the first one; or in step under a fault."""
    parameters = values(lab.trial)
    if fault := parameters.injected:
        return _with_fault(lab, fault)
    if _stay_in_step(parameters):
        return _all_in_step(lab)
    records, times, half = lab.workload.second, _times(lab, parameters.lead), _in_step(parameters)
    in_step, rest = records[:half], records[half:]
    ahead = [record for record in rest if partition_of_key(record[0], parameters.partitions) != FIRST]
    behind = rest[len(ahead) :]
    until = half + len(ahead)
    with lab.phase("in-step"):
        instance = lab.instances.start(NAME)
        lab.produce("in-step", in_step, timestamps=times[:half])
        lab.await_(f"{half:,} records to be committed", lambda: lab.count_committed() >= half)
    tasks = instance.tasks("active")
    with lab.phase("ahead"):
        lab.produce("ahead", ahead, timestamps=[parameters.lead + at for at in times[half:until]])
        lab.await_(f"{len(ahead):,} records to be committed", lambda: lab.count_committed() >= until)
    if ahead:
        lab.note("ahead", tasks=tasks, records=len(ahead))
    with lab.phase("behind"):
        lab.produce("behind", behind, timestamps=times[until:])
        lab.await_drained()
    with lab.phase("leave"):
        lab.close_instances()
    reason = (
        f"One instance had {len(tasks)} task{'' if len(tasks) == 1 else 's'} of a join ({parameters.join}); when "
        f"{len(ahead):,} records had come that were {parameters.lead:,} ms ahead, {len(behind):,} came of "
        "another task."
    )
    return Exercise(parameters.join != "inner" and len(tasks) > 1 and bool(ahead), reason, all_steps_tried=True)


def _times(lab: ScenarioContext, lead: int = 0) -> list[int]:
    """Those of the records: the youngest one, by some ms ahead of all others, is made now."""
    begin = int(lab.now() * 1_000) - lead - max(lab.workload.times)
    return [begin + at for at in lab.workload.times]


def facts(parameters: Parameters) -> dict[str, int]:
    """The bounds of the windows and the grace period, in ms, and the join, as a number."""
    return {
        "window": parameters.window,
        "before": _before(parameters),
        "grace": parameters.grace,
        "join": JOINS.index(parameters.join),
    }


def _all_in_step(lab: ScenarioContext) -> Exercise:
    """All records in step, without a fault."""
    parameters, records = values(lab.trial), lab.workload.second
    with lab.phase("in-step"):
        lab.instances.start(NAME)
        lab.produce("in-step", records, timestamps=_times(lab))
        lab.await_drained()
    with lab.phase("leave"):
        lab.close_instances()
    reason = (
        f"{len(records):,} records of a join ({parameters.join}) in which one of the right stream may be older by "
        f"{_before(parameters):,} ms and younger by {parameters.window:,} ms."
    )
    if not _is_disordered(parameters):
        return Exercise(parameters.join != "inner", reason, all_steps_tried=True)
    delays = [abs(value) - at for (_, value), at in zip(records, lab.workload.times, strict=True)]
    late = sum(delay > parameters.grace for delay in delays)
    out_of_order = sum(delay > 0 for delay in delays) - late
    in_time = f"{out_of_order:,} were out of order by up to {parameters.grace:,} ms, the grace"
    reason = f"{reason} {in_time}, and {late:,} by more."
    return Exercise(out_of_order + late > 0, reason, all_steps_tried=True)


def _with_fault(lab: ScenarioContext, fault: Fault) -> Exercise:
    """All records in step while a fault hits one of two instances."""
    times = _times(lab)
    with lab.phase("start"):
        lab.instances.start(NAME)
        start_other(lab)
    fault_outcome = inject(lab, fault, "in-step", lab.workload.second, times)
    with lab.phase("leave"):
        lab.close_instances()
    return Exercise.of(fault_outcome)


def refusal(trial: Trial) -> str | None:
    """Refuses a release that does not wait for windows to close, a fault without transactions, or a restart."""
    cell, parameters = trial.cell, values(trial)
    oldest = min(cell.streams, cell.running)
    if parameters.before > parameters.window:
        return f"before is {parameters.before}, but may be window ({parameters.window}) at most; 0 is for the same."
    if oldest < WAITS_FROM:
        return (
            f"Kafka Streams {oldest} does not wait for a window to close before a join emits a record alone "
            f"(KIP-633); choose {WAITS_FROM} or later."
        )
    clock_matters = parameters.injected or (_is_disordered(parameters) and parameters.partitions > 1)
    if clock_matters and parameters.join != "inner" and oldest < OWN_CLOCKS_FROM:
        return (
            f"tasks of Kafka Streams {oldest} share a clock (KAFKA-14862), so that the output would depend on "
            f"which of them an instance has; choose {OWN_CLOCKS_FROM} or later, leave out fault, or take partitions=1."
        )
    if switches_headers(parameters) and cell.streams.has_store_headers:
        return (
            f"stores of Kafka Streams {cell.streams} that keep no headers have them in their changelogs, so what a "
            "store must have hangs on where it was restored; roll from 4.2 or earlier."
        )
    return (
        refuse_at_least_once(parameters.injected, parameters.guarantee)
        or refuse_headers(cell, parameters)
        or refuse_group(cell, parameters)
    )


# --- system --------------------------------------------------------------------------------------------------

SYSTEM = System(
    topology="stream-join",
    roles={"input": Role(), "output": Role(value_bytes=8)},
    promises=("matches", "entries"),
    stores=0,  # the keys of its stores are no integers
    joins=("stream-stream",),
)


_WINDOWS = {
    "inner": ("joined-this-join-store", "joined-other-join-store"),
    "left": ("joined-this-join-store", "joined-outer-other-join-store"),
    "outer": ("joined-outer-this-join-store", "joined-outer-other-join-store"),
}


def system(trial: Trial) -> System:
    """The topology; its changelogs keep records for as long as the parameters say."""
    parameters = values(trial)
    retention = _before(parameters) + parameters.window + parameters.grace
    stores = {name: StorePlan("windows", retention) for name in _WINDOWS[parameters.join]}
    if parameters.join != "inner":
        stores[f"joined-{parameters.join}-shared-join-store"] = StorePlan("waiting")
    roles = {f"{name}-changelog": Role(store=store) for name, store in stores.items()}
    return replace(
        SYSTEM, roles={**SYSTEM.roles, **roles}, kept={"joined-.*(this|other)-join-.*": keep_joined(retention)}
    )


SCENARIO = Scenario(
    name="stream-join",
    title="A join of streams by time emits each record with its matches, or alone (KAFKA-14862)",
    parameters=Parameters,
    faults=(*OF_GROUPS, state_lost.FAULT),
    variants=VARIANTS,
    system=system,
    partitions=lambda trial: values(trial).partitions,
    workload=workload,
    app=app,
    config=config,
    facts=lambda trial: facts(values(trial)),
    drive=drive,
    positive_control=("DEFAULT_CONFIG", "3.4.0"),
    refusal=refusal,
    seconds=6,
    alike="records",
)
