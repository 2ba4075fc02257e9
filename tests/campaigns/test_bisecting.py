"""Bisections as the DAG asks for them: a real search, on cardboard releases that are bad before 3.4.1."""

import os
import signal
from dataclasses import replace
from typing import Any

import pytest

from onceproof.campaigns.bisection import trials as bisection
from onceproof.campaigns.bisection import verbs
from onceproof.campaigns.bisection.verbs import as_table, bisect, search_for
from onceproof.campaigns.requests import BisectRequest
from onceproof.lab import java
from onceproof.model.errors import UsageError
from onceproof.model.json_file import read_json
from onceproof.model.known_issues import registry as issues
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from tests.pipeline.registry import Registry, registry
from tests.present import present
from tests.specimens.brokers import external_cluster
from tests.specimens.files import a_reading, an_outcome

__all__ = ["registry"]


class Brokers:
    """They only know whether they were stopped."""

    stopped = 0

    @classmethod
    def start(cls, *_: object) -> "Brokers":
        return cls()

    def stop(self) -> None:
        Brokers.stopped += 1


def run_trial(trial, folder, cluster):
    anomalies = {"duplicate-id": 1} if trial.cell.streams < Release(3, 4, 1) else {}
    a_reading(anomalies=anomalies).write(folder.reader_file)
    return an_outcome(trial)


def showing(release, anomaly):
    """A `run_trial` by which a release shows this anomaly."""

    def show(trial, folder, cluster):
        outcome = run_trial(trial, folder, cluster)
        if trial.cell.streams == release:
            a_reading(anomalies={anomaly: 1}).write(folder.reader_file)
        return outcome

    return show


def asked(**fields: Any) -> BisectRequest:
    """A request with these fields by the names that people use."""
    return BisectRequest(**fields)


@pytest.fixture
def cardboard(registry: Registry, home, monkeypatch):
    registry.publish("3.3.2", "3.4.0", "3.4.1", "4.0.0-rc1", "4.0.0")
    monkeypatch.setattr(bisection, "EmbeddedCluster", Brokers)
    monkeypatch.setattr(bisection, "run_trial", run_trial)
    monkeypatch.setattr(java, "require_java", lambda *_: None)
    Brokers.stopped = 0
    return RunFolder(home / "runs" / "20260101T000000-0001")


@pytest.mark.parametrize(
    ("from_", "to", "releases"),
    [
        ("3.0.0", None, "3.3.2 3.4.0 3.4.1 4.0.0"),
        ("3.4.0", "3.4.1", "3.4.0 3.4.1"),
        ("3.4.1", "4.0.0-rc1", "3.4.1 4.0.0-rc1"),
    ],
)
def test_the_range_is_that_of_the_published_releases(cardboard, from_, to, releases):
    search = search_for(asked(**{"from": from_, "to": to}), seed=7)
    assert " ".join(map(str, search.releases)) == releases
    assert search.seed == 7
    assert search_for(asked(seed=0), seed=7).seed == 0


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"scenario": "elevator"}, "elevator"),
        ({"scenario": "quota", "variant": "SEED_PROGRAM"}, "SEED_PROGRAM"),
        (
            {"issue": "KAFKA-1"},
            "No known issue KAFKA-1 concerns enumerator DEFAULT_CONFIG: name one with --issue; choose from KAFKA",
        ),
        ({"from": "3.4.x"}, "'3.4.x' is not a Kafka release"),
        ({"from": "5.0.0"}, "No release is published from 5.0.0 to the newest; see `onceproof release list`"),
        ({"from": "3.4.1", "to": "3.4.0"}, "No release is published from 3.4.1 to 3.4.0"),
    ],
)
def test_what_cannot_be_searched_is_a_sentence(cardboard, bad, said):
    with pytest.raises(UsageError) as refused:
        search_for(BisectRequest(**bad), seed=7)
    assert said in str(refused.value)
    assert not cardboard.path.exists()


