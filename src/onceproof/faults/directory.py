"""Faults of an instance's state directory: it is damaged, and the instance is started on it.

What Kafka Streams finds there when it starts, and what it does with each item:

- `kafka-streams-process-metadata`: a UUID that names the process, kept over restarts
  (`StateDirectory.initializeProcessId`), to the assignor and, with the number of the thread, as transactional id. A
  process that gets another's file is that process to everybody.
- `.lock`: an operating-system lock on an open file (`StateDirectory.lockStateDirectory`), so it ends with the
  process, and a copy of the file locks nothing.
- `<task>/.checkpoint`: where in its changelog each store stands. Under exactly-once it is removed when the task is
  initialised and written when it closes cleanly. A store that has files and no offset there may hold writes of a
  transaction that was aborted: its task is corrupt, its stores are wiped, and restored from the beginning
  (`ProcessorStateManager.initializeStoreOffsetsFromCheckpoint`). A standby, which has only what is committed, writes
  its checkpoint while it runs.
- `<task>/rocksdb/<store>`: the stores. From 4.3 on each keeps its own offset there, and whether it was closed cleanly
  (KIP-1035).
"""

import json
import re
import shutil
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypedDict

from onceproof.faults.base import WORKS, FaultContext, FaultRun, Instance, draw_busy, log_lines, tasks_come_back
from onceproof.model.errors import NotUnderstoodError
from onceproof.model.phrases import ANEW, PROCESS, REFUSED, TRUSTED, WIPED
from onceproof.model.timeline import Event

WRITE_BUFFER = 65_536  # bytes: the least that RocksDB takes
ROCKSDB, OF_USERS = "rocksdb.config.setter", "onceproof.rocksdb.config.setter"  # the second is asked before ours
MEMORY_OF_FAULTS = "onceproof.streams.RocksDbMemory"  # what sets it, and keeps files from being compacted
GIVEN_UP_AFTER = 3.0  # seconds that an instance is given to die of a refused write
PROCESS_FILE = "kafka-streams-process-metadata"
CHECKPOINT = re.compile(r"(\S+) \d+ (-?\d+)")  # a line of `OffsetCheckpoint`, behind its version and their number


def small_write_buffer(size: int) -> dict[str, str]:
    """Configuration that makes RocksDB flush whenever it holds this many bytes, whatever transaction is open.

    Nothing is compacted, so a file is as old as the flush that wrote it.
    """
    return {
        ROCKSDB: MEMORY_OF_FAULTS,
        "onceproof.rocksdb.write.buffer.bytes": str(size),
    }


def config(_values: Mapping[str, Any]) -> dict[str, str]:
    """Stores that write to disk all the time, and a group that gives tasks back to a returning member."""
    return tasks_come_back() | small_write_buffer(WRITE_BUFFER)


def parse_checkpoint(text: str) -> dict[str, int]:
    """Offsets by topic from a checkpoint file: its version, the number of lines, then `topic partition offset`.

    Raises:
        NotUnderstoodError: the file has another form.
    """
    header, lines = text.splitlines()[:2], text.splitlines()[2:]
    rows = [found for line in lines if (found := CHECKPOINT.fullmatch(line))]
    if header != ["0", str(len(lines))] or len(rows) < len(lines):
        raise NotUnderstoodError(f"A checkpoint file has a form that Onceproof does not understand: {text[:200]!r}.")
    return {row[1].rpartition("-t")[2].partition("-")[2] or row[1]: int(row[2]) for row in rows}


class Restored(TypedDict("Restored", {"from": int})):
    """A partition of a store that was restored from one offset to another one."""

    store: str
    partition: int
    end: int


class Afterwards(TypedDict):
    """The state that a restarted instance reported to have found."""

    held: Mapping[str, Any]  # the content of its directory
    wiped: list[str]  # tasks
    trusted: dict[str, int]  # by store and partition, its offset
    from_the_beginning: list[str]  # stores and partitions
    restored: list[dict[str, Any]]  # `store`, `partition`, `from`, `end`
    process: str | None
    processed_afterwards: int


def describe_content(directory: Path) -> dict[str, Any]:
    """The content of a state directory: the id of the process; for each task its checkpoint (None: no file), and its
    bytes.

    Nothing uses it meanwhile, or its process is frozen.
    """
    process = None
    with suppress(OSError, ValueError, KeyError):
        process = json.loads((directory / PROCESS_FILE).read_text())["processId"]
    tasks = {}
    for task in sorted(directory.glob("*_*/")):
        checkpoint = task / ".checkpoint"
        tasks[task.name] = {
            "checkpoint": parse_checkpoint(checkpoint.read_text()) if checkpoint.exists() else None,
            "bytes": sum(file.stat().st_size for file in task.rglob("*") if file.is_file()),
        }
    return {"process": process, "tasks": tasks}


