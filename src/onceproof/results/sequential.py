"""Sequential stopping: which cell of a run gets another trial, from what its trials have shown so far."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from onceproof.model.cell import Cell, Trial
from onceproof.model.known_issues import Registry
from onceproof.model.run_folder import RunFolder, read_json
from onceproof.results.controls import Before, Tally, control_of


def cell_that_wants_more(run: RunFolder, budget: int, registry: Registry, before: Before) -> Cell | None:
    """The next cell to be given a trial, positive controls first; None if every claim stands or has used its budget.

    Args:
        run: its trials, those without an outcome included, which are wanted.
        budget: trials a cell.
        registry: says which cells must be red.
        before: trials of affected cells in the past.
    """
    trials: dict[Cell, list[Trial]] = defaultdict(list)
    for trial in run.trials():
        trials[trial.cell].append(trial)
    tallies = {cell: _tally(run, of_cell) for cell, of_cell in trials.items()}
    for cell in sorted(trials, key=lambda cell: not registry.affecting(cell)):
        if _wants_more(run, trials[cell], tallies, budget, registry, before):
            return cell
    return None


def _tally(run: RunFolder, trials: Sequence[Trial]) -> Tally:
    sound = [trial for trial in trials if run.outcome(trial).get("error", "not run") is None]
    red = [trial for trial in sound if read_json(run.trial(trial).reader_file)["anomalies"]]
    counted = [trial for trial in sound if trial in red or run.outcome(trial)["exercised"]]
    return Tally(len(red), len(counted))


def _wants_more(
    run: RunFolder,
    trials: Sequence[Trial],
    tallies: Mapping[Cell, Tally],
    budget: int,
    registry: Registry,
    before: Before,
) -> bool:
    outcomes = [run.outcome(trial) for trial in trials]
    if not all(outcomes):
        return True
    cell, left = trials[0].cell, budget - len(trials)
    tally = tallies[cell]
    if left <= 0 or tally.red or any(outcome["error"] for outcome in outcomes):
        return False
    if not tally.counted and registry.avoidance(cell):
        return False
    if registry.affecting(cell):
        return True
    control = control_of(cell, tallies, registry, before)
    if control is None or not control.now.red:
        return False  # no number of greens would say anything
    return 0 < control.needed - tally.counted <= left
