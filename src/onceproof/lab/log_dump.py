"""Parses what Kafka's `DumpLogSegments` prints, into entries; what it does not understand is an error.

What is printed changes with the release of the brokers, and Kafka does not promise that it stays as it is:

- The records of Kafka's own topics are printed in words of their own before 3.9, and as JSON since.
- The status of a transaction is a number before 4.4, and a name since.

A parser that skips what it does not know would report that Kafka lost it. So each line has to be known here, and each
record that a batch announces has to be printed.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from onceproof.model.errors import HarnessError, NotUnderstoodError
from onceproof.model.segments import (
    ABORT,
    COMMIT,
    COORDINATOR,
    DATA,
    OFFSETS,
    POSITION,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    LogEntry,
)

_DUMPING = re.compile(rb"Dumping (.*/([^/]+)-(\d+)/\d+\.log)\s*")
_BATCH = re.compile(
    rb"baseOffset: (?P<first>\d+) lastOffset: (?P<last>\d+) count: (?P<count>\d+) "
    rb"baseSequence: (?P<sequence>-?\d+) lastSequence: (?P<last_sequence>-?\d+) "
    rb"producerId: (?P<producer>-?\d+) producerEpoch: (?P<epoch>-?\d+) "
    rb".*isTransactional: (?P<transactional>true|false) isControl: (?P<control>true|false) "
    rb".*position: (?P<position>\d+) (CreateTime|LogAppendTime): (?P<timestamp>-?\d+) size: (?P<size>\d+) "
    rb".*isvalid: (?P<valid>true|false)\s*"
)
_MARKER = re.compile(rb"\| offset: (\d+) .* endTxnMarker: (COMMIT|ABORT) coordinatorEpoch: -?\d+\s*")
_RECORD = re.compile(rb"\| offset: (\d+) .*? key: (.*) payload: (.*?)\s*")
_INVALID = re.compile(rb"Found (\d+) invalid bytes at the end of \S+\s*")  # of a batch that was not written whole
_OFFSET_OF_RECORD = re.compile(rb"\| offset: (\d+) ")
_START = re.compile(rb"(Log starting|Starting) offset: \d+\s*|\s*")
_TOMBSTONES = ("<DELETE>", "null")
# In words of their own, before 3.9.
_POSITION = re.compile(r"offset_commit::group=(.*),partition=(.*)-(\d+)")
_GROUP = re.compile(r"group_metadata::group=.*")
_OFFSET = re.compile(r"offset=(\d+)(?:,metadata=.*)?")
_TRANSACTION = re.compile(r"transaction_metadata::transactionalId=(.*)")
_STATE = re.compile(r"producerId:(\d+),producerEpoch:(\d+),state=(\w+),partitions=\[(.*)\],txnLastUpdateTimestamp=.*")
# `TransactionState` of Kafka, by the numbers under which it is stored.
_STATES = (
    "Empty", "Ongoing", PREPARE_COMMIT, PREPARE_ABORT, "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence",
)  # fmt: skip
_POSITION_TYPES = ("0", "1")  # of the keys in `__consumer_offsets`; all others are about groups


@dataclass(frozen=True)
class Logs:
    """The logs of one trial: its topics by the roles that they play, and its application id."""

    application_id: str
    roles: Mapping[str, str]  # topic -> role

    def role(self, topic: str) -> str | None:
        """The role of a topic; Kafka's own topics keep their names, and those of other trials have no role."""
        return topic if topic in (OFFSETS, COORDINATOR) else self.roles.get(topic)


@dataclass(frozen=True)
class _Batch:
    """The line that stands before the records of a batch."""

    first: int
    last: int
    sequence: int
    last_sequence: int
    producer: int
    epoch: int
    transactional: bool
    control: bool
    timestamp: int  # of its last record


