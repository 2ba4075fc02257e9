"""The knowledge about every cell when a run was judged, from the results database, without reading all runs."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, and_, func, or_, select

from onceproof.model.cell import Cell
from onceproof.model.files import VerdictRow
from onceproof.model.json_file import read_json
from onceproof.model.run_folder import RunFolder
from onceproof.model.verdict import Verdict
from onceproof.results.database import CellRow, RunRow, database, is_missing
from onceproof.results.history import USUAL, CellChange, JudgedCell, compare

DEPTH = 1 + 2 * USUAL  # verdicts of a cell: the last, and enough before it to say what is usual, errors among them
NAMED = (CellRow.scenario, CellRow.variant, CellRow.streams, CellRow.broker, CellRow.restart_on)
NEWEST_FIRST = (RunRow.created.desc(), RunRow.id.desc())


@dataclass(frozen=True)
class RunLine:
    """A run in a list: how many cells have which verdict."""

    id: str
    created: str
    matrix: str
    counts: Mapping[Verdict, int]


@dataclass(frozen=True)
class DatedVerdict:
    """A verdict of a cell, and when its run was created."""

    created: str
    judged: JudgedCell


@dataclass(frozen=True)
class KnownVerdicts:
    """A run, and the last verdicts, newest first, of every cell that it or an earlier run had."""

    run: str
    created: str
    matrix: str
    past: Mapping[Cell, Sequence[DatedVerdict]]

    @property
    def cells(self) -> list[JudgedCell]:
        """The cells of the run itself."""
        return [dated[0].judged for dated in self.past.values() if dated[0].judged.run == self.run]

    @property
    def changes(self) -> list[CellChange]:
        """The changes of the run compared with all before it."""
        earlier = {
            cell: [dated.judged for dated in reversed(past) if dated.judged.run != self.run]
            for cell, past in self.past.items()
        }
        return compare(self.cells, {cell: before for cell, before in earlier.items() if before})


def runs_stored(url: str, limit: int) -> list[RunLine]:
    """The last runs, newest first; none if there is no database yet.

    Raises:
        HarnessError: the database refuses.
    """
    if is_missing(url):
        return []
    with database(url) as engine, engine.begin() as connection:
        query = select(RunRow.id, RunRow.created, RunRow.matrix).order_by(*NEWEST_FIRST).limit(limit)
        rows = connection.execute(query).all()
        counts: dict[str, dict[Verdict, int]] = defaultdict(dict)
        counted = select(CellRow.run_id, CellRow.verdict, func.count()).group_by(CellRow.run_id, CellRow.verdict)
        for run, verdict, count in connection.execute(counted.where(CellRow.run_id.in_([row.id for row in rows]))):
            counts[run][Verdict(verdict)] = count
        return [RunLine(*row, counts=counts[row.id]) for row in rows]


def read_known_at(url: str, run: str) -> KnownVerdicts | None:
    """The knowledge at a stored run; None if it is not stored.

    Raises:
        HarnessError: the database refuses.
    """
    if is_missing(url):
        return None
    with database(url) as engine, engine.begin() as connection:
        found = connection.execute(select(RunRow.created, RunRow.matrix).where(RunRow.id == run)).one_or_none()
        if found is None:
            return None
        return KnownVerdicts(run, found.created, found.matrix, _past(connection, found.created, run))


def read_known_with(run: RunFolder, url: str) -> KnownVerdicts:
    """The knowledge at a judged run that is not stored, such as one that was copied from elsewhere.

    Raises:
        HarnessError: the run is damaged, or the database refuses.
    """
    plan = read_json(run.run_file)
    cells = [JudgedCell.from_dict(run.run_id, vars(row)) for row in VerdictRow.read_all(run.verdicts_file)]
    past: dict[Cell, Sequence[DatedVerdict]] = {}
    if not is_missing(url):
        with database(url) as engine, engine.begin() as connection:
            past = _past(connection, plan["created"], run.run_id)
    now = {judged.cell: [DatedVerdict(plan["created"], judged), *past.get(judged.cell, ())] for judged in cells}
    return KnownVerdicts(
        run.run_id, plan["created"], plan["matrix"], now | {c: p for c, p in past.items() if c not in now}
    )


def _past(connection: Connection, created: str, run: str) -> dict[Cell, Sequence[DatedVerdict]]:
    """The last verdicts of every cell up to a run, newest first; cells of the newest run first, in its order."""
    rank = func.row_number().over(partition_by=NAMED, order_by=NEWEST_FIRST).label("rank")
    ranked = _up_to(select(CellRow.id, RunRow.created, rank).join(RunRow), created, run).subquery()
    query = (
        select(CellRow.__table__, ranked.c.created)
        .join(ranked, CellRow.id == ranked.c.id)
        .where(ranked.c.rank <= DEPTH)
        .order_by(ranked.c.rank, ranked.c.created.desc(), CellRow.id)
    )
    past: dict[Cell, list[DatedVerdict]] = defaultdict(list)
    for row in connection.execute(query).mappings():
        dated = _date(dict(row))
        past[dated.judged.cell].append(dated)
    return dict(past)


def _up_to(query: Select[Any], created: str, run: str) -> Select[Any]:
    return query.where(or_(RunRow.created < created, and_(RunRow.created == created, RunRow.id <= run)))


def _date(row: dict[str, Any]) -> DatedVerdict:
    return DatedVerdict(row["created"], JudgedCell.from_dict(row["run_id"], row))


def verdicts_of(url: str, cell: Cell, limit: int) -> list[DatedVerdict]:
    """The last verdicts of one cell, newest first.

    Raises:
        HarnessError: the database refuses.
    """
    if is_missing(url):
        return []
    wanted: Mapping[str, object] = {**cell.to_dict()}
    query = select(CellRow.__table__, RunRow.created).join(RunRow).order_by(*NEWEST_FIRST).limit(limit)
    for column in NAMED:
        query = query.where(column.is_not_distinct_from(wanted[column.key]))
    with database(url) as engine, engine.begin() as connection:
        return [_date(dict(row)) for row in connection.execute(query).mappings()]
