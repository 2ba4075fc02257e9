"""A look as Airflow runs it: one run of `regression` for a release that is new, whatever is repeated."""

import shutil
from typing import Any

import pytest

from onceproof.pipeline import watch
from onceproof.settings import get_settings
from tests.pipeline.registry import Registry


@pytest.fixture(scope="module")
def dag(bag):
    return bag.dags["release_watch"]


def test_it_can_be_imported_and_serialised(bag, dag):
    from airflow.serialization.serialized_objects import DagSerialization

    assert bag.import_errors == {}
    again = DagSerialization.from_dict(DagSerialization.to_dict(dag))
    assert set(again.task_ids) == {"look", "qualify", "plant", "trigger", "record"}


def test_one_daily_look_makes_up_for_missed_ones(dag):
    assert dag.timetable.expression == "15 12 * * *"
    assert dag.start_date is None
    assert (dag.catchup, dag.max_active_runs) == (False, 1)
    assert dag.dagrun_timeout.total_seconds() < 24 * 3600
    assert dag.is_paused_upon_creation is False


def test_what_it_triggers_exists_and_is_not_paused(bag, dag):
    triggered = bag.dags[dag.get_task("trigger").partial_kwargs["trigger_dag_id"]]
    assert triggered.is_paused_upon_creation is False
    assert {"matrix", "streams"} <= triggered.params.keys()


@pytest.mark.parametrize("task", ["qualify", "plant"])
def test_what_else_it_triggers_goes_by_the_same_releases(bag, dag, task):
    triggered = bag.dags[dag.get_task(task).partial_kwargs["trigger_dag_id"]]
    assert triggered.is_paused_upon_creation is False
    run = {"trigger_run_id": "release_watch__4.4.0", "conf": {"matrix": "first-look", "streams": ["4.4.0"]}}
    reported: dict[str, Any] = watch.of_its_release(run)
    assert reported == {"trigger_run_id": "release_watch__4.4.0", "conf": {"streams": ["4.4.0"]}}
    assert reported["conf"].keys() <= triggered.params.keys()


@pytest.mark.parametrize(("param", "bad"), [("matrix", "all"), ("pre_releases", "yes"), ("catch_up", 1)])
def test_params_that_cannot_be_are_refused(dag, param, bad):
    from airflow.sdk.definitions.param import ParamValidationError

    with pytest.raises(ParamValidationError):
        dag.params.get_param(param).resolve(bad)


def test_a_release_qualifies_before_it_is_judged(dag):
    for task in ("plant", "trigger"):
        assert "qualify" in dag.get_task(task).upstream_task_ids
        assert dag.get_task(task).trigger_rule == "none_failed"  # that it is qualified already is no reason to skip it


def test_nothing_is_recorded_as_triggered_before_it_is(dag):
    before = {task.task_id for task in dag.get_task("record").get_flat_relatives(upstream=True)}
    assert before == {"look", "qualify", "plant", "trigger"}
    assert dag.get_task("record").trigger_rule == "none_failed"  # a run that exists already is skipped


# --- looks, in one process


def run_it(dag, **params: object):
    """State of the look, of its tasks, and the runs of `regression` that exist."""
    from airflow.models.dagrun import DagRun

    conf = {"matrix": "first-look", "pre_releases": False, "catch_up": False, **params}
    run = dag.test(run_conf=conf)
    runs = {one.run_id: one.conf for one in DagRun.find(dag_id="regression")}
    return run.state, {(t.task_id, t.map_index): t.state for t in run.get_task_instances()}, runs


@pytest.mark.system
def test_a_new_release_gets_one_run_whatever_is_repeated(dag, database, registry: Registry, monkeypatch):
    registry.publish("4.3.1")
    state, tasks, before = run_it(dag)
    assert (state, tasks["trigger", -1], tasks["record", -1]) == ("success", "skipped", "success")
    registry.publish("4.3.1", "4.4.0", "4.4.1")

    # The look after which nothing was recorded: as if the machine had lost its power.
    with monkeypatch.context() as cut:
        cut.setattr(watch, "record", lambda _: None)
        state, tasks, after = run_it(dag)
    assert state == "success"
    new = {run: conf for run, conf in after.items() if run not in before}
    assert new == {
        "release_watch__4.4.0": {"matrix": "first-look", "streams": ["4.4.0"]},
        "release_watch__4.4.1": {"matrix": "first-look", "streams": ["4.4.1"]},
    }

    state, tasks, again = run_it(dag)
    assert (state, tasks["trigger", 0], tasks["trigger", 1], tasks["record", -1]) == (
        *("success", "skipped", "skipped", "success"),
    )
    assert again == after

    state, tasks, again = run_it(dag)
    assert (state, tasks["trigger", -1], again) == ("success", "skipped", after)


@pytest.mark.system
def test_a_look_that_reaches_nothing_is_red(dag, database, registry: Registry):
    shutil.rmtree(get_settings().artifacts / "releases")  # Maven never gave a list
    registry.hide()
    state, tasks, _ = run_it(dag)
    assert state == "failed"
    assert tasks["look", -1] == "failed"
    assert tasks["record", -1] == "upstream_failed"