def test_the_boundaries_are_written_and_told_as_a_table(cardboard):
    said: list[str] = []
    found: dict[str, Any] = bisect(cardboard, search_for(BisectRequest(), seed=7), said.append)
    boundaries = {b["line"]: (b["first_bad"], b["first_good"]) for b in found["boundaries"]}
    assert read_json(cardboard.bisection_file) == found
    assert boundaries == {"3.3": ("3.3.2", None), "3.4": ("3.4.0", "3.4.1")}
    [row] = [line.split() for line in as_table(found, "title").splitlines() if line.split()[:1] == ["3.4"]]
    assert row == ["3.4", "—", "3.4.0", "3.4.0", "3.4.1", "≤", "3.5", "%"]
    [row] = [line.split() for line in as_table(found, "title").splitlines() if line.split()[:1] == ["3.3"]]
    assert row[-1] == "—"  # it has no good release, so nothing is claimed
    assert Brokers.stopped == 1


def test_progress_messages_begin_without_the_title(cardboard):
    for to, first_line in (
        ("3.4.1", "2 releases, at most 60 trials, seed 7"),
        ("3.4.0", "1 release, at most 60 trials"),
    ):
        said: list[str] = []
        bisect(cardboard, search_for(asked(**{"from": "3.4.0", "to": to}), seed=7), said.append)
        assert said[0].startswith(first_line)


def test_sigterm_stops_the_brokers(cardboard, monkeypatch):
    monkeypatch.setattr(bisection, "run_trial", lambda *_, **__: os.kill(os.getpid(), signal.SIGTERM))
    with pytest.raises(KeyboardInterrupt):
        bisect(cardboard, search_for(BisectRequest(), seed=7))
    assert Brokers.stopped == 1
    assert not (cardboard.path / "bisect.json").exists()


def test_only_anomalies_of_the_issue_at_hand_count(cardboard, monkeypatch):
    monkeypatch.setattr(bisection, "run_trial", showing(Release(4, 0, 0), "lost-record"))
    search = search_for(BisectRequest(), seed=7)
    assert present(search.issue).key == "KAFKA-14172"
    found = bisect(cardboard, search)
    assert found["bad"] == ["3.3.2", "3.4.0"]
    assert found["unknown"] == {"4.0.0": "It showed lost-record, which is not what is searched for."}
    assert not found["sure"]


def test_an_incidental_issue_makes_no_release_unknown(cardboard, monkeypatch):
    monkeypatch.setattr(bisection, "run_trial", showing(Release(3, 4, 1), "torn-transaction"))
    found: dict[str, Any] = bisect(cardboard, search_for(BisectRequest(), seed=7))
    assert (found["bad"], found["unknown"]) == (["3.3.2", "3.4.0"], {})
    assert "3.4.1" in found["good"]


def test_where_no_issue_is_known_any_anomaly_counts(cardboard):
    search = search_for(asked(variant="CACHING_DISABLED"), seed=7)
    assert search.issue is None
    assert bisect(cardboard, search)["bad"] == ["3.3.2", "3.4.0"]


def test_a_trial_with_an_incidental_anomaly_is_repeated(cardboard, monkeypatch):
    shown: list[object] = []

    def once(trial, folder, cluster):
        outcome = run_trial(trial, folder, cluster)
        if trial.cell.streams == Release(3, 4, 1) and not shown:
            shown.append(trial)
            a_reading(anomalies={"torn-transaction": 1}).write(folder.reader_file)  # KAFKA-18943
        return outcome

    monkeypatch.setattr(bisection, "run_trial", once)
    said: list[str] = []
    found: dict[str, Any] = bisect(cardboard, search_for(asked(variant="CACHING_DISABLED"), seed=7), said.append)
    assert (found["bad"], found["unknown"]) == (["3.3.2", "3.4.0"], {})
    assert "3.4.1" in found["good"]
    assert any(
        "3.4.1: It showed torn-transaction, which a known issue shows there incidentally." in line for line in said
    )


