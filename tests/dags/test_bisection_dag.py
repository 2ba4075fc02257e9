"""DAG `bisect`: its params, its turn with the machine, and a search on cardboard releases."""

from pathlib import Path

import pytest

from onceproof.campaigns.requests import BisectRequest
from onceproof.model.json_file import read_json
from tests.campaigns.test_bisecting import Brokers, cardboard

__all__ = ["cardboard"]
DEFAULTS = {name: schema["default"] for name, schema in BisectRequest.params().items()}


@pytest.fixture(scope="module")
def dag(bag):
    return bag.dags["bisect"]


def test_it_can_be_imported_and_serialised(bag, dag):
    from airflow.serialization.serialized_objects import DagSerialization

    assert bag.import_errors == {}
    assert DagSerialization.from_dict(DagSerialization.to_dict(dag)).task_ids == ["bisect"]


def test_it_runs_when_asked_and_one_at_a_time(dag):
    from airflow.sdk.definitions.timetables.simple import NullTimetable

    assert isinstance(dag.timetable, NullTimetable)
    assert (dag.catchup, dag.max_active_runs, dag.is_paused_upon_creation) == (False, 1, False)
    assert {task.retries for task in dag.tasks} == {0}


def test_it_takes_turns_with_the_trials_of_regression(bag, dag):
    assert dag.get_task("bisect").pool == bag.dags["regression"].get_task("drive").pool == "drive"


@pytest.mark.parametrize(
    ("param", "bad"),
    [
        ("scenario", "elevator"),
        ("variant", "FAST"),
        ("from", "3.3.x"),
        ("from", None),
        ("to", "3.3.1; rm -rf /"),
        ("broker", "latest"),
        ("trials", 1),
        ("seed", -1),
    ],
)
def test_params_that_cannot_be_run_are_refused(dag, param, bad):
    from airflow.sdk.definitions.param import ParamValidationError

    with pytest.raises(ParamValidationError):
        dag.params.get_param(param).resolve(bad)


def run_it(dag, **params: object):
    run = dag.test(run_conf=DEFAULTS | params)
    [task] = run.get_task_instances()
    return run.state, task


@pytest.mark.system
def test_a_search_ends_with_its_boundaries(dag, database, cardboard, home):
    state, task = run_it(dag, **{"from": "3.4.0", "to": "3.4.1", "trials": 5})
    assert state == "success"
    file = Path(task.xcom_pull(task_ids="bisect"))
    assert file.is_relative_to(home / "runs")
    [boundary] = read_json(file)["boundaries"]
    assert (boundary["last_bad"], boundary["first_good"]) == ("3.4.0", "3.4.1")
    assert Brokers.stopped == 1


@pytest.mark.system
def test_what_cannot_be_searched_fails_in_one_sentence(dag, database, cardboard, home, caplog, capfd):
    state, _ = run_it(dag, scenario="quota", variant="SEED_PROGRAM")
    assert state == "failed"
    said = capfd.readouterr()
    assert "SEED_PROGRAM" in caplog.text + said.out + said.err
    assert not (home / "runs").exists()
