"""Templates, and the links in them, which are relative, so that they work behind any prefix."""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote, urlencode

import plotly
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from onceproof.model.plain import plain
from onceproof.model.severity import Severity
from onceproof.model.verdict import Verdict

FOLDER = Path(__file__).parent
STATIC = {
    "page.css": FOLDER / "static" / "page.css",
    "page.js": FOLDER / "static" / "page.js",
    "atlas.js": FOLDER / "static" / "atlas.js",
    "plotly.min.js": Path(plotly.__file__).parent / "package_data" / "plotly.min.js",
}


@dataclass(frozen=True)
class PageLinks:
    """Where things are, seen from a page; `base` leads from there to the matrix: `./`, `../`, ..."""

    base: str
    brand: ClassVar[str] = "Onceproof"

    @classmethod
    def of(cls, path: str) -> "PageLinks":
        """The links of a page at this path, from the app's root, such as `/runs/...`."""
        return cls("../" * (path.count("/") - 1) or "./")

    def matrix(self, **query: str) -> str | None:
        """The matrix, filtered; None, here and below, if there is nothing to link to."""
        return f"{self.base}?{urlencode(query)}" if query else self.base

    def home(self) -> str | None:
        """The first page."""
        return self.matrix()

    def tabs(self) -> list[tuple[str, str]]:
        """The navigation: the title and the address of each tab."""
        names = ("upgrade", "sensitivity", "explorations", "applications", "atlas/index.html")
        titles = ("Upgrade", "Sensitivity", "Searches", "Applications", "Atlas")
        return [(title, f"{self.base}{name}") for title, name in zip(titles, names, strict=True)]

    def cell(self, run: str, cell: str) -> str | None:
        """A cell."""
        return self._of_run(run, "cells", cell)

    def evidence(self, run: str, cell: str) -> str | None:
        """To `evidence.zip` of a cell."""
        return self._of_run(run, "cells", cell, "evidence.zip")

    def records(self, run: str, cell: str, witness: int) -> str | None:
        """To the records around a witness, which is counted within its cell."""
        return self._of_run(run, "cells", cell, "witnesses", str(witness))

    def trial(self, run: str, trial: str) -> str | None:
        """To a trial of a run."""
        return self._of_run(run, "trials", trial)

    def timeline(self, run: str, trial: str) -> str | None:
        """The timeline of a trial, as JSON."""
        return self._of_run(run, "trials", trial, "timeline.json")

    def sensitivity(self) -> str | None:
        """The plants."""
        return f"{self.base}sensitivity"

    def upgrade(self, current: object = "", target: object = "") -> str | None:
        """The knowledge about going from one release to another; of which ones, is a choice there if none are given."""
        return f"{self.base}upgrade" + (f"?{urlencode({'current': current, 'target': target})}" if current else "")

    def issue(self, key: str) -> str | None:
        """A known issue."""
        return f"{self.base}atlas/issues/{slug(key)}.html"

    def link_planted(self, run: str, trial: str) -> str | None:
        """To a trial with an injected bug."""
        return f"{self.base}planted/{quote(run)}/{quote(trial)}"

    def link_planted_timeline(self, run: str, trial: str) -> str | None:
        """To the timeline of a trial with an injected bug."""
        return f"{self.base}planted/{quote(run)}/{quote(trial)}/timeline.json"

    def explorations(self) -> str | None:
        """To the list of searches."""
        return f"{self.base}explorations"

    def exploration(self, search: str, page: int = 1) -> str | None:
        """To a search; pages of its trials are counted from 1."""
        return f"{self.base}explorations/{quote(search)}{f'?page={page}' if page > 1 else ''}"

    def coverage(self, search: str) -> str | None:
        """Its coverage over time, as JSON."""
        return f"{self.base}explorations/{quote(search)}/coverage.json"

    def finding(self, search: str, number: int) -> str | None:
        """To a finding, by its number in the search."""
        return f"{self.base}explorations/{quote(search)}/findings/{number}"

    def link_explored(self, search: str, number: int) -> str | None:
        """To a trial of a search, by its number."""
        return f"{self.base}explorations/{quote(search)}/trials/{number}"

    def link_explored_timeline(self, search: str, number: int) -> str | None:
        """To the timeline of a trial of a search."""
        return f"{self.base}explorations/{quote(search)}/trials/{number}/timeline.json"

    def applications(self) -> str | None:
        """To the list of user applications."""
        return f"{self.base}applications"

    def application(self, run: str) -> str | None:
        """The result of an application in a run."""
        return f"{self.base}applications/{quote(run)}"

    def application_evidence(self, run: str, cell: str) -> str | None:
        """The archive of a release in such a run."""
        return f"{self.base}applications/{quote(run)}/releases/{quote(cell)}/evidence.zip"

    def application_trial(self, run: str, trial: str) -> str | None:
        """A trial of such a run."""
        return f"{self.base}applications/{quote(run)}/trials/{quote(trial)}"

    def application_timeline(self, run: str, trial: str) -> str | None:
        """To the timeline of a trial of a user's application."""
        return f"{self.base}applications/{quote(run)}/trials/{quote(trial)}/timeline.json"

    def docs(self, run: str, path: str = "index.html") -> str | None:
        """A page of the Data Docs."""
        return self._of_run(run, "data_docs", path)

    def static(self, name: str) -> str:
        """A file of ours; its address changes with its content, so that browsers can cache it."""
        return f"{self.base}static/{name}?v={_digest(name)}"

    def _of_run(self, run: str, *path: str) -> str | None:
        return f"{self.base}runs/{'/'.join(map(quote, (run, *path)))}"


