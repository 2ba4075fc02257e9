"""An instance ends in the way in which it was asked to, its group knows at once, and the application continues.

Applications end all day: a deployment closes them, an orchestrator sends SIGTERM, an exception handler gives up. What
can go wrong: the group waits for a member that has left, or gives away the tasks of one that comes back (KIP-812,
KIP-1153); an instance works on after `SHUTDOWN_APPLICATION` (KIP-671); `cleanUp()` leaves state behind, which the next
start trusts, or takes that of a running instance; a restoration that was cut off is taken for a complete one. All that
can also go wrong while the group is in a rebalance, when no member may commit.

Two instances work with exactly-once. While records flow, one of them ends as the parameter `ending` says, the group is
looked at, and the instance is started again. Each check holds a fact against what was asked for: who had the tasks
while the instance was away, long before its session ends; the state of each instance after an exception; what is in the
state directory after `cleanUp()`, and from where stores are restored then; from where a restoration continues that
SIGTERM had cut off. The n-th record of a key has the value n, so what was lost or counted twice shows in the topics.
For a rebalance in progress, a third instance joins while the one that stays stands still (SIGSTOP), well within its
session: the group waits for it, and the other one closes when it has asked to join again.

Where an instance lives on, each partition has an owner again as soon as the group can know that the former one is gone:
for how long its records waited is compared with what the ending allows (`ownership`).

A trial is *exercised* when the ending met what it is about, while records flowed: tasks that others could take, an
exception, stores on disk, or a restoration that had not ended; and the rebalance had not ended either, if it was to be
during one. With a cached store and a standby an instance that
leaves also gives a task back to the thread that had it before (KAFKA-14624).
"""

import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from onceproof.faults.base import Instance, is_at_rest, log_lines
from onceproof.faults.directory import PROCESS_FILE
from onceproof.model.anomaly import Comparison
from onceproof.model.cell import Trial
from onceproof.model.phrases import ENDED, FENCED, JOINED, REJOINS
from onceproof.model.release import Release
from onceproof.model.timeline import Event
from onceproof.processes.cpu import slowdown
from onceproof.scenarios import multirunner
from onceproof.scenarios.base import (
    PROTOCOL,
    Bulk,
    Exercise,
    Membership,
    Role,
    Scenario,
    ScenarioContext,
    System,
    Variant,
    Workload,
    membership,
    number_records,
    refuse_membership,
    refuse_restarts,
    runs_its_task,
    values_in,
    variants_of,
)
from onceproof.scenarios.ownership import PROMISE as OWNERSHIP
from onceproof.scenarios.ownership import UNTIL_ABORTED, sum_allowed
from onceproof.scenarios.readiness import CATCHES_UP, STANDBYS, compare_readiness, is_behind, restorations
from onceproof.scenarios.readiness import PROMISE as READINESS
from onceproof.scenarios.two_instances import OTHER, RATE, WITHIN

NAME, JOINS = "instance-1", "instance-3"
PROMISE = "endings"
OPTIONS_FROM = Release(3, 3, 0)  # KIP-812
LEAVES_AT_ONCE = Release(4, 2, 0)  # KAFKA-18185
SESSION = 120  # seconds after which a member that did not leave is missed
MISSED_SOON = 6  # the same, where the group must continue without it
KAFKAS_SESSION = 45  # the same by default, which is longer than a transaction may last
TAKEN_WITHIN = 40.0  # seconds within which the group must have heard of a member that has left
BACK_WITHIN = 60.0  # seconds within which an instance that comes back has tasks; a broker misses one after 45 s
AWAY = 6.0  # seconds for which a member that stays is away
WORKED = 300  # records that the instance has processed before it ends
LASTS = 10.0  # seconds for which records flow, at any time
FAILS = "as fail.after asks for"  # the message of the processor's exception
# Files of an application's state directory that are no state: its lock, and the id of the process.
NO_STATE = {".lock", PROCESS_FILE}
AFTERWARDS = 2_000  # records that an instance processes whose standbys were promoted
# What a stream thread logs; clients have a thread of their own for heartbeats, whose name is another.
_OF_THREAD = re.compile(r"\[[^\[\]]+-StreamThread-\d+\] .*")
SLOWLY = {"restore.consumer.max.poll.records": "50"}

