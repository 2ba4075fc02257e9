"""Kafka's TopologyTestDriver beside what our scenarios put out on brokers."""

import base64
import struct
from dataclasses import replace
from typing import Any, get_args

import pytest

from onceproof.lab import witness as witnessing
from onceproof.lab.trial import run_trial
from onceproof.lab.witness import witness
from onceproof.model.files import TrialPlan
from onceproof.model.oracle import Outputs
from onceproof.model.record import Record
from onceproof.model.run_folder import TrialFolder
from onceproof.readers.application import COMPARED
from onceproof.scenarios import SCENARIOS
from onceproof.scenarios.base import Alike
from tests.conftest import HERE, a_run_id, a_trial, undisturbed
from tests.published import NEWEST
from tests.specimens.files import a_plan

NOT_ASKED = {
    "enumerator",
    "idle-task",
    "quota",
    "far-future",
    "dead-letters",
    "two-topics",
    "migration",
}  # `witness` says why


def test_each_scenario_says_how_much_must_be_alike():
    assert {name for name, one in SCENARIOS.items() if one.alike is None} == NOT_ASKED
    assert set(get_args(Alike)) == set(COMPARED)


def _written(number: int, form: str) -> str:
    return base64.b64encode(struct.pack(form, number)).decode()


@pytest.mark.parametrize(
    ("outputs", "anomalies"),
    [
        ([(1, 10), (2, 20), (1, 11)], []),
        ([(1, 11), (1, 10), (2, 20)], []),  # partitions have drivers of their own, and keys no order among them
        ([(1, 10), (1, 11)], ["unexpected-record"]),
        ([(1, 10), (2, 20), (2, 21), (1, 11)], ["lost-record"]),
        ([(1, 10), (2, 22), (1, 11)], ["wrong-value"]),
    ],
)
def test_what_the_driver_puts_out_is_compared_key_by_key(tmp_path, monkeypatch, outputs, anomalies):
    config = {"processing.guarantee": "exactly_once_v2"}
    plan = replace(a_plan(a_trial("4.3.1", scenario="multirunner")), streams_config=config)
    committed = {
        "input": [Record(0, 0, 1, 7, 50), Record(0, 1, 2, 7, 40), Record(1, 0, 1, 8, 45)],
        "output": [Record(0, 0, 1, 10), Record(0, 1, 2, 20), Record(1, 0, 1, 11)],
    }
    written = Outputs({"output": tuple((0, _written(key, ">i"), _written(value, ">i")) for key, value in outputs)})
    monkeypatch.setattr(witnessing, "_read_committed", lambda *_: committed)
    monkeypatch.setattr(witnessing, "replay", lambda *_: written)
    unused: Any = None  # the committed records are given above
    reported = witness(HERE, plan, unused, TrialFolder(tmp_path), [NEWEST])[NEWEST]
    assert [one.anomaly for one in reported if one.anomaly] == anomalies
    topic = plan.topic("input")
    lines = TrialFolder(tmp_path).replay_file.read_text().splitlines()
    assert [line.partition(", ")[2] for line in lines] == [  # by time, and each partition in its order
        f'1, 45, "{_written(1, ">i")}", "{_written(8, ">i")}", ""]',
        f'0, 50, "{_written(1, ">i")}", "{_written(7, ">i")}", ""]',
        f'0, 40, "{_written(2, ">i")}", "{_written(7, ">i")}", ""]',
    ]
    assert all(line.startswith(f'["{topic}"') for line in lines)


def _asked(trial, folder, cluster):
    """How many keys differ, and how, from what the release of the trial and the newest one make of its input."""

    def attempt():
        return run_trial(replace(trial, run=a_run_id()), folder, cluster=cluster)

    undisturbed(attempt)
    releases = [trial.cell.streams, NEWEST]
    reported = witness(HERE, TrialPlan.read(folder.trial_file), cluster, folder, releases)
    return [{one.anomaly for one in reported[release] if one.anomaly} for release in releases]


@pytest.mark.broker
def test_damage_of_one_release_shows_against_the_newest(tmp_path, cluster):
    trial = a_trial("4.0.0", scenario="global-join")  # KAFKA-19208
    assert _asked(trial, TrialFolder(tmp_path), cluster) == [set(), {"lost-record"}]


@pytest.mark.broker
def test_what_goes_wrong_on_brokers_only_shows_beside_both(tmp_path, cluster):
    trial = a_trial("3.4.0", scenario="stream-join")  # KAFKA-14862: tasks share what a driver has for itself
    same, newest = _asked(trial, TrialFolder(tmp_path), cluster)
    assert same == newest
    assert "wrong-value" in same
