"""What planted trials amount to, in words and exit codes that are never those of a cell."""

from dataclasses import replace

import pytest

from onceproof.campaigns.sensitivity.plantings import Planting
from onceproof.campaigns.sensitivity.verbs import exit_code, read_by_both, row, verdict_of
from onceproof.model.plants import plant
from onceproof.model.sensitivity import PlantedTrial
from tests.conftest import a_trial
from tests.results.test_judging import make_run

CELL = a_trial("4.3.1").cell


def planted(fired=3, found=True, error=None, exercised=True) -> PlantedTrial:
    seen = {"duplicate-id": 2} if found else {}
    met = exercised and fired > 0
    return PlantedTrial("r", "t", "p", CELL, "c", "h", 1, fired, met, found, seen, 2.0, error)


SURVIVED, SILENT = planted(found=False), planted(0, found=False)
FAILED = planted(0, found=False, error="A broker died.")


@pytest.mark.parametrize(
    ("claimed", "trials", "verdict", "code"),
    [
        (True, [planted(), SURVIVED], "found", 0),
        (True, [planted(), FAILED], "found", 0),
        (True, [SURVIVED], "survived", 1),
        (True, [SURVIVED, FAILED], "error", 4),
        (True, [SILENT, SURVIVED], "survived", 1),
        (True, [SILENT], "not-fired", 3),
        (True, [planted(found=False, exercised=False)], "not-exercised", 3),
        (True, [planted(exercised=False)], "found", 0),  # as one that makes the drive end
        (False, [SURVIVED], "equivalent", 0),
        (False, [SILENT], "not-fired", 3),
        (False, [planted()], "misjudged", 1),
    ],
)
def test_what_becomes_of_a_plant(claimed, trials, verdict, code):
    assert verdict_of(claimed, trials) == verdict
    assert exit_code([verdict]) == code


def test_a_survivor_outweighs_an_error_which_outweighs_not_fired():
    assert exit_code(["found", "not-fired", "error", "survived"]) == 1
    assert exit_code(["found", "not-fired", "error"]) == 4
    assert exit_code(["found", "not-fired"]) == 3


def test_a_rate_is_of_exercised_trials():
    one = plant("stale-cache")
    reported = row(Planting(one, CELL, one.claims[0]), [planted(), SURVIVED, SILENT, planted(exercised=False)])
    assert (reported["trials"], reported["fired"], reported["exercised"], reported["found"], reported["rate"]) == (
        4,
        3,
        2,
        2,
        0.5,
    )
    assert reported["interval"][0] < 0.5 < reported["interval"][1]
    assert reported["anomalies"] == {"duplicate-id": 2}
    assert reported["promises"] == ["identities", "counters"]


def read(home, anomalies, by_reader=None, **fields):
    """What both readers make of a trial in which Spark sees these anomalies."""
    run, ordinary = make_run(home, "4.3.1", anomalies, seen_by_reader=by_reader, **fields)
    one = plant("stale-cache")
    trial = replace(planted(), trial=ordinary.key)
    [trial] = read_by_both(run, [(Planting(one, CELL, one.claims[0]), trial)])
    return trial


def test_a_plant_is_found_by_both_readers(tmp_path):
    trial = read(tmp_path, ["duplicate-id"])
    assert (trial.found, trial.found_by, trial.error) == (True, ("independent", "spark"), None)


def test_an_anomaly_outside_the_claim_is_not_found(tmp_path):
    trial = read(tmp_path, ["wrong-store"])
    assert (trial.found, trial.found_by, trial.error) == (False, (), None)


@pytest.mark.parametrize(
    ("by_spark", "by_reader", "said"),
    [
        ([], {"duplicate-id": 1}, "The independent reader sees 1 duplicate-id, Spark 0."),
        (["duplicate-id"], {}, "The independent reader sees 0 duplicate-id, Spark 1."),
    ],
)
def test_what_only_one_reader_saw_is_an_error_and_not_found(tmp_path, by_spark, by_reader, said):
    trial = read(tmp_path, by_spark, by_reader)
    assert (trial.found, trial.exercised, trial.error) == (False, False, said)


def test_what_spark_did_not_read_is_an_error(tmp_path):
    trial = read(tmp_path, ["duplicate-id"], counts={})
    assert trial.error
    assert not trial.found