Ending = Literal[
    "leave", "stay", "clean-up", "terminate", "kill", "SHUTDOWN_APPLICATION", "SHUTDOWN_CLIENT", "REPLACE_THREAD"
]
CLOSES = ("leave", "stay")  # by the options alone
# By the answer of the handler the states of the instance whose thread died, and of the other one (KIP-671).
ANSWERS = {
    "SHUTDOWN_APPLICATION": {OTHER: "ERROR", NAME: "ERROR"},
    "SHUTDOWN_CLIENT": {OTHER: "ERROR", NAME: "RUNNING"},
    "REPLACE_THREAD": {OTHER: "RUNNING", NAME: "RUNNING"},
}

# --- variants ------------------------------------------------------------------------------------------------


class Parameters(Membership):
    """How an instance ends, and the group that it leaves behind."""

    ending: Ending = Field("leave", description="how an instance ends, or what its handler answers to an exception")
    rebalancing: bool = Field(False, description="whether the group is in a rebalance when an instance leaves or stays")
    held: int = Field(0, ge=0, description="seconds for which that rebalance is held up when the instance closes")
    threads: int = Field(1, ge=1, description="stream threads of an instance")
    standbys: int = Field(0, ge=0, description="standby replicas")
    partitions: int = Field(4, ge=2, description="partitions of the input")
    keys: int = Field(100, ge=1, description="distinct keys")
    first: int = Field(8_000, ge=1, description="records that are processed before the ending")
    records: int = Field(30_000, ge=1, description="records that flow meanwhile, at most")
    fail_after: int = Field(
        500, ge=WORKED, description="records after which a processor throws, where a handler is asked"
    )
    pause: int = Field(100, ge=1, description="ms after each batch of a restoration that is to be cut off")
    caching: bool = Field(False, description="whether the store is cached")


STATIC = {"static.membership": True}
AMID = {"rebalancing": True}
BY_BROKER = {PROTOCOL: "streams"}
VARIANTS = variants_of(
    Variant(
        "DEFAULT_CONFIG",
        "A static member closes with CloseOptions.leaveGroup(true); a cached store with a standby (KIP-812, KIP-1153).",
        {**STATIC, "standbys": 1, "caching": True},
    ),
    Variant("STAYING", "A static member closes with CloseOptions.leaveGroup(false).", {**STATIC, "ending": "stay"}),
    Variant(
        "REBALANCING",
        "A static member closes with CloseOptions.leaveGroup(true) while a rebalance is in progress.",
        {**STATIC, **AMID},
    ),
    Variant("REBALANCING_THREADS", "As REBALANCING, with two threads an instance.", {**STATIC, **AMID, "threads": 2}),
    Variant("REBALANCING_STAYING", "As REBALANCING, with leaveGroup(false).", {**STATIC, **AMID, "ending": "stay"}),
    Variant(
        "REBALANCING_FENCED",
        "As REBALANCING; it is held up for longer than the transaction of the instance lasts.",
        {**STATIC, **AMID, "held": 15},
    ),
    Variant(
        "SHUTDOWN_APPLICATION",
        "An exception handler answers SHUTDOWN_APPLICATION; then all instances start again.",
        {"ending": "SHUTDOWN_APPLICATION"},
    ),
    Variant(
        "SHUTDOWN_CLIENT",
        "An exception handler answers SHUTDOWN_CLIENT; then the instance starts again.",
        {"ending": "SHUTDOWN_CLIENT"},
    ),
    Variant("REPLACE_THREAD", "An exception handler answers REPLACE_THREAD.", {"ending": "REPLACE_THREAD"}),
    Variant(
        "CLEANED_UP",
        "cleanUp() is called while an instance runs, and when it has closed; then it starts again.",
        {**STATIC, "ending": "clean-up"},
    ),
    Variant(
        "TERMINATED",
        "SIGTERM ends an instance that restores its stores; then it starts again.",
        {**STATIC, "ending": "terminate"},
    ),
    Variant(
        "KILLED",
        "An instance is killed and starts again; when its standbys have caught up, the other one leaves.",
        {"ending": "kill", "standbys": 1},
    ),
    Variant(
        "STREAMS_PROTOCOL",
        "A member without a name closes with LEAVE_GROUP; a broker assigns the tasks (KIP-1071, KIP-1153).",
        BY_BROKER,
    ),
    Variant("STREAMS_PROTOCOL_STAYING", "As STREAMS_PROTOCOL, with REMAIN_IN_GROUP.", {**BY_BROKER, "ending": "stay"}),
)