@dataclass
class LogDump:
    """Parses the lines of one dump, in their order.

    Attributes:
        logs: of the trial.
        files: by path, how many of the file's bytes were printed.
        ends: by role and partition, the offset behind the last batch.
    """

    logs: Logs
    files: dict[str, int] = field(default_factory=dict)
    ends: dict[tuple[str, int], int] = field(default_factory=dict)
    _file: str = ""
    _role: str = ""
    _partition: int = 0
    _batch: _Batch | None = None
    _unseen: int = 0  # records of the batch that must still be printed

    def entries(self, lines: Iterable[bytes]) -> Iterator[LogEntry]:
        """The printed dump, as entries.

        Raises:
            HarnessError: a line is not understood or missing; a log is damaged, or some of it was deleted or compacted.
        """
        for line in lines:
            yield from self._line(line)
        self._check_all_seen()

    @property
    def _name(self) -> str:
        return f"{self._role}-{self._partition}"

    @property
    def _decoded(self) -> bool:
        """Whether it is one of Kafka's own topics, whose records are printed in text."""
        return self._role in (OFFSETS, COORDINATOR)

    def _line(self, line: bytes) -> Iterator[LogEntry]:
        if not line.endswith(b"\n"):
            raise self._not_understood(line)
        if line.startswith(b"Dumping "):
            self._check_all_seen()
            self._begin(line)
        elif line.startswith(b"baseOffset: ") and self._role:
            self._check_all_seen()
            self._batch = batch = self._read_batch(line)
            if not batch.control and not self._decoded:
                yield LogEntry(
                    DATA, self._role, self._partition, batch.first, batch.last, batch.producer, batch.epoch,
                    batch.sequence, batch.last_sequence, batch.transactional,
                )  # fmt: skip
        elif self._file and (invalid := _INVALID.fullmatch(line)):
            self.files[self._file] += int(invalid[1])
        elif self._batch is not None and self._prints_records(self._batch):
            yield from self._record(line, self._batch)
        elif not self._may_be_bytes(line) and not _START.fullmatch(line):
            raise self._not_understood(line)

    def _prints_records(self, batch: _Batch) -> bool:
        """Whether the records of a batch are printed as text: those of Kafka's own topics, and markers."""
        return self._decoded or (batch.control and self._role != "input")

    def _may_be_bytes(self, line: bytes) -> bool:
        """Whether the line may belong to a record of one of the trial's topics, whose bytes may look like anything."""
        batch = self._batch
        if batch is None or batch.control or self._decoded or self._role == "input":
            return False
        record = _OFFSET_OF_RECORD.match(line)
        return record is None or batch.first <= int(record[1]) <= batch.last

    def _begin(self, line: bytes) -> None:
        found = _DUMPING.fullmatch(line)
        role = self.logs.role(found[2].decode()) if found else None
        if found is None or role is None:
            raise self._not_understood(line)
        self._file = found[1].decode()
        self.files[self._file] = 0
        self._role, self._partition, self._batch = role, int(found[3]), None
        self.ends.setdefault((self._role, self._partition), 0)

    def _read_batch(self, line: bytes) -> _Batch:
        found = _BATCH.fullmatch(line)
        if found is None:
            raise self._not_understood(line)
        number = {name: int(text) for name, text in found.groupdict().items() if text.lstrip(b"-").isdigit()}
        first, last, count = number["first"], number["last"], number["count"]
        if found["valid"] != b"true":
            raise HarnessError(f"The log {self._name} is damaged at offset {first}: its checksum does not fit.")
        due = self.ends.get((self._role, self._partition), 0)
        if first != due or count != last - first + 1:
            raise HarnessError(
                f"The log {self._name} is not whole: the batch of {count} records at offset {first} to {last} stands "
                f"where {due} is due, so the cleaner was here; take a shorter trial."
            )
        self.ends[self._role, self._partition] = last + 1
        self.files[self._file] = number["position"] + number["size"]
        batch = _Batch(
            first,
            last,
            number["sequence"],
            number["last_sequence"],
            number["producer"],
            number["epoch"],
            transactional=found["transactional"] == b"true",
            control=found["control"] == b"true",
            timestamp=number["timestamp"],
        )
        self._unseen = count if self._prints_records(batch) else 0
        return batch

    def _check_all_seen(self) -> None:
        """That each record of a batch whose records are read was printed."""
        if self._unseen and self._batch is not None:
            raise NotUnderstoodError(
                f"DumpLogSegments prints {self._unseen} records too few of the batch at offset {self._batch.first} of "
                f"{self._name}, so nothing is known about its transactions."
            )

    def _record(self, line: bytes, batch: _Batch) -> Iterator[LogEntry]:
        """The marker, the position or the decision that a record holds; nothing of other records."""
        found = (_MARKER if batch.control else _RECORD).fullmatch(line)
        if found is None or not self._unseen:
            raise self._not_understood(line)
        self._unseen -= 1
        if batch.control:
            offset = int(found[1])
            kind = COMMIT if found[2] == b"COMMIT" else ABORT
            yield LogEntry(kind, self._role, self._partition, offset, offset, batch.producer, batch.epoch)
            return
        read = self._positions if self._role == OFFSETS else self._decisions
        try:
            yield from read(int(found[1]), found[2].decode(), found[3].decode(), batch)
        except (ValueError, LookupError, TypeError, AttributeError):
            raise self._not_understood(line) from None

    def _positions(self, offset: int, key: str, value: str, batch: _Batch) -> list[LogEntry]:
        """The position that a record of `__consumer_offsets` commits for the application.

        Raises:
            ValueError, LookupError, TypeError: it is not understood.
        """
        if key.startswith("{"):
            kind, data = _parse_type(key)
            if kind not in _POSITION_TYPES:
                return []
            group, topic, partition = data["group"], data["topic"], _integer(data["partition"])
            position = None if value in _TOMBSTONES else _integer(json.loads(value)["data"]["offset"])
        elif found := _POSITION.fullmatch(key):
            group, topic, partition = found[1], found[2], int(found[3])
            position = None if value in _TOMBSTONES else int(_matching(_OFFSET, value)[1])
        else:
            _matching(_GROUP, key)
            return []
        if group != self.logs.application_id or position is None:
            return []
        return [
            LogEntry(
                POSITION, self._role, self._partition, offset, offset, batch.producer, batch.epoch,
                transactional=batch.transactional, of_role=self.logs.role(topic), of_partition=partition,
                position=position, timestamp=batch.timestamp,
            )
        ]  # fmt: skip

    def _decisions(self, offset: int, key: str, value: str, _: _Batch) -> list[LogEntry]:
        """The decision of a record of `__transaction_state` about a transaction of the trial, for each of its logs.

        Raises:
            ValueError, LookupError, TypeError: it is not understood.
        """
        if key.startswith("{"):
            kind, data = _parse_type(key)
            if kind != "0":
                raise ValueError(kind)
            name = data["transactionalId"]
            decision = None if value in _TOMBSTONES else _decision_of_json(json.loads(value)["data"])
        else:
            name = _matching(_TRANSACTION, key)[1]
            decision = None if value in _TOMBSTONES else _decision_of_words(_matching(_STATE, value))
        if not name.startswith(f"{self.logs.application_id}-") or decision is None:
            return []
        producer, epoch, state, places = decision
        if state not in (PREPARE_COMMIT, PREPARE_ABORT):
            return []
        return [
            LogEntry(
                state, self._role, self._partition, offset, offset, producer, epoch,
                of_role=self.logs.role(topic), of_partition=partition,
            )
            for topic, partition in places
        ]  # fmt: skip

    def _not_understood(self, line: bytes) -> NotUnderstoodError:
        where = f"of {self._name} " if self._role else ""
        return NotUnderstoodError(
            f"DumpLogSegments prints {where}what Onceproof does not understand: "
            f"{line[:300].decode(errors='replace')!r}. The harness has to learn how these brokers print it."
        )


