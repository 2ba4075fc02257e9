"""A record that is missing is a witness, and no failure of ours: of each topic of each kept trial some are lost, or all.

So less is compared than suites ask for. An `error` is only what nothing explains.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from onceproof.lab.cluster import EmbeddedCluster
from onceproof.lab.judging import check_least
from onceproof.lab.plan import plan_of
from onceproof.model.anomaly import Findings
from onceproof.model.errors import HarnessError
from onceproof.model.files import Outcome, Produced, Reading, TrialPlan
from onceproof.model.promise import ANOMALIES, LOSSES, PROMISES, map_suites
from onceproof.model.record import Record
from onceproof.model.release import Release
from onceproof.readers.checks import CHECKS
from onceproof.scenarios import SCENARIOS
from onceproof.scenarios.prepared import PreparedTrial
from tests.conftest import HERE, a_trial
from tests.published import NAMES
from tests.specimens.files import a_reading
from tests.specimens.mutations import Clean
from tests.specimens.trials import REAL, kept_trials

Topics = Mapping[str, Sequence[Record]]
Lost = Callable[[Sequence[Record]], list[Record]]
OURS = EmbeddedCluster(HERE, Release(3, 9, 1), "127.0.0.1:1", Path("brokers"))
LOSE: Mapping[str, Lost] = {
    "all": lambda _: [],
    "a key in three": lambda records: [record for record in records if (record.key or 0) % 3],
    "tombstones for a key in three": lambda records: [
        record if (record.key or 0) % 3 else record._replace(value=None) for record in records
    ],
}
# The client of interactive queries writes its answers itself, so that nothing but our own application can lose them.
OF_OURS = {"answers"}
# What is counted by these is in no topic: dumps of stores, log segments, events of the timeline.
ELSEWHERE = ("stores", "entries", "isolation", "routing")


def planned(scenario: str) -> TrialPlan:
    """The plan of the first variant of a scenario that can be run on the newest release."""
    variant = next(iter(SCENARIOS[scenario].variants))
    return plan_of(PreparedTrial(a_trial(NAMES[-1], variant, scenario=scenario)), OURS)


PLANS = [planned(scenario) for scenario in SCENARIOS]


@cache
def kept() -> Mapping[str, Clean]:
    """The kept trials by name."""
    return {clean.name: clean for clean in kept_trials()}


@cache
def sound(name: str) -> Findings:
    """The findings in a kept trial of which nothing is lost."""
    clean = kept()[name]
    return CHECKS[clean.check](clean.topics, clean.facts)


def judged(clean: Clean, plan: TrialPlan, found: Findings) -> Outcome:
    """The outcome of a kept trial in which this was found, and all that is in no topic was compared often enough."""
    of_topics = sound(clean.name).promises
    keys = len({record.key for name in plan.inputs for record in clean.topics.get(name, ())})
    produced = Produced(found.records, keys)
    plan = replace(plan, preloaded=of_topics.get("state", plan.preloaded))
    enough = {p: plan.least(p, produced) for p in plan.promises if p not in of_topics or p in ELSEWHERE}
    reading = replace(Reading.of(found, {}), promises={**found.promises, **enough})
    return check_least(plan, replace(Outcome.of_error(plan.trial, "-"), error=None, produced=produced), reading)


def lose(clean: Clean, topic: str, way: str) -> dict[str, Sequence[Record]]:
    """The records of a trial, of which some of a topic are lost: in each role in which it is read, and in the store
    that is restored from it.
    """
    store = topic.replace("-changelog", "-contents")
    return {
        role: LOSE[way](records) if role.removesuffix("-all") in (topic, store) else records
        for role, records in clean.topics.items()
    }


@pytest.mark.parametrize("name", sorted(file.stem for file in REAL.glob("*.parquet")))
def test_a_loss_in_a_topic_is_a_witness_and_no_harness_error(name: str) -> None:
    clean = kept()[name]
    plans = [plan for plan in PLANS if plan.check == clean.check]
    assert plans
    for plan in plans:
        assert judged(clean, plan, sound(name)).reason == "-"
    for topic in clean.topics.keys() - {name for plan in plans for name in plan.inputs} - OF_OURS:
        for way in () if topic.endswith(("-all", "-contents")) else LOSE:
            found = CHECKS[clean.check](lose(clean, topic, way), clean.facts)
            for plan in plans:
                assert judged(clean, plan, found).error is None, (topic, way)  # raises, if it is an error


def test_lost_changelog_records_explain_too_few_comparisons() -> None:
    clean = kept()["crash-DEFAULT_CONFIG"]
    [plan] = [plan for plan in PLANS if plan.trial.cell.scenario == "crash"]
    for way in LOSE:
        found = CHECKS[clean.check](lose(clean, "seen-changelog", way), clean.facts)
        assert found.anomalies.keys() & {"lost-record", "wrong-value"}
        assert judged(clean, plan, found).reason.startswith("- Apart from what was found, state was compared "), way


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.trial.cell.scenario)
def test_a_floor_is_an_error_unless_a_loss_explains_it(plan: TrialPlan) -> None:
    produced = Produced(200, 100)
    enough = {promise: plan.least(promise, produced) for promise in plan.promises}
    ended = replace(Outcome.of_error(plan.trial, "-"), error=None, produced=produced)

    def judge(promise: str, *anomalies: str) -> str:
        fields = {"promises": {**enough, promise: enough[promise] - 1}, "anomalies": dict.fromkeys(anomalies, 3)}
        return check_least(plan, ended, a_reading(records=1, outputs=1, keys=1, ids=0, **fields)).reason

    for promise, least in enough.items():
        floor = f"{promise} was compared {least - 1:,} times, and {least:,} are the least."
        own = map_suites()[PROMISES[promise].suite]
        with pytest.raises(HarnessError, match=rf": {re.escape(floor)}$"):
            judge(promise)
        for other in {"leak", "wrong-topic"} - own:
            with pytest.raises(
                HarnessError, match=rf"{re.escape(floor)} These anomalies were found, and do not explain it: 3 {other}"
            ):
                judge(promise, other)
        for loss in (own | LOSSES) - {"corrupt-record"}:  # beside which nothing need be whole
            assert judge(promise, loss) == f"- Apart from what was found, {floor}"


def test_losses_are_anomalies() -> None:
    assert ANOMALIES.keys() >= LOSSES
