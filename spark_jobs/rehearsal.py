"""What a JVM does once, it does while trials are still driven: it loads and compiles classes, ours and those that Spark
generates. A rehearsal collects and checks trials that have ended; what it finds is thrown away.
"""

import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from onceproof.model.cell import Trial
from onceproof.model.files import TrialPlan
from onceproof.model.json_file import write_json
from onceproof.model.run_folder import RunFolder

LOOK_EVERY = 1.0  # seconds
STILL_OPEN = 2  # trials; with fewer, a rehearsal might take longer than they do


def rehearse(
    run_folder: RunFolder, perform: Callable[[RunFolder], None], sleep: Callable[[float], None] = time.sleep
) -> None:
    """Perform on a trial of each topology, whenever there is another one, until no further trial will be driven."""
    chosen: dict[str, Trial] = {}
    before = None
    while not run_folder.trials_over.exists():
        left = still_open(run_folder)
        if left == before or left < STILL_OPEN:
            sleep(LOOK_EVERY)
            continue
        before, known = left, len(chosen)
        chosen = by_topology(run_folder) | chosen
        if len(chosen) > known:
            with TemporaryDirectory(prefix="rehearsal-", dir=run_folder.path) as folder:  # for executors elsewhere, too
                try:
                    perform(excerpt(run_folder, list(chosen.values()), Path(folder)))
                except Exception as error:  # the performance itself will tell
                    print(f"The rehearsal failed: {type(error).__name__}: {error}")


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
