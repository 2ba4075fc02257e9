"""The parts that tabs share: where everything is, pages, figures, archives."""

import os
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar
from urllib.parse import quote

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, Response, StreamingResponse

from onceproof.model.run_folder import RunFolder, TrialFolder
from onceproof.page.archiving import make_archive, parts_of
from onceproof.page.cell import timeline_json
from onceproof.page.rendering import PageLinks, render
from onceproof.settings import Settings

READ = ["GET", "HEAD"]
ZIP, JSON = "application/zip", "application/json"


def _settings(request: Request) -> Settings:
    settings: Settings = request.app.state.settings
    return settings


Home = Annotated[Settings, Depends(_settings)]  # where runs, searches and the results database are


Answer = TypeVar("Answer", Response, Awaitable[Response])


class Tab(APIRouter):
    """The addresses of a tab; all of them are only read."""

    def page(self, path: str) -> Callable[[Callable[..., Answer]], Callable[..., Answer]]:
        """Answer an address with what a function returns."""
        return self.api_route(path, methods=READ, response_class=HTMLResponse, response_model=None)

    def timeline(self, path: str, find: Callable[..., TrialFolder]) -> None:
        """Answer an address with the timeline of a trial, for Plotly to draw; `find` gives its folder."""

        def timeline(folder: Annotated[TrialFolder, Depends(find)], theme: str = "light") -> Response:
            return Response(timeline_json(folder, dark=theme == "dark"), media_type=JSON)

        self.page(path)(timeline)


def links_of(request: Request) -> PageLinks:
    """The links of the page that was asked for."""
    root = request.scope.get("root_path", "")
    return PageLinks.of(request.url.path.removeprefix(root))


def show_page(request: Request, template: str, status: int = 200, /, **values: Any) -> Response:
    """A page."""
    return HTMLResponse(render(template, links_of(request), **values), status)


async def archive(request: Request, home: Settings, folder: RunFolder, cell: str) -> Response:
    """The archive of a cell, freshly made, one at a time."""
    headers = {"Content-Disposition": f'attachment; filename="{quote(f"{folder.run_id}-{cell}.zip")}"'}
    if request.method == "HEAD":
        return StreamingResponse(iter(()), media_type=ZIP, headers=headers)  # its length is not known yet
    file = await make_archive(home, folder, cell)
    headers["Content-Length"] = str(os.fstat(file.fileno()).st_size)
    return StreamingResponse(parts_of(file), media_type=ZIP, headers=headers)
