"""The DAG `regression` reports a judged run to others: asset events, and a message about newly red cells."""

from collections import Counter, defaultdict

from onceproof.model.files import VerdictRow
from onceproof.model.plain import plain
from onceproof.model.run_folder import RunFolder
from onceproof.model.verdict import Verdict
from onceproof.settings import get_settings

# As in `steps`: heavy modules are imported by the verb that needs them.

NEWLY_RED = ("newly red", "newly unexplained")  # of `results.history.KINDS`


def event_of(run: RunFolder) -> dict[str, object]:
    """The content of an asset event: `run`, `folder`, `counts` (verdict -> cells), `changes` (kind -> keys of cells).

    Raises:
        HarnessError: the run is not judged, or the results database refuses.
    """
    from onceproof.results.history import changes_of

    changes = defaultdict(list)
    for change in changes_of(run, get_settings().database_url):
        changes[change.kind].append(change.now.cell.key)
    counts = Counter(str(row.verdict) for row in VerdictRow.read_all(run.verdicts_file))
    return {"run": run.run_id, "folder": str(run.path), "counts": dict(counts), "changes": dict(changes)}


def newly_red(run: RunFolder) -> list[str]:
    """Keys of the cells that are newly red: not red before, or no longer explained.

    A regression of a cell that no earlier run had counts, too: this is how a new release, or the very first run, shows
    what is broken.

    Raises:
        HarnessError: the run is not judged, or the results database refuses.
    """
    from onceproof.results.history import changes_against, read_runs

    stored = read_runs(get_settings().database_url)
    changed = {change.now.cell.key for change in changes_against(run, stored) if change.kind in NEWLY_RED}
    known = {judged.cell.key for other in stored if other.id != run.run_id for judged in other.cells}
    return [
        row.cell
        for row in VerdictRow.read_all(run.verdicts_file)
        if row.cell in changed or (row.verdict is Verdict.REGRESSION and row.cell not in known)
    ]


def message(run: RunFolder, cells: list[str]) -> str:
    """A line for each of the cells: its verdict, why, and how to see more; it says nothing about this machine.

    Raises:
        HarnessError: the run is not judged.
    """
    from onceproof.results.redaction import Redaction

    redaction = Redaction.of(run)
    verdicts = {row.cell: row for row in VerdictRow.read_all(run.verdicts_file)}
    lines = []
    for cell in cells:
        why = plain(redaction.text(" ".join(verdicts[cell].sentence.split())))
        see = f"Run {run.run_id}; see it with `onceproof results evidence {run.run_id} {cell}`."
        lines.append(f"{cell}: {verdicts[cell].verdict}: {why} {see}")
    return "\n".join(lines)
