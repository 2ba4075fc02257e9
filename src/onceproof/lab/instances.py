"""The application under test: its instances, those that run and those that ever did."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from onceproof.lab.instance import Instance
from onceproof.lab.instance_logs import locked_tasks, unopened_stores
from onceproof.lab.site import Site
from onceproof.model.errors import StoodStillError
from onceproof.model.files import Planted
from onceproof.model.release import Release
from onceproof.processes.cpu import CpuTime
from onceproof.scenarios.base import INSTANCE

CLOSING = 5.0  # seconds that the instances of a failed drive have to end cleanly


class Instances:
    """Starts and ends instances, and asks all of them."""

    def __init__(self, site: Site) -> None:
        """None is started yet."""
        self._site = site
        self.links = site.world.links(site.cluster.proxy, site.note)
        self._running: dict[str, Instance] = {}
        self._started: list[Instance] = []  # all there ever were
        self._starts: Counter[str] = Counter()
        self.attested: dict[str, Any] = {}  # by start, what an instance reported about itself

    @property
    def running(self) -> dict[str, Instance]:
        """Those that run, by name."""
        return dict(self._running)

    def start(
        self,
        name: str,
        release: Release | None,
        config: Mapping[str, str] | None,
        app: Mapping[str, Any] | None,
        log: str | None,
    ) -> Instance:
        """Start an instance, as `faults.base.Ground.start_instance` says."""
        site, plan = self._site, self._site.plan
        self._starts[name] += 1
        start = log or (f"{name}.{self._starts[name]}" if self._starts[name] > 1 else name)
        file = site.folder.instances / f"{start}.log"
        streams = release or plan.trial.cell.streams
        later = [one for one in plan.later if one.start <= self._starts[name]]
        kind = site.world.black_box if "command" in plan.app else site.world.instance
        instance = kind(name, streams, file, site.timeline, site.cluster.installation)
        instance.plant = plan.trial.plant
        self._running[name] = instance
        self._started.append(instance)
        whole = {
            **site.cluster.java_client(instance.release),
            **self.links.take(name, self._running.keys() - {name}),
            "application.id": plan.application_id,
            "client.id": f"{plan.application_id}-{name}",
            "state.dir": str(site.folder.state / name),
            **{key: value.replace(INSTANCE, name) for key, value in plan.streams_config.items()},
            **{key: value for one in later for key, value in one.streams_config.items()},
            **(config or {}),
        }
        apps = {key: value for one in later for key, value in one.app.items()}
        instance.start(plan.check, {**plan.app, **apps, **(app or {})}, whole)
        self.attested[start] = instance.await_hello()
        return instance

    def stop(self, name: str, *, leave_group: bool) -> None:
        """Close an instance cleanly and wait for its end."""
        instance = self._running[name]
        instance.close(leave_group)
        instance.await_closed()
        del self._running[name]

    def kill(self, name: str) -> None:
        """End an instance with SIGKILL."""
        self._running.pop(name).kill()

    def check_alive(self) -> None:
        """Check that all are still running, as `Instance.check_alive` does."""
        for instance in self._running.values():
            instance.check_alive()

    def last_seen(self) -> str:
        """The last reports of those that run, as text."""
        return ", ".join(f"{i.name} {i.state} {i.processed:,} processed" for i in self._running.values())

    def dump_stores(self) -> int:
        """Have all dump their stores; returns how many partitions of stores are active somewhere."""
        active: set[tuple[str, int]] = set()
        for instance in self._running.values():
            instance.command(f"dump {instance.name} {self._site.folder.dumps_folder}", timeout=90.0)
            stores = instance.last["dump"]["stores"]
            active |= {(store["store"], store["partition"]) for store in stores if store["role"] == "active"}
        return len(active)

    def close(self) -> None:
        """Let all leave, side by side."""
        for instance in self._running.values():
            instance.close()
        for instance in self._running.values():
            instance.await_closed()

    def cpu_times(self) -> dict[str, CpuTime]:
        """The CPU time of each thread of those that run since it was started."""
        return {thread: time for instance in self._running.values() for thread, time in instance.cpu_times().items()}

    def dump_threads(self) -> None:
        """Write down what all threads are doing, and which locks they lack.

        Raises:
            StoodStillError: somebody has stopped an instance.
        """
        for instance in self._running.values():
            if instance.is_stopped():
                raise StoodStillError(f"{instance.name} was stopped (SIGSTOP), so it could do nothing.")
            missing = instance.dump_threads(self._site.folder.threads / f"{instance.log.stem}.txt")
            self._site.note("threads", name=instance.name, missing=missing)
            for task in locked_tasks(instance.log, self._site.world.now() * 1_000):
                self._site.note("locked", instance=instance.name, task=task)
            for store in unopened_stores(instance.log, self._site.world.now() * 1_000):
                self._site.note("unopened", instance=instance.name, store=store)

    def end(self) -> None:
        """End all of a failed drive: cleanly, if possible."""
        for instance in self._running.values():
            if not instance.has_ended():
                instance.close()
        self._site.holds_within(CLOSING, lambda: all(instance.has_ended() for instance in self._running.values()))
        self.kill_all()

    def kill_all(self) -> None:
        """SIGKILL all that still run."""
        for instance in self._running.values():
            instance.kill()

    def planted(self) -> Planted | None:
        """The outcome of the planted bug; None as a rule."""
        name = self._site.trial.plant
        if name is None:
            return None
        events = [instance.last["plant"] for instance in self._started if "plant" in instance.last]
        altered = sorted({method for event in events for method in event["altered"]})
        return Planted(name, tuple(altered), sum(event["fired"] for event in events))