class FileLinks(PageLinks):
    """Links of a self-contained file, which leads to no other page; `base` is its beginning, if that is linked to."""

    def home(self) -> str | None:
        """The beginning."""
        return self.base or None

    def tabs(self) -> list[tuple[str, str]]:
        """None."""
        return []

    def upgrade(self, current: object = "", target: object = "") -> str | None:  # noqa: ARG002 - there is no page
        """None."""
        return None

    def issue(self, key: str) -> str | None:  # noqa: ARG002 - there is no page
        """None: it has the address of the ticket."""
        return None

    def _of_run(self, run: str, *path: str) -> str | None:  # noqa: ARG002 - nothing of a run is in the file
        return None


def slug(key: str) -> str:
    """The key of an issue as the name of a file."""
    return re.sub(r"[^A-Za-z0-9]+", "-", key).strip("-")


@cache
def _digest(name: str) -> str:
    return hashlib.sha256(STATIC[name].read_bytes()).hexdigest()[:8]


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: plain(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["code"], environment.filters["linked"] = with_code, with_links
    environment.filters["thousands"] = lambda number: f"{number:,}"
    environment.filters["embedded"], environment.filters["json"] = embed_json, as_json
    environment.globals["addresses_of"], environment.globals["outside"] = addresses_of, outside
    environment.globals["severities"] = {str(severity): severity.meaning for severity in Severity}
    environment.globals["sign_of"] = lambda verdict: Verdict(verdict).sign
    environment.globals["legend"] = [(str(verdict), verdict.sign, verdict.meaning) for verdict in Verdict]
    return environment


def with_code(text: str) -> Markup:
    """A sentence as HTML, in which text between backticks is code."""
    parts = enumerate(text.split("`")) if text.count("`") % 2 == 0 else [(0, text)]
    return Markup().join(Markup("<code>{}</code>").format(part) if at % 2 else escape(part) for at, part in parts)


def addresses_of(sources: Iterable[Mapping[str, Any]], links: PageLinks) -> dict[str, str | None]:
    """The names of what a sentence rests on, each with its address; None if there is nothing to link to."""
    return {
        one["name"]: links.cell(one["run"], one["name"])
        if one["kind"] == "cell"
        else (links.issue(one["name"]) if one["kind"] == "issue" else None) or one["url"]
        for one in sources
    }


def with_links(text: str, addresses: Mapping[str, str | None]) -> Markup:
    """A sentence as HTML (`with_code`), in which the names that have an address are links."""
    names = sorted((name for name, url in addresses.items() if url), key=len, reverse=True)
    if not names:
        return with_code(text)
    parts = enumerate(re.split(f"({'|'.join(map(re.escape, names))})", text))
    link = Markup('<a href="{}"{}>{}</a>')
    return Markup().join(
        link.format(addresses[part], outside(addresses[part]), part) if at % 2 else with_code(part)
        for at, part in parts
    )


def outside(url: str | None) -> Markup:
    """The attributes of a link to another site."""
    return Markup(' target="_blank" rel="noopener noreferrer"') if url and url.startswith("https://") else Markup()


def embed_json(text: str) -> str:
    """JSON that is safe within `<script>`: nothing in it can end the element."""
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def as_json(data: Any) -> str:
    """JSON of plain data, to be embedded."""
    return json.dumps(data, separators=(",", ":"))


def render(template: str, links: PageLinks, **values: Any) -> str:
    """The HTML of a template, with the links that its place needs."""
    return _templates().get_template(template).render(links=links, **values)


def inline(name: str) -> str:
    """A file of ours, in which nothing ends the element that contains it."""
    return STATIC[name].read_text(encoding="utf-8").replace("</script", "<\\/script").replace("</style", "<\\/style")
