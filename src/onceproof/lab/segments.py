"""Reads the log segments of embedded brokers, by Kafka's own `DumpLogSegments`: no consumer, no broker involved.

Written once for each trial into a Parquet file, whose rows are `onceproof.model.segments.Entry`.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from onceproof.lab.artifacts import dumper_class_path
from onceproof.lab.cluster import Cluster
from onceproof.lab.java import Jvm
from onceproof.lab.processes import Process, await_condition, spawn, tail
from onceproof.model.errors import HarnessError
from onceproof.model.json_file import replacing
from onceproof.model.segments import (
    ABORT,
    COMMIT,
    COORDINATOR,
    DATA,
    OFFSETS,
    POSITION,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    Entry,
    partition_of_name,
)

TIMEOUT = 60.0
SCHEMA = pa.schema(
    [
        ("kind", pa.string()),
        ("role", pa.string()),
        ("partition", pa.int32()),
        ("first", pa.int64()),
        ("last", pa.int64()),
        ("producer", pa.int64()),
        ("epoch", pa.int32()),
        ("sequence", pa.int32()),
        ("last_sequence", pa.int32()),
        ("transactional", pa.bool_()),
        ("of_role", pa.string()),
        ("of_partition", pa.int32()),
        ("position", pa.int64()),
    ]
)
_BATCH = re.compile(
    rb"baseOffset: (\d+) lastOffset: (\d+) count: (\d+) baseSequence: (-?\d+) lastSequence: (-?\d+) "
    rb"producerId: (-?\d+) producerEpoch: (-?\d+) "
    rb".*isTransactional: (true|false) isControl: (true|false) .*isvalid: (true|false)"
)
_MARKER = re.compile(rb"\| offset: (\d+) .* endTxnMarker: (COMMIT|ABORT) ")
_RECORD = re.compile(rb"\| offset: (\d+) .*? key: (.*) payload: (.*)")
# Before 3.9 the records of Kafka's own topics are printed in words of their own, since then as JSON.
_POSITION = re.compile(r"offset_commit::group=(.*),partition=(.*)-(\d+)")
_STATE = re.compile(r"producerId:(\d+),producerEpoch:(\d+),state=(\w+),partitions=\[(.*)\],txnLastUpdateTimestamp")
_STATES = {2: PREPARE_COMMIT, 3: PREPARE_ABORT}


@dataclass(frozen=True)
class Logs:
    """The logs of one trial: its topics by the roles that they play, and its application id."""

    application_id: str
    roles: Mapping[str, str]  # topic -> role

    def role(self, topic: str) -> str | None:
        """The role of a topic; Kafka's own topics keep their names, and those of other trials have no role."""
        return topic if topic in (OFFSETS, COORDINATOR) else self.roles.get(topic)


class Dump:
    """`DumpLogSegments` running on the logs of one trial, until it is finished."""

    def __init__(self, cluster: Cluster, logs: Logs, folder: Path) -> None:
        """Start it.

        Args:
            cluster: the brokers whose files are read.
            logs: which of them are wanted.
            folder: takes the printed text, which is deleted once it is read.

        Raises:
            UsageError, HarnessError: the program of the brokers' release cannot be had or started.
        """
        self._cluster, self._logs = cluster, logs
        self.printed, self._errors = folder / "segments.txt", folder / "segments.log"
        self._process = self._start(folder)

    def _start(self, folder: Path) -> Process:
        self.printed.unlink(missing_ok=True)
        installation = self._cluster.installation
        jars = [installation.application_jar, *dumper_class_path(installation, self._cluster.release)]
        main = ["onceproof.streams.LogSegments", str(self.printed), *self._runs()]
        jvm = Jvm.of(installation, jars)
        self._data = jvm.data
        argv = jvm.command(main, folder, "-Xmx256m", records=True)
        return spawn(argv, log=self._errors)

    def _runs(self) -> Iterator[str]:
        """The program's arguments: only decoded records and markers are printed one by one."""
        files = segment_files(self._cluster.segments_folder(), self._logs)
        for wanted, options in (
            (lambda role: role == "input", ()),
            (lambda role: role not in ("input", OFFSETS, COORDINATOR), ("--print-data-log",)),
            (lambda role: role == OFFSETS, ("--print-data-log", "--offsets-decoder")),
            (lambda role: role == COORDINATOR, ("--print-data-log", "--transaction-log-decoder")),
        ):
            chosen = [str(file) for role, file in files if wanted(role)]
            if chosen:
                yield from ("--run", "--files", ",".join(chosen), *options)

    def finish(self) -> list[Entry]:
        """Wait for it, and read what it printed.

        Raises:
            HarnessError: it failed, or a log is incomplete: records are damaged, or were deleted or compacted.
        """
        self.await_printed()
        with self.printed.open("rb") as lines:
            entries = said_once(of_the_trial(list(entries_of(lines, self._logs))))
        self.printed.unlink()
        return entries

    def await_printed(self) -> None:
        """Wait until it has printed everything.

        Raises:
            HarnessError: it failed.
        """
        try:
            await_condition("the log segments to be read", lambda: not self._process.alive(), timeout=TIMEOUT)
        finally:
            self._process.terminate(timeout=1)
        if self._process.poll():
            raise HarnessError(
                f"The log segments of {self._logs.application_id} could not be read (exit code "
                f"{self._process.poll()}); {self._errors} ends with:\n{tail(self._errors)}"
            )
        if self._data is not None:
            self._data.keep()

    def stop(self) -> None:
        """End it, if it still runs."""
        self._process.kill()
        self._process.terminate(timeout=1)


