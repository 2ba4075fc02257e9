"""The tab *Results*: the matrix, cells, trials and Data Docs."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

from anyio.to_thread import run_sync
from fastapi import Request
from fastapi.responses import FileResponse, HTMLResponse, Response

from onceproof.model.errors import HarnessError
from onceproof.model.files import VerdictRow
from onceproof.model.run_folder import RunFolder, TrialFolder
from onceproof.page import docs
from onceproof.page.cell import cell_view, records_view, trial_view
from onceproof.page.matrix import Filters, matrix_of, minute, worst_first
from onceproof.page.runs import (
    DAG,
    NotThereError,
    check_plan,
    find_folder,
    find_trial,
    find_unfinished,
    find_verdict,
    is_within,
    run_of_dag_run,
    trials_of,
    verdicts_in,
)
from onceproof.page.tabs.answers import Home, Tab, archive, show_page
from onceproof.results.matrix_query import KnownVerdicts, read_known_at, read_known_with, runs_stored, verdicts_of
from onceproof.settings import Settings

RECENT, OVER_TIME = 30, 60  # runs in the list, verdicts of a cell
tab = Tab()


@tab.page("/")
def matrix(
    request: Request,
    home: Home,
    run: str = "",
    scenario: str = "",
    verdict: str = "",
    broker: str = "",
    only: str = "",
    dag: str = DAG,
    dag_run: str = "",
) -> Response:
    """The matrix at a run, by default the newest; `dag_run` is Airflow's id of one, of the DAG `dag`."""
    if dag != DAG:
        raise NotThereError(f"Only runs of the DAG {DAG} have results.")
    if dag_run:
        run = run_of_dag_run(home.runs, dag_run)
    recent = runs_stored(home.database_url, RECENT)
    newest = recent[0].id if recent else None
    later = find_unfinished(home.runs, newest, datetime.now(UTC))
    known = _find_known(home, run or newest)
    values = {
        "recent": [replace(row, created=minute(row.created), counts=worst_first(row.counts)) for row in recent],
        "going": [row for row in later if row.under_way],
        "notices": [*(row.summary for row in later if not row.under_way), *_damage(home, known)],
        "newest": newest,
    }
    if known is None:
        if run and run not in {row.run for row in later}:
            raise NotThereError(f"There is no judged run {run!r}.")
        return show_page(request, "empty.html", run=run, **values)
    filters = Filters(run, scenario, verdict, broker, only)
    has_docs = is_within(home.runs, RunFolder(home.runs / known.run).data_docs)
    return show_page(
        request, "matrix.html", matrix=matrix_of(known, filters), filters=filters, has_docs=has_docs, **values
    )


def _find_known(home: Settings, run: str | None) -> KnownVerdicts | None:
    """The run, as it is stored or else as its folder has it."""
    if run is None:
        return None
    known = read_known_at(home.database_url, run)
    if known is None:
        try:
            folder = find_folder(home.runs, run)
        except NotThereError:
            return None
        if folder.verdicts_file.exists():
            check_plan(folder)
            verdicts_in(folder)
            return read_known_with(folder, home.database_url)
    return known


def _damage(home: Settings, known: KnownVerdicts | None) -> Iterator[str]:
    """Why the cells of a run cannot be opened, if they cannot."""
    if known is None:
        return
    try:
        verdicts_in(find_folder(home.runs, known.run))
    except NotThereError as error:
        yield f"{error} Its verdicts are those of the results database."
    except HarnessError:
        yield f"The verdicts in the folder of run {known.run} cannot be read; these are the results database's."


@tab.page("/runs/{run}/cells/{cell}")
def cell(request: Request, home: Home, run: str, cell: str) -> Response:
    """A cell of a run."""
    folder, verdict = _find_judged(home, run, cell)
    view = cell_view(folder, verdict, verdicts_of(home.database_url, verdict.as_cell, OVER_TIME))
    return show_page(request, "cell.html", cell=view)


def _find_judged(home: Settings, run: str, cell: str) -> tuple[RunFolder, VerdictRow]:
    folder = find_folder(home.runs, run)
    verdict = find_verdict(folder, cell)
    if not trials_of(folder, cell):
        raise NotThereError(f"The plan of run {run} has no trial of {cell}.")
    return folder, verdict


@tab.page("/runs/{run}/cells/{cell}/evidence.zip")
async def evidence(request: Request, home: Home, run: str, cell: str) -> Response:
    """The archive of a cell."""
    folder, _ = await run_sync(_find_judged, home, run, cell)
    return await archive(request, home, folder, cell)


@tab.page("/runs/{run}/cells/{cell}/witnesses/{witness}")
def records(request: Request, home: Home, run: str, cell: str, witness: str) -> Response:
    """The records around a witness."""
    folder, verdict = _find_judged(home, run, cell)
    view = records_view(folder, verdict, int(witness)) if witness.isdecimal() else None
    if view is None:
        raise NotThereError(f"{cell} of run {run} has no witness {witness!r}.")
    return show_page(request, "records.html", view=view)


@tab.page("/runs/{run}/trials/{trial}")
def trial(request: Request, home: Home, run: str, trial: str) -> Response:
    """A trial of a run."""
    folder = find_folder(home.runs, run)
    found = find_trial(folder, trial)
    try:
        verdict = find_verdict(folder, found.cell.key)
    except NotThereError:  # not judged yet
        verdict = None
    errors = verdict.errors if verdict else {}
    view = trial_view(folder, errors, found, docs.pages_by_trial(folder).get(found.title, ()))
    of_cell = {"key": found.cell.key, "title": found.cell.title, "is_judged": verdict is not None}
    return show_page(request, "trial.html", run=run, cell=of_cell, trial=view)


def _trial_folder(home: Home, run: str, trial: str) -> TrialFolder:
    folder = find_folder(home.runs, run)
    find_trial(folder, trial)
    return folder.trial(trial)


tab.timeline("/runs/{run}/trials/{trial}/timeline.json", _trial_folder)


@tab.page("/runs/{run}/data_docs/{path:path}")
def data_docs(home: Home, run: str, path: str) -> Response:
    """A file of the Data Docs."""
    folder = find_folder(home.runs, run)
    file = docs.find_page(folder, path or folder.data_docs.name)
    headers = {"Content-Security-Policy": docs.POLICY}
    if file.suffix == ".html":
        return HTMLResponse(docs.with_way_back(folder, file), headers=headers)
    return FileResponse(file, media_type=docs.content_type(file), headers=headers)
