"""The promise `reads`: a store returns what was put last."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from onceproof.model.anomaly import Comparison
from onceproof.model.place import Place
from onceproof.model.record import Record
from onceproof.readers.comparisons import as_number, by_place, split_pair


def compare_reads(inputs: Sequence[Record], outputs: Sequence[Record], exactly_once: bool) -> Iterator[Comparison]:
    """Each output record: what the previous record of the same key had put, and what the store returned."""
    before: dict[tuple[int | None, int | None], int] = {}
    last: dict[int | None, int] = defaultdict(int)
    for _, _, key, number, *_ in sorted(inputs, key=by_place):
        before[key, number] = last[key]
        last[key] = as_number(number)
    for p, offset, key, pair, *_ in outputs:
        number, found = split_pair(pair)
        expected = before.get((key, number), number - 1)
        anomaly = None
        if found < expected:
            anomaly = "stale-read"
        elif found > expected and exactly_once:
            anomaly = "dirty-read"
        yield Comparison("reads", anomaly, p, key, str(Place("output", p, offset)), str(expected), str(found))
