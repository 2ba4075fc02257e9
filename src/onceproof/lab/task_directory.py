"""What RocksDB has on disk of a task that no process runs: read by the release's own RocksDB, from a copy."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from onceproof.installation import Installation
from onceproof.lab.programs import run_program
from onceproof.model.release import Release


def read_task_directory(
    installation: Installation, release: Release, directory: Path, scratch: Path, log: Path
) -> dict[str, Mapping[int, int]]:
    """The entries of each store in a task's directory.

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
        main = ("onceproof.streams.TaskDirectory", str(copy), str(written))
        told = run_program(installation, release, main, log, f"{directory} to be read")
        return {store["store"]: _entries(written / f"{store['store']}.csv") for store in told["stores"]}
    finally:
        shutil.rmtree(scratch)


def _entries(file: Path) -> dict[int, int]:
    with file.open() as lines:
        return {int(key): int(value) for key, value in (line.split(",") for line in lines)}
