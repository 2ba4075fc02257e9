"""The context of a scenario in a trial on real brokers (`scenarios.base.ScenarioContext`)."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from functools import partial
from typing import Any

from onceproof.lab.context import TrialContext
from onceproof.lab.input import Input
from onceproof.lab.instances import LabInstances
from onceproof.lab.limits import LabLimits
from onceproof.lab.load import LabBulk
from onceproof.lab.reading import TopicReading
from onceproof.model.errors import KafkaFailedError, OnceproofError
from onceproof.model.timeline import Event
from onceproof.processes.cpu import CpuTime, check_not_starved
from onceproof.scenarios.assignment import AT_REST, SETTLES, had_standbys, list_assigned
from onceproof.scenarios.assignment import PROMISE as ASSIGNMENT
from onceproof.scenarios.prepared import PreparedTrial

SHORT = 1.0  # seconds of waiting before CPU times are read, which takes longer than most conditions do
PATIENCE = 120.0  # seconds without a commit after which a drain is stuck


class TrialLab:
    """One trial's application, input and brokers, in the hands of its scenario."""

    def __init__(
        self,
        context: TrialContext,
        prepared: PreparedTrial,
        instances: LabInstances,
        produced: Input,
        limits: LabLimits,
        reading: TopicReading,
    ) -> None:
        self.trial, self.parameters, self.workload = prepared.trial, prepared.parameters, prepared.workload
        self.rng = random.Random(context.trial.seed)
        self.brokers = context.world.brokers(
            context.cluster, context.trial.cell.streams, context.folder.path / "leaders.log", context.note
        )
        self.links = instances.links
        self.instances, self.limits, self.topics = instances, limits, context.topics
        self.note, self.phase, self.measure, self.now = context.note, context.phase, context.measure, context.world.now
        self.events: Sequence[Event] = context.timeline.events
        self._context, self._input, self._reading = context, produced, reading

    def without(self, names: frozenset[str]) -> "TrialLab":
        """The same, in which these instances are not among those that run."""
        others = copy(self)
        others.instances = self.instances.without(names)
        return others

    # --- instances --------------------------------------------------------------------------------------------

    def close_instances(self) -> None:
        """Have all instances dump their stores, then let them leave concurrently."""
        if ASSIGNMENT in self._context.plan.promises:
            self._note_assignment()
        stores = (self._context.plan.partition_stores, self._context.plan.entry_stores)
        if any(stores):
            # All dumps are there once no task is moving.
            self.await_("every store to be written where it is active", lambda: self.instances.dump_stores() == stores)
        self.instances.close()

    def _note_assignment(self) -> None:
        """Note which instance has which task, as soon as it is as it must be, or when it should have become so.

        Raises:
            StoodStillError: it did not become so, nor did the application get a CPU.
        """
        plan, before = self._context.plan, self._cpu_times()

        def see() -> dict[str, Any]:
            return {
                "instances": {name: instance.threads for name, instance in self.instances.running.items()},
                "partitions": plan.partitions,
                "standbys": plan.standbys,
            }

        def is_right() -> bool:
            tasks = list_assigned(see(), had_standbys(self.events))
            return bool(tasks) and all(task.is_right for task in tasks)

        if not self.holds_within(SETTLES, is_right):
            check_not_starved(SETTLES, before, self._cpu_times())
        self.note(AT_REST, **see())

    def close_and_compare_state(self) -> None:
        """Let the instances leave, and note what their stores hold on disk and what their changelogs say."""
        held = {
            name: {task: kind for kind in ("standby", "active") for task in instance.tasks(kind)}
            for name, instance in self.instances.running.items()
        }
        self.close_instances()
        context = self._context
        stores = context.world.compare_state(
            context.cluster,
            self.trial.cell.running,
            self.trial.application_id,
            context.topics.names(),
            context.folder.state,
            held,
            context.folder.path / "stores.log",
        )
        for store in stores:
            self.note("unread-store" if "unread" in store else "store", **store)

    # --- records ----------------------------------------------------------------------------------------------

    def produce(
        self,
        name: str,
        records: Sequence[tuple[int, int]],
        rate: float | None = None,
        timestamps: Sequence[int] | None = None,
        role: str = "input",
    ) -> LabBulk:
        """Send records in the background."""
        bulk = self._input.produce(name, records, rate, timestamps, role)
        self._reading.follow()
        return bulk

    def end(self, role: str) -> int:
        """End offset of a topic, summed over its partitions."""
        return sum(self._context.topics.ends(self._context.plan.topics_of(role)).values())

    def count_committed(self, role: str = "input") -> int:
        """Records of a topic, the input as a rule, whose processing is committed."""
        sizes = self._context.plan.topics_of(role)
        return sum(self._context.topics.count_committed(topic, partitions) for topic, partitions in sizes.items())

    def open_input(self) -> Mapping[str, Mapping[str, tuple[int, None]]]:
        """The part of the input that is not committed, by role and partition; as last known, if no broker answers."""
        plan, topics = self._context.plan, self._context.topics
        known = {r: topics.last_offsets(plan.topic(r), plan.partitions_of(r), 0.0) for r in plan.inputs}
        return {r: {str(p): (offset, None) for p, offset in of_role.items()} for r, of_role in known.items()}

    @contextmanager
    def compact(self, *roles: str) -> Iterator[None]:
        """Have topics compacted all the time for the time of a `with` block.

        Raises:
            HarnessError: the brokers refused.
        """
        topics = list(map(self.trial.topic, roles))
        self._reading.at_the_end()
        self.topics.compact(topics)
        self.note("compacted", roles=roles)
        try:
            yield
        finally:
            self.topics.compact_no_more(topics)

    def keys_left(self, role: str) -> set[int]:
        """The keys that the topic of a changelog still has."""
        return self.topics.keys(self.trial.topic(role))

    def await_drained(self) -> None:
        """Wait until the group has committed the end of the input, as long as it makes progress."""
        self._input.await_delivered()
        end = self.end("input")
        while (committed := self.count_committed()) < end:
            self.await_(
                f"more than {committed:,} of {end:,} records to be committed", self._more_than(committed), PATIENCE
            )
        self.note("drained", committed=end)

    def await_internal_drained(self) -> None:
        """Wait until the group has committed the ends of all internal topics that are no changelogs."""
        topics, wanted = self._context.topics, self._context.wanted_topics

        def is_settled() -> bool:
            there = topics.sizes()
            return topics.are_processed(
                {t: there[t] for t in sorted(there.keys() - wanted) if not t.endswith("-changelog")}
            )

        self.await_("the repartition topics to be processed", is_settled, PATIENCE)

    def _more_than(self, committed: int) -> Callable[[], bool]:
        return lambda: self.count_committed() > committed

    # --- waiting ----------------------------------------------------------------------------------------------

    def await_(self, what: str, condition: Callable[[], object], timeout: float = 60.0) -> None:
        """Wait for a condition that the application must bring about.

        Raises:
            KafkaFailedError: it did not.
            StoodStillError: nor did the application, or its brokers, get a CPU.
        """
        now = self._context.world.monotonic
        began, before = now(), dict[str, CpuTime]()
        is_short = True

        def check() -> None:
            nonlocal is_short
            self._check()
            if is_short and now() - began > SHORT:
                is_short = False
                before.update(self._cpu_times())

        late = partial(self._explain_stuck, what, timeout, before)
        self._context.await_(what, condition, timeout, check, self._last_seen, late)

    def holds_within(self, seconds: float, condition: Callable[[], object]) -> bool:
        """Whether a condition becomes true in time, unless an instance or the input has failed."""
        return self._context.holds_within(seconds, condition, self._check)

    def _check(self) -> None:
        """Check that waiting is not pointless."""
        self._context.check()
        self.instances.check_alive()
        self._input.check()

    def _last_seen(self) -> str:
        message = f"Committed: {self.count_committed():,}; {self.instances.last_seen()}"
        return f"{message}; the logs are in {self._context.folder.instances}."

    def _cpu_times(self) -> dict[str, CpuTime]:
        return self._context.cluster.cpu_times() | self.instances.cpu_times()

    def _explain_stuck(self, what: str, timeout: float, before: Mapping[str, CpuTime], message: str) -> OnceproofError:
        """The error if the application did not bring something about, although it got CPUs since `before`."""
        check_not_starved(timeout, before, self._cpu_times())
        return KafkaFailedError("stuck", ", ".join(sorted(self.instances.running)) or "no instance", what, message)
