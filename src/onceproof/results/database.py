"""The results database: runs, cells, trials, anomalies. SQLite by default, any SQLAlchemy URL."""

import shutil
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import (
    JSON,
    Connection,
    Engine,
    ForeignKey,
    create_engine,
    event,
    false,
    func,
    inspect,
    make_url,
    select,
)
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship

from onceproof.model.cell import Cell, Trial
from onceproof.model.errors import HarnessError, SchemaError
from onceproof.model.files import Reading, VerdictRow
from onceproof.model.json_file import read_json, replacing
from onceproof.model.run_folder import RunFolder

WRITING = {"writing": True}  # execution options of a transaction that writes: it waits for its turn when it begins
SQLITE_TIMEOUT = 60  # seconds to wait for the file; a run is stored in milliseconds, but the machine may be busy
POSTGRESQL_LOCK = 0x6F6E6365  # any number that is ours: "once"
MIGRATING = Lock()  # Alembic has one context a process
FIRST = "0001"  # the schema of what was made before there were migrations
COPIES = 3  # of the file: the one that is kept, what a migration copies of a table, and SQLite's journal
MIB = 2**20


class Base(DeclarativeBase):
    """All tables."""


class RunRow(Base):
    """One run."""

    __tablename__ = "runs"
    id: Mapped[str] = mapped_column(primary_key=True)
    matrix: Mapped[str]
    created: Mapped[str]
    stored: Mapped[datetime]  # UTC
    folder: Mapped[str]
    installation: Mapped[str] = mapped_column(server_default="")  # its id; empty of runs before there were ids
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
    issues: Mapped[list[str]] = mapped_column(JSON, server_default="[]")  # keys of the registry
    seconds: Mapped[float | None]  # mean of its trials
    excluded_rate: Mapped[float | None]  # of a green: bugs that show so often, or oftener, are excluded with 95 %
    missed: Mapped[float | None]  # of the procedure that called it green: the probability that it misses a bug, at most
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
    planned: Mapped[bool] = mapped_column(server_default=false())  # before the first trial; not added by `add_trials`
    reason: Mapped[str]
    error: Mapped[str | None]
    records: Mapped[int | None]
    keys: Mapped[int | None]
    ids: Mapped[int | None]
    seconds: Mapped[dict[str, float]] = mapped_column(JSON)
    attested: Mapped[dict[str, Any]] = mapped_column(JSON)
    harness: Mapped[str | None]  # version; None of trials before there was one, or that failed early
    machine: Mapped[str | None]  # kind of it, with its JDK; None of trials before it was noted, or that failed early
    anomalies: Mapped[list["AnomalyRow"]] = relationship(cascade="all, delete-orphan")


class AnomalyRow(Base):
    """How often a trial showed an anomaly."""

    __tablename__ = "anomalies"
    id: Mapped[int] = mapped_column(primary_key=True)
    trial_id: Mapped[int] = mapped_column(ForeignKey("trials.id", ondelete="CASCADE"), index=True)
    name: Mapped[str]
    count: Mapped[int]


class ReleaseRow(Base):
    """A published release that was looked at."""

    __tablename__ = "releases"
    release: Mapped[str] = mapped_column(primary_key=True)
    first_seen: Mapped[datetime]  # UTC
    triggered: Mapped[str | None]  # id of the DAG run
    incomplete: Mapped[str | None]  # why it cannot be run yet


class PlantedTrialRow(Base):
    """One trial with a planted bug (`model.sensitivity.PlantedTrial`); it belongs to no cell."""

    __tablename__ = "planted_trials"
    run: Mapped[str] = mapped_column(primary_key=True)
    trial: Mapped[str] = mapped_column(primary_key=True)
    plant: Mapped[str]
    scenario: Mapped[str]
    variant: Mapped[str]
    streams: Mapped[str]
    broker: Mapped[str]
    restart_on: Mapped[str | None]
    commit: Mapped[str]
    harness: Mapped[str]
    seed: Mapped[int]
    fired: Mapped[int]
    exercised: Mapped[bool]
    found: Mapped[bool]
    anomalies: Mapped[dict[str, int]] = mapped_column(JSON)
    seconds: Mapped[float | None]
    error: Mapped[str | None]
    found_by: Mapped[list[str]] = mapped_column(JSON)
    machine: Mapped[str] = mapped_column(server_default="")