_Decision = tuple[int, int, str, list[tuple[str, int]]]


def _decision_of_json(data: Mapping[str, Any]) -> _Decision:
    status = data["transactionStatus"]
    state = _STATES[status] if type(status) is int and status >= 0 else status
    places = [
        (entry["topic"], _integer(partition))
        for entry in data["transactionPartitions"] or ()
        for partition in entry["partitionIds"]
    ]
    return _integer(data["producerId"]), _integer(data["producerEpoch"]), _check_known(state), places


def _decision_of_words(found: re.Match[str]) -> _Decision:
    named = [place.strip().rpartition("-") for place in found[4].split(",") if place]
    return (
        int(found[1]),
        int(found[2]),
        _check_known(found[3]),
        [(topic, int(partition)) for topic, _, partition in named],
    )


def _check_known(state: object) -> str:
    if state not in _STATES:
        raise ValueError(state)
    return str(state)


def _parse_type(key: str) -> tuple[str, Mapping[str, Any]]:
    """The number of the type of a key, and its fields."""
    record = json.loads(key)
    kind, data = record["type"], record["data"]
    if not (isinstance(kind, str) and kind.isdecimal() and isinstance(data, dict)):
        raise ValueError(kind)
    return kind, data


def _integer(value: object) -> int:
    if type(value) is not int:
        raise TypeError(value)
    return value


def _matching(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    found = pattern.fullmatch(text)
    if found is None:
        raise ValueError(text)
    return found
