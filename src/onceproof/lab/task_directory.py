"""The content on disk by RocksDB of tasks that no process runs: read by the release's own RocksDB."""

import base64
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from onceproof.installation import Installation
from onceproof.lab.programs import run_program
from onceproof.model.release import Release

MAIN = "onceproof.streams.TaskDirectory"


@dataclass(frozen=True)
class StoreOnDisk:
    """The content of a store, as bytes without timestamps, and the offset up to which it claims its changelog."""

    task: str
    store: str
    position: int | None  # the first offset that it does not claim to hold; null if it claims nothing
    segments: bool  # whether it has one RocksDB for each segment of time
    unknown: tuple[str, ...]  # column families with an unknown prefix before their values, to be cut off
    entries: Mapping[bytes, bytes]

    @property
    def partition(self) -> int:
        """The partition of its changelog."""
        return int(self.task.rpartition("_")[2])


def read_task_directory(
    installation: Installation, release: Release, directory: Path, scratch: Path, log: Path
) -> dict[str, Mapping[int, int]]:
    """The entries of each store in a task's directory, integers.

    Args:
        installation: what the reading process is run with.
        release: of Kafka Streams, whose RocksDB reads them.
        directory: of the task; it is copied, since RocksDB writes its log there even when it only reads.
        scratch: a folder for the copy, which is removed again.
        log: takes what the reading process logs.

    Returns:
        By store, key to value; nothing if there is no directory. What was in memory when the process died is not
        there: Kafka Streams has no WAL.

    Raises:
        HarnessError: the directory cannot be read.
    """
    if not directory.exists():
        return {}
    copy, written = scratch / directory.name, scratch / "entries"
    shutil.copytree(directory, copy)
    try:
        main = (MAIN, "integers", str(written), str(copy))
        answer = run_program(installation, release, main, log, f"{directory} to be read")
        stores = [store["store"] for store in answer["tasks"][directory.name]]
        return {
            store: {int(key): int(value) for key, value in _lines(written / directory.name / f"{store}.csv")}
            for store in stores
        }
    finally:
        shutil.rmtree(scratch)


def read_stores(
    installation: Installation, release: Release, directories: Sequence[Path], scratch: Path, log: Path
) -> list[StoreOnDisk]:
    """The stores in the directories of tasks whose instance has closed; arguments and errors as above."""
    main = (MAIN, "bytes", str(scratch), *map(str, directories))
    try:
        answer = run_program(installation, release, main, log, f"the stores in {directories[0].parent} to be read")
        return [
            StoreOnDisk(
                task,
                store["store"],
                store["position"],
                store["segments"],
                tuple(store["unknown"]),
                {
                    base64.b64decode(key): base64.b64decode(value)
                    for key, value in _lines(scratch / task / f"{store['store']}.csv")
                },
            )
            for task, stores in answer["tasks"].items()
            for store in stores
        ]
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _lines(file: Path) -> Iterator[list[str]]:
    with file.open() as lines:
        for line in lines:
            yield line.strip().split(",")