def test_a_release_always_showing_an_incidental_one_is_unknown(cardboard, monkeypatch):
    monkeypatch.setattr(bisection, "run_trial", showing(Release(3, 4, 1), "torn-transaction"))
    found: dict[str, Any] = bisect(cardboard, search_for(asked(variant="CACHING_DISABLED"), seed=7))
    assert found["bad"] == ["3.3.2", "3.4.0"]
    assert "3.4.1" not in found["good"]
    assert list(found["unknown"]) == ["3.4.1"]


def test_a_witness_without_a_known_issue_is_not_incidental(cardboard, registry, monkeypatch):
    """KAFKA-20685 has wrong-value of windows by chance from 3.8.0 to 4.2.1, but only after a kill."""

    def show(trial, folder, cluster):
        anomalies = {"wrong-value": 3} if trial.cell.streams >= Release(3, 8, 0) else {}
        a_reading(anomalies=anomalies, unexplained=anomalies).write(folder.reader_file)
        return an_outcome(trial)

    registry.publish("3.7.2", "3.8.0", "4.2.1", "4.3.1")
    monkeypatch.setattr(bisection, "run_trial", show)
    found: dict[str, Any] = bisect(cardboard, search_for(asked(**{"scenario": "windows", "from": "3.7.2"}), seed=7))
    assert (found["bad"], found["good"]) == (["3.8.0", "4.2.1", "4.3.1"], ["3.7.2"])


def test_an_informational_anomaly_next_to_another_makes_no_red(cardboard, registry, monkeypatch):
    def show(trial, folder, cluster):
        is_bad = trial.cell.streams < Release(4, 2, 2)
        beside = {"lost-record": 1} if is_bad else {"thread-died": 1}
        a_reading(anomalies={"stale-checkpoint": 1, **beside}).write(folder.reader_file)
        return an_outcome(trial)

    registry.publish("4.2.1", "4.3.1")
    monkeypatch.setattr(bisection, "run_trial", show)
    found: dict[str, Any] = bisect(cardboard, search_for(asked(**{"scenario": "crash", "from": "4.2.1"}), seed=7))
    assert found["bad"] == ["4.2.1"]
    assert found["unknown"] == {"4.3.1": "It showed thread-died, which is not what is searched for."}


def test_of_several_issues_one_must_be_named(cardboard, monkeypatch):
    [issue] = [i for i in issues().issues if i.key == "KAFKA-14172"]
    both = replace(issues(), issues=(issue, replace(issue, key="KAFKA-2")))
    monkeypatch.setattr(verbs, "registry", lambda: both)
    with pytest.raises(
        UsageError,
        match=r"More than one known issue concerns .*: name one with --issue; choose from KAFKA-14172, KAFKA-2",
    ):
        search_for(BisectRequest(), seed=7)
    assert present(search_for(asked(issue="KAFKA-2"), seed=7).issue).key == "KAFKA-2"


def test_given_brokers_are_not_started_and_get_every_trial(cardboard, monkeypatch):
    brokers, seen, checked = external_cluster(), [], []

    def run_there(trial, folder, cluster):
        seen.append(cluster)
        return run_trial(trial, folder, None)

    monkeypatch.setattr(bisection, "run_alone", run_there)
    monkeypatch.setattr(bisection, "lend", lambda external_cluster, _: external_cluster)
    monkeypatch.setattr(bisection, "check_access", lambda *arguments: checked.append(arguments))
    found: dict[str, Any] = bisect(cardboard, search_for(asked(**{"from": "3.4.0"}), seed=7), external=brokers)
    assert found["sure"]
    assert set(map(id, seen)) == {id(brokers)}
    assert len(checked) == 1 < len(seen)
    assert Brokers.stopped == 0


def test_external_brokers_that_deny_access_end_the_search(cardboard, monkeypatch):
    def refuse(*_):
        raise UsageError("The brokers cannot be reached.")

    monkeypatch.setattr(bisection, "check_access", refuse)
    with pytest.raises(UsageError, match="cannot be reached"):
        bisect(cardboard, search_for(asked(**{"from": "3.4.0"}), seed=7), external=external_cluster())
