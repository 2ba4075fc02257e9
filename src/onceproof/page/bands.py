"""What a trial's events say, in the shapes that can be drawn: bands, marks and series. Nothing here knows how to draw.

Every function takes events in order of time. Times are epoch milliseconds.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from onceproof.model.timeline import Event

KILLED = "killed"
FROZEN = "frozen"
TASK_ROWS = 30
LEVELS = 6  # of labels above each other
WIDTH, LETTER, MARGIN = 940, 6.4, 20  # pixels of a narrow plot, of a letter, and to the right of the plot


@dataclass(frozen=True)
class Band:
    """Something that holds from `begin` to `end` in a row. `release` is that of an instance, where it is known."""

    row: tuple[str, ...]
    kind: str
    begin: int
    end: int
    release: str | None = None
    records: int = 0  # that a thread processed of the task which it held


def phases(events: Sequence[Event]) -> list[Band]:
    """What the driver did: one band after the other, as kind its name."""
    rows = _Rows()
    for event in events:
        if event["event"] == "phase":
            rows.turn(("phase",), event["name"], event["t"])
    return rows.bands(events)


def instance_bands(events: Sequence[Event]) -> list[Band]:
    """The state of each instance; row (instance,). Between its close and its next start there is nothing.

    Kinds are those of `KafkaStreams.State`, `killed`, which lasts until the instance is started again, and `frozen`,
    which lasts until it goes on.
    """
    rows = _Rows()
    releases: dict[str, str | None] = {}
    states: dict[str, str] = {}
    for event in events:
        if event["event"] == "instance":
            row, release = (event["name"],), event.get("release")
            if event["action"] == "started":
                releases[event["name"]] = release
                rows.turn(row, "CREATED", event["t"], release)
            elif event["action"] in (KILLED, FROZEN):
                rows.turn(row, event["action"], event["t"])
            elif event["action"] == "thawed":
                rows.turn(row, states.get(event["name"]), event["t"], releases.get(event["name"]))
            else:
                rows.turn(row, None, event["t"])
        elif event["event"] == "state":
            states[event["source"]] = event["to"]
            rows.turn((event["source"],), event["to"], event["t"], releases.get(event["source"]))
    return rows.bands(events)


def task_bands(events: Sequence[Event]) -> list[Band]:
    """Which thread held which task `active` or `standby`; row (task, instance, thread).

    A thread that is listed without any task says nothing, so its bands go on; one that is not listed is gone, and
    all are gone when their instance was killed or closed. A later thread of the same name has the same row.
    """
    rows = _Rows()
    for event in events:
        if event["event"] == "assignment":
            _assign(rows, event["source"], event["threads"], event["t"])
        elif event["event"] == "instance":
            _assign(rows, event["name"], [], event["t"])
        elif event["event"] == "closed":
            _assign(rows, event["source"], [], event["t"])
    return _with_records(rows.bands(events), _advances(events))


def _assign(rows: "_Rows", instance: str, threads: Sequence[Mapping[str, Any]], t: int) -> None:
    held: dict[tuple[str, ...], str] = {}
    silent = set()
    for thread in threads:
        name = short_thread(thread["thread"], instance)
        if not thread["active"] and not thread["standby"]:
            silent.add(name)
        for kind in ("standby", "active"):
            held |= {(task, instance, name): kind for task in thread[kind]}
    for row in rows.open_of(lambda row: row[1] == instance and row[2] not in silent):
        rows.turn(row, held.get(row), t)
    for row, kind in held.items():
        rows.turn(row, kind, t)


def short_thread(thread: str, instance: str) -> str:
    """What tells a thread from the others of its instance: `StreamThread-1`."""
    return thread.rpartition(f"-{instance}-")[2]


class _Rows:
    """Rows of bands that are being laid, of each at most one open."""

    def __init__(self) -> None:
        self._laid: list[Band] = []
        self._open: dict[tuple[str, ...], Band] = {}

    def turn(self, row: tuple[str, ...], kind: str | None, t: int, release: str | None = None) -> None:
        """From now on the row is of this kind; None ends it."""
        band = self._open.get(row)
        if band is not None and (band.kind, band.release) == (kind, release):
            return
        if band is not None:
            self._laid.append(replace(self._open.pop(row), end=t))
        if kind is not None:
            self._open[row] = Band(row, kind, t, t, release)

    def open_of(self, wanted: Callable[[tuple[str, ...]], bool]) -> list[tuple[str, ...]]:
        """The wanted rows that have an open band."""
        return [row for row in self._open if wanted(row)]

    def bands(self, events: Sequence[Event]) -> list[Band]:
        """All bands that lasted, in order of row and time; what is open ends with the last event."""
        end = events[-1]["t"] if events else 0
        ended = [*self._laid, *(replace(band, end=end) for band in self._open.values())]
        return sorted((band for band in ended if band.end > band.begin), key=lambda band: (band.row, band.begin))


@dataclass(frozen=True)
class Advance:
    """A thread told that it had processed so many more records of a task."""

    t: int
    row: tuple[str, ...]  # task, instance, thread
    records: int


def _advances(events: Iterable[Event]) -> Iterator[Advance]:
    """What was processed, step by step. An instance that is started again counts from 0."""
    counts: dict[tuple[str, ...], int] = {}
    for event in events:
        if event["event"] == "instance" and event["action"] == "started":
            counts = {row: count for row, count in counts.items() if row[1] != event["name"]}
        elif event["event"] == "progress":
            for told in event["processed"]:
                row = (told["task"], event["source"], short_thread(told["thread"], event["source"]))
                if told["count"] > counts.get(row, 0):
                    yield Advance(event["t"], row, told["count"] - counts.get(row, 0))
                    counts[row] = told["count"]


def _with_records(bands: Sequence[Band], advances: Iterable[Advance]) -> list[Band]:
    """The bands with what was processed in them: progress may be told a little after a band or before it."""
    begins: dict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)  # row -> begin, number of the band
    for number, band in enumerate(bands):
        if band.kind == "active":
            begins[band.row].append((band.begin, number))
    records = [0] * len(bands)
    for advance in advances:
        if row := begins.get(advance.row):
            at = bisect_right(row, advance.t, key=lambda begin: begin[0])
            records[row[max(0, at - 1)][1]] += advance.records
    return [replace(band, records=count) for band, count in zip(bands, records, strict=True)]


def chosen_rows(tasks: Sequence[Band], came_back: set[tuple[str, ...]], most: int = TASK_ROWS) -> list[Band]:
    """The bands of all tasks; if these have too many rows, of those that came back, else of those that moved.

    A task comes with all its rows, as long as there is room.
    """
    rows: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    owners: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for band in tasks:
        rows[band.row[0]].add(band.row)
        if band.kind == "active":
            owners[band.row[0]].add(band.row)
    wanted = set(rows)
    if sum(map(len, rows.values())) > most:
        moved = {task for task, held in owners.items() if len(held) > 1}
        wanted = {row[0] for row in came_back} or moved or wanted
    room, kept = most, set()
    for task in sorted(wanted, key=natural):
        if len(rows[task]) <= room:
            kept.add(task)
            room -= len(rows[task])
    return sorted((b for b in tasks if b.row[0] in kept), key=lambda b: (*map(natural, b.row), b.begin))


def natural(name: str) -> list[tuple[int, str]]:
    """Orders instance-10 after instance-9, and 0_10 after 0_9."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]


