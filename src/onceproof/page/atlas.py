"""The atlas as static pages: releases, known issues, upgrades. They need no server, and work under any prefix.

Nothing in them runs but the search, and nothing is loaded from elsewhere: `POLICY`.
"""

import json
import shutil
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

from onceproof.advice.advice import Advice
from onceproof.advice.advising import UpgradeQuestion, advise
from onceproof.atlas.exporting import to_json
from onceproof.atlas.measurement import Measurement, is_current, standing
from onceproof.atlas.shipped import as_measured
from onceproof.model.application import describe
from onceproof.model.cell import Cell, Trial
from onceproof.model.errors import UsageError
from onceproof.model.json_file import replacing
from onceproof.model.known_issues import IssueRegistry, KnownIssue
from onceproof.model.matrices import BROKER
from onceproof.model.release import Release
from onceproof.model.verdict import Verdict
from onceproof.page.badge import Badge
from onceproof.page.rendering import STATIC, PageLinks, as_json, render, slug
from onceproof.page.timeline.picture import Picture
from onceproof.page.upgrade import show_advice
from onceproof.scenarios import CATALOGUE, SCENARIOS

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'"
)
FILES = ("page.css", "atlas.js")
FOLDERS = ("releases", "issues", "upgrades", "badges")
MARKER = "atlas.json"  # by which a folder is known to hold such a site
# What people want to know of several variants, the first of these.
ORDER = (
    *(Verdict.REGRESSION, Verdict.KNOWN, Verdict.FIXED, Verdict.INCONCLUSIVE),
    *(Verdict.PROVISIONAL, Verdict.CLEAN, Verdict.AVOIDED, Verdict.ERROR),
)
CITED = 4  # cells and sources of a sentence
NEWS = 50  # entries of the feed


@dataclass(frozen=True)
class AtlasLinks(PageLinks):
    """Where things are in the site; nothing of a run is there."""

    brand: ClassVar[str] = "Onceproof atlas"

    def home(self) -> str | None:
        """The table of releases."""
        return self.file("index.html")

    def tabs(self) -> list[tuple[str, str]]:
        """The parts of the site."""
        names = ("index.html#releases", "index.html#issues", "feed.xml", "atlas.json")
        return list(zip(("Releases", "Known issues", "Feed", "JSON"), map(self.file, names), strict=True))

    def file(self, name: str) -> str:
        """A file next to the first page."""
        return f"{self.base}{name}"

    def upgrade(self, current: object = "", target: object = "") -> str | None:  # noqa: ARG002 - no form is answered
        """None: there are only the pages of some ways."""
        return None

    def release(self, release: object) -> str:
        """The knowledge of a release."""
        return f"{self.base}releases/{quote(str(release))}.html"

    def issue(self, key: str) -> str:
        """A known issue."""
        return f"{self.base}issues/{slug(key)}.html"

    def way(self, current: object, target: object) -> str | None:
        """Advice on going from one release to another."""
        return f"{self.base}upgrades/{quote(f'{current}-{target}')}.html"

    def static(self, name: str) -> str:
        """Style and script, which are next to the first page."""
        return self.file(name)

    def _of_run(self, run: str, *path: str) -> str | None:  # noqa: ARG002 - nothing of a run is in the site
        return None


class ServedAtlasLinks(AtlasLinks):
    """Where things are in the site as a part of the results page, in whose folder `atlas/` it is."""

    brand: ClassVar[str] = PageLinks.brand

    @property
    def page(self) -> PageLinks:
        """The links to the rest of the page."""
        return PageLinks(f"{self.base}../")

    def home(self) -> str | None:
        """The results."""
        return self.page.home()

    def tabs(self) -> list[tuple[str, str]]:
        """Those of the page."""
        return self.page.tabs()

    def upgrade(self, current: object = "", target: object = "") -> str | None:
        """The page *Upgrade*, where features can be chosen."""
        return self.page.upgrade(current, target)

    def way(self, current: object, target: object) -> str | None:
        """The page *Upgrade*."""
        return self.upgrade(current, target)

    def static(self, name: str) -> str:
        """Style and script of the page."""
        return self.page.static(name)


