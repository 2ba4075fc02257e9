"""A place in a topic as one LONG, which sorts by partition and then by offset.

Spark's hash aggregates keep numbers but no structs, so `min` of a place is many times faster than `min` of a
(partition, offset) pair. 15 bits for the partition, 48 for the offset: 32,768 partitions of 2^48 records.
"""

from pyspark.sql import Column
from pyspark.sql import functions as f

OFFSET_BITS = 48


def place(partition: str = "partition", offset: str = "offset") -> Column:
    """The place at the partition and offset of these columns."""
    return f.shiftleft(f.col(partition).cast("long"), OFFSET_BITS) + f.col(offset)


def partition_of(place: Column) -> Column:
    """Partition INT of a place."""
    return f.shiftright(place, OFFSET_BITS).cast("int")


def offset_of(place: Column) -> Column:
    """Offset LONG of a place."""
    return place.bitwiseAND(f.lit(2**OFFSET_BITS - 1))


def place_text(role: str | Column, place: Column) -> Column:
    """The text of a place that is one LONG."""
    return text_of_place(role, partition_of(place), offset_of(place))


def text_of_place(role: str | Column, partition: str | Column = "partition", offset: str | Column = "offset") -> Column:
    """A place as `role/partition@offset`, as `model.place.Place` writes it; a role that is a `str` is its name."""
    return f.format_string("%s/%d@%d", f.lit(role) if isinstance(role, str) else role, partition, offset)