# --- records over time ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Flow:
    """Records produced and processed so far."""

    t: int
    produced: int
    processed: int

    @property
    def lag(self) -> int:
        """Records that are produced and not yet processed."""
        return max(0, self.produced - self.processed)


def flow(events: Sequence[Event], seeded: int) -> list[Flow]:
    """Records produced and processed over time.

    What a killed instance had processed in vain, so that it came again, is taken back when it is killed. How much that
    was is known when the input was drained: all that was processed beyond what was produced.

    Args:
        events: of the trial.
        seeded: records that were produced before the trial was driven.
    """
    steps: list[tuple[int, str, int]] = [(event["t"], "", 0) for event in (*events[:1], *events[-1:])]
    delivered: dict[str, int] = {}
    for event in events:
        if event["event"] == "produced":
            steps.append((event["t"], "produced", event["records"] - delivered.get(event["name"], 0)))
            delivered[event["name"]] = event["records"]
    steps += [(advance.t, "processed", advance.records) for advance in _advances(events)]
    steps += [(t, "processed", -records) for t, records in _in_vain(events, seeded + sum(delivered.values()))]
    totals = {"produced": seeded, "processed": 0, "": 0}
    points = []
    for t, name, records in sorted(steps):
        totals[name] += records
        points.append(Flow(t, totals["produced"], totals["processed"]))
    return points