values = values_in(Parameters, VARIANTS)


def refusal(trial: Trial) -> str | None:
    """Refuses releases without `CloseOptions`, and a protocol that they lack."""
    cell, parameters = trial.cell, values(trial)
    if parameters.ending in ("leave", "stay", "clean-up") and cell.streams < OPTIONS_FROM:
        return f"Kafka Streams {cell.streams} has no CloseOptions (KIP-812); take {OPTIONS_FROM} or later."
    if parameters.rebalancing and (parameters.ending not in CLOSES or parameters.group_protocol == "streams"):
        return (
            "rebalancing is for members that leave or stay in a group that waits for each of them; leave out ending "
            "and group.protocol, or rebalancing."
        )
    return refuse_membership(cell, parameters) or refuse_restarts(cell)


def workload(trial: Trial) -> Workload:
    """Numbered records of drawn keys: the first are preloaded, the others flow while the instance ends."""
    parameters = values(trial)
    made = number_records(trial.seed, parameters.keys, parameters.first + parameters.records)
    return Workload(made[: parameters.first], made[parameters.first :])


def app(trial: Trial) -> Mapping[str, Any]:
    """Settings of `counting`, with what the handler of uncaught exceptions answers (KIP-671)."""
    parameters = values(trial)
    answers = {"on.uncaught": parameters.ending} if parameters.ending in ANSWERS else {}
    return {
        "input.topic": trial.topic("input"),
        "output.topic": trial.topic("output"),
        "caching": parameters.caching,
        "stores": "rocksdb",
        **answers,
    }


def config(trial: Trial) -> Mapping[str, str]:
    """Tasks that move as soon as an instance ends, so that a late move is the fault of its end."""
    parameters = values(trial)
    return {
        "processing.guarantee": "exactly_once_v2",
        "num.standby.replicas": str(parameters.standbys),
        "num.stream.threads": str(parameters.threads),
        "commit.interval.ms": "100",
        # With less, an instance that was away gets active tasks only with a probing rebalance, in ten minutes.
        "acceptable.recovery.lag": "1000000",
        **_session_config(parameters),
        **membership(parameters),
    }


def _session_config(parameters: Parameters) -> dict[str, str]:
    if parameters.group_protocol == "streams":  # then the broker has the session
        return {}
    return {"main.consumer.session.timeout.ms": str(_session(parameters) * 1_000)}


def _session(parameters: Parameters) -> int:
    """Seconds after which a member is missed."""
    if parameters.group_protocol == "streams" or parameters.ending == "REPLACE_THREAD":
        return KAFKAS_SESSION
    return MISSED_SOON if parameters.ending in (*ANSWERS, "kill") else SESSION


def _time_missed(parameters: Parameters) -> float:
    """Seconds after which the group knows that the one that ends is gone, or may give away what it had."""
    if parameters.ending in ("leave", "REPLACE_THREAD"):
        return 0.0
    return _session(parameters) + (UNTIL_ABORTED if parameters.ending == "kill" else 0.0)


# --- drive ---------------------------------------------------------------------------------------------------


