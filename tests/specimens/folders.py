"""Run folders made of specimens: one trial each."""

from pathlib import Path

from onceproof.model.cell import Cell, Trial
from onceproof.model.files import Produced
from onceproof.model.json_file import write_json
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from tests.specimens.enumerator import Specimen
from tests.specimens.files import a_plan, an_outcome

RUN_ID = "20261121T084500-3f2a"


def trial_of(number: int, run_id: str = RUN_ID) -> Trial:
    """A trial of the enumerator; only the number tells it from others of its run."""
    cell = Cell("enumerator", "DEFAULT_CONFIG", Release(3, 3, 1), Release(3, 9, 1))
    return Trial(run_id, cell, number, seed=number)


def run_folder_of(
    parent: Path, specimens: list[Specimen], bootstrap: str = "127.0.0.1:1", run_id: str = RUN_ID
) -> tuple[RunFolder, dict[str, Specimen]]:
    """A run folder with a driven trial for each specimen, and which specimen each trial key stands for."""
    run_folder = RunFolder(parent / run_id)
    trials = [trial_of(number, run_id) for number in range(1, len(specimens) + 1)]
    write_json(run_folder.run_file, {"trials": [trial.to_dict() for trial in trials]})
    write_json(run_folder.cluster_file("3.9.1"), {"bootstrap_servers": bootstrap})
    for trial, specimen in zip(trials, specimens, strict=True):
        folder = run_folder.trial(trial)
        a_plan(trial, partitions=specimen.partitions).write(folder.trial_file)
        produced = Produced(specimen.records, specimen.distinct_keys)
        an_outcome(trial, produced=produced).write(folder.outcome_file)
    return run_folder, {trial.key: specimen for trial, specimen in zip(trials, specimens, strict=True)}
