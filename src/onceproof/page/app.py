"""The results page: matrix, cells, trials, Data Docs. It only reads, and needs no other host."""

import logging
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import quote

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import (
    FileResponse,
    HTMLResponse,
    JSONResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from jinja2 import TemplateError
from starlette.exceptions import HTTPException as StarletteHTTPException

from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.files import VerdictRow
from onceproof.model.run_folder import RunFolder
from onceproof.page import coverage, docs
from onceproof.page.applications import application_release, application_trial, application_view, applications_view
from onceproof.page.cell import cell_view, records_view, timeline_json, trial_view
from onceproof.page.exploring import explored_trial, find_search, finding_view, search_view, searches_view
from onceproof.page.matrix import Filters, matrix_of, minute, worst_first
from onceproof.page.rendering import STATIC, Links, render
from onceproof.page.runs import (
    DAG,
    NotThereError,
    check_plan,
    find_folder,
    find_trial,
    find_verdict,
    is_within,
    run_of_dag_run,
    trials_of,
    unfinished,
    verdicts_in,
)
from onceproof.page.sensitivity import find_planted, find_timeline, sensitivity_view, sentence_of
from onceproof.page.upgrade import upgrade_view
from onceproof.results.evidence.archive import write_evidence
from onceproof.results.matrix_query import Known, known_at, known_with, runs_stored, verdicts_of
from onceproof.results.sensitivity import planted_trials
from onceproof.settings import Settings

LONGEST, LONGEST_PATH = 200, 1_000  # characters of a parameter, of a path in the Data Docs
RECENT, OVER_TIME = 30, 60  # runs in the list, verdicts of a cell
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
READ = ["GET", "HEAD"]
ZIP = "application/zip"
# What JSON or a table changed by somebody leads to; also a bug of ours, so the log has all of it.
DAMAGES = (AttributeError, LookupError, NotImplementedError, TypeError, ValueError, TemplateError)


async def anybody() -> None:
    """Lets everybody in: for a page that only this machine can reach."""


async def _check_sizes(request: Request) -> None:
    for name, value in (*request.query_params.multi_items(), *request.path_params.items()):
        if len(name) > LONGEST or len(value) > (LONGEST_PATH if name == "path" else LONGEST):
            raise HTTPException(400, f"The parameter {name[:40]!r} is longer than anything that could be meant.")


def create_app(settings: Settings, authorize: Callable[..., Any] = anybody, login: str | None = None) -> FastAPI:
    """The app over the runs and the results database of a home.

    Args:
        settings: where they are.
        authorize: a dependency that raises HTTPException 401 or 403 for a user who is not logged in (any more).
        login: where a browser that gets either is sent, with the path it wanted as `next`; None if nowhere.
    """
    app = FastAPI(
        title="Onceproof",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        dependencies=[Depends(authorize), Depends(_check_sizes)],
    )
    page = _Page(settings)
    routes: dict[str, Callable[..., Response]] = {
        "/": page.matrix,
        "/runs/{run}/cells/{cell}": page.cell,
        "/runs/{run}/cells/{cell}/evidence.zip": page.evidence,
        "/runs/{run}/cells/{cell}/witnesses/{witness}": page.records,
        "/runs/{run}/trials/{trial}": page.trial,
        "/runs/{run}/trials/{trial}/timeline.json": page.timeline,
        "/runs/{run}/data_docs/{path:path}": page.data_docs,
        "/upgrade": page.upgrade,
        "/sensitivity": page.sensitivity,
        "/planted/{run}/{trial}": page.planted,
        "/planted/{run}/{trial}/timeline.json": page.planted_timeline,
        "/explorations": page.explorations,
        "/explorations/{search}": page.exploration,
        "/explorations/{search}/coverage.json": page.coverage,
        "/explorations/{search}/findings/{number}": page.finding,
        "/explorations/{search}/trials/{number}": page.explored,
        "/explorations/{search}/trials/{number}/timeline.json": page.explored_timeline,
        "/applications": page.applications,
        "/applications/{run}": page.application,
        "/applications/{run}/releases/{cell}/evidence.zip": page.application_evidence,
        "/applications/{run}/trials/{trial}": page.application_trial,
        "/applications/{run}/trials/{trial}/timeline.json": page.application_timeline,
        "/static/{name}": page.static,
    }
    for path, answer in routes.items():
        app.add_api_route(path, answer, methods=READ, response_class=HTMLResponse, response_model=None)
    _handle_errors(app, login)

    @app.middleware("http")
    async def strict(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
        response = await answer(request)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    return app


def _handle_errors(app: FastAPI, login: str | None) -> None:
    async def refused(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, StarletteHTTPException) else 500
        if status in (401, 403) and login and _is_browser(request):
            wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(f"{login}?next={quote(wanted)}", 307)
        message = str(error.detail) if isinstance(error, StarletteHTTPException) else str(error)
        headers = error.headers if isinstance(error, StarletteHTTPException) else None
        return _refusal(request, status, message, headers)

    async def absent(request: Request, error: Exception) -> Response:
        return _refusal(request, 404, str(error))

    async def damaged(request: Request, error: Exception) -> Response:
        logging.getLogger(__name__).error("%s could not be shown", request.url.path, exc_info=error)
        run = request.path_params.get("run") or request.query_params.get("run")
        search = request.path_params.get("search")
        what = f"Run {run}" if run else f"Search {search}" if search else "A run"
        message = f"{what} is damaged: its files are not as they were written ({type(error).__name__}: {error})."
        return _refusal(request, 500, message)

    app.add_exception_handler(StarletteHTTPException, refused)
    app.add_exception_handler(HarnessError, refused)
    for missing in (NotThereError, UsageError):
        app.add_exception_handler(missing, absent)
    for damage in DAMAGES:
        app.add_exception_handler(damage, damaged)


def _is_browser(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")


def _refusal(request: Request, status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    if not _is_browser(request):
        return JSONResponse({"detail": message}, status, headers=headers)
    return HTMLResponse(render("error.html", _links(request), message=message), status, headers=headers)


def _links(request: Request) -> Links:
    root = request.scope.get("root_path", "")
    return Links.of(request.url.path.removeprefix(root))


class _Page:
    """The handlers of all addresses."""

    def __init__(self, settings: Settings) -> None:
        self._runs, self._url = settings.runs, settings.database_url
        self._explorations = settings.explorations
        self._archiving = Lock()

    def matrix(
        self,
        request: Request,
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
            run = run_of_dag_run(self._runs, dag_run)
        recent = runs_stored(self._url, RECENT)
        newest = recent[0].id if recent else None
        later = unfinished(self._runs, newest, datetime.now(UTC))
        known = self._known(run or newest)
        values = {
            "recent": [replace(one, created=minute(one.created), counts=worst_first(one.counts)) for one in recent],
            "going": [one for one in later if one.under_way],
            "notices": [*(one.summary for one in later if not one.under_way), *self._damage(known)],
            "newest": newest,
        }
        if known is None:
            if run and run not in {one.run for one in later}:
                raise NotThereError(f"There is no judged run {run!r}.")
            return HTMLResponse(render("empty.html", _links(request), run=run, **values))
        filters = Filters(run, scenario, verdict, broker, only)
        has_docs = is_within(self._runs, RunFolder(self._runs / known.run).data_docs)
        shown = matrix_of(known, filters)
        return HTMLResponse(
            render("matrix.html", _links(request), matrix=shown, filters=filters, has_docs=has_docs, **values)
        )

    def _known(self, run: str | None) -> Known | None:
        """The run, as it is stored or else as its folder has it."""
        if run is None:
            return None
        known = known_at(self._url, run)
        if known is None:
            try:
                folder = find_folder(self._runs, run)
            except NotThereError:
                return None
            if folder.verdicts_file.exists():
                check_plan(folder)
                verdicts_in(folder)
                return known_with(folder, self._url)
        return known

    def _damage(self, known: Known | None) -> Iterator[str]:
        """Why the cells of a run cannot be opened, if they cannot."""
        if known is None:
            return
        try:
            verdicts_in(find_folder(self._runs, known.run))
        except NotThereError as error:
            yield f"{error} Its verdicts are those of the results database."
        except HarnessError:
            yield f"The verdicts in the folder of run {known.run} cannot be read; these are the results database's."

    def cell(self, request: Request, run: str, cell: str) -> Response:
        """A cell of a run."""
        folder, verdict = self._cell(run, cell)
        view = cell_view(folder, verdict, verdicts_of(self._url, verdict.as_cell, OVER_TIME))
        return HTMLResponse(render("cell.html", _links(request), cell=view))

    def _cell(self, run: str, cell: str) -> tuple[RunFolder, VerdictRow]:
        folder = find_folder(self._runs, run)
        verdict = find_verdict(folder, cell)
        if not trials_of(folder, cell):
            raise NotThereError(f"The plan of run {run} has no trial of {cell}.")
        return folder, verdict

    def evidence(self, request: Request, run: str, cell: str) -> Response:
        """The archive of a cell, freshly made, one at a time."""
        folder, _ = self._cell(run, cell)
        return self._archive(request, folder, cell)

    def _archive(self, request: Request, folder: RunFolder, cell: str) -> Response:
        headers = {"Content-Disposition": f'attachment; filename="{quote(f"{folder.run_id}-{cell}.zip")}"'}
        if request.method == "HEAD":
            return StreamingResponse(iter(()), media_type=ZIP, headers=headers)  # its length is not known yet
        with self._archiving, tempfile.TemporaryDirectory(prefix="onceproof-") as scratch:
            content = write_evidence(folder, cell, Path(scratch) / "evidence.zip").read_bytes()
        return Response(content, media_type=ZIP, headers=headers)

    def records(self, request: Request, run: str, cell: str, witness: str) -> Response:
        """The records around a witness."""
        folder, verdict = self._cell(run, cell)
        view = records_view(folder, verdict, int(witness)) if witness.isdecimal() else None
        if view is None:
            raise NotThereError(f"{cell} of run {run} has no witness {witness!r}.")
        return HTMLResponse(render("records.html", _links(request), view=view))

    def trial(self, request: Request, run: str, trial: str) -> Response:
        """A trial of a run."""
        folder = find_folder(self._runs, run)
        found = find_trial(folder, trial)
        try:
            verdict = find_verdict(folder, found.cell.key)
        except NotThereError:  # not judged yet
            verdict = None
        view = trial_view(
            folder, verdict.errors if verdict else {}, found, docs.pages_by_trial(folder).get(found.title, ())
        )
        cell = {"key": found.cell.key, "title": found.cell.title, "is_judged": verdict is not None}
        return HTMLResponse(render("trial.html", _links(request), run=run, cell=cell, trial=view))

    def timeline(self, run: str, trial: str, theme: str = "light") -> Response:
        """The timeline of a trial, for Plotly to draw."""
        folder = find_folder(self._runs, run)
        find_trial(folder, trial)
        return Response(timeline_json(folder.trial(trial), dark=theme == "dark"), media_type="application/json")

    def upgrade(self, request: Request, current: str = "", target: str = "") -> Response:
        """The knowledge about going from one release to another."""
        view = upgrade_view(self._url, current, target)
        return HTMLResponse(render("upgrade.html", _links(request), **view), 200 if view["advice"] else 404)

    def sensitivity(self, request: Request) -> Response:
        """The planted trials, by release."""
        releases = sensitivity_view(planted_trials(self._url))
        return HTMLResponse(render("sensitivity.html", _links(request), releases=releases))

    def planted(self, request: Request, run: str, trial: str) -> Response:
        """A trial with a planted bug."""
        found = find_planted(self._url, run, trial)
        try:
            find_timeline(self._runs, found)
            has_timeline = True
        except NotThereError:
            has_timeline = False
        values = {"trial": found, "sentence": sentence_of(found), "has_timeline": has_timeline}
        return HTMLResponse(render("planted.html", _links(request), **values))

    def planted_timeline(self, run: str, trial: str, theme: str = "light") -> Response:
        """Its timeline, for Plotly to draw."""
        folder = find_timeline(self._runs, find_planted(self._url, run, trial))
        return Response(timeline_json(folder, dark=theme == "dark"), media_type="application/json")

    def explorations(self, request: Request) -> Response:
        """The page of all searches."""
        searches, damaged = searches_view(self._explorations)
        return HTMLResponse(render("searches.html", _links(request), searches=searches, damaged=damaged))

    def exploration(self, request: Request, search: str, page: str = "1") -> Response:
        """A search, with a page of its trials."""
        view = search_view(find_search(self._explorations, search), page)
        return HTMLResponse(render("search.html", _links(request), search=view))

    def coverage(self, search: str, theme: str = "light") -> Response:
        """The coverage of a search over time, for Plotly to draw."""
        drawn = coverage.figure(find_search(self._explorations, search), dark=theme == "dark")
        return Response(drawn.to_json(), media_type="application/json")

    def finding(self, request: Request, search: str, number: str) -> Response:
        """A finding of a search."""
        view = finding_view(find_search(self._explorations, search), number)
        return HTMLResponse(render("finding.html", _links(request), view=view))

    def explored(self, request: Request, search: str, number: str) -> Response:
        """A trial of a search, of which the folder was kept."""
        trial, _ = explored_trial(find_search(self._explorations, search), number)
        return HTMLResponse(render("explored_trial.html", _links(request), run=search, trial=trial))

    def explored_timeline(self, search: str, number: str, theme: str = "light") -> Response:
        """Its timeline, for Plotly to draw."""
        _, folder = explored_trial(find_search(self._explorations, search), number)
        return Response(timeline_json(folder, dark=theme == "dark"), media_type="application/json")

    def applications(self, request: Request) -> Response:
        """User applications."""
        runs, damaged = applications_view(self._runs)
        return HTMLResponse(render("applications.html", _links(request), runs=runs, damaged=damaged))

    def application(self, request: Request, run: str) -> Response:
        """The result of an application."""
        view = application_view(self._runs, run)
        return HTMLResponse(render("application.html", _links(request), view=view))

    def application_evidence(self, request: Request, run: str, cell: str) -> Response:
        """The archive of a release, freshly made."""
        return self._archive(request, application_release(self._runs, run, cell), cell)

    def application_trial(self, request: Request, run: str, trial: str) -> Response:
        """A trial of an application."""
        view, _ = application_trial(self._runs, run, trial)
        return HTMLResponse(render("application_trial.html", _links(request), run=run, trial=view))

    def application_timeline(self, run: str, trial: str, theme: str = "light") -> Response:
        """Its timeline, for Plotly to draw."""
        _, folder = application_trial(self._runs, run, trial)
        return Response(timeline_json(folder, dark=theme == "dark"), media_type="application/json")

    def data_docs(self, run: str, path: str) -> Response:
        """A file of the Data Docs."""
        folder = find_folder(self._runs, run)
        file = docs.find_page(folder, path or folder.data_docs.name)
        headers = {"Content-Security-Policy": docs.POLICY}
        if file.suffix == ".html":
            return HTMLResponse(docs.with_way_back(folder, file), headers=headers)
        return FileResponse(file, media_type=docs.content_type(file), headers=headers)

    def static(self, name: str) -> Response:
        """Style, script and Plotly."""
        if name not in STATIC:
            raise NotThereError(f"There is no file {name!r}.")
        kept = {"Cache-Control": "private, max-age=31536000, immutable"}
        return FileResponse(STATIC[name], media_type=docs.content_type(STATIC[name]), headers=kept)