def drive(lab: ScenarioContext) -> Exercise:
    """Have an instance end while records flow, look at the group, start the instance again, drain."""
    ending, first, second = values(lab.trial).ending, lab.workload.first, lab.workload.second
    afterwards = AFTERWARDS if ending == "kill" else 0
    with lab.phase("first"):
        lab.instances.start(NAME)
        lab.await_(f"{len(first):,} records to be committed", lambda: lab.count_committed() >= len(first))
        fails = {"fail.after": values(lab.trial).fail_after} if ending in ANSWERS else {}
        lab.instances.start(OTHER, app=fails)
        if fails:
            lab.note("excused", instance=OTHER, of=FAILS)
        lab.holds_within(WITHIN, lambda: all(map(runs_its_task, lab.instances.running.values())))
    with lab.phase("ending"):
        before = lab.instances.cpu_times()
        bulk = lab.produce("flow", second[: len(second) - afterwards], RATE)
        other = lab.instances.running[OTHER]
        _holds_within(lab, bulk, WITHIN, lambda: other.processed >= WORKED)
        met, reason = _ENDINGS.get(ending, _answer_exception)(lab, bulk)
        flowed = not bulk.is_done()
    with lab.phase("drain"):
        bulk.full_speed()
        lab.await_drained()
        if values(lab.trial).standbys:
            _note_standbys(lab)
    if afterwards:
        with lab.phase("afterwards"):
            promoted = lab.instances.running[OTHER].tasks("standby")
            lab.instances.stop(NAME, leave_group=True)
            lab.produce("afterwards", second[-afterwards:])
            lab.await_drained()
            met = met and bool(promoted)
            reason = f"{reason}; at last its standbys of {', '.join(promoted) or 'no task'} were promoted"
    with lab.phase("leave"):
        slowed = slowdown(before, lab.instances.cpu_times())
        allowed = sum_allowed(lab.events, slowed, _time_missed(values(lab.trial)))
        if OWNERSHIP in system(lab.trial).promises:
            lab.measure(idle=allowed)
        lab.close_instances()
    when = "while records flowed" if flowed else "when no record flowed any more"
    if ending == "REPLACE_THREAD" and allowed >= 1_000 * _session(values(lab.trial)):
        met, when = False, f"{when}, but the machine had too few CPUs to say whether its thread was missed or had left"
    return Exercise(met and flowed, f"{reason}, {when}.", all_steps_tried=met)


def _note_standbys(lab: ScenarioContext) -> None:
    """Note how far each standby is: as soon as all have what is committed, or when they should long have it."""
    partitions = values(lab.trial).partitions

    def standbys() -> list[dict[str, Any]]:
        return [
            {"instance": name, **store}
            for name, instance in lab.instances.running.items()
            for store in instance.last.get("lags", {}).get("stores", ())
            if f"0_{store['partition']}" in instance.tasks("standby")
        ]

    def have_caught_up() -> bool:
        ends = {store["partition"]: store["end"] for store in standbys()}
        is_current = len(ends) == partitions and sum(ends.values()) == lab.end("last-changelog")
        return is_current and not any(map(is_behind, standbys()))

    lab.holds_within(CATCHES_UP, have_caught_up)
    lab.note(STANDBYS, stores=standbys())


def _start_again(lab: ScenarioContext, bulk: Bulk, name: str = OTHER) -> Instance:
    """Start an instance again, and wait until it has a task."""
    bulk.make_last(LASTS + WITHIN)
    again = lab.instances.start(name)
    _holds_within(lab, bulk, BACK_WITHIN, lambda: runs_its_task(again))
    return again


def _holds_within(lab: ScenarioContext, bulk: Bulk, seconds: float, condition: Callable[[], object]) -> bool:
    """Whether a condition becomes true within some time, in which records flow."""

    def holds() -> object:
        bulk.make_last(LASTS)
        return condition()

    return lab.holds_within(seconds, holds)


def _absent(lab: ScenarioContext, bulk: Bulk) -> tuple[bool, str]:
    """Close the other instance by options, see who takes its tasks, and start it again."""
    ending, amid = values(lab.trial).ending, values(lab.trial).rebalancing
    leaves, other = ending == "leave", lab.instances.running[OTHER]
    held = other.tasks("active")
    # A rebalance gives it other ones before it ends, and nothing reports which.
    tasks = [f"0_{partition}" for partition in range(values(lab.trial).partitions)] if amid else held
    met, reason = (_amid_rebalance if amid else _at_rest)(lab, bulk)
    others = [instance for name, instance in lab.instances.running.items() if name != OTHER]

    def list_taken() -> list[str]:
        return sorted({*tasks} & {task for instance in others for task in instance.tasks("active")})

    def all_taken() -> bool:
        return list_taken() == tasks and all(instance.state == "RUNNING" for instance in others)

    _holds_within(lab, bulk, TAKEN_WITHIN if leaves else AWAY, all_taken if leaves or amid else list_taken)
    ended = bool(other.last["command"]["result"])
    lab.note("absent", instance=OTHER, leaves=leaves, ended=ended, tasks=tasks, taken=list_taken(), rebalancing=amid)
    lab.instances.stop(OTHER)
    _start_again(lab, bulk)
    return met and bool(held), f"{OTHER} closed{reason} with {', '.join(held) or 'no task'} to {ending}"


