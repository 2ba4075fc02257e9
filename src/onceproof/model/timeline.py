"""Every event of a trial in order, and what can be concluded from it.

An event is one JSON object: `t` (epoch milliseconds), `source` (`driver` or the name of an instance), `event`,
and what belongs to it. Those of instances are what the application under test printed
(`streams_app/README.md`); those of the driver are listed here:

| event | fields |
|---|---|
| `phase` | `name`: what the driver begins to do |
| `bulk` | `name`, `records`, `rate` (records/s, null for full speed): producing starts |
| `produced` | `name`, `records`: delivered so far |
| `step` | `action`, `instance`: the driver scales out or in, starts or stops |
| `instance` | `name`, `action`: started, asked to end, closed, killed, frozen, thawed; `release` if started |
| `fault` | `name`, `action`: applied, healed (`label`, `text` for pictures), observed (`bit`, `summary`, `observed`) |
| | applied, too: `on`, its target; applied and observed: `open`, what of the input was not committed |
| `broker` | `node`, `action`: killed, shut down, started, frozen, thawed |
| `link` | `instance`, `node`, `action`: cut, reset, latency, cleared: what was done to the link between them |
| `answer` | `instance`, `node`, `api`, `version`, `correlation`, `client`, `at`: the answer to this request of it was |
| | dropped or delayed at that time; `api` is the key of the API, `at` epoch milliseconds |
| `leaders` | `leaders`: of how many partitions each node was elected as leader, because a fault asked for it |
| `excused` | `instance`, `of`: what a thread of it may die of until it is started again `starts` times and once |
| `topic` | `role`, `config`: the configuration of a topic was changed |
| `quota` | `client`, `bytes_per_second`: the quota of a producer was set, or lifted (null) |
| `crash`, `checkpoint`, `initialised`, `exception`, `held`, `lag`, `load` | what a scenario saw; see its module |
| `absent` | `instance`, `leaves`, `tasks`, `taken`: it closed by options, and another one took these of its tasks |
| `awaits-itself` | `instance`: it did not close in time; a thread asks to join, and another one of its has ended |
| `answered` | `answer` of an exception handler, `states` of the instances, `due`: those that they must have |
| `cleaned` | `instance`, `running`, `answer`, `before`, `after`: what was in its state directory around `cleanUp()` |
| `cleaned-start`, `terminated` | `instance`: it was started again after `cleanUp()`, or after SIGTERM |
| `spinning` | `instance`, `at`, `times`: it punctuates again and again at the same stream time |
| `compacted` | `roles`: brokers compact these topics from now on |
| `forgotten` | `instance`: it comes back; `deletions` of that time of which changelogs have no record left |
| `outdated` | `instance`: it comes back over the state that it left before these deletions |
| `exercised` | the scenario's precondition is met, and stays so if Kafka ends the drive |
| `drained` | `committed`: all input is processed and committed |
| `idle` | `partition`, `ms`: the longest time in which its records waited, from the one at `offset` on |
| `failure` | `anomaly`, `place`, `expected`, `observed`: what Kafka did that ended the drive |
| `threads` | `name`, `missing`: the threads of an instance were dumped, or why not (else null) |
| `locked` | `instance`, `task`: until the trial was stuck an instance could not lock the directory of a task |
| `logged` | `instance`, `what`, `times`: what the log of an instance of your own application says that it did |
| | `skipped`: records of `topic` and `partition` that could not be read, or had a negative time |
| | `unkeyed`: records of `topic` that a join left out, as they had no key or no value |
| | `dropped`: records of `task` for `topic`, which could not be sent, as the production exception handler said |
| | `fenced`: threads were, and went back to `offset` of `place` each time; at least `apart` ms lay between, |
| | and of `late` times it was because they had not polled in time |
| `stall` | `ms`: the driver got no CPU time; instances report the same about themselves |
"""

import contextlib
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import Any

from onceproof.model.errors import HarnessError
from onceproof.model.json_file import unwritable

Event = Mapping[str, Any]
STALLED = 1_000  # ms without CPU time that count; instances report no less
_STAMP = re.compile(r"\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d{4})\]")  # as log4j.properties has it


