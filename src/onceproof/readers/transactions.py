"""The promise `transactions`: each transaction of a changelog is committed."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from onceproof.model.anomaly import Comparison
from onceproof.model.place import Place
from onceproof.model.record import Record
from onceproof.readers.comparisons import by_place, records_text


def compare_transactions(role: str, committed: Sequence[Record], written: Sequence[Record]) -> Iterator[Comparison]:
    """Each transaction of a topic that one producer at a time writes to: it must be committed.

    One producer writes one transaction after the other, and each ends with a marker, which takes an offset of its
    own: so records with consecutive offsets are one transaction.
    """
    kept = {by_place(record) for record in committed}
    places = sorted(by_place(record) for record in written)
    numbered = enumerate(places)
    for _, run in groupby(numbered, key=lambda item: (item[1][0], item[1][1] - item[0])):
        transaction = [place for _, place in run]
        p, offset = transaction[0]
        whole = transaction[0] in kept
        observed = f"{'committed' if whole else 'aborted'}, {records_text(len(transaction))}"
        anomaly = None if whole else "aborted-by-throttle"
        yield Comparison("transactions", anomaly, p, None, str(Place(role, p, offset)), "committed", observed)
