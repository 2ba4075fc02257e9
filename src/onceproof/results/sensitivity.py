"""Planted trials in the results database: evidence of one place adds up over nights."""

from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.orm import Session

from onceproof.model.sensitivity import PlantedTrial
from onceproof.results.database import WRITING, PlantedTrialRow, database, is_missing

COLUMNS = tuple(column.name for column in PlantedTrialRow.__table__.columns)


def store_planted(trials: Iterable[PlantedTrial], url: str) -> None:
    """Store all trials of a batch, or none; storing one again replaces it.

    Raises:
        HarnessError: the database refuses.
    """
    rows = [PlantedTrialRow(**trial.to_dict()) for trial in trials]
    with database(url) as engine, Session(engine.execution_options(**WRITING)) as session, session.begin():
        for row in rows:
            session.merge(row)


def planted_trials(url: str, run: str | None = None) -> list[PlantedTrial]:
    """Those that are stored, oldest first; none if there is no database yet.

    Args:
        url: the results database.
        run: only those before the run of this id, which may be judged again.

    Raises:
        HarnessError: the database refuses.
    """
    if is_missing(url):
        return []
    query = select(PlantedTrialRow).order_by(PlantedTrialRow.run, PlantedTrialRow.trial)
    if run is not None:
        query = query.where(PlantedTrialRow.run <= run)
    with database(url) as engine, Session(engine) as session:
        return [
            PlantedTrial.from_dict({name: getattr(row, name) for name in COLUMNS}) for row in session.scalars(query)
        ]
