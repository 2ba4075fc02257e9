"""The promise `deliveries`: a key is emitted as often as it goes in."""

from collections import Counter
from collections.abc import Iterator, Sequence

from onceproof.model.anomaly import Comparison
from onceproof.model.place import Place
from onceproof.model.record import Record
from onceproof.readers.comparisons import by_place, key_of, records_text


def compare_deliveries(
    inputs: Sequence[Record],
    outputs: Sequence[Record],
    *,
    once: bool = False,
    at_least: bool = False,
    role: str = "output",
    source: str = "input",
) -> Iterator[Comparison]:
    """For each key, the records that went in and those that were emitted: first all keys that agree, then each other
    one.

    The first comparison stands for as many keys as agree.

    Args:
        inputs: committed records of the input.
        outputs: committed records of the topic that plays the `role`.
        once: a key must be emitted once, however often it went in.
        at_least: more records than were expected are allowed.
        role: of the topic to which the key is emitted.
        source: role of the topic that it goes into.
    """
    entered, left = Counter(map(key_of, inputs)), Counter(map(key_of, outputs))
    wanted = Counter(dict.fromkeys(entered, 1)) if once else entered
    keys = wanted.keys() | left.keys()
    differing = {
        key for key, _ in wanted.items() ^ left.items() if not at_least or left[key] < wanted[key] or not wanted[key]
    }
    if agreed := len(keys) - len(differing):
        yield Comparison("deliveries", None, 0, None, role, f"as often as in {source}", "as often", agreed)
    if not differing:  # as a rule, and quick to see
        return
    first = {r[2]: r[:2] for r in sorted(inputs, key=by_place, reverse=True) if r[2] in differing}
    last = {r[2]: r[:2] for r in sorted(outputs, key=by_place) if r[2] in differing}
    for key in filter(differing.__contains__, keys):
        expected = wanted[key]
        if left[key] < expected:
            anomaly, where, (partition, offset) = "lost-record", source, first[key]
        else:
            anomaly, where, (partition, offset) = "unexpected-record", role, last[key]
            if expected:
                anomaly = "duplicate-output"
        place = str(Place(where, partition, offset))
        yield Comparison("deliveries", anomaly, partition, key, place, records_text(expected), records_text(left[key]))
