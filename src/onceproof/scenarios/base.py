"""What a scenario is made of, and what it may ask of the lab.

A scenario is one value (`Scenario`) with the same parts each time; its module says what can go wrong and why each
check is sound. Scenarios do not know the lab: they drive it through the protocols below.
"""

import random
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from onceproof.model.anomaly import Findings
from onceproof.model.cell import Trial
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.release import Release
from onceproof.model.timeline import Event

# A committed record as the independent reader hands it over: partition, offset, key, value.
Record = tuple[int, int, int | None, int | None]


class Instance(Protocol):
    """A running instance of the application under test."""

    name: str

    @property
    def state(self) -> str:
        """Its `KafkaStreams.State`."""

    @property
    def threads(self) -> list[dict[str, Any]]:
        """Its threads with their active and standby tasks."""

    @property
    def processed(self) -> int:
        """Records it has processed."""

    @property
    def last(self) -> Mapping[str, Event]:
        """Its last event of each kind."""

    def tasks(self, role: str) -> list[str]:
        """Tasks that it holds as `active` or `standby`."""


class Bulk(Protocol):
    """Records that are being produced in the background."""

    def full_speed(self) -> None:
        """Stop pacing: send the rest as fast as possible."""

    def done(self) -> bool:
        """Whether every record is delivered."""


class Lab(Protocol):
    """What a scenario may do to the world while it drives one trial."""

    trial: Trial
    rng: random.Random

    @property
    def events(self) -> Sequence[Event]:
        """The timeline so far."""

    def phase(self, name: str) -> AbstractContextManager[None]:
        """Name what happens in a `with` block; its seconds are kept."""

    def start_instance(self, name: str) -> Instance:
        """Start an instance and wait until the right release has loaded."""

    def produce(self, name: str, records: Sequence[tuple[int, int]], rate: float | None = None) -> Bulk:
        """Send (key, value) records in the background, `rate` a second, or at full speed."""

    def step(self, command: str, instance: str) -> None:
        """Scale: have an instance carry out `add-thread` or `remove-thread`, and record it.

        Raises:
            HarnessError: it did not.
        """

    def await_(self, what: str, condition: Callable[[], object], timeout: float = 60.0) -> None:
        """Wait for a condition; a HarnessError tells what was seen last if it does not come to hold."""

    def holds_within(self, seconds: float, condition: Callable[[], object]) -> bool:
        """Whether a condition comes to hold within some time; not to hold is an answer, too."""

    def committed(self) -> int:
        """Input records whose processing is committed."""

    def await_drained(self) -> None:
        """Wait until everything produced is processed and committed."""

    def close_instances(self) -> None:
        """Let all instances leave."""


@dataclass(frozen=True)
class Exercise:
    """Whether a trial met its scenario's precondition, in words a person can check against the timeline."""

    exercised: bool
    reason: str
    steps: int
    all_steps_tried: bool


@dataclass(frozen=True)
class Workload:
    """The (key, value) records of a trial: those that are seeded, and those that flow while it is driven."""

    first: Sequence[tuple[int, int]]
    second: Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Variant:
    """A named configuration: what it changes, for people, for the topology and for Kafka Streams."""

    name: str
    description: str
    app: Mapping[str, Any] = field(default_factory=dict)
    config: Callable[[Release], Mapping[str, str]] = lambda _: {}
    repeated_keys: float = 0.0  # share of the second bulk whose keys were seen before


@dataclass(frozen=True)
class Scenario:
    """One system of the seeds."""

    name: str
    title: str
    topology: str
    partitions: int
    roles: tuple[str, ...]  # topics that are read: input, output and the stores' changelogs
    variants: Mapping[str, Variant]
    workload: Callable[[Trial], Workload]
    partition: Callable[[int, int], int]  # (key, partitions) -> partition of the input
    app: Callable[[Trial], Mapping[str, Any]]  # what the topology needs to know
    config: Callable[[Trial], Mapping[str, str]]  # Kafka Streams configuration, the lab adds what is its own
    drive: Callable[[Lab], Exercise]
    check: Callable[[Mapping[str, Sequence[Record]]], Findings]  # by role; the independent reader's judgement

    def variant(self, name: str) -> Variant:
        """The variant of this name.

        Raises:
            UsageError: there is none.
        """
        try:
            return self.variants[name]
        except KeyError:
            raise UsageError(
                f"Scenario {self.name} has no variant {name!r}; it has {', '.join(self.variants)}."
            ) from None


def decode_integer(data: bytes | None) -> int | None:
    """Read what Kafka's IntegerSerializer wrote: four bytes, big-endian.

    Raises:
        ValueError: it has another length.
    """
    if data is None:
        return None
    if len(data) != 4:
        raise ValueError(f"has {len(data)} bytes, a 4-byte integer was expected")
    return int(struct.unpack(">i", data)[0])


def encode_integer(number: int) -> bytes:
    """Write as Kafka's IntegerSerializer does."""
    return struct.pack(">i", number)


def decode_record(topic: str, partition: int, offset: int, key: bytes | None, value: bytes | None) -> Record:
    """A record of integers.

    Raises:
        HarnessError: key or value is not an integer; names the place.
    """
    name = "key"
    try:
        number = decode_integer(key)
        name = "value"
        return partition, offset, number, decode_integer(value)
    except ValueError as error:
        raise HarnessError(f"topic {topic} partition {partition} offset {offset}: the {name} {error}.") from None
