"""The story that `onceproof demo` tells: what it says about each way a trial can end, and what it leaves."""

import json

import pytest
from rich.console import Console

from onceproof.demo import Act, ending, passing, picture
from onceproof.model.anomaly import Witness
from onceproof.model.errors import ExitCode, HarnessError
from onceproof.model.run_folder import RunFolder
from onceproof.page.report import write_trials
from onceproof.page.timeline.bands import Band
from tests.conftest import a_trial
from tests.page.test_timeline_plot import JOURNEY
from tests.specimens.files import a_plan, a_reading, an_outcome

DUPLICATE = Witness("duplicate-id", 0, None, (14,), ("output/0@50", "output/0@60"), "one key", "2 keys: 7, 9")
RED = {"anomalies": {"duplicate-id": 1}, "witnesses": (DUPLICATE,)}


def act(run, streams="3.4.0", exercised=True, **found):
    """A trial of the journey that `JOURNEY` is."""
    trial = a_trial(streams)
    folder = run.trial(trial)
    folder.path.mkdir(parents=True)
    a_plan(trial).write(folder.trial_file)
    outcome, reading = an_outcome(trial, exercised=exercised), a_reading(**found)
    outcome.write(folder.outcome_file)
    reading.write(folder.reader_file)
    folder.timeline.write_text("".join(json.dumps(event) + "\n" for event in JOURNEY))
    return Act(trial, folder, outcome, reading)


def shown_by(one):
    console = Console(record=True, width=80)
    for part in one.show():
        console.print(part, soft_wrap=isinstance(part, str))
    return console.export_text()


@pytest.fixture
def run(tmp_path):
    return RunFolder(tmp_path / "20260101T000000-0000")


def test_a_red_trial_shows_an_id_and_the_journey_of_its_task(run):
    said = shown_by(act(run, **RED))
    assert "✘ 1 duplicate-id in 5 answers" in said
    assert "ID 14 was given to 2 keys: 7, 9." in said
    assert "Task 0_0 left a thread" in said
    assert "still had its old records in its cache" in said


def test_a_green_trial_shows_the_same_journey(run):
    said = shown_by(act(run))
    assert "✔ no anomaly in 5 answers" in said
    assert "Task 0_0 left a thread" in said
    assert "cache" not in said


OTHER = {"anomalies": {"duplicate-output": 1}, "witnesses": (), "unexplained": {"duplicate-output": 0}}


def test_another_known_issue_that_strikes_by_chance_is_named(run):
    assert "another bug, KAFKA-18943, which shows here now and then" in shown_by(act(run, "3.4.1", **OTHER))
    assert "KAFKA-18943" not in shown_by(act(run, "3.9.1", **OTHER))


def test_a_trial_that_was_not_exercised_is_not_told_as_green(run):
    said = shown_by(act(run, exercised=False))
    assert "? nothing is shown" in said
    assert "The fault did not take effect: why" in said
    assert "✔" not in said


@pytest.mark.parametrize(
    ("bad", "good", "code"),
    [
        (RED, {}, ExitCode.OK),
        (RED, RED, ExitCode.ANOMALY),
        (RED, OTHER, ExitCode.OK),
        (RED, OTHER | {"unexplained": {"duplicate-output": 1}}, ExitCode.ANOMALY),
        ({}, {}, ExitCode.INCONCLUSIVE),
        (RED, {"exercised": False}, ExitCode.INCONCLUSIVE),
    ],
)
def test_the_exit_code_says_whether_it_went_as_told(run, bad, good, code):
    assert ending(act(run, **bad), act(run, "3.4.1", **good)) is code


def test_a_row_shows_what_a_thread_held_when():
    bands = [
        Band(("0_0", "one", "StreamThread-1"), "active", 0, 50),
        Band(("0_0", "one", "StreamThread-1"), "standby", 50, 100),
        Band(("0_0", "two", "StreamThread-1"), "active", 50, 50),  # too short to be seen, but shown
        Band(("0_1", "two", "StreamThread-1"), "active", 0, 100),
    ]
    console = Console(record=True, width=80)
    console.print(picture(bands, "0_0", 0, 100))
    one, two, axis, _ = console.export_text().splitlines()
    assert one.split() == ["one", "StreamThread-1", "█" * 23 + "░" * 23]
    assert two.split() == ["two", "StreamThread-1", "█"]
    assert two.index("█") == one.index("░")
    assert axis.strip().startswith("0 s")
    assert axis.strip().endswith("0.1 s")


def test_nothing_is_left_behind_but_what_explains_an_error(run):
    with passing(run):
        run.path.mkdir()
    assert not run.path.exists()
    for error, stays in ((KeyboardInterrupt(), False), (HarnessError("a broker died"), True)):
        run.path.mkdir()
        with pytest.raises(type(error)), passing(run):
            raise error
        assert run.path.exists() == stays


def test_the_page_has_both_timelines_and_needs_nothing_beside_it(run, tmp_path):
    acts = [act(run, **RED), act(run, "3.4.1")]
    write_trials(run, "KAFKA-14172", [one.trial for one in acts], tmp_path / "demo.html")
    text = (tmp_path / "demo.html").read_text()
    for one in acts:
        assert f"<h1>{one.trial.title}</h1>" in text
        assert one.trial.command in text
    assert text.count("recycled: ") >= 2
    assert str(tmp_path) not in text
    assert '<link rel="stylesheet"' not in text
    assert "src=" not in text.partition("</head>")[2]
