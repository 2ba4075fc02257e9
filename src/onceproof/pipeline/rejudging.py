"""Judges a run again by what its trials left: measured then, judged now. Nothing is driven, and no broker is needed.

All is made in a folder of its own below the run's, and takes the place of what was there when it is complete. A call
that is cut short leaves the run as it was. If it is cut short while it replaces files, the run has no verdicts until
another call completes it; the folder stays as the mark of that.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

from onceproof.harness import judged_now
from onceproof.lab.rejudging import judge_again
from onceproof.model.cell import Trial
from onceproof.model.errors import HarnessError
from onceproof.model.files import VerdictRow, write_observations
from onceproof.model.run_folder import RunFolder, TrialFolder
from onceproof.model.verdict import Verdict
from onceproof.pipeline import steps
from onceproof.spark import choose_compiler, collect_and_check

WORK = "rejudging"  # folder below that of the run
READ = ("reader.json", "observations.json", "outcome.json")  # of each trial, in the order in which they are replaced
MADE = ("tables", "validations", "data_docs")  # folders of the run


@dataclass(frozen=True)
class Change:
    """A cell whose verdict is another one."""

    cell: str  # its key
    before: Verdict | None  # None: it was not judged
    now: Verdict
    sentence: str  # of the verdict now


@dataclass(frozen=True)
class Rejudged:
    """A run that was judged again."""

    run: str  # its id
    trials: int  # that were read again
    cells: int
    changes: tuple[Change, ...]


def rejudge(run: RunFolder) -> Rejudged:
    """Judge a run again, by both readers and the suites of now.

    Raises:
        HarnessError: trials did not keep their messages, as those of 0.2.0 and before; or a reader failed.
    """
    driven = run.list_driven()
    if bare := [trial.key for trial in driven if not run.trial(trial).topics.exists()]:
        raise HarnessError(
            f"{len(bare)} of the {len(driven)} trials of run {run.run_id} did not keep their messages, so it cannot be "
            f"judged again: the first is {bare[0]}. Onceproof 0.2.0 and before did not keep any: run it again."
        )
    before = {row.cell: row for row in VerdictRow.read_all(run.verdicts_file)} if run.verdicts_file.exists() else {}
    work = RunFolder(run.path / WORK / run.run_id)
    try:
        _lay_out(run, work)
        _read_again(work, driven)
        collect_and_check(work, env=choose_compiler(len(driven)), kept=True)
        steps.validate(work)
        steps.judge(work)
        rows = VerdictRow.read_all(work.verdicts_file)
    except BaseException:
        shutil.rmtree(work.path.parent, ignore_errors=True)
        raise
    _replace(run, work, driven)
    shutil.rmtree(work.path.parent, ignore_errors=True)
    return Rejudged(run.run_id, len(driven), len(rows), tuple(_find_changes(before, rows)))


def is_half_replaced(run: RunFolder) -> bool:
    """Whether a call was cut short while it replaced the files of a run."""
    return (run.path / WORK).exists() and not run.verdicts_file.exists()


def _lay_out(run: RunFolder, work: RunFolder) -> None:
    """Make a run folder of links to what was measured, without anything that was made of it."""
    shutil.rmtree(work.path.parent, ignore_errors=True)
    work.path.mkdir(parents=True)
    for file in (run.run_file, run.further_trials_file):
        if file.exists():
            (work.path / file.name).symlink_to(file)
    for trial in run.trials():
        source, target = run.trial(trial).path, work.trial(trial).path
        target.mkdir(parents=True)
        for child in source.iterdir() if source.exists() else ():
            if child.name in READ:
                shutil.copy(child, target / child.name)
            else:
                (target / child.name).symlink_to(child)


def _read_again(work: RunFolder, trials: Sequence[Trial]) -> None:
    """Have the independent reader read trials, as many at once as there are cores.

    Raises:
        HarnessError: it failed on one.
    """
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), get_context("spawn")) as pool:
        list(pool.map(_read_one, [work.trial(trial).path for trial in trials]))


def _read_one(folder: Path) -> None:
    trial = TrialFolder(folder)
    judged = judge_again(trial)
    write_observations(trial.observations_file, judged.observed)
    judged.reading.write(trial.reader_file)
    outcome = judged.outcome
    driven = outcome.harness and judged_now(outcome.harness, outcome.trial.cell.scenario)
    replace(outcome, harness=driven).write(trial.outcome_file)


def _replace(run: RunFolder, work: RunFolder, trials: Sequence[Trial]) -> None:
    """Put what was made in place of what the run had; the verdicts are gone first, and come last."""
    run.verdicts_file.unlink(missing_ok=True)
    for trial in trials:
        for name in READ:
            (work.trial(trial).path / name).replace(run.trial(trial).path / name)
    for name in MADE:
        shutil.rmtree(run.path / name, ignore_errors=True)
        if (work.path / name).exists():
            (work.path / name).rename(run.path / name)
    work.verdicts_file.replace(run.verdicts_file)


def _find_changes(before: dict[str, VerdictRow], rows: Sequence[VerdictRow]) -> Iterator[Change]:
    for row in rows:
        old = before.get(row.cell)
        if old is None or old.verdict != row.verdict or old.anomalies != row.anomalies or old.issues != row.issues:
            yield Change(row.cell, old.verdict if old else None, row.verdict, row.sentence)
