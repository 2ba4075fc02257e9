"""The promise `windows`: what an aggregation by windows of time gives."""

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from onceproof.model.anomaly import Comparison
from onceproof.model.place import Place
from onceproof.model.record import Facts, Record
from onceproof.readers.comparisons import as_number, by_partition, by_place, records_text

SUM_BITS = 22  # of a value; the others are the time at which its window starts
TUMBLING, HOPPING, SESSION, SLIDING = range(4)  # values of the fact `kind`
FIRST_TWICE = ", the first one twice"  # and the others once each, as is due
MORE = 101  # the aggregator of the second stream adds what a value lacks to that


class Window(NamedTuple):
    """A window of a key; of a window that is no session `end` follows from its start."""

    key: int | None
    start: int
    end: int


class Update(NamedTuple):
    """The content of a window after one of its records: their sum, 0 if another session has taken it in."""

    sum: int
    timestamp: int
    source: Record

    @property
    def text(self) -> str:
        """In words."""
        return f"{self.sum or 'nothing'} at {self.timestamp}"


def compare_windows(inputs: Sequence[Record], outputs: Sequence[Record], facts: Facts) -> Iterator[Comparison]:
    """Each window with the output for it; what breaches it first, if anything does.

    Args:
        inputs: of the topology `windows`.
        outputs: `start << 22 | sum`.
        facts: `kind`; `size` and `grace` in ms; `suppressed`: whether a window is emitted only when it has closed;
            `limit`: for how many ms updates are held back, 0 if they are not; `cogrouped`: whether odd values have an
            aggregator of their own. A trial of before there were the last two lacks them.
    """
    found: dict[Window, list[Record]] = defaultdict(list)
    for record in sorted(outputs, key=by_place):
        start = as_number(record.value) >> SUM_BITS
        end = record.timestamp if facts["kind"] == SESSION else start + facts["size"]
        found[Window(record.key, start, end)].append(record)
    known: set[Window] = set()
    for records in by_partition(inputs).values():
        closed = max(record.timestamp for record in records) - _read_kept_open(facts)
        all_updates = _updates(records, facts)
        if limit := facts.get("limit"):
            all_updates = _hold_back(records, all_updates, limit)
        for window, updates in all_updates.items():
            known.add(window)
            if not updates:
                if there := found[window]:
                    yield _breach("early-result", window, there[-1], "nothing: its time is not up", _text(there[-1]))
            elif not facts["suppressed"]:
                yield _compare(window, updates, found[window])
            elif window.end > closed or not updates[-1].sum:
                if there := found[window]:
                    why = "it has not closed" if updates[-1].sum else "another took it in"
                    yield _breach("early-result", window, there[-1], f"nothing: {why}", _text(there[-1]))
            else:
                yield _compare(window, updates[-1:], found[window])
    for window, there in found.items():
        if window not in known:
            yield _breach("unexpected-record", window, there[-1], "nothing", _text(there[-1]))


def _read_kept_open(facts: Facts) -> int:
    """How long after its end, in ms, a window takes records.

    A session that ends may still grow; the end of a window that slides is one of its times (KIP-450).
    """
    return facts["grace"] + {SESSION: facts["size"], SLIDING: 1}.get(facts["kind"], 0)


def _weight(record: Record, facts: Facts) -> int:
    value = as_number(record.value)
    return MORE - value if facts.get("cogrouped") and value % 2 else value


def _updates(records: Iterable[Record], facts: Facts) -> dict[Window, list[Update]]:
    """The results that the records of a partition, in their order, make of each window, update by update."""
    updates: dict[Window, list[Update]] = defaultdict(list)
    sessions: dict[int | None, dict[Window, int]] = defaultdict(dict)  # sums by key
    counted: dict[int | None, list[tuple[int, int]]] = defaultdict(list)  # times and values by key, sorted
    now = 0  # the time of the task
    for record in records:
        now = max(now, record.timestamp)
        closed = now - _read_kept_open(facts)
        if facts["kind"] == SESSION:
            _join_sessions(record, facts["size"], closed, sessions[record.key], updates)
            continue
        if facts["kind"] == SLIDING:
            _slide(record, facts["size"], closed, counted[record.key], updates)
            continue
        for start in _starts(record.timestamp, facts):
            window = Window(record.key, start, start + facts["size"])
            if window.end > closed:
                of_window = updates[window]
                before, made = (of_window[-1].sum, of_window[-1].timestamp) if of_window else (0, 0)
                of_window.append(Update(before + _weight(record, facts), max(made, record.timestamp), record))
    return updates


def _starts(timestamp: int, facts: Facts) -> Iterator[int]:
    """When the windows that have a time in them start."""
    advance = facts["size"] // 2 if facts["kind"] == HOPPING else facts["size"]
    last = timestamp - timestamp % advance
    yield from (start for start in range(last, timestamp - facts["size"], -advance) if start >= 0)


