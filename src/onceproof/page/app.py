"""The results page: matrix, cells, trials, Data Docs. It only reads, and needs no other host."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote

from anyio import CapacityLimiter
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse, RedirectResponse, Response
from jinja2 import TemplateError
from starlette.exceptions import HTTPException as StarletteHTTPException

from onceproof.model.errors import HarnessError, UsageError
from onceproof.page import docs
from onceproof.page.rendering import STATIC, render
from onceproof.page.runs import NotThereError
from onceproof.page.tabs import applications, atlas, results, searches, sensitivity, upgrade
from onceproof.page.tabs.answers import READ, links_of
from onceproof.settings import Settings

AT_ONCE = 8  # requests that are answered at once, of the 40 threads that Airflow's API server has for all of its own
LONGEST, LONGEST_PATH = 200, 1_000  # characters of a parameter, of a path in the Data Docs
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
# What JSON or a table that was changed by hand leads to; also a bug of ours, so the log has all of it.
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
    app.state.settings = settings
    for tab in (results.tab, upgrade.tab, sensitivity.tab, searches.tab, applications.tab, atlas.tab):
        app.include_router(tab)
    app.add_api_route("/static/{name}", _static, methods=READ, response_model=None)
    _handle_errors(app, login)

    limiter = CapacityLimiter(AT_ONCE)

    @app.middleware("http")
    async def strict(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
        async with limiter:
            response = await answer(request)
        for name, value in HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    return app


def _handle_errors(app: FastAPI, login: str | None) -> None:
    async def refuse(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, StarletteHTTPException) else 500
        if status in (401, 403) and login and _is_browser(request):
            wanted = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(f"{login}?next={quote(wanted)}", 307)
        message = str(error.detail) if isinstance(error, StarletteHTTPException) else str(error)
        headers = error.headers if isinstance(error, StarletteHTTPException) else None
        return _refusal(request, status, message, headers)

    async def absent(request: Request, error: Exception) -> Response:
        return _refusal(request, 404, str(error))

    async def explain_damage(request: Request, error: Exception) -> Response:
        logging.getLogger(__name__).error("%s could not be shown", request.url.path, exc_info=error)
        run = request.path_params.get("run") or request.query_params.get("run")
        search = request.path_params.get("search")
        what = f"Run {run}" if run else f"Search {search}" if search else "A run"
        message = f"{what} is damaged: its files are not as they were written ({type(error).__name__}: {error})."
        return _refusal(request, 500, message)

    app.add_exception_handler(StarletteHTTPException, refuse)
    app.add_exception_handler(HarnessError, refuse)
    for missing in (NotThereError, UsageError):
        app.add_exception_handler(missing, absent)
    for damage in DAMAGES:
        app.add_exception_handler(damage, explain_damage)


def _is_browser(request: Request) -> bool:
    return "text/html" in request.headers.get("accept", "")


def _refusal(request: Request, status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    if not _is_browser(request):
        return JSONResponse({"detail": message}, status, headers=headers)
    return HTMLResponse(render("error.html", links_of(request), message=message), status, headers=headers)


def _static(name: str) -> Response:
    """Style, script and Plotly."""
    if name not in STATIC:
        raise NotThereError(f"There is no file {name!r}.")
    kept = {"Cache-Control": "private, max-age=31536000, immutable"}
    return FileResponse(STATIC[name], media_type=docs.content_type(STATIC[name]), headers=kept)
