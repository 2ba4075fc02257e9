"""Campaigns with trials on real brokers, as small as they can be: what their other tests have on cardboard."""

from typing import Any

import pytest
from confluent_kafka.admin import AdminClient

from onceproof.campaigns.bisection.verbs import bisect, search_for
from onceproof.campaigns.requests import BisectRequest
from onceproof.campaigns.shrinking import trials as shrinking
from onceproof.campaigns.verify_fix import verbs as fixes
from onceproof.campaigns.verify_fix.answer import Proof
from onceproof.lab.cluster import EmbeddedCluster
from onceproof.model.cell import Cell, Trial
from onceproof.model.files import Outcome, Reading
from onceproof.model.published import NEWEST
from onceproof.model.run_folder import RunFolder
from onceproof.model.sensitivity import Tally
from tests.conftest import HERE, a_run_id
from tests.published import PUBLISHED

pytestmark = [pytest.mark.broker, pytest.mark.night]
RELEASE = PUBLISHED.resolve(NEWEST)
ISSUE, LAST_BAD, FIRST_GOOD = "KAFKA-18943", "3.9.0", "3.9.1"  # a trial of it takes seconds, and always shows it


@pytest.fixture
def run(tmp_path):
    return RunFolder(tmp_path / a_run_id())


def test_a_bisection_finds_the_boundary_between_two_releases(run):
    request = BisectRequest(
        scenario="idle-task", first=LAST_BAD, last=FIRST_GOOD, broker=str(RELEASE), trials=2, seed=1
    )
    found: dict[str, Any] = bisect(run, search_for(request, 1))
    [boundary] = found["boundaries"]
    assert (boundary["last_bad"], boundary["first_good"]) == (LAST_BAD, FIRST_GOOD)
    assert (found["unknown"], found["trials"]) == ({}, 2)
    assert not found["sure"]  # a green each is too few


def test_a_fix_is_proven_by_as_many_trials_as_the_risk_asks_for(run, monkeypatch):
    monkeypatch.setattr(fixes, "RISK", 0.25)
    question = fixes.ask(fixes.issue_of(ISSUE), LAST_BAD, FIRST_GOOD, str(RELEASE), 9, 1)
    answer = fixes.verify(run, question)
    [seen] = answer.scenarios
    assert answer.proof is Proof.PROVEN, seen.reason
    assert (seen.before, seen.after) == (Tally(1, 1), Tally(0, 1))


def test_a_program_is_shrunk_and_each_attempt_removes_its_topics(run, monkeypatch):
    """A planted bug that any program shows, so that chance has no part in which is the smallest."""
    left: list[set[str]] = []
    stop = EmbeddedCluster.stop

    def look_and_stop(cluster, keep_data=False):
        topics = AdminClient(cluster.client()).list_topics(timeout=30).topics
        left.append({name for name in topics if not name.startswith("__")})
        stop(cluster, keep_data)

    monkeypatch.setattr(shrinking, "RATED", 1)
    monkeypatch.setattr(EmbeddedCluster, "stop", look_and_stop)
    parameters = {"program": "1 2", "partitions": 1, "keys": 1, "threads": 1, "records.per.step": 10, "records": 100}
    cell = Cell("multirunner", "DEFAULT_CONFIG", RELEASE, RELEASE)
    first = Trial(run.run_id, cell, 1, 1, parameters, "record-twice")
    shrunk = shrinking.shrink_program(HERE, run, first, 1, 600, print)
    assert (shrunk["program"], shrunk["tried"], shrunk["red"], shrunk["trials"]) == ("1", 2, 1, 1)
    folders = sorted((run.path / "trials").iterdir())
    assert [folder.name.rpartition("-")[2] for folder in folders] == ["t1", "t2", "t3"]
    for folder in folders:
        produced = Outcome.read(folder / "outcome.json").produced.records
        assert Reading.read(folder / "reader.json").records == produced > 0
    assert left == [set()]
