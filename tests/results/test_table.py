"""The tables in the terminal: whatever was written into a run is shown as it is."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from onceproof.cli import terminal, trials
from onceproof.model.anomaly import Witness
from onceproof.model.cell import Cell
from onceproof.model.json_file import encode
from onceproof.model.release import Release
from onceproof.model.verdict import Verdict
from onceproof.results.table import cells_table, history_table, verdict_table
from tests.specimens.files import a_verdict, an_answer

WILD = "[/srv/x] [bold]y[/]"
ROW = a_verdict(Cell("enumerator", WILD, Release(3, 8, 1), Release(3, 9, 1)), "clean", sentence=WILD)
VERDICT = encode(ROW)


def shown(table):
    written = io.StringIO()
    Console(file=written, width=200).print(table)
    return written.getvalue()


@pytest.mark.parametrize("verdict", ["clean", "error", "inconclusive"])
def test_brackets_of_others_are_no_markup(verdict):
    text = shown(verdict_table([replace(ROW, verdict=Verdict(verdict))], WILD))
    assert text.count(WILD) == (2 if verdict == "clean" else 3)


def test_brackets_in_the_history_are_no_markup():
    run = {"run": "r", "created": "2026-11-21T12:36:11", "matrix": WILD, "counts": {"clean": 1}, "changes": []}
    assert WILD in shown(history_table([run]))
    verdicts = [{**VERDICT, "run": "r", "created": "2026-11-21T12:36:11", "issues": [WILD]}]
    assert shown(cells_table([{**VERDICT, "verdicts": verdicts}])).count(WILD) == 2


@pytest.mark.parametrize(
    ("verdict", "excluded", "issues", "seen"),
    [
        ("clean", None, [], "no anomaly"),
        ("clean", 0.95, [], "no anomaly; excludes bugs in ≥ 95 % of trials"),
        ("provisional", 0.6316, [], "no anomaly; excludes bugs in ≥ 63 % of trials"),
        (
            "fixed",
            0.95,
            ["KAFKA-14172"],
            "no anomaly, though affected by KAFKA-14172; excludes bugs in ≥ 95 % of trials",
        ),
        ("fixed", None, ["KAFKA-14172"], "no anomaly, though affected by KAFKA-14172"),
    ],
)
def test_a_green_cell_tells_what_its_green_is_worth(verdict, excluded, issues, seen):
    text = shown(
        verdict_table([replace(ROW, verdict=Verdict(verdict), excluded_rate=excluded, issues=tuple(issues))], "")
    )
    assert seen in " ".join(text.split())
    assert f"{Verdict(verdict).sign} {verdict} " in text


@pytest.mark.parametrize("is_terminal", [True, False])
def test_brackets_in_a_phase_are_no_markup(monkeypatch, is_terminal):
    written = io.StringIO()
    console = Console(file=written, width=200, force_terminal=is_terminal, color_system=None)
    monkeypatch.setattr(terminal, "err", console)
    with terminal.progress(WILD) as report:
        report("[/phase]")
    assert is_terminal or f"{WILD}: [/phase]" in written.getvalue()


def test_brackets_in_what_a_trial_tells_are_no_markup(monkeypatch):
    written = io.StringIO()
    monkeypatch.setattr(trials, "out", Console(file=written, width=200))
    witness = Witness("duplicate-id", 0, 7, (1,), (WILD,), WILD, WILD)
    trials._print_trial(an_answer(reason=WILD, folder=WILD), [witness])
    assert written.getvalue().count(WILD) == 5


@pytest.mark.parametrize(
    ("issues", "unexplained", "said"),
    [
        (("KAFKA-20685",), {}, "known: KAFKA-20685"),
        ((), {"lost-record": 2}, "no known issue explains 2 lost-record"),
        (("KIP-889, restored (no JIRA)",), {"lost-record": 1}, "no known issue explains 1 lost-record"),
    ],
)
def test_a_trial_says_what_is_known_of_what_it_saw(capsys, issues, unexplained, said):
    trials._print_trial(an_answer(issues=issues, unexplained=unexplained), [])
    assert said in capsys.readouterr().out
