"""The comparisons that a timeline gives: those of the scenario, and those of promises of every scenario."""

from collections.abc import Sequence

from onceproof.model.anomaly import Comparison
from onceproof.model.files import TrialPlan
from onceproof.model.timeline import Event
from onceproof.scenarios.assignment import compare_assignment
from onceproof.scenarios.internal_topics import compare_internal_topics
from onceproof.scenarios.liveness import compare_liveness
from onceproof.scenarios.prepared import PreparedTrial


def observe(prepared: PreparedTrial, plan: TrialPlan, events: Sequence[Event]) -> list[Comparison]:
    """Compare what promises expect with what a timeline shows.

    Args:
        prepared: the trial.
        plan: of it, as it was driven.
        events: its timeline, complete.
    """
    return [
        *prepared.scenario.observe(plan.trial, events),
        *compare_liveness(events),
        *compare_internal_topics(events, plan.partitions, prepared.system.kept or {}),
        *compare_assignment(events),
    ]
