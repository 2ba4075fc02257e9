"""An instance without a process: it obeys and reports as the application does (`streams_app/README.md`)."""

import errno
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from onceproof.faults.directory import PROCESS_FILE
from onceproof.installation import Installation
from onceproof.lab.instance import InstanceProcess
from onceproof.model.release import Release
from onceproof.model.timeline import Timeline
from onceproof.processes.cpu import CpuTime
from onceproof.scenarios.base import HALTS
from tests.fakes.clock import FakeClock
from tests.fakes.group import SESSION, Group, Member, Task

THROTTLED_AFTER = 3.0  # seconds from the first record under a quota
THROTTLED_SPEED = 30.0  # records/s under it
WITHOUT_NUMBERS = ("joined", "windowed-sums", "versions", "waiting")  # stores whose keys are no integers
BEFORE_DELETION = 6_000  # records that are in a segment which is deleted then
FIRST_RECORDS = 500  # before the one that is valid for ever
GIVES_UP_AGAIN = 1.0  # seconds of patience that a producer has left
RECORDS_A_FILE = 2_048  # after which RocksDB flushes, if its write buffer is small
NOT_LOCKED = "Exception: standby-task [0_0] Failed to lock the state directory for task 0_0"
FENCED = (
    "WARN [a-StreamThread-1] Detected that the thread is being fenced. This implies that this thread missed a rebalance"
    " and dropped out of the consumer group. (a)"
)
TIMED_OUT = "INFO [a] [Producer clientId=a] Disconnecting from node 1 due to request timeout. (a)"
TOO_LARGE = (
    "WARN [a-producer] [Producer clientId=a] Got error produce response in correlation id 1 on topic-partition a-0, "
    "splitting and retrying (1 attempts left). Error: MESSAGE_TOO_LARGE (a)"
)
INVALID_EPOCH = (
    "ERROR [a-StreamThread-1] Error encountered sending record to topic: "
    "org.apache.kafka.common.errors.InvalidProducerEpochException: Producer attempted to produce with an old epoch. (a)"
)


