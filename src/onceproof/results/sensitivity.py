"""Planted trials in the results database: evidence of one place adds up over nights."""

from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.orm import Session

from onceproof.model.errors import HarnessError
from onceproof.model.sensitivity import PlantedTrial
from onceproof.results.database import WRITING, PlantedTrialRow, database, is_missing, is_same_trial

COLUMNS = tuple(column.name for column in PlantedTrialRow.__table__.columns)


def store_planted(trials: Iterable[PlantedTrial], url: str) -> None:
    """Store all trials of a batch, or none; storing one again replaces it.

    Raises:
        HarnessError: the database refuses, or it has another trial of the same name, which then stays.
    """
    rows = [PlantedTrialRow(**trial.to_dict()) for trial in trials]
    with database(url) as engine, Session(engine.execution_options(**WRITING)) as session, session.begin():
        for row in rows:
            old = session.get(PlantedTrialRow, (row.run, row.trial))
            if old is not None and not is_same_trial(old, row):
                raise HarnessError(
                    f"The results database has another trial {row.trial} of a run {row.run}, with seed {old.seed} on "
                    f"{old.machine or 'a machine that is not known'}; this one was not stored, so neither is lost. "
                    "Give each installation a home of its own (ONCEPROOF_HOME), and try the plants again."
                )
            session.merge(row)


def read_planted_trials(url: str, run: str | None = None) -> list[PlantedTrial]:
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
