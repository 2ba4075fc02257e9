"""The tab *Searches*: which there are, what each has reached over time, and what it found.

What is shown follows from the lines of a search; of its trials only those are served that a line names.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from onceproof.campaigns.bisection.boundaries import COLUMNS, row
from onceproof.campaigns.search.log import (
    ExplorationFolder,
    Finding,
    Purpose,
    SearchRequest,
    Tried,
    collect_known,
    read_lines,
)
from onceproof.campaigns.search.schedules import Schedule
from onceproof.model.cell import Trial, is_run_id
from onceproof.model.errors import HarnessError
from onceproof.model.json_file import encode
from onceproof.model.known_issues import url_of
from onceproof.model.promise import PROMISES
from onceproof.model.run_folder import TrialFolder
from onceproof.page.cell import TrialView, counts_of, trial_view
from onceproof.page.matrix import format_begin
from onceproof.page.runs import SHAPELESS, NotThereError, is_within, own_file, own_folder

RECENT = 30  # searches in the list
SHOWN = 200  # trials at once
# What a trial showed, in the order of the legend.
FOUND, KNOWN, GREEN, IDLE, FAILED = "unexplained", "known issue", "green", "not exercised", "says nothing"


@dataclass(frozen=True, kw_only=True)
class ExploredTrial(TrialView):
    """A trial of a search: the number of the finding that it belongs to, if to any, and what it was for."""

    finding: int | None
    purpose: str


@dataclass(frozen=True)
class SearchView:
    """A search as its folder has it."""

    folder: ExplorationFolder
    asked: SearchRequest
    lines: Sequence[Tried]
    findings: Mapping[int, Finding]

    @property
    def searched(self) -> list[Tried]:
        """The trials for something new."""
        return [line for line in self.lines if line.purpose is Purpose.SEARCH]

    @property
    def kept(self) -> Iterator[Trial]:
        """The trials of which more is kept than their lines."""
        return (self.trial(line) for line in self.lines if line.folder)

    def trial(self, line: Tried) -> Trial:
        """That a line is of."""
        return self.asked.trial(line.number, line.schedule, line.streams)


def find_search(explorations: Path, name: str) -> SearchView:
    """A search.

    Raises:
        NotThereError: it has no folder of its own there, or a link in that leads elsewhere.
        HarnessError: it is damaged.
    """
    folder = ExplorationFolder(explorations / name)
    if not is_run_id(name) or not is_within(explorations, folder.path) or not folder.asked_file.exists():
        raise NotThereError(f"There is no search {name!r}: it was removed, or it was never here.")
    for file in (folder.asked_file, folder.log_file, folder.findings):
        own_file(folder.run, file)
    files = [own_file(folder.run, file) for file in folder.findings.glob("*/finding.json")]
    findings = {found.number: found for file in files if (found := Finding.read_known(file))}
    return SearchView(
        folder, SearchRequest.read(folder.asked_file), _lines(folder.log_file), dict(sorted(findings.items()))
    )


def find_known_search(explorations: Path, name: str) -> SearchView | None:
    """A search; None if there is none of this name.

    Raises:
        HarnessError: it is damaged.
    """
    try:
        return find_search(explorations, name)
    except NotThereError:
        return None


def _lines(file: Path) -> Sequence[Tried]:
    stat = file.stat() if file.exists() else None
    return _read(file, stat.st_size, stat.st_mtime_ns) if stat else ()


@lru_cache(maxsize=RECENT)
def _read(file: Path, _size: int, _mtime: int) -> Sequence[Tried]:
    """The lines of a file that has not changed since."""
    return tuple(read_lines(file))


def searches_view(explorations: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """The last searches, newest first, each as `_summary` has it, and why others cannot be shown."""
    names = sorted((path.name for path in explorations.glob("*") if is_run_id(path.name)), reverse=True)
    shown, damaged = [], []
    for name in names[:RECENT]:
        try:
            shown.append(_summary(find_search(explorations, name)))
        except (HarnessError, *SHAPELESS) as error:
            damaged.append(f"The search {name} cannot be shown: {error}")
        except NotThereError:  # nothing was asked there yet
            continue
    return shown, damaged


def _summary(search: SearchView) -> dict[str, object]:
    """A search in a row: what was asked, how far it has come, and what it came upon."""
    asked, lines = search.asked, search.lines
    how = "drawn uniformly" if asked.uniform else "defaults first"
    return {
        "run": asked.run,
        "begun": format_begin(asked.run),
        "streams": asked.streams,
        "broker": asked.broker,
        "how": f"{how}, with {', '.join(asked.settings)}" if asked.settings else how,
        "plant": asked.plant,
        "scenarios": asked.scenarios,
        "minutes": lines[-1].at / 60 if lines else 0.0,
        "trials": len(lines),
        "exercised": sum(line.exercised for line in lines),
        "errors": sum(line.error is not None for line in lines),
        "coverage": sum(line.gained for line in search.searched),
        "known": list(dict.fromkeys(key for known in collect_known(search.searched) for key in known.issues)),
        "findings": [{"number": finding.number, "title": finding.title} for finding in search.findings.values()],
    }


def search_view(search: SearchView, number: str) -> dict[str, object]:
    """A search with its findings, the known issues that it met, and a page of its trials, newest first.

    Raises:
        NotThereError: there is no page of this number.
    """
    pages = max(1, -(-len(search.lines) // SHOWN))
    page, newest = int(number) if number.isdecimal() else 0, search.lines[::-1]
    if not 1 <= page <= pages:
        raise NotThereError(f"The trials of the search {search.asked.run} have no page {number!r}.")
    return {
        **_summary(search),
        "seed": search.asked.seed,
        "harness": search.asked.harness,
        "resume": f"onceproof issue explore --resume {search.asked.run} --minutes 60",
        "report": f"onceproof results report {search.asked.run} --html search.html",
        "found": list(map(_describe_found, search.findings.values())),
        "met": [
            {
                "known": encode(known),
                "issues": [{"key": key, "url": url_of(key)} for key in known.issues],
            }
            for known in collect_known(search.searched)
        ],
        "lines": list(map(line_view, newest[(page - 1) * SHOWN : page * SHOWN])),
        "page": page,
        "pages": pages,
    }


def _describe_found(found: Finding) -> dict[str, object]:
    """The view of a finding."""
    bisected = found.releases
    return {
        **encode(found),
        "title": found.title,
        "schedule": Schedule(found.scenario, found.variant, tuple(found.parameters.items()), 0).summary,
        "rate": str(found.rate),
        "smallest_rate": str(found.smallest_rate),
        "bisected_by": found.bisected_by,
        "releases": bisected and {**encode(bisected), "summary": bisected.summary, "why_unknown": bisected.why_unknown},
    }


def finding_view(search: SearchView, number: str) -> dict[str, object]:
    """A finding with all that was tried of it.

    Raises:
        NotThereError: there is none of this number.
    """
    found = search.findings.get(int(number)) if number.isdecimal() else None
    if found is None:
        raise NotThereError(f"The search {search.asked.run} has no finding {number!r}.")
    lines = [line for line in search.lines if line.finding == found.number]
    evidence = [line for line in lines if line.folder is not None and line.folder == found.folder]
    return {
        "run": search.asked.run,
        "finding": _describe_found(found),
        "anomalies": encode(counts_of(found.anomalies)),
        "promises": [{"name": name, "sentence": PROMISES[name].sentence} for name in found.promises],
        "columns": [name.replace("_", " ") for name in COLUMNS],
        "rows": [row(boundary) for boundary in found.releases.boundaries] if found.releases else [],
        "evidence": next((line.number for line in evidence if _find_kept(search, line)), None),
        "lines": list(map(line_view, lines)),
    }


def find_trial(search: SearchView, number: str) -> tuple[ExploredTrial, TrialFolder]:
    """The view of a trial of which the folder was kept, and that folder.

    Raises:
        NotThereError: there is no such trial, it was not kept, or a link in its folder leads elsewhere.
    """
    line = next((line for line in search.lines if number.isdecimal() and line.number == int(number)), None)
    if line is None or (folder := _find_kept(search, line)) is None:
        raise NotThereError(f"The search {search.asked.run} has kept nothing of a trial {number!r} but its line.")
    trial = search.trial(line)
    own_folder(search.folder.run, folder)
    view = trial_view(search.folder.run, {trial.key: line.error} if line.error else {}, trial, ())
    return ExploredTrial(**vars(view), finding=line.finding, purpose=str(line.purpose)), folder


def _find_kept(search: SearchView, line: Tried) -> TrialFolder | None:
    """The folder of a trial, if it was kept and still is."""
    folder = search.folder.run.trial(search.trial(line))
    return folder if line.folder and folder.path.is_dir() else None


def line_view(line: Tried) -> dict[str, object]:
    """A trial in a row."""
    return {
        "number": line.number,
        "minutes": line.at / 60,
        "purpose": str(line.purpose),
        "schedule": line.schedule.summary,
        "streams": line.streams,
        "state": state_of(line),
        "said": line.said,
        "gained": line.gained,
        "seconds": line.seconds,
        "finding": line.finding,
        "is_kept": line.folder is not None,
        "command": line.command,
    }


def state_of(line: Tried) -> str:
    """The result of a trial, in two words."""
    if line.error:
        return FAILED
    if line.is_new:
        return FOUND
    if line.anomalies:
        return KNOWN
    return GREEN if line.exercised else IDLE
