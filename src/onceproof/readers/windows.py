"""The promise `windows`: what an aggregation by windows of time gives."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from onceproof.model.anomaly import Comparison
from onceproof.model.place import Place
from onceproof.model.record import Facts, Record
from onceproof.readers.comparisons import by_partition, by_place, records_text

SUM_BITS = 22  # of a value; the others are the time at which its window starts
TUMBLING, HOPPING, SESSION = range(3)  # values of the fact `kind`


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
    """Each window with what came out for it; what breaches it first, if anything does.

    Args:
        inputs: of the topology `windows`.
        outputs: `start << 22 | sum`.
        facts: `kind`; `size` and `grace` in ms; `suppressed`: whether a window comes out only when it has closed.
    """
    found: dict[Window, list[Record]] = defaultdict(list)
    for record in sorted(outputs, key=by_place):
        start = (record.value or 0) >> SUM_BITS
        end = record.timestamp if facts["kind"] == SESSION else start + facts["size"]
        found[Window(record.key, start, end)].append(record)
    known: set[Window] = set()
    for records in by_partition(inputs).values():
        closed = max(record.timestamp for record in records) - _kept_open(facts)
        for window, updates in _updates(records, facts).items():
            known.add(window)
            if not facts["suppressed"]:
                yield _compared(window, updates, found[window])
            elif window.end > closed or not updates[-1].sum:
                if there := found[window]:
                    why = "it has not closed" if updates[-1].sum else "another took it in"
                    yield _breach("early-result", window, there[-1], f"nothing: {why}", _text(there[-1]))
            else:
                yield _compared(window, updates[-1:], found[window])
    for window, there in found.items():
        if window not in known:
            yield _breach("unexpected-record", window, there[-1], "nothing", _text(there[-1]))


def _kept_open(facts: Facts) -> int:
    """How long after its end, in ms, a window takes records; a session that ends may still grow."""
    return facts["grace"] + (facts["size"] if facts["kind"] == SESSION else 0)


def _updates(records: Iterable[Record], facts: Facts) -> dict[Window, list[Update]]:
    """The results that the records of a partition, in their order, make of each window, update by update."""
    updates: dict[Window, list[Update]] = defaultdict(list)
    sessions: dict[int | None, dict[Window, int]] = defaultdict(dict)  # sums by key
    now = 0  # the time of the task
    for record in records:
        now = max(now, record.timestamp)
        closed = now - _kept_open(facts)
        if facts["kind"] == SESSION:
            _join_sessions(record, facts["size"], closed, sessions[record.key], updates)
            continue
        for start in _starts(record.timestamp, facts):
            window = Window(record.key, start, start + facts["size"])
            if window.end > closed:
                of_window = updates[window]
                before, made = (of_window[-1].sum, of_window[-1].timestamp) if of_window else (0, 0)
                of_window.append(Update(before + (record.value or 0), max(made, record.timestamp), record))
    return updates


def _starts(timestamp: int, facts: Facts) -> Iterator[int]:
    """When the windows that have a time in them start."""
    advance = facts["size"] // 2 if facts["kind"] == HOPPING else facts["size"]
    last = timestamp - timestamp % advance
    yield from (start for start in range(last, timestamp - facts["size"], -advance) if start >= 0)


def _join_sessions(
    record: Record, gap: int, closed: int, sessions: dict[Window, int], updates: dict[Window, list[Update]]
) -> None:
    """Have a record begin a session, or join those that are near and open, unless it comes too late for that."""
    at = record.timestamp
    near = [
        session
        for session in sessions
        if session.start <= at + gap and session.end >= at - gap and session.end > closed
    ]
    joined = Window(
        record.key, min([at, *(session.start for session in near)]), max([at, *(session.end for session in near)])
    )
    if joined.end < closed:
        return
    total = record.value or 0
    for session in near:
        total += sessions.pop(session)
        if joined.start != joined.end:
            updates[session].append(Update(0, session.end, record))
    sessions[joined] = total
    updates[joined].append(Update(total, joined.end, record))


def _compared(window: Window, updates: Sequence[Update], there: Sequence[Record]) -> Comparison:
    partition = updates[-1].source.partition
    astray = next((record for record in there if record.partition != partition), None)
    if astray:
        return _breach("wrong-partition", window, astray, f"partition {partition}", f"partition {astray.partition}")
    if len(there) < len(updates):
        source = updates[-1].source
        place = str(Place("input", source.partition, source.offset))
        expected, observed = (f"{records_text(n)} of {_named(window)}" for n in (len(updates), len(there)))
        return Comparison("windows", "lost-record", partition, window.key, place, expected, observed)
    if len(there) > len(updates):
        return _breach("duplicate-output", window, there[-1], *map(records_text, (len(updates), len(there))))
    for update, record in zip(updates, there, strict=True):
        if update.text != _text(record):
            differs = "wrong-value" if update.sum != _sum(record) else "wrong-timestamp"
            return _breach(differs, window, record, update.text, _text(record))
    last = there[-1]
    return _breach(None, window, last, _text(last), _text(last))


def _breach(anomaly: str | None, window: Window, record: Record, expected: str, observed: str) -> Comparison:
    place = str(Place("output", record.partition, record.offset))
    return Comparison("windows", anomaly, record.partition, window.key, place, expected, observed)


def _named(window: Window) -> str:
    return f"the window from {window.start} to {window.end}"


def _sum(record: Record) -> int:
    return (record.value or 0) % (1 << SUM_BITS)


def _text(record: Record) -> str:
    return f"{_sum(record) or 'nothing'} at {record.timestamp}"
