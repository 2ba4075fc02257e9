"""An instance is killed while it works (SIGKILL), and started again over its state directory.

It leaves without a word to the group, and leaves behind an open transaction, and stores that hold writes of it. Until
it is missed no instance has its tasks, unless it is back earlier. What it wrote in that transaction must be forgotten,
and what it committed must not be done again.

There is something to forget only if what came after the last commit has reached the disk. The fault waits a while for
such a moment, and reports whether there was one. Nothing reaches it of stores in memory, or of a cache that is flushed
by the commit alone.

RocksDB writes a full memtable in the background, so what a commit found in one may be written after it. A file counts
only if it is younger than the commit by more than that takes.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from onceproof.faults.base import Fault, FaultContext, Instance
from onceproof.faults.directory import DirectoryFaultRun, config
from onceproof.faults.outside import see_outside

LATE = 0.25  # seconds that RocksDB may take to write a memtable that is full; less where commits come that often


class InstanceKill(DirectoryFaultRun):
    """An instance that holds active tasks is killed."""

    def __init__(self, lab: FaultContext) -> None:
        super().__init__(lab)
        self._tasks: list[str] = []
        self._committed = (-1, 0.0)  # records whose processing was committed, and when that was first seen
        self._gap = 0.0  # the longest time between two commits, in seconds; 0: one is known at most
        self._on_disk: bool | None = None  # a store's file is younger than the last commit; None if no store is on disk

    def is_ripe(self) -> bool:
        """Whether the victim's stores hold on disk what came after the last commit, if they are on disk at all.

        Under exactly-once a commit flushes no store, so a file that is younger holds what came after it; none is
        younger because it was compacted (`small_write_buffer`). Standbys do not count: they get what is committed only.
        """
        victim = self._busy()
        if (committed := self.lab.count_committed()) != self._committed[0]:
            now = self.lab.now()
            if self._committed[1]:
                self._gap = max(self._gap, now - self._committed[1])
            self._committed = (committed, now)
        tasks = [self._directory(victim.name) / task for task in victim.tasks("active")]
        if not any(map(_has_stores, tasks)):
            return True
        late = min(LATE, self._gap / 4) if self._gap else LATE
        self._on_disk = max(map(_newest, tasks)) > self._committed[1] + late
        return self._on_disk

    def _busy(self) -> Instance:
        """The victim; another one, if a rebalance has left it without an active task."""
        if self._victim is None or not self._victim.tasks("active"):
            self._on_disk = None
            return self._choose()
        return self._victim

    def apply(self) -> str:
        """Kill an instance that holds active tasks."""
        victim = self._busy()
        self._tasks = victim.tasks("active")
        self.lab.instances.kill(victim.name)
        if self._on_disk and self.lab.count_committed() != self._committed[0]:
            self._on_disk = False  # a commit came in between
        return victim.name

    def has_taken_effect(self) -> bool:
        """It is dead at once."""
        return True

    def report_observed(self) -> tuple[Mapping[str, Any], Sequence[str], str]:
        """Which tasks it had, what its directory held, and what it made of that."""
        proof = {
            "instance": self._name,
            "tasks": self._tasks,
            "uncommitted_on_disk": self._on_disk,
            **self._afterwards(),
        }
        left = {
            True: "what came after the last commit was on its disk",
            False: "no uncommitted change is known to have reached its disk",
            None: "it had no store on disk",
        }[self._on_disk]
        description = f"{self._name} was killed with {', '.join(self._tasks)}: {left}; {self._afterwards_text()}"
        return proof, self._missing_work(), description


def _has_stores(task: Path) -> bool:
    """Whether RocksDB keeps a store below the folder of a task: of keys in `rocksdb`, of windows in one of its own."""
    return (task / "rocksdb").exists() or any(task.glob("*/*/CURRENT"))


def _newest(task: Path) -> float:
    """When the newest file of RocksDB's tables below a folder was written, in epoch seconds; 0 if there is none.

    One that is empty is still being written, and lost if its process is killed.
    """
    newest = 0.0
    for file in task.glob("**/*.sst"):
        with suppress(FileNotFoundError):  # compaction removes files meanwhile
            stat = file.stat()
            newest = max(newest, stat.st_mtime if stat.st_size else 0.0)
    return newest


FAULT = Fault(
    name="instance-kill",
    effect="An instance is killed (SIGKILL).",
    undone="It is started again over its state directory.",
    needs="nothing of the scenario may depend on when an instance dies",
    new_run=see_outside(InstanceKill, orderly=False),
    seen_outside=True,
    config=config,
    lasts=12.0,
)
