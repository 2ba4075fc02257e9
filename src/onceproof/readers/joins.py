"""What a join gives, as a function of the input's order."""

from collections.abc import Iterator, Sequence

from onceproof.model.record import Record


def with_entries(inputs: Sequence[Record]) -> Iterator[Record]:
    """Each record of the topology `global-join` with what it comes out with: `value << 32 | entry`.

    An entry has a value below 0, and its own number comes out with the value 0; another record comes out with the
    number of the last entry of the key before its value, or with 0.
    """
    table = {record.key: -record.value for record in inputs if record.value is not None and record.value < 0}
    for record in inputs:
        value = record.value or 0
        gives = -value if value < 0 else value << 32 | table.get(value - 1, 0)
        yield record._replace(value=gives)
