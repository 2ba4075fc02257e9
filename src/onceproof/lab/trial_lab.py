"""The actions that a scenario may take in the world (`scenarios.base.Lab`), done for real."""

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

from onceproof.lab.input import Input
from onceproof.lab.instance import Instance
from onceproof.lab.instance_logs import was_recycled
from onceproof.lab.instances import Instances
from onceproof.lab.limits import Limits
from onceproof.lab.load import Bulk
from onceproof.lab.reading import TopicReading
from onceproof.lab.site import Site
from onceproof.model.errors import HarnessError, KafkaFailedError, OnceproofError
from onceproof.model.release import Release
from onceproof.model.timeline import Event, Return
from onceproof.processes.cpu import CpuTime, check_not_starved
from onceproof.scenarios.base import Workload

SHORT = 1.0  # seconds of waiting before CPU times are read, which takes longer than most conditions do
PATIENCE = 120.0  # seconds without a commit after which a drain is stuck


class TrialLab:
    """One trial's application, input and brokers, in the hands of its scenario."""

    def __init__(
        self,
        site: Site,
        parameters: Mapping[str, Any],
        workload: Workload,
        instances: Instances,
        produced: Input,
        limits: Limits,
        topics: TopicReading,
    ) -> None:
        """Nothing is done yet."""
        self.trial, self.parameters, self.workload = site.trial, parameters, workload
        self.rng = random.Random(site.trial.seed)
        self.brokers = site.world.brokers(
            site.cluster, site.trial.cell.streams, site.folder.path / "leaders.log", site.note
        )
        self.links = instances.links
        self._site, self._instances, self._input = site, instances, produced
        self._limits, self._topics = limits, topics

    # --- what is written down ---------------------------------------------------------------------------------

    @property
    def events(self) -> Sequence[Event]:
        """The timeline so far."""
        return self._site.events

    def now(self) -> float:
        """The time in epoch seconds."""
        return self._site.world.now()

    def note(self, event: str, **fields: Any) -> None:
        """Record something that the driver did or saw."""
        self._site.note(event, **fields)

    def phase(self, name: str) -> AbstractContextManager[None]:
        """Name what happens in a `with` block; its seconds are kept."""
        return self._site.phase(name)

    def measure(self, **facts: int) -> None:
        """Keep what the checks need to know about the drive."""
        self._site.measure(**facts)

    # --- instances --------------------------------------------------------------------------------------------

    @property
    def running(self) -> Mapping[str, Instance]:
        """The instances that run, by name."""
        return self._instances.running

    def start_instance(
        self,
        name: str,
        release: Release | None = None,
        config: Mapping[str, str] | None = None,
        app: Mapping[str, Any] | None = None,
        log: str | None = None,
    ) -> Instance:
        """Start an instance and wait until the right release has loaded."""
        return self._instances.start(name, release, config, app, log)

    def stop_instance(self, name: str, leave_group: bool = False) -> None:
        """Close an instance cleanly and wait for its end."""
        self._instances.stop(name, leave_group=leave_group)

    def kill_instance(self, name: str) -> None:
        """End an instance with SIGKILL."""
        self._instances.kill(name)

    def freeze_instance(self, name: str) -> None:
        """Freeze an instance (SIGSTOP)."""
        self.running[name].freeze()

    def thaw_instance(self, name: str) -> None:
        """Thaw a frozen instance."""
        self.running[name].thaw()

    def limit_files(self, name: str, size: int | None) -> None:
        """Keep an instance from writing files beyond a size; None lifts the limit."""
        self.running[name].process.limit_files(size)

    def step(self, command: str, instance: str) -> None:
        """Scale: have an instance carry out a command, and record it."""
        self.note("step", action=command, instance=instance)
        self._site.report(f"{command} {instance}")
        if self.running[instance].command(command) is None:
            raise HarnessError(
                f"{instance} did not {command}: Kafka Streams {self.trial.cell.streams} answered nothing."
            )

    def close_instances(self) -> None:
        """Have all instances dump their stores, then let them leave concurrently."""
        if stores := self._site.plan.partition_stores:
            # All dumps are there once no task is moving.
            self.await_("every store to be written where it is active", lambda: self._instances.dump_stores() == stores)
        self._instances.close()

    def close_and_compare_state(self) -> None:
        """Let the instances leave, and note what their stores hold on disk beside what their changelogs say."""
        held = {
            name: {task: kind for kind in ("standby", "active") for task in instance.tasks(kind)}
            for name, instance in self.running.items()
        }
        self.close_instances()
        site = self._site
        stores = site.world.compare_state(
            site.cluster,
            self.trial.cell.running,
            self.trial.application_id,
            site.topics.names(),
            site.folder.state,
            held,
            site.folder.path / "stores.log",
        )
        for store in stores:
            self.note("unread-store" if "unread" in store else "store", **store)

    def recycled(self, proof: Return) -> bool:
        """Whether a log says that the thread recycled its active task at that time."""
        return was_recycled(self._site.folder.instances.glob("*.log"), proof)

    def state_directory(self, name: str) -> Path:
        """Where an instance keeps its stores."""
        return self._site.folder.state / name / self.trial.application_id

    def on_disk(self, name: str, task: str) -> dict[str, Mapping[int, int]]:
        """The content on disk by RocksDB of a task of an instance that has ended or is frozen."""
        scratch, log = self._site.folder.path / "copied", self._site.folder.path / "directory.log"
        directory = self.state_directory(name) / task
        site, release = self._site, self.trial.cell.streams
        return site.world.read_task_directory(site.cluster.installation, release, directory, scratch, log)

    def contents_folder(self) -> Path:
        """Where an instance may dump its stores."""
        return self._site.folder.contents

    # --- records ----------------------------------------------------------------------------------------------

    def produce(
        self,
        name: str,
        records: Sequence[tuple[int, int]],
        rate: float | None = None,
        timestamps: Sequence[int] | None = None,
    ) -> Bulk:
        """Send records in the background."""
        bulk = self._input.produce(name, records, rate, timestamps)
        self._topics.follow()
        return bulk

    def end(self, role: str) -> int:
        """End offset of a topic, summed over its partitions."""
        return sum(self._site.topics.ends(self._site.plan.topics_of(role)).values())

    def committed(self, role: str = "input") -> int:
        """Records of a topic, the input as a rule, whose processing is committed."""
        sizes = self._site.plan.topics_of(role)
        return sum(self._site.topics.committed(topic, partitions) for topic, partitions in sizes.items())

    def open_input(self) -> Mapping[str, Mapping[str, tuple[int, None]]]:
        """The part of the input that is not committed, by role and partition; as last known, if no broker answers."""
        plan, topics = self._site.plan, self._site.topics
        known = {r: topics.last_offsets(plan.topic(r), plan.partitions_of(r), 0.0) for r in plan.inputs}
        return {r: {str(p): (offset, None) for p, offset in of_role.items()} for r, of_role in known.items()}

    def positions(self) -> Mapping[int, int]:
        """End offset of each partition of `__consumer_offsets`."""
        return self._site.topics.positions()

    def compact_positions(self) -> None:
        """Have the log of groups' positions compacted from now on."""
        self._site.topics.compact_positions()
        self.note("compacted")

    def group_records(self) -> Sequence[str]:
        """The records of that log of the application's group."""
        return self._site.topics.group_records()

    def await_drained(self) -> None:
        """Wait until everything produced is processed and committed."""
        self._input.await_delivered()
        end = self.end("input")
        while (committed := self.committed()) < end:
            self.await_(
                f"more than {committed:,} of {end:,} records to be committed", self._more_than(committed), PATIENCE
            )
        self.note("drained", committed=end)

    def await_internal_drained(self) -> None:
        """Wait until what the application passes to itself through repartition topics is processed and committed."""
        topics, wanted = self._site.topics, self._site.wanted_topics

        def settled() -> bool:
            there = topics.sizes()
            return topics.are_processed(
                {t: there[t] for t in sorted(there.keys() - wanted) if not t.endswith("-changelog")}
            )

        self.await_("the repartition topics to be processed", settled, PATIENCE)

    def _more_than(self, committed: int) -> Callable[[], bool]:
        return lambda: self.committed() > committed

    # --- brokers ----------------------------------------------------------------------------------------------

    def alter_topic(self, role: str, **config: str) -> None:
        """Change the configuration of a topic, for example `min_insync_replicas="2"`."""
        self._limits.alter_topic(role, **config)

    def set_producer_quota(self, client: str, bytes_per_second: int | None) -> None:
        """Limit what the producer of this client id may send; None lifts the limit."""
        self._limits.set_producer_quota(client, bytes_per_second)

    # --- waiting ----------------------------------------------------------------------------------------------

    def await_(self, what: str, condition: Callable[[], object], timeout: float = 60.0) -> None:
        """Wait for a condition that the application must bring about.

        Raises:
            KafkaFailedError: it did not.
            StoodStillError: nor did the application, or its brokers, get a CPU.
        """
        now = self._site.world.monotonic
        began, before = now(), dict[str, CpuTime]()
        is_short = True

        def check() -> None:
            nonlocal is_short
            self._check()
            if is_short and now() - began > SHORT:
                is_short = False
                before.update(self._cpu_times())

        late = partial(self._stuck, what, timeout, before)
        self._site.await_(what, condition, timeout, check, self._last_seen, late)

    def holds_within(self, seconds: float, condition: Callable[[], object]) -> bool:
        """Whether a condition becomes true within some time."""
        return self._site.holds_within(seconds, condition, self._check)

    def _check(self) -> None:
        """Check that waiting is not pointless."""
        self._site.check()
        self._instances.check_alive()
        self._input.check()

    def _last_seen(self) -> str:
        message = f"Committed: {self.committed():,}; {self._instances.last_seen()}"
        return f"{message}; the logs are in {self._site.folder.instances}."

    def _cpu_times(self) -> dict[str, CpuTime]:
        return self._site.cluster.cpu_times() | self._instances.cpu_times()

    def _stuck(self, what: str, timeout: float, before: Mapping[str, CpuTime], message: str) -> OnceproofError:
        """The error if the application did not bring something about, although it got CPUs since `before`."""
        check_not_starved(timeout, before, self._cpu_times())
        return KafkaFailedError("stuck", ", ".join(sorted(self.running)) or "no instance", what, message)
