"""The tab *Atlas*: the site of the shipped atlas, as a part of the page."""

from functools import cache
from pathlib import Path

from fastapi.responses import RedirectResponse, Response

from onceproof.atlas.plan import possible_cells, read_published
from onceproof.atlas.shipped import read_shipped
from onceproof.harness import harness_versions
from onceproof.installation import Installation
from onceproof.model.known_issues import registry
from onceproof.page.atlas import Atlas, ServedAtlasLinks, pages
from onceproof.page.docs import content_type
from onceproof.page.runs import NotThereError
from onceproof.page.tabs.answers import Home, Tab

tab = Tab()


@cache
def _atlas(installation: Installation) -> Atlas:
    """The shipped atlas, read once: it is a part of the package."""
    releases = read_published(installation).releases
    return Atlas(read_shipped(), releases, possible_cells(installation), registry(), harness_versions())


@tab.page("/atlas")
def first_page() -> Response:
    """The table of releases."""
    return RedirectResponse("./atlas/index.html")


@tab.page("/atlas/{path:path}")
def atlas(home: Home, path: str) -> Response:
    """A file of the site."""
    made = pages(_atlas(home.installation), ServedAtlasLinks)
    if path not in made:
        raise NotThereError(f"The atlas has no page {path!r}.")
    return Response(made[path](), media_type=content_type(Path(path)))