def _at_rest(lab: ScenarioContext, _bulk: Bulk) -> tuple[bool, str]:
    """Close the other instance."""
    lab.instances.step(values(lab.trial).ending, OTHER)
    return True, ""


def _amid_rebalance(lab: ScenarioContext, bulk: Bulk) -> tuple[bool, str]:
    """Begin a rebalance that waits for the instance that stays, and close the other one when it has joined it.

    A thread that is to end waits for the end of a rebalance (`StreamThread.runLoop`), so that is not far.
    """
    own, other, met = values(lab.trial), lab.instances.running[OTHER], False
    end = other.log.stat().st_size
    bulk.make_last(LASTS + WITHIN)
    lab.instances.freeze(NAME)
    joins = lab.instances.start(JOINS)

    def goes_on() -> bool:
        return joins.state == "REBALANCING" and any(log_lines(other.log, end, REJOINS.pattern))

    def is_closing() -> bool:
        return other.state in ("PENDING_SHUTDOWN", "NOT_RUNNING")

    def end_rebalance() -> None:
        nonlocal met
        _holds_within(lab, bulk, WITHIN, is_closing)
        _holds_within(lab, bulk, own.held, lambda: False)
        met = is_closing() and goes_on()
        lab.instances.thaw(NAME)

    _holds_within(lab, bulk, WITHIN, goes_on)
    lab.instances.step(own.ending, OTHER, meanwhile=end_rebalance)
    # Until 4.1 members that leave do so when all threads of the instance have ended, so they stay until then.
    stays = own.ending == "stay" or lab.trial.cell.streams < LEAVES_AT_ONCE
    if stays and not other.last["command"]["result"] and awaits_itself(other.log, end):
        lab.note("awaits-itself", instance=OTHER)
    reason = f"{'' if met else ' not'} during a rebalance"
    if own.held:
        fenced = any(log_lines(other.log, end, FENCED.pattern))
        met, reason = met and fenced, f"{reason} and {'' if fenced else 'not '}fenced"
    return met, reason


def awaits_itself(log: Path, since: int) -> bool:
    """Whether a thread of an instance waits for members of its group while another one of its threads has ended.

    It has asked to join, has no answer yet and has not ended.
    """
    asked: set[str] = set()
    ended: set[str] = set()
    for _, line in log_lines(log, since, _OF_THREAD):
        thread, _, _ = line.partition("] ")
        if REJOINS.pattern.search(line):
            asked.add(thread)
        elif JOINED.pattern.search(line):
            asked.discard(thread)
        elif ENDED.pattern.search(line):
            ended.add(thread)
    return bool(ended) and not asked <= ended


def _answer_exception(lab: ScenarioContext, bulk: Bulk) -> tuple[bool, str]:
    """Have a processor throw, see what becomes of each instance, and start those again that have ended."""
    ending, instances = values(lab.trial).ending, dict(lab.instances.running)
    other, due = instances[OTHER], ANSWERS[ending]
    threw = lab.holds_within(WITHIN, lambda: "uncaught" in other.last)

    def states() -> dict[str, str]:
        return {name: instance.state for name, instance in instances.items()}

    def is_over() -> bool:
        ended = all(state == due[name] for name, state in states().items())
        return ended and (due[OTHER] == "ERROR" or is_at_rest(lab))

    bulk.make_last(LASTS + TAKEN_WITHIN)
    if threw:
        lab.holds_within(TAKEN_WITHIN, is_over)
    lab.note("answered", answer=ending, states=states(), due=due)
    for name in due:
        if due[name] == "ERROR":
            lab.instances.stop(name)
    for name in reversed(due):
        if due[name] == "ERROR":
            _start_again(lab, bulk, name)
    return threw, f"a processor of {OTHER} {'threw' if threw else 'did not throw'}, and its handler answers {ending}"


def _clean_up(lab: ScenarioContext, bulk: Bulk) -> tuple[bool, str]:
    """Clean up while the other instance runs, and when it has closed; start it again and see what is restored."""
    other, folder = lab.instances.running[OTHER], lab.instances.state_directory(OTHER)
    tasks = other.tasks("active")

    def content() -> list[str]:
        return sorted(entry.name for entry in folder.iterdir()) if folder.exists() else []

    def clean_up(*, running: bool) -> int:
        before = content()
        lab.instances.step("clean-up", OTHER)
        answer = other.last["command"]["result"]
        lab.note("cleaned", instance=OTHER, running=running, answer=answer, before=before, after=content())
        return len({*before} & {*tasks})

    there = clean_up(running=True)
    lab.instances.step("stay", OTHER)
    there = min(there, clean_up(running=False))
    lab.instances.stop(OTHER)
    _start_again(lab, bulk)
    lab.note("cleaned-start", instance=OTHER)
    return there > 0, f"{OTHER} was cleaned up with state of {there} of its tasks on disk"