@dataclass(frozen=True)
class Atlas:
    """All that the site shows.

    Attributes:
        measurements: of the atlas.
        releases: that are published, in order.
        possible: cells that could be measured.
        registry: the known issues.
        harness: the version of the present harness, by scenario.
        url: where the site will be, for the feed; empty if that is not known.
    """

    measurements: Sequence[Measurement]
    releases: Sequence[Release]
    possible: Collection[Cell]
    registry: IssueRegistry
    harness: Mapping[str, str]
    url: str = ""

    @cached_property
    def standing(self) -> Mapping[Cell, Measurement]:
        """The measurement of each cell that stands."""
        return standing(self.measurements, self.harness)

    @cached_property
    def shown(self) -> Sequence[Release]:
        """The releases with a page, the newest first."""
        measured = {release for cell in self.standing for release in (cell.streams, cell.running)}
        return sorted({*self.releases, *measured}, reverse=True)

    def of(self, release: Release) -> list[Measurement]:
        """The measurements of a release alone, or last on the way to it, by scenario and variant."""
        found = (measurement for cell, measurement in self.standing.items() if cell.running == release)
        return sorted(
            found, key=lambda measurement: (list(SCENARIOS).index(measurement.cell.scenario), measurement.place)
        )

    def issues_of(self, release: Release) -> list[KnownIssue]:
        """The known issues that a release has, the worst first."""
        found = (issue for issue in self.registry.issues if issue.is_in(release))
        return sorted(found, key=lambda issue: issue.harm.rank)

    @cached_property
    def ways(self) -> Sequence[tuple[Release, Release]]:
        """The upgrades with a page: to the newest patch of the line and of the next one, to the newest, as measured."""
        newest = {release.line: release for release in self.releases}
        following = dict(pairwise(newest))
        found = {(cell.streams, cell.restart_on) for cell in self.standing if cell.restart_on}
        for release in self.releases:
            lines = (release.line, following.get(release.line), self.releases[-1].line)
            found |= {(release, newest[line]) for line in lines if line}
        return sorted((before, after) for before, after in found if after is not None and before != after)

    def advice(self, current: Release, target: Release) -> Advice:
        """The answer, from the registry and the atlas alone."""
        way = {current, target}
        there = [measurement for cell, measurement in self.standing.items() if {cell.streams, cell.running} <= way]
        cells = [as_measured(measurement, self.harness) for measurement in there]
        return advise(UpgradeQuestion(current, target, self.registry, CATALOGUE, cells, None, self.releases))


def write_site(atlas: Atlas, folder: Path) -> int:
    """Write the site into a folder, in place of an earlier one.

    Returns:
        its size in bytes.

    Raises:
        UsageError: the folder holds something else.
        HarnessError: the disk is full or read-only.
    """
    _check_folder(folder)
    written = {folder / name for name in FILES}
    for name in FILES:
        with replacing(folder / name, named=True) as draft:
            shutil.copyfile(STATIC[name], draft)
    for name, write in pages(atlas).items():
        written.add(folder / name)
        with replacing(folder / name, named=True) as draft:
            draft.write_text(write(), encoding="utf-8")
    for file in {file for name in FOLDERS for file in folder.glob(f"{name}/*")} - written:
        file.unlink()  # of an earlier site
    return sum(file.stat().st_size for file in written)


def _check_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file: name a folder for the site.")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARKER).exists():
        raise UsageError(f"{folder} holds something else than a site of the atlas: name an empty folder, or a new one.")


def pages(atlas: Atlas, links: type[AtlasLinks] = AtlasLinks) -> dict[str, Callable[[], str]]:
    """Functions that make the texts of the site, by the paths of its files."""
    top, below = links("./"), links("../")
    made: dict[str, Callable[[], str]] = {
        "index.html": lambda: _page("atlas/index.html", top, **_index(atlas)),
        "atlas.json": lambda: as_json({"schema": 1, "measurements": list(map(to_json, atlas.measurements))}),
        "index.js": lambda: f"const ENTRIES = {json.dumps(_entries(atlas, top))};\n",
        "feed.xml": lambda: _page("atlas/feed.xml", top, **_feed(atlas)),
    }
    for release in atlas.shown:
        made[f"releases/{release}.html"] = partial(_release_page, atlas, release, below)
        made[f"badges/{release}.svg"] = partial(_badge_picture, atlas, release)
        made[f"badges/{release}.json"] = partial(_badge_endpoint, atlas, release)
    for issue in atlas.registry.issues:
        made[f"issues/{slug(issue.key)}.html"] = partial(_issue_page, atlas, issue, below)
    for current, target in atlas.ways:
        made[f"upgrades/{current}-{target}.html"] = partial(_upgrade_page, atlas, current, target, below)
    return made


def _release_page(atlas: Atlas, release: Release, links: AtlasLinks) -> str:
    return _page("atlas/release.html", links, **_release(atlas, release))


def _issue_page(atlas: Atlas, issue: KnownIssue, links: AtlasLinks) -> str:
    return _page("atlas/issue.html", links, **_issue(atlas, issue))


def _upgrade_page(atlas: Atlas, current: Release, target: Release, links: AtlasLinks) -> str:
    return _page("atlas/upgrade.html", links, **_brief(show_advice(atlas.advice(current, target))))


