"""What a program is shrunk for, on cardboard brokers: what its trials show is known beforehand."""

from dataclasses import replace

import pytest

from onceproof.campaigns.shrinking import trials as shrink
from onceproof.campaigns.shrinking.trials import RATED, shrink_program
from onceproof.model.run_folder import RunFolder
from tests.conftest import HERE, a_trial
from tests.specimens.files import a_reading, an_outcome


class Brokers:
    """They take topics, and do nothing."""

    @classmethod
    def start(cls, *_):
        return cls()

    def stop(self):
        pass


class Topics:
    """They are deleted."""

    def __init__(self, *_):
        pass

    def delete(self):
        pass

    def close(self):
        pass


@pytest.fixture
def shrunk(tmp_path, monkeypatch):
    """Shrinks `1 2 3` where a trial shows what is told of its program."""

    def of(showing, streams="3.3.1"):
        def run_trial(trial, folder, cluster):
            a_reading(anomalies=showing(trial.parameters["program"])).write(folder.reader_file)
            return an_outcome(trial)

        monkeypatch.setattr(shrink, "EmbeddedCluster", Brokers)
        monkeypatch.setattr(shrink, "ApplicationTopics", Topics)
        monkeypatch.setattr(shrink, "run_trial", run_trial)
        run = RunFolder(tmp_path / "20260101T000000-0001")
        first = a_trial(streams, "DEFAULT_CONFIG", scenario="multirunner")
        first = replace(first, parameters={"program": "1 2 3"})
        return shrink_program(HERE, run, first, 2, 60, lambda _: None)

    return of


def test_any_red_is_shrunk_and_told(shrunk):
    result = shrunk(lambda program: {"thread-died": 1} if program in ("1 2 3", "1 2") else {})
    assert result["program"] == "1 2"
    assert (result["red"], result["trials"], result["anomalies"]) == (RATED, RATED, {"thread-died": RATED})


def test_what_shows_another_anomaly_is_not_taken_for_it(shrunk):
    result = shrunk(lambda program: {"stale-read": 1} if program == "1 2 3" else {"stuck": 1})
    assert (result["program"], result["anomalies"]) == ("1 2 3", {"stale-read": RATED})


def test_what_a_known_issue_shows_by_chance_counts_only_alone(shrunk):
    by_chance = {"torn-transaction": 1}  # KAFKA-18943
    result = shrunk(lambda program: by_chance | ({"stale-read": 1} if program == "1 2 3" else {}), "3.4.1")
    assert (result["program"], result["anomalies"]) == ("1 2 3", {"stale-read": RATED})
    result = shrunk(lambda program: by_chance if program in ("1 2 3", "1 2") else {}, "3.4.1")
    assert (result["program"], result["anomalies"]) == ("1 2", {"torn-transaction": RATED})


def test_what_is_green_or_only_told_is_not_shrunk(shrunk):
    for anomalies in ({}, {"skipped-wipe": 1}):
        result = shrunk(lambda _, seen=anomalies: seen)
        assert (result["program"], result["red"], result["trials"], result["tried"]) == ("1 2 3", 0, 2, 1)