def _terminate(lab: ScenarioContext, bulk: Bulk) -> tuple[bool, str]:
    """Take the other instance's state, end it by SIGTERM while it is restored, and start it again."""
    lab.instances.stop(OTHER)
    shutil.rmtree(lab.instances.state_directory(OTHER))
    bulk.make_last(WITHIN)
    other = lab.instances.start(OTHER, config=SLOWLY, app={"restore.pause.ms": values(lab.trial).pause})
    lab.holds_within(WITHIN, lambda: other.last.get("restore", {}).get("end", 0) > 0)
    lab.instances.terminate(OTHER)
    cut_off = other.last.get("suspended")
    _start_again(lab, bulk)
    lab.note("terminated", instance=OTHER)
    text = f"{cut_off['records']:,} records of a store" if cut_off else "no restoration"
    return cut_off is not None, f"{OTHER} was sent SIGTERM during {text}"


def _kill(lab: ScenarioContext, bulk: Bulk) -> tuple[bool, str]:
    """Kill the other instance, have the one that stays take its tasks, and start it again."""
    stays, tasks = lab.instances.running[NAME], lab.instances.running[OTHER].tasks("active")
    standbys = stays.tasks("standby")
    lab.instances.kill(OTHER)
    taken = _holds_within(lab, bulk, TAKEN_WITHIN, lambda: {*tasks} <= {*stays.tasks("active")})
    again = _start_again(lab, bulk)
    _holds_within(lab, bulk, WITHIN, lambda: again.tasks("standby"))
    met = bool({*tasks} & {*standbys}) and taken
    return met, f"{OTHER} was killed with {', '.join(tasks) or 'no task'}, of which {NAME} was the standby"


_ENDINGS: Mapping[str, Callable[[ScenarioContext, Bulk], tuple[bool, str]]] = {
    "leave": _absent,
    "stay": _absent,
    "clean-up": _clean_up,
    "terminate": _terminate,
    "kill": _kill,
}


# --- checks --------------------------------------------------------------------------------------------------


def observe(trial: Trial, events: Sequence[Event]) -> list[Comparison]:
    """How each instance ended, and whether it was ready when it said so."""
    return [*multirunner.observe(trial, events), *compare_endings(events), *compare_readiness(events)]


def compare_endings(events: Sequence[Event]) -> Iterator[Comparison]:
    """One comparison for each instance or task that an ending is about.

    Raises:
        KeyError: an event lacks a field of the protocol.
    """
    for position, event in enumerate(events):
        match event["event"]:
            case "absent":
                yield from _of_absence(event)
            case "answered":
                for name, due in event["due"].items():
                    found = event["states"][name]
                    anomaly = None if found == due else "wrong-end"
                    place = f"{name} after {event['answer']}"
                    yield Comparison(PROMISE, anomaly, 0, None, place, due, found)
            case "cleaned":
                yield _of_clean_up(event)
            case "cleaned-start":
                yield from _of_start(events[:position], event["instance"])
            case "terminated":
                yield from _of_restorations(events[:position], event["instance"])


def _of_absence(event: Event) -> Iterator[Comparison]:
    tasks, taken = event["tasks"], event["taken"]
    if event["leaves"]:
        is_right, due = taken == tasks, f"others have {', '.join(tasks)}"
    elif event["rebalancing"]:
        is_right, due = taken != tasks, f"others lack one of {', '.join(tasks)}"
    else:
        is_right, due = not taken, "others have none of its tasks"
    asked = "left its group" if event["leaves"] else "stayed in its group"
    place = f"{event['instance']}, which {asked}{' during a rebalance' if event['rebalancing'] else ''}"
    found = f"others have {', '.join(taken) or 'none of its tasks'}"
    yield Comparison(PROMISE, None if is_right else "wrong-membership", 0, None, place, due, found)
    found = "in time" if event["ended"] else "not in time"
    yield Comparison(
        PROMISE, None if event["ended"] else "wrong-end", 0, None, place, "ended in time", f"ended {found}"
    )


