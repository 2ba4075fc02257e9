"""The application under test: its instances, those that run and those that ever did."""

from collections import Counter
from collections.abc import Callable, Mapping
from copy import copy
from pathlib import Path
from typing import Any

from onceproof.lab.context import TrialContext
from onceproof.lab.instance import InstanceProcess
from onceproof.lab.instance_logs import find_locked_tasks, find_unopened_stores, was_recycled
from onceproof.model.errors import HarnessError, StoodStillError
from onceproof.model.files import Planted
from onceproof.model.release import Release
from onceproof.model.timeline import Return
from onceproof.processes.cpu import CpuTime
from onceproof.scenarios.base import INSTANCE

CLOSING = 5.0  # seconds that the instances of a failed drive have to end cleanly


class LabInstances:
    """Starts and ends instances, and asks all of them."""

    def __init__(self, context: TrialContext) -> None:
        """None is started yet."""
        self._context = context
        self.links = context.world.links(context.cluster.proxy, context.note)
        self._running: dict[str, InstanceProcess] = {}
        self._spared: frozenset[str] = frozenset()
        self._started: list[InstanceProcess] = []  # all there ever were
        self._starts: Counter[str] = Counter()
        self.attested: dict[str, Any] = {}  # by start, what an instance reported about itself

    @property
    def running(self) -> dict[str, InstanceProcess]:
        """Those that run, by name, without those that a fault is to spare."""
        return {name: instance for name, instance in self._running.items() if name not in self._spared}

    @property
    def report(self) -> bool:
        """Whether some instance was started that says what happens in it."""
        return any(instance.reports for instance in self._started)

    def without(self, names: frozenset[str]) -> "LabInstances":
        """The same instances; those of these names are not among the ones that run."""
        others = copy(self)
        others._spared = names
        return others

    def start(
        self,
        name: str,
        release: Release | None = None,
        config: Mapping[str, str] | None = None,
        app: Mapping[str, Any] | None = None,
        log: str | None = None,
    ) -> InstanceProcess:
        """Start an instance, as `faults.base.Instances` says."""
        context, plan = self._context, self._context.plan
        self._starts[name] += 1
        start = log or (f"{name}.{self._starts[name]}" if self._starts[name] > 1 else name)
        file = context.folder.instances / f"{start}.log"
        streams = release or plan.trial.cell.streams
        later = [change for change in plan.later if change.start <= self._starts[name]]
        kind = context.world.black_box if "command" in plan.app else context.world.instance
        instance = kind(name, streams, file, context.timeline, context.cluster.installation)
        instance.plant = plan.trial.plant
        self._running[name] = instance
        self._started.append(instance)
        whole = {
            **context.cluster.java_client(instance.release),
            **self.links.take(name, self._running.keys() - {name}),
            "application.id": plan.application_id,
            "client.id": f"{plan.application_id}-{name}",
            "state.dir": str(context.folder.state / name),
            **{key: value.replace(INSTANCE, name) for key, value in plan.streams_config.items()},
            **{key: value for change in later for key, value in change.streams_config.items()},
            **(config or {}),
        }
        apps = {key: value for change in later for key, value in change.app.items()}
        instance.start(plan.check, {**plan.app, **apps, **(app or {})}, whole)
        self.attested[start] = instance.await_hello()
        return instance

    def stop(self, name: str, leave_group: bool = False) -> None:
        """Close an instance and forget it; it leaves its group if that is asked for."""
        instance = self._running[name]
        instance.close(leave_group)
        instance.await_closed()
        del self._running[name]

    def terminate(self, name: str) -> None:
        """Ask an instance to end by SIGTERM, and wait until it has closed."""
        instance = self._running[name]
        instance.ask_to_end()
        instance.await_closed()
        del self._running[name]

    def kill(self, name: str) -> None:
        """Send SIGKILL to an instance, and forget it."""
        self._running.pop(name).kill()

    def await_halt(self, name: str, within: float) -> bool:
        """Whether an instance has ended by itself in time; it is gone afterwards in any case."""
        instance = self._running.pop(name)
        ended = self._context.holds_within(within, instance.has_ended)
        instance.kill()
        return ended

    def freeze(self, name: str) -> None:
        """Freeze an instance (SIGSTOP)."""
        self._running[name].freeze()

    def thaw(self, name: str) -> None:
        """Send SIGCONT to a frozen instance."""
        self._running[name].thaw()

    def limit_files(self, name: str, size: int | None) -> None:
        """Keep an instance from writing files beyond a size; None lifts the limit."""
        self._running[name].process.limit_files(size)

    def step(self, command: str, instance: str, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Have an instance carry out a command, and record it.

        Raises:
            HarnessError: it did not.
        """
        self._context.note("step", action=command, instance=instance)
        self._context.report(f"{command} {instance}")
        if self._running[instance].command(command, meanwhile=meanwhile) is None:
            release = self._context.trial.cell.streams
            raise HarnessError(f"{instance} did not {command}: Kafka Streams {release} answered nothing.")

    def has_recycled(self, proof: Return) -> bool:
        """Whether a log says that the thread recycled its active task at that time."""
        return was_recycled(self._context.folder.instances.glob("*.log"), proof)

    def state_directory(self, name: str) -> Path:
        """Where an instance keeps its stores."""
        return self._context.folder.state / name / self._context.trial.application_id

    def on_disk(self, name: str, task: str) -> dict[str, Mapping[int, int]]:
        """The content on disk by RocksDB of a task of an instance that has ended or is frozen."""
        context = self._context
        scratch, log = context.folder.path / "copied", context.folder.path / "directory.log"
        directory, release = self.state_directory(name) / task, context.trial.cell.streams
        return context.world.read_task_directory(context.cluster.installation, release, directory, scratch, log)

    def contents_folder(self) -> Path:
        """Where an instance may dump its stores."""
        return self._context.folder.contents

    def check_alive(self) -> None:
        """Check that all are still running, as `Instance.check_alive` does."""
        for instance in self._running.values():
            instance.check_alive()

    def last_seen(self) -> str:
        """The last reports of those that run, as text."""
        return ", ".join(f"{i.name} {i.state} {i.processed:,} processed" for i in self._running.values())

    def dump_stores(self) -> tuple[int, int]:
        """Have all dump their stores; returns how many partitions of stores are active somewhere.

        The second number is that of stores whose entries are dumped as bytes.
        """
        active: dict[str, set[tuple[str, int]]] = {"stores": set(), "entries": set()}
        as_bytes = ",".join(self._context.plan.byte_stores) or "-"
        for instance in self._running.values():
            instance.command(f"dump {instance.name} {as_bytes} {self._context.folder.dumps_folder}", timeout=90.0)
            for kind, found in active.items():
                stores = instance.last["dump"].get(kind, ())
                found |= {(store["store"], store["partition"]) for store in stores if store["role"] == "active"}
        return len(active["stores"]), len(active["entries"])

    def close(self) -> None:
        """Let all leave, side by side."""
        for instance in self._running.values():
            instance.close()
        for instance in self._running.values():
            instance.await_closed()

    def cpu_times(self) -> dict[str, CpuTime]:
        """The CPU time of each thread since it was started, of all instances together."""
        return {thread: time for instance in self._running.values() for thread, time in instance.cpu_times().items()}

    def dump_threads(self) -> None:
        """Write down what all threads are doing, and which locks they lack.

        Raises:
            StoodStillError: an instance was stopped from outside.
        """
        for instance in self._running.values():
            if instance.is_stopped():
                raise StoodStillError(f"{instance.name} was stopped (SIGSTOP), so it could do nothing.")
            missing = instance.dump_threads(self._context.folder.threads / f"{instance.log.stem}.txt")
            self._context.note("threads", name=instance.name, missing=missing)
            for task in find_locked_tasks(instance.log, self._context.world.now() * 1_000):
                self._context.note("locked", instance=instance.name, task=task)
            for store in find_unopened_stores(instance.log, self._context.world.now() * 1_000):
                self._context.note("unopened", instance=instance.name, store=store)

    def end(self) -> None:
        """End all of a failed drive: cleanly, if possible."""
        for instance in self._running.values():
            if not instance.has_ended():
                instance.close()
        self._context.holds_within(CLOSING, lambda: all(instance.has_ended() for instance in self._running.values()))
        self.kill_all()

    def kill_all(self) -> None:
        """SIGKILL all that still run."""
        for instance in self._running.values():
            instance.kill()

    def report_planted(self) -> Planted | None:
        """The outcome of the planted bug; None as a rule."""
        name = self._context.trial.plant
        if name is None:
            return None
        events = [instance.last["plant"] for instance in self._started if "plant" in instance.last]
        altered = sorted({method for event in events for method in event["altered"]})
        return Planted(name, tuple(altered), sum(event["fired"] for event in events))
