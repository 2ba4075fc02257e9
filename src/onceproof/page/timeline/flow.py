"""Records over time: what was produced, what was processed, and when a record was."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from onceproof.model.timeline import Event


@dataclass(frozen=True)
class Advance:
    """A thread reported that it had processed this many more records of a task."""

    t: int
    row: tuple[str, ...]  # task, instance, thread
    records: int


def short_thread(thread: str, instance: str) -> str:
    """The part of its name that distinguishes a thread from the others of its instance: `StreamThread-1`."""
    return thread.rpartition(f"-{instance}-")[2]


def advances_of(events: Iterable[Event]) -> Iterator[Advance]:
    """The processed records, step by step. An instance that is started again counts from 0."""
    counts: dict[tuple[str, ...], int] = {}
    for event in events:
        if event["event"] == "instance" and event["action"] == "started":
            counts = {row: count for row, count in counts.items() if row[1] != event["name"]}
        elif event["event"] == "progress":
            for progress in event["processed"]:
                row = (progress["task"], event["source"], short_thread(progress["thread"], event["source"]))
                if progress["count"] > counts.get(row, 0):
                    yield Advance(event["t"], row, progress["count"] - counts.get(row, 0))
                    counts[row] = progress["count"]


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


def flow(events: Sequence[Event], preloaded: int) -> list[Flow]:
    """Records produced and processed over time.

    What a killed instance had processed for nothing, so that it came again, is taken back when it is killed. How much
    that was is known once the input is drained: all that was processed beyond what was produced.

    Args:
        events: of the trial.
        preloaded: records that were produced before the trial was driven.
    """
    steps: list[tuple[int, str, int]] = [(event["t"], "", 0) for event in (*events[:1], *events[-1:])]
    delivered: dict[str, int] = {}
    for event in events:
        if event["event"] == "produced":
            steps.append((event["t"], "produced", event["records"] - delivered.get(event["name"], 0)))
            delivered[event["name"]] = event["records"]
    steps += [(advance.t, "processed", advance.records) for advance in advances_of(events)]
    steps += [(t, "processed", -records) for t, records in _in_vain(events, preloaded + sum(delivered.values()))]
    totals = {"produced": preloaded, "processed": 0, "": 0}
    points = []
    for t, name, records in sorted(steps):
        totals[name] += records
        points.append(Flow(t, totals["produced"], totals["processed"]))
    return points


def _in_vain(events: Sequence[Event], produced: int) -> Iterator[tuple[int, int]]:
    """When the instance died whose work was repeated, and how many records that was."""
    kills = [e["t"] for e in events if e["event"] == "instance" and e["action"] == "killed"]
    advances = list(advances_of(events))
    again = sum(advance.records for advance in advances) - produced
    worked = [t for t in kills if any(advance.t <= t for advance in advances)]
    if worked and again > 0 and any(e["event"] == "drained" for e in events):
        # Of several that were killed, one after the other, only the first died in the middle of its work.
        yield worked[0], again


def thin_out(points: Sequence[Flow], most: int = 600) -> list[Flow]:
    """The last point of each of this many equal spans of time: as many as a screen can show."""
    if not points:
        return []
    begin, span = points[0].t, (points[-1].t - points[0].t) // most + 1
    last = {(point.t - begin + span - 1) // span: point for point in points}
    return list(last.values())


def time_processed(events: Sequence[Event], task: str, offset: int, end: int) -> tuple[int, int] | None:
    """When the record of a task's input at this offset was processed: the first and the last time.

    The last is counted backwards from the end, for what came twice was processed before.

    Args:
        events: of the trial.
        task: of one input partition, whose records have all offsets from 0 on.
        offset: of the record.
        end: how many records the partition has.

    Returns:
        None if no instance reported that many records.
    """
    advances = [advance for advance in advances_of(events) if advance.row[0] == task]
    first = _find_passed(advances, offset + 1)
    last = _find_passed(advances, sum(advance.records for advance in advances) - end + offset + 1)
    return None if first is None or last is None else (first, max(first, last))


def _find_passed(advances: Sequence[Advance], records: int) -> int | None:
    total = 0
    for advance in advances:
        total += advance.records
        if total >= records:
            return advance.t
    return None
