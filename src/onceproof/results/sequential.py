"""Sequential stopping: which cell of a run gets another trial, from what its trials have shown so far."""

from collections.abc import Sequence

from onceproof.model.cell import Cell, Trial
from onceproof.model.known_issues import Registry
from onceproof.model.run_folder import RunFolder, read_json
from onceproof.model.verdict import CellVerdict, TrialEvidence, Verdict, judge
from onceproof.results.controls import Before, Control, control_of, tally_of

OPEN = {Verdict.CLEAN, Verdict.FIXED, Verdict.INCONCLUSIVE}  # a red, an error and what is avoided need no more trials


def cell_that_wants_more(run: RunFolder, budget: int, registry: Registry, before: Before) -> Cell | None:
    """The next cell to be given a trial, positive controls first; None if every claim stands or has used its budget.

    Args:
        run: its trials, those without an outcome included, which are wanted.
        budget: trials a cell.
        registry: says which cells must be red.
        before: trials of affected cells in the past.
    """
    trials = run.trials_by_cell()
    verdicts = {cell: judge(cell, _evidence(run, of_cell), registry) for cell, of_cell in trials.items()}
    tallies = {cell: tally_of(verdict) for cell, verdict in verdicts.items()}
    for cell in sorted(trials, key=lambda cell: not registry.affecting(cell)):
        left = budget - len(trials[cell])
        is_open = not all(run.trial(trial).outcome_file.exists() for trial in trials[cell])
        if is_open or _wants_more(verdicts[cell], left, control_of(cell, tallies, registry, before)):
            return cell
    return None


def _evidence(run: RunFolder, trials: Sequence[Trial]) -> list[TrialEvidence]:
    """What the lab says of trials that are over; Spark has not read them yet."""
    found = []
    for trial in trials:
        if outcome := run.outcome(trial):
            error, exercised = outcome["error"], outcome["exercised"]
            anomalies = {} if error else read_json(run.trial(trial).reader_file)["anomalies"]
            known = {"anomalies": anomalies, "error": error, "all_steps_tried": outcome["all_steps_tried"]}
            found.append(TrialEvidence(trial.key, trial.seed, exercised, reason=outcome["reason"], **known))
    return found


def _wants_more(verdict: CellVerdict, left: int, control: Control | None) -> bool:
    """Whether another trial may let the claim of a cell stand, for which `left` are left."""
    is_affected = bool(verdict.issues)
    if left <= 0 or verdict.verdict not in OPEN:
        return False
    if is_affected and verdict.verdict is Verdict.INCONCLUSIVE:
        return True  # not exercised, or not all that must show did
    if control is None or not control.now.red:
        return is_affected  # no number of greens would say anything, but a control may yet be red
    return 0 < control.needed - verdict.counted <= left
