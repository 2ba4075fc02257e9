import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import create_engine, select, text
from sqlalchemy.orm import Session

from onceproof.model.errors import HarnessError
from onceproof.results.database import AnomalyRow, Base, CellRow, RunRow, TrialRow, migrate, store_run
from onceproof.results.judging import judge_run
from tests.results.test_judging import UNIQUENESS_FAILED, make_run


@pytest.fixture
def judged(tmp_path):
    run, _ = make_run(tmp_path, "3.3.1", ["duplicate-id"], suites=UNIQUENESS_FAILED)
    judge_run(run)
    return run


def test_a_run_is_stored_with_its_cells_trials_and_anomalies(tmp_path, judged):
    url = f"sqlite:///{tmp_path}/results.db"
    store_run(judged, url)
    with Session(create_engine(url)) as session:
        assert session.scalars(select(RunRow.id)).all() == [judged.run_id]
        cell = session.scalars(select(CellRow)).one()
        assert (cell.streams, cell.verdict, cell.red, cell.counted) == ("3.3.1", "known", 1, 1)
        trial = session.scalars(select(TrialRow)).one()
        assert (trial.records, trial.keys, trial.seconds) == (5, 4, {"total": 9.5})
        anomaly = session.scalars(select(AnomalyRow)).one()
        assert (anomaly.name, anomaly.count) == ("duplicate-id", 1)


def test_storing_a_run_again_replaces_it(tmp_path, judged):
    url = f"sqlite:///{tmp_path}/results.db"
    store_run(judged, url)
    store_run(judged, url)
    with Session(create_engine(url)) as session:
        assert len(session.scalars(select(AnomalyRow)).all()) == 1


def test_a_database_that_refuses_is_named_by_its_setting(tmp_path, judged):
    with pytest.raises(HarnessError, match="check ONCEPROOF_DATABASE_URL"):
        store_run(judged, f"sqlite:///{tmp_path}/no/such/folder/results.db")


def test_the_migrations_make_what_the_tables_are(tmp_path):
    engine = create_engine(f"sqlite:///{tmp_path}/results.db")
    migrate(engine)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []


def test_a_database_from_before_the_migrations_keeps_its_runs(tmp_path, judged):
    url = f"sqlite:///{tmp_path}/results.db"
    store_run(judged, url)
    with create_engine(url).begin() as connection:
        connection.execute(text("DROP TABLE alembic_version"))
        connection.execute(text("ALTER TABLE cells DROP COLUMN restart_on"))
    migrate(create_engine(url))
    with Session(create_engine(url)) as session:
        assert session.scalars(select(CellRow.restart_on)).all() == [None]


def test_a_database_of_a_newer_schema_is_left_alone(tmp_path, judged):
    url = f"sqlite:///{tmp_path}/results.db"
    store_run(judged, url)
    with create_engine(url).begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(HarnessError, match="schema 9999, which is newer"):
        store_run(judged, url)


def test_a_run_that_was_not_judged_is_not_stored(tmp_path):
    run, _ = make_run(tmp_path)
    with pytest.raises(HarnessError, match=r"verdicts\.json"):
        store_run(run, f"sqlite:///{tmp_path}/results.db")
