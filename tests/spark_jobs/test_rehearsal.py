"""While trials are driven, what Spark does with them is rehearsed on those that have ended."""

import sys
from contextlib import nullcontext

import pytest

from onceproof.model.json_file import read_json, write_json
from onceproof.model.run_folder import RunFolder
from spark_jobs import collect_and_check as application
from spark_jobs import rehearsal
from spark_jobs.rehearsal import LOOK_EVERY, rehearse
from tests.conftest import a_trial
from tests.specimens.files import a_plan, an_outcome


class Run:
    """A run whose trials end one after the other, while the rehearsal sleeps."""

    def __init__(self, folder, *topologies):
        self.folder = RunFolder(folder / "20261121T084500-3f2a")
        self.left = [a_trial("3.4.1", scenario=name) for name in topologies]
        self.rehearsed = []
        self.copied = []
        self.failing = False
        write_json(self.folder.run_file, {"trials": [trial.to_dict() for trial in self.left]})
        self.folder.cluster_file("3.9.1").parent.mkdir()
        self.folder.cluster_file("3.9.1").write_text("{}")

    def end_one(self, seconds):
        assert seconds == LOOK_EVERY
        if not self.left:
            self.folder.trials_over.touch()
            return
        trial = self.left.pop(0)
        a_plan(trial, check=trial.cell.scenario).write(self.folder.trial(trial).trial_file)
        an_outcome(trial).write(self.folder.trial(trial).outcome_file)

    def perform(self, part):
        assert part.path.parent.parent == self.folder.path
        assert part.cluster_file("3.9.1").exists()
        self.rehearsed.append([trial.cell.scenario for trial in part.driven_trials()])
        part.table("records").mkdir(parents=True)
        if self.failing:
            raise ValueError("boom")

    def copy(self, trials):
        self.copied.append([trial.cell.scenario for trial in trials])
        if self.failing:
            raise ValueError("bang")


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Runs of a handful of trials will do."""
    monkeypatch.setattr(rehearsal, "STILL_OPEN", 2)


def test_each_topology_is_rehearsed_once_until_few_trials_are_left(tmp_path):
    run = Run(tmp_path, "enumerator", "enumerator", "crash", "quota", "scan")
    rehearse(run.folder, run.perform, run.copy, run.end_one)
    assert run.rehearsed == [["enumerator"], ["crash"]]
    assert {file.name for file in run.folder.path.iterdir()} == {"run.json", "clusters", "trials", "trials_over"}
    assert len(read_json(run.folder.run_file)["trials"]) == 5


def test_what_a_rehearsal_throws_is_told_and_ends_nothing(tmp_path, capsys):
    run = Run(tmp_path, "enumerator", "crash", "scan", "scan")
    run.failing = True
    rehearse(run.folder, run.perform, run.copy, run.end_one)
    assert run.rehearsed == [["enumerator"], ["crash"]]
    assert capsys.readouterr().out == "The rehearsal failed: ValueError: boom\n" * 2


def test_when_trials_are_over_nothing_is_rehearsed(tmp_path):
    run = Run(tmp_path, "enumerator")
    run.folder.trials_over.touch()
    rehearse(run.folder, run.perform, run.copy, run.end_one)
    assert run.rehearsed == []
    assert run.copied == []


def test_the_topics_of_every_few_trials_are_copied_once(tmp_path, monkeypatch):
    monkeypatch.setattr(rehearsal, "TOGETHER", 2)
    run = Run(tmp_path, "enumerator", "crash", "quota", "scan", "multirunner", "global-join", "split-batch")
    rehearse(run.folder, run.perform, run.copy, run.end_one)
    assert run.copied == [["enumerator", "crash"], ["quota", "scan"]]  # of the next two, one ends when few are left


def test_topics_that_cannot_be_copied_are_left_to_what_comes_afterwards(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(rehearsal, "TOGETHER", 2)
    run = Run(tmp_path, "enumerator", "crash", "quota", "scan", "multirunner")
    run.failing = True
    rehearse(run.folder, run.perform, run.copy, run.end_one)
    assert run.copied == [["enumerator", "crash"]]
    assert "The copying of topics failed: ValueError: bang\n" in capsys.readouterr().out


def test_what_was_copied_need_not_be_collected_again(tmp_path, monkeypatch):
    collected = []
    for name, replaced in {
        "session": lambda _: nullcontext("spark"),
        "rehearse": lambda run, perform, copy: [copy(trials) for trials in ("some", "unreadable", "others")],
        "copy_ahead": lambda spark, run, trials, given: None if trials == "unreadable" else f"copies of {trials}",
        "collect": lambda spark, run, given, ahead: collected.append(list(ahead)) or {},
        "check": lambda *_: None,
    }.items():
        monkeypatch.setattr(application, name, replaced)
    monkeypatch.setattr(sys, "argv", ["collect_and_check.py", "--early", "--run-folder", str(tmp_path)])
    application.main()
    assert collected == [["copies of some", "copies of others"]]
