"""The promise `punctuations`: a punctuator releases what a buffer holds, each record once and when it is due."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from onceproof.model.anomaly import Comparison
from onceproof.model.place import Place
from onceproof.model.record import Facts, Record
from onceproof.readers.comparisons import as_number, by_partition, by_place, has_ended, records_text, value_text

BUFFER = "buffer-changelog"
WAITED = (1 << 32) - 1  # the lower half of an output value: ms from the time of a record to that of its punctuation


class Expected(NamedTuple):
    """A record of the input, from when on it is due, and whether a punctuation must have come since."""

    source: Record
    due: int
    is_over: bool


def compare_punctuations(
    inputs: Sequence[Record], outputs: Sequence[Record], buffer: Sequence[Record], facts: Facts
) -> Iterator[Comparison]:
    """Each record with how it was emitted; what breaches that first, if anything does. Then what is still held after
    that.

    Args:
        inputs: of the topology `outbox`: each key once; the value is the wait in ms.
        outputs: `wait << 32 | waited`.
        buffer: the changelog of the buffer.
        facts: `clock`, 0 stream time, 1 wall clock; `interval` in ms; `ended` is 0 if the drive failed.
    """
    of_partition = by_partition(inputs)
    by_stream_time = not facts["clock"]
    times = {partition: _times(records) for partition, records in of_partition.items()}
    expected: dict[int | None, Expected] = {}
    for partition, records in of_partition.items():
        over = _last_due(times[partition], facts["interval"]) if by_stream_time else None
        due = 0
        for record in records:
            due = max(due, record.timestamp + as_number(record.value))
            is_over = has_ended(facts) if over is None else due <= over
            expected[record.key] = Expected(record, due, is_over)
    found: dict[int | None, list[Record]] = defaultdict(list)
    for record in sorted(outputs, key=by_place):
        found[record.key].append(record)
    before = _find_released_before(outputs, expected)
    had = {partition: set(of_task) for partition, of_task in times.items()}
    for key, awaited in expected.items():
        known = had[awaited.source.partition] if by_stream_time else None
        yield _compare(awaited, found.get(key, ()), known, before)
    for key in found.keys() - expected.keys():
        last = found[key][-1]
        yield _comparison("unexpected-record", "output", last, "nothing", records_text(len(found[key])))
    left = {(record.partition, record.key): record for record in sorted(buffer, key=by_place)}
    for (partition, key), record in left.items():
        at_home = key in expected and expected[key].source.partition == partition
        if record.value is not None and at_home and expected[key].is_over and key in found:
            yield _comparison("unreleased", BUFFER, record, "nothing", value_text(record.value), comparisons=0)


def _times(records: Sequence[Record]) -> list[int]:
    """The times that a task has while it reads a partition, record by record."""
    times, now = list[int](), 0
    for record in records:
        now = max(now, record.timestamp)
        times.append(now)
    return times


def _last_due(times: Sequence[int], interval: int) -> int:
    """Until when what is due must be out: the first time of the task at or after its last multiple of the interval."""
    multiple = times[-1] - times[-1] % interval
    return min(time for time in times if time >= multiple)


def _read_release(record: Record, source: Record) -> int:
    return source.timestamp + (as_number(record.value) & WAITED)


def _find_released_before(
    outputs: Sequence[Record], expected: Mapping[int | None, Expected]
) -> dict[tuple[int, int], int]:
    """For each record of the output, by place, the latest punctuation that released one before it."""
    before, latest = dict[tuple[int, int], int](), dict[int, int]()
    for record in sorted(outputs, key=by_place):
        awaited = expected.get(record.key)
        if awaited and awaited.source.partition == record.partition:
            before[record.partition, record.offset] = latest.get(record.partition, 0)
            latest[record.partition] = max(latest.get(record.partition, 0), _read_release(record, awaited.source))
    return before


def _compare(
    awaited: Expected, there: Sequence[Record], times: Collection[int] | None, before: Mapping[tuple[int, int], int]
) -> Comparison:
    """How a record was emitted; `times` are those of its task, None by the wall clock."""
    if not there:
        if awaited.is_over:
            return _comparison("unreleased", "input", awaited.source, "1 record", "0 records")
        return _comparison(None, "input", awaited.source, f"nothing before {awaited.due}", "nothing")
    last = there[-1]
    if len(there) > 1:
        return _comparison("duplicate-output", "output", last, "1 record", records_text(len(there)))
    at = _read_release(last, awaited.source)
    if at < awaited.due:
        return _comparison("early-release", "output", last, f"at {awaited.due} or later", f"at {at}")
    if times is not None and last.partition == awaited.source.partition:
        if at not in times:
            return _comparison("early-release", "output", last, "at a time of its task", f"at {at}")
        earlier = before[last.partition, last.offset]
        if awaited.due <= earlier < at:
            return _comparison("late-release", "output", last, f"at {earlier}, as others", f"at {at}")
    return _comparison(None, "output", last, f"at {at}", f"at {at}")


def _comparison(
    anomaly: str | None, role: str, record: Record, expected: str, observed: str, comparisons: int = 1
) -> Comparison:
    place = str(Place(role, record.partition, record.offset))
    return Comparison(
        "punctuations", anomaly, record.partition, record.key, place, expected, observed, comparisons=comparisons
    )
