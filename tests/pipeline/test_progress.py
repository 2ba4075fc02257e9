"""Where a run stands, from task instances and the run folder."""

import io

import pytest
from rich.console import Console

from onceproof.model.matrix import Request
from onceproof.model.run_folder import RunFolder
from onceproof.model.timeline import Timeline
from onceproof.pipeline import steps
from onceproof.pipeline.progress import Display, Progress, list_failed_tasks, progress_of
from tests.specimens.files import a_reading, an_outcome

TITLE = "3.3.1 × DEFAULT_CONFIG (enumerator, broker 3.9.2)"


@pytest.fixture
def run(lab) -> RunFolder:
    request = Request("first-look", ("3.3.1",), scenarios=("enumerator",), variants=("DEFAULT_CONFIG",), trials=2)
    return steps.plan("20261121T084500-3f2a", request)


def task(name: str, state: str | None, index: int = -1, end: str = "") -> dict[str, object]:
    return {"task_id": name, "state": state, "map_index": index, "end_date": end}


def drive(state: str | None) -> list[dict[str, object]]:
    return [task("drive", state, 0)]


@pytest.mark.parametrize(
    ("state", "phase"),
    [
        (None, "waiting"),
        ("queued", "waiting"),
        ("running", "trial 1 of 2: starting"),
        ("success", "done"),
        ("failed", "failed"),
        ("upstream_failed", "failed"),
    ],
)
def test_the_phase_of_a_cell(run, state, phase):
    if phase == "done":
        last = list(run.trials())[-1]
        an_outcome(last).write(run.trial(last).outcome_file)
    assert progress_of(run, drive(state)).cells == {TITLE: phase}


def test_a_cell_that_is_driven_tells_the_phase_of_its_trial(run):
    first, second = run.trials()
    an_outcome(first).write(run.trial(first).outcome_file)
    timeline = Timeline(run.trial(second).timeline)
    timeline.add("driver", "phase", name="scale out")
    timeline.add("one", "state", state="RUNNING")
    assert progress_of(run, drive("running")).cells == {TITLE: "trial 2 of 2: scale out"}


def test_a_cell_that_gets_a_further_trial_is_not_done(run):
    first, second = run.trials()
    for trial in (first, second):
        an_outcome(trial).write(run.trial(trial).outcome_file)
    assert progress_of(run, drive("success")).cells == {TITLE: "done"}
    run.add_trial(steps.new_trial(run, first.cell, 3))
    assert progress_of(run, drive("success")).cells == {TITLE: "trial 3 of 3: starting"}


def read(run, trial, **found):
    an_outcome(trial, **found.pop("outcome", {})).write(run.trial(trial).outcome_file)
    a_reading(**found).write(run.trial(trial).reader_file)


DUPLICATES = {"duplicate-id": 6_313}


@pytest.mark.parametrize(
    ("found", "answer"),
    [
        ({"anomalies": DUPLICATES, "unexplained": {}}, "red, 6,313 duplicate-id, known: KAFKA-14172"),
        ({"anomalies": DUPLICATES, "unexplained": {"duplicate-id": 2}}, "red, 6,313 duplicate-id"),
        ({}, "no anomaly"),
        ({"outcome": {"exercised": False}}, "not exercised"),
        ({"outcome": {"void": "The machine stood still."}, "anomalies": DUPLICATES}, None),
    ],
    ids=["known", "not all of it known", "green", "not exercised", "void"],
)
def test_the_first_answer_comes_with_the_first_trial(run, found, answer):
    first, _ = run.trials()
    assert progress_of(run, drive("running")).answers == {}
    read(run, first, **found)
    shown = {TITLE: f"{answer}; Spark: pending"} if answer else {}
    assert progress_of(run, drive("running")).answers == shown


def test_answers_of_a_cell_add_up(run):
    for trial in run.trials():
        read(run, trial, anomalies=DUPLICATES, unexplained={"duplicate-id": 1})
    assert progress_of(run, drive("success")).answers == {TITLE: "red, 12,626 duplicate-id; Spark: pending"}


def test_before_there_is_a_plan_there_are_only_stages(tmp_path):
    progress = progress_of(RunFolder(tmp_path), [task("plan", "running"), task("gate", None)])
    assert progress == Progress(("plan",), {})


def test_spark_is_under_way_when_trials_are_over(run):
    waits = [task("collect_and_check", "running"), task("add_trials", "running")]
    assert progress_of(run, waits).stages == ("add_trials",)
    steps.end_trials(run)
    assert progress_of(run, waits[:1]).stages == ("collect_and_check",)


def test_what_failed_by_itself_is_told_first_things_first():
    instances = [
        task("publish", "failed", end="2026-11-21T10:00:02"),
        task("collect_and_check", "failed", end="2026-11-21T10:00:01"),
        task("validate", "upstream_failed"),
        task("drive", "failed", 0, end="2026-11-21T10:00:00"),
        task("gate", "failed", end="2026-11-21T10:00:03"),
    ]
    assert [t["task_id"] for t in list_failed_tasks(instances)] == ["collect_and_check", "publish"]


def test_without_a_terminal_each_change_is_one_line():
    out = io.StringIO()
    with Display(Console(file=out, width=200)) as display:
        for stages, phase in [
            (("plan",), "waiting"),
            (("prepare",), "waiting"),
            ((), "first bulk"),
            ((), "rebalance"),
            (("collect_and_check",), "done"),
            (("collect_and_check",), "done"),
        ]:
            display.show(Progress(stages, {"cell": phase}))
    assert [line.split("s  ", 1)[1] for line in out.getvalue().splitlines()] == [
        "plan",
        "prepare",
        "cell: driving",
        "collect_and_check",
        "cell: done",
    ]


def test_an_answer_replaces_the_line_that_says_done():
    out = io.StringIO()
    with Display(Console(file=out, width=200)) as display:
        for phase, answers in [
            ("first bulk", {}),
            ("trial 2 of 2: starting", {"cell": "no anomaly"}),
            ("trial 2 of 2: starting", {"cell": "no anomaly"}),
            ("done", {"cell": "red"}),
            ("done", {"cell": "red"}),
        ]:
            display.show(Progress((), {"cell": phase}, answers))
    lines = [line.split("s  ", 1)[1] for line in out.getvalue().splitlines()]
    assert lines == ["cell: driving", "cell: no anomaly", "cell: red"]


def test_on_a_terminal_an_answer_is_shown_with_its_cell():
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=100, height=8)
    with Display(console) as display:
        console.print(display._table(Progress((), {"one": "done", "two": "rebalance"}, {"one": "red, 5 wrong-id"})))
    assert "red, 5 wrong-id" in out.getvalue()


def test_on_a_terminal_what_is_under_way_is_at_the_top():
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=100, height=8)
    cells = {f"cell {n}": "waiting" for n in range(50)} | {"busy": "rebalance", "bad": "failed"}
    with Display(console) as display:
        display.show(Progress((), cells))
        console.print(display._table(Progress((), cells)))
    shown = [line for line in out.getvalue().splitlines() if "busy" in line or "bad" in line or "cell 4" in line]
    assert "busy" in shown[0]
    assert "bad" in shown[1]
    assert not any("cell 49" in line for line in shown)
    assert "1/52 cells" in out.getvalue()
