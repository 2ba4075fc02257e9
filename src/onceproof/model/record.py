"""The records of a trial as the independent reader hands them over, and what a check needs beside them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Record(NamedTuple):
    """A record of integers: its timestamp in epoch milliseconds, its headers as `name=hex` one after the other."""

    partition: int
    offset: int
    key: int | None
    value: int | None
    timestamp: int = 0
    headers: str = ""


# The records of a trial by role, each partition in offset order.
Topics = Mapping[str, Sequence[Record]]
# Whole numbers that a check needs beside the records: `partitions`, `exactly_once` (1 or 0), and what `drive` measured.
Facts = Mapping[str, int]
