"""Where a trial takes place: what everything that acts in it shares, and what is written down."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from onceproof.lab.cluster import Cluster
from onceproof.lab.world import World
from onceproof.model.errors import HarnessError, KafkaFailedError, OnceproofError, StoodStillError
from onceproof.model.files import TrialPlan, TrialProgress
from onceproof.model.run_folder import TrialFolder
from onceproof.model.timeline import Event, Timeline, stall_text
from onceproof.processes.waiting import await_condition, holds_within

Report = Callable[[str], None]


def progress_of(folder: TrialFolder) -> TrialProgress:
    """How far a trial has come; an older version of ours kept that in the plan.

    Raises:
        HarnessError: the file is damaged.
    """
    if folder.progress_file.exists():
        return TrialProgress.read(folder.progress_file)
    return TrialProgress(TrialPlan.read(folder.trial_file).seconds) if folder.trial_file.exists() else TrialProgress()


def list_planned_facts(plan: TrialPlan) -> dict[str, int]:
    """The facts that are known before a trial is driven; `scenarios.built` holds them against what was run."""
    return {
        "partitions": plan.partitions,
        "exactly_once": int(plan.streams_config["processing.guarantee"] == "exactly_once_v2"),
        "cached": int(bool(plan.app.get("caching"))),
        "punctuated": int(bool(plan.app.get("punctuate.ms"))),
    }


class TrialContext:
    """A trial's plan, brokers, folder, clock and timeline; and what is known about its drive so far."""

    def __init__(
        self,
        plan: TrialPlan,
        cluster: Cluster,
        folder: TrialFolder,
        report: Report,
        world: World,
        stalled: int,
    ) -> None:
        """Connect to the brokers, and clear the folder of what an interrupted trial left behind.

        The machine may stand still for less than `stalled` ms.
        """
        self._stalled = stalled
        self.plan, self.trial = plan, plan.trial
        self.cluster, self.folder, self.report, self.world = cluster, folder, report, world
        self.topics = world.topics(cluster, plan.application_id, set(map(plan.topic, plan.roles)))
        for old in (folder.state, folder.contents, folder.dumps_folder, folder.instances, folder.topics):
            shutil.rmtree(old, ignore_errors=True)
        self.timeline = Timeline(folder.timeline, world.now)
        self.seconds = dict(progress_of(folder).seconds)
        self.failure: KafkaFailedError | None = None  # what Kafka did that ended the drive
        self._measured: dict[str, int] = {}

    # --- what is written down ---------------------------------------------------------------------------------

    @property
    def events(self) -> Sequence[Event]:
        """The events that driver and instances have reported, in their order."""
        return self.timeline.events

    def note(self, event: str, **fields: Any) -> None:
        """Record something that the driver did or saw."""
        self.timeline.add("driver", event, **fields)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Report a phase and measure it, also if it fails."""
        self.note("phase", name=name)
        self.report(name)
        begin = self.world.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(self.world.monotonic() - begin, 2)

    def fail(self, failure: KafkaFailedError) -> None:
        """Keep what Kafka did that ended the drive, and record it in the timeline."""
        self.failure = failure
        fields = {"anomaly": failure.anomaly, "place": failure.place}
        self.note("failure", **fields, expected=failure.expected, observed=failure.observed)

    def measure(self, **facts: int) -> None:
        """Keep what the checks need to know of the drive."""
        self._measured |= facts

    @property
    def facts(self) -> dict[str, int]:
        """The facts that the checks need besides the records."""
        return {**list_planned_facts(self.plan), **self._measured}

    # --- waiting ----------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Check that the trial can continue: every process gets CPU time, what happens is written down, the brokers
        live.

        Raises:
            HarnessError: it cannot.
        """
        if self.timeline.failure:
            raise self.timeline.failure
        self.require_time()
        self.cluster.check_alive()

    @property
    def void(self) -> str | None:
        """Why the trial says nothing, in a sentence, if the machine stood still for too long."""
        return stall_text(self.events, self._stalled)

    def require_time(self) -> None:
        """Check that the machine did not stand still.

        Raises:
            StoodStillError: some process got no CPU time.
        """
        if void := self.void:
            raise StoodStillError(void)

    def await_(
        self,
        what: str,
        condition: Callable[[], object],
        timeout: float,
        check: Callable[[], None],
        last_seen: Callable[[], str] = lambda: "",
        late: Callable[[str], OnceproofError] = HarnessError,
    ) -> None:
        """Wait until a condition holds, as `processes.await_condition` does, by the clock of the trial."""
        await_condition(
            what,
            condition,
            timeout=timeout,
            check=check,
            last_seen=last_seen,
            late=late,
            clock=self.world.monotonic,
            sleep=self.world.sleep,
        )

    def holds_within(
        self, seconds: float, condition: Callable[[], object], check: Callable[[], None] = lambda: None
    ) -> bool:
        """Whether a condition becomes true in time by the clock of the world, which tests simulate."""
        return holds_within(seconds, condition, check, self.world.monotonic, self.world.sleep)

    # --- topics -----------------------------------------------------------------------------------------------

    @property
    def wanted_topics(self) -> set[str]:
        """The topics of the trial."""
        return set(map(self.plan.topic, self.plan.roles))

    def present_topics(self) -> set[str]:
        """The existing ones: the last are created by the application."""
        return self.wanted_topics & self.topics.names()

    def ends(self, *, committed: bool = False) -> dict[tuple[str, int], int]:
        """End offsets by topic and partition; if `committed`, those before the first open transaction."""
        present = self.present_topics()
        sizes = {name: partitions for name, partitions in self.plan.sizes.items() if name in present}
        return self.topics.ends(sizes, committed=committed)
