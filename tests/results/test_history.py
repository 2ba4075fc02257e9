"""What a run changed, derived from the cells alone; and the same from each database, and by the command."""

import json
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from onceproof import cli
from onceproof.atlas import shipped
from onceproof.model.cell import Cell
from onceproof.model.errors import ExitCode, UsageError
from onceproof.model.files import VerdictRow
from onceproof.model.json_file import write_json
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.model.verdict import Verdict
from onceproof.pipeline.run import Finished
from onceproof.results.database import store_run
from onceproof.results.history import (
    KINDS,
    JudgedCell,
    JudgedRun,
    cells_over_time,
    changes,
    changes_of,
    is_named,
    read_runs,
    usual_seconds,
)
from onceproof.results.table import cells_table, change_line, history_table
from onceproof.settings import get_settings
from tests.specimens.files import a_verdict


def cell(streams="3.8.1", scenario="quota", variant="DEFAULT_CONFIG", restart_on=None, broker="3.9.2"):
    restart = Release.parse(restart_on) if restart_on else None
    return Cell(scenario, variant, Release.parse(streams), Release.parse(broker), restart)


def judged(verdict="clean", seconds=10.0, of=None, run="?"):
    return JudgedCell(run, of or cell(), Verdict(verdict), int(verdict == "known"), 1, seconds, ())


def runs_of(*cells_of_runs):
    """Runs, given oldest first, in the form of the history."""
    made = [
        JudgedRun(f"2026010{n}T000000-0000", f"2026-01-0{n}T00:00:00+00:00", "seed", "/runs", tuple(cells))
        for n, cells in enumerate(cells_of_runs, 1)
    ]
    return made[::-1]


def last_changes(*cells_of_runs):
    runs = runs_of(*cells_of_runs)
    return [change.kind for change in changes(runs)[runs[0].id]]


@pytest.mark.parametrize(
    ("before", "now", "kinds"),
    [
        ("clean", "known", ["newly red"]),
        ("avoided", "regression", ["newly red"]),
        ("inconclusive", "known", ["newly red"]),
        ("known", "regression", ["newly unexplained"]),
        ("regression", "known", ["newly explained"]),
        ("known", "clean", ["newly green"]),
        ("inconclusive", "clean", ["newly green"]),
        ("avoided", "clean", ["newly green"]),
        ("known", "avoided", ["newly avoided"]),
        ("clean", "inconclusive", ["newly inconclusive"]),
        ("clean", "error", ["newly in error"]),
        ("error", "inconclusive", ["newly inconclusive"]),
    ],
)
def test_a_verdict_of_another_kind_is_a_change(before, now, kinds):
    assert last_changes([judged(before)], [judged(now)]) == kinds


@pytest.mark.parametrize("verdict", list(Verdict))
def test_the_same_verdict_is_none(verdict):
    assert last_changes([judged(verdict)], [judged(verdict)]) == []


def test_the_last_run_that_had_the_cell_counts_not_the_last_run():
    other = judged("known", of=cell("3.9.1"))
    assert last_changes([judged("clean")], [judged("known")], [other], [judged("known")]) == []
    assert last_changes([judged("clean")], [judged("known")], [other], [judged("clean")]) == ["newly green"]


@pytest.mark.parametrize(
    "other",
    [
        cell("3.8.0"),
        cell(scenario="crash"),
        cell(variant="X"),
        cell(restart_on="3.9.1"),
        cell(broker="3.8.1"),
    ],
    ids=lambda other: other.key,
)
def test_cells_are_the_same_if_all_of_them_is(other):
    assert last_changes([judged("known")], [judged("clean", of=other)]) == ["new cell"]
    assert last_changes([judged("known", of=other)], [judged("clean", of=other)]) == ["newly green"]


def test_the_first_run_has_nothing_to_be_compared_with():
    assert last_changes([judged("known"), judged("clean", of=cell("3.9.1"))]) == []


@pytest.mark.parametrize(
    ("past", "now", "slower"),
    [
        ([10.0], 15.0, True),
        ([10.0], 14.9, False),  # not half as long again
        ([4.0], 8.9, False),  # not 5 s
        ([20.0], 29.0, False),
        ([10.0, 10.0, 60.0], 16.0, True),  # the median
        ([90.0, *[10.0] * 10], 16.0, True),  # of the last ten
        ([10.0] * 5 + [40.0] * 10, 41.0, False),
        ([None], 50.0, False),
        ([10.0], None, False),
        ([], 50.0, False),
    ],
)
def test_slower_means_by_half_and_by_5_s_over_the_median_of_ten(past, now, slower):
    earlier = [[judged(seconds=seconds)] for seconds in past] or [[judged(of=cell("3.9.1"))]]
    assert ("slower" in last_changes(*earlier, [judged(seconds=now)])) is slower


