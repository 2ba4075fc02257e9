"""The parts that tabs share: where everything is, pages, figures, archives."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, Response, StreamingResponse

from onceproof.model.run_folder import RunFolder, TrialFolder
from onceproof.page.cell import timeline_json
from onceproof.page.rendering import Links, render
from onceproof.results.evidence.archive import write_evidence
from onceproof.settings import Settings

READ = ["GET", "HEAD"]
ZIP, JSON = "application/zip", "application/json"
_ARCHIVING = Lock()


def _settings(request: Request) -> Settings:
    settings: Settings = request.app.state.settings
    return settings


Home = Annotated[Settings, Depends(_settings)]  # where runs, searches and the results database are


class Tab(APIRouter):
    """The addresses of a tab; all of them are only read."""

    def page(self, path: str) -> Callable[[Callable[..., Response]], Callable[..., Response]]:
        """Answer an address with what a function returns."""
        return self.api_route(path, methods=READ, response_class=HTMLResponse, response_model=None)

    def timeline(self, path: str, find: Callable[..., TrialFolder]) -> None:
        """Answer an address with the timeline of a trial, for Plotly to draw; `find` gives its folder."""

        def timeline(folder: Annotated[TrialFolder, Depends(find)], theme: str = "light") -> Response:
            return Response(timeline_json(folder, dark=theme == "dark"), media_type=JSON)

        self.page(path)(timeline)


def links_of(request: Request) -> Links:
    """The links of the page that was asked for."""
    root = request.scope.get("root_path", "")
    return Links.of(request.url.path.removeprefix(root))


def shown(request: Request, template: str, status: int = 200, /, **values: Any) -> Response:
    """A page."""
    return HTMLResponse(render(template, links_of(request), **values), status)


def archive(request: Request, folder: RunFolder, cell: str) -> Response:
    """The archive of a cell, freshly made, one at a time."""
    headers = {"Content-Disposition": f'attachment; filename="{quote(f"{folder.run_id}-{cell}.zip")}"'}
    if request.method == "HEAD":
        return StreamingResponse(iter(()), media_type=ZIP, headers=headers)  # its length is not known yet
    with _ARCHIVING, tempfile.TemporaryDirectory(prefix="onceproof-") as scratch:
        content = write_evidence(folder, cell, Path(scratch) / "evidence.zip").read_bytes()
    return Response(content, media_type=ZIP, headers=headers)
