"""Bands: what the driver did, the state of each instance, which thread held which task, when partitions were idle.

Every function takes events in order of time. Times are epoch milliseconds.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from onceproof.model.timeline import Event
from onceproof.page.timeline.flow import Advance, advances_of, short_thread

KILLED = "killed"
FROZEN = "frozen"
TASK_ROWS = 30


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
    """The actions of the driver: one band after the other, as kind its name."""
    rows = _Rows()
    for event in events:
        if event["event"] == "phase":
            rows.turn(("phase",), event["name"], event["t"])
    return rows.bands(events)


def instance_bands(events: Sequence[Event]) -> list[Band]:
    """The state of each instance; row (instance,). Between its close and its next start there is nothing.

    Kinds are those of `KafkaStreams.State`, `killed`, which lasts until the instance is started again, and `frozen`,
    which lasts until it is thawed.
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

    A thread that is listed without any task says nothing, so its bands continue; one that is not listed is gone, and
    all are gone once their instance was killed or closed. A later thread of the same name has the same row.
    """
    rows = _Rows()
    for event in events:
        if event["event"] == "assignment":
            _assign(rows, event["source"], event["threads"], event["t"])
        elif event["event"] == "instance":
            _assign(rows, event["name"], [], event["t"])
        elif event["event"] == "closed":
            _assign(rows, event["source"], [], event["t"])
    return _with_records(rows.bands(events), advances_of(events))


def idle_bands(events: Sequence[Event]) -> list[Band]:
    """The longest time in which records of a partition of the input waited; row (input, partition)."""
    found = [event for event in events if event["event"] == "idle"]
    return sorted(
        (Band((f"input/{e['partition']}",), "idle", e["t"], e["t"] + e["ms"]) for e in found), key=lambda band: band.row
    )


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


class _Rows:
    """Rows of bands under construction, each with at most one open."""

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


def _with_records(bands: Sequence[Band], advances: Iterable[Advance]) -> list[Band]:
    """The bands with what was processed in them: progress may be reported a little before or after a band."""
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


def choose_rows(tasks: Sequence[Band], came_back: set[tuple[str, ...]], most: int = TASK_ROWS) -> list[Band]:
    """The bands of all tasks; if these have too many rows, of those that came back, else of those that moved.

    A task is shown with all its rows, as long as there is room.
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
