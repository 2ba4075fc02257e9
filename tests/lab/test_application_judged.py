"""What is said about an application on a release, given what its last trial showed."""

import pytest

from onceproof.lab.application_run import _Done, _judged
from onceproof.model.anomaly import Findings, Witness
from onceproof.model.errors import ExitCode
from onceproof.model.files import Planted, Reading
from onceproof.model.judged import Control, Judgement, Output
from tests.conftest import a_trial
from tests.specimens.files import an_app_answer, an_outcome, on_release

TRIAL = a_trial("4.3.1")
LOST = Witness("lost-record", 0, 1, (), ("out/0@1",), "1", "nothing")
OUTPUTS = {"out": Output("records")}


def judged(outcome=None, witnesses=(), promises=("differential",)):
    found = Findings(1, 1, 1, 0, list(witnesses), dict.fromkeys(promises, 1))
    return _judged(
        _Done(TRIAL, outcome or an_outcome(TRIAL), Reading.of(found, found.anomalies), "folder"),
        "under the fault",
        OUTPUTS,
    )


@pytest.mark.parametrize(
    ("told", "judgement", "reason"),
    [
        ({}, "green", "why"),
        ({"witnesses": [LOST]}, "red", "1 lost-record under the fault. why"),
        ({"outcome": an_outcome(TRIAL, exercised=False)}, "inconclusive", "why"),
        ({"outcome": an_outcome(TRIAL, plant=Planted("p", (), 0))}, "inconclusive", "What is planted did not fire: p."),
        ({"outcome": an_outcome(TRIAL, plant=Planted("p", (), 3))}, "green", "why What is planted fired, and no promise saw it."),
        ({"promises": ("liveness", "atomicity")}, "inconclusive", "Runs without a fault agree on nothing of its outputs"),
    ],
)  # fmt: skip
def test_what_is_said_of_a_release(told, judgement, reason):
    said, why = judged(**told)
    assert said == judgement
    assert why.startswith(reason)


@pytest.mark.parametrize(
    ("judgements", "code"),
    [
        (["green", "green"], ExitCode.OK),
        (["green", "inconclusive"], ExitCode.INCONCLUSIVE),
        (["inconclusive", "red"], ExitCode.ANOMALY),
    ],
)
def test_the_worst_release_decides(judgements, code):
    releases = (on_release(judgement=Judgement(judgement)) for judgement in judgements)
    assert an_app_answer(*releases).judgement.exit_code == code


@pytest.mark.parametrize(
    ("answer", "command"),
    [
        (
            an_app_answer(on_release(streams="4.1.2"), on_release()),
            "onceproof app run folder/shop --streams 4.1.2 --streams 4.3.1 --fault pause --broker 3.9.1 --seed 1 "
            "--set pause.seconds=7",
        ),
        (
            an_app_answer(on_release(restart_on="4.4.0", plant=Planted("put-lost", (), 1)), parameters={}),
            "onceproof app run folder/shop --streams 4.3.1 --roll-to 4.4.0 --broker 3.9.1 --seed 1 --plant put-lost",
        ),
        (
            an_app_answer(on_release(), parameters={}, broker="3.9.1-claimed"),
            "onceproof app run folder/shop --streams 4.3.1 --fault pause --brokers client.properties --broker 3.9.1 "
            "--seed 1",
        ),
        (
            an_app_answer(on_release(controls=(Control("batch-lost", 1, {}, "b"),)), parameters={}),
            "onceproof app run folder/shop --streams 4.3.1 --fault pause --broker 3.9.1 --seed 1 --controls",
        ),
    ],
)
def test_the_command_repeats_the_run(answer, command):
    assert answer.command == command