def segment_files(folder: Path, logs: Logs) -> list[tuple[str, Path]]:
    """The segments below the brokers' folder with the roles of their topics, in order.

    Of a partition with several replicas the longest is taken: all are alike up to the end of the shorter. Of
    `__consumer_offsets` only the partition of the application's group.
    """
    found: dict[str, list[tuple[int, list[Path]]]] = {}
    for directory in sorted(folder.glob("data-[0-9]*/*-[0-9]*")):
        topic, _, partition = directory.name.rpartition("-")
        role = logs.role(topic)
        if role is None or not partition.isdecimal():
            continue
        segments = sorted(directory.glob("*.log"))
        found.setdefault(directory.name, []).append((sum(s.stat().st_size for s in segments), segments))
    groups = f"{OFFSETS}-{partition_of_name(logs.application_id, _partitions(found, OFFSETS))}"
    return [
        (str(logs.role(name.rpartition("-")[0])), segment)
        for name, replicas in found.items()
        if not name.startswith(f"{OFFSETS}-") or name == groups
        for segment in max(replicas)[1]
    ]


def _partitions(found: Iterable[str], topic: str) -> int:
    return max(1, sum(name.rpartition("-")[0] == topic for name in found))


def entries_of(lines: Iterable[bytes], logs: Logs) -> Iterator[Entry]:
    """What the program printed, as entries.

    Raises:
        HarnessError: a log is incomplete.
    """
    role, partition, expected = "", 0, 0
    batch: re.Match[bytes] | None = None
    for line in lines:
        if line.startswith(b"Dumping "):
            name = Path(line.decode().removeprefix("Dumping ").strip()).parent.name
            before = (role, partition)
            role, partition = str(logs.role(name.rpartition("-")[0])), int(name.rpartition("-")[2])
            expected = expected if (role, partition) == before else 0
        elif line.startswith(b"baseOffset: "):
            batch = _BATCH.match(line)
            if batch is None:
                raise HarnessError(f"DumpLogSegments prints of {role}-{partition} what is not known: {line[:200]!r}.")
            expected = _whole(batch, role, partition, expected)
            if batch[9] == b"false" and role not in (OFFSETS, COORDINATOR):
                yield _data(batch, role, partition)
        elif line.startswith(b"| offset: ") and batch is not None:
            yield from _decoded(line, batch, role, partition, logs)


def of_the_trial(entries: Sequence[Entry]) -> list[Entry]:
    """Without the markers of other applications, whose groups share a partition of `__consumer_offsets` with this one.

    A marker names only its producer; that it is the trial's is known from its records, positions or decisions.
    """
    own = {entry.producer for entry in entries if not _is_marker_of_offsets(entry)}
    return [entry for entry in entries if entry.producer in own or not _is_marker_of_offsets(entry)]


def said_once(entries: Sequence[Entry]) -> list[Entry]:
    """Without the markers that a coordinator wrote again when it took over (KIP-98).

    It completes what had been decided, and cannot know which markers are there already. Such a marker follows an equal
    one of its producer with nothing between them, and the log has more markers of the producer than there are decisions
    about it. (If a transaction wrote nothing, its marker stands alone as well, but has a decision of its own.)
    """
    spare: Counter[tuple[str | None, int | None, int]] = Counter()
    for entry in entries:
        if entry.kind in (COMMIT, ABORT):
            spare[entry.role, entry.partition, entry.producer] += 1
        elif entry.role == COORDINATOR:
            spare[entry.of_role, entry.of_partition, entry.producer] -= 1
    last: dict[tuple[str, int, int], Entry] = {}
    kept = []
    for entry in entries:
        place = (entry.role, entry.partition, entry.producer)
        before = last.get(place)
        is_like = before is not None and (before.kind, before.epoch) == (entry.kind, entry.epoch)
        if entry.kind in (COMMIT, ABORT) and is_like and spare[place] > 0:
            spare[place] -= 1
        else:
            last[place] = entry
            kept.append(entry)
    return kept


