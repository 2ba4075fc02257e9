"""The catalogue of promises is consistent: everything in it can fail, and some check can raise all that it names."""

from operator import attrgetter

from onceproof.model.promise import ANOMALIES, PROMISES, RULES, find_dating, promises_of, suites_of
from onceproof.scenarios import SCENARIOS
from tests.cases import check_each
from tests.conftest import a_trial
from tests.present import present


def test_the_anomalies_of_promises_are_those_with_a_sentence():
    assert {name for promise in PROMISES.values() for name in promise.anomalies} == set(ANOMALIES)


@check_each("promise", PROMISES.values(), named=attrgetter("name"))
def test_every_promise_must_have_compared_something(promise):
    assert promise.least in RULES or int(promise.least) > 0
    assert promise.anomalies


@check_each("scenario, variant", [(name, v) for name, scenario in SCENARIOS.items() for v in scenario.variants])
def test_a_trial_makes_all_promises_of_a_suite_or_none(scenario, variant):
    made = SCENARIOS[scenario].system(a_trial("4.3.1", variant, scenario=scenario)).promises
    assert sorted(made) == sorted(p.name for suite in suites_of(made) for p in promises_of(suite))


def test_a_breach_is_dated_by_where_it_is_seen():
    assert find_dating("stale-read", "output") is None
    assert present(find_dating("stale-read", None)).by == ("stale-read",)
    assert present(find_dating("changelog-output-mismatch", "input")).by == ("crash", "timeout")
    assert find_dating("changelog-output-mismatch", "ids-changelog") is None
    assert present(find_dating("uncommitted-state", "seen-changelog")).by == ("contents",)