def _badge_picture(atlas: Atlas, release: Release) -> str:
    return _badge(atlas, release).svg()


def _badge_endpoint(atlas: Atlas, release: Release) -> str:
    return as_json(_badge(atlas, release).endpoint())


def _badge(atlas: Atlas, release: Release) -> Badge:
    decided = [measurement.verdict for measurement in atlas.of(release) if measurement.is_decided]
    return Badge.of(release, decided, atlas.registry)


def _brief(value: Any) -> Any:
    """The JSON value, with the first of the cells and sources that a sentence rests on: the release pages have all."""
    if isinstance(value, dict):
        return {name: _brief(part[:CITED] if name in ("cells", "sources") else part) for name, part in value.items()}
    return [_brief(part) for part in value] if isinstance(value, list) else value


def _page(template: str, links: AtlasLinks, **values: Any) -> str:
    return render(template, links, policy=POLICY, **values)


def _index(atlas: Atlas) -> dict[str, object]:
    scenarios = [(name, scenario_.title) for name, scenario_ in SCENARIOS.items()]
    rows = [
        {
            "release": str(release),
            "issues": len(atlas.issues_of(release)),
            "squares": [_square(atlas, release, name) for name, _ in scenarios],
        }
        for release in atlas.shown
    ]
    by = sorted({measurement.version for measurement in atlas.measurements})
    days = sorted({measurement.day for measurement in atlas.measurements})
    older = sum(not is_current(measurement, atlas.harness) for measurement in atlas.standing.values())
    return {
        "scenarios": scenarios,
        "rows": rows,
        "issues": [
            (issue.key, str(issue.harm), issue.title, ", ".join(issue.ranges))
            for issue in sorted(atlas.registry.issues, key=lambda issue: issue.harm.rank)
        ],
        "measured": len(atlas.standing),
        "possible": len({*atlas.possible, *atlas.standing}),
        "by": by,
        "days": days,
        "older": older,
    }


def _square(atlas: Atlas, release: Release, scenario: str) -> dict[str, object] | None:
    """The result of a scenario on a release, the verdict that people want to know first.

    `expected` are issues that the registry has there in variants of which none was measured. None if there is neither.
    """
    cells = [measurement for cell, measurement in atlas.standing.items() if _alone(cell) == (scenario, release)]
    measured = {measurement.cell.variant for measurement in cells}
    there = {issue.key: issue.provoked.get(scenario) for issue in atlas.issues_of(release)}
    open_ = [key for key, variants in there.items() if variants and measured.isdisjoint(variants)]
    expected = f"not measured, and expected by the registry: {', '.join(open_)}" if open_ else ""
    if not cells:
        title = f"{release}, {scenario}: {expected}"
        return {"verdict": str(Verdict.KNOWN), "rate": "", "expected": "", "title": title} if open_ else None
    verdict = min((measurement.verdict for measurement in cells), key=ORDER.index)
    issues = sorted({key for measurement in cells if measurement.is_red for key in measurement.issues})
    variants = ", ".join(f"{measurement.cell.variant} {measurement.verdict}" for measurement in cells)
    about = f" ({', '.join(issues)})" if issues else ""
    rate = f"{sum(measurement.is_red for measurement in cells)}/{len(cells)}"
    title = f"{release}, {scenario}: {variants}{about}{'; ' if expected else ''}{expected}"
    return {"verdict": str(verdict), "rate": rate, "expected": expected, "title": title}


def _alone(cell: Cell) -> tuple[str, Release | None]:
    """The scenario and the release of a cell that stays on it."""
    return cell.scenario, None if cell.restart_on else cell.streams


def _release(atlas: Atlas, release: Release) -> dict[str, object]:
    cells, issues = atlas.of(release), atlas.issues_of(release)
    showing = {key for measurement in cells if measurement.is_red for key in measurement.issues}
    at = atlas.shown.index(release)
    newer, older = [atlas.shown[n] if 0 <= n < len(atlas.shown) else None for n in (at - 1, at + 1)]
    possible = {cell for cell in atlas.possible if cell.running == release} | {
        measurement.cell for measurement in cells
    }
    return {
        "release": str(release),
        "issues": [_issue_view(issue, issue.key in showing) for issue in issues],
        "regressions": [
            _describe_measured(atlas, measurement) for measurement in cells if measurement.verdict is Verdict.REGRESSION
        ],
        "cells": [_describe_measured(atlas, measurement) for measurement in cells],
        "possible": len(possible),
        "missing": sorted({cell.scenario for cell in possible} - {measurement.cell.scenario for measurement in cells}),
        "neighbours": [_neighbour(atlas, release, other) for other in (older, newer) if other],
        "onwards": [str(after) for before, after in atlas.ways if before == release],
        "hither": [str(before) for before, after in atlas.ways if after == release],
    }


