"""DAG `weekly`: one run of `regression` with the matrix `weekly`, whatever is repeated."""

from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from onceproof.model.matrices import MATRICES
from onceproof.pipeline.steps import UP_SINCE_VARIABLE

SUNDAY = datetime(2026, 11, 22, 13, 15, tzinfo=UTC)


@pytest.fixture(scope="module")
def dag(bag):
    return bag.dags["weekly"]


def test_it_can_be_imported_and_serialised(bag, dag):
    from airflow.serialization.serialized_objects import DagSerialization

    assert bag.import_errors == {}
    assert set(DagSerialization.from_dict(DagSerialization.to_dict(dag)).task_ids) == {"is_due", "prune", "trigger"}


def test_the_weekly_dag_runs_on_sundays_and_does_not_catch_up(dag):
    assert dag.timetable.expression == "15 13 * * 0"
    assert (dag.catchup, dag.max_active_runs, dag.is_paused_upon_creation) == (False, 1, False)
    assert {task.retries for task in dag.tasks} == {0}


def test_what_it_triggers_exists_and_takes_its_matrix(bag, dag):
    trigger = dag.get_task("trigger")
    triggered = bag.dags[trigger.trigger_dag_id]
    assert triggered.is_paused_upon_creation is False
    assert triggered.params.get_param("matrix").resolve(trigger.conf["matrix"]) in MATRICES


@pytest.mark.parametrize(("up", "skipped"), [(timedelta(hours=1), True), (timedelta(hours=-1), False)])
def test_a_missed_sunday_is_skipped_and_a_manual_run_is_not(dag, monkeypatch, up, skipped):
    from airflow.sdk.exceptions import AirflowSkipException

    monkeypatch.setenv(UP_SINCE_VARIABLE, (SUNDAY + up).isoformat())
    is_due = dag.get_task("is_due").python_callable
    with pytest.raises(AirflowSkipException) if skipped else nullcontext():
        is_due(dag_run=SimpleNamespace(run_type="scheduled", run_after=SUNDAY))
    is_due(dag_run=SimpleNamespace(run_type="manual", run_after=SUNDAY))


@pytest.mark.system
def test_it_starts_one_run_however_often_it_is_repeated(dag, database):
    from airflow.models.dagrun import DagRun

    for _ in range(2):
        run = dag.test(run_after=SUNDAY, logical_date=SUNDAY)
        assert run.state == "success"
    runs = [run for run in DagRun.find(dag_id="regression") if run.run_id.startswith("weekly__")]
    assert [run.conf for run in runs] == [{"matrix": "weekly"}]
