"""Planted trials add up if they belong to one place, and only then."""

import json
from dataclasses import replace

from onceproof.model.cell import Cell
from onceproof.model.release import Release
from onceproof.model.sensitivity import PlantedTrial, Tally, commit_of, sensitivities

CELL = Cell("enumerator", "DEFAULT_CONFIG", Release.parse("4.3.1"), Release.parse("3.9.1"))
TRIAL = PlantedTrial("r", "t", "stale-cache", CELL, "c0ffee", "0.1.0+1", 1, 3, True, True, {"duplicate-id": 4}, 9.5)


def test_a_planted_trial_is_written_and_read():
    failed = replace(TRIAL, cell=replace(CELL, restart_on=Release.parse("4.2.0")), found=False, error="It broke.")
    by_both = replace(TRIAL, found_by=("independent", "spark"))
    written = [json.loads(json.dumps(trial.to_dict())) for trial in (TRIAL, failed, by_both)]
    assert list(map(PlantedTrial.from_dict, written)) == [TRIAL, failed, by_both]


def test_exercised_trials_of_one_place_add_up():
    idle = replace(TRIAL, fired=0, exercised=False, found=True)  # red for another reason: no evidence of the plant
    missed = replace(TRIAL, found=False)
    [one] = sensitivities([TRIAL, idle, missed])
    assert (one.planned, one.tally) == (3, Tally(1, 2))


def test_any_other_circumstance_is_another_place():
    others = [
        replace(TRIAL, commit="abad1dea"),
        replace(TRIAL, harness="0.1.0+2"),
        replace(TRIAL, machine="another"),
        replace(TRIAL, plant="lost-put"),
        replace(TRIAL, cell=replace(CELL, broker=Release.parse("3.9.0"))),
        replace(TRIAL, cell=replace(CELL, restart_on=Release.parse("4.2.0"))),
    ]
    assert [one.planned for one in sensitivities([TRIAL, *others])] == [1] * 7


def test_the_commit_covers_the_release_and_the_restart_release():
    attested = {
        "a": {"streams_version": "4.3.1", "streams_commit": "c0ffee"},
        "a.2": {"streams_version": "4.4.0", "streams_commit": "abad1dea"},
    }
    restarted = replace(CELL, restart_on=Release.parse("4.4.0"))
    assert (commit_of(CELL, attested), commit_of(restarted, attested)) == ("c0ffee", "c0ffee → abad1dea")
    versions = {"streams_version": "3.4.1", "release": "3.4.1@c0ffee0"}  # the release has the version of the build
    patched = {
        "a": {**versions, "streams_commit": "c0ffee0f"},
        "b": {"streams_version": "3.4.1", "streams_commit": "8a"},
    }
    rolled = replace(CELL, streams=Release.parse("3.4.1@c0ffee0"), restart_on=Release.parse("3.4.1"))
    assert commit_of(rolled, patched) == "c0ffee0f → 8a"
    assert commit_of(restarted, {"a": attested["a"]}) == commit_of(CELL, {}) == ""


def test_a_release_whose_jars_name_no_commit_stands_for_it():
    unnamed = {"a": {"streams_version": "4.3.1", "streams_commit": None}}
    assert commit_of(CELL, unnamed) == "4.3.1"
