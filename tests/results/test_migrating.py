"""A database is brought to another schema by whoever says so, never by whoever looks; what was there is kept."""

import shutil
import sqlite3
import subprocess
from contextlib import closing
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from alembic import command
from fastapi.testclient import TestClient
from sqlalchemy import text

from onceproof.cli import installation
from onceproof.model.cell import Cell
from onceproof.model.errors import HarnessError, SchemaError
from onceproof.model.known_issues import registry
from onceproof.model.matrix import Request
from onceproof.model.release import Release
from onceproof.model.sensitivity import PlantedTrial
from onceproof.page.app import create_app
from onceproof.pipeline import steps
from onceproof.results import database as results_database
from onceproof.results.controls import Past, past_of
from onceproof.results.database import (
    Migration,
    database,
    migrate,
    runs_of_releases,
    store_run,
    tables_of,
)
from onceproof.results.history import read_runs, seconds_by_scenario
from onceproof.results.judging import judge_run, past_before
from onceproof.results.matrix_query import read_known_at, read_known_with, runs_stored, verdicts_of
from onceproof.results.measured import read_measured
from onceproof.results.seen import read_judged, read_seen, record_seen
from onceproof.results.sensitivity import read_planted_trials, store_planted
from onceproof.results.transfer import export_to
from onceproof.settings import Settings
from tests.commands import onceproof
from tests.results.test_database import make_judged
from tests.results.test_judging import NO_DATABASE, make_run
from tests.specimens.postgresql import INITDB

OLD, NOW = "0008", "0009"
CELL = Cell("enumerator", "DEFAULT_CONFIG", Release(3, 3, 1), Release(3, 9, 1))
RUN = "20260101T000000-abcd1234"


def made_by_an_older_version(url: str) -> None:
    """A database with the schema before this one, which has a run."""
    with results_database.open_unchecked(url) as engine, engine.begin() as connection:
        command.upgrade(tables_of(connection), OLD)
        row = {"run": RUN, "created": "2026-01-01T00:00:00+00:00", "stored": datetime(2026, 1, 1)}
        connection.execute(
            text(
                "INSERT INTO runs (id, matrix, created, stored, folder) VALUES (:run, 'nightly', :created, :stored, '')"
            ),
            row,
        )


