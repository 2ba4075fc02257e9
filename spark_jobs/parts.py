"""The tables of a run are made in parts: of trials that have ended, while others are still driven.

A part is a run folder of its own, below that of the run, with some of its trials. Nothing on disk says that it is
complete: that is known to the process that has made it, so what an attempt has left that was cut off is never taken
for a result.
"""

import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from onceproof.model.cell import Trial
from onceproof.model.json_file import write_json
from onceproof.model.run_folder import RunFolder
from spark_jobs import tables

LOOK_EVERY = 1.0  # seconds
STILL_OPEN = 8  # trials; with fewer, what is taken from them is more than what is saved afterwards
TOGETHER = 8  # trials of a part: Spark takes its time for each query, whatever it reads
AT_ONCE = 64  # trials, at most: each task reads the records of all

Perform = Callable[[RunFolder], None]  # writes the tables of a part


def make_ahead(run_folder: RunFolder, perform: Perform, sleep: Callable[[float], None] = time.sleep) -> list[RunFolder]:
    """Make parts until no further trial will be driven; returns those that are complete.

    One is begun when so many trials have ended that are in none. A part that fails, or cannot be read, is reported, and
    its trials are left to what comes afterwards.
    """
    shutil.rmtree(run_folder.parts, ignore_errors=True)  # of an attempt that was cut off
    made: list[RunFolder] = []
    tried: set[str] = set()
    before = None
    while not run_folder.trials_over.exists():
        left = still_open(run_folder)
        if left == before or left < STILL_OPEN:
            sleep(LOOK_EVERY)
            continue
        before = left
        ended = [
            trial for trial in run_folder.list_driven() if trial.key not in tried and run_folder.can_be_read(trial)
        ]
        if len(ended) < TOGETHER:
            continue
        tried |= {trial.key for trial in ended}
        part = excerpt(run_folder, ended)
        try:
            perform(part)
        except Exception as error:
            print(f"A part failed: {type(error).__name__}: {error}")
        else:
            if not tables.read_errors(part):
                made.append(part)
    return made


def still_open(run_folder: RunFolder) -> int:
    """How many trials have not ended."""
    return sum(not run_folder.trial(trial).outcome_file.exists() for trial in run_folder.trials())


def excerpt(run_folder: RunFolder, trials: Sequence[Trial]) -> RunFolder:
    """A run folder with these trials only; its tables are its own."""
    part = RunFolder(run_folder.parts / trials[0].key / run_folder.run_id)
    shutil.rmtree(part.path, ignore_errors=True)  # one that failed
    write_json(part.run_file, {"trials": [trial.to_dict() for trial in trials]})
    for name in ("clusters", "trials"):
        (part.path / name).symlink_to(run_folder.path / name)
    return part


def complete(run_folder: RunFolder, made: Iterable[RunFolder], perform: Perform) -> None:
    """Make what is in no part yet, at once if it is little, and of all of it the tables of the run."""
    driven = run_folder.list_driven()
    keys = {trial.key for trial in driven}
    parts = [part for part in made if {trial.key for trial in part.trials()} <= keys]
    there = {trial.key for part in parts for trial in part.trials()}
    left = [trial for trial in driven if trial.key not in there]
    try:
        if not parts and len(left) <= AT_ONCE:
            perform(run_folder)
            return
        for first in range(0, len(left), AT_ONCE):
            parts.append(excerpt(run_folder, left[first : first + AT_ONCE]))
            perform(parts[-1])
        merge(run_folder, parts)
    finally:
        shutil.rmtree(run_folder.parts, ignore_errors=True)


def merge(run_folder: RunFolder, parts: Sequence[RunFolder]) -> None:
    """Take the tables of the parts, which are of no use afterwards, for those of the run; each as a whole."""
    names = ("records", *tables.CHECKED)
    tables.drop(run_folder, *names)
    tables.write_errors(
        run_folder, {trial: error for part in parts for trial, error in tables.read_errors(part).items()}
    )
    tables.write_corrupt(run_folder, [record for part in parts for record in tables.read_corrupt(part)])
    for name in names:
        draft = tables.draft(run_folder, name)
        draft.mkdir(parents=True)
        for number, part in enumerate(parts):
            for file in part.table(name).rglob("*.parquet"):
                move(file, draft / file.relative_to(part.table(name)).with_name(f"{number}-{file.name}"))
        tables.publish(run_folder, name, draft)


def move(file: Path, target: Path) -> None:
    """Move a file on one file system."""
    target.parent.mkdir(parents=True, exist_ok=True)
    file.rename(target)