def test_errors_are_neither_slow_nor_usual():
    assert last_changes([judged("error", 1.0)], [judged("error", 99.0)]) == []
    assert usual_seconds([judged(seconds=10.0), judged("error", 0.0)]) == 10.0


def test_changes_are_told_the_worst_first_and_one_a_line():
    a, b, c = cell("3.8.1"), cell("3.9.1", restart_on="4.1.0"), cell("4.0.0", broker="4.0.0")
    runs = runs_of(
        [judged("known", of=a), judged("clean", of=b, seconds=10.0)],
        [judged("clean", of=a), judged("known", of=b, seconds=61.26), judged("clean", of=c)],
    )
    found = changes(runs)[runs[0].id]
    assert [change_line(change.to_dict()) for change in found] == [
        "newly red: 3.9.1 → 4.1.0 quota DEFAULT_CONFIG",
        "newly green: 3.8.1 quota DEFAULT_CONFIG",
        "slower: 3.9.1 → 4.1.0 quota DEFAULT_CONFIG, 61.3 s a trial instead of 10.0",
        "new cell: 4.0.0 quota DEFAULT_CONFIG (broker 4.0.0)",
    ]
    assert {change.kind for change in found} <= set(KINDS)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("quota", True),
        ("3.8.1 Quota", True),
        ("default 3.8", True),
        ("quota-DEFAULT_CONFIG-s3.8.1-b3.9.2", True),
        ("3.9.2", False),  # the broker, which most cells have in common
        ("3.8.1 crash", False),
    ],
)
def test_a_cell_is_named_by_words_or_by_its_key(text, named):
    assert is_named(cell(), text) is named


def test_the_last_runs_with_a_cell_are_shown_despite_others():
    runs = runs_of([judged("known")], [judged()], [judged(of=cell("3.9.1"))], [judged("error")])
    over_time = cells_over_time(runs, "3.8.1", 2)
    assert [(run.id[:8], found.verdict) for run, found in over_time[cell()]] == [
        ("20260104", "error"),
        ("20260102", "clean"),
    ]
    with pytest.raises(UsageError, match="named by 'crash'"):
        cells_over_time(runs, "crash", 2)


def rendered(table):
    console = Console(width=200, highlight=False, file=None)
    with console.capture() as captured:
        console.print(table)
    return captured.get()


def test_a_table_of_runs_has_counts_and_changes():
    new = [judged(of=cell(f"4.0.{n}")) for n in range(3)]
    runs = runs_of([judged("clean")], [judged("regression"), *new])
    found = changes(runs)
    shown = rendered(history_table([run.to_dict(found[run.id]) for run in runs]))
    for words in ("20260102T000000-0000", "2026-01-02 00:00", "✘✘ 1", "✔ 3", "newly red: 3.8.1 quota", "3 new cells"):
        assert words in shown


def test_a_table_of_cells_has_a_column_for_each_run():
    a, b = cell("3.8.1"), cell("3.9.1")
    runs = runs_of(
        [judged("known", of=a)], [judged("clean", of=a), judged("regression", of=b)], [judged("error", of=a)]
    )
    reported = [
        {**c.to_dict(), "verdicts": [{"created": run.created, **{**v.to_dict(), "run": run.id}} for run, v in past]}
        for c, past in cells_over_time(runs, "quota", 9).items()
    ]
    shown = rendered(cells_table(reported))
    assert "✘  ✔  !" in shown
    assert "·  ✘✘ ·" in shown


def judged_run(home, number, verdict, seconds=10.0, streams="3.8.1"):
    """The folder of a run of one cell, as far as storing it needs."""
    run = RunFolder(home / f"2026010{number}T000000-000{number}")
    write_json(run.run_file, {"matrix": "seed", "created": f"2026-01-0{number}T00:00:00+00:00", "trials": []})
    row = a_verdict(cell(streams), verdict, seconds=seconds, issues=("KAFKA-17455",))
    VerdictRow.write_all(run.verdicts_file, [row])
    return run


