"""What joins give, as a function of the input's order."""

from collections.abc import Iterator, Sequence

from onceproof.model.record import Record


def with_entries(inputs: Sequence[Record], added: int = 0) -> Iterator[Record]:
    """Each record of the topology `global-join` with what it comes out with: `value << 32 | entry`.

    An entry has a value below 0, and its own number comes out with the value 0; another record comes out with the
    number of the last entry of the key before its value, to which a global store's processor has `added`, or with 0.
    """
    table = {record.key: added - record.value for record in inputs if record.value is not None and record.value < 0}
    for record in inputs:
        value = record.value or 0
        gives = -value if value < 0 else value << 32 | table.get(value - 1, 0)
        yield record._replace(value=gives)


def by_foreign_key(inputs: Sequence[Record], *, outer: bool = False) -> Iterator[Record]:
    """The last record of each key of the left table, with what the topology `foreign-key-join` makes of it at the end.

    Records with a value below 0 are those of the right table; one of the left asks for the key before its value, or
    with 0 for none. Where both exist, the result is `left << 32 | right`, as old as the younger of the two. A left join
    (`outer`) also gives records of the left table that have none in the right one, with 0 in its place.
    """
    left: dict[int | None, Record] = {}
    right: dict[int | None, Record] = {}
    for record in inputs:
        (right if record.value is not None and record.value < 0 else left)[record.key] = record
    for record in left.values():
        value = record.value or 0
        other = right.get(value - 1) if value else None
        if other is None or other.value is None:
            yield record._replace(value=value << 32 if outer else None)
        else:
            timestamp = max(record.timestamp, other.timestamp)
            yield record._replace(value=value << 32 | -other.value, timestamp=timestamp)