class DirectoryFaultRun(FaultRun):
    """Acts on the state directory of an instance that holds active tasks; the instance is started again over it."""

    patience = 40.0

    def __init__(self, lab: FaultContext) -> None:
        super().__init__(lab)
        self._victim: Instance | None = None
        self._over: Instance | None = None  # the victim, started over what was done to its directory
        self._again: Instance | None = None  # the victim, as it was started last
        self._events_before = 0  # it was started again
        self._lost: dict[str, Any] = {}  # what its directory held when it was replaced
        self._held: dict[str, Any] = {}  # what it held when the instance was started again

    def _choose(self, others: int = 0) -> Instance:
        """An instance drawn from those that hold active tasks, if enough others run besides it."""
        self._victim = draw_busy(self.lab, others)
        return self._victim

    def _directory(self, name: str) -> Path:
        return self.lab.instances.state_directory(name)

    def _snapshot(self, name: str) -> None:
        """Copy the directory of an instance as it is at one moment: the instance is frozen meanwhile."""
        self.lab.instances.freeze(name)
        try:
            self._copy(name)
        finally:
            self.lab.instances.thaw(name)

    def _copy(self, name: str) -> None:
        shutil.copytree(self._directory(name), self._copied)

    @property
    def _copied(self) -> Path:
        return self._directory(self._name).with_name("copied")

    def _kill_and_put_copy(self) -> None:
        """Kill the instance, put the copy where its directory was, and start it again."""
        self.lab.instances.kill(self._name)
        self._lost = describe_content(self._directory(self._name))
        shutil.rmtree(self._directory(self._name))
        self._copied.rename(self._directory(self._name))
        self._start_again()

    def heal(self) -> None:
        """Nothing is undone; only what is left of a copy is removed."""
        shutil.rmtree(self._copied, ignore_errors=True)

    def _start_again(self) -> None:
        """Start the instance, which has ended, over what its directory holds."""
        if self._over is None:
            self._held = describe_content(self._directory(self._name))
            self._events_before = len(self.lab.events)
        self._again = self.lab.instances.start(self._name, self.lab.trial.cell.running)
        self._over = self._over or self._again

    @property
    def _name(self) -> str:
        return "" if self._victim is None else self._victim.name

    def has_recovered(self) -> bool:
        """Whether the instance works again; the first call starts it, as an operator would."""
        if self._again is None:
            if self._name in self.lab.instances.running:
                self.lab.instances.kill(self._name)
            self._start_again()
        return self._works_again()

    def _works_again(self) -> bool:
        """Whether the restarted instance runs and processes records."""
        return self._again is not None and self._again.state == "RUNNING" and self._again.processed >= WORKS

    def _afterwards(self) -> Afterwards:
        """The state that the restarted instance reported to have found: stores that it trusted, with their offsets,
        tasks that it wiped, and from where to where it restored stores.
        """
        log = "" if self._over is None else self._over.log.read_text(errors="replace")
        trusted = {f"{store}-{partition}": int(offset) for store, offset, partition in TRUSTED.pattern.findall(log)}
        events = [e for e in self.lab.events[self._events_before :] if e["source"] == self._name]
        fields = ("store", "partition", "from", "end")
        return {
            "held": self._held,
            "wiped": sorted({task for tasks in WIPED.pattern.findall(log) for task in tasks.split(", ")}),
            "trusted": trusted,
            "from_the_beginning": sorted({f"{store}-{partition}" for store, partition in ANEW.pattern.findall(log)}),
            "restored": [{field: e[field] for field in fields} for e in events if e["event"] == "restore"],
            "process": next(iter(PROCESS.pattern.findall(log)), None),
            "processed_afterwards": 0 if self._again is None else self._again.processed,
        }

    def _has_judged(self) -> bool:
        """Whether the instance reported a store that it trusted, or a task that it wiped."""
        after = self._afterwards()
        return bool(after["wiped"] or after["trusted"])

    def _missing_judgement(self) -> list[str]:
        """The missing proof if the instance judged none of its stores.

        Raises:
            NotUnderstoodError: as `_require_logged`.
        """
        self._require_logged()
        if self._has_judged():
            return []
        return [f"{self._name} did not report whether it trusted what it found when it was started again"]

    def _require_logged(self) -> None:
        """Check that the log of an instance that works with stores on disk says how it initialised them.

        Raises:
            NotUnderstoodError: none of the phrases is there, so the release words them differently.
        """
        if self._works_again() and not self._has_judged() and not self._afterwards()["from_the_beginning"]:
            raise NotUnderstoodError(
                f"The log of {self._name} does not say how its stores were initialised ({TRUSTED.name}, {ANEW.name}, "
                f"{WIPED.name}): the release words it differently. `onceproof release qualify` says what "
                "else has changed."
            )

    def _missing_work(self) -> list[str]:
        if self._works_again():
            return []
        return [f"{self._name} processed fewer than {WORKS} records after it was started again"]

    def _afterwards_text(self) -> str:
        """The actions after the restart, as the end of a sentence."""
        after = self._afterwards()
        wiped = f"wiped {', '.join(after['wiped'])}" if after["wiped"] else "wiped nothing"
        trusted = ", ".join(f"{store} at {offset:,}" for store, offset in after["trusted"].items())
        wiped += f", trusted {trusted}" if trusted else ""
        restored = [f"{r['store']}-{r['partition']} from {r['from']:,} to {r['end']:,}" for r in after["restored"]]
        stores = ", ".join(restored) or "nothing"
        return f"started again it {wiped}, restored {stores}, and processed {after['processed_afterwards']:,} records."


