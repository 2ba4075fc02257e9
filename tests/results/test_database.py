"""Runs are stored as a whole, on each database, whoever else writes, and whatever version made the tables."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from threading import Barrier, Event
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import func, inspect, select, text
from sqlalchemy.orm import Session

from onceproof.model.errors import HarnessError
from onceproof.results import database as results_database
from onceproof.results.database import (
    WRITING,
    AnomalyRow,
    Base,
    CellRow,
    RunRow,
    TrialRow,
    database,
    is_missing,
    migrate,
    store_run,
)
from onceproof.results.judging import judge_run
from tests.present import present
from tests.results.test_judging import NO_DATABASE, UNIQUENESS_FAILED, make_run

WRITERS = 6


@pytest.fixture
def judged(tmp_path):
    return make_judged(tmp_path)


def make_judged(home):
    run, _ = make_run(home, "3.3.1", ["duplicate-id"], suites=UNIQUENESS_FAILED)
    judge_run(run, NO_DATABASE)
    return run


def test_a_run_is_stored_with_its_cells_trials_and_anomalies(database_url, judged):
    store_run(judged, database_url)
    with database(database_url) as engine, Session(engine) as session:
        run = session.scalars(select(RunRow)).one()
        assert run.id == judged.run_id
        assert abs(datetime.now(UTC).replace(tzinfo=None) - run.stored) < timedelta(minutes=5)
        cell = session.scalars(select(CellRow)).one()
        assert (cell.streams, cell.verdict, cell.red, cell.counted) == ("3.3.1", "known", 1, 1)
        assert (cell.issues, cell.seconds) == (["KAFKA-14172"], 9.5)
        trial = session.scalars(select(TrialRow)).one()
        assert (trial.records, trial.keys, trial.seconds) == (5, 4, {"total": 9.5})
        assert (trial.planned, trial.harness) == (True, "0.1.0+1")
        anomaly = session.scalars(select(AnomalyRow)).one()
        assert (anomaly.name, anomaly.count) == ("duplicate-id", 1)


def test_storing_a_run_again_replaces_it(database_url, judged):
    store_run(judged, database_url)
    store_run(judged, database_url)
    assert rows(database_url) == [1, 1, 1, 1]


def rows(url):
    with database(url) as engine, Session(engine) as session:
        return [
            session.scalar(select(func.count()).select_from(row)) for row in (RunRow, CellRow, TrialRow, AnomalyRow)
        ]


def test_a_run_that_fails_halfway_leaves_the_one_that_was_stored(database_url, judged, monkeypatch):
    store_run(judged, database_url)
    rows_of = results_database._cell_row

    def lacking(*arguments: Any) -> CellRow:
        row = rows_of(*arguments)
        nothing: Any = None  # in a column that is never empty
        row.verdict = nothing
        return row

    monkeypatch.setattr(results_database, "_cell_row", lacking)
    with pytest.raises(HarnessError, match="refused"):
        store_run(judged, database_url)
    assert rows(database_url) == [1, 1, 1, 1]


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:////no/such/folder/results.db",
        "postgresql+psycopg://nobody@127.0.0.1:1/results?connect_timeout=5",
        "not a url",
        "firebird://localhost/results",
    ],
)
def test_a_database_that_refuses_is_named_by_its_setting(url, judged):
    with pytest.raises(HarnessError, match="check ONCEPROOF_DATABASE_URL"):
        store_run(judged, url)


def test_a_url_that_cannot_be_read_is_told_without_its_password(judged):
    url = "postgresql+psycopg://me:topsecret@127.0.0.1:notaport/x"
    assert not is_missing(url)
    with pytest.raises(
        HarnessError, match=r"has a URL that cannot be read, .* correct ONCEPROOF_DATABASE_URL"
    ) as refused:
        store_run(judged, url)
    assert "topsecret" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_a_driver_that_is_missing_is_named(judged, monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(HarnessError, match="needs the Python module psycopg, which is not installed"):
        store_run(judged, "postgresql+psycopg://127.0.0.1/results")


def test_the_migrations_make_what_the_tables_are(database_url):
    with database(database_url) as engine, engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []


def test_a_database_from_before_the_migrations_keeps_its_runs(database_url, judged):
    store_run(judged, database_url)
    with database(database_url) as engine:
        with engine.begin() as connection:
            connection.execute(text("DROP TABLE alembic_version"))
            for table in ("releases", "planted_trials"):
                connection.execute(text(f"DROP TABLE {table}"))
            for column in ("harness", "planned", "machine"):
                connection.execute(text(f"ALTER TABLE trials DROP COLUMN {column}"))
            for column in ("restart_on", "issues", "seconds", "missed", "excluded_rate"):
                connection.execute(text(f"ALTER TABLE cells DROP COLUMN {column}"))
            connection.execute(text("ALTER TABLE runs DROP COLUMN installation"))
        migrated = migrate(database_url)
        assert migrated is not None
        assert (migrated.before, migrated.copy is None) == ("0001", database_url.startswith("postgresql"))
        with Session(engine) as session:
            cell = session.scalars(select(CellRow)).one()
            assert (cell.restart_on, cell.issues, cell.seconds) == (None, [], 9.5)  # the seconds are those of its trial
            assert compare_metadata(MigrationContext.configure(session.connection()), Base.metadata) == []


def test_a_database_of_a_newer_schema_is_left_alone(database_url, judged):
    store_run(judged, database_url)
    with database(database_url) as engine, engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(HarnessError, match="schema 9999, which is newer"):
        store_run(judged, database_url)


def test_a_migration_that_fails_leaves_nothing_behind(database_url, monkeypatch):
    upgrade = command.upgrade

    def fail(config: Config, revision: str) -> None:
        upgrade(config, "0002")
        raise HarnessError("the machine lost its power")

    monkeypatch.setattr(command, "upgrade", fail)
    with pytest.raises(HarnessError, match="lost its power"), database(database_url):
        pass
    monkeypatch.undo()
    assert rows(database_url) == [0, 0, 0, 0]  # as in a new one: it is still empty


def test_a_run_that_was_not_judged_is_not_stored(tmp_path):
    run, _ = make_run(tmp_path)
    with pytest.raises(HarnessError, match=r"verdicts\.json"):
        store_run(run, f"sqlite:///{tmp_path}/results.db")


def test_threads_store_runs_concurrently_into_an_empty_database(database_url, tmp_path):
    runs = [make_judged(tmp_path) for _ in range(WRITERS)]
    together = Barrier(WRITERS)

    def store(run):
        together.wait()
        store_run(run, database_url)

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(store, runs))
    assert rows(database_url) == [WRITERS] * 4


def test_whoever_makes_the_tables_waits_for_its_turn(database_url, judged):
    with database(database_url) as engine, ThreadPoolExecutor(1) as pool:
        with engine.begin() as connection:  # as it was
            Base.metadata.drop_all(connection)
            connection.execute(text("DROP TABLE alembic_version"))
        with engine.execution_options(**WRITING).begin() as connection:
            stored = pool.submit(store_run, judged, database_url)
            with pytest.raises(TimeoutError):
                stored.result(timeout=1)
            assert inspect(connection).get_table_names() == []
        stored.result()
    assert rows(database_url) == [1] * 4


def test_whoever_writes_waits_for_its_turn(database_url, judged):
    with database(database_url) as engine, ThreadPoolExecutor(1) as pool:
        with engine.execution_options(**WRITING).begin():
            stored = pool.submit(store_run, judged, database_url)
            with pytest.raises(TimeoutError):
                stored.result(timeout=1)
        stored.result()
    assert rows(database_url) == [1] * 4


STORE = """
import sys
from pathlib import Path
from onceproof.model.run_folder import RunFolder
from onceproof.results.database import store_run
print("ready", flush=True)
sys.stdin.readline()
for folder in sys.argv[2:]:
    store_run(RunFolder(Path(folder)), sys.argv[1])
"""


def test_processes_store_their_runs_at_once_and_the_same_run_too(database_url, tmp_path):
    shared, *own = [make_judged(tmp_path).path for _ in range(4)]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", STORE, database_url, str(run), str(shared)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for run in own
    ]
    for process in processes:
        assert present(process.stdout).readline() == "ready\n"
    for process in processes:
        asked = present(process.stdin)
        asked.write("go\n")
        asked.flush()
    for process in processes:
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said
    assert rows(database_url) == [4] * 4


def test_a_writer_is_not_refused_while_another_one_reads(database_url, tmp_path):
    store_run(make_judged(tmp_path), database_url)
    second, begun = make_judged(tmp_path), Event()

    def store():
        begun.set()
        store_run(second, database_url)

    with database(database_url) as engine, engine.connect() as reader, ThreadPoolExecutor(1) as pool:
        assert len(reader.execute(select(RunRow.id)).all()) == 1
        stored = pool.submit(store)
        assert begun.wait(60)
        time.sleep(0.5)  # it comes to where SQLite has it wait
        reader.rollback()
        stored.result()
    assert rows(database_url) == [2] * 4
