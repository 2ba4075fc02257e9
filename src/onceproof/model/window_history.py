"""The history of windows, as the input makes it: what a wrong number of results of one may come from.

The records of the topology `windows`, whose witnesses name their window in words, `the window from 100 to 200` (ms),
and of `stream-join`, whose witnesses name their records, as in `3 with nothing`.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from onceproof.model.anomaly import Witness
from onceproof.model.history import Input

# How a wrong number of results may have come about.
WindowWay = Literal["made-twice", "segment-gone", "reached", "grown", "overtaken"]
ALONE = re.compile(r"^(?:(?P<left>\d+) with nothing|nothing with (?P<right>\d+))$")
NAMED = re.compile(r"the window from (\d+) to (\d+)")
UNEXPECTED = re.compile(r" at (\d+)$")  # in what was observed of one that should not be: its end, if it is a session
SEGMENT = 60_000  # ms, the least time that a segment of a store has


class WindowHistory:
    """The times of the records of each key, and the youngest of each partition."""

    def __init__(self, inputs: Iterable[Input], parameters: Mapping[str, Any]) -> None:
        """Go through the input.

        Args:
            inputs: its records, in any order.
            parameters: of the trial: `size`, of a session its gap, and `grace`, in ms; of a join `window` and `before`.
        """
        self._size = parameters.get("size", 0)
        # By partition and key; of each record its time, and the time before which a session had to end to be closed.
        self._records: dict[tuple[int, int | None], list[tuple[int, int]]] = defaultdict(list)
        self._youngest = youngest = dict[int, int]()
        self._overtaken = set[tuple[int, int | None, int | None]]()  # partition, key and value
        after = parameters.get("window", 0)
        after_right = parameters.get("before") or after
        for partition, _, key, value, time in sorted(inputs, key=lambda record: record[:2]):
            youngest[partition] = max(time, youngest.get(partition, time))
            closed = youngest[partition] - self._size - parameters.get("grace", 0)
            self._records[partition, key].append((time, closed))
            if time + (after if (value or 0) > 0 else after_right) < youngest[partition]:
                self._overtaken.add((partition, key, value))

    def shows(self, way: WindowWay, witness: Witness) -> bool:
        """Whether a wrong number of results may have come about in a way.

        made-twice: the window slides, begins just after a record of its key, and ends with the first that came in it,
            which came later. So Kafka Streams makes it as the right window of one and as the left of the other. It
            knows of the first by a window that begins just after one more record, within a size before it.
        segment-gone: the task got so old that the segment of the store that the window ended in was dropped.
        reached: a record of its key was too late to begin a session, and is within the gap of this one. So it may join
            it to one that has closed, if the store still finds that.
        grown: a record of its key came within the gap of this session when this had closed. If the store still finds
            it, it goes, with a record that says so, and a longer one takes its place.

        overtaken: when the record that was emitted alone came, the task was older than its window, though perhaps not
            by the grace. So Kafka Streams did not have it wait.

        A witness that names no window, or no record that is alone, is of none.
        """
        if way == "overtaken":
            alone = ALONE.search(witness.observed)
            value = alone and (int(alone["left"]) if alone["left"] else -int(alone["right"]))
            return value is not None and (witness.partition, witness.key, value) in self._overtaken
        start, end = _window(witness)
        if end is None:
            return False
        if way == "segment-gone":
            return self._youngest.get(witness.partition, end) // SEGMENT > end // SEGMENT
        records = self._records[witness.partition, witness.key]
        if way in ("reached", "grown"):
            near = range(start - self._size, end + self._size + 1)
            return any(time in near and (time if way == "reached" else end) < closed for time, closed in records)
        times = [time for time, _ in records]
        first = next((place for place, time in enumerate(times) if start <= time <= end), len(times))
        before, previous = times[:first], start - 1
        shown = any(previous - (end - start) <= time < previous for time in before)  # by the window of another record
        return times[first : first + 1] == [end] and previous in before and shown


def _window(witness: Witness) -> tuple[int, int | None]:
    """The start and the end of its window; of one that should not be only the end is known."""
    if named := NAMED.search(witness.expected):
        return int(named[1]), int(named[2])
    end = UNEXPECTED.search(witness.observed) if witness.anomaly == "unexpected-record" else None
    return 0, end and int(end[1])
