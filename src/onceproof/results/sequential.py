"""Sequential stopping: which cell of a run gets another trial, from what its trials have shown so far."""

from collections.abc import Sequence

from onceproof.model.cell import Cell, Trial
from onceproof.model.files import Reading
from onceproof.model.known_issues import IssueRegistry
from onceproof.model.run_folder import RunFolder
from onceproof.model.verdict import CellVerdict, TrialEvidence, Verdict, judge
from onceproof.results.controls import Control, Past, control_of, place_evidence

OPEN = {Verdict.CLEAN, Verdict.FIXED, Verdict.INCONCLUSIVE}  # a red, an error and what is avoided need no more trials


def cell_that_wants_more(run: RunFolder, budget: int, registry: IssueRegistry, past: Past, risk: float) -> Cell | None:
    """The next cell to be given a trial, positive controls first; None if every claim holds or has used up its budget.

    Args:
        run: its trials, those without an outcome included, which are wanted.
        budget: trials a cell.
        registry: says which cells must be red.
        past: what earlier runs showed.
        risk: that a claimed green misses a bug, at most.
    """
    trials = run.trials_by_cell()
    verdicts = {cell: judge(cell, _evidence(run, of_cell), registry) for cell, of_cell in trials.items()}
    # Controls first: if one is not red, no number of greens of the cells that rest on it would say anything.
    for cell in sorted(trials, key=lambda cell: not registry.affecting(cell)):
        left = budget - len(trials[cell])
        is_open = not all(run.trial(trial).outcome_file.exists() for trial in trials[cell])
        if is_open or _wants_more(verdicts[cell], left, control_of(cell, verdicts, registry, past, risk)):
            return cell
    return None


def _evidence(run: RunFolder, trials: Sequence[Trial]) -> list[TrialEvidence]:
    """The reports of the lab about finished trials; Spark has not read them yet."""
    found, planned = [], run.list_planned_keys()
    for trial in trials:
        if outcome := run.outcome(trial):
            evidence = TrialEvidence(
                trial.key,
                trial.seed,
                outcome.exercised,
                outcome.all_steps_tried,
                outcome.reason,
                {} if outcome.error else Reading.read(run.trial(trial).reader_file).anomalies,
                error=outcome.error,
                is_void=outcome.void is not None,
            )
            found.append(place_evidence(evidence, trial, outcome, planned))
    return found


def _wants_more(verdict: CellVerdict, left: int, control: Control) -> bool:
    """Whether another trial may make the claim of a cell hold, with `left` trials left."""
    is_affected = bool(verdict.issues)
    if left <= 0 or verdict.verdict not in OPEN:
        return False
    if is_affected and verdict.verdict is Verdict.INCONCLUSIVE:
        return True  # not exercised, or not all that must show did
    if control.cell is None or not control.is_alive:
        return is_affected  # no number of greens would say anything, but a control may yet be red
    # As long as the claim can still be reached: a trial that cannot change the verdict is not worth its minute. To stop
    # by what trials showed would bias a rate, so only trials that were planned before the first one count in rates.
    return 0 < control.count_needed(verdict.greens + left) - verdict.greens <= left
