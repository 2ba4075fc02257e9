"""The last verdicts of the cells of some releases, those of the present harness first."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlalchemy import case, func, or_, select, tuple_

from onceproof.model.cell import Cell
from onceproof.model.release import Release
from onceproof.model.verdict import UNDECIDED, Verdict
from onceproof.results.database import CellRow, RunRow, TrialRow, database, is_missing
from onceproof.results.matrix_query import NAMED, NEWEST_FIRST


@dataclass(frozen=True)
class Measured:
    """The last verdict on a cell, and by which run."""

    cell: Cell
    verdict: Verdict
    sentence: str
    red: int
    counted: int
    excluded_rate: float | None  # of a green: bugs that show so often, or oftener, are excluded with 95 % confidence
    missed: float | None  # of the procedure that called it green: the probability that it misses a bug, at most
    issues: tuple[str, ...]
    run: str
    created: str
    is_current: bool  # its trials were driven and read by the harness as it is
    by: str | None = None  # of what was not measured here: by which version of Onceproof, and when

    @property
    def is_decided(self) -> bool:
        """Whether the verdict is neither an error nor inconclusive."""
        return self.verdict not in UNDECIDED


def read_measured(url: str, releases: Collection[Release], harness: Mapping[str, str]) -> list[Measured]:
    """One verdict of each cell that stays among these releases of Kafka Streams, in the order of the last run's plan.

    The last that decided by this harness; else the last that decided; else the last.

    Args:
        url: of the results database.
        releases: of Kafka Streams.
        harness: its version, by scenario.

    Raises:
        HarnessError: the database refuses.
    """
    if is_missing(url):
        return []
    names = [str(release) for release in releases]
    by_this = tuple_(CellRow.scenario, TrialRow.harness).in_([*harness.items()])
    by_us = select(TrialRow.id).where(TrialRow.cell_id == CellRow.id, by_this).exists()
    # PostgreSQL has no order of truth values and numbers together, so both are numbers.
    current = case((by_us, 1), else_=0).label("current")
    decided = case((CellRow.verdict.in_([str(verdict) for verdict in UNDECIDED]), 0), else_=1)
    order = (decided.desc(), current.desc(), *NEWEST_FIRST)
    rank = func.row_number().over(partition_by=NAMED, order_by=order).label("rank")
    ranked = (
        select(CellRow.id, RunRow.created, current, rank)
        .join(RunRow)
        .where(CellRow.streams.in_(names), or_(CellRow.restart_on.is_(None), CellRow.restart_on.in_(names)))
        .subquery()
    )
    query = (
        select(CellRow.__table__, ranked.c.created, ranked.c.current)
        .join(ranked, CellRow.id == ranked.c.id)
        .where(ranked.c.rank == 1)
        .order_by(ranked.c.created.desc(), CellRow.id)
    )
    with database(url) as engine, engine.begin() as connection:
        return [
            Measured(
                Cell.from_dict(dict(row)),
                Verdict(row["verdict"]),
                row["sentence"],
                row["red"],
                row["counted"],
                row["excluded_rate"],
                row["missed"],
                tuple(row["issues"]),
                row["run_id"],
                row["created"],
                bool(row["current"]),
            )
            for row in connection.execute(query).mappings()
        ]