@pytest.fixture
def old(database_url: str) -> str:
    made_by_an_older_version(database_url)
    return database_url


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose database an older version has made."""
    made_by_an_older_version(f"sqlite:///{tmp_path}/results.db")
    return tmp_path


def schema(url: str) -> tuple[str, list[str]]:
    """The schema of a database, and the runs in it, as it says itself."""
    with results_database.open_unchecked(url) as engine, engine.connect() as connection:
        runs = [run for (run,) in connection.execute(text("SELECT id FROM runs"))]
        return str(connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one()), runs


def whoever_reads_or_writes(url: str, folder: Path) -> dict[str, Any]:
    """All that opens a results database, by name."""
    run, _ = make_run(folder)
    judge_run(run, NO_DATABASE)
    return {
        "runs_of_releases": lambda: runs_of_releases(url),
        "stored_runs": lambda: read_runs(url),
        "seconds_by_scenario": lambda: seconds_by_scenario(url),
        "runs_stored": lambda: runs_stored(url, 5),
        "known_at": lambda: read_known_at(url, RUN),
        "known_with": lambda: read_known_with(run, url),
        "verdicts_of": lambda: verdicts_of(url, CELL, 5),
        "measured": lambda: read_measured(url, [Release(3, 3, 1)], {}),
        "seen_releases": lambda: read_seen(url),
        "judged_releases": lambda: read_judged(url),
        "planted_trials": lambda: read_planted_trials(url),
        "past_of": lambda: past_of(url, RUN, registry()),
        "export_to": lambda: export_to(folder / "export.json", url),
        "store_run": lambda: store_run(run, url),
        "record_seen": lambda: record_seen([], url),
        "store_planted": lambda: store_planted(list[PlantedTrial](), url),
    }


def test_an_old_schema_stays_unless_migration_is_requested(old, tmp_path):
    for name, asked in whoever_reads_or_writes(old, tmp_path).items():
        with pytest.raises(
            SchemaError, match=f"has the schema {OLD}, and .* {NOW}: .*`onceproof results history --migrate`"
        ):
            pytest.fail(f"{name} gave {asked()}")
    assert schema(old) == (OLD, [RUN])


def test_a_verdict_is_judged_without_what_cannot_be_read(old, capsys):
    assert past_before(RUN, old) == Past()
    assert f"Earlier runs do not count. The results database has the schema {OLD}" in capsys.readouterr().out
    assert schema(old) == (OLD, [RUN])


def test_a_run_that_could_not_be_stored_does_not_begin(home, monkeypatch):
    monkeypatch.setattr(steps, "get_settings", lambda: Settings(home=home))
    with pytest.raises(SchemaError, match=f"has the schema {OLD}"):
        steps.check_request(Request("nightly", scenarios=("enumerator",), streams=("3.3.1",)))


def test_a_page_leaves_it(home):
    before = (home / "results.db").read_bytes()
    client = TestClient(create_app(Settings(home=home)))
    for path in ("/", f"/?run={RUN}", "/sensitivity"):
        answer = client.get(path)
        assert (answer.status_code, "onceproof results history --migrate" in answer.text) == (500, True), path
    assert (home / "results.db").read_bytes() == before
    assert [file.name for file in home.glob("results*")] == ["results.db"]


def test_the_command_that_says_so_does_it_and_keeps_a_copy(home):
    refused = onceproof(home, "results", "history")
    assert (refused.returncode, "onceproof results history --migrate" in refused.stderr) == (2, True)
    done = onceproof(home, "results", "history", "--migrate")
    copy = home / f"results.db.{OLD}"
    assert done.returncode == 0, done.stderr
    assert f"has the schema {NOW} now, and had {OLD}" in done.stdout
    assert str(copy) in done.stdout.replace("\n", "")
    assert schema(f"sqlite:///{copy}") == (OLD, [RUN])
    assert schema(f"sqlite:///{home}/results.db") == (NOW, [RUN])
    assert "nightly" in onceproof(home, "results", "history").stdout
    again = onceproof(home, "results", "history", "--migrate")
    assert (again.returncode, "has the schema of this version already" in again.stdout) == (0, True)


def test_the_copy_is_what_is_needed_to_go_back(home):
    url, file = f"sqlite:///{home}/results.db", home / "results.db"
    first = migrate(url)
    assert first == Migration(OLD, NOW, home / f"results.db.{OLD}")
    store_run(make_judged(home), url)
    shutil.copyfile(home / f"results.db.{OLD}", file)  # as docs/operations.md says
    assert schema(url) == (OLD, [RUN])
    second = migrate(url)  # and the copy of before is not lost
    assert second == Migration(OLD, NOW, home / f"results.db.{OLD}.2")
    assert schema(f"sqlite:///{home}/results.db.{OLD}") == (OLD, [RUN])


def test_what_a_copy_would_not_fit_beside_is_left_alone(home, monkeypatch):
    before = (home / "results.db").read_bytes()
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=len(before)))
    with pytest.raises(HarnessError, match=r"are needed to keep results\.db\.0008 and to migrate: make room"):
        migrate(f"sqlite:///{home}/results.db")
    assert (home / "results.db").read_bytes() == before
    assert [file.name for file in home.glob(".results*")] == []
    assert not (home / f"results.db.{OLD}").exists()


def test_a_migration_that_fails_leaves_database_and_copy(home, monkeypatch):
    upgrade = command.upgrade

    def fail(config: Any, revision: str) -> None:
        upgrade(config, revision)
        raise HarnessError("the machine lost its power")

    monkeypatch.setattr(command, "upgrade", fail)
    with pytest.raises(HarnessError, match="lost its power"):
        migrate(f"sqlite:///{home}/results.db")
    assert schema(f"sqlite:///{home}/results.db") == (OLD, [RUN])
    assert schema(f"sqlite:///{home}/results.db.{OLD}") == (OLD, [RUN])


def test_a_server_is_migrated_and_its_copy_is_somebody_elses(old):
    done = migrate(old)
    assert done is not None
    assert (done.copy is None) == old.startswith("postgresql")
    assert schema(old) == (NOW, [RUN])
    assert migrate(old) is None


@pytest.mark.postgresql
def test_a_server_goes_back_by_the_commands_of_the_docs(postgresql, tmp_path):
    postgresql.create("goes_back")
    url, plain = postgresql.url("goes_back"), postgresql.url("goes_back", "postgresql")
    made_by_an_older_version(url)
    dump = tmp_path / "results.dump"
    tools = INITDB[-1].parent
    subprocess.run([tools / "pg_dump", "--format=custom", f"--file={dump}", plain], check=True)
    migrate(url)
    store_run(make_judged(tmp_path), url)
    with postgresql.connect() as connection:  # as dropdb and createdb do
        connection.execute("DROP DATABASE goes_back")
    postgresql.create("goes_back")
    subprocess.run([tools / "pg_restore", f"--dbname={plain}", dump], check=True)
    assert schema(url) == (OLD, [RUN])


def test_up_brings_a_file_there_and_leaves_a_server(home, monkeypatch, capsys):
    url = f"sqlite:///{home}/results.db"
    for asked in ("postgresql+psycopg://nobody@127.0.0.1:1/results", url):
        monkeypatch.setattr(installation, "get_settings", lambda asked=asked: Settings(home=home, database_url=asked))
        installation._bring_up_to_date()
    assert f"results.db.{OLD}" in capsys.readouterr().out
    assert schema(url) == (NOW, [RUN])


def test_a_new_home_needs_no_command(tmp_path):
    assert "No run is stored yet." in onceproof(tmp_path, "results", "history").stdout
    assert "No run is stored yet." in onceproof(tmp_path, "results", "history", "--migrate").stdout
    assert not list(tmp_path.glob("results*"))
    store_run(make_judged(tmp_path), f"sqlite:///{tmp_path}/results.db")
    assert [file.name for file in tmp_path.glob("results*")] == ["results.db"]
    with closing(sqlite3.connect(tmp_path / "results.db")) as made:
        assert made.execute("SELECT version_num FROM alembic_version").fetchone() == (NOW,)


def test_an_empty_database_gets_its_tables(database_url):
    with database(database_url):
        pass
    assert schema(database_url) == (NOW, [])