class WritesRefused(DirectoryFaultRun):
    """The disk refuses what an instance writes, until it is healed; then the instance is started again.

    That the instance ends, or a thread of it dies of an exception that names the disk, is what it should do.
    """

    patience = 30.0
    how: str  # writes are refused

    def __init__(self, lab: FaultContext) -> None:
        super().__init__(lab)
        self._log_end = 0
        self._refused_at = 0.0  # epoch seconds
        self._refusal: tuple[int, str] | None = None  # when and how it reported one

    @abstractmethod
    def _refuse(self) -> None:
        """Refuse what the instance writes.

        Raises:
            NoTargetError: this is impossible here.
        """

    @abstractmethod
    def _allow(self) -> None:
        """Undo it, as far as it was done."""

    def apply(self) -> str:
        """Refuse what an instance with active tasks writes."""
        victim = self._choose()
        self._log_end = victim.log.stat().st_size
        self.lab.note("excused", instance=victim.name, of=REFUSED.text)
        self._refused_at = self.lab.now()
        self._refuse()
        return victim.name

    def has_taken_effect(self) -> bool:
        """Whether the instance reported a refused write, and died of it or was given time to."""
        self._refusal = self._refusal or self._find_refusal()
        given_up = self._refusal and self.lab.now() * 1_000 >= self._refusal[0] + GIVEN_UP_AFTER * 1_000
        return self._refusal is not None and bool(self._death() or given_up)

    def _find_refusal(self) -> tuple[int, str] | None:
        """When it reported a refused write, and in which words: those of its log, or of what it died of."""
        if self._victim is None:
            return None
        since = round(self._refused_at * 1_000)
        if line := next(log_lines(self._victim.log, self._log_end, REFUSED.pattern, since), None):
            return line
        death = self._death()
        found = REFUSED.pattern.search(_cause(death)) if death else None
        return (death["t"], found[0]) if death and found else None

    def _death(self) -> Event | None:
        return None if self._victim is None else self._victim.last.get("uncaught")

    def heal(self) -> None:
        """Let it write again."""
        if self._victim is not None:
            self._allow()

    def report_observed(self) -> tuple[Mapping[str, Any], Sequence[str], str]:
        """The reports of the instance about refused writes, what it died of, and what it did when it came back."""
        death, refusal = self._death(), self._refusal
        after_ms = None if refusal is None else refusal[0] - round(self._refused_at * 1_000)
        proof = {
            "instance": self._name,
            "how": self.how,
            "refused": None if refusal is None else refusal[1],
            "refused_after_ms": after_ms,
            "died_of": None if death is None else f"{death['exception']}: {_cause(death)}",
            **self._afterwards(),
        }
        unseen = [f"{self._name} reported no write that was refused"] if refusal is None else []
        died = "and its thread died of it" if death else "and it ran on"
        description = (
            f"{self._name} was refused to write ({self.how}: {proof['refused']}) after {after_ms} ms, {died}; "
            f"{self._afterwards_text()}"
        )
        return proof, [*unseen, *self._missing_work()], description


def _cause(death: Event) -> str:
    """The first cause of a death."""
    return str(death["causes"][-1] if death["causes"] else death["message"])
