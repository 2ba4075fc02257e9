"""What is said about an application on a release, given what its last trial showed; and what repeats it."""

import shlex
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from onceproof.campaigns.application.advice import RUN_ALONE, STRIKE_HARDER, advice_on_red
from onceproof.campaigns.application.run import (
    ReleaseTrials,
    _Done,
    _judge,
    _run,
    agenda_of,
    not_run,
    run_on_release,
    with_replays,
)
from onceproof.campaigns.application.verbs import complaint
from onceproof.model.anomaly import Findings, Witness
from onceproof.model.causes import Cause
from onceproof.model.cell import FAULT, Cell
from onceproof.model.errors import ExitCode
from onceproof.model.files import FaultOutcome, Planted, Reading
from onceproof.model.judged import Explaining, Judgement, Output, PlantedControl
from onceproof.model.oracle import Oracle, Outputs
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.scenarios.app import LIKE, SCENARIO
from tests.commands import parse_command
from tests.conftest import a_run_id, a_trial
from tests.specimens.files import a_plan, an_app_answer, an_outcome, on_release

TRIAL = a_trial("4.3.1")
LOST = Witness("lost-record", 0, 1, (), ("out/0@1",), "1", "nothing")
OUTPUTS = {"out": Output("records")}


def judged(outcome=None, witnesses=(), promises=("differential",)):
    found = Findings(1, 1, 1, 0, list(witnesses), dict.fromkeys(promises, 1))
    return _judge(
        _Done(TRIAL, outcome or an_outcome(TRIAL), Reading.of(found, found.anomalies), "folder"),
        "under the fault",
        OUTPUTS,
    )


@pytest.mark.parametrize(
    ("fields", "judgement", "reason"),
    [
        ({}, "green", "why"),
        ({"witnesses": [LOST]}, "red", "1 lost-record under the fault. why"),
        ({"outcome": an_outcome(TRIAL, exercised=False)}, "inconclusive", "why"),
        ({"outcome": an_outcome(TRIAL, plant=Planted("p", (), 0))}, "inconclusive", "What is planted did not fire: p."),
        ({"outcome": an_outcome(TRIAL, plant=Planted("p", (), 3))}, "green", "why What is planted fired, and no promise saw it."),
        ({"promises": ("liveness", "atomicity")}, "inconclusive", "Runs without a fault agree on nothing of its outputs"),
    ],
)  # fmt: skip
def test_what_is_said_of_a_release(fields, judgement, reason):
    said, why, advice = judged(**fields)
    assert said == judgement
    assert why.startswith(reason)
    assert bool(advice) == (said == "inconclusive")  # what to do about a red, the registry says


@pytest.mark.parametrize(("on_disk", "advice"), [(True, ""), (False, STRIKE_HARDER), (None, "")])
def test_a_green_crash_with_nothing_to_lose_says_what_to_add(on_disk, advice):
    fault = FaultOutcome("instance-kill", True, "It was killed.", {"uncommitted_on_disk": on_disk})
    outcome = replace(an_outcome(TRIAL, exercised=True, reason="It was killed."), fault=fault)
    assert judged(outcome)[2] == advice


def test_a_machine_that_stalled_each_time_leaves_nothing_known(tmp_path):
    asked = ReleaseTrials(RunFolder(tmp_path), TRIAL.cell, 1, 1, {})
    result = not_run(asked, "The machine stood still in each of 3 attempts: 2.1 s (driver)")
    assert (result.judgement, result.exercised, result.advice) == (Judgement.INCONCLUSIVE, False, RUN_ALONE)


def test_a_stalled_trial_is_repeated_under_another_id(tmp_path, monkeypatch):
    tried = []

    def run_trial(trial, folder, *_, **__):
        tried.append((trial.application_id, folder.path.name))
        Reading.of(Findings(0, 0, 0, 0), {}).write(folder.reader_file)
        return an_outcome(trial, void="The machine stood still." if len(tried) == 1 else None)

    monkeypatch.setattr("onceproof.campaigns.application.run.run_trial", run_trial)
    asked = ReleaseTrials(RunFolder(tmp_path / TRIAL.run), TRIAL.cell, 1, 1, {FAULT: "pause"})
    unused: Any = None  # by the trial above
    done = _run(asked, asked.make_undisturbed(1), unused, agenda_of([asked], print))
    assert len({*tried}) == len(dict(tried)) == 2
    assert (done.trial.application_id, Path(done.folder).name) == tried[-1]
    assert (done.trial.seed, done.trial.parameters) == (1, asked.make_undisturbed(1).parameters)


