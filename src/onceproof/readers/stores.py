"""The promise `stores`: what a store holds at the end is its changelog up to the offset that it claims."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from onceproof.model.anomaly import Comparison
from onceproof.model.place import Place
from onceproof.model.record import Record, Topics
from onceproof.model.run_folder import StoreDump
from onceproof.readers.comparisons import by_place, value_text

ANOMALIES = {"active": "wrong-store", "standby": "wrong-standby"}


def compare_stores(dumps: Sequence[StoreDump], topics: Topics) -> Iterator[Comparison]:
    """One comparison for each store that holds what it must, and one for each key in which another differs.

    A tombstone deletes, so a key that has one and is not in the store is fine.
    """
    for (store, partition), of_store in groupby(sorted(dumps, key=_place), _place):
        folded: dict[int | None, Record] = {}
        rest = iter(sorted((r for r in topics[f"{store}-changelog"] if r[0] == partition), key=by_place))
        record = next(rest, None)
        for dump in sorted(of_store, key=lambda dump: (dump.offset, dump.instance)):
            while record and record[1] < dump.offset:
                folded[record[2]] = record
                record = next(rest, None)
            yield from _compare(dump, folded)


def _place(dump: StoreDump) -> tuple[str, int]:
    return dump.store, dump.partition


def _compare(dump: StoreDump, folded: dict[int | None, Record]) -> Iterator[Comparison]:
    expected: dict[int | None, int] = {key: record[3] for key, record in folded.items() if record[3] is not None}
    held: dict[int | None, int] = dict(dump.entries().items())
    if held == expected:
        entries = f"{len(held)} entries"
        yield Comparison("stores", None, dump.partition, None, dump.title, entries, entries)
        return
    for key in expected.keys() | held.keys():
        if expected.get(key) != held.get(key):
            changed = folded.get(key)
            place = str(Place(f"{dump.store}-changelog", dump.partition, changed.offset)) if changed else dump.title
            observed = f"{value_text(held.get(key))}: {dump.title}"
            yield Comparison(
                "stores", ANOMALIES[dump.task_type], dump.partition, key, place, value_text(expected.get(key)), observed
            )
