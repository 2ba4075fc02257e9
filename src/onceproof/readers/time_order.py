"""The promise `time-order`: each record of a stream finds the entry that its key had in a table at its time."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from onceproof.model.anomaly import Comparison
from onceproof.model.place import Place
from onceproof.model.record import Facts, Record
from onceproof.readers.comparisons import as_number, by_partition, by_place, split_pair

NONE = 0  # instead of an entry
Result = tuple[int | None, int]  # key and value of a record of the stream, of which no two have the same


class Due(NamedTuple):
    """A record of the stream, the entry that its key has at its time, and all that the key ever has."""

    record: Record
    entry: int
    ever: frozenset[int]


def compare_time_order(
    inputs: Sequence[Record], entries: Sequence[Record], outputs: Sequence[Record], facts: Facts
) -> Iterator[Comparison]:
    """Compare the output of each record of the stream with what is due, and find output of none.

    Args:
        inputs: the stream, in the topology `two-topics`.
        entries: the records that make the table; no record of either topic has the time of another.
        outputs: `value << 32 | entry`, 0 for none.
        facts: `exactly_once`: without it a result may come again.
    """
    found: dict[Result, list[Record]] = defaultdict(list)
    for output in sorted(outputs, key=by_place):
        found[output.key, split_pair(output.value)[0]].append(output)
    for records in by_partition(inputs).values():
        latest: dict[int, int] = {}  # offset, by partition of the output
        for due in _due(records, entries):
            came = found.pop((due.record.key, as_number(due.record.value)), [])
            yield _compare(due, came, latest, exactly_once=bool(facts.get("exactly_once", 1)))
            if came:
                latest[came[0].partition] = max(came[0].offset, latest.get(came[0].partition, -1))
    for key, value in found:
        last = found[key, value][-1]
        place = str(Place("output", last.partition, last.offset))
        yield Comparison("time-order", "unexpected-record", last.partition, key, place, "nothing", _text(last.value))


def _due(records: Sequence[Record], entries: Sequence[Record]) -> Iterator[Due]:
    """The records of a partition of the stream in order, each with what it must find."""
    partition = records[0].partition
    coming = sorted((e for e in entries if e.partition == partition), key=attrgetter("timestamp"))
    ever: dict[int | None, set[int]] = defaultdict(lambda: {NONE})
    for entry in coming:
        ever[entry.key].add(entry.value or NONE)
    frozen = {key: frozenset(held) for key, held in ever.items()}
    table: dict[int | None, int] = {}
    taken = 0
    for record in records:
        while taken < len(coming) and coming[taken].timestamp < record.timestamp:
            table[coming[taken].key] = coming[taken].value or NONE
            taken += 1
        yield Due(record, table.get(record.key, NONE), frozen.get(record.key, frozenset({NONE})))


def _compare(due: Due, came: Sequence[Record], latest: dict[int, int], *, exactly_once: bool) -> Comparison:
    p, offset, key, value, timestamp = due.record[:5]
    expected = _text(as_number(value) << 32 | due.entry)
    if not came:
        return Comparison("time-order", "lost-record", p, key, str(Place("input", p, offset)), expected, "nothing")
    first = came[0]
    entry = split_pair(first.value)[1]
    breach: tuple[str | None, str, str] = (None, expected, expected)
    if first.partition != p:
        breach = "wrong-partition", f"partition {p}", f"partition {first.partition}"
    elif first.timestamp != timestamp:
        breach = "wrong-timestamp", str(timestamp), str(first.timestamp)
    elif entry != due.entry:
        breach = "wrong-time" if entry in due.ever else "wrong-value", expected, _text(first.value)
    elif len(came) > 1 and exactly_once:
        first, breach = came[-1], ("duplicate-output", "1 record", f"{len(came)} records")
    elif first.offset < (before := latest.get(p, -1)):
        breach = "wrong-order", f"behind output/{p}@{before}", f"at output/{p}@{first.offset}"
    place = str(Place("output", first.partition, first.offset))
    return Comparison("time-order", breach[0], first.partition, key, place, *breach[1:])


def _text(value: int | None) -> str:
    number, entry = split_pair(value)
    return f"{number} with {entry or 'nothing'}"
