"""The judged cell that evidence is about, or the release that an application ran on, and the trial that shows it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from onceproof.model.anomaly import Witness, first_of_each
from onceproof.model.cell import Cell, Trial, is_run_id
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.files import Reading, TrialPlan, VerdictRow
from onceproof.model.judged import AppAnswer, OnRelease
from onceproof.model.run_folder import RunFolder, TrialFolder
from onceproof.model.timeline import Event, read_timeline

WITNESSES = 20  # of each anomaly


@dataclass(frozen=True)
class EvidenceCase:
    """All that is reported about a cell, with one trial that represents the others."""

    run: RunFolder
    verdict: VerdictRow | OnRelease  # the latter of a user application
    trials: Sequence[Trial]
    shown: Trial

    @property
    def cell(self) -> Cell:
        """That is judged."""
        return self.shown.cell

    @property
    def errors(self) -> Mapping[str, str]:
        """The errors of the harness, by trial."""
        return self.verdict.errors if isinstance(self.verdict, VerdictRow) else {}

    @property
    def folder(self) -> TrialFolder:
        """Folder of the trial that is shown."""
        return self.run.trial(self.shown)

    @cached_property
    def events(self) -> Sequence[Event]:
        """The events; nothing if it was not driven or its timeline is damaged."""
        try:
            return read_timeline(self.folder.timeline)
        except HarnessError:
            return ()

    def reader(self, trial: Trial) -> Reading | None:
        """The findings of the independent reader; None if it did not get that far."""
        return Reading.read_known(self.run.trial(trial).reader_file)

    @property
    def witnesses(self) -> list[Witness]:
        """The first of each anomaly, by anomaly, as they are counted; the tables number them from 1."""
        reader = self.reader(self.shown)
        rank = {name: number for number, name in enumerate(reader.anomalies)} if reader else {}
        found = first_of_each(reader.witnesses, WITNESSES) if reader else []
        return sorted(found, key=lambda witness: rank.get(witness.anomaly, len(rank)))


def find_run(runs: Path, wanted: str, *, applications: bool = False) -> RunFolder:
    """The judged run of this id; `last` is the newest that is judged. Those of `applications` count if asked for.

    Raises:
        UsageError: there is none, or it is not judged.
    """
    ids = [path.name for path in sorted(runs.glob("*"), reverse=True) if is_run_id(path.name)]
    folders = {name: RunFolder(runs / name) for name in ids}
    judged = [
        name for name, of in folders.items() if of.verdicts_file.exists() or (applications and of.app_file.exists())
    ]
    if wanted == "last" and judged:
        return RunFolder(runs / judged[0])
    there_are = f"judged are {_some(judged)}" if judged else "none is judged yet; `onceproof run` makes one"
    if wanted not in ids:
        raise UsageError(f"There is no run {wanted!r} in {runs}: {there_are}.")
    if wanted not in judged:
        raise UsageError(f"Run {wanted} is not judged, so there is no verdict to give evidence of: {there_are}.")
    return RunFolder(runs / wanted)


def find_cell(run: RunFolder, wanted: str) -> VerdictRow:
    """The verdict of the cell with this key, or of the only one whose key has this part.

    Raises:
        UsageError: there is none, or there are several, or the run is not judged.
        HarnessError: the verdicts are damaged.
    """
    if not run.verdicts_file.exists():
        raise UsageError(f"Run {run.run_id} is not judged, so there is no verdict to give evidence of.")
    verdicts = {row.cell: row for row in VerdictRow.read_all(run.verdicts_file)}
    return verdicts[_find_key(run, list(verdicts), wanted)]


def _find_key(run: RunFolder, cells: Sequence[str], wanted: str) -> str:
    """The key of a cell that is meant: all of it, or a part that no other has.

    Raises:
        UsageError: there is none, or there are several.
    """
    if wanted in cells:
        return wanted
    fitting = [cell for cell in cells if wanted.casefold() in cell.casefold()]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise UsageError(f"{wanted!r} is part of {len(fitting)} cells, name one: {_some(fitting, len(fitting))}.")
    raise UsageError(f"Run {run.run_id} has no cell {wanted!r}; it has {_some(cells, len(cells))}.")


def find_case(run: RunFolder, wanted: str) -> EvidenceCase:
    """The cell with this key, or this part of it, with the trial that shows most; of an application's run, a release.

    Raises:
        UsageError: as `find_cell`.
        HarnessError: the run is incomplete or damaged.
    """
    if not run.app_file.exists():
        return case_of(run, find_cell(run, wanted))
    releases = {cell.key: result for result in AppAnswer.read(run.app_file).releases if (cell := cell_of(run, result))}
    return _case_of_application(run, releases[_find_key(run, list(releases), wanted)])


def cell_of(run: RunFolder, result: OnRelease) -> Cell | None:
    """The cell in which an application was run on a release; None if what one of its trials left was removed."""
    plans = [TrialPlan.read_known(run.trial(key).trial_file) for key in trials_of(result)]
    judged_by = plans[len(result.folders) - 1]
    return judged_by.trial.cell if judged_by and all(plans) else None


def trials_of(result: OnRelease) -> list[str]:
    """The keys of the trials of an application on a release; the last of them are the controls."""
    return [Path(folder).name for folder in (*result.folders, *(control.folder for control in result.controls))]


def _case_of_application(run: RunFolder, result: OnRelease) -> EvidenceCase:
    """A release with the trial that it is judged by: the last of them, without the controls."""
    trials = [TrialPlan.read(run.trial(key).trial_file).trial for key in trials_of(result)]
    return EvidenceCase(run, result, trials, trials[len(result.folders) - 1])


def _some(names: Sequence[str], limit: int = 5) -> str:
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def case_of(run: RunFolder, verdict: VerdictRow) -> EvidenceCase:
    """The cell with the trial that shows most: a red one, else one that ended well, else any."""
    trials = [trial for trial in run.trials() if trial.cell.key == verdict.cell]
    if not trials:
        raise HarnessError(f"{run.run_file} has no trial of {verdict.cell}: the run is incomplete or damaged.")

    def worth(trial: Trial) -> tuple[bool, bool, bool]:
        reader = Reading.read_known(run.trial(trial).reader_file)
        red = reader is not None and bool(reader.anomalies)
        sound = trial.key not in verdict.errors
        return red and sound, sound, run.trial(trial).path.exists()

    shown = max(trials, key=worth)  # the first of equals
    return EvidenceCase(run, verdict, trials, shown)
