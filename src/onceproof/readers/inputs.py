"""The generated input, compared with what the input holds: replaying a different input would say nothing."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from onceproof.model.record import Record
from onceproof.readers.comparisons import by_place


def deviation(
    inputs: Sequence[Record], generated: Iterable[tuple[int | None, int | None]], home: Callable[[int], int] | None
) -> str | None:
    """Where the input is not what was generated, in words; None if it is.

    Args:
        inputs: the records of the input topic.
        generated: key and value of what was delivered, in order.
        home: the partition that a key belongs to; None if the client chooses it.
    """
    delivered, ordered = list(generated), sorted(inputs, key=by_place)
    if len({key for key, _ in delivered}) == len(delivered) == len(ordered):  # as a rule, and quick to see
        strays = home is not None and any(r[2] is not None and r[0] != home(r[2]) for r in ordered)
        if not strays and dict(delivered) == {r[2]: r[3] for r in ordered}:
            return None
    wanted: dict[int | None, list[int | None]] = defaultdict(list)
    found: dict[int | None, list[Record]] = defaultdict(list)
    for number, sent in delivered:
        wanted[number].append(sent)
    for record in ordered:
        p, offset, key = record[:3]
        if home and key is not None and p != home(key):
            return f"key {key} is in partition {p} (offset {offset}), not in {home(key)}"
        found[key].append(record)
    for key in wanted.keys() | found.keys():
        # Without a key records may be in any partition, so they have no order over all.
        values = [record.value for record in found[key]]
        differ = Counter(wanted[key]) != Counter(values) if key is None else wanted[key] != values
        if differ:
            places = [f"{record.partition}@{record.offset}" for record in found[key]]
            there = f"{_text(values)} ({_text(places)})" if values else "none"
            return f"key {key} was delivered with the values {_text(wanted[key])}, but is there with {there}"
    return None


def _text(values: Sequence[int | str | None]) -> str:
    return ", ".join(map(str, values[:5])) + (f" and {len(values) - 5} more" if len(values) > 5 else "") or "none"
