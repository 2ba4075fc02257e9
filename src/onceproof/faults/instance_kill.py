"""An instance is killed while it works (SIGKILL), and started again over its state directory.

It does not tell the group, and leaves behind an open transaction, and stores that hold writes of it. Until it is missed
nobody has its tasks, unless it is back earlier. What it wrote in that transaction must be forgotten, and what it
committed must not be done again.

There is something to forget only if what came after the last commit has reached the disk. The fault waits a while for
such a moment, and tells whether there was one. Nothing reaches it of stores in memory, or of a cache that is flushed by
the commit alone.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from onceproof.faults.base import Fault, Ground, Instance
from onceproof.faults.directory import DirectoryStrike, config
from onceproof.faults.outside import seen_outside


class InstanceKill(DirectoryStrike):
    """An instance that holds active tasks is killed."""

    def __init__(self, ground: Ground) -> None:
        """Nothing is done yet."""
        super().__init__(ground)
        self._tasks: list[str] = []
        self._committed = (-1, 0.0)  # records whose processing was committed, and when that was first seen
        self._on_disk: bool | None = None  # a store's file is younger than the last commit; None if no store is on disk

    def ripe(self) -> bool:
        """Whether the victim's stores hold on disk what came after the last commit, if they are on disk at all.

        Under exactly-once a commit flushes no store, so a file that is younger holds what came after it. Standbys do
        not count: they get what is committed only.
        """
        victim = self._busy()
        if (committed := self.ground.committed()) != self._committed[0]:
            self._committed = (committed, self.ground.now())
        stores = [self._directory(victim.name) / task / "rocksdb" for task in victim.tasks("active")]
        if not any(store.exists() for store in stores):
            return True
        self._on_disk = max(map(_newest, stores)) > self._committed[1]
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
        self.ground.kill_instance(victim.name)
        return victim.name

    def took_effect(self) -> bool:
        """It is dead at once."""
        return True

    def observed(self) -> tuple[Mapping[str, Any], Sequence[str], str]:
        """Which tasks it had, what its directory held, and what it made of that."""
        proof = {
            "instance": self._name,
            "tasks": self._tasks,
            "uncommitted_on_disk": self._on_disk,
            **self._afterwards(),
        }
        left = {
            True: "what came after the last commit was on its disk",
            False: "nothing that came after the last commit was on its disk, so nothing there had to be forgotten",
            None: "it had no store on disk",
        }[self._on_disk]
        told = f"{self._name} was killed with {', '.join(self._tasks)}: {left}; {self._told_afterwards()}"
        return proof, self._missing_work(), told


def _newest(stores: Path) -> float:
    """When the newest file of RocksDB's tables below a folder was written, in epoch seconds; 0 if there is none."""
    newest = 0.0
    for file in stores.glob("**/*.sst"):
        with suppress(FileNotFoundError):  # compaction removes files meanwhile
            newest = max(newest, file.stat().st_mtime)
    return newest


FAULT = Fault(
    name="instance-kill",
    effect="An instance is killed (SIGKILL).",
    undone="It is started again over its state directory.",
    needs="nothing of the scenario may hang on when an instance dies",
    strike=seen_outside(InstanceKill, orderly=False),
    seen_outside=True,
    config=config,
    lasts=12.0,
)
