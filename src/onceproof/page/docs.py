"""The Data Docs of a run: which of their pages are about a trial, and the way from each back to its cell."""

import html
import mimetypes
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from onceproof.model.errors import HarnessError
from onceproof.model.json_file import read_json
from onceproof.model.run_folder import RunFolder
from onceproof.page.runs import NotThereError, is_within

# GX's pages contain scripts and handlers, so this stops none that came with the data: whatever is shown there must be
# escaped (`expectations.showing_rows`). Nothing is loaded from, or sent by a form to, another host.
POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
BAR = (
    '<nav aria-label="Onceproof" style="position:relative;z-index:2000;padding:6px 16px;background:#24292f;'
    'font:14px/1.4 system-ui,sans-serif">{links}</nav>'
)
LINK = '<a style="color:#fff;margin-right:20px;text-decoration:underline" href="{url}">{text}</a>'


@dataclass(frozen=True)
class SuitePage:
    """A page of the Data Docs: of which suite it is, and where it lies within them."""

    suite: str
    path: str


def pages_by_trial(run: RunFolder) -> Mapping[str, Sequence[SuitePage]]:
    """The pages of the suites by the title of their trial."""
    site = run.data_docs.parent
    found: dict[str, list[SuitePage]] = defaultdict(list)
    for page in sorted(site.glob("validations/*/*/*/*.html")):
        path = page.relative_to(site)
        found[_title(page)].append(SuitePage(path.parts[1], path.as_posix()))
    return found


def _title(page: Path) -> str:
    """The title of a trial from the name of a page, `<what was looked at>-<title>`: see `expectations.checkpoints`."""
    return page.stem.partition("-")[2]


def find_page(run: RunFolder, path: str) -> Path:
    """A file of the Data Docs.

    Raises:
        NotThereError: they have no such file, or it is a link to somewhere else.
    """
    site = run.data_docs.parent
    page = site / path
    if not is_within(run.path, site) or not is_within(site, page) or not page.is_file():
        raise NotThereError(f"The Data Docs of run {run.run_id} have no page {path!r}.")
    return page


def content_type(page: Path) -> str:
    """The media type of the file."""
    return mimetypes.guess_type(page.name)[0] or "application/octet-stream"


def with_way_back(run: RunFolder, page: Path) -> str:
    """A page with a bar that leads to the matrix and, from a suite's page, to the cell that was looked at."""
    text = page.read_text(encoding="utf-8", errors="replace")
    up = "../" * len(page.relative_to(run.data_docs.parent).parts)  # to the run
    links = [LINK.format(url=f"{up}../../?run={run.run_id}", text="Matrix")]
    cell = _cell(run, _title(page))
    if cell:
        url = html.escape(f"{up}cells/{cell['key']}")
        links.append(LINK.format(url=url, text=html.escape(f"Cell {cell['title']}")))
    head, body, rest = text.partition("<body>")
    return f"{head}{body}{BAR.format(links=''.join(links))}{rest}"


def _cell(run: RunFolder, title: str) -> dict[str, str] | None:
    """The cell of the trial with this title; none if the plan cannot be read."""
    try:
        cells = {cell["title"]: dict(cell) for cell in read_json(run.run_file)["cells"]}
    except (HarnessError, KeyError, TypeError):
        return None
    return cells.get(title.rpartition(" trial ")[0])
