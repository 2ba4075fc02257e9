"""The promise `matches`: what a join of two streams within a window of time gives."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from onceproof.model.anomaly import Comparison
from onceproof.model.place import Place
from onceproof.model.record import Facts, Record
from onceproof.readers.comparisons import as_number, by_place, has_ended, split_pair

LEFT, OUTER = 1, 2  # values of the fact `join`; 0 is inner
Result = tuple[int | None, int | None]  # key and `left << 32 | right` (its numbers are of one record each)


class Given(NamedTuple):
    """Where a result must be, how old it is, and the younger of the records that give it."""

    partition: int
    timestamp: int
    source: Record
    is_due: bool  # false: it may be there or not


def compare_matches(inputs: Sequence[Record], outputs: Sequence[Record], facts: Facts) -> Iterator[Comparison]:
    """Each result that the input gives, and each that it does not.

    A record that comes too late, by more than the grace, may find its matches or not, and be emitted alone or not.

    Args:
        inputs: of the topology `stream-join`: the left stream has values above 0, the right one below.
        outputs: `left << 32 | right`, 0 where a record was emitted alone.
        facts: `window` and `grace` in ms, `join`; `before`, in ms, by which one of the right stream may be the older
            one, if it is not `window`; `exactly_once`: without it a result may come again; `ended` is 0 of a
            drive that failed, which may still owe results of records that are alone.
    """
    wanted = dict(_find_given(inputs, facts))
    is_over = has_ended(facts)  # records that wait alone are looked for once a second, so what failed may owe some
    found: dict[Result, list[Record]] = defaultdict(list)
    for record in sorted(outputs, key=by_place):
        found[record.key, record.value].append(record)
    for result, given in wanted.items():
        key, value = result
        if result not in found:
            if not given.is_due or (_alone(value) and not is_over):
                continue
            p, offset = given.source[:2]
            anomaly = "lost-alone" if _alone(value) else "lost-record"
            yield Comparison("matches", anomaly, p, key, str(Place("input", p, offset)), _text(value), "nothing")
            continue
        first, last = found[result][0], found[result][-1]
        again = len(found[result]) if facts["exactly_once"] else 1
        breach: tuple[str | None, str, str] = (None, _text(value), _text(value))
        if first.partition != given.partition:
            breach = "wrong-partition", f"partition {given.partition}", f"partition {first.partition}"
        elif first.timestamp != given.timestamp:
            breach = "wrong-timestamp", str(given.timestamp), str(first.timestamp)
        elif again > 1:
            first, breach = last, ("duplicate-output", "1 record", f"{again} records")
        place = str(Place("output", first.partition, first.offset))
        yield Comparison("matches", breach[0], first.partition, key, place, *breach[1:])
    for key, value in found.keys() - wanted.keys():
        last = found[key, value][-1]
        place = str(Place("output", last.partition, last.offset))
        anomaly = "early-alone" if _alone(value) else "unexpected-record"
        yield Comparison("matches", anomaly, last.partition, key, place, "nothing", _text(value))


def _find_given(inputs: Sequence[Record], facts: Facts) -> Iterator[tuple[Result, Given]]:
    """The results of each partition: its pairs, and those that are alone when their window has closed."""
    before = facts.get("before", facts["window"])
    of_key: dict[tuple[int, int | None], list[Record]] = defaultdict(list)
    ends: dict[int, int] = {}
    late: set[Record] = set()
    for record in sorted(inputs, key=by_place):
        of_key[record.partition, record.key].append(record)
        ends[record.partition] = max(record.timestamp, ends.get(record.partition, record.timestamp))
        if record.timestamp < ends[record.partition] - facts["grace"]:
            late.add(record)
    for (partition, key), records in of_key.items():
        left = [record for record in records if as_number(record.value) > 0]
        right = [record for record in records if as_number(record.value) <= 0]
        matched: set[Record] = set()  # by one that came in time, if they did so, too
        met: set[Record] = set()  # by any
        for record in left:
            for other in right:
                if -before <= other.timestamp - record.timestamp <= facts["window"]:
                    pair, younger = {record, other}, max(record.timestamp, other.timestamp)
                    met |= pair
                    is_due = pair.isdisjoint(late)
                    matched |= pair if is_due else set()
                    yield (key, _pair(record, other)), Given(partition, younger, max(record, other), is_due)
        closed = ends[partition] - facts["window"] - facts["grace"]
        waiting = [*(left if facts["join"] >= LEFT else ()), *(right if facts["join"] == OUTER else ())]
        for record in waiting:
            if record not in matched and record.timestamp < closed:
                is_due = record not in met and record not in late
                yield (key, _pair(record)), Given(partition, record.timestamp, record, is_due)


def _pair(*records: Record) -> int:
    values = [as_number(record.value) for record in records]
    return sum(value << 32 if value > 0 else -value for value in values)


def _alone(value: int | None) -> bool:
    return 0 in split_pair(value)


def _text(value: int | None) -> str:
    left, right = split_pair(value)
    return f"{left or 'nothing'} with {right or 'nothing'}"
