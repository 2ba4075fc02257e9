"""Drives one provisioned and preloaded trial: through its scenario, to its end, to what is found and reported."""

import socket
from collections.abc import Sequence

from onceproof.faults.base import together
from onceproof.harness import harness_version
from onceproof.lab.cluster import Cluster
from onceproof.lab.context import Report, TrialContext
from onceproof.lab.input import Input
from onceproof.lab.instances import LabInstances
from onceproof.lab.judging import judge, keep_ends
from onceproof.lab.limits import LabLimits
from onceproof.lab.reading import SegmentReading, TopicReading
from onceproof.lab.trial_lab import TrialLab
from onceproof.lab.world import World
from onceproof.model.anomaly import Comparison
from onceproof.model.errors import HarnessError, KafkaFailedError
from onceproof.model.files import FaultOutcome, Outcome, Reading, TrialPlan
from onceproof.model.run_folder import TrialFolder
from onceproof.scenarios.base import Exercise
from onceproof.scenarios.built import EVENT as BUILT
from onceproof.scenarios.built import GUARANTEE, check_built
from onceproof.scenarios.internal_topics import PROMISE as INTERNAL_TOPICS
from onceproof.scenarios.observing import observe
from onceproof.scenarios.prepared import PreparedTrial


class Driver:
    """One drive, and all that takes part in it."""

    def __init__(
        self,
        prepared: PreparedTrial,
        plan: TrialPlan,
        cluster: Cluster,
        folder: TrialFolder,
        report: Report,
        world: World,
    ) -> None:
        """Bring together what takes part; nothing is started except the watch over the machine."""
        self.scenario, self._prepared = prepared.scenario, prepared
        self.context = TrialContext(plan, cluster, folder, report, world, prepared.scenario.stalled)
        self.context.measure(**prepared.scenario.facts(plan.trial))
        self._instances = LabInstances(self.context)
        self._input = Input(self.context, prepared.workload)
        self._limits = LabLimits(self.context)
        self._topics, self._segments = TopicReading(self.context), SegmentReading(self.context)
        self.lab = TrialLab(self.context, prepared, self._instances, self._input, self._limits, self._topics)
        self._ticker = world.ticker(lambda seconds: self.context.note("stall", ms=round(seconds * 1_000)))

    def drive(self) -> Exercise:
        """Drive the scenario to its end, or until Kafka fails, which the timeline records.

        Raises:
            HarnessError: the harness failed.
            StoodStillError: some process got no CPU time.
        """
        try:
            exercise = self.scenario.drive(self.lab)
        except KafkaFailedError as failure:
            exercise = self._fail(failure)
        self._ticker.stop()
        self.context.require_time()
        self._check_facts()
        if INTERNAL_TOPICS in self.context.plan.promises and self.context.failure is None:
            self.context.note(INTERNAL_TOPICS, topics=self.context.topics.internal())
        return exercise

    def _check_facts(self) -> None:
        """Check that the application has built what the checks are to take for granted.

        Raises:
            HarnessError: it has not, or it did not say so.
        """
        context, plan = self.context, self.context.plan
        changed = {"exactly_once"} if any(GUARANTEE in change.streams_config for change in plan.later) else set()
        check_built({fact: value for fact, value in context.facts.items() if fact not in changed}, context.events)
        silent = context.failure is None and not any(event["event"] == BUILT for event in context.events)
        if silent and self._instances.report:
            raise HarnessError(f"No instance of {plan.trial.key} said what it has built: look at its log.")

    def _fail(self, failure: KafkaFailedError) -> Exercise:
        """Keep the evidence, end the application, and see how far it came."""
        self.context.fail(failure)
        with self.context.phase("failure"):
            if failure.anomaly != "thread-died":
                self._instances.dump_threads()
            # It was not the brokers that held up the application.
            self.context.cluster.check_alive()
            self.context.topics.names()
            self._input.end()
            self._instances.end()
            keep_ends(self.context, self._input)
        exercised = any(event["event"] == "exercised" for event in self.context.events)
        return Exercise(exercised, str(failure), all_steps_tried=False)

    def judge(self) -> tuple[Reading, Sequence[Comparison]]:
        """The findings of the independent reader, and what the timeline shows in addition.

        Raises:
            HarnessError: what the drive left cannot be read, or the input is another than was delivered.
        """
        return judge(self.context, self._input, self._topics, self._segments, self._observe)

    def _observe(self) -> Sequence[Comparison]:
        return observe(self._prepared, self.context.plan, self.context.events)

    def outcome(
        self, exercise: Exercise | None = None, *, error: str | None = None, void: str | None = None
    ) -> Outcome:
        """How the trial ended; if it was not exercised, why: an error, or a void trial."""
        context = self.context
        return Outcome(
            trial=context.trial,
            error=error,
            void=void,
            failed=None if context.failure is None else str(context.failure),
            exercised=exercise is not None and exercise.exercised,
            reason=exercise.reason if exercise else error or void or "",
            steps=exercise.steps if exercise else None,
            all_steps_tried=exercise is not None and exercise.all_steps_tried,
            produced=self._input.count_produced(),
            facts=context.facts,
            attested=self._instances.attested,
            plant=self._instances.report_planted(),
            fault=self._fault_outcome(),
            harness=harness_version(context.trial.cell.scenario),
            host=socket.gethostname(),
            machine=context.world.machine(context.cluster.installation),
            seconds=context.seconds | {"total": round(sum(context.seconds.values()), 2)},
        )

    def _fault_outcome(self) -> FaultOutcome | None:
        """The outcome of the fault; None if none was to be injected."""
        if (fault := self._prepared.fault) is None:
            return None
        seen = [
            FaultOutcome(event["name"], event["bit"], event["summary"], event["observed"])
            for event in self.context.events
            if event["event"] == "fault" and event["action"] == "observed"
        ]
        if seen:
            return seen[0] if len(seen) == 1 else together(seen[1], seen[0])  # the second one was over first
        return FaultOutcome(fault.name, bit=False, summary="The drive ended before that.", observed={})

    def stop(self) -> None:
        """Stop whatever still runs, and undo what was set on brokers."""
        self._ticker.stop()
        self._input.stop()
        self._instances.kill_all()
        self._topics.stop()
        self._segments.stop()
        self._limits.lift()
        self.context.topics.close()
        self.context.timeline.close()
