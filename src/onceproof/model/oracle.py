"""The output of your own application without a fault, and as it is replayed: the oracles of the trials with one."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from onceproof.model.json_file import JsonFile
from onceproof.model.record import Record, Token

# Partition, and key and value in Base64.
Written = tuple[int, str | None, str | None]


@dataclass(frozen=True)
class Outputs(JsonFile):
    """`outputs.json`: the output of an application, by role, each partition in its order."""

    records: Mapping[str, tuple[Written, ...]]
    offsets: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # of these records, where they are in topics
    # Of these records, timestamp (epoch ms) and headers (as of `Record`); runs of an earlier Onceproof have none.
    attributes: Mapping[str, tuple[tuple[int, str], ...]] = field(default_factory=dict)
    failed: str | None = None  # why nothing could be replayed

    @classmethod
    def of(cls, topics: Mapping[str, Sequence[Record]]) -> "Outputs":
        """The oracle of records as they were read."""
        return cls(
            {role: tuple(_describe_written(record) for record in records) for role, records in topics.items()},
            {role: tuple(record.offset for record in records) for role, records in topics.items()},
            {role: tuple((record.timestamp, record.headers) for record in records) for role, records in topics.items()},
        )

    def bytes_of(self, role: str) -> list[tuple[int, bytes | None, bytes | None]]:
        """Partition, key and value of the output."""
        return [(p, _bytes(key), _bytes(value)) for p, key, value in self.records.get(role, ())]


@dataclass(frozen=True)
class Oracle(JsonFile):
    """`oracle.json`: the output without a fault, and how far two such runs agree on it, see `Declared`."""

    outputs: Outputs
    agreed: Mapping[str, str]  # by role
    ignored: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    compare_also: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by role, see `Declared`
    differ: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # those on which the runs do not agree
    replayed: Outputs | None = None  # what TopologyTestDriver makes of the same input, if that was asked for
    replayed_on_newest: Outputs | None = None  # the same of the newest release
    as_replayed: Mapping[str, str] = field(default_factory=dict)  # by role, see `Declared`
    unreplayed: Mapping[str, str] = field(default_factory=dict)  # promises that cannot be judged so, and why


def _describe_written(record: Record) -> Written:
    return record.partition, base64_of(record.key), base64_of(record.value)


def base64_of(token: int | None) -> str | None:
    """The bytes that a number stands for."""
    return base64.b64encode(token.data).decode() if isinstance(token, Token) else None


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