def test_where_a_run_without_any_fault_is_red_no_fault_is_tried(tmp_path, monkeypatch):
    tried = []

    def run_trial(trial, folder, *_, **__):
        tried.append((trial.number, trial.parameters[FAULT]))
        a_plan(trial, roles={}).write(folder.trial_file)
        folder.timeline.write_text('{"t": 0, "source": "driver", "event": "begun"}\n')
        found = Findings(1, 1, 1, 0, [LOST] if len(tried) == 2 else [], {"stores": 1})
        Reading.of(found, found.anomalies).write(folder.reader_file)
        return an_outcome(trial)

    monkeypatch.setattr("onceproof.campaigns.application.run.run_trial", run_trial)
    asked = ReleaseTrials(
        RunFolder(tmp_path / TRIAL.run), replace(TRIAL.cell, scenario=SCENARIO.name), 1, 1, {FAULT: "pause"}
    )
    monkeypatch.setattr("onceproof.campaigns.application.run._select_replayed", lambda _: set())
    unused: Any = None  # by the trial above
    brokers: Any = SimpleNamespace(of=lambda _: nullcontext([unused]))
    result = run_on_release(unused, asked, brokers, agenda_of([asked], print))
    assert (result.judgement, tried) == (Judgement.RED, [(1, "none"), (2, "none")])
    assert result.reason.startswith("1 lost-record without any fault.")
    assert len(result.folders) == 2


@pytest.mark.parametrize(
    ("streams", "promises", "replayed", "own", "newest"),
    [
        ("3.9.1", (), [], None, None),
        ("3.9.1", ("replay",), ["3.9.1"], "3.9.1", None),
        ("3.9.1", ("replay-newest",), ["4.3.1"], None, "4.3.1"),
        ("3.9.1", ("replay", "replay-newest"), ["3.9.1", "4.3.1"], "3.9.1", "4.3.1"),
        ("4.3.1", ("replay", "replay-newest"), ["4.3.1"], "4.3.1", "4.3.1"),
    ],
)
def test_the_input_is_replayed_once_on_each_promised_release(streams, promises, replayed, own, newest):
    done = []

    def replay(release):
        done.append(str(release))
        return Outputs({"out": ((0, None, str(release)),)})

    oracle = with_replays(Oracle(Outputs({}), {}), promises, (Release.parse(streams), Release.parse("4.3.1")), replay)
    assert done == replayed
    assert [found and found.records["out"][0][2] for found in (oracle.replayed, oracle.replayed_on_newest)] == [
        own,
        newest,
    ]


def test_what_cannot_be_replayed_is_said_and_hides_nothing():
    def replay(release: Release) -> Outputs:
        return Outputs({}, failed="It is said to throw.") if release == Release(4, 1, 0) else Outputs({"out": ()})

    both = (Release(4, 1, 0), Release(4, 3, 1))
    oracle = with_replays(Oracle(Outputs({}), {}), {"replay", "replay-newest"}, both, replay)
    assert (oracle.replayed, oracle.replayed_on_newest) == (None, Outputs({"out": ()}))
    said = "TopologyTestDriver of 4.1.0 cannot replay the input: It is said to throw."
    assert oracle.unreplayed == {"replay": said}


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


KNOWN = Explaining("KAFKA-20685", "t", ("4.2.2", "4.3.0"), "Delete the directory.", None)
CAUSE = Cause("the store is gone", "Give it the name that it had.")
STRUCK = FaultOutcome("pause", True, "", {})
RED = {"judgement": Judgement.RED, "anomalies": {"lost-record": 3}}


@pytest.mark.parametrize(
    ("fields", "explained", "codes"),
    [
        (RED | {"issues": (KNOWN,)}, "known: KAFKA-20685, fixed in 4.2.2 and 4.3.0", (1, 0)),
        (RED | {"issues": (replace(KNOWN, fixed=()),)}, "known: KAFKA-20685, not fixed yet", (1, 0)),
        (RED | {"unexplained": {"lost-record": 3}}, "unknown", (1, 1)),
        (RED | {"issues": (KNOWN,), "unexplained": {"lost-record": 1}}, "unknown", (1, 1)),
        (RED | {"causes": (CAUSE,)}, "no release is to blame: the store is gone", (1, 1)),
        (RED | {"causes": (CAUSE,), "unexplained": {"lost-record": 1}}, "unknown", (1, 1)),
        (
            RED | {"causes": (CAUSE,), "issues": (KNOWN,)},
            "known: KAFKA-20685, fixed in 4.2.2 and 4.3.0; and no release is to blame: the store is gone",
            (1, 1),
        ),
        ({"judgement": Judgement.INCONCLUSIVE}, "", (3, 3)),
        ({}, "", (0, 0)),
    ],
)
def test_a_red_is_known_if_known_issues_explain_all_of_it(fields, explained, codes):
    found = on_release(**fields)
    answer = an_app_answer(found, on_release())
    assert found.explained == explained
    assert (answer.exit_code(), answer.exit_code(known_is_ok=True)) == codes


def test_the_nightly_report_says_what_it_is_and_what_to_do():
    red = on_release(**RED, streams="4.1.2", reason="3 lost-record.", issues=(KNOWN,), advice="Go to 4.2.2.")
    assert complaint(an_app_answer(on_release(), red)) == (
        "shop on 4.1.2: red, known: KAFKA-20685, fixed in 4.2.2 and 4.3.0: 3 lost-record. Go to 4.2.2."
    )