def _of_clean_up(event: Event) -> Comparison:
    refused = event["answer"].startswith("java.lang.IllegalStateException")
    before, after = ({*event[when]} - NO_STATE for when in ("before", "after"))
    if event["running"]:
        is_right = refused and before <= after
        due = f"IllegalStateException; left: {', '.join(sorted(before)) or 'no state'}"
    else:
        is_right = event["answer"] == "cleaned" and not after
        due = "cleaned; left: no state"
    found = f"{event['answer']}; left: {', '.join(sorted(after)) or 'no state'}"
    when = "cleanUp() while it runs" if event["running"] else "cleanUp() when it has closed"
    return Comparison(
        PROMISE, None if is_right else "wrong-clean-up", 0, None, f"{event['instance']}, {when}", due, found
    )


def _since_start(events: Sequence[Event], name: str) -> int:
    """The position of the last start of an instance."""
    return max(
        position
        for position, event in enumerate(events)
        if event["event"] == "instance" and event["action"] == "started" and event["name"] == name
    )


def _of_start(events: Sequence[Event], name: str) -> Iterator[Comparison]:
    """Each store that was opened since an instance was started over an empty directory."""
    since = events[_since_start(events, name) :]
    held = [event for event in since if event["event"] == "assignment" and event["source"] == name]
    tasks = sorted({task for event in held[-1:] for thread in event["threads"] for task in thread["active"]})
    begun = {
        event["partition"]: event["from"] for event in since if event["event"] == "restore" and event["source"] == name
    }
    for task in tasks:
        partition = int(task.partition("_")[2])
        found = f"restored from {begun[partition]} on" if partition in begun else "not restored"
        anomaly = None if begun.get(partition) == 0 else "wrong-clean-up"
        yield Comparison(PROMISE, anomaly, partition, None, f"{name}, {task}", "restored from 0 on", found)


def _of_restorations(events: Sequence[Event], name: str) -> Iterator[Comparison]:
    """Each restoration that the end of an instance cut off, and where the next start continued."""
    again = _since_start(events, name)
    cut_off = [
        restoration
        for restoration in restorations(events[:again])
        if restoration.end["event"] == "suspended" and restoration.start["source"] == name
    ]
    begun = {
        (event["store"], event["partition"]): event["from"]
        for event in events[again:]
        if event["event"] == "restore" and event["source"] == name
    }
    for restoration in cut_off:
        store, partition = restoration.start["store"], restoration.start["partition"]
        reached = max(restoration.end["last"] + 1, restoration.start["from"])
        from_ = begun.get((store, partition))
        due = f"the next start restores it from {reached} on, or from before"
        found = f"from {from_} on" if from_ is not None else "it was not restored"
        anomaly = None if from_ is not None and from_ <= reached else "skipped-restoration"
        yield Comparison(PROMISE, anomaly, partition, None, restoration.place, due, found)


# --- system --------------------------------------------------------------------------------------------------

SYSTEM = System(
    topology="counting",
    roles={"input": Role(), "output": Role(value_bytes=8), "last-changelog": Role()},
    promises=(PROMISE, READINESS, OWNERSHIP, *multirunner.SYSTEM.promises),
)
# Promises that do not apply: an instance that is killed was not asked to end; when all have ended, none can take over.
NOT_PROMISED = {"kill": PROMISE, "SHUTDOWN_APPLICATION": OWNERSHIP}


def system(trial: Trial) -> System:
    """The topology `counting`, and what its ending promises."""
    left_out = NOT_PROMISED.get(values(trial).ending)
    return replace(SYSTEM, promises=tuple(promise for promise in SYSTEM.promises if promise != left_out))


SCENARIO = Scenario(
    name="endings",
    title="An instance ends as it was asked to, and the application continues (KIP-812, KIP-671)",
    parameters=Parameters,
    variants=VARIANTS,
    system=system,
    partitions=lambda trial: values(trial).partitions,
    workload=workload,
    app=app,
    config=config,
    drive=drive,
    positive_control=("DEFAULT_CONFIG", "3.3.2"),
    observe=observe,
    refusal=refusal,
    seconds=20,
    alike="records",
)
