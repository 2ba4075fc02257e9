"""The page without a server: the matrix in the terminal, or a run or a search in one file for people without access."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from onceproof.model.cell import Trial
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.files import VerdictRow
from onceproof.model.json_file import encode, read_json, replacing
from onceproof.model.run_folder import RunFolder, TrialFolder
from onceproof.page import coverage
from onceproof.page.cell import cell_view, records_view, timeline_json, trial_view
from onceproof.page.exploring import SearchView, find_trial, finding_view, line_view, search_view
from onceproof.page.matrix import Filters, MatrixView, Square, matrix_of
from onceproof.page.rendering import FileLinks, inline, render
from onceproof.page.runs import NotThereError, find_folder, trials_of
from onceproof.results.matrix_query import read_known_at, read_known_with, verdicts_of
from onceproof.results.redaction import Redaction
from onceproof.results.table import style

OVER_TIME = 30  # verdicts of a cell
THEMES = ("light", "dark")


@dataclass(frozen=True)
class _WithinReport(FileLinks):
    """Links of a self-contained file: to the cells that are in it."""

    run: str

    def matrix(self, **query: str) -> str | None:
        return None if query else self.base

    def _of_run(self, run: str, *path: str) -> str | None:
        return f"#{path[1]}" if run == self.run and path[0] == "cells" and len(path) == 2 else None


class _WithinSearch(FileLinks):
    """Links of a self-contained file: to the findings that are in it."""

    def finding(self, search: str, number: int) -> str | None:  # noqa: ARG002 - there is one search
        return f"#finding-{number}"

    def link_explored(self, search: str, number: int) -> str | None:  # noqa: ARG002 - no trial has a page of its own
        return None


def show_run(run: RunFolder, url: str) -> MatrixView:
    """The matrix of a judged run alone, without what is stale.

    Raises:
        HarnessError: the run is damaged, or the database refuses.
    """
    return matrix_of(read_known_at(url, run.run_id) or read_known_with(run, url), Filters(only="run"))


def terminal(matrix: MatrixView) -> Iterator[Table | Text]:
    """The matrix for a terminal, its headline first."""
    yield Text.assemble(style(matrix.worst, f" {matrix.worst.sign} "), f" {matrix.headline}", style="bold")
    yield Text(f"Run {matrix.run}, {matrix.when}, matrix {matrix.name}")
    for block in matrix.blocks:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=block.title, title_justify="left")
        table.add_column("")
        for column in block.columns:
            table.add_column(column, justify="center", no_wrap=True)
        for scenario, rows in block.scenarios.items():
            table.add_row(Text(scenario, "bold"))
            for row in rows:
                table.add_row(Text(f"  {row.name} {row.broker}".rstrip()), *map(_square, row.squares))
        yield table
    for change in matrix.changes:
        yield Text(f"{change['kind']}: {change['line']}")
    yield Text("  ").join(style(v, f"{v.sign} {v} {count}") for v, count in matrix.counts.items())


def _square(square: Square | None) -> Text:
    if square is None:
        return Text("")
    return style(square.verdict, f"{square.sign} {square.rate}{' Δ' if square.change else ''}")


def write_report(run: RunFolder, url: str, target: Path) -> None:
    """Write matrix, cells and timelines of a judged run as one self-contained file.

    It has no path, host, account or secret of this machine, and is written as a whole or not at all.

    Raises:
        UsageError: the target is a folder.
        HarnessError: the run is damaged, the database refuses, or the target cannot be written.
    """
    _check(target)
    matrix, verdicts = show_run(run, url), VerdictRow.read_all(run.verdicts_file)
    cells = [_cell(run, url, verdict) for verdict in verdicts]
    redaction = redaction_of(run, verdicts, run.trials())
    page = render(
        "report.html",
        _WithinReport("#headline", run.run_id),
        matrix=matrix,
        cells=[redaction.data(cell) for cell in cells],
        has_docs=False,
        **_assets(),
    )
    _write(page, target)


def write_search(search: SearchView, target: Path) -> None:
    """Write a search with its findings, each with the timeline of a trial that shows it, as `write_report` does.

    Raises:
        UsageError: the target is a folder.
        HarnessError: the target cannot be written.
    """
    _check(target)
    redaction = redaction_of(search.folder.run, search.lines, search.kept)
    reached = {theme: coverage.figure(search, dark=theme == "dark").to_plotly_json() for theme in THEMES}
    whole = {**search_view(search, "1"), "lines": list(map(line_view, reversed(search.lines)))}
    page = render(
        "search_alone.html",
        _WithinSearch("#search"),
        search=redaction.data(whole),
        reached=redaction.data(reached),
        findings=[redaction.data(_finding(search, number)) for number in search.findings],
        **_assets(),
    )
    _write(page, target)


def _finding(search: SearchView, number: int) -> dict[str, object]:
    """A finding with the trial that shows it, or why that cannot be shown."""
    view = {**finding_view(search, str(number)), "trial": None, "figures": None, "problem": ""}
    if view["evidence"] is None:
        return view
    try:
        trial, folder = find_trial(search, str(view["evidence"]))
        view["trial"] = encode(trial)
        return {**view, "figures": _figures(folder)}
    except (HarnessError, NotThereError) as error:
        return {**view, "problem": str(error)}


def write_trials(run: RunFolder, title: str, trials: Sequence[Trial], target: Path) -> None:
    """Write trials that were driven, judged or not, with their timelines as one file, as `write_report` does.

    Raises:
        HarnessError: a file of a trial is damaged, or the target cannot be written.
    """
    redaction = Redaction.of(run)
    shown = [
        redaction.data({**encode(trial_view(run, {}, trial, ())), "figures": _figures(run.trial(trial))})
        for trial in trials
    ]
    _write(render("trials_alone.html", _WithinReport("#", run.run_id), title=title, trials=shown, **_assets()), target)


def _check(target: Path) -> None:
    if target.is_dir():
        raise UsageError(f"{target} is a folder: name a file for the report.")


def _write(page: str, target: Path) -> None:
    with replacing(target, named=True) as draft:
        draft.write_text(page, encoding="utf-8")


def _assets() -> dict[str, object]:
    """Style and scripts of a self-contained page."""
    return {"style": inline("page.css"), "scripts": [inline("page.js"), inline("plotly.min.js")]}


def _figures(folder: TrialFolder) -> dict[str, object]:
    return {theme: json.loads(timeline_json(folder, dark=theme == "dark")) for theme in THEMES}


def redaction_of(run: RunFolder, shown: Sequence[Any], trials: Iterable[Trial]) -> Redaction:
    """The redaction that knows this machine, and every secret that is shown or that a trial was configured with."""
    redaction = Redaction.of(run)
    redaction.learn(encode(shown))
    for folder in map(run.trial, trials):
        for file in (folder.trial_file, folder.outcome_file, folder.reader_file):
            with suppress(HarnessError):  # one that is missing or damaged is not shown either
                redaction.learn(read_json(file))
    return redaction


def _cell(run: RunFolder, url: str, verdict: VerdictRow) -> dict[str, object]:
    """A cell with its timeline, and with the records around the first witness of each anomaly."""
    try:
        trials = trials_of(find_folder(run.path.parent, run.run_id), verdict.cell)
    except NotThereError as error:
        raise HarnessError(str(error)) from None
    view = encode(cell_view(run, verdict, verdicts_of(url, trials[0].cell, OVER_TIME)))
    for anomaly in view["anomalies"]:
        for witness in anomaly["first"][:1]:
            witness["records"] = encode(records_view(run, verdict, witness["number"]))
    try:
        return {**view, "problem": "", "figures": _figures(run.trial(view["shown"]))}
    except HarnessError as error:
        return {**view, "problem": str(error), "figures": None}
