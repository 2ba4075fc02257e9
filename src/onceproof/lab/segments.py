"""Reads the log segments of embedded brokers, by Kafka's own `DumpLogSegments`: no consumer, no broker involved.

Written once for each trial into a Parquet file, whose rows are `onceproof.model.segments.LogEntry`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path

from arro3.core import Array, DataType, Field, Schema, Table
from arro3.io import read_parquet, write_parquet

from onceproof.lab.artifacts import dumper_class_path
from onceproof.lab.cluster import Cluster
from onceproof.lab.java import Jvm
from onceproof.lab.log_dump import LogDump, Logs
from onceproof.model.errors import HarnessError, NotUnderstoodError
from onceproof.model.json_file import replacing
from onceproof.model.record import Topics
from onceproof.model.segments import (
    ABORT,
    COMMIT,
    COORDINATOR,
    OFFSETS,
    POSITION,
    LogEntry,
    partition_of_name,
)
from onceproof.processes.process import Process, spawn, tail
from onceproof.processes.waiting import await_condition

TIMEOUT = 60.0
COLUMNS = {
    "kind": DataType.string(),
    "role": DataType.string(),
    "partition": DataType.int32(),
    "first": DataType.int64(),
    "last": DataType.int64(),
    "producer": DataType.int64(),
    "epoch": DataType.int32(),
    "sequence": DataType.int32(),
    "last_sequence": DataType.int32(),
    "transactional": DataType.bool(),
    "of_role": DataType.string(),
    "of_partition": DataType.int32(),
    "position": DataType.int64(),
    "timestamp": DataType.int64(),
}


class SegmentDump:
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
        self._files: dict[Path, int] = {}  # those that are read, with their sizes
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
        self._files = {file: file.stat().st_size for _, file in files}
        for wanted, options in (
            (lambda role: role == "input", ()),
            (lambda role: role not in ("input", OFFSETS, COORDINATOR), ("--print-data-log",)),
            (lambda role: role == OFFSETS, ("--print-data-log", "--offsets-decoder")),
            (lambda role: role == COORDINATOR, ("--print-data-log", "--transaction-log-decoder")),
        ):
            chosen = [str(file) for role, file in files if wanted(role)]
            if chosen:
                yield from ("--run", "--files", ",".join(chosen), *options)

    def finish(self, topics: Topics, *, positioned: bool = False) -> list[LogEntry]:
        """Wait for it, and read what it printed.

        Args:
            topics: the records that consumers read, by role: the logs must hold them.
            positioned: whether the application must have committed positions.

        Raises:
            HarnessError: it failed, or prints what is not understood or too little; or a log is incomplete: records
                are damaged, or were deleted or compacted.
        """
        self.await_printed()
        dump = LogDump(self._logs)
        with self.printed.open("rb") as lines:
            entries = drop_repeated(of_the_trial(list(dump.entries(lines))))
        self._check_files(dump)
        check_complete(entries, dump.ends, topics, positioned=positioned)
        self.printed.unlink()
        return entries

    def _check_files(self, dump: LogDump) -> None:
        """That each file was printed to the end that it had when this began.

        Raises:
            HarnessError: one was not.
        """
        for file, size in self._files.items():
            if (printed := dump.files.get(str(file), 0)) < size:
                raise NotUnderstoodError(
                    f"DumpLogSegments of {self._cluster.release} printed {printed:,} of {size:,} bytes of "
                    f"{file.parent.name}/{file.name}; {self._errors} ends with:\n{tail(self._errors)}"
                )

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


def check_complete(
    entries: Sequence[LogEntry], ends: Mapping[tuple[str, int], int], topics: Topics, *, positioned: bool
) -> None:
    """That what was understood of the logs is as much as consumers and the application have seen.

    Judging less than that would report that Kafka lost the rest.

    Args:
        entries: of the trial.
        ends: by role and partition, the offset behind the last batch of the log.
        topics: the records that consumers read, by role.
        positioned: whether the application must have committed positions.

    Raises:
        HarnessError: something is missing.
    """
    for role, records in topics.items():
        for record in records:
            if record.offset >= (end := ends.get((role, record.partition), 0)):
                raise NotUnderstoodError(
                    f"The log segments of {role}-{record.partition} end at offset {end}, but a consumer read the "
                    f"record at {record.offset}: DumpLogSegments printed too little."
                )
    if not any(entry.role == COORDINATOR for entry in entries) and (
        marker := next((entry for entry in entries if entry.kind in (COMMIT, ABORT)), None)
    ):
        raise NotUnderstoodError(
            f"The log {marker.role}-{marker.partition} has the marker {marker.kind} at offset {marker.first}, but no "
            f"record of {COORDINATOR} prepares any transaction of the trial: what is printed of it was not understood."
        )
    if positioned and not any(entry.kind == POSITION for entry in entries):
        raise NotUnderstoodError(
            f"The application has processed its input, but no record of {OFFSETS} commits a position of it: what is "
            "printed of it was not understood."
        )


def of_the_trial(entries: Sequence[LogEntry]) -> list[LogEntry]:
    """Without the markers of other applications, whose groups share a partition of `__consumer_offsets` with this one.

    A marker names only its producer; that it is the trial's is known from its records, positions or decisions.
    """
    producers = {entry.producer for entry in entries if not _is_marker_of_offsets(entry)}
    return [entry for entry in entries if entry.producer in producers or not _is_marker_of_offsets(entry)]


def drop_repeated(entries: Sequence[LogEntry]) -> list[LogEntry]:
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
    last: dict[tuple[str, int, int], LogEntry] = {}
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


def _is_marker_of_offsets(entry: LogEntry) -> bool:
    return entry.role == OFFSETS and entry.kind in (COMMIT, ABORT)


def write_segments(file: Path, entries: Iterable[LogEntry]) -> None:
    """Write the entries as Parquet.

    Raises:
        HarnessError: the disk is full or read-only.
    """
    rows = list(entries)
    arrays = [Array(list(map(attrgetter(name), rows)), of) for name, of in COLUMNS.items()]
    schema = Schema([Field(name, of, nullable=True) for name, of in COLUMNS.items()])
    with replacing(file) as draft:
        write_parquet(Table.from_arrays(arrays, schema=schema), str(draft))


def read_segments(file: Path) -> list[LogEntry]:
    """Read what `write_segments` wrote."""
    table = read_parquet(str(file)).read_all()
    columns = [table[name].to_pylist() for name in COLUMNS]
    return [LogEntry(**dict(zip(COLUMNS, row, strict=True))) for row in zip(*columns, strict=True)]