@pytest.mark.parametrize(
    ("fields", "advice"),
    [
        ({"issues": (KNOWN,)}, "KAFKA-20685: Delete the directory."),
        (
            {"unexplained": {"lost-record": 3}},
            "No known issue explains 3 lost-record. It had no fault: if it is so on older releases, too (--streams), "
            "no release is to blame, but what the application does.",
        ),
        (
            {"unexplained": {"lost-record": 3}, "fault": STRUCK},
            "No known issue explains 3 lost-record. To make a finding of it, run it with",
        ),
        ({"causes": (CAUSE,)}, "Give it the name that it had."),
        ({"causes": (CAUSE,), "unexplained": {"stuck": 1}}, "No known issue explains 1 stuck."),
        ({"unexplained": {"lost-record": 3}, "concerned": ("KAFKA-1",)}, "no explanation: KAFKA-1."),
        ({"unexplained": {"lost-record": 3}, "outputs": {}}, 'say compare = "keys"'),
        ({"unexplained": {"lost-record": 3}, "plant": Planted("batch-lost", (), 1)}, "The bug batch-lost was planted"),
    ],
)
def test_what_to_do_about_a_red_is_said(fields, advice):
    assert advice in advice_on_red(on_release(**RED, **fields), "20260101T000000-0001")


@pytest.mark.parametrize(
    ("answer", "command"),
    [
        (
            an_app_answer(on_release(streams="4.1.2"), on_release()),
            "onceproof app run folder/shop --streams 4.1.2 --streams 4.3.1 --fault pause --broker 3.9.2 --seed 1 "
            "--set pause.seconds=7",
        ),
        (
            an_app_answer(on_release(restart_on="4.4.0", plant=Planted("put-lost", (), 1)), parameters={}),
            "onceproof app run folder/shop --streams 4.3.1 --roll-to 4.4.0 --broker 3.9.2 --seed 1 --plant put-lost",
        ),
        (
            an_app_answer(on_release(), parameters={}, broker="3.9.1-claimed"),
            "onceproof app run folder/shop --streams 4.3.1 --fault pause --brokers client.properties --broker 3.9.1 "
            "--seed 1",
        ),
        (
            an_app_answer(on_release(controls=(PlantedControl("batch-lost", 1, {}, "b"),)), parameters={}),
            "onceproof app run folder/shop --streams 4.3.1 --fault pause --broker 3.9.2 --seed 1 --controls",
        ),
    ],
)
def test_the_command_repeats_the_run(answer, command):
    assert answer.command == command


@pytest.mark.parametrize(
    ("fault", "roll_to", "set_"),
    [
        ("instance-kill", None, {}),
        ("pause", None, {"pause.seconds": 7.0, "nodes": 3}),
        ("rolling-bounce", "4.3.1", {}),
        ("none", None, {}),
    ],
)
def test_the_command_of_a_trial_repeats_it(fault, roll_to, set_):
    """What is run by it has, without the fault or with it, a trial of the same parameters, and the same plant."""
    restart_on = Release.parse(roll_to) if roll_to else None
    cell = Cell("app", "DEFAULT_CONFIG", Release.parse("4.1.2"), Release.parse("3.9.1"), restart_on)
    parameters = {**set_, "application": "/any/my app", "fault": fault}
    asked = ReleaseTrials(RunFolder(Path(a_run_id())), cell, 1, 7, parameters, "put-lost")
    trials = [
        asked.make_undisturbed(1),
        asked.make_disturbed("oracle.json"),
        asked.make_control(4, "oracle.json", "record-twice"),
    ]
    for trial in trials:
        repeated, options = _asked_by(trial.command)
        assert options["folder"] == Path("/any/my app")
        found = [repeated.make_undisturbed(1), repeated.make_disturbed("oracle.json")]
        # A trial without the fault is the same whether it is one of the oracle's or comes after it.
        alike = [(one.cell, one.plant, _configured(one)) for one in found]
        assert (trial.cell, trial.plant, _configured(trial)) in alike


def _configured(trial):
    """Its parameters, without the file of its oracle; the configuration that `none` brings is none."""
    return {
        name: value for name, value in trial.parameters.items() if name != "oracle" and (name, value) != (LIKE, "none")
    }


def _asked_by(command):
    """What `app run` makes of the command."""
    options = parse_command(*shlex.split(command)[1:])
    fault = "rolling-bounce" if options["roll_to"] else options["fault"]
    own = SCENARIO.parse([*options["set_"], f"fault={fault}"])
    restart_on = Release.parse(options["roll_to"]) if options["roll_to"] else None
    cell = Cell(
        "app", "DEFAULT_CONFIG", Release.parse(options["streams"][0]), Release.parse(options["broker"]), restart_on
    )
    parameters = {**own, "application": str(options["folder"])}
    return ReleaseTrials(RunFolder(Path(a_run_id())), cell, 1, options["seed"], parameters, options["plant_"]), options
