"""The run folders that may be shown: those of this home, and nothing that a link in them leads to."""

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from onceproof.model.cell import Trial, is_run_id
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.files import VerdictRow
from onceproof.model.json_file import read_json
from onceproof.model.run_folder import RunFolder, TrialFolder

DAG = "regression"  # of Airflow; the only one whose runs are judged
ALIVE = timedelta(minutes=30)  # a run without a sign of life for longer has ended; only Airflow knows for sure
SHOWN = 5  # runs that are not stored
SIGNS = ("run.json", "trials/*/timeline.jsonl", "trials/*/outcome.json", "tables/*", "validations/*")
SHAPELESS = (AttributeError, KeyError, TypeError, ValueError, UsageError)  # JSON that is not what we write


class NotThereError(Exception):
    """The requested thing is not there, or is not ours to show; one sentence for the person who asked."""


@dataclass(frozen=True)
class Unfinished:
    """A run that is newer than all stored ones, or under way: a sentence, and how many of its trials are over."""

    run: str
    summary: str
    done: int
    planned: int
    under_way: bool


def is_within(folder: Path, path: Path) -> bool:
    """Whether a path leads to something that exists below the folder, all links followed."""
    try:
        return path.resolve(strict=True).is_relative_to(folder.resolve())
    except (OSError, ValueError):  # it does not exist, or its name cannot be one
        return False


def find_folder(runs: Path, run: str) -> RunFolder:
    """The folder of a run.

    Raises:
        NotThereError: the run has no folder of its own there.
    """
    path = runs / run
    if not is_run_id(run) or not is_within(runs, path) or not path.is_dir():
        raise NotThereError(f"There is no folder of a run {run!r}: it was removed, or it was never here.")
    return RunFolder(path)


def verdicts_in(run: RunFolder) -> dict[str, VerdictRow]:
    """The verdicts of a run by cell, as its folder has them.

    Raises:
        NotThereError: it has none, or they are a link to somewhere else.
        HarnessError: they are damaged.
    """
    if not run.verdicts_file.exists():
        raise NotThereError(f"Run {run.run_id} has no verdicts.")
    try:
        verdicts = VerdictRow.read_all(own_file(run, run.verdicts_file))
        if not [verdict.as_cell for verdict in verdicts]:
            raise ValueError("no verdict")
        return {verdict.cell: verdict for verdict in verdicts}
    except SHAPELESS as error:
        raise _explain_damage(run.verdicts_file, error) from error


def find_verdict(run: RunFolder, cell: str) -> VerdictRow:
    """The verdict of a cell.

    Raises:
        NotThereError: the run has none on it.
        HarnessError: the verdicts are damaged.
    """
    verdicts = verdicts_in(run)
    if cell not in verdicts:
        raise NotThereError(f"Run {run.run_id} has no cell {cell!r}.")
    return verdicts[cell]


def trials_of(run: RunFolder, cell: str) -> list[Trial]:
    """The trials of a cell, of which every file is the run's own.

    Raises:
        NotThereError: a link in the folder of the run leads elsewhere.
        HarnessError: the plan is damaged.
    """
    return _own_trials(run, (trial for trial in _list_planned(run) if trial.cell.key == cell))


def find_trial(run: RunFolder, wanted: str) -> Trial:
    """The trial with this key.

    Raises:
        NotThereError: the plan has none, or a link in the folder of the run leads elsewhere.
        HarnessError: the plan is damaged.
    """
    found = _own_trials(run, (trial for trial in _list_planned(run) if trial.key == wanted))
    if not found:
        raise NotThereError(f"Run {run.run_id} has no trial {wanted!r}.")
    return found[0]


def _own_trials(run: RunFolder, trials: Iterable[Trial]) -> list[Trial]:
    """The trials, if every file that is read of them is the run's own."""
    found = list(trials)
    for folder in (*map(run.trial, found), *(TrialFolder(run.table(table)) for table in ("records", "findings"))):
        own_folder(run, folder)
    return found


def check_plan(run: RunFolder) -> None:
    """Refuse a plan that is not the run's own.

    Raises:
        NotThereError: it is a link to somewhere else.
        HarnessError: it is damaged.
    """
    _list_planned(run)


def _list_planned(run: RunFolder) -> list[Trial]:
    own_file(run, run.run_file)
    own_file(run, run.further_trials_file)
    try:
        return list(run.trials())
    except SHAPELESS as error:
        raise _explain_damage(run.run_file, error) from error


def _explain_damage(file: Path, error: Exception) -> HarnessError:
    return HarnessError(f"{file} is incomplete or damaged ({type(error).__name__}: {error}).")


