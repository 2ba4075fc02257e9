"""The runs in the results database, and what each of them changed compared with earlier ones."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import median
from typing import Any

from sqlalchemy import select

from onceproof.model.cell import Cell
from onceproof.model.errors import UsageError
from onceproof.model.files import VerdictRow
from onceproof.model.json_file import read_json
from onceproof.model.run_folder import RunFolder
from onceproof.model.verdict import Verdict
from onceproof.results.database import CellRow, RunRow, TrialRow, database, is_missing

# What a verdict amounts to; a cell that goes from one to another has changed.
STATE = {
    Verdict.REGRESSION: "red",
    Verdict.KNOWN: "red",
    Verdict.ERROR: "in error",
    Verdict.INCONCLUSIVE: "inconclusive",
    Verdict.AVOIDED: "avoided",
    Verdict.PROVISIONAL: "green",
    Verdict.CLEAN: "green",
    Verdict.FIXED: "green",
}
SLOWER, NEW = "slower", "new cell"
# The order in which they are listed.
KINDS = (
    *("newly red", "newly unexplained", "newly in error", "newly inconclusive"),
    *("newly avoided", "newly explained", "newly green", SLOWER, NEW),
)
# A trial is slower if it takes this much longer than usual: both, because small ones vary by seconds.
FACTOR, SECONDS = 1.5, 5.0
USUAL = 10  # the last cells that say what is usual


@dataclass(frozen=True)
class JudgedCell:
    """A cell as one run judged it."""

    run: str
    cell: Cell
    verdict: Verdict
    red: int
    counted: int
    seconds: float | None  # mean of its trials
    issues: tuple[str, ...]

    @classmethod
    def from_dict(cls, run: str, data: Mapping[str, Any]) -> "JudgedCell":
        """Read a row of the table of cells, or the fields of a `VerdictRow`."""
        return cls(
            run,
            Cell.from_dict(data),
            Verdict(data["verdict"]),
            data["red"],
            data["counted"],
            data["seconds"],
            tuple(data["issues"]),
        )

    def to_dict(self) -> dict[str, object]:
        """JSON form, without the cell."""
        counts = {"red": self.red, "counted": self.counted, "seconds": self.seconds}
        return {"run": self.run, "verdict": str(self.verdict), **counts, "issues": list(self.issues)}


@dataclass(frozen=True)
class JudgedRun:
    """A run with its cells, in the order of its plan."""

    id: str
    created: str
    matrix: str
    folder: str
    cells: tuple[JudgedCell, ...]

    @property
    def counts(self) -> dict[str, int]:
        """How many cells have each verdict; those that occur."""
        verdicts = [judged.verdict for judged in self.cells]
        return {str(verdict): verdicts.count(verdict) for verdict in Verdict if verdict in verdicts}

    def to_dict(self, changes: "Sequence[CellChange]") -> dict[str, object]:
        """JSON form, without the cells."""
        fields = {"run": self.id, "created": self.created, "matrix": self.matrix, "folder": self.folder}
        return {**fields, "counts": self.counts, "changes": [change.to_dict() for change in changes]}


@dataclass(frozen=True)
class CellChange:
    """The change of a cell; `before` is the same cell in the last earlier run that had it."""

    kind: str
    now: JudgedCell
    before: JudgedCell | None
    usual: float | None  # seconds of a trial, median of the earlier runs

    def to_dict(self) -> dict[str, object]:
        """JSON form."""
        return {
            "change": self.kind,
            **self.now.cell.to_dict(),
            "cell": self.now.cell.key,
            "verdict": str(self.now.verdict),
            "seconds": self.now.seconds,
            "before": self.before.to_dict() if self.before else None,
            "usual_seconds": self.usual,
        }


def compare(cells: Sequence[JudgedCell], earlier: Mapping[Cell, Sequence[JudgedCell]]) -> list[CellChange]:
    """The changes in these cells of a run compared with those of earlier runs, which are given oldest first.

    Nothing if there was no earlier run to compare with.
    """
    if not earlier:
        return []
    found = []
    for now in cells:
        past = earlier.get(now.cell, ())
        before = past[-1] if past else None
        usual = usual_seconds(past)
        kind = NEW if before is None else _describe_change(now.verdict, before.verdict)
        if kind is not None:
            found.append(CellChange(kind, now, before, usual))
        if _is_slower(now, usual):
            found.append(CellChange(SLOWER, now, before, usual))
    return sorted(found, key=lambda change: KINDS.index(change.kind))


def _describe_change(now: Verdict, before: Verdict) -> str | None:
    if STATE[now] != STATE[before]:
        return f"newly {STATE[now]}"
    if (
        now is not before and STATE[now] == "red"
    ):  # a red that was known and is no longer explained, or the other way round
        return "newly unexplained" if now is Verdict.REGRESSION else "newly explained"
    return None


def usual_seconds(past: Sequence[JudgedCell]) -> float | None:
    """The usual seconds of a trial of a cell: the median of its last runs, without errors, which end early or late."""
    known = (c.seconds for c in reversed(past) if c.seconds is not None and c.verdict is not Verdict.ERROR)
    last = list(islice(known, USUAL))
    return round(median(last), 2) if last else None


def _is_slower(now: JudgedCell, usual: float | None) -> bool:
    if usual is None or now.seconds is None or now.verdict is Verdict.ERROR:
        return False
    return now.seconds >= FACTOR * usual and now.seconds - usual >= SECONDS


def changes(runs: Sequence[JudgedRun]) -> dict[str, list[CellChange]]:
    """The changes of each of the runs, given newest first, compared with all before it, by its id."""
    earlier: dict[Cell, list[JudgedCell]] = defaultdict(list)
    found = {}
    for run in reversed(runs):
        found[run.id] = compare(run.cells, earlier)
        for judged in run.cells:
            earlier[judged.cell].append(judged)
    return found


def cells_over_time(runs: Sequence[JudgedRun], text: str, limit: int) -> dict[Cell, list[tuple[JudgedRun, JudgedCell]]]:
    """The matching cells in the last runs that had any of them; both runs and what is returned are newest first.

    Raises:
        UsageError: no stored run has such a cell.
    """
    having = [run for run in runs if any(is_named(judged.cell, text) for judged in run.cells)]
    if not having:
        raise UsageError(f"No stored run has a cell that is named by {text!r}; name one like '3.8.1 quota'.")
    found: dict[Cell, list[tuple[JudgedRun, JudgedCell]]] = defaultdict(list)
    for run in having[:limit]:
        for judged in run.cells:
            if is_named(judged.cell, text):
                found[judged.cell].append((run, judged))
    return {cell: found[cell] for cell in sorted(found, key=_order)}


def is_named(cell: Cell, text: str) -> bool:
    """Whether the text is the cell's key, or each of its words is in the cell's releases, scenario or variant."""
    name = f"{cell.releases} {cell.scenario} {cell.variant}".lower()
    return text == cell.key or all(word in name for word in text.lower().split())


def _order(cell: Cell) -> tuple[object, ...]:
    return cell.scenario, cell.variant, cell.streams, cell.restart_on is not None, cell.running, cell.broker


def read_runs(url: str) -> list[JudgedRun]:
    """All runs of the results database, newest first; none if there is no database yet.

    Raises:
        HarnessError: the database refuses.
    """
    if is_missing(url):
        return []
    with database(url) as engine, engine.begin() as connection:
        runs = connection.execute(select(RunRow.id, RunRow.created, RunRow.matrix, RunRow.folder)).all()
        cells: dict[str, list[JudgedCell]] = defaultdict(list)
        for row in connection.execute(select(CellRow.__table__).order_by(CellRow.id)).mappings():
            cells[row["run_id"]].append(JudgedCell.from_dict(row["run_id"], dict(row)))
    return newest_first([JudgedRun(*run, cells=tuple(cells[run.id])) for run in runs])


def seconds_by_scenario(url: str) -> dict[str, list[float]]:
    """The seconds of all trials that ended well; nothing if there is no database yet.

    Raises:
        HarnessError: the database refuses.
    """
    if is_missing(url):
        return {}
    query = select(CellRow.scenario, TrialRow.seconds).join(TrialRow, TrialRow.cell_id == CellRow.id)
    found: dict[str, list[float]] = defaultdict(list)
    with database(url) as engine, engine.begin() as connection:
        for scenario, seconds in connection.execute(query.where(TrialRow.error.is_(None))):
            if "total" in seconds:
                found[scenario].append(seconds["total"])
    return dict(found)


def newest_first(runs: Sequence[JudgedRun]) -> list[JudgedRun]:
    """The runs, the newest first."""
    return sorted(runs, key=lambda run: (run.created, run.id), reverse=True)


def changes_of(run: RunFolder, url: str) -> list[CellChange]:
    """The changes of a judged run compared with the stored runs before it, whether it is stored itself or not.

    Raises:
        HarnessError: the run is not judged, or the database refuses.
    """
    return changes_against(run, read_runs(url))


def changes_against(run: RunFolder, stored: Sequence[JudgedRun]) -> list[CellChange]:
    """The same, for runs that are read already.

    Raises:
        HarnessError: the run is not judged.
    """
    plan = read_json(run.run_file)
    cells = tuple(JudgedCell.from_dict(run.run_id, vars(row)) for row in VerdictRow.read_all(run.verdicts_file))
    now = JudgedRun(run.run_id, plan["created"], plan["matrix"], str(run.path), cells)
    others = [other for other in stored if other.id != now.id]
    return changes(newest_first([now, *others]))[now.id]
