"""The records of a trial as the independent reader hands them over, and what else a check needs."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self


class Record(NamedTuple):
    """A record of integers: its timestamp in epoch milliseconds, its headers as `name=hex` one after the other.

    `entry` are the bytes of a changelog that is compared as bytes: key and value in hexadecimal digits, `key,value`, or
    the key alone for a tombstone.
    """

    partition: int
    offset: int
    key: int | None
    value: int | None
    timestamp: int = 0
    headers: str = ""
    entry: str = ""


class Token(int):
    """A number that stands for certain bytes, so that keys and values that are not integers can be compared.

    It knows the bytes, and how people write them.
    """

    data: bytes
    text: str

    @classmethod
    def of(cls, data: bytes, text: str) -> Self:
        """The number of these bytes; 52 bits of their digest, so that JSON can carry it."""
        digest = hashlib.blake2b(data, digest_size=8).digest()
        token = cls(int.from_bytes(digest, "big") >> 12)
        token.data, token.text = data, text
        return token

    def __str__(self) -> str:
        """The meaning."""
        return self.text


# The records of a trial by role, each partition in offset order.
Topics = Mapping[str, Sequence[Record]]
# Integers that a check needs besides the records: `partitions`, `exactly_once` (1 or 0), and what `drive` measured.
Facts = Mapping[str, int]
