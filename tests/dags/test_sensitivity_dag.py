"""DAG `sensitivity`: its params, its turn with the machine, and a cardboard release into which bugs are planted."""

from pathlib import Path
from typing import Any

import pytest

from onceproof.campaigns.requests import SensitivityRequest
from onceproof.campaigns.sensitivity import verbs
from onceproof.model.cell import Cell
from onceproof.model.json_file import read_json
from onceproof.model.plants import plant
from onceproof.model.release import Release
from onceproof.model.sensitivity import PlantedTrial
from onceproof.results.sensitivity import read_planted_trials
from onceproof.settings import get_settings

DEFAULTS = {name: schema["default"] for name, schema in SensitivityRequest.params().items()}


@pytest.fixture(scope="module")
def dag(bag):
    return bag.dags["sensitivity"]


def test_it_can_be_imported_and_serialised(bag, dag):
    from airflow.serialization.serialized_objects import DagSerialization

    assert bag.import_errors == {}
    assert set(DagSerialization.from_dict(DagSerialization.to_dict(dag)).task_ids) == {"releases", "sense"}


def test_it_runs_weekly_one_at_a_time_and_makes_up_for_nothing(dag):
    assert dag.timetable.expression == "15 8 * * 6"
    assert (dag.catchup, dag.max_active_runs, dag.is_paused_upon_creation) == (False, 1, False)
    assert {task.retries for task in dag.tasks} == {0}


def test_it_takes_turns_with_the_trials_of_regression(bag, dag):
    assert dag.get_task("sense").pool == bag.dags["regression"].get_task("drive").pool == "drive"


@pytest.mark.parametrize(
    ("param", "bad"),
    [
        ("streams", []),
        ("streams", ["3.3.x"]),
        ("scenario", ["elevator"]),
        ("plant", ["weeds"]),
        ("trials", 0),
        ("broker", "latest"),
        ("seed", -1),
    ],
)
def test_params_that_cannot_be_run_are_refused(dag, param, bad):
    from airflow.sdk.definitions.param import ParamValidationError

    with pytest.raises(ParamValidationError):
        dag.params.get_param(param).resolve(bad)


# --- a run, in one process


@pytest.fixture
def found():
    """The plants that are found."""
    return {"put-lost", "record-twice"}


@pytest.fixture
def cardboard(home, found, monkeypatch):
    from onceproof.campaigns.sensitivity import plantings as sensitivity

    def sense_for(request, streams, seed):
        release = Release.parse(streams)
        cell = Cell("enumerator", "DEFAULT_CONFIG", release, Release.parse(request.broker))
        named = [plant(name) for name in request.plant]
        plantings = tuple(sensitivity.Planting(one, cell, one.claim("enumerator")) for one in named)
        return verbs.Sense(release, cell.broker, plantings, request.trials, seed, {})

    def try_planned(_installation, run, plan, broker, report, each, then):
        return [
            PlantedTrial(t.run, t.key, t.plant, t.cell, "c0ffee", "h", t.seed, 3, True, t.plant in found, {}, 1.0)
            for _, t in plan
        ]

    monkeypatch.setattr(verbs, "sense_for", sense_for)
    monkeypatch.setattr(sensitivity, "try_planned", try_planned)
    monkeypatch.setattr(verbs, "read_by_both", lambda planted, tried: [trial for _, trial in tried])


def run_it(dag, **params: object):
    run = dag.test(run_conf=DEFAULTS | params)
    return run.state, [task for task in run.get_task_instances() if task.task_id == "sense"]


PLANTS: dict[str, Any] = {"plant": ["put-lost", "record-twice"], "trials": 2}


@pytest.mark.system
def test_each_release_is_sensed_and_stored(dag, database, cardboard, home):
    state, tasks = run_it(dag, streams=["4.3.1", "3.9.1"], **PLANTS)
    assert (state, len(tasks)) == ("success", 2)
    stored = read_planted_trials(get_settings().database_url)
    assert {(str(one.cell.streams), one.plant) for one in stored} == {
        (release, name) for release in ("4.3.1", "3.9.1") for name in PLANTS["plant"]
    }
    assert len(stored) == 8
    files = {Path(task.xcom_pull(task_ids="sense", map_indexes=task.map_index)) for task in tasks}
    assert len(files) == 2
    assert {read_json(file)["streams"] for file in files} == {"4.3.1", "3.9.1"}


@pytest.mark.system
def test_a_survivor_is_stored_and_fails_the_task_in_one_sentence(dag, database, cardboard, home, found, caplog, capfd):
    found.remove("put-lost")
    state, _ = run_it(dag, **PLANTS)
    assert state == "failed"
    said = capfd.readouterr()
    assert "put-lost survived in enumerator" in caplog.text + said.out + said.err
    assert len(read_planted_trials(get_settings().database_url)) == 4