class Timeline:
    """Collects the events of one trial in memory and in its file, from any thread."""

    def __init__(self, path: Path, now: Callable[[], float] = time.time) -> None:
        """Start a new file at `path`; `now` gives epoch seconds.

        Raises:
            HarnessError: the file cannot be written.
        """
        self._lock = Lock()
        self._path, self._now = path, now
        self.events: list[Event] = []
        self.failure: HarnessError | None = None  # the file could not be written; threads must not die of it
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("w", buffering=1)
        except OSError as error:
            raise unwritable(error, path) from error

    def add(self, source: str, event: str, **fields: Any) -> None:
        """Record something that happens now."""
        self.append({"t": int(self._now() * 1000), "source": source, "event": event, **fields})

    def append(self, event: Event) -> None:
        """Record an event that carries its own time."""
        with self._lock:
            self.events.append(event)
            if not self._file.closed:
                try:
                    self._file.write(json.dumps(event) + "\n")
                except OSError as error:
                    self.failure = unwritable(error, self._path)

    def close(self) -> None:
        """Close the file; later events are kept in memory only."""
        with self._lock, contextlib.suppress(OSError):  # `failure` reports what could not be written
            self._file.close()


def stall_text(events: Iterable[Event], stalled: int = STALLED) -> str | None:
    """The longest time for which a process of the trial got no CPU time, in a sentence; None if there is none.

    Less than `stalled` ms do not count, nor does time for which the driver froze an instance.
    """
    listed = list(events)
    stalls = [(_sum_unexplained(event, listed), event["source"]) for event in listed if event["event"] == "stall"]
    ms, source = max(stalls, default=(0, ""))
    if ms < stalled:
        return None
    return f"The machine stood still for {ms / 1_000:.1f} s ({source}): the trial says nothing."


def _sum_unexplained(stall: Event, events: Iterable[Event]) -> int:
    """For how many ms of a stall its process was not frozen by the driver."""
    end, ms = int(stall["t"]), int(stall["ms"])
    frozen: int | None = None
    spans: list[tuple[int, int]] = []
    for event in events:
        if event["event"] == "instance" and event["name"] == stall["source"]:
            if event["action"] == "frozen":
                frozen = event["t"]
            elif frozen is not None:
                spans.append((frozen, event["t"]))
                frozen = None
    spans += [] if frozen is None else [(frozen, end)]
    return ms - sum(max(0, min(end, until) - max(end - ms, since)) for since, until in spans)


def time_of_line(line: str) -> int | None:
    """The time that a line of an instance's log begins with, in epoch milliseconds; None if it is the line before's."""
    stamp = _STAMP.match(line)
    try:
        return None if stamp is None else round(datetime.fromisoformat(stamp[1]).timestamp() * 1000)
    except ValueError:  # the code of an application may print anything, a 13th month as well
        return None


def read_timeline(path: Path) -> list[Event]:
    """The events of a timeline file in order of time. A last line that was cut off is ignored.

    Raises:
        HarnessError: the file is missing, has no event, or is damaged.
    """
    try:
        lines = path.read_text().splitlines()
    except (OSError, ValueError) as error:
        raise HarnessError(f"{path} could not be read ({error}): the run is incomplete or damaged.") from error
    events = []
    for number, line in enumerate(lines, 1):
        try:
            event = json.loads(line)
            events.append({**event, "t": int(event["t"]), "source": event["source"], "event": str(event["event"])})
        except (ValueError, KeyError, TypeError) as error:
            if number == len(lines) and events:  # the driver was killed while it wrote, or is writing
                break
            raise HarnessError(f"{path} is damaged in line {number}, which is not an event.") from error
    if not events:
        raise HarnessError(f"{path} has no events: the trial was not driven.")
    return sorted(events, key=lambda event: event["t"])


@dataclass(frozen=True)
class Return:
    """A task that one thread held active, then standby, then active again; or not at all in between (`closed`).

    Times are epoch milliseconds. `done` counts the task's records that had been processed when it left, `before` those
    of them that the thread had processed, `elsewhere` the records that other threads processed of the task while the
    thread was not active; `after` those that the thread itself processed after it came back.
    """

    task: str
    thread: str
    left: int
    back: int
    done: int
    before: int
    elsewhere: int
    after: int
    closed: bool = False