def test_the_database_tells_the_history(database_url, tmp_path):
    for number, verdict in ((2, "known"), (1, "clean"), (3, "known")):  # stored late is not run late
        store_run(judged_run(tmp_path, number, verdict), database_url)
    runs = read_runs(database_url)
    assert [run.id[:8] for run in runs] == ["20260103", "20260102", "20260101"]
    assert (runs[0].matrix, runs[0].counts) == ("seed", {"known": 1})
    [found] = runs[0].cells
    assert (found.cell, found.run, found.seconds, found.issues) == (cell(), runs[0].id, 10.0, ("KAFKA-17455",))
    assert [[change.kind for change in of_run] for of_run in changes(runs).values()] == [[], ["newly red"], []]


def test_a_run_is_compared_whether_it_is_stored_or_not(database_url, tmp_path):
    store_run(judged_run(tmp_path, 1, "clean"), database_url)
    store_run(judged_run(tmp_path, 3, "error"), database_url)  # later than the one that is asked for
    run = judged_run(tmp_path, 2, "known", 20.0)
    reported: list[dict[str, Any]] = [change.to_dict() for change in changes_of(run, database_url)]
    assert [(change["change"], change["before"]["verdict"]) for change in reported] == [
        ("newly red", "clean"),
        ("slower", "clean"),
    ]
    assert reported[1]["usual_seconds"] == 10.0
    store_run(run, database_url)
    assert [change.to_dict() for change in changes_of(run, database_url)] == reported


def test_to_look_does_not_make_a_database(tmp_path):
    assert read_runs(f"sqlite:///{tmp_path}/results.db") == []
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def onceproof(database_url, tmp_path, monkeypatch):
    """The command in this process, on the database and without an atlas; returns what it prints and its exit code."""
    monkeypatch.setattr(shipped, "read_shipped", lambda: ())
    monkeypatch.setenv("ONCEPROOF_DATABASE_URL", database_url)
    monkeypatch.setenv("ONCEPROOF_HOME", str(tmp_path))
    get_settings.cache_clear()

    def invoke(*arguments):
        done = CliRunner().invoke(cli.app, arguments, catch_exceptions=False)
        return done.stdout, done.exit_code

    yield invoke
    get_settings.cache_clear()


def test_the_command_shows_runs_and_cells(onceproof, database_url, tmp_path):
    for number, verdict in ((1, "clean"), (2, "known"), (3, "known")):
        store_run(judged_run(tmp_path, number, verdict), database_url)
    assert "newly red: 3.8.1 quota DEFAULT_CONFIG" in onceproof("results", "history")[0]
    answer = json.loads(onceproof("results", "history", "--json", "--limit", "2")[0])["runs"]
    assert [(run["run"][:8], run["counts"], len(run["changes"])) for run in answer] == [
        ("20260103", {"known": 1}, 0),
        ("20260102", {"known": 1}, 1),
    ]
    assert "✔  ✘  ✘" in onceproof("results", "history", "--cell", "3.8.1 quota")[0]
    [of_cell] = json.loads(onceproof("results", "history", "--cell", "quota", "--json")[0])["cells"]
    assert (of_cell["cell"], of_cell["scenario"]) == (cell().key, "quota")
    assert [verdict["verdict"] for verdict in of_cell["verdicts"]] == ["known", "known", "clean"]


def test_the_command_says_that_there_is_nothing(onceproof):
    assert onceproof("results", "history") == ("No run is stored yet.\n", 0)
    assert onceproof("results", "history", "--cell", "quota", "--json") == ('{"cells": []}\n', 0)


def test_a_run_tells_what_it_changed(onceproof, database_url, tmp_path, monkeypatch):
    store_run(judged_run(tmp_path, 1, "clean"), database_url)
    run = judged_run(tmp_path, 2, "known")
    monkeypatch.setattr("onceproof.pipeline.run.run", lambda request, **_: Finished(run, ExitCode.OK, ()))
    said, code = onceproof("run")
    assert code == 0
    assert "\nnewly red: 3.8.1 quota DEFAULT_CONFIG\n" in said
    assert [change["change"] for change in json.loads(onceproof("run", "--json")[0])["changes"]] == ["newly red"]


def test_an_unreadable_history_keeps_the_verdicts(onceproof, tmp_path, monkeypatch):
    monkeypatch.setenv("ONCEPROOF_DATABASE_URL", "postgresql+psycopg://127.0.0.1:1/none?connect_timeout=5")
    get_settings.cache_clear()
    run = judged_run(tmp_path, 1, "known")
    monkeypatch.setattr("onceproof.pipeline.run.run", lambda request, **_: Finished(run, ExitCode.OK, ()))
    said, code = onceproof("run", "--json")
    answer = json.loads(said)
    assert (code, answer["changes"], answer["verdicts"][0]["verdict"]) == (0, None, "known")
    assert "What changed is not known" in answer["failures"][0]