def _is_marker_of_offsets(entry: Entry) -> bool:
    return entry.role == OFFSETS and entry.kind in (COMMIT, ABORT)


def _whole(batch: re.Match[bytes], role: str, partition: int, expected: int) -> int:
    """The offset that must follow a batch."""
    first, last, count = (int(batch[n]) for n in (1, 2, 3))
    if batch[10] != b"true":
        raise HarnessError(f"The log {role}-{partition} is damaged at offset {first}: its checksum does not fit.")
    if first != expected or count != last - first + 1:
        raise HarnessError(
            f"The log {role}-{partition} is not whole: the batch of {count} records at offset {first} to {last} stands "
            f"where {expected} is due, so the cleaner was here; take a shorter trial."
        )
    return last + 1


def _data(batch: re.Match[bytes], role: str, partition: int) -> Entry:
    first, last, _, sequence, last_sequence, producer, epoch = (int(batch[n]) for n in range(1, 8))
    transactional = batch[8] == b"true"
    return Entry(DATA, role, partition, first, last, producer, epoch, sequence, last_sequence, transactional)


def _decoded(line: bytes, batch: re.Match[bytes], role: str, partition: int, logs: Logs) -> Iterator[Entry]:
    """The marker, the position or the decision that a record holds; nothing of other records."""
    producer, epoch = int(batch[6]), int(batch[7])
    if batch[9] == b"true":
        if found := _MARKER.match(line):
            offset = int(found[1])
            yield Entry(COMMIT if found[2] == b"COMMIT" else ABORT, role, partition, offset, offset, producer, epoch)
    elif role in (OFFSETS, COORDINATOR) and (found := _RECORD.match(line)):
        offset, key, value = int(found[1]), found[2].decode(), found[3].decode().strip()
        if role == OFFSETS:
            for topic, of, position in _positions(key, value, logs.application_id):
                yield Entry(
                    POSITION, role, partition, offset, offset, producer, epoch,
                    transactional=batch[8] == b"true", of_role=logs.role(topic), of_partition=of, position=position,
                )  # fmt: skip
        elif decision := _decision(key, value, logs.application_id):
            producer, epoch, state, places = decision
            for topic, of in places:
                yield Entry(
                    state, role, partition, offset, offset, producer, epoch,
                    of_role=logs.role(topic), of_partition=of,
                )  # fmt: skip


def _positions(key: str, value: str, group: str) -> Iterator[tuple[str, int, int]]:
    """Topic, partition and offset that a record of `__consumer_offsets` commits for the group; deletions do not."""
    if key.startswith("{"):
        told = json.loads(key)
        if told["type"] in ("0", "1") and told["data"]["group"] == group and value.startswith("{"):
            yield told["data"]["topic"], told["data"]["partition"], json.loads(value)["data"]["offset"]
    elif (found := _POSITION.fullmatch(key)) and found[1] == group and value.startswith("offset="):
        yield found[2], int(found[3]), int(value.removeprefix("offset=").partition(",")[0])


Decision = tuple[int, int, str, list[tuple[str, int]]]


def _decision(key: str, value: str, application_id: str) -> Decision | None:
    """Producer, epoch, decision and logs that a record of `__transaction_state` has for a transaction of the trial."""
    if key.startswith("{"):
        told: dict[str, Any] = json.loads(key)["data"]
        if not told["transactionalId"].startswith(f"{application_id}-") or not value.startswith("{"):
            return None
        data = json.loads(value)["data"]
        state = _STATES.get(data["transactionStatus"])
        places = [(t["topic"], p) for t in data["transactionPartitions"] or () for p in t["partitionIds"]]
        return (data["producerId"], data["producerEpoch"], state, places) if state else None
    found = _STATE.match(value)
    if not key.partition("transactionalId=")[2].startswith(f"{application_id}-") or found is None:
        return None
    named = [place.strip().rpartition("-") for place in found[4].split(",") if place]
    state = found[3] if found[3] in _STATES.values() else None
    return (int(found[1]), int(found[2]), state, [(t, int(p)) for t, _, p in named]) if state else None


def write_segments(file: Path, entries: Iterable[Entry]) -> None:
    """Write the entries as Parquet.

    Raises:
        HarnessError: the disk is full or read-only.
    """
    with replacing(file) as draft:
        pq.write_table(pa.Table.from_pylist([entry.to_dict() for entry in entries], SCHEMA), draft)


def read_segments(file: Path) -> list[Entry]:
    """Read what `write_segments` wrote."""
    return [Entry(**row) for row in pq.read_table(file).to_pylist()]