def own_folder(run: RunFolder, folder: TrialFolder) -> None:
    """Refuse a folder of the run in which something leads out of the run.

    Raises:
        NotThereError: a link does.
    """
    own_file(run, folder.path)
    for parent, folders, files in os.walk(folder.path):
        for name in (*folders, *files):
            if Path(parent, name).is_symlink():
                own_file(run, Path(parent, name))


def own_file(run: RunFolder, path: Path) -> Path:
    """The path.

    Raises:
        NotThereError: it leads out of the run.
    """
    if path.exists() and not is_within(run.path, path):
        raise NotThereError(f"{path.name} of run {run.run_id} is a link to somewhere else, which is not shown.")
    return path


def find_unfinished(runs: Path, newest: str | None, now: datetime) -> list[Unfinished]:
    """The last runs that are newer than the newest stored one, and all that are under way, newest first.

    A folder without a plan is not a run.
    """
    if not runs.is_dir():
        return []
    names = sorted((path.name for path in runs.iterdir() if is_run_id(path.name)), reverse=True)
    folders = [RunFolder(runs / name) for name in names]
    # Most are judged and stored: nothing more of those is read.
    open_ = [run for run in folders if run.run_id > (newest or "") or not run.verdicts_file.exists()]
    planned = [run for run in open_ if is_within(runs, run.path) and run.run_file.exists()]
    later = [run for run in planned if run.run_id > (newest or "")][:SHOWN]
    going = [run for run in planned if not run.verdicts_file.exists() and _is_alive(run, now)]
    return [_stands(run, now) for run in planned if run in later or run in going]


def _stands(run: RunFolder, now: datetime) -> Unfinished:
    """How far a run that is not stored has come."""
    try:
        trials = _list_planned(run)
        if run.verdicts_file.exists():
            verdicts_in(run)
    except (HarnessError, NotThereError):
        return Unfinished(
            run.run_id, f"Run {run.run_id} is damaged: its plan or its verdicts cannot be read.", 0, 0, False
        )
    done = sum(run.trial(trial).outcome_file.exists() for trial in trials)
    counts = f"{done} of {len(trials)} trials are over"
    if run.verdicts_file.exists():
        summary, alive = f"Run {run.run_id} is judged, but it is not in the results database (yet).", False
    else:
        alive = _is_alive(run, now)
        ended = f"has no verdicts and gave no sign of life for {_duration(now - _last_sign(run))}"
        if run.interrupted_file.exists():
            ended = "was interrupted"
        resume = "" if alive else f" `onceproof run --resume {run.run_id}` continues it."
        summary = f"Run {run.run_id} {'is under way' if alive else ended}: {counts}.{resume}"
    return Unfinished(run.run_id, summary, done, len(trials), alive)


def _is_alive(run: RunFolder, now: datetime) -> bool:
    return not run.interrupted_file.exists() and now - _last_sign(run) < ALIVE


def _duration(time: timedelta) -> str:
    hours, minutes = divmod(int(time.total_seconds()) // 60, 60)
    return f"{minutes} min" if hours == 0 else f"{hours} h" if hours < 48 else f"{hours // 24} days"


def _last_sign(run: RunFolder) -> datetime:
    """When something of the run was last written, as far as it still exists."""
    times = [0.0]
    for path in (path for pattern in SIGNS for path in run.path.glob(pattern)):
        if not path.name.startswith("."):  # a draft
            with suppress(FileNotFoundError):
                times.append(path.stat().st_mtime)
    return datetime.fromtimestamp(max(times), UTC)


def run_of_dag_run(runs: Path, dag_run: str) -> str:
    """The run that a DAG run of Airflow made: its plan says so.

    `onceproof run` gives both the same id; one that resumes an interrupted run has a suffix after a dot. A plus sign
    that was not encoded has become a space on the way.

    Raises:
        NotThereError: there is none, or none yet.
    """
    run_id = dag_run.partition(".")[0]
    if is_run_id(run_id):
        return run_id
    for name in sorted((path.name for path in runs.glob("*") if is_run_id(path.name)), reverse=True):
        with suppress(HarnessError, NotThereError, AttributeError):  # damaged, or a link to somewhere else
            folder = find_folder(runs, name)
            planned = read_json(own_file(folder, folder.run_file)).get("dag_run") or ""
            if dag_run in (planned, planned.replace("+", " ")):
                return name
    raise NotThereError(f"No run folder belongs to the DAG run {dag_run!r}: it has made no plan yet.")