def _neighbour(atlas: Atlas, release: Release, other: Release) -> dict[str, object]:
    """The issues of the release that its neighbour has not, and the other way round."""
    cells, others = atlas.issues_of(release), atlas.issues_of(other)
    return {
        "release": str(other),
        "is_older": other < release,
        "worse": [issue.key for issue in cells if issue not in others],
        "better": [issue.key for issue in others if issue not in cells],
    }


def _issue(atlas: Atlas, issue: KnownIssue) -> dict[str, object]:
    cells = [measurement for cell, measurement in atlas.standing.items() if issue.concerns(cell.scenario, cell.variant)]
    cells.sort(key=lambda measurement: (issue.key not in measurement.issues, measurement.place))
    return {
        "issue": _issue_view(issue, False),
        "sources": issue.sources,
        "cells": [_describe_measured(atlas, measurement) for measurement in cells],
        "command": next(
            (_command(measurement) for measurement in cells if issue.key in measurement.issues and measurement.is_red),
            _usual(issue),
        ),
        "releases": [str(release) for release in atlas.shown if issue.is_in(release)],
        "trial": _trial(issue, cells),
    }


def _trial(issue: KnownIssue, cells: Sequence[Measurement]) -> dict[str, object] | None:
    """A red trial of the issue with its picture, of the newest release that has one."""
    red = [
        measurement
        for measurement in cells
        if measurement.is_red and issue.key in measurement.issues and measurement.timeline
    ]
    for measurement in sorted(red, key=lambda measurement: measurement.cell.running, reverse=True):
        if picture := Picture.of(measurement.timeline):
            return {
                "releases": measurement.cell.releases,
                "cell": measurement.cell.key,
                "sentence": measurement.sentence,
                "picture": picture,
            }
    return None


def _usual(issue: KnownIssue) -> str | None:
    """The command that shows an issue which was not measured; None where no variant does."""
    where = next(((name, variants[0]) for name, variants in issue.provoked.items() if variants), None)
    if where is None or not issue.is_in(issue.affected[-1][0]):
        return None
    return Trial("", Cell(*where, issue.affected[-1][0], Release.parse(BROKER)), 1, 1).command


def _command(measurement: Measurement) -> str:
    return Trial(measurement.run, measurement.cell, 1, measurement.seeds[0] if measurement.seeds else 1).command


def _issue_view(issue: KnownIssue, is_shown: bool) -> dict[str, object]:
    return {
        "key": issue.key,
        "title": issue.title,
        "url": issue.url,
        "symptom": issue.symptom,
        "condition": issue.condition,
        "remedy": issue.remedy,
        "needs": [describe(name, values) for name, values in issue.needs.items()],
        "severity": issue.harm,
        "affected": ", ".join(issue.ranges),
        "fixed": [str(release) for release in issue.fixed],
        "is_shown": is_shown,
    }


def _describe_measured(atlas: Atlas, measurement: Measurement) -> dict[str, object]:
    return {
        **to_json(measurement),
        "releases": measurement.cell.releases,
        "running": str(measurement.cell.running),
        "summary": measurement.summary,
        "is_current": is_current(measurement, atlas.harness),
        "command": _command(measurement),
    }


def _entries(atlas: Atlas, links: AtlasLinks) -> list[list[str | None]]:
    """The search index: kind, title, address, and further words that lead to it."""
    found: list[list[str | None]] = [["release", str(release), links.release(release), ""] for release in atlas.shown]
    for issue in atlas.registry.issues:
        needs = " ".join(describe(name, values) for name, values in issue.needs.items())
        having = " ".join(str(release) for release in atlas.shown if issue.is_in(release))
        words = f"{issue.symptom} {issue.condition} {issue.remedy} {' '.join(issue.provoked)} {having} {needs}"
        found.append(["issue", f"{issue.key}: {issue.title}", links.issue(issue.key), words])
    for current, target in atlas.ways:
        found.append(["upgrade", f"{current} to {target}", links.way(current, target), "from"])
    return found


def _feed(atlas: Atlas) -> dict[str, object]:
    newest = sorted(
        atlas.standing.values(), key=lambda measurement: (measurement.created, measurement.place), reverse=True
    )[:NEWS]
    created = newest[0].created if newest else "1970-01-01T00:00:00+00:00"
    return {
        "entries": [_describe_measured(atlas, measurement) for measurement in newest],
        "updated": created,
        "url": atlas.url.rstrip("/"),
    }
