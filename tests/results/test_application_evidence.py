"""The archive of an application's release: what was judged by which trial, and how to repeat it."""

import json
import os
import shutil
import time
import zipfile
from dataclasses import replace

import pytest

from onceproof.model.cell import Cell, Trial
from onceproof.model.errors import UsageError
from onceproof.model.files import Planted
from onceproof.model.judged import AppAnswer, Judgement, PlantedControl
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.pipeline.pruning import QUIET, Old, prune
from onceproof.results.evidence.archive import write_evidence
from onceproof.results.evidence.case import find_run
from onceproof.settings import Settings
from tests.specimens.files import a_plan, a_reading, an_app_answer, an_outcome, on_release

RUN = "20260103T000000-0001"


@pytest.fixture
def run(tmp_path):
    """A run that is red on 4.1.2, and green on 4.3.1, where a bug was planted afterwards."""
    run = RunFolder(tmp_path / "runs" / RUN)

    def ran(streams, judgement, *plants):
        cell = Cell("app", "DEFAULT_CONFIG", Release.parse(streams), Release(3, 9, 1))
        first = Trial(RUN, cell, 1, 7, {"application": "/srv/shop", "fault": "pause"})
        trials = [replace(first, number=number) for number in (1, 2, 3)]
        trials += [replace(first, number=4, plant=plant) for plant in plants]
        for trial in trials:
            folder = run.trial(trial)
            a_plan(trial).write(folder.trial_file)
            an_outcome(trial).write(folder.outcome_file)
            a_reading().write(folder.reader_file)
        folders = tuple(f"/made/elsewhere/{trial.key}" for trial in trials)
        controls = tuple(
            PlantedControl(plant, 1, {}, folder) for plant, folder in zip(plants, folders[3:], strict=True)
        )
        return on_release(streams=streams, judgement=Judgement(judgement), folders=folders[:3], controls=controls)

    answer = an_app_answer(ran("4.1.2", "red"), ran("4.3.1", "green", "batch-lost"), application="/srv/shop")
    answer.write(run.app_file)
    return run


def contents(archive):
    with zipfile.ZipFile(archive) as read:
        return {name: read.read(name).decode() for name in read.namelist()}


def test_a_release_is_shown_by_the_trial_that_it_is_judged_by(run):
    written = write_evidence(run, "4.1.2")
    assert written.name == f"{RUN}-app-DEFAULT_CONFIG-s4.1.2-b3.9.1.zip"
    members = contents(written)
    page = members["README.md"]
    assert page.startswith(
        "# shop on Kafka Streams 4.1.2, broker 3.9.1: red\n\nNo known issue explains all of it.\n\nwhy\n"
    )
    assert "Shown here: trial 3, seed 7." in page
    assert "What runs without a fault agree on: out: records." in page
    assert "onceproof app run '[path]' --streams 4.1.2 --fault pause" in page or "app run [path] --streams" in page
    assert "/srv" not in "".join(members.values())
    assert json.loads(members["trial/trial.json"])["trial"]["number"] == 3
    assert json.loads(members["verdict.json"])["judgement"] == "red"
    others = {name.split("/")[1] for name in members if name.startswith("other-trials/")}
    assert {name[-2:] for name in others} == {"t1", "t2"}


def test_controls_are_among_the_other_trials(run):
    members = contents(write_evidence(run, "s4.3.1"))
    assert any("batch-lost-t4/outcome.json" in name for name in members)
    assert "Shown here: trial 3" in members["README.md"]


def test_what_is_planted_is_told_to_be_no_evidence(run):
    answer = AppAnswer.read(run.app_file)
    replace(answer, releases=(replace(answer.releases[0], plant=Planted("put-lost", (), 1)),)).write(run.app_file)
    assert (
        "put-lost was planted into the release: this is no evidence"
        in contents(write_evidence(run, "app"))["README.md"]
    )


def test_what_is_no_release_of_the_run_is_refused(run, tmp_path):
    with pytest.raises(UsageError, match=r"has no cell '9.9.9'; it has app-DEFAULT_CONFIG-s4.1.2-b3.9.1, app-"):
        write_evidence(run, "9.9.9")
    with pytest.raises(UsageError, match="is part of 2 cells"):
        write_evidence(run, "app")
    assert find_run(tmp_path / "runs", "last", applications=True).run_id == RUN
    with pytest.raises(UsageError, match="is not judged"):
        find_run(tmp_path / "runs", RUN)


def test_pruning_keeps_red_evidence_or_else_the_folder(run, tmp_path):
    settings = Settings(home=tmp_path)

    def pruned():
        for path in (run.path, *run.path.rglob("*")):
            os.utime(path, times=(time.time() - 2 * QUIET,) * 2)
        return next(prune(settings, [Old(run.path, "trials", 0)]))

    trials = run.path / "trials"
    shutil.copytree(trials, tmp_path / "trials")
    shutil.rmtree(trials / "app-DEFAULT_CONFIG-s4.1.2-b3.9.1-t3")
    assert pruned().endswith("files of a trial that was red are gone")
    shutil.rmtree(trials)
    shutil.copytree(tmp_path / "trials", trials)
    assert pruned().startswith(f"removed trials {RUN}, ")
    assert [file.name for file in settings.evidence.iterdir()] == [f"{RUN}-app-DEFAULT_CONFIG-s4.1.2-b3.9.1.zip"]
