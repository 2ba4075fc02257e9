"""The judgement of the independent reader: how long a transaction may stay open, and that all was compared."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from onceproof.lab.cluster import EmbeddedCluster
from onceproof.lab.context import TrialContext
from onceproof.lab.judging import check_least
from onceproof.lab.plan import plan_of
from onceproof.lab.reading import TopicReading, open_for
from onceproof.model.errors import HarnessError
from onceproof.model.files import Outcome, Produced, Reading
from onceproof.model.release import Release
from onceproof.processes.waiting import holds_within
from onceproof.scenarios.prepared import PreparedTrial
from tests.conftest import HERE, a_trial
from tests.fakes.clock import FakeClock

OURS = EmbeddedCluster(HERE, Release(3, 9, 1), "127.0.0.1:1", Path("brokers"))


def planned(scenario, variant="DEFAULT_CONFIG"):
    return plan_of(PreparedTrial(a_trial("4.4.0", variant, scenario=scenario)), OURS)


@pytest.mark.parametrize(
    ("config", "later", "seconds"),
    [
        ({}, None, 25.0),
        ({"producer.transaction.timeout.ms": "60000"}, None, 75.0),
        ({"transaction.timeout.ms": "30000"}, None, 45.0),
        ({"transaction.timeout.ms": "30000", "producer.transaction.timeout.ms": "4000"}, None, 19.0),
        ({}, {"producer.transaction.timeout.ms": "60000"}, 75.0),
    ],
)
def test_a_transaction_may_stay_open_until_brokers_abort_it(config, later, seconds):
    changes = () if later is None else (SimpleNamespace(streams_config=later),)
    assert open_for(replace(planned("windows"), streams_config=config, later=changes)) == seconds


@pytest.mark.parametrize(("ends_after", "place"), [(60.0, None), (80.0, "output/1")])
def test_an_open_transaction_is_awaited_and_a_lasting_one_named(ends_after, place):
    clock = FakeClock()
    begin = clock.now()
    context = SimpleNamespace(
        plan=planned("dead-letters", "PROCESSING_COMMITTED_AHEAD"),
        ends=lambda *, committed=False: {("output", 1): 3 if committed and clock.now() < begin + ends_after else 5},
        holds_within=lambda seconds, condition: holds_within(seconds, condition, lambda: None, clock.now, clock.sleep),
    )
    assert TopicReading(cast(TrialContext, context)).open_transaction() == place


def judged(plan, promises, anomalies=None, **outcome):
    reading = Reading(records=1, outputs=1, keys=1, ids=0, promises=promises, anomalies=anomalies or {}, witnesses=())
    ended = replace(Outcome.of_error(plan.trial, "-"), error=None, produced=Produced(200, 100), **outcome)
    check_least(plan, ended, reading)


def test_too_few_comparisons_of_a_promise_are_an_error():
    plan = planned("windows")
    enough = {promise: plan.least(promise, Produced(200, 100)) for promise in plan.promises}
    judged(plan, enough)
    for promise in plan.promises:
        with pytest.raises(HarnessError, match=rf": {promise} was compared 0 times, and [\d,]+ are the least\.$"):
            judged(plan, {**enough, promise: 0})


def test_an_anomaly_of_the_suite_excuses_fewer_comparisons():
    plan = planned("windows")
    enough = {promise: plan.least(promise, Produced(200, 100)) for promise in plan.promises}
    judged(plan, {**enough, "windows": 0}, {"lost-record": 1})
    with pytest.raises(HarnessError, match=r": windows was compared 0 times"):
        judged(plan, {**enough, "windows": 0}, {"wrong-topic": 1})


@pytest.mark.parametrize(
    "outcome", [{"failed": "stuck"}, {"void": "no CPU time"}, {"anomalies": {"corrupt-record": 1}}]
)
def test_where_not_all_was_processed_or_read_less_is_compared(outcome):
    judged(planned("windows"), {}, **outcome)