@contextmanager
def database(url: str) -> Iterator[Engine]:
    """The results database. It must have the schema of this version (`migrate`); an empty one gets all tables.

    Several processes may use it at once: a writer (`WRITING`) waits for its turn before it reads anything. SQLite
    begins such a transaction as IMMEDIATE: one that begins as a reader and then writes fails at once if another one
    writes, whatever the timeout. No write-ahead log: it would need files next to the database that not every file
    system can share, and readers do not wait for long. PostgreSQL takes an advisory lock until the end of the
    transaction: `CREATE TABLE` of two processes at once is an error there.

    Raises:
        SchemaError: an older or a newer version of Onceproof has made it.
        HarnessError: the database refuses, here or in the body; its driver is not installed; its URL is none.
    """
    with open_unchecked(url) as engine:
        _furnish(engine)
        yield engine


@contextmanager
def open_unchecked(url: str) -> Iterator[Engine]:
    """The same, whatever its schema is."""
    with _clear_refusals():
        engine = _engine(url)
        try:
            yield engine
        finally:
            engine.dispose()


def is_missing(url: str) -> bool:
    """Whether it is an SQLite file that does not exist; looking must not create it."""
    file = _file_of(url)
    return file is not None and not file.exists()


def is_file(url: str) -> bool:
    """Whether it is an SQLite file that exists."""
    file = _file_of(url)
    return file is not None and file.exists()


def _file_of(url: str) -> Path | None:
    try:
        parts = make_url(url)
    except (ArgumentError, ValueError):
        return None  # opening it reports that
    return Path(str(parts.database)) if parts.get_backend_name() == "sqlite" and parts.database else None


@contextmanager
def _clear_refusals() -> Iterator[None]:
    try:
        yield
    except SQLAlchemyError as error:
        reason = str(error).splitlines()[0]
        raise HarnessError(f"The results database refused: {reason}; check ONCEPROOF_DATABASE_URL.") from error


def _engine(url: str) -> Engine:
    try:
        is_sqlite = make_url(url).get_backend_name() == "sqlite"
        engine = create_engine(url, connect_args={"timeout": SQLITE_TIMEOUT} if is_sqlite else {})
    except ModuleNotFoundError as error:
        raise HarnessError(
            f"The results database needs the Python module {error.name}, which is not installed: install it (for "
            "PostgreSQL the extra postgres, docs/installing.md), or check ONCEPROOF_DATABASE_URL."
        ) from error
    except ValueError:  # without what it says, which may be part of a password
        raise HarnessError(
            "The results database has a URL that cannot be read, as with a port that is no number: correct "
            "ONCEPROOF_DATABASE_URL."
        ) from None
    if is_sqlite:
        event.listen(engine, "connect", _leave_transactions_to_us)
    event.listen(engine, "begin", _begin)
    return engine


def _leave_transactions_to_us(connection: Any, _: object) -> None:
    """Python's driver would begin a transaction at the first INSERT only, neither at a SELECT nor at DDL."""
    connection.isolation_level = None


def _begin(connection: Connection) -> None:
    writing = connection.get_execution_options().get("writing", False)
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")
    elif connection.dialect.name == "postgresql" and writing:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({POSTGRESQL_LOCK})")


