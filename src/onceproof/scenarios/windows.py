"""Aggregates by windows of time are what the records of their windows give, whatever happens to the application.

Records are summed by key and by windows that tumble, hop, or are sessions. A window takes records until the time of its
task, which is that of the youngest record of the partition so far, has passed its end by the grace; a session that
ends may still grow for as long as its gap. Either each update is emitted, or they are held back (`suppress`) until the
window has closed: then its last one is emitted, once. So the output is a function of the order of a partition.

What can go wrong: results that are held back are in a buffer with a changelog of its own, apart from the store of the
windows. The new owner of a task must restore both as of one commit, or windows are emitted twice, with another sum,
never, or too early. That holds for any fault that is injected while windows are open.

Records are out of order by less than the grace. Some are much too late: they must be dropped. When the task is
restored, Kafka Streams has forgotten its time (KAFKA-20099): if the first record that follows is too late, it is
counted, and a window that has been emitted is emitted again. So those that are too late come before the fault only, but
in the variant `LATE`, which must be red on every release. A last record of each partition closes the windows before it.

A session that an older record has extended is in the changelog with the time of that record. Under at-least-once 4.2.2
and 4.4.0 restore what is young enough by that time, and not by the end of the session: so a session is left out that is
still open, and the next record of its key begins another one (variant `EXTENDED`). It is exercised when sessions were
extended so, and the store was restored.

Results are also emitted without a buffer when their window closes: the aggregation itself emits them
(`EmitStrategy.onWindowClose`, KIP-825). It looks for windows that have closed once a second of the wall clock, in the
store of the windows, and commits up to which time it has looked with the positions. The new owner of a task must
continue from there, or windows are emitted twice or never. The store must keep them for that second: by default it
keeps a window for its size and grace alone. So an application that catches up loses most windows (variant
`ON_CLOSE_BRIEF`, which must be red on each release from 3.4.0 on). A session is found for as long as its segment of the
store is there, which has a minute. When the task has left that minute, those are lost that closed since the last look
(`ON_CLOSE_SESSION_SEGMENTS`, which must be red likewise). So in `ON_CLOSE_SESSION` all records are in one segment.

A task that reads two topics commits the position of each, along with that time. Releases that know a position by the
records that came alone have none of a topic that stays empty, and the thread dies of it (KAFKA-19775, variant
`ON_CLOSE_MERGED`). The first answer of a broker has all topics of the task, later ones only those with records. So the
first one must be past when records come, or the position of the empty topic is known from it, too.

A window that slides ends with a record, or begins just after one: so each record makes one or two, and what a new one
holds is taken from those around it in the store. One that does both is made twice, so that its first update is emitted
twice (variant `SLIDING_UPDATES`, which must be red on each release).

Updates may also be held back for a time of their own (`Suppressed.untilTimeLimit`), which a younger update of the
window does not begin again. Kafka Streams forgets the time of that buffer, too, so there the records that flow are in
order.

A session that has been emitted must not be emitted again. If its store keeps it for longer, a record that is out of
order by more than the grace, and not too late to begin a session, still finds it, and it is emitted once more, grown
(variant `SESSION_KEPT`, which must be red on each release).

A store of windows is split into segments by time, each of them a database. One that has expired is deleted, file by
file. A process that is killed meanwhile leaves half a database, which RocksDB does not open. Nothing needs it, so the
application must run again: at the second start at the latest (variant `HALTED`, red from 4.3.0 on, and
`HALTED_AT_LEAST_ONCE`, red on each release). There the instance ends itself at that very place, as the agent has it do,
and is started once more if it dies of that. It is exercised when half a segment was left.

A trial is *exercised* when the fault took effect while some of the records that flowed were committed and others were
still to come: the youngest window of a task is always open, and it was closed afterwards.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from onceproof.faults import OF_DISK, OF_GROUPS, instance_kill, pause
from onceproof.faults.base import run_fault
from onceproof.model.cell import Cell, Trial
from onceproof.model.files import StorePlan
from onceproof.model.parameter import Share
from onceproof.model.phrases import NO_DATABASE, NOT_RESTORED
from onceproof.model.release import Release
from onceproof.model.window_history import SEGMENT
from onceproof.scenarios.base import (
    HALTS,
    ROLLING,
    TRANSACTIONAL,
    Exercise,
    Group,
    Guarantee,
    Role,
    Scenario,
    ScenarioContext,
    Stamped,
    StoreKind,
    System,
    TransactionalStores,
    Variant,
    Workload,
    membership,
    refuse_fault_of_disk,
    runs_its_task,
    transactional_stores,
    values_in,
    variants_of,
)
from onceproof.scenarios.internal_topics import keep_windows
from onceproof.scenarios.two_instances import OTHER, refuse_at_least_once, refuse_group, start_other

NAME = "instance-1"
STORE = "windowed-sums"
ENTRIES = "entries"
IDLE = "idle"  # the topic that stays empty
KINDS = ("tumbling", "hopping", "session", "sliding")  # a fact is the place of one
RATE = 2_000.0  # records/s while the fault is active
LASTS = 15.0  # seconds for which records last when an instance joins
TAKEN_WITHIN = 60.0  # seconds that it has to be given tasks
MOST = 100  # of a value
SUM_BITS = 22  # that the application has for a sum
TOO_LATE = 0.1  # share of the first records
OUT_OF_ORDER = 0.3  # share of the others
KEPT = 60_000  # ms; more than records last
EXPIRED = 180_000  # ms: more than the retention and a segment, which is a minute at least
HALTED_WITHIN = 20.0  # seconds
FETCHED_WITHIN = 2.0  # seconds after which a consumer has had its first answer, which may wait for 0.5 s for records
EMITTED_EVERY = 1.0  # seconds, the default of Kafka Streams
HAS_ON_CLOSE = Release(3, 3, 0)  # since which windows can be emitted when they close

# --- variants ------------------------------------------------------------------------------------------------

KILLED = {"fault": instance_kill.FAULT.name}
AT_LEAST_ONCE = "at_least_once"
ON_CLOSE = {"suppressed": False, "on.close": True, "kept.longer": True}
EXTENDED: dict[str, Any] = {
    "kind": "session",
    "size": 6_000,
    "grace": 1,
    "stores": "in-memory",
    "caching": True,
    "guarantee": AT_LEAST_ONCE,
    "extended": 200,
    "first": 4_000,
    "records": 10_000,
}


class Parameters(Group, TransactionalStores):
    """The kind of the windows, when their results are emitted, and for how long stores keep them."""

    kind: Literal["tumbling", "hopping", "session", "sliding"] = Field("tumbling", description="kind of the windows")
    cogrouped: bool = Field(False, description="whether odd values are a stream with an aggregator of its own")
    limit: int = Field(
        0, ge=0, description="ms for which updates are held back, whatever their window; 0 is not at all"
    )
    suppressed: bool = Field(True, description="whether results are held back until their window has closed")
    on_close: bool = Field(False, description="whether the aggregation itself emits windows that have closed (KIP-825)")
    idle_topic: bool = Field(
        False, description="whether a second topic is merged into the input, of which no record ever comes"
    )
    kept_longer: bool = Field(
        False, description=f"whether windows are kept for {KEPT // 1_000} s, or for size and grace only"
    )
    supplied: bool = Field(
        False, description="whether only the supplier of the store says for how long windows are kept"
    )
    two_segments: bool = Field(
        False, description="whether the records lie in two segments of the store of sessions, or in one"
    )
    size: int = Field(
        500,
        ge=2,
        description="ms of a window, or between its ends if it slides; of a session, the gap after which it ends",
    )
    grace: int = Field(100, ge=1, description="ms for which a window waits for records that are out of order")
    keys: int = Field(50, ge=1, description="keys of the records")
    first: int = Field(
        6_000, ge=1, description="records before the fault, a millisecond apart, of which some are too late"
    )
    records: int = Field(24_000, ge=1, description="records that flow when the fault is injected, a millisecond apart")
    late: Share = Field(0.0, description="share of these that is too late")
    partitions: int = Field(4, ge=1, description="partitions of the input")
    standbys: int = Field(0, ge=0, description="standby replicas")
    stores: StoreKind = Field("rocksdb", description="kind of the store of the windows")
    caching: bool = Field(False, description="whether it is cached")
    extended: int = Field(
        0, ge=0, description="sessions that an older record extends, just before the instance is restarted"
    )
    halted: bool = Field(
        False, description="whether the instance is killed while it deletes a segment of the store, and started again"
    )
    guarantee: Guarantee = Field("exactly_once_v2", description="processing guarantee")


VARIANTS = variants_of(
    Variant("DEFAULT_CONFIG", "Tumbling windows, suppressed; an instance is killed.", KILLED),
    Variant("UPDATES", "As DEFAULT_CONFIG; every update is emitted.", {**KILLED, "suppressed": False}),
    Variant(
        "HOPPING", "As DEFAULT_CONFIG; each window begins half a window after the last.", {**KILLED, "kind": "hopping"}
    ),
    Variant("SESSION", "As DEFAULT_CONFIG; sessions.", {**KILLED, "kind": "session", "size": 60}),
    Variant(
        "SESSION_UPDATES",
        "As SESSION; every update is emitted, and that a session is no more.",
        {**KILLED, "kind": "session", "size": 60, "suppressed": False},
    ),
    Variant("SLIDING", "As DEFAULT_CONFIG; windows slide (KIP-450).", {**KILLED, "kind": "sliding", "size": 100}),
    Variant(
        "SLIDING_UPDATES",
        "As SLIDING; every update is emitted.",
        {**KILLED, "kind": "sliding", "size": 100, "suppressed": False},
    ),
    Variant(
        "COGROUPED",
        "As DEFAULT_CONFIG; two streams with an aggregator each are summed together (KIP-150).",
        {**KILLED, "cogrouped": True},
    ),
    Variant(
        "TIME_LIMIT",
        "As DEFAULT_CONFIG; instead each update is held back for 200 ms (Suppressed.untilTimeLimit).",
        {**KILLED, "suppressed": False, "limit": 200},
    ),
    Variant("IN_MEMORY", "As DEFAULT_CONFIG with windows in memory.", {**KILLED, "stores": "in-memory"}),
    Variant("CACHED", "As DEFAULT_CONFIG with a cached store.", {**KILLED, "caching": True}),
    Variant(
        "ON_CLOSE",
        "As REBALANCED; instead of suppress the aggregation emits what has closed (KIP-825).",
        ON_CLOSE,
    ),
    Variant("ON_CLOSE_KILLED", "As ON_CLOSE; instead an instance is killed.", {**KILLED, **ON_CLOSE}),
    Variant(
        "ON_CLOSE_MERGED",
        "As ON_CLOSE; a second topic, which stays empty, is merged into the input (KAFKA-19775).",
        {**ON_CLOSE, "idle.topic": True},
    ),
    Variant("ON_CLOSE_HOPPING", "As ON_CLOSE; windows hop.", {**ON_CLOSE, "kind": "hopping"}),
    Variant(
        "ON_CLOSE_SESSION",
        "As ON_CLOSE; sessions, which are kept for as long as the DSL keeps them by default.",
        {**ON_CLOSE, "kind": "session", "size": 60, "kept.longer": False},
    ),
    Variant(
        "ON_CLOSE_SESSION_SEGMENTS",
        "As ON_CLOSE_SESSION; the records lie in two segments of the store, of which the first is dropped.",
        {**ON_CLOSE, "kind": "session", "size": 60, "kept.longer": False, "two.segments": True},
    ),
    Variant(
        "ON_CLOSE_BRIEF",
        "As ON_CLOSE; windows are kept for as long as the DSL keeps them by default, which is too short.",
        {**ON_CLOSE, "kept.longer": False},
    ),
    Variant(
        "SUPPLIED",
        "As REBALANCED; only the supplier of the store says that windows are kept for a minute.",
        {"kept.longer": True, "supplied": True},
    ),
    Variant(
        "SESSION_KEPT",
        "As REBALANCED; sessions that are kept for longer than gap and grace.",
        {"kind": "session", "size": 60, "kept.longer": True},
    ),
    Variant("TRANSACTIONAL", "As DEFAULT_CONFIG with transactional stores (KIP-892).", {**KILLED, TRANSACTIONAL: True}),
    Variant(
        "PAUSED",
        "As DEFAULT_CONFIG; instead an instance stands still, loses its tasks, and wakes as a zombie.",
        {"fault": pause.FAULT.name},
    ),
    Variant("REBALANCED", "As DEFAULT_CONFIG; instead a second instance joins and takes tasks over."),
    Variant(
        "LATE",
        "As REBALANCED; most records that flow are too late, so that one comes first in a moved task (KAFKA-20099).",
        {"late": 0.9},
    ),
    Variant(
        "EXTENDED",
        "Sessions in memory, cached, without transactions; older records extend some, then the instance is restarted.",
        EXTENDED,
    ),
    Variant(
        "HALTED",
        "One instance, killed while it deletes a segment of the store that has expired, and started again.",
        {"halted": True},
    ),
    Variant("HALTED_AT_LEAST_ONCE", "As HALTED, without transactions.", {"halted": True, "guarantee": AT_LEAST_ONCE}),
    ROLLING,
)


values = values_in(Parameters, VARIANTS)


def refusal(trial: Trial) -> str | None:
    """Why these windows cannot be had: values that exclude each other, or a release that lacks them."""
    cell, parameters = trial.cell, values(trial)
    on_disk = parameters.stores == "rocksdb"
    if reason := refuse_fault_of_disk(parameters, on_disk=on_disk):
        return reason
    if parameters.on_close and parameters.suppressed:
        return "windows are emitted either from suppress or when they close; leave out suppressed or on.close."
    if parameters.on_close and (reason := refuse_on_close(cell)):
        return reason
    if reason := _refuse_held_back(parameters):
        return reason
    if parameters.supplied and (parameters.on_close or parameters.kind == "session"):
        return "supplied is for windows that a supplier keeps; leave out on.close, and take another kind than session."
    if parameters.caching and not _finals_only(parameters):
        return "of a cached store not every update is emitted; take suppressed=true with caching=true."
    if (parameters.first + parameters.records + 1) * MOST >= 1 << SUM_BITS:
        return f"a sum has {SUM_BITS} bits; take fewer records, at most {(1 << SUM_BITS) // MOST - 1:,} in all."
    if parameters.two_segments and not _are_dropped(parameters):
        return (
            "two.segments is for sessions that are emitted when they close and are kept no longer; take kind=session "
            "and on.close=true without kept.longer, or leave out two.segments."
        )
    if parameters.extended and (reason := _refuse_extended(parameters)):
        return reason
    if parameters.halted and (not on_disk or parameters.injected or parameters.extended or parameters.kept_longer):
        return (
            "halted is for a store on disk, of which segments expire, without a fault; leave out stores, fault, "
            "extended and kept.longer, or halted."
        )
    return refuse_at_least_once(parameters.injected, parameters.guarantee) or refuse_group(
        cell, parameters, on_disk=on_disk
    )


def refuse_on_close(cell: Cell) -> str | None:
    """Why the releases of a cell cannot emit windows when they close, if they cannot."""
    for release in (cell.streams, cell.running):
        if not release.since(HAS_ON_CLOSE):
            return f"Kafka Streams {release} lacks EmitStrategy.onWindowClose (KIP-825); take {HAS_ON_CLOSE} or later."
    return None


def _refuse_held_back(parameters: Parameters) -> str | None:
    """Refuses results of which a record makes several, or none that is known."""
    if parameters.limit and (_finals_only(parameters) or parameters.late or parameters.kind != "tumbling"):
        return (
            "limit is for each update of windows that tumble, and records that are not late; leave out suppressed, "
            "on.close, late and kind, or limit."
        )
    if parameters.cogrouped and (parameters.on_close or parameters.late or parameters.kind != "tumbling"):
        return (
            "cogrouped is for windows that tumble and records that are not late, since each stream has a time of its "
            "own; leave out on.close, late and kind, or cogrouped."
        )
    return None


def _finals_only(parameters: Parameters) -> bool:
    """Whether only the last result of a window is emitted."""
    return parameters.suppressed or parameters.on_close


def _are_dropped(parameters: Parameters) -> bool:
    """Whether a session that has closed is lost with the segment that it is in."""
    return parameters.kind == "session" and parameters.on_close and not parameters.kept_longer


def retention(parameters: Parameters) -> int:
    """Ms for which the store keeps windows."""
    ends = 2 if parameters.kind == "sliding" else 1  # Kafka Streams asks for both sides of a record
    return KEPT if parameters.kept_longer else ends * parameters.size + parameters.grace


def _refuse_extended(parameters: Parameters) -> str | None:
    """Refuses sessions that could not be extended as they must be."""
    if (
        parameters.kind != "session"
        or not parameters.caching
        or parameters.guarantee != AT_LEAST_ONCE
        or parameters.injected
    ):
        return (
            "extended is for cached sessions without transactions and without a fault; take kind=session, caching=true "
            "and guarantee=at_least_once, or extended=0."
        )
    if parameters.first > parameters.size * 2 // 3:
        return f"the first records must be older than all others; take first={parameters.size * 2 // 3} or fewer."
    return None


def _extend(parameters: Parameters, rng: random.Random) -> list[Stamped]:
    """Old sessions; records that begin sessions, and older ones that extend them; a younger one of each partition.

    After the restart one more of each of the sessions, and others.
    """
    gap, keys, many = parameters.size, parameters.keys, parameters.extended
    sessions, others = range(keys, keys + many), keys + many  # keys
    begun, older, restart = gap * 5 // 3, gap * 5 // 6, gap * 2  # times

    def draw(key: int, at: int) -> Stamped:
        return Stamped(key, rng.randint(1, MOST), at)

    return [
        *(draw(rng.randrange(keys), at) for at in range(parameters.first)),
        *(draw(key, begun) for key in sessions),
        *(draw(key, older) for key in sessions),
        *(draw(others + place, restart - gap // 12) for place in range(parameters.partitions)),
        *(draw(key, restart) for key in sessions),
        *(draw(rng.randrange(keys), at) for at in range(restart + 1, restart + 1 + parameters.records)),
    ]


def _before_restart(parameters: Parameters) -> int:
    """The number of records that are processed before the instance is restarted."""
    return parameters.first + 2 * parameters.extended + parameters.partitions


def generate(trial: Trial) -> list[Stamped]:
    """The records, drawn from the seed: most in order, some a little out of it, some too late.

    The last ones, of neighbouring keys, one a partition, close all other windows.
    """
    parameters, rng, made = values(trial), random.Random(trial.seed), list[Stamped]()
    open_for = parameters.size + parameters.grace
    # Late enough to be near a session that has closed, and not too late to begin one.
    delay = open_for if parameters.kind == "session" and parameters.kept_longer else parameters.grace
    if parameters.extended:
        made = _extend(parameters, rng)
        return [*made, *_closing(parameters, made[-1].at + 2 * open_for)]
    for now in range(parameters.first + parameters.records):
        at, late = now, TOO_LATE if now < parameters.first else parameters.late
        if now >= 4 * open_for and rng.random() < late:
            at -= rng.randint(2 * open_for, 4 * open_for)
        elif rng.random() < OUT_OF_ORDER and (now < parameters.first or not parameters.limit):
            at -= rng.randrange(delay)
        if parameters.halted and now >= parameters.first:
            at += EXPIRED
        made.append(Stamped(rng.randrange(parameters.keys), rng.randint(1, MOST), at))
    return [*made, *_closing(parameters, max(record.at for record in made) + 2 * open_for)]


def _closing(parameters: Parameters, end: int) -> list[Stamped]:
    """The last record of each partition; their keys, which are neighbours, have no other.

    Once more, if results are emitted now and then: so that those that waited when the first of them was read are
    emitted, too.
    """
    first = parameters.keys + parameters.extended + parameters.partitions if parameters.extended else parameters.keys
    last = [Stamped(first + place, 1, end) for place in range(parameters.partitions)]
    return last * (2 if parameters.on_close else 1)


def workload(trial: Trial) -> Workload:
    """Keys and values of the records; none is preloaded, since they have their own times."""
    made = generate(trial)
    return Workload([], [(record.key, record.value) for record in made], times=[record.at for record in made])


def app(trial: Trial) -> Mapping[str, Any]:
    """Settings of the topology `windows`."""
    parameters = values(trial)
    return {
        "input.topic": trial.topic("input"),
        "output.topic": trial.topic("output"),
        **({"idle.topic": trial.topic(IDLE)} if parameters.idle_topic else {}),
        "kind": parameters.kind,
        "cogrouped": parameters.cogrouped,
        **({"limit.ms": parameters.limit} if parameters.limit else {}),
        "suppressed": parameters.suppressed,
        "on.close": parameters.on_close,
        "retention.ms": retention(parameters),
        "supplied": parameters.supplied,
        "size.ms": parameters.size,
        "grace.ms": parameters.grace,
        "stores": parameters.stores,
        "caching": parameters.caching,
    }


def config(trial: Trial) -> Mapping[str, str]:
    """Frequent commits, unless the trial needs a cache that is never flushed."""
    parameters = values(trial)
    return {
        "processing.guarantee": parameters.guarantee,
        "num.standby.replicas": str(parameters.standbys),
        "num.stream.threads": "1",
        # The cache is not to be flushed between a record and the older one; a probe of a changelog waits for a poll.
        **(
            {"commit.interval.ms": "3600000", "poll.ms": "1000"}
            if parameters.extended
            else {"commit.interval.ms": "100"}
        ),
        **membership(parameters),
        **transactional_stores(parameters),
    }


# --- drive ---------------------------------------------------------------------------------------------------


def drive(lab: ScenarioContext) -> Exercise:
    """Sum the first records, inject the fault, or an instance join, while more flow, and close all windows."""
    parameters, made = values(lab.trial), len(lab.workload.second)
    fault = parameters.injected
    begin = begins_at(parameters, int(lab.now() * 1_000) - lab.workload.times[-1])  # the youngest record is made now
    times = [begin + at for at in lab.workload.times]
    if parameters.extended:
        return _restart(lab, times)
    if parameters.halted:
        return _halt(lab, times)
    first, one_each = parameters.first, parameters.partitions
    last = one_each * (2 if parameters.on_close else 1)

    def produce(name: str, of: slice, rate: float | None = None) -> Any:
        return lab.produce(name, lab.workload.second[of], rate, timestamps=times[of])

    with lab.phase("first"):
        instance = lab.instances.start(NAME)
        if parameters.idle_topic:
            lab.await_("the instance to have tasks", lambda: runs_its_task(instance))
            lab.holds_within(FETCHED_WITHIN, lambda: False)
        produce("first", slice(first))
        lab.await_(f"{first:,} records to be committed", lambda: lab.count_committed() >= first)
        if fault:
            start_other(lab)
    samples = [(lab.now(), lab.count_committed())]
    with lab.phase("fault" if fault else "rebalance"):
        bulk = produce("flow", slice(first, -last), RATE)

        def flow() -> None:
            bulk.make_last(fault.lasts if fault else LASTS)
            samples.append((lab.now(), lab.count_committed()))

        def flowing(condition: Callable[[], bool]) -> Callable[[], bool]:
            def holds() -> bool:
                flow()
                return condition()

            return holds

        if fault:
            fault_outcome = run_fault(fault, lab, flow)
            bit, reason = fault_outcome.bit, fault_outcome.summary
            struck = next((e["t"] for e in lab.events if e["event"] == "fault" and e["action"] == "applied"), 0)
        else:
            lab.holds_within(LASTS, flowing(lambda: lab.count_committed() > first))
            struck = lab.now() * 1_000
            other = lab.instances.start(OTHER)
            bit = lab.holds_within(TAKEN_WITHIN, flowing(lambda: runs_its_task(other))) and not bulk.is_done()
            reason = f"{OTHER} joined and {'took over ' + ', '.join(other.tasks('active')) if bit else 'took no task'}."
    seen = max((number for at, number in samples if at * 1_000 <= struck), default=0)
    is_open = bool(bit) and first <= seen < made - last
    if is_open:
        lab.note("open-windows", committed=seen)
    with lab.phase("close"):
        bulk.full_speed()
        bulk.await_delivered()
        produce("last", slice(made - last, made - last + one_each))
        lab.await_drained()
        if parameters.on_close:
            since = lab.now()
            lab.await_("the next time that results are emitted", lambda: lab.now() > since + EMITTED_EVERY)
            produce("again", slice(-one_each, None))
            lab.await_drained()
    with lab.phase("leave"):
        lab.close_instances()
    reason = f"{reason} {seen:,} of {made:,} records were committed before, so that windows were open."
    return Exercise(is_open, reason, all_steps_tried=bool(bit))


def begins_at(parameters: Parameters, begin: int) -> int:
    """The time in ms to which those of the records are added, from the earliest one on at which it may be.

    Where sessions are dropped with their segment, all records are in one, or half of those that flow in the next. Where
    the instance ends while it deletes a segment, the first ones come into the middle of one, so that none expires
    before the others come.
    """
    if parameters.halted:
        first = SEGMENT // 2
    elif not _are_dropped(parameters):
        return begin
    elif parameters.two_segments:
        first = -(parameters.first + parameters.records // 2) % SEGMENT
    else:
        first = SEGMENT // 4
    return begin - begin % SEGMENT + first


def _restart(lab: ScenarioContext, times: list[int]) -> Exercise:
    """Have sessions extended, start the only instance again, and have them extended once more."""
    parameters, records = values(lab.trial), lab.workload.second
    before = _before_restart(parameters)
    with lab.phase("first"):
        instance = lab.instances.start(NAME)
        lab.produce("first", records[:before], timestamps=times[:before])
        lab.await_(f"{before:,} records to be processed", lambda: instance.processed >= before)
    with lab.phase("restart"):
        lab.instances.stop(NAME, leave_group=True)
        known = len(lab.events)
        again = lab.instances.start(NAME)
        lab.await_("the instance to be back", lambda: runs_its_task(again))
        restored = sum(event["event"] == "restore" and event["store"] == STORE for event in lab.events[known:])
    with lab.phase("flow"):
        lab.produce("flow", records[before:], timestamps=times[before:])
        rest = len(records) - before
        lab.await_(f"{rest:,} records to be processed", lambda: again.processed >= rest)
    with lab.phase("leave"):
        lab.close_instances()
    reason = (
        f"{parameters.extended:,} sessions were extended by older records; {NAME} was closed cleanly, started "
        f"again, and restored {restored} of {parameters.partitions} partitions of the store."
    )
    return Exercise(restored > 0, reason, all_steps_tried=True)


def _halt(lab: ScenarioContext, times: list[int]) -> Exercise:
    """Have the only instance end while it deletes a segment, and start it again: twice, if it dies of what is left."""
    first, records = values(lab.trial).first, lab.workload.second
    with lab.phase("first"):
        lab.instances.start(NAME, config={HALTS: "true"})
        lab.produce("first", records[:first], timestamps=times[:first])
        lab.await_(f"{first:,} records to be committed", lambda: lab.count_committed() >= first)
    with lab.phase("deletion"):
        lab.produce("flow", records[first:], timestamps=times[first:])
        ended = lab.instances.await_halt(NAME, HALTED_WITHIN)
        halves = half_deleted(lab.instances.state_directory(NAME))
    reason = (
        f"{NAME} {'was killed while it deleted' if ended else 'deleted no segment within'} "
        f"{'a segment' if ended else f'{HALTED_WITHIN:.0f} s'}; half deleted: {', '.join(halves) or 'none'}."
    )
    if halves:
        lab.note("exercised")  # whatever becomes of the restart
    with lab.phase("restart"):
        lab.note("excused", instance=NAME, of=f"{NO_DATABASE.text}|{NOT_RESTORED.text}", starts=1)
        again = lab.instances.start(NAME)
        lab.await_("the instance to be back, or to die", lambda: runs_its_task(again) or "uncaught" in again.last)
        if "uncaught" in again.last:
            lab.instances.stop(NAME)
            again = lab.instances.start(NAME)
            reason = f"{reason} Started again it died of that, and was started once more."
        lab.await_("the instance to be back", lambda: runs_its_task(again))
        lab.await_drained()
    with lab.phase("leave"):
        lab.close_instances()
    return Exercise(bool(halves), reason, all_steps_tried=ended)


def half_deleted(directory: Path) -> list[str]:
    """The segments of a state directory, as task and name, that lack one of the two files that say what is in them."""
    found = []
    for segment in sorted(directory.glob(f"*_*/{STORE}/{STORE}.*/")):
        manifest, current = any(segment.glob("MANIFEST-*")), (segment / "CURRENT").exists()
        if manifest != current:
            found.append(f"{segment.parents[1].name} {segment.name}")
    return found


def facts(parameters: Parameters) -> dict[str, int]:
    """The kind, as a number, times in ms, and which results are emitted."""
    return {
        "kind": KINDS.index(parameters.kind),
        "size": parameters.size,
        "grace": parameters.grace,
        "suppressed": int(_finals_only(parameters)),
        "cogrouped": int(parameters.cogrouped),
        "limit": parameters.limit,
    }


# --- system --------------------------------------------------------------------------------------------------

SYSTEM = System(
    topology="windows",
    roles={"input": Role(), "output": Role(value_bytes=8)},
    promises=("windows", ENTRIES),
    stores=0,  # the keys of its stores are no integers
)


def system(trial: Trial) -> System:
    """The topology; its changelogs and stores keep records for as long as the parameters say."""
    parameters = values(trial)
    kept = {"windowed-sums-changelog": keep_windows(retention(parameters))}
    all_roles = {**SYSTEM.roles, **({IDLE: Role(committed=False, plays="input")} if parameters.idle_topic else {})}
    if parameters.extended:
        reason = "nothing is committed, so that what is in the caches at the end is in no changelog"
        return replace(SYSTEM, roles=all_roles, kept=kept, not_looked_at={ENTRIES: reason})
    store = StorePlan("sessions" if parameters.kind == "session" else "windows", retention(parameters))
    roles = {**all_roles, "windowed-sums-changelog": Role(store=store)}
    if parameters.suppressed:
        roles["windowed-sums-held-store-changelog"] = Role(store=StorePlan("buffer"))
    return replace(SYSTEM, roles=roles, kept=kept)


SCENARIO = Scenario(
    name="windows",
    title="Aggregates by windows of time, suppressed or not, are what the input gives (KAFKA-20099)",
    parameters=Parameters,
    faults=(*OF_GROUPS, *OF_DISK),
    variants=VARIANTS,
    system=system,
    partitions=lambda trial: values(trial).partitions,
    workload=workload,
    app=app,
    config=config,
    facts=lambda trial: facts(values(trial)),
    drive=drive,
    positive_control=("LATE", "4.3.1"),
    refusal=refusal,
    seconds=25,
    alike="records",
)
