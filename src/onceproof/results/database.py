"""The results database: runs, cells, trials, anomalies. SQLite by default, any SQLAlchemy URL."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import JSON, Engine, ForeignKey, create_engine, inspect
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship

from onceproof.model.cell import Cell, Trial
from onceproof.model.errors import HarnessError
from onceproof.model.run_folder import RunFolder, read_json


class Base(DeclarativeBase):
    """All tables."""


class RunRow(Base):
    """One run."""

    __tablename__ = "runs"
    id: Mapped[str] = mapped_column(primary_key=True)
    matrix: Mapped[str]
    created: Mapped[str]
    stored: Mapped[datetime]
    folder: Mapped[str]
    cells: Mapped[list["CellRow"]] = relationship(back_populates="run", cascade="all, delete-orphan")


class CellRow(Base):
    """One cell of a run, with its verdict."""

    __tablename__ = "cells"
    id: Mapped[int] = mapped_column(primary_key=True)
    run_id: Mapped[str] = mapped_column(ForeignKey("runs.id", ondelete="CASCADE"), index=True)
    scenario: Mapped[str]
    variant: Mapped[str]
    streams: Mapped[str]
    broker: Mapped[str]
    restart_on: Mapped[str | None]
    verdict: Mapped[str]
    sentence: Mapped[str]
    red: Mapped[int]
    counted: Mapped[int]
    run: Mapped[RunRow] = relationship(back_populates="cells")
    trials: Mapped[list["TrialRow"]] = relationship(cascade="all, delete-orphan")


class TrialRow(Base):
    """One trial of a cell; counts are null if it did not run to its end."""

    __tablename__ = "trials"
    id: Mapped[int] = mapped_column(primary_key=True)
    cell_id: Mapped[int] = mapped_column(ForeignKey("cells.id", ondelete="CASCADE"), index=True)
    number: Mapped[int]
    seed: Mapped[int]
    exercised: Mapped[bool]
    reason: Mapped[str]
    error: Mapped[str | None]
    records: Mapped[int | None]
    keys: Mapped[int | None]
    ids: Mapped[int | None]
    seconds: Mapped[dict[str, float]] = mapped_column(JSON)
    attested: Mapped[dict[str, Any]] = mapped_column(JSON)
    anomalies: Mapped[list["AnomalyRow"]] = relationship(cascade="all, delete-orphan")


class AnomalyRow(Base):
    """How often a trial showed an anomaly."""

    __tablename__ = "anomalies"
    id: Mapped[int] = mapped_column(primary_key=True)
    trial_id: Mapped[int] = mapped_column(ForeignKey("trials.id", ondelete="CASCADE"), index=True)
    name: Mapped[str]
    count: Mapped[int]


def migrate(engine: Engine) -> None:
    """Bring the database to the schema of this version; a database without any table gets all of them.

    Raises:
        HarnessError: a newer version of Onceproof has migrated it.
        SQLAlchemyError: the database refuses.
    """
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    with engine.begin() as connection:
        found = MigrationContext.configure(connection).get_current_revision()
        if found is not None and found not in known:
            raise HarnessError(
                f"The results database has the schema {found}, which is newer than this Onceproof: install the newer "
                "one, or name another database in ONCEPROOF_DATABASE_URL."
            )
        config.attributes["connection"] = connection
        if found is None and inspect(connection).has_table(RunRow.__tablename__):
            command.stamp(config, "0001")  # made before there were migrations
        command.upgrade(config, "head")


def store_run(run: RunFolder, url: str) -> None:
    """Store a judged run; storing it again replaces it. All or nothing.

    Raises:
        HarnessError: the run is not judged, or the database refuses.
    """
    plan = read_json(run.run_file)
    row = RunRow(
        id=run.run_id,
        matrix=plan["matrix"],
        created=plan["created"],
        stored=datetime.now(UTC),
        folder=str(run.path),
        cells=[_cell_row(run, verdict) for verdict in read_json(run.verdicts_file)],
    )
    try:
        engine = create_engine(url)
        migrate(engine)
        with Session(engine) as session, session.begin():
            old = session.get(RunRow, run.run_id)
            if old is not None:
                session.delete(old)
                session.flush()
            session.add(row)
    except SQLAlchemyError as error:
        reason = str(error).splitlines()[0]
        raise HarnessError(
            f"The results database refused run {run.run_id}: {reason}; check ONCEPROOF_DATABASE_URL."
        ) from error


def _cell_row(run: RunFolder, verdict: dict[str, Any]) -> CellRow:
    cell = Cell.from_dict(verdict)
    trials = [trial for trial in run.trials() if trial.cell == cell]
    columns = ("scenario", "variant", "streams", "broker", "restart_on", "verdict", "sentence", "red", "counted")
    return CellRow(
        **{name: verdict[name] for name in columns},
        trials=[_trial_row(run, trial, verdict["errors"].get(trial.key)) for trial in trials],
    )


def _trial_row(run: RunFolder, trial: Trial, error: str | None) -> TrialRow:
    outcome = run.outcome(trial)
    reader_file = run.trial(trial).reader_file
    reader = read_json(reader_file) if reader_file.exists() else {}
    return TrialRow(
        number=trial.number,
        seed=trial.seed,
        exercised=outcome.get("exercised", False),
        reason=outcome.get("reason") or "",
        error=error,
        records=reader.get("records"),
        keys=reader.get("keys"),
        ids=reader.get("ids"),
        seconds=outcome.get("seconds", {}),
        attested=outcome.get("attested", {}),
        anomalies=[AnomalyRow(name=name, count=count) for name, count in reader.get("anomalies", {}).items()],
    )
