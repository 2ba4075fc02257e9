"""The promise `scans`: a scan of a store finds what was put and not deleted."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from onceproof.model.anomaly import Comparison
from onceproof.model.place import Place
from onceproof.model.record import Facts, Record
from onceproof.readers.comparisons import as_number, by_place, split_pair

DELETE = 0  # value of the input
Found = tuple[int, int]  # the number of keys that a scan found, and their sum


def compare_scans(inputs: Sequence[Record], outputs: Sequence[Record], facts: Facts) -> Iterator[Comparison]:
    """Each request to delete a key: what the scan that follows must find, and what it found.

    Args:
        inputs: of the topology `scans`; each key is deleted once, at most.
        outputs: `number << 32 | sum` of the keys found.
        facts: `reach`, `all_every`; `exactly_once`: without it redelivered requests may be answered again.
    """
    answers: dict[int | None, list[Record]] = defaultdict(list)
    for record in sorted(outputs, key=by_place):
        answers[record.key].append(record)
    there: dict[int, set[int]] = defaultdict(set)
    asked = set()
    for request in sorted(inputs, key=by_place):
        p, offset, key = request.partition, request.offset, as_number(request.key)
        if request.value != DELETE:
            there[p].add(key)
            continue
        there[p].discard(key)
        asked.add(key)
        expected = _scan(there[p], key, facts)
        got = answers[key]
        if not got:
            place = str(Place("input", p, offset))
            yield Comparison("scans", "lost-record", p, key, place, _text(expected), "no answer")
            continue
        judged = got[0]
        found = split_pair(judged.value)
        anomaly, observed = _breach(expected, found), _text(found)
        if anomaly is None and len(got) > 1 and facts["exactly_once"]:
            judged, anomaly, observed = got[-1], "duplicate-output", f"{len(got)} answers"
        place = str(Place("output", judged.partition, judged.offset))
        yield Comparison("scans", anomaly, judged.partition, key, place, _text(expected), observed)
    for unasked in answers.keys() - asked:
        last = answers[unasked][-1]
        place = str(Place("output", last.partition, last.offset))
        texts = _text(split_pair(last.value))
        yield Comparison("scans", "unexpected-record", last.partition, unasked, place, "nothing", texts)


def _scan(there: set[int], key: int, facts: Facts) -> Found:
    found = there if key % facts["all_every"] == 0 else there.intersection(_around(key, facts["reach"]))
    return len(found), sum(found)


def _around(key: int, reach: int) -> range:
    return range(key - reach, key + reach + 1)


def _breach(expected: Found, found: Found) -> str | None:
    if found == expected:
        return None
    return "missing-key" if found[0] < expected[0] else "ghost-key"


def _text(found: Found) -> str:
    number, total = found
    return f"{number} key{'' if number == 1 else 's'} with the sum {total}"
