"""The work that the enumerator must have done, and where it did not do it, by exact replay of the input."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from onceproof.model.anomaly import Findings, Witness, witnesses_of
from onceproof.model.place import Place
from onceproof.model.record import Facts, Record, Topics
from onceproof.readers.comparisons import as_number, by_place, value_text
from onceproof.readers.deliveries import compare_deliveries

COUNTER_KEY = 0


def check(topics: Topics, facts: Facts) -> Findings:
    """Judge the committed records of a trial without Spark, by exact replay of the input.

    Args:
        topics: by role (`input`, `output`, `counter-changelog`, `ids-changelog`), each partition in offset order.
        facts: `partitions` of the input topic.
    """
    partitions = facts["partitions"]
    inputs, outputs = topics["input"], topics["output"]
    expected = _replay(inputs, partitions)
    first = _first_places(outputs)
    deliveries = list(compare_deliveries(inputs, outputs))
    witnesses = [
        *_duplicate_ids(first),
        *_unstable_ids(first),
        *_wrong_ids(expected, first),
        *witnesses_of(deliveries),
        *_counter_regressions(topics["counter-changelog"]),
        *_ids_mismatches(outputs, topics["ids-changelog"]),
        *_counter_mismatches(outputs, topics["counter-changelog"], partitions),
    ]
    promises = {
        "identities": len(first),
        "counters": len(topics["counter-changelog"]) + len(topics["ids-changelog"]),
    }
    return Findings(len(inputs), len(outputs), len(expected), len({number for _, number in first}), witnesses, promises)


Places = dict[tuple[int | None, Any], tuple[int, int]]  # of each key with an ID of it, where it was emitted first


def _replay(inputs: Sequence[Record], partitions: int) -> dict[int | None, int]:
    """The ID that each key must get."""
    counters: Counter[int] = Counter()
    expected = {}
    for p, _, key, *_ in inputs:
        if key not in expected:
            expected[key] = counters[p] * partitions + p
            counters[p] += 1
    return expected


def _first_places(outputs: Sequence[Record]) -> Places:
    first: Places = {}
    for p, offset, key, number, *_ in outputs:
        place, pair = (p, offset), (key, number)
        if place < first.setdefault(pair, place):
            first[pair] = place
    return first


def _place(role: str, place: tuple[int, int]) -> str:
    return str(Place(role, *place))


def _join_numbers(numbers: Sequence[Any]) -> str:
    return ", ".join(str(number) for number in numbers)


def _duplicate_ids(first: Places) -> Iterator[Witness]:
    for number, keys in _group(first, by=1).items():
        places = sorted(keys)[:5]
        yield Witness(
            "duplicate-id",
            places[0][0][0],
            None,
            (number,),
            tuple(_place("output", place) for place, _ in places),
            "one key",
            f"{len(keys)} keys: {_join_numbers([key for _, key in places])}",
        )


def _unstable_ids(first: Places) -> Iterator[Witness]:
    for key, ids in _group(first, by=0).items():
        places = sorted(ids)
        numbers = tuple(number for _, number in places)
        offsets = tuple(_place("output", place) for place, _ in places)
        observed = f"{len(ids)} IDs: {_join_numbers(numbers)}"
        yield Witness("unstable-id", places[0][0][0], key, numbers, offsets, "one ID", observed)


def _group(first: Places, by: int) -> dict[Any, list[tuple[tuple[int, int], Any]]]:
    """The other IDs of each key that has several (`by` 0), or keys of each ID (1), with their places."""
    counts = Counter(pair[by] for pair in first)
    several: dict[Any, list[tuple[tuple[int, int], Any]]] = defaultdict(list)
    for pair, place in first.items():
        if counts[pair[by]] > 1:
            several[pair[by]].append((place, pair[1 - by]))
    return several


def _wrong_ids(expected: Mapping[int | None, int], first: Places) -> Iterator[Witness]:
    wrong = [((key, number), place) for (key, number), place in first.items() if number != expected.get(key, number)]
    if not wrong:  # as a rule, and quick to see
        return
    ids_of, keys_of = (Counter(pair[part] for pair in first) for part in (0, 1))
    for (key, number), place in wrong:
        if ids_of[key] == keys_of[number] == 1:
            offsets = (_place("output", place),)
            yield Witness("wrong-id", place[0], key, (number,), offsets, str(expected[key]), str(number))


def _counter_regressions(counter: Sequence[Record]) -> Iterator[Witness]:
    previous: dict[int, tuple[int, int]] = {}  # partition -> offset, value
    for p, offset, key, value, *_ in sorted(counter, key=by_place):
        if p in previous and (value is None or value <= previous[p][1]):
            places = tuple(_place("counter-changelog", (p, o)) for o in (previous[p][0], offset))
            more = f"more than {previous[p][1]}"
            yield Witness("counter-regression", p, key, (), places, more, value_text(value))
        if value is None:  # deleted: what follows starts afresh
            previous.pop(p, None)
        else:
            previous[p] = (offset, value)


Last = tuple[tuple[int, int], int | None]  # place and value of the last record


def _ids_mismatches(outputs: Sequence[Record], changelog: Sequence[Record]) -> Iterator[Witness]:
    outputs, changelog = sorted(outputs, key=by_place), sorted(changelog, key=by_place)
    if {r[2]: r[3] for r in outputs} == {r[2]: r[3] for r in changelog}:  # as a rule, and quick to see
        return
    shown, stored = _last_by_key(outputs), _last_by_key(changelog)
    for key in shown.keys() | {key for key, (_, value) in stored.items() if value is not None}:
        output, store = shown.get(key), stored.get(key)
        if _value(output) != _value(store):
            ids = tuple(number for number in (_value(store), _value(output)) if number is not None)
            yield _mismatch("ids-changelog", key, ids, output, store)


def _last_by_key(records: Sequence[Record]) -> dict[int | None, Last]:
    return {key: ((p, offset), value) for p, offset, key, value, *_ in records}


def _counter_mismatches(outputs: Sequence[Record], changelog: Sequence[Record], partitions: int) -> Iterator[Witness]:
    implied: dict[
        int, tuple[tuple[int, int], int]
    ] = {}  # the last place of a partition, and the highest counter its IDs imply
    for p, offset, _, number, *_ in sorted(outputs, key=by_place):
        counter = (as_number(number) - p) // partitions
        implied[p] = ((p, offset), max(counter, implied[p][1] if p in implied else counter))
    stored = {p: ((p, offset), value) for p, offset, _, value, *_ in sorted(changelog, key=by_place)}
    for p in implied.keys() | stored.keys():
        output, store = implied.get(p), stored.get(p)
        if _value(output) != _value(store):
            yield _mismatch("counter-changelog", COUNTER_KEY, (), output, store)


def _value(last: Last | None) -> int | None:
    return last[1] if last else None


def _mismatch(role: str, key: int | None, ids: tuple[int, ...], output: Last | None, store: Last | None) -> Witness:
    places = [(role, store), ("output", output)]
    offsets = tuple(_place(where, last[0]) for where, last in places if last)
    partition = next(last[0][0] for _, last in places if last)
    return Witness(
        "changelog-output-mismatch", partition, key, ids, offsets, value_text(_value(output)), value_text(_value(store))
    )