def _slide(
    record: Record, size: int, closed: int, counted: list[tuple[int, int]], updates: dict[Window, list[Update]]
) -> None:
    """Have a record count in the windows that it slides into, and make those that it takes.

    There is a window that ends with each record, and one that begins just after it, if a record is in it (KIP-450).
    """
    at = record.timestamp
    if at + size <= closed:
        return
    by_time = itemgetter(0)
    near = counted[bisect_left(counted, at - size, key=by_time) : bisect_right(counted, at + size + 1, key=by_time)]
    times = {time for time, _ in near}
    starts = {at - size, *(time - size for time in times if at <= time <= at + size)}
    starts |= {time + 1 for time in times if time < at}
    if any(at < time <= at + size for time in times) and not times & {at, at + size + 1}:
        starts.add(at + 1)
    insort(counted, (at, as_number(record.value)))
    for start in sorted(starts):
        if start + size > closed:
            inside = [
                (time, value) for time, value in (*near, (at, as_number(record.value))) if start <= time <= start + size
            ]
            total, last = sum(value for _, value in inside), max(time for time, _ in inside)
            updates[Window(record.key, start, start + size)].append(Update(total, last, record))


def _hold_back(
    records: Iterable[Record], updates: Mapping[Window, Sequence[Update]], limit: int
) -> dict[Window, list[Update]]:
    """The updates that are emitted, if each waits until its task is so many ms older than it.

    One that comes meanwhile takes its place, and what comes with the record that ends the wait does so before.
    """
    ages, now = list[tuple[int, int]](), -1  # offsets at which the task gets older, and how old it is then
    for record in records:
        if record.timestamp > now:
            now = record.timestamp
            ages.append((now, record.offset))
    out: dict[Window, list[Update]] = {}
    for window, made in updates.items():
        out[window], until = [], -1  # offset of the record that ends the wait
        for number, update in enumerate(made):
            if update.source.offset > until:
                over = bisect_left(ages, update.timestamp + limit, key=itemgetter(0))
                if over == len(ages):
                    break
                until = ages[over][1]
            if number + 1 == len(made) or made[number + 1].source.offset > until:
                out[window].append(update)
    return out


def _join_sessions(
    record: Record, gap: int, closed: int, sessions: dict[Window, int], updates: dict[Window, list[Update]]
) -> None:
    """Have a record begin a session, or join those that are near and open, unless it comes too late for that.

    `sessions`: those of its key that may be open; what has closed is taken out.
    """
    at = record.timestamp
    for ended in [session for session in sessions if session.end <= closed]:
        del sessions[ended]  # it takes no more records
    near = [session for session in sessions if session.start <= at + gap and session.end >= at - gap]
    joined = Window(
        record.key, min([at, *(session.start for session in near)]), max([at, *(session.end for session in near)])
    )
    if joined.end < closed:
        return
    total = as_number(record.value)
    for session in near:
        total += sessions.pop(session)
        if joined.start != joined.end:
            updates[session].append(Update(0, session.end, record))
    sessions[joined] = total
    updates[joined].append(Update(total, joined.end, record))


def _compare(window: Window, updates: Sequence[Update], there: Sequence[Record]) -> Comparison:
    partition = updates[-1].source.partition
    astray = next((record for record in there if record.partition != partition), None)
    if astray:
        return _breach("wrong-partition", window, astray, f"partition {partition}", f"partition {astray.partition}")
    if len(there) < len(updates):
        source = updates[-1].source
        place = str(Place("input", source.partition, source.offset))
        expected, observed = (f"{records_text(n)} of {_name_window(window)}" for n in (len(updates), len(there)))
        return Comparison("windows", "lost-record", partition, window.key, place, expected, observed)
    if len(there) > len(updates):
        expected, observed = (f"{records_text(n)} of {_name_window(window)}" for n in (len(updates), len(there)))
        texts, due = [_text(record) for record in there], [update.text for update in updates]
        if texts == [due[0], *due]:
            observed += FIRST_TWICE
        return _breach("duplicate-output", window, there[-1], expected, observed)
    for update, record in zip(updates, there, strict=True):
        if update.text != _text(record):
            differs = "wrong-value" if update.sum != _sum(record) else "wrong-timestamp"
            return _breach(differs, window, record, update.text, _text(record))
    last = there[-1]
    return _breach(None, window, last, _text(last), _text(last))


def _breach(anomaly: str | None, window: Window, record: Record, expected: str, observed: str) -> Comparison:
    place = str(Place("output", record.partition, record.offset))
    return Comparison("windows", anomaly, record.partition, window.key, place, expected, observed)


def _name_window(window: Window) -> str:
    return f"the window from {window.start} to {window.end}"


def _sum(record: Record) -> int:
    return as_number(record.value) % (1 << SUM_BITS)


def _text(record: Record) -> str:
    return f"{_sum(record) or 'nothing'} at {record.timestamp}"
