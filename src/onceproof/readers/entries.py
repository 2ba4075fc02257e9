"""The promise `entries`: a store holds what its changelog says, entry by entry, as bytes, with timestamps and headers.

A store of windows or sessions forgets by itself, without a tombstone, what is older than its retention: some kinds at
once, others with their segment. So it need not hold what is older than that, seen from the youngest entry of its
changelog. What it holds must be right nevertheless.

A versioned store (KIP-889) holds of each key the version that is valid at the beginning of its history, and each change
after that, each with the time from which it is valid. A change that is older than the history when it comes is dropped.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from onceproof.model.anomaly import Comparison
from onceproof.model.files import StorePlan
from onceproof.model.place import Place
from onceproof.model.record import Record, Topics
from onceproof.model.run_folder import StoreDump
from onceproof.readers.comparisons import as_number, by_place

# Hexadecimal digits of a key of a changelog, from its end: what stores do not show, and where the time stands.
SEQUENCE = {"windows": 8}
TIMES = {"windows": slice(-24, -8), "sessions": slice(-32, -16)}
KEYS = {"waiting": 18, "subscriptions": 16}  # where the key that the records have begins
WRONG_HEADERS = "wrong-entry-headers"
DELETED = "deleted"  # in place of a value: from this time on a versioned store has none


class StoreEntry(NamedTuple):
    """A value, its timestamp and its headers; None where the store keeps none."""

    value: str
    timestamp: int | None
    headers: str | None = None


class KnownEntries(NamedTuple):
    """The entries of a key in the changelog; the key is as the store shows it, and may have several."""

    due: list[StoreEntry]
    last: Record  # tombstones included
    kept: bool  # whether the store must still have it


def compare_entries(
    dumps: Sequence[StoreDump], topics: Topics, stores: Mapping[str, StorePlan]
) -> Iterator[Comparison]:
    """One comparison for each store that holds what it must, and one for each key in which another differs.

    Args:
        dumps: what stores held.
        topics: the changelogs, `<store>-changelog`, with the bytes of their records.
        stores: what their entries are, by the role of the changelog.
    """
    for (store, partition), of_store in groupby(sorted(dumps, key=_place), _place):
        role = f"{store}-changelog"
        changelog = sorted((r for r in topics[role] if r.partition == partition), key=by_place)
        for dump in of_store:
            before = [record for record in changelog if record.offset < dump.offset]
            held: dict[str, list[StoreEntry]] = defaultdict(list)
            for key, value, timestamp, headers in dump.byte_entries():
                held[key].append(StoreEntry(value, timestamp, headers))
            if stores[role].form == "versions":
                begin = max((r.timestamp for r in before), default=0) - stores[role].retention
                known = _versions(before, stores[role].retention, begin)
                held = {key: _history(versions, begin) for key, versions in held.items()}
            else:
                held = {key: sorted(entries) for key, entries in held.items()}
                known = _fold_known(before, stores[role])
            yield from _compare(dump, known, held, KEYS.get(stores[role].form, 0))


def _place(dump: StoreDump) -> tuple[str, int]:
    return dump.store, dump.partition


def _fold_known(records: Sequence[Record], store: StorePlan) -> dict[str, KnownEntries]:
    """The content of a changelog, by the key as the store shows it."""
    last: dict[str, Record] = {record.entry.partition(",")[0]: record for record in records}
    times = {key: int(key[TIMES[store.form]], 16) if store.form in TIMES else 0 for key in last}
    youngest = max(times.values(), default=0)
    of_key: dict[str, list[str]] = defaultdict(list)
    for key in last:
        of_key[key[: len(key) - SEQUENCE.get(store.form, 0)]].append(key)
    known = {}
    for shown, keys in of_key.items():
        all_ = [last[key] for key in keys]
        due = [StoreEntry(r.entry.partition(",")[2], r.timestamp, r.headers) for r in all_ if "," in r.entry]
        kept = not store.retention or times[keys[0]] > youngest - store.retention
        known[shown] = KnownEntries(sorted(due), max(all_, key=by_place), kept)
    return known


def _versions(records: Sequence[Record], retention: int, begin: int) -> dict[str, KnownEntries]:
    """The versions of each key that are due in a history that goes back to `begin`, in ms."""
    put: dict[str, list[StoreEntry]] = defaultdict(list)
    last: dict[str, Record] = {}
    youngest = 0
    for record in records:
        key, _, value = record.entry.partition(",")
        last[key] = record
        if record.timestamp >= youngest - retention:
            put[key].append(StoreEntry(value, record.timestamp))
            youngest = max(youngest, record.timestamp)
    return {key: KnownEntries(_history(put[key], begin), record, kept=True) for key, record in last.items()}


def _history(versions: Sequence[StoreEntry], begin: int) -> list[StoreEntry]:
    """The versions that can be seen since `begin`, in order of time; `versions` are in the order of the puts."""
    by_time = sorted({as_number(version.timestamp): version.value for version in versions}.items())
    ended = sum(time <= begin for time, _ in by_time) - 1
    history: list[StoreEntry] = []
    for time, value in by_time[max(ended, 0) :]:
        if value or (history and history[-1][0] != DELETED):  # only what was there can be deleted
            history.append(StoreEntry(value or DELETED, time))
    return history


def _compare(
    dump: StoreDump, known: Mapping[str, KnownEntries], held: Mapping[str, list[StoreEntry]], at: int
) -> Iterator[Comparison]:
    wrong = False
    for key in sorted(known.keys() | held.keys()):
        there, said = held.get(key, []), known.get(key)
        anomaly = _anomaly(there, said)
        if anomaly:
            wrong = True
            place = str(Place(f"{dump.store}-changelog", dump.partition, said.last.offset)) if said else dump.title
            as_text = _with_headers if anomaly == WRONG_HEADERS else _text
            observed = f"{as_text(there)}: {dump.title}"
            number = int.from_bytes(bytes.fromhex(key[at : at + 8]), "big", signed=True)
            yield Comparison(
                "entries", anomaly, dump.partition, number, place, as_text(said.due if said else []), observed
            )
    if not wrong:
        entries = f"{sum(map(len, held.values()))} entries"
        yield Comparison("entries", None, dump.partition, None, dump.title, entries, entries)


def _anomaly(held: Sequence[StoreEntry], known: KnownEntries | None) -> str | None:
    due = known.due if known else []
    values, due_values = [entry.value for entry in held], [entry.value for entry in due]
    if values == due_values:
        if _differ([entry.timestamp for entry in held], [entry.timestamp for entry in due]):
            return "wrong-entry-time"
        return WRONG_HEADERS if _differ([entry.headers for entry in held], [entry.headers for entry in due]) else None
    if len(values) < len(due_values) and set(values) <= set(due_values):
        return "lost-entry" if known and known.kept else None
    return "wrong-entry"


def _differ(held: Sequence[object], due: Sequence[object]) -> bool:
    """Whether a store that keeps them has others than are due."""
    return None not in held and held != due


def _text(entries: Sequence[StoreEntry]) -> str:
    """Entries in words."""
    texts = (e.value if e.timestamp is None else f"{e.value} at {e.timestamp}" for e in entries)
    return " and ".join(texts) or "nothing"


def _with_headers(entries: Sequence[StoreEntry]) -> str:
    """Values and their headers in words."""
    return " and ".join(f"{e.value} with {e.headers or 'no header'}" for e in entries)
