"""The promise `deliveries`: a key comes out as often as it goes in."""

from collections import Counter
from collections.abc import Iterator, Sequence

from onceproof.model.anomaly import Comparison
from onceproof.model.place import Place
from onceproof.model.record import Record
from onceproof.readers.comparisons import by_place, records_text


def compare_deliveries(
    inputs: Sequence[Record],
    outputs: Sequence[Record],
    *,
    once: bool = False,
    at_least: bool = False,
    role: str = "output",
    source: str = "input",
) -> Iterator[Comparison]:
    """For each key, the records that went in and those that came out.

    Args:
        inputs: committed records of the input.
        outputs: committed records of the topic that plays the `role`.
        once: a key must come out once, however often it went in.
        at_least: more records than were expected are allowed.
        role: of the topic that the key comes out in.
        source: role of the topic that it goes into.
    """
    entered, left = Counter(r[2] for r in inputs), Counter(r[2] for r in outputs)
    first = {key: (p, offset) for p, offset, key, *_ in sorted(inputs, key=by_place, reverse=True)}
    last = {key: (p, offset) for p, offset, key, *_ in sorted(outputs, key=by_place)}
    for key in entered.keys() | left.keys():
        expected = min(1, entered[key]) if once else entered[key]
        anomaly = None
        if left[key] < expected:
            anomaly = "lost-record"
        elif not expected:
            anomaly = "unexpected-record"
        elif left[key] > expected and not at_least:
            anomaly = "duplicate-output"
        where, (partition, offset) = (source, first[key]) if left[key] < expected else (role, last[key])
        place = str(Place(where, partition, offset))
        yield Comparison("deliveries", anomaly, partition, key, place, records_text(expected), records_text(left[key]))
