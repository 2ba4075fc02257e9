"""The tab *Applications*: what user applications showed, release by release.

Only trials that an answer names are served.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from onceproof.model.cell import Cell, is_run_id
from onceproof.model.errors import HarnessError
from onceproof.model.files import TrialPlan
from onceproof.model.judged import AppAnswer, OnRelease
from onceproof.model.run_folder import RunFolder, TrialFolder
from onceproof.page.cell import AnomalyCount, TrialView, counts_of, trial_view
from onceproof.page.matrix import format_begin
from onceproof.page.runs import SHAPELESS, NotThereError, find_folder, own_file, own_folder
from onceproof.results.evidence.case import cell_of, trials_of

RECENT = 30  # runs in the list


@dataclass(frozen=True)
class ApplicationRunRow:
    """A run of an application in the list."""

    run: str
    begun: str
    answer: AppAnswer


@dataclass(frozen=True)
class ApplicationReleaseView:
    """The result of a run on a release; `trials` are the keys of those that are there, and what each is.

    `cell` is the one that the release was run in, if that is known.
    """

    result: OnRelease
    anomalies: tuple[AnomalyCount, ...]
    trials: tuple[tuple[str, str], ...]
    cell: Cell | None


@dataclass(frozen=True)
class ApplicationView(ApplicationRunRow):
    """A run of an application, release by release."""

    releases: tuple[ApplicationReleaseView, ...]


def applications_view(runs: Path) -> tuple[list[ApplicationRunRow], list[str]]:
    """The last runs of applications, newest first, and why others cannot be shown."""
    shown: list[ApplicationRunRow] = []
    damaged: list[str] = []
    for file in sorted(runs.glob("*/app.json"), reverse=True):
        name = file.parent.name
        if len(shown) == RECENT or not is_run_id(name):
            continue
        try:
            shown.append(ApplicationRunRow(name, format_begin(name), find_answer(runs, name)))
        except NotThereError:
            continue
        except (HarnessError, *SHAPELESS) as error:
            damaged.append(f"The run {name} cannot be shown: {error}")
    return shown, damaged


def find_answer(runs: Path, run: str) -> AppAnswer:
    """The result of a run of an application.

    Raises:
        NotThereError: there is no such run, it is not of an application, or a link leads out of it.
        HarnessError: it is damaged.
    """
    folder = find_folder(runs, run)
    if not folder.app_file.exists():
        raise NotThereError(f"The run {run!r} is not of an application, or has not ended.")
    return AppAnswer.read(own_file(folder, folder.app_file))


def application_view(runs: Path, run: str) -> ApplicationView:
    """A run of an application: each release with what it showed.

    Raises:
        NotThereError, HarnessError: as `find_answer`.
    """
    answer = find_answer(runs, run)
    folder = RunFolder(runs / run)
    return ApplicationView(
        run, format_begin(run), answer, tuple(_release(folder, release) for release in answer.releases)
    )


def _release(run: RunFolder, release: OnRelease) -> ApplicationReleaseView:
    there = tuple((key, what) for key, what in _trials(release) if run.trial(key).path.is_dir())
    return ApplicationReleaseView(release, counts_of(release.anomalies), there, cell_of(run, release))


def _trials(release: OnRelease) -> Iterator[tuple[str, str]]:
    """The keys of its trials, and what each is: two without the fault, the one with it, and the controls."""
    whats = ("without a fault", "without a fault", "under the fault")
    for folder, what in zip(release.folders, whats, strict=False):
        yield Path(folder).name, what
    for control in release.controls:
        yield Path(control.folder).name, f"{control.plant}, planted"


def application_trial(runs: Path, run: str, key: str) -> tuple[TrialView, TrialFolder]:
    """The view of a trial of a run, and its folder.

    Raises:
        NotThereError: the run has no such trial, or a link in its folder leads elsewhere.
        HarnessError: it is damaged.
    """
    answer, of = find_answer(runs, run), RunFolder(runs / run)
    folder = of.trial(key)
    if not any(key in dict(_trials(release)) for release in answer.releases) or not folder.path.is_dir():
        raise NotThereError(f"The run {run} has no trial {key!r}.")
    own_folder(of, folder)
    return trial_view(of, {}, TrialPlan.read(folder.trial_file).trial, ()), folder


def application_release(runs: Path, run: str, cell: str) -> RunFolder:
    """The run, of which a release was run in the cell with this key, and whose trials are all there.

    Raises:
        NotThereError: there is no such release, or a link in the folder of one of its trials leads elsewhere.
        HarnessError: it is damaged.
    """
    answer, of = find_answer(runs, run), RunFolder(runs / run)
    for release in answer.releases:
        known = cell_of(of, release)
        if known and known.key == cell:
            for key in trials_of(release):
                own_folder(of, of.trial(key))
            return of
    raise NotThereError(f"The run {run} has no release {cell!r} of which all trials are there.")
