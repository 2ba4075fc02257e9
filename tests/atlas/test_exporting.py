"""From run folders to an atlas: what stands behind a verdict comes along, and nothing of the machine does."""

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import pytest

from onceproof.atlas.exporting import EVENTS, append, export
from onceproof.atlas.file import read_atlas, write_atlas
from onceproof.model.cell import Cell, Trial
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.files import VerdictRow
from onceproof.model.json_file import write_json
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.model.verdict import Standing
from tests.specimens.atlas import TIMELINE, WITNESS
from tests.specimens.files import a_reading, a_verdict, an_outcome

RUN = "20261120T021500-bbbb"
BROKER = Release.parse("4.4.0")
RED = Cell("enumerator", "DEFAULT_CONFIG", Release.parse("3.3.1"), BROKER)
GREEN = Cell("enumerator", "DEFAULT_CONFIG", Release.parse("3.4.1"), BROKER)
BROKEN = Cell("enumerator", "DEFAULT_CONFIG", Release.parse("3.5.0"), BROKER)
BUILT = Cell("enumerator", "DEFAULT_CONFIG", Release.parse("4.4.0@ab12cd3"), BROKER)
CLAIMED = Cell("enumerator", "DEFAULT_CONFIG", Release.parse("3.6.0"), BROKER.claimed)
WITNESSES = tuple(replace(WITNESS, key=key) for key in range(5))
ATTESTED = {"streams_commit": "abc1234", "clients_version": "3.3.1", "java": "17.0.15"}


@pytest.fixture
def run(tmp_path):
    """A run with a verdict of each kind."""
    run = RunFolder(tmp_path / "runs" / RUN)
    rows = [
        a_verdict(
            RED,
            "known",
            sentence=f"1 duplicate-id in {tmp_path}/runs/{RUN}/trials/x",
            red=1,
            anomalies={"duplicate-id": 1},
            issues=("KAFKA-14172",),
        ),
        a_verdict(GREEN, "clean", plants=(Standing("put-lost", 3, 3, 0.02),), excluded_rate=0.95, missed=0.04),
        a_verdict(BROKEN, "error", sentence="The broker died."),
        a_verdict(BUILT, "clean"),
        a_verdict(CLAIMED, "clean"),
    ]
    trials = [Trial(RUN, row.as_cell, 1, 5) for row in rows]
    plan = {"run": RUN, "created": "2026-11-20T02:15:00+00:00", "matrix": "seed", "brokers": ["4.4.0"]}
    write_json(run.run_file, plan | {"cells": [], "trials": [trial.to_dict() for trial in trials]})
    for trial in trials:
        attested = {"instance-1": {"release": str(trial.cell.streams), "streams_version": "x", **ATTESTED}}
        said = {"attested": attested, "harness": "0.1.0+aaaa", "machine": "Linux, Java 17"}
        an_outcome(trial, **said).write(run.trial(trial).outcome_file)
        found = {"anomalies": {"duplicate-id": 1}, "witnesses": WITNESSES} if trial.cell == RED else {}
        a_reading(**found).write(run.trial(trial).reader_file)
    VerdictRow.write_all(run.verdicts_file, rows)
    return run


def test_a_verdict_comes_with_what_it_rests_on(run):
    red, green = export([run]).measurements
    assert (red.cell, red.commit, red.harness, red.machine) == (RED, "abc1234", "0.1.0+aaaa", "Linux, Java 17")
    assert (red.trials, red.exercised, red.red, dict(red.anomalies)) == (1, 1, 1, {"duplicate-id": 1})
    assert [one.key for one in red.witnesses] == [0, 1, 2]  # a few
    assert red.controls == ()
    assert green.summary == "measured by Onceproof 0.1.0 on 2026-11-20"
    assert [(control.cell, control.red, control.exercised) for control in green.controls] == [(RED.key, 1, 1)]
    assert (green.plants, green.missed) == ((Standing("put-lost", 3, 3, 0.02),), 0.04)


def test_a_red_cell_brings_the_timeline_of_a_red_trial(run):
    file = run.trial(Trial(RUN, RED, 1, 5)).timeline
    sampled = {"t": 1500, "source": "i", "event": "progress", "processed": []}
    file.write_text("".join(f"{json.dumps(event)}\n" for event in (*TIMELINE, sampled)))
    red, green = export([run]).measurements
    assert red.timeline == tuple(sorted(TIMELINE, key=lambda event: event["t"]))
    assert green.timeline == ()
    file.write_text("".join(f"{json.dumps(TIMELINE[0])}\n" for _ in range(EVENTS + 1)))
    assert export([run]).measurements[0].timeline == ()  # too many for a picture


def test_nothing_of_the_machine_comes_along(run, tmp_path):
    file = tmp_path / "atlas.sqlite"
    write_atlas(file, export([run]).measurements)
    assert str(tmp_path).encode() not in file.read_bytes()
    assert read_atlas(file)[0].sentence.startswith("1 duplicate-id in [run]/trials/x")


def test_what_says_nothing_about_a_published_release_is_left_out(run):
    left_out = export([run]).left_out
    assert {what.partition(" ")[2] for what in left_out} == {BROKEN.key, BUILT.key, CLAIMED.key}
    assert left_out[f"{RUN} {BROKEN.key}"].startswith("the harness failed")


def test_trials_of_two_harnesses_are_of_neither(run):
    trial = Trial(RUN, RED, 2, 6)
    run.add_trial(trial)
    replace(an_outcome(trial), harness="0.1.0+bbbb", machine="Linux, Java 17").write(run.trial(trial).outcome_file)
    a_reading().write(run.trial(trial).reader_file)
    [red] = [one for one in export([run]).measurements if one.cell == RED]
    assert red.harness == "0.1.0+aaaa and 0.1.0+bbbb"
    assert red.machine == "Linux, Java 17"


def test_a_run_is_added_once_and_the_first_one_creates_the_atlas(run, tmp_path):
    file = tmp_path / "nightly.sqlite"
    assert append(file, run).left_out.keys() == export([run]).left_out.keys()
    first = read_atlas(file)
    assert [one.cell for one in first] == [RED, GREEN]
    append(file, run)
    assert read_atlas(file) == first


def test_runs_that_end_together_are_all_in_the_atlas(run, tmp_path):
    file, runs = tmp_path / "nightly.sqlite", [run]
    for number in range(1, 5):
        other = RunFolder(run.path.with_name(f"20261121T02150{number}-bbbb"))
        shutil.copytree(run.path, other.path)
        rows = [replace(row, streams=f"3.{number + 3}.0") for row in VerdictRow.read_all(run.verdicts_file)]
        VerdictRow.write_all(other.verdicts_file, rows[1:2])
        runs.append(other)
    with ThreadPoolExecutor() as pool:
        list(pool.map(partial(append, file), runs))
    assert len(read_atlas(file)) == 2 + 4


def test_a_file_that_is_no_atlas_stays_as_it_is(run, tmp_path):
    file = tmp_path / "nightly.sqlite"
    file.write_text("my notes")
    with pytest.raises(UsageError, match="no atlas"):
        append(file, run)
    assert file.read_text() == "my notes"


def test_a_damaged_run_is_an_error(run):
    run.verdicts_file.write_text("[{}]")
    with pytest.raises(HarnessError, match="incomplete or damaged"):
        export([run])
