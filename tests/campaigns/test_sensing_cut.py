"""A call of `check sensitivity` that is cut short has stored what it measured, and the same call continues."""

import multiprocessing
import os
import shutil
import signal

import pytest

from onceproof import spark
from onceproof.campaigns.sensitivity import plantings as sensitivity
from onceproof.campaigns.sensitivity import verbs
from onceproof.campaigns.sensitivity.plantings import Planting
from onceproof.campaigns.sensitivity.verbs import UNREAD, Sense, find_unfinished, sense
from onceproof.harness import harness_version
from onceproof.model.files import Planted, Produced
from onceproof.model.plants import plant
from onceproof.model.run_folder import RunFolder
from onceproof.processes.signals import interruptible
from onceproof.results.sensitivity import read_planted_trials
from onceproof.settings import get_settings
from tests.conftest import a_trial
from tests.present import present
from tests.results.test_judging import COUNTS, seen, spark_table
from tests.specimens.files import a_reading, an_outcome

CELL = a_trial("4.3.1").cell
PLANTINGS = tuple(Planting(plant(name), CELL, plant(name).claims[0]) for name in ("record-twice", "stale-cache"))
FIRST, SECOND = (one.plant.name for one in PLANTINGS)
ASKED = Sense(CELL.streams, CELL.broker, PLANTINGS, 2, 7, {})


class Brokers:
    """Their data is there, or not; nothing is served."""

    release = CELL.broker

    def __init__(self, folder):
        self.data = folder / "data-1"
        self.data.mkdir(parents=True, exist_ok=True)

    @classmethod
    def start(cls, installation, release, folder):
        return cls(folder)

    @staticmethod
    def has_data(folder):
        return (folder / "data-1").exists()

    def check_alive(self):
        pass

    def to_dict(self):
        return {}

    def stop(self, keep_data):
        if not keep_data:
            shutil.rmtree(self.data)


class Lab:
    """Trials that all show a duplicate ID; `tried` are the plants and seeds in order."""

    def __init__(self):
        self.tried, self.cut, self.harness = [], {}, None

    def run_trial(self, trial, folder, cluster):
        if signals := self.cut.get((trial.plant, trial.seed)):
            os.kill(os.getpid(), signals)
        self.tried.append((trial.plant, trial.seed))
        a_reading(**COUNTS, anomalies={"duplicate-id": 1}).write(folder.reader_file)
        reported = {
            "plant": Planted(trial.plant, (), 3),
            "harness": self.harness or harness_version(trial.cell.scenario),
            "produced": Produced(5, 4),
        }
        outcome = an_outcome(trial, exercised=True, **reported)
        outcome.write(folder.outcome_file)
        return outcome

    def collect_and_check(self, planted, env):
        if signals := self.cut.get("Spark"):
            os.kill(os.getpid(), signals)
        for trial in planted.list_driven():
            spark_table(planted, "counts", [COUNTS], trial.key)
            spark_table(planted, "findings", [seen("duplicate-id")], trial.key)
            spark_table(planted, "comparisons", (), trial.key)


@pytest.fixture
def lab(home, monkeypatch):
    lab = Lab()
    monkeypatch.setattr(sensitivity, "EmbeddedCluster", Brokers)
    monkeypatch.setattr(sensitivity, "run_trial", lab.run_trial)
    monkeypatch.setattr(spark, "collect_and_check", lab.collect_and_check)
    return lab


def begin():
    return RunFolder(get_settings().runs / "20261121T084500-3f2a")


def cut_short(lab, where, by=signal.SIGKILL):
    """Begin, in a separate process that gets the signal there."""

    def call():
        with interruptible():
            sense(begin(), ASKED)

    lab.cut = {where: by}
    process = multiprocessing.get_context("fork").Process(target=call)
    process.start()
    process.join()
    assert process.exitcode != 0
    lab.cut = {}


def stored():
    return [(one.plant, one.seed, one.found, one.error) for one in read_planted_trials(get_settings().database_url)]


ALL = [(FIRST, 7), (FIRST, 8), (SECOND, 7), (SECOND, 8)]


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_what_was_measured_is_stored_and_the_same_call_goes_on(lab, by):
    cut_short(lab, (SECOND, 7), by)
    before = read_planted_trials(get_settings().database_url)
    assert stored() == [(FIRST, 7, False, UNREAD), (FIRST, 8, False, UNREAD)]
    assert [one.anomalies for one in before] == [{"duplicate-id": 1}] * 2
    assert {one.found_by for one in before} == {("independent",)}
    assert not any(one.exercised for one in before)  # it counts for nothing yet

    run, asked = present(find_unfinished(Sense(*vars(ASKED).values()), None))
    reported = sense(run, asked)

    assert lab.tried == ALL[2:]
    assert stored() == [(*one, True, None) for one in ALL]
    assert {row["verdict"] for row in reported["plants"]} == {"found"}
    assert find_unfinished(ASKED, None) is None


def test_a_call_that_is_cut_while_spark_reads_has_only_that_left(lab):
    cut_short(lab, "Spark")
    assert [error for *_, error in stored()] == [UNREAD] * 4
    sense(*present(find_unfinished(ASKED, 7)))
    assert lab.tried == []
    assert [error for *_, error in stored()] == [None] * 4


def test_without_the_topics_all_of_it_is_tried_again(lab):
    cut_short(lab, (SECOND, 7))
    shutil.rmtree(begin().planted.cluster_folder("3.9.1"))  # as `system sweep` does
    sense(*present(find_unfinished(ASKED, None)))
    assert lab.tried == ALL
    assert [found for _, _, found, _ in stored()] == [True] * 4


def test_a_trial_of_another_harness_is_tried_again(lab):
    lab.harness = "0.0.9+00000000"
    cut_short(lab, (SECOND, 7))
    lab.harness = None
    sense(begin(), ASKED)
    assert lab.tried == ALL


def test_only_the_same_call_goes_on(lab, monkeypatch):
    cut_short(lab, (SECOND, 7))
    assert find_unfinished(ASKED, 7) == (begin(), ASKED)
    assert find_unfinished(ASKED, 8) is None
    for other in ({"trials": 1}, {"plantings": PLANTINGS[:1]}):
        assert find_unfinished(Sense(**{**vars(ASKED), **other}), None) is None
    with verbs._lock(begin()):  # it is under way
        assert find_unfinished(ASKED, None) is None
    monkeypatch.setattr("onceproof.campaigns.sensitivity.plantings.harness_version", lambda *_: "0.0.9+00000000")
    assert find_unfinished(ASKED, None) is None