def stamped(clock: FakeClock, line: str) -> str:
    """A line of a log, in the format of log4j.properties."""
    stamp = datetime.fromtimestamp(clock.now(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
    return f"[{stamp}+0000] {line}"


def built(app: Mapping[str, Any], config: Mapping[str, str]) -> dict[str, Any]:
    """What the application says that it has built with these settings, as far as facts hang on it."""
    layers = ["MeteredStore", *(["CachingStore"] if app.get("caching") else [])]
    layers += ["VersionedStore"] if app.get("stores") == "versioned" else []
    waits = {"shared": ["ListValueStore"]} if app.get("join", "inner") != "inner" else {}
    held = {"held": "KTableSuppressProcessor"} if app.get("suppressed") and not app.get("on.close") else {}
    told = {name: value for name, value in config.items() if not name.startswith(("onceproof.", "rocksdb."))}
    return {"settings": dict(app), "config": told, "stores": {"store": layers, **waits}, "processors": held}


class FakeProcess:
    """A process as far as a driver sees it; its instance says how it obeys."""

    kill: Callable[[], None]
    freeze: Callable[[], None]
    thaw: Callable[[], None]
    limit_files: Callable[[int | None], None]
    ask_to_end: Callable[[], None]

    def __init__(self) -> None:
        """It runs."""
        self.code: int | None = None

    def alive(self) -> bool:
        """Whether it runs."""
        return self.code is None

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""
        return self.code

    def terminate(self, timeout: float = 10) -> None:
        """It is dead already."""


class FakeInstance(InstanceProcess):
    """An instance of the application that is simulated by a group."""

    def __init__(
        self,
        name: str,
        release: Release,
        log: Path,
        timeline: Timeline,
        installation: Installation,
        group: Group,
        clock: FakeClock,
    ) -> None:
        """Not started."""
        super().__init__(name, release, log, timeline, installation)
        self._group, self._clock, self._nature = group, clock, group.nature
        self._fake = FakeProcess()
        self._members: list[Member] = []
        self._numbers, self._asked = count(1), 0
        self._committed_at = self._started_at = clock.now()
        self._throttled_at: float | None = None
        self._frozen, self._frozen_at = False, clock.now()
        self._disk_is_full = False
        self._reported_empty: dict[str, int] = {}  # where tasks stood
        self._restoring: list[tuple[float, str, Task, int]] = []  # when it ends, store, task, records

    # --- the process -----------------------------------------------------------------------------------------

    def start(self, topology: str, app: dict[str, Any], config: dict[str, str]) -> None:
        """Greet, and join the group."""
        self._process: Any = self._fake
        self._fake.kill, self._fake.freeze, self._fake.thaw = self._killed, self._freeze, self._thaw
        self._fake.limit_files, self._fake.ask_to_end = self._limit_files, self._terminated
        self._answer = app.get("on.uncaught", "SHUTDOWN_CLIENT")
        self._replaces_threads = self._answer == "REPLACE_THREAD"
        self._fail_after = app.get("fail.after")
        self._requests_commits = app.get("commits", False)
        self._looks_into_stores = "contents.folder" in app
        self._joins = "last.key" in app
        self._corrupt_after = app.get("corrupt.after")
        self._has_global_table = "table" in app
        self._holds_back = "clock" in app
        self._forever = int(app["forever.ms"]) if "forever.ms" in app else None
        self._stores_are_on_disk = app.get("stores") != "in-memory"
        self._gives_up = int(config.get("producer.delivery.timeout.ms", 120_000)) / 1_000  # s
        self._config, self._directory = config, Path(config["state.dir"]) / config["application.id"]
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.log.touch()
        self._timeline.add("driver", "instance", name=self.name, action="started", release=str(self.release))
        versions = {f"{jar}_version": self.release.version for jar in ("streams", "clients")}
        commits = {f"{jar}_commit": self.release.commit or "c" for jar in ("streams", "clients")}
        self._tell("hello", topology=topology, java="17", **versions, **commits)
        self._tell("built", **built(app, config))
        if self._has_global_table and not self._stores_are_on_disk:
            self._tell("restore", store="entries", partition=0, **{"from": 0, "end": self._group.processed})
        for _ in range(int(config["num.stream.threads"])):
            self._add_thread()
        self._tell_process()
        self.log_line(
            f"INFO [a-producer] [Producer transactionalId={self._config['application.id']}-{self.name}-1] (a)"
        )
        self._to("REBALANCING")
        self._group.running[self.name] = self
        self._group.assigned.append(self._assigned)
        self._clock.listeners.append(self._pass)

    def cpu_times(self) -> dict[str, CpuTime]:
        """Of one thread, which sleeps or waits for a CPU."""
        return {self.name: CpuTime(waited=self._clock.now() if self._nature.starves else 0.0)}

    def dump_threads(self, file: Path) -> str | None:
        """It has no threads."""
        return "it is a fake"

    def _send(self, line: str) -> None:
        """Carry out a command; nobody reads it in a process that has ended."""
        if self.has_ended():
            self.check_alive()
            return
        result: Any = True
        if line == "add-thread":
            result = self._add_thread()
        elif line == "remove-thread":
            member = self._members.pop(0)
            self._end(member, leaves=self.release.removed_threads_leave_group)
            self._tell_assignment()
            result = member.name
        elif line in ("pause", "resume"):
            obeys = self._nature.pauses if line == "pause" else self._nature.resumes
            for member in self._members if obeys else ():
                member.paused = line == "pause"
        elif line in ("leave", "stay"):
            self._end_all(leaves=line == "leave")
            self._to("NOT_RUNNING")
        elif line == "clean-up":
            result = self._clean_up()
        elif line == "resources":
            self._asked += 1
            self._tell("resources", held={"threads": 1, "metrics": self._asked if self._nature.leaks else 1})
        elif line.startswith("dump "):
            as_bytes = line.split(" ")[2].split(",")
            stores = list(self._stores())
            numbers = [store for store in stores if not store["store"].startswith(WITHOUT_NUMBERS)]
            self._tell("dump", stores=numbers, entries=[store for store in stores if store["store"] in as_bytes])
            result = len(self.last["dump"]["stores"])
        else:
            self._close(leaves=line == "close-and-leave-group" and self.release.removed_threads_leave_group)
        self._tell("command", command=line, result=result)

    def _add_thread(self) -> str:
        static = "group.instance.id" in self._config
        session = float(self._config.get("main.consumer.session.timeout.ms", SESSION * 1_000)) / 1_000
        name = f"{self._config['client.id']}-StreamThread-{next(self._numbers)}"
        self._members.append(Member(name, self.name, session, static))
        self._group.join(self._members[-1])
        return name

    def _close(self, *, leaves: bool) -> None:
        self._end_all(leaves=leaves)
        self._tell("closed", clean=self._nature.closes)
        self._gone(0)

    def _end_all(self, *, leaves: bool) -> None:
        for member in self._members:
            for directory, task in self._directories(member):
                self._write_checkpoint(directory, task)
            self._end(member, leaves=leaves)
        self._members.clear()

    def _clean_up(self) -> str:
        if self._members:
            return "java.lang.IllegalStateException: Cannot clean up while running."
        shutil.rmtree(self._directory)
        return "cleaned"

    def _terminated(self) -> None:
        for _, store, task, records in self._restoring:
            self._tell("suspended", store=store, partition=task.partition, records=records // 2, last=records // 2)
        self._restoring.clear()
        self._close(leaves=False)

    def _end(self, member: Member, *, leaves: bool) -> None:
        self._group.commit(member)
        if leaves:
            self._group.leave(member)
        else:
            self._group.vanish(member)

    def _killed(self) -> None:
        for member in self._members:
            if member in self._group.members:
                self._group.abort(member)
                self._group.vanish(member)
        self._gone(-9)

    def _limit_files(self, size: int | None) -> None:
        self._disk_is_full = size is not None

    def _freeze(self) -> None:
        self.cut_off()

    def _thaw(self) -> None:
        self._tell("stall", ms=int((self._clock.now() - self._frozen_at) * 1_000))
        self.come_back()

    def cut_off(self) -> None:
        """Its threads do nothing, and are missed after a while."""
        self._frozen, self._frozen_at = True, self._clock.now()
        for member in self._members:
            member.frozen = True
            self._group.abort(member)
            self._group.vanish(member)

    def come_back(self) -> None:
        """Threads that were missed learn that their tasks are no longer theirs, and join again."""
        self._frozen = False
        missed = [member for member in self._members if member not in self._group.members]
        for member in self._members:
            member.missed_at, member.frozen = None, False
        if missed and self._nature.fences:
            self.log_line(FENCED)
        for member in missed:
            self._members.remove(member)
            self._add_thread()
            self._to("REBALANCING")

    def _gone(self, code: int) -> None:
        self._fake.code = code
        self._clock.listeners.remove(self._pass)
        self._group.assigned.remove(self._assigned)
        del self._group.processes[self.name]

    # --- what it tells ---------------------------------------------------------------------------------------

    def _tell(self, event: str, **fields: Any) -> None:
        self.last[event] = {"t": self._clock.milliseconds(), "source": self.name, "event": event, **fields}
        self._timeline.append(self.last[event])

    def log_line(self, text: str) -> None:
        """Write a line into its log."""
        with self.log.open("a") as log:
            log.write(stamped(self._clock, f"{text}\n"))

    def _tell_process(self) -> None:
        """The id of the process, which is kept with the stores; whoever already has the same id is fenced."""
        file = self._directory / PROCESS_FILE
        if file.exists():
            process = json.loads(file.read_text())["processId"]
            self.log_line(f"INFO [a] Reading UUID from process file: {process} (a)")
        else:
            process = f"process-of-{self.name}"
            self._touch(file, json.dumps({"processId": process}))
        for other, log in self._group.processes.values():
            if other == process and self._nature.fences:
                log(FENCED)
        self._group.processes[self.name] = (process, self.log_line)

    def _to(self, state: str) -> None:
        if state != self.state:
            self._tell("state", **{"from": self.state, "to": state})

    def _tell_assignment(self) -> None:
        self._tell(
            "assignment",
            threads=[
                {
                    "thread": member.name,
                    "state": "RUNNING",
                    "active": [task.name for task in member.active],
                    "standby": [task.name for task in member.standby],
                }
                for member in self._members
            ],
        )

    def _assigned(self) -> None:
        if self._frozen:
            return
        before = {*self.tasks("active"), *self.tasks("standby")}
        self._tell_assignment()
        self._to("RUNNING")
        for member in self._members:
            for name in self._group.recycled.pop(member, ()):
                self.log_line(
                    f"INFO [{member.name}] stream-thread [{member.name}] task [{name}] Closed and recycled state"
                )
            for directory, task in self._directories(member):
                if task.name not in before:
                    self._open_stores(directory, task)
            for task in member.standby:
                if task.name not in before:
                    self._look_into(self._directory / task.name, task)

    # --- what it does ----------------------------------------------------------------------------------------

    def _pass(self, _seconds: float) -> None:
        now, nature = self._clock.now(), self._nature
        if self.state == "ERROR" or self._frozen:
            return
        for done in [restoring for restoring in self._restoring if restoring[0] <= now]:
            self._restoring.remove(done)
            counted = {"records": done[3], "batched": done[3]}
            last = self._group.ends[f"{done[1]}-changelog", done[2].partition] - 1
            self._tell("restored", store=done[1], partition=done[2].partition, **counted, last=last)
        if any(member.standby for member in self._members):
            self._tell_lags()
        self._tell_progress()
        if self._corrupt_after is not None and self.processed > self._corrupt_after:
            self._corrupt_after = None
            self._restore_all()
        if any(self._group.tried_for(member) >= self._gives_up for member in self._members):
            self._restore_all()
            if self._nature.gives_up_again:
                self._gives_up = GIVES_UP_AGAIN
        if self._looks_into_stores and self.processed and "contents" not in self.last:
            self._tell("contents", task="0_0", stores=[])
        if self._joins and self.processed and "joined" not in self.last:
            self._tell("joined", keys=1, dropped=nature.drops)
        if self._forever is not None and self._group.processed > FIRST_RECORDS and "punctuated" not in self.last:
            times = 10 if nature.halts_after is not None else 1
            self._tell("punctuated", task="0_0", at=self._forever, times=times)
        if self._holds_back:
            self._tell_emptied()
        interval = 0 if self._requests_commits else int(self._config.get("commit.interval.ms", 100))
        if now - self._committed_at >= interval / 1_000:
            self._committed_at = now
            for member in self._members:
                self._group.commit(member)
            if self._group.splits and self.processed:
                self.log_line(TOO_LARGE)
        if nature.flushes and "onceproof.rocksdb.write.buffer.bytes" in self._config:
            self._flush_or_die()
        if self._config.get(HALTS) == "true" and nature.halts_in_deletion and self.processed > BEFORE_DELETION:
            self._half_deleted.mkdir(parents=True)
            (self._half_deleted / "CURRENT").touch()
            self._killed()
            return
        if self._half_deleted.exists():
            shutil.rmtree(self._half_deleted)  # its task is wiped
            message = "Error opening store windowed-sums.0 at location a"
            self._throw("org.apache.kafka.streams.errors.ProcessorStateException", message)
        if nature.throws_after is not None and self.processed >= nature.throws_after and "uncaught" not in self.last:
            self._throw("java.lang.IllegalStateException", "There is no such task.")
        if self._fail_after is not None and self.processed >= self._fail_after and "uncaught" not in self.last:
            self._throw("java.lang.IllegalStateException", "The processor fails, as fail.after asks for.")
        if nature.keeps_lock and self._group.processed >= (nature.halts_after or 0):
            self.log_line(NOT_LOCKED)
        if nature.fails_early and self.processed:
            self.log_line(INVALID_EPOCH)
        self._be_throttled(now)

    @property
    def _half_deleted(self) -> Path:
        return self._directory / "0_0" / "windowed-sums" / "windowed-sums.0"

    def _tell_emptied(self) -> None:
        """Tell of tasks that have nothing left to hold back; keys are the numbers of records."""
        ends = {partition: end for (role, partition), end in self._group.ends.items() if role == "input"}
        for task in (task for member in self._members for task in member.active):
            if task.position == ends.get(task.partition, 0) > self._reported_empty.get(task.name, 0):
                self._reported_empty[task.name] = task.position
                last = (task.partition - 1) % len(ends) + len(ends) * (task.position - 1)
                self._tell("emptied", task=task.name, last=last)

    def _tell_progress(self) -> None:
        rows: list[Mapping[str, Any]] = [
            {"task": task, "thread": member.name, "count": number}
            for member in self._members
            for task, number in sorted(member.processed.items())
        ]
        rows = [*self._of_removed(rows), *rows]
        if rows and rows != self.last.get("progress", {}).get("processed"):
            self._tell("progress", processed=rows)

    def _of_removed(self, rows: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        """What threads did that have since been removed is still reported."""
        reported = {(row["task"], row["thread"]) for row in rows}
        for row in self.last.get("progress", {}).get("processed", []):
            if (row["task"], row["thread"]) not in reported:
                yield row

    def _stores(self) -> Iterator[dict[str, Any]]:
        for member in self._members:
            for role, tasks in (("active", member.active), ("standby", member.standby)):
                for task in tasks:
                    yield from ({"store": s, "partition": task.partition, "role": role} for s in stores_of(task))

    def _tell_lags(self) -> None:
        stores = []
        for task in [task for member in self._members for task in member.standby]:
            for store in stores_of(task):
                end = self._group.ends[f"{store}-changelog", task.partition]
                position = max(0, end - 1 - (task.position - task.committed))  # before the marker
                stores.append({"store": store, "partition": task.partition, "position": position, "end": end})
        if stores != self.last.get("lags", {}).get("stores"):
            self._tell("lags", stores=stores)

    def _throw(self, exception: str, message: str, *causes: str) -> None:
        fields = {"exception": exception, "message": message, "causes": list(causes)}
        frame = "org.apache.kafka.streams.processor.internals.TaskManager.handle(TaskManager.java:1)"
        self._tell("uncaught", thread=self._members[0].name, **fields, frame=frame, response=self._answer)
        for member in self._members:
            self._group.abort(member)
            self._group.vanish(member)
        self._members.clear()
        if self._replaces_threads:
            self._add_thread()
            return
        self._to("ERROR")
        for other in self._group.running.values() if self._answer == "SHUTDOWN_APPLICATION" else ():
            other.shut_down()

    def shut_down(self) -> None:
        """Another instance asks all of the application to end."""
        if self.state != "ERROR":
            self._end_all(leaves=False)
            self._to("ERROR")

    def _log_request(self, step: str) -> None:
        self.log_line(
            f"DEBUG [a-producer] {step} transactional request AddOffsetsToTxnRequestData(transactionalId='a') (a)"
        )

    def _be_throttled(self, now: float) -> None:
        """A quota that is set takes effect after a while."""
        if not self._group.quota or not self._nature.throttles:
            if self._throttled_at is not None and "throttle" in self.last and self.last["throttle"]["producers"]:
                self._group.speed = self._nature.speed
                self._tell("throttle", producers=[])
            return
        if self.processed and self._throttled_at is None:
            self._throttled_at = now + THROTTLED_AFTER
        if self._throttled_at is None or now < self._throttled_at:
            return
        if "throttle" not in self.last:
            self._group.speed = THROTTLED_SPEED
            times = {"produce_throttle_time_max": 120.0, "produce_throttle_time_avg": 40.0}
            self._tell("throttle", producers=[{"client_id": f"{self._members[0].name}-producer", **times}])
            self._log_request("Enqueuing")
        failing, fails = int(self._config["producer.request.timeout.ms"]) / 1_000, self._nature.fails_throttled
        if now >= self._throttled_at + (failing if fails else 0.12 if self._nature.meets_throttle else 0.0):
            self._log_request("Sending")
            if fails:
                self.log_line(INVALID_EPOCH)

    # --- its stores ------------------------------------------------------------------------------------------

    def _directories(self, member: Member) -> Iterator[tuple[Path, Task]]:
        for task in member.active:
            yield self._directory / task.name, task

    def _restore_all(self) -> None:
        """Its tasks are corrupted: what they did not commit is undone, and their stores are restored from nothing.

        Where stores are not wiped, they lack nothing, and that is told.
        """
        for member in self._members:
            for task in member.active:
                self._group.on_disk[task.name] = task.position  # as it was closed
            self._group.abort(member)
            for directory, task in self._directories(member):
                if self._nature.wipes:
                    shutil.rmtree(directory)
                    self._open_stores(directory, task)
                    continue
                for store in stores_of(task):
                    end = self._group.ends[f"{store}-changelog", task.partition]
                    self._tell("restore", store=store, partition=task.partition, **{"from": end, "end": end})

    def _open_stores(self, directory: Path, task: Task) -> None:
        """Restore from where the checkpoint says; from the beginning if there is none."""
        if not directory.exists():
            self._group.on_disk[task.name] = 0
        start = self._look_into(directory, task)
        for store in stores_of(task):
            if self._stores_are_on_disk:
                folder = directory / "rocksdb" / store
                folder.mkdir(parents=True, exist_ok=True)
                if not (folder / "IDENTITY").exists():
                    (folder / "IDENTITY").write_text(f"{self.name} {self._clock.now()}")
            end = self._group.ends[f"{store}-changelog", task.partition]
            if end > start:
                task.ready_at = self._clock.now() + self._nature.restoration
                self._tell("restore", store=store, partition=task.partition, **{"from": start, "end": end})
                self._restoring.append((task.ready_at, store, task, end - start))
        if not self._nature.keeps_checkpoint:
            (directory / ".checkpoint").unlink(missing_ok=True)

    def _look_into(self, directory: Path, task: Task) -> int:
        """Where its stores stand according to the checkpoint; without one they are wiped."""
        checkpoint = directory / ".checkpoint"
        if checkpoint.exists():
            start = int(checkpoint.read_text().split()[-1])
            for store in stores_of(task):
                place = f"changelog a-t1-{store}-changelog-{task.partition}"
                self.log_line(
                    f"INFO [a] State store {store} initialized from checkpoint with offset {start} at {place} (a)"
                )
            return start
        files = list(directory.glob("rocksdb/*/*.sst"))
        if files:
            self.log_line(f"WARN [a] task [{task.name}] did not find checkpoint offsets while stores are not empty (a)")
            self.log_line(f"WARN [a] TaskCorruptedException: Tasks [{task.name}] are corrupted (a)")
            for file in [*files, *directory.glob("rocksdb/*/IDENTITY")]:
                file.unlink()
            self._group.on_disk[task.name] = 0
        for store in stores_of(task):
            place = f"changelog a-t1-{store}-changelog-{task.partition}"
            self.log_line(
                f"INFO [a] State store {store} did not find checkpoint offset, hence would default to the starting offset "
                f"at {place} (a)"
            )
        return 0

    def _write_checkpoint(self, directory: Path, task: Task) -> None:
        self._group.on_disk[task.name] = task.position
        stores = list(stores_of(task))
        if not stores or not self._stores_are_on_disk or not self._nature.leaves_checkpoint:
            return
        ends = {store: self._group.ends[f"{store}-changelog", task.partition] for store in stores}
        lines = [f"a-t1-{store}-changelog {task.partition} {end}" for store, end in ends.items()]
        self._touch(directory / ".checkpoint", "\n".join(["0", str(len(lines)), *lines]) + "\n")

    def _flush_or_die(self) -> None:
        try:
            self._flush()
        except OSError as error:
            text = f"org.rocksdb.RocksDBException: While appending to file: {error.filename}: {error.strerror}"
            if self._nature.dies_of_disk:
                self._throw(
                    "org.apache.kafka.streams.errors.ProcessorStateException", "Error while executing put", text
                )
            else:
                self.log_line(f"WARN [a] {text} (a)")

    def _flush(self) -> None:
        """Have RocksDB write a file every so many records, restored or processed."""
        for end, store, task, records in self._restoring:
            left = (end - self._clock.now()) / self._nature.restoration
            files = int(records * (1 - left)) // RECORDS_A_FILE
            self._write_files(self._directory / task.name, store, files)
            self._group.on_disk[task.name] = files * RECORDS_A_FILE
        for member in self._members:
            for directory, task in self._directories(member):
                for store in stores_of(task):
                    files = member.processed[task.name] // RECORDS_A_FILE
                    if files:
                        at_start = task.position - member.processed[task.name]
                        self._group.on_disk[task.name] = at_start + files * RECORDS_A_FILE
                    self._write_files(directory, store, files)
        if self._has_global_table and self.processed:
            self._group.on_disk["global"] = self.processed
            self._write_files(self._directory / "global", "entries", 1)
            self._touch(self._directory / "global" / "rocksdb" / "entries" / "MANIFEST-000001", "")

    def _write_files(self, directory: Path, store: str, files: int) -> None:
        for number in range(files if self._stores_are_on_disk else 0):
            file = directory / "rocksdb" / store / f"{self._started_at:.0f}-{number:06}.sst"
            if not file.exists():
                self._touch(file, "a table")

    def _touch(self, file: Path, text: str) -> None:
        if self._disk_is_full:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(file))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        os.utime(file, (self._clock.now(), self._clock.now()))


def stores_of(task: Task) -> Iterator[str]:
    """The stores of a task: those whose changelog it writes."""
    for sink in task.sinks:
        if sink.endswith("-changelog"):
            yield sink.removesuffix("-changelog")