def returns(events: Iterable[Event], *, closed: bool = False) -> list[Return]:
    """Tasks that came back to a thread they had left, in order (the precondition of KAFKA-14172).

    The thread must have held the task as a standby in between (so that it was recycled and not closed), unless `closed`
    ones count, too. The thread of a restarted instance is another thread, whatever its name.
    """
    types: dict[tuple[str, str], str] = {}  # (thread, task) -> active | standby
    threads_of: dict[str, set[str]] = {}  # source -> its threads
    left: dict[tuple[str, str], int] = {}  # when the thread lost it as active
    back: list[tuple[str, str, int, int]] = []
    progress: list[tuple[int, str, str, int]] = []  # t, task, thread, count
    for event in _distinct_threads(events):
        if event["event"] == "progress":
            progress += [(event["t"], p["task"], p["thread"], p["count"]) for p in event["processed"]]
        if event["event"] != "assignment":
            continue
        names = {thread["thread"] for thread in event["threads"]}
        for gone in threads_of.get(event["source"], set()) - names:
            # A later thread may get its name, and has nothing of its cache.
            for place in [place for place in types if place[0] == gone]:
                del types[place]
                left.pop(place, None)
        threads_of[event["source"]] = names
        for thread in event["threads"]:
            # Between two assignments a thread shows no task at all: that says nothing.
            if not thread["active"] and not thread["standby"]:
                continue
            now = dict.fromkeys(thread["standby"], "standby") | dict.fromkeys(thread["active"], "active")
            for task in {task for name, task in types if name == thread["thread"]} | set(now):
                place = (thread["thread"], task)
                before, after = types.get(place), now.get(task)
                if before == "active" and (after == "standby" or (closed and after is None)):
                    left[place] = event["t"]
                elif after == "active" and place in left:
                    back.append((*place, left.pop(place), event["t"]))
                elif after is None and not closed:
                    left.pop(place, None)
                if after is None:
                    types.pop(place, None)
                else:
                    types[place] = after
    return [
        Return(
            task,
            thread,
            since,
            until,
            done=sum(_count(progress, task, who, since) for who in {p[2] for p in progress if p[1] == task}),
            before=_count(progress, task, thread, since),
            elsewhere=sum(
                max(0, _count(progress, task, other, until) - _count(progress, task, other, since))
                for other in {p[2] for p in progress if p[1] == task} - {thread}
            ),
            after=_count(progress, task, thread, None) - _count(progress, task, thread, until),
            closed=closed,
        )
        for thread, task, since, until in back
    ]


def find_stayed_beside_revoked(events: Iterable[Event]) -> frozenset[str]:
    """Tasks that stayed active on a thread from which another was taken (the precondition of KAFKA-18943)."""
    active: dict[str, frozenset[str]] = {}  # by thread
    stayed: set[str] = set()
    for event in _distinct_threads(events):
        for thread in event["threads"] if event["event"] == "assignment" else ():
            if not thread["active"] and not thread["standby"]:  # between two assignments, which says nothing
                continue
            before, now = active.get(thread["thread"], frozenset()), frozenset(thread["active"])
            if before - now:
                stayed |= before & now
            active[thread["thread"]] = now
    return frozenset(stayed)


def _distinct_threads(events: Iterable[Event]) -> Iterator[Event]:
    """The events with threads named after the start of their instance, too, if that is not its first."""
    starts: Counter[str] = Counter()
    for event in events:
        if event["event"] == "instance" and event["action"] == "started":
            starts[event["name"]] += 1
        named = {"assignment": "threads", "progress": "processed"}.get(event["event"])
        start = starts[event["source"]]
        if named is None or start < 2:
            yield event
        else:
            yield {**event, named: [{**row, "thread": f"{row['thread']} (start {start})"} for row in event[named]]}


def _count(progress: list[tuple[int, str, str, int]], task: str, thread: str, at: int | None) -> int:
    """Records of the task that the thread had processed at a time, as far as it had reported."""
    return max((n for t, k, who, n in progress if (k, who) == (task, thread) and (at is None or t <= at)), default=0)


def find_proved_returns(events: Iterable[Event], *, closed: bool = False) -> list[Return]:
    """Returns that count: the thread had filled its cache, others advanced the keys, and it continued with them."""
    found = returns(events, closed=closed)
    return [r for r in found if r.before and r.elsewhere and r.after]


def return_text(r: Return) -> str:
    """A return in one sentence."""
    thread = r.thread[r.thread.find("-instance-") + 1 :]  # without the application id
    between = "elsewhere" if r.closed else "standby"
    return (
        f"Task {r.task} was active, {between}, active on {thread}: away for {r.back - r.left:,} ms, in which other "
        f"threads processed {r.elsewhere:,} of its records; {r.after:,} came after its return."
    )