def tables_of(connection: Connection) -> Config:
    """The configuration with which Alembic changes the tables of a database."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
    config.attributes["connection"] = connection
    return config


def _furnish(engine: Engine) -> None:
    """Give an empty database its tables, and refuse one of another schema."""
    with engine.begin() as connection:  # usually there is nothing to do, and no process has to wait
        if not _needs_tables(connection):
            return
    with MIGRATING, engine.execution_options(**WRITING).begin() as connection:
        if _needs_tables(connection):  # no other process was quicker
            command.upgrade(tables_of(connection), "head")


def _needs_tables(connection: Connection) -> bool:
    """Whether a database is empty.

    Raises:
        SchemaError: it is not, and has another schema.
    """
    found, wanted = _schemas(connection)
    if found not in {None, wanted}:
        how = (
            "`onceproof results history --migrate` brings it there, and keeps a copy"
            if connection.dialect.name == "sqlite"
            else "save it (docs/operations.md), then `onceproof results history --migrate` brings it there"
        )
        raise SchemaError(
            f"The results database has the schema {found}, and this Onceproof reads and writes {wanted}: {how}; older "
            "versions cannot use it afterwards."
        )
    return found is None


def _schemas(connection: Connection) -> tuple[str | None, str]:
    """The schema of a database, None if it is empty, and that of this version.

    Raises:
        SchemaError: a newer version of Onceproof has migrated it.
    """
    scripts = ScriptDirectory.from_config(tables_of(connection))
    found = MigrationContext.configure(connection).get_current_revision()
    if found is None and inspect(connection).has_table(RunRow.__tablename__):
        found = FIRST
    if found is not None and found not in {script.revision for script in scripts.walk_revisions()}:
        raise SchemaError(
            f"The results database has the schema {found}, which is newer than this Onceproof: install the newer one, "
            "or name another database in ONCEPROOF_DATABASE_URL."
        )
    return found, str(scripts.get_current_head())


@dataclass(frozen=True)
class Migration:
    """A database was brought from one schema to another."""

    before: str
    now: str
    copy: Path | None  # of what it was; None on a server

    def __str__(self) -> str:
        kept = f"what it was is in {self.copy}" if self.copy else "no copy was kept here"
        return f"It has the schema {self.now} now, and had {self.before}: {kept}."


def migrate(url: str) -> Migration | None:
    """Bring a database to the schema of this version; None if it has that. A copy of an SQLite file is kept.

    Raises:
        HarnessError: the database refuses; a newer version of Onceproof has migrated it; there is no room for a copy.
    """
    with open_unchecked(url) as engine, MIGRATING, engine.execution_options(**WRITING).begin() as connection:
        found, wanted = _schemas(connection)
        if found in {None, wanted}:
            if found is None:
                command.upgrade(tables_of(connection), "head")
            return None
        copy = _keep_copy(connection, str(found))
        if MigrationContext.configure(connection).get_current_revision() is None:
            command.stamp(tables_of(connection), FIRST)
        command.upgrade(tables_of(connection), "head")
    return Migration(str(found), wanted, copy)


def _keep_copy(connection: Connection, schema: str) -> Path | None:
    """Copy an SQLite file, as a whole or not at all, to its name with the schema behind it; none replaces another.

    The connection writes, so nothing is stored between the copy and what follows.

    Raises:
        HarnessError: there is no room for it, or the folder cannot be written.
    """
    if connection.dialect.name != "sqlite":
        return None
    [name] = [name for _, which, name in connection.exec_driver_sql("PRAGMA database_list") if which == "main"]
    if not name:
        return None  # in memory
    file = Path(name)
    names = (file.with_name(f"{file.name}.{schema}{again}") for again in ("", *(f".{n}" for n in range(2, 1_000))))
    copy = next(name for name in names if not name.exists())
    free, needed = shutil.disk_usage(file.parent).free, COPIES * file.stat().st_size
    if free < needed:
        raise HarnessError(
            f"Of the disk of {file} {free / MIB:,.0f} MiB are free, and {needed / MIB:,.0f} are needed to keep "
            f"{copy.name} and to migrate: make room; nothing was changed."
        )
    with replacing(copy) as draft:
        try:
            # By a connection that reads: one that writes is refused a backup, for which Python waits forever.
            with closing(sqlite3.connect(file)) as source, closing(sqlite3.connect(draft)) as target:
                source.backup(target)
        except sqlite3.Error as error:
            raise HarnessError(f"{copy} could not be written ({error}): nothing was changed.") from error
        shutil.copymode(file, draft)
    return copy


def check_schema(url: str) -> None:
    """Check that what is done for hours can be stored in the end; a database that does not answer may do so then.

    Raises:
        SchemaError: an older or a newer version of Onceproof has made it.
    """
    try:
        if not is_missing(url):
            with database(url):
                pass
    except SchemaError:
        raise
    except HarnessError:
        return


def store_run(run: RunFolder, url: str) -> None:
    """Store a judged run; storing it again replaces it. All or nothing.

    Raises:
        HarnessError: the run is not judged, the database has another run of this id, or it refuses.
    """
    plan, trials, planned = read_json(run.run_file), run.trials_by_cell(), run.list_planned_keys()
    row = RunRow(
        id=run.run_id,
        matrix=plan["matrix"],
        created=plan["created"],
        stored=datetime.now(UTC).replace(tzinfo=None),  # with a zone, PostgreSQL would make it its own local time
        folder=str(run.path),
        installation=plan.get("installation", ""),
        cells=[_cell_row(run, verdict, trials, planned) for verdict in VerdictRow.read_all(run.verdicts_file)],
    )
    with database(url) as engine, Session(engine.execution_options(**WRITING)) as session, session.begin():
        old = session.get(RunRow, run.run_id)
        if old is not None:
            if not is_same_run(old, row):
                raise HarnessError(
                    f"The results database has another run {run.run_id}, planned at {old.created} in {old.folder}; "
                    f"this one was not stored, so neither is lost. Its verdicts are in {run.path}: run it again under "
                    "another id, and give each installation a home of its own (ONCEPROOF_HOME)."
                )
            session.delete(old)
            session.flush()
        session.add(row)


def is_same_run(one: RunRow, other: RunRow) -> bool:
    """Whether rows of one id are of one run, which may have been judged again, or whose folder was moved."""
    known = one.installation and other.installation
    return one.created == other.created and (not known or one.installation == other.installation)


def is_same_trial(one: PlantedTrialRow, other: PlantedTrialRow) -> bool:
    """Whether rows of one key are of one planted trial; one that failed may have been driven again elsewhere."""
    known = one.machine and other.machine and one.error is None
    return (one.plant, one.seed) == (other.plant, other.seed) and (not known or one.machine == other.machine)


def _cell_row(
    run: RunFolder, verdict: VerdictRow, trials: Mapping[Cell, Sequence[Trial]], planned: Collection[str]
) -> CellRow:
    of_cell = trials.get(verdict.as_cell, ())
    return CellRow(
        **verdict.as_cell.to_dict(),
        verdict=str(verdict.verdict),
        sentence=verdict.sentence,
        red=verdict.red,
        counted=verdict.counted,
        issues=list(verdict.issues),
        seconds=verdict.seconds,
        excluded_rate=verdict.excluded_rate,
        missed=verdict.missed,
        trials=[_trial_row(run, trial, trial.key in planned, verdict.errors.get(trial.key)) for trial in of_cell],
    )


def _trial_row(run: RunFolder, trial: Trial, planned: bool, error: str | None) -> TrialRow:
    outcome = run.outcome(trial)
    reader_file = run.trial(trial).reader_file
    reader = Reading.read(reader_file) if reader_file.exists() else None
    return TrialRow(
        number=trial.number,
        seed=trial.seed,
        exercised=outcome is not None and outcome.exercised,
        planned=planned,
        reason=outcome.reason if outcome else "",
        error=error,
        records=reader.records if reader else None,
        keys=reader.keys if reader else None,
        ids=reader.ids if reader else None,
        seconds=dict(outcome.seconds) if outcome else {},
        attested=dict(outcome.attested) if outcome else {},
        harness=outcome.harness if outcome else None,
        machine=outcome.machine if outcome else None,
        anomalies=[AnomalyRow(name=name, count=count) for name, count in (reader.anomalies if reader else {}).items()],
    )


def runs_of_releases(url: str) -> dict[str, dict[str, Any]]:
    """For each release of Kafka Streams that was run: `cells` that were judged, and the id of the `last_run`.

    Raises:
        HarnessError: the database refuses.
    """
    query = select(CellRow.streams, func.count(), func.max(CellRow.run_id)).group_by(CellRow.streams)
    with database(url) as engine, Session(engine) as session:
        return {streams: {"cells": cells, "last_run": last} for streams, cells, last in session.execute(query)}
