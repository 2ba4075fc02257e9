"""What can be done while trials are still driven, is done then.

A JVM loads and compiles classes, ours and those that Spark generates, only once: so a rehearsal collects and checks
trials that have ended; what it finds is thrown away. And topics of trials that have ended do not change any more: they
are copied, for good.
"""

import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from onceproof.model.cell import Trial
from onceproof.model.files import TrialPlan
from onceproof.model.json_file import write_json
from onceproof.model.run_folder import RunFolder

T = TypeVar("T")

LOOK_EVERY = 1.0  # seconds
STILL_OPEN = 8  # trials; with fewer, what is taken from them is more than what is saved afterwards
TOGETHER = 8  # trials whose topics are copied at once: Spark takes its time for each job, whatever it reads


def rehearse(
    run_folder: RunFolder,
    perform: Callable[[RunFolder], None],
    copy: Callable[[list[Trial]], None],
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Perform on a trial of each topology, when there is one, and copy the topics of trials, each once.

    Until few trials are left. What fails is told, and left to what comes afterwards.
    """
    rehearsed: set[str] = set()
    copied: set[str] = set()
    before = None
    while not run_folder.trials_over.exists():
        left = still_open(run_folder)
        if left == before or left < STILL_OPEN:
            sleep(LOOK_EVERY)
            continue
        before = left
        new = {topology: trial for topology, trial in by_topology(run_folder).items() if topology not in rehearsed}
        if new:
            rehearsed |= new.keys()
            with TemporaryDirectory(prefix="rehearsal-", dir=run_folder.path) as folder:  # for executors elsewhere, too
                attempt("rehearsal", perform, excerpt(run_folder, list(new.values()), Path(folder)))
        ended = [trial for trial in run_folder.driven_trials() if trial.key not in copied]
        if len(ended) >= TOGETHER:
            copied |= {trial.key for trial in ended}
            attempt("copying of topics", copy, ended)


def attempt(what: str, verb: Callable[[T], None], of: T) -> None:
    """Do what is done again, or better, later; then it will tell why it cannot be done."""
    try:
        verb(of)
    except Exception as error:
        print(f"The {what} failed: {type(error).__name__}: {error}")


def still_open(run_folder: RunFolder) -> int:
    """How many trials have not ended."""
    return sum(not run_folder.trial(trial).outcome_file.exists() for trial in run_folder.trials())


def by_topology(run_folder: RunFolder) -> dict[str, Trial]:
    """A trial of each topology that has been driven."""
    driven = run_folder.driven_trials()
    return {TrialPlan.read(run_folder.trial(trial).trial_file).check: trial for trial in driven}


def excerpt(run_folder: RunFolder, trials: list[Trial], folder: Path) -> RunFolder:
    """A run folder with these trials only; its tables are its own."""
    part = RunFolder(folder / run_folder.run_id)
    write_json(part.run_file, {"trials": [trial.to_dict() for trial in trials]})
    for name in ("clusters", "trials"):
        (part.path / name).symlink_to(run_folder.path / name)
    return part
