"""Which cells prove a fix."""

from onceproof.campaigns.verify_fix.verbs import FixQuestion, issue_of, last_bad
from onceproof.model.errors import UsageError
from onceproof.model.known_issues import LATER, KnownIssue, registry
from onceproof.model.matrices import BROKER
from onceproof.model.release import Release
from onceproof.scenarios import scenario
from tests.cases import check_each


def is_accepted(issue: KnownIssue) -> bool:
    try:
        issue_of(issue.key)
    except UsageError:
        return False
    return True


OF_PROTOCOL = "4.4.0"  # brokers that have the streams protocol
ACCEPTED = {issue.key: issue for issue in registry().issues if is_accepted(issue)}


def a_question(issue: KnownIssue, before: str, build: str) -> FixQuestion:
    brokers = OF_PROTOCOL if "protocol" in issue.needs else BROKER
    return FixQuestion(issue, Release.parse(before), Release.parse(build), Release.parse(brokers), trials=60, seed=1)


@check_each("key", ACCEPTED)
def test_each_requestable_issue_is_expected_in_the_cells_before(key):
    issue = ACCEPTED[key]
    first, last = max(issue.affected)
    named = str(first) if last == LATER else last_bad(issue)
    pairs = list(a_question(issue, named, named).cells())
    assert [before.scenario for before, _ in pairs] == list(issue.provoked)
    assert all(issue in registry().affecting(before) for before, _ in pairs)


@check_each("key, build", [(key, str(fixed)) for key, issue in ACCEPTED.items() for fixed in issue.fixed])
def test_a_fix_that_is_released_can_be_proven(key, build):
    issue = ACCEPTED[key]
    pairs = list(a_question(issue, last_bad(issue), build).cells())
    assert pairs
    assert all(scenario(cell.scenario).refuse(cell) is None for pair in pairs for cell in pair)
    assert not any(issue in registry().affecting(after) for _, after in pairs)


def test_where_an_issue_shows_by_chance_nothing_is_proven():
    pairs = list(a_question(ACCEPTED["KAFKA-18943"], "3.9.0", "3.9.1").cells())
    assert [(before.scenario, before.variant) for before, _ in pairs] == [("idle-task", "DEFAULT_CONFIG")]
