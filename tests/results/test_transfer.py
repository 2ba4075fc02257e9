"""Another results database gets all that one has: each row and column, from each kind of database to each."""

import json
from datetime import datetime

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session, class_mapper
from typer.testing import CliRunner

from onceproof import cli
from onceproof.model.errors import ExitCode, UsageError
from onceproof.results.database import Base, ReleaseRow, RunRow, database, store_run
from onceproof.results.history import changes, read_runs
from onceproof.results.sensitivity import store_planted
from onceproof.results.transfer import export_to, import_from
from onceproof.settings import get_settings
from tests.model.test_sensitivity import TRIAL
from tests.results.test_database import make_judged

SEEN = datetime(2026, 11, 21, 12, 15)


@pytest.fixture
def filled(tmp_path):
    """An SQLite database with at least one row in each table."""
    url = f"sqlite:///{tmp_path}/old.db"
    store_run(make_judged(tmp_path), url)
    store_planted([TRIAL], url)
    with database(url) as engine, Session(engine) as session, session.begin():
        session.add(ReleaseRow(release="4.4.0", first_seen=SEEN, triggered=None, incomplete="its jars are not there"))
    return url


def rows(url: str) -> dict[str, list[dict[str, object]]]:
    """All rows of all tables, without the ids that the database assigns."""
    with database(url) as engine, engine.connect() as connection:
        return {
            table.name: [
                {c: v for c, v in row.items() if c not in {"id", "cell_id", "trial_id"} or table.name == "runs"}
                for row in connection.execute(select(table)).mappings()
            ]
            for table in Base.metadata.sorted_tables
        }


def test_everything_that_is_stored_comes_across(filled, database_url, tmp_path):
    file = tmp_path / "history.json"
    assert export_to(file, filled) == 1
    assert import_from(file, database_url) == (1, 0)
    assert rows(database_url) == rows(filled)
    assert all(rows(filled).values())  # no table was empty
    assert changes(read_runs(database_url)) == changes(read_runs(filled))


def test_it_comes_back_from_each_database_as_it_was(filled, database_url, tmp_path):
    export_to(tmp_path / "there.json", filled)
    import_from(tmp_path / "there.json", database_url)
    export_to(tmp_path / "back.json", database_url)
    assert json.loads((tmp_path / "back.json").read_text()) == json.loads((tmp_path / "there.json").read_text())


def test_what_is_there_already_stays_as_it_is(filled, database_url, tmp_path):
    file = tmp_path / "history.json"
    export_to(file, filled)
    import_from(file, database_url)
    with database(database_url) as engine, Session(engine) as session, session.begin():
        session.scalars(select(RunRow)).one().matrix = "changed since"
    data = json.loads(file.read_text())
    data["tables"]["runs"].append(data["tables"]["runs"][0] | {"id": "20261121T000000-ffff"})
    file.write_text(json.dumps(data))
    assert import_from(file, database_url) == (1, 1)
    with database(database_url) as engine, Session(engine) as session:
        assert set(session.scalars(select(RunRow.matrix))) == {"changed since", data["tables"]["runs"][0]["matrix"]}


def test_all_or_nothing(filled, database_url, tmp_path):
    file = tmp_path / "history.json"
    export_to(file, filled)
    data = json.loads(file.read_text())
    data["tables"]["runs"].append({**data["tables"]["runs"][0], "id": "20261121T000000-ffff", "matrix": None})
    file.write_text(json.dumps(data))
    with pytest.raises(Exception, match=r"(?i)not.null"):
        import_from(file, database_url)
    with database(database_url) as engine, Session(engine) as session:
        assert session.scalar(select(func.count()).select_from(RunRow)) == 0


def test_every_table_belongs_to_one_that_is_exported():
    """A table that is added without a relationship from its owner would silently stay behind."""
    reached = set()

    def walk(mapper):
        reached.add(mapper.local_table.name)
        for relation in mapper.relationships:
            if relation.uselist:
                walk(relation.mapper)

    for mapper in Base.registry.mappers:
        if not mapper.local_table.foreign_keys:
            walk(class_mapper(mapper.class_))
    assert reached == set(Base.metadata.tables)


def test_an_export_of_another_schema_is_refused(filled, tmp_path):
    file = tmp_path / "history.json"
    export_to(file, filled)
    file.write_text(json.dumps(json.loads(file.read_text()) | {"schema": "0001"}))
    with pytest.raises(UsageError, match="has the schema 0001, this Onceproof"):
        import_from(file, filled)
    file.write_text("[]")
    with pytest.raises(UsageError, match="no export"):
        import_from(file, filled)


@pytest.mark.parametrize("text", ["root:x:0:0:root", "\udcff", '{"schema": 1}', None])
def test_what_is_no_export_is_a_usage_error(filled, tmp_path, text):
    file = tmp_path / "passwd"
    if text is not None:
        file.write_text(text, errors="surrogateescape")
    with pytest.raises(UsageError, match=r"passwd (is no export|could not be read \(No such file or directory\))"):
        import_from(file, filled)


@pytest.mark.parametrize("runs", [None, 1, [1], [{}], [{"id": []}]], ids=str)
def test_an_export_that_lacks_something_is_none(filled, tmp_path, runs):
    file = tmp_path / "history.json"
    export_to(file, filled)
    answer = json.loads(file.read_text())
    file.write_text(json.dumps({**answer, "tables": {**answer["tables"], "runs": runs}}))
    with pytest.raises(UsageError, match="is no export"):
        import_from(file, filled)


def test_the_command(filled, database_url, tmp_path, monkeypatch):
    file = tmp_path / "history.json"

    def run(url, *arguments):
        monkeypatch.setenv("ONCEPROOF_DATABASE_URL", url)
        get_settings.cache_clear()
        return CliRunner().invoke(cli.app, ["results", "history", *arguments])

    try:
        assert run(filled, "--export", str(file)).stdout == f"1 run exported to {file}.\n"
        assert run(database_url, "--import", str(file)).stdout == "1 run imported, 0 were there already.\n"
        assert run(database_url, "--import", str(file)).stdout == "0 runs imported, 1 was there already.\n"
        nothing = run(f"sqlite:///{tmp_path}/none.db", "--export", str(file))
        assert isinstance(nothing.exception, UsageError)
        assert nothing.exception.exit_code == ExitCode.USAGE
        assert not (tmp_path / "none.db").exists()
        both = run(filled, "--export", str(file), "--import", str(file))
        assert isinstance(both.exception, UsageError)
    finally:
        get_settings.cache_clear()
