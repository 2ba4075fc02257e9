"""The results of joins, as a function of the input's order."""

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterator, Sequence
from operator import itemgetter

from onceproof.model.record import Record
from onceproof.readers.comparisons import as_number, split_pair

FIRST_TOTAL = 1_000_000  # the key of the first of the sums that the topology `table-join` makes of its groups
GROUPS, TOTALS = 5_000, 10  # the group of a key is its remainder, and so is the total of a group
LAST_DIGITS = 1_000  # the remainder of the sum of a group counts in its total
DELETES = 1  # the value, of either sign, that deletes
SECOND_ATTRIBUTE = 1_000_000  # how much the second attribute of a row of `foreign-key-join` counts in its value
ROW_DELETED = 999_999  # the value that deletes such a row


def with_entries(inputs: Sequence[Record], added: int = 0) -> Iterator[Record]:
    """Each record of the topology `global-join` with what it is emitted with: `value << 32 | entry`.

    An entry has a value below 0, and its own number is emitted with the value 0; another record is emitted with the
    number of the last entry of the key before its value, to which a global store's processor has `added`, or with 0.
    """
    table = {record.key: added - record.value for record in inputs if record.value is not None and record.value < 0}
    for record in inputs:
        value = as_number(record.value)
        gives = -value if value < 0 else value << 32 | table.get(value - 1, 0)
        yield record._replace(value=gives)


def by_foreign_key(inputs: Sequence[Record], *, outer: bool = False) -> Iterator[Record]:
    """The last record of each key of the left table, with what the topology `foreign-key-join` makes of it at the end.

    Records with a value below 0 are those of the right table. In one of the left `ROW_DELETED` deletes; of any other
    value the last six decimal digits are what it asks for: the key before that number, or none if it is 0. Where both
    exist, the result is `left << 32 | right`, as old as the younger of the two. A left join (`outer`) also gives
    records of the left table that have none in the right one, with 0 in its place.
    """
    left: dict[int | None, Record] = {}
    right: dict[int | None, Record] = {}
    for record in inputs:
        (right if record.value is not None and record.value < 0 else left)[record.key] = record
    for record in left.values():
        value = as_number(record.value)
        asked = value % SECOND_ATTRIBUTE
        other = right.get(asked - 1) if asked and value != ROW_DELETED else None
        if other is None or other.value is None:
            yield record._replace(value=value << 32 if outer and value != ROW_DELETED else None)
        else:
            timestamp = max(record.timestamp, other.timestamp)
            yield record._replace(value=value << 32 | -other.value, timestamp=timestamp)


def changes_of(inputs: Sequence[Record]) -> Iterator[Record]:
    """The records of the topology `as-of-join` that change its table."""
    return (record for record in inputs if as_number(record.value) <= 0)


def as_of(inputs: Sequence[Record], retention: int) -> Iterator[Record]:
    """Each record of the topology `as-of-join` with what it is emitted with: `value << 32 | version`.

    A value below 0 puts the version of that number, 0 deletes the key, both from the record's time on, and their own
    number is emitted; another record is emitted with the version of its key at its own time, or with 0 for none. The
    time of a table is that of its youngest record. What is older than that by more than the `retention`, in ms, changes
    nothing, and gets a version only if it is the last one of the key. A table without versions (`retention` is 0) gives
    what was put last.

    Args:
        inputs: in the order of each partition.
        retention: of the table's history, in ms.
    """
    versions: dict[int | None, list[tuple[int, int, int]]] = defaultdict(list)  # of a key: time, offset, number
    youngest: dict[int, int] = {}  # by partition
    for record in inputs:
        value, of_key = as_number(record.value), versions[record.key]
        time = record.timestamp if retention else 0
        is_old = time < youngest.get(record.partition, time) - retention
        if value <= 0:
            if not is_old:
                insort(of_key, (time, record.offset, -value))
                youngest[record.partition] = max(time, youngest.get(record.partition, time))
            yield record._replace(value=-value)
            continue
        place = bisect_right(of_key, (time, record.offset), key=itemgetter(0, 1))
        found = place and (place == len(of_key) or not is_old)
        yield record._replace(value=value << 32 | (of_key[place - 1][2] if found else 0))


def by_key(inputs: Sequence[Record], join: int) -> Iterator[Record]:
    """For each key its last record with what the topology `table-join` makes of it, and each total.

    A total has the sum of the last three digits of the sums of its groups, and such a sum both sides of all results.
    Values above 0 are those of the left table, below 0 those of the right one. The result is `left << 32 | right`, 0
    for a side that is not there; as long as the join (0 inner, 1 left, 2 outer) has none there is no record, or 0. A
    result is as old as the last change of its key; a total as the last change of a result that there was before or is
    then.
    """
    sides: dict[int, dict[bool, int]] = {}
    results: dict[int, int] = {}
    last: dict[int, Record] = {}
    youngest: dict[int, Record] = {}
    for record in inputs:
        key, value = as_number(record.key), as_number(record.value)
        side = sides.setdefault(key, {True: 0, False: 0})
        side[value > 0] = 0 if abs(value) == DELETES else abs(value)
        before, now = results.get(key, 0), _result(side[True], side[False], join)
        results[key], last[key] = now, record
        if before or now:
            total = key % GROUPS % TOTALS
            known = youngest.get(total, record)
            youngest[total] = record._replace(timestamp=max(known.timestamp, record.timestamp))
    groups: dict[int, int] = {}
    for key, result in results.items():
        yield last[key]._replace(value=result)
        groups[key % GROUPS] = groups.get(key % GROUPS, 0) + sum(split_pair(result))
    for total, record in youngest.items():
        counted = sum(of % LAST_DIGITS for group, of in groups.items() if group % TOTALS == total)
        yield record._replace(key=FIRST_TOTAL + total, value=counted)


def _result(left: int, right: int, join: int) -> int:
    """The result of both sides of the join: 0 is nothing."""
    is_there = (left and right, left, left or right)[join]
    return left << 32 | right if is_there else 0