def _in_vain(events: Sequence[Event], produced: int) -> Iterator[tuple[int, int]]:
    """When the instance died whose work came again, and how many records that were."""
    kills = [e["t"] for e in events if e["event"] == "instance" and e["action"] == "killed"]
    advances = list(_advances(events))
    again = sum(advance.records for advance in advances) - produced
    worked = [t for t in kills if any(advance.t <= t for advance in advances)]
    if worked and again > 0 and any(e["event"] == "drained" for e in events):
        # Of several that were killed, one after the other, only the first died in the middle of its work.
        yield worked[0], again


def thinned(points: Sequence[Flow], most: int = 600) -> list[Flow]:
    """The last point of each of so many equal spans of time: what a screen can show."""
    if not points:
        return []
    begin, span = points[0].t, (points[-1].t - points[0].t) // most + 1
    last = {(point.t - begin + span - 1) // span: point for point in points}
    return list(last.values())


def processed_at(events: Sequence[Event], task: str, offset: int, end: int) -> tuple[int, int] | None:
    """When the record of a task's input at this offset was processed: the first and the last time.

    The last is counted backwards from the end, for what came twice was processed before.

    Args:
        events: of the trial.
        task: of one input partition, whose records have all offsets from 0 on.
        offset: of the record.
        end: how many records the partition has.

    Returns:
        None if nobody told of so many records.
    """
    told = [advance for advance in _advances(events) if advance.row[0] == task]
    first = _passed(told, offset + 1)
    last = _passed(told, sum(advance.records for advance in told) - end + offset + 1)
    return None if first is None or last is None else (first, max(first, last))


def _passed(advances: Sequence[Advance], records: int) -> int | None:
    total = 0
    for advance in advances:
        total += advance.records
        if total >= records:
            return advance.t
    return None


# --- marks ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mark:
    """A fault, or another thing that was done or happened at a moment: a short label, and a sentence that tells it."""

    t: int
    kind: str
    label: str
    text: str


def marks(events: Sequence[Event]) -> list[Mark]:
    """What was done to the application, and how it failed, in order of time."""
    found: list[Mark] = []
    releases: dict[str, str] = {}
    restores: dict[str, int] = {}
    throttled = False
    for event in events:
        match event["event"]:
            case "step":
                found.append(_step(event))
            case "instance" if event["action"] == "killed":
                found.append(Mark(event["t"], "kill", f"SIGKILL {event['name']}", f"{event['name']} was killed."))
            case "instance" if event["action"] == "started":
                before = releases.get(event["name"])
                releases[event["name"]] = event["release"]
                found += _start(event, before)
            case "restore":
                restores[event["store"]] = event["t"]
            case "crash":
                found.append(Mark(event["t"], "crash", _crash(event), _fields(event)))
            case "checkpoint":
                label = f"checkpoint in {event['present']} of {event['samples']} samples"
                found.append(Mark(event["t"], "seen", label, _fields(event)))
            case "initialised":  # read off the log when all was over, of what was done when the store was opened
                t = restores.get(event["store"]) or event["t"]
                found.append(Mark(t, "seen", f"store {event['store']}: {event['how']}", _fields(event)))
            case "fault" if "label" in event:
                found.append(Mark(event["t"], "fault", event["label"], event["text"]))
            case "topic":
                config = ", ".join(f"{k.replace('_', '.')}={v}" for k, v in event["config"].items())
                found.append(Mark(event["t"], "topic", f"{event['role']}: {config}", f"The topic's {config} was set."))
            case "quota":
                found.append(_quota(event))
            case "throttle" if event["producers"] and not throttled:
                throttled = True
                most = max(producer["produce_throttle_time_max"] for producer in event["producers"])
                found.append(
                    Mark(
                        event["t"],
                        "quota",
                        f"throttled {most:,.0f} ms",
                        f"A producer was throttled for {most:,.0f} ms.",
                    )
                )
            case "exception":
                text = f"{event['exception']}: {event['message']}"
                found.append(Mark(event["at"], "exception", event["exception"], text))
            case "failure" if event["anomaly"] != "thread-died":  # which `uncaught` tells
                found.append(Mark(event["t"], "exception", event["anomaly"], event["observed"]))
            case "stall":
                seconds = f"{event['ms'] / 1_000:.1f} s"
                text = f"{event['source']} was not given any time for {seconds}."
                found.append(Mark(event["t"], "exception", f"stood still for {seconds}", text))
            case "uncaught":
                name = event["exception"].rpartition(".")[2]
                text = f"{event['thread']} ended with {name}: {event['message']} Response: {event['response']}."
                found.append(Mark(event["t"], "exception", name, text))
    return sorted(found, key=lambda mark: mark.t)


def _step(event: Event) -> Mark:
    action = event["action"]
    kind = "in" if action.startswith("remove") or action.endswith("stop") else "out"
    return Mark(event["t"], kind, f"{action} {event['instance']}", f"The driver: {action} in {event['instance']}.")


def _start(event: Event, before: str | None) -> Iterator[Mark]:
    """Only of a start that is not the instance's first."""
    name, release = event["name"], event["release"]
    if before is not None:
        other = "" if before == release else f" on {release}"
        text = f"{name} was started again, on Kafka Streams {release}" + (f" after {before}." if other else ".")
        yield Mark(event["t"], "start", f"restart {name}{other}", text)


def _quota(event: Event) -> Mark:
    limit = event["bytes_per_second"]
    if limit is None:
        return Mark(event["t"], "quota", "quota lifted", f"The quota of {event['client']} was lifted.")
    return Mark(event["t"], "quota", f"quota {limit:,} B/s", f"{event['client']} may send {limit:,} bytes/s.")


def _crash(event: Event) -> str:
    """What the process left behind, as far as the scenario tells."""
    if "published" in event:
        return "published: " + ", ".join(f"{count:,} {role}" for role, count in event["published"].items())
    if "processed" in event:
        return f"{event['processed'] - event['committed']:,} records in the open transaction"
    return f"killed during {event['during']}"


def _fields(event: Event) -> str:
    return ", ".join(f"{k.replace('_', ' ')}: {v}" for k, v in event.items() if k not in ("t", "source", "event"))


def grouped(marks: Sequence[Mark], near: int) -> list[Mark]:
    """Marks of one kind and label that follow each other within `near` milliseconds, as one."""
    groups: list[list[Mark]] = []
    last: dict[tuple[str, str], list[Mark]] = {}
    for mark in marks:
        group = last.get((mark.kind, mark.label))
        if group is not None and mark.t - group[-1].t <= near:
            group.append(mark)
        else:
            last[mark.kind, mark.label] = [mark]
            groups.append(last[mark.kind, mark.label])
    return [
        Mark(
            group[0].t,
            group[0].kind,
            group[0].label + (f" ×{len(group)}" if len(group) > 1 else ""),
            "\n".join(dict.fromkeys(mark.text for mark in group)),
        )
        for group in groups
    ]


def staggered(marks: Sequence[Mark], begin: int, end: int) -> list[tuple[int, str]]:
    """For each mark the level of its label, 0 at the top, and its side, so that none hides another.

    From each mark a stem goes down, which must not cross a label. The side is `right` or, near the end, `left`; empty
    where there is no room: such a mark tells by hovering only.
    """
    taken: list[_Label] = []
    placed: dict[int, tuple[int, str]] = {}
    # A text to the left lies beside earlier marks, so the latest is placed first and comes out above them.
    spots = [(number, *_spot(mark, begin, end)) for number, mark in enumerate(marks)]
    rightward = [spot for spot in spots if spot[2] == "right"]
    leftward = [spot for spot in spots if spot[2] == "left"]
    for number, at, side, left, right in (*rightward, *reversed(leftward)):
        labels = (_Label(level, at, left, right) for level in range(LEVELS))
        label = next((label for label in labels if not any(label.hides(other) for other in taken)), None)
        if label is not None:
            taken.append(label)
            placed[number] = (label.level, side)
    beneath = 1 + max((level for level, _ in placed.values()), default=-1)
    return [placed.get(number, (beneath, "")) for number in range(len(marks))]


def _spot(mark: Mark, begin: int, end: int) -> tuple[float, str, float, float]:
    """Where a mark is in pixels, on which side its text, from where to where."""
    at = (mark.t - begin) / (end - begin) * WIDTH
    long = len(mark.label) * LETTER + 16
    return (at, "right", at + 8, at + long) if at + long <= WIDTH + MARGIN else (at, "left", at - long, at - 8)


@dataclass(frozen=True)
class _Label:
    """The place of a mark at `at` and its text from `left` to `right`, in pixels."""

    level: int
    at: float
    left: float
    right: float

    def hides(self, other: "_Label") -> bool:
        """Whether the two touch, or the stem of the upper one goes through the text of the lower."""
        if self.level == other.level:
            begin, end = min(self.at - 8, self.left), max(self.at + 8, self.right)
            return begin < max(other.at + 8, other.right) and min(other.at - 8, other.left) < end
        upper, lower = (self, other) if self.level < other.level else (other, self)
        return lower.left <= upper.at <= lower.right
