"""DAG `explore`: its params, its turn with the machine, and searches whose answers are decreed."""

from pathlib import Path

import pytest

from onceproof.campaigns.requests import ExploreRequest
from onceproof.campaigns.search import verbs
from onceproof.campaigns.search.explorer import search_version
from onceproof.campaigns.search.log import Purpose, SearchLog, SearchRequest, Tried
from onceproof.campaigns.search.schedules import Schedule
from onceproof.scenarios import SCENARIOS
from tests.specimens.files import a_finding

DEFAULTS = {name: schema["default"] for name, schema in ExploreRequest.params().items()}


@pytest.fixture(scope="module")
def dag(bag):
    return bag.dags["explore"]


def test_it_can_be_imported_and_serialised(bag, dag):
    from airflow.serialization.serialized_objects import DagSerialization

    assert bag.import_errors == {}
    assert set(DagSerialization.from_dict(DagSerialization.to_dict(dag)).task_ids) == {"releases", "search"}


def test_exploring_runs_nightly_and_does_not_catch_up(dag):
    assert dag.timetable.expression == "30 3 * * *"
    assert (dag.catchup, dag.max_active_runs, dag.is_paused_upon_creation) == (False, 1, False)
    assert {task.retries for task in dag.tasks} == {0}


def test_exploring_alternates_with_regression_trials(bag, dag):
    search, drive = dag.get_task("search"), bag.dags["regression"].get_task("drive")
    assert search.pool == drive.pool == "drive"
    assert search.partial_kwargs["mode"] == "reschedule"  # the pool is free between two parts
    for name in ("regression", "bisect", "sensitivity", "applications"):
        tasks = [task for task in bag.dags[name].tasks if task.pool == "drive"]
        assert tasks
        assert all(task.priority_weight > search.priority_weight for task in tasks)


@pytest.mark.parametrize(
    ("param", "bad"),
    [
        ("streams", []),
        ("streams", ["3.3.x"]),
        ("scenario", ["elevator"]),
        ("minutes", 0),
        ("until", "6"),
        ("until", "24:00"),
        ("bisect", "maybe"),
        ("broker", "latest"),
        ("seed", -1),
        ("set", ["group.protocol"]),
    ],
)
def test_params_that_cannot_be_run_are_refused(dag, param, bad):
    from airflow.sdk.definitions.param import ParamValidationError

    with pytest.raises(ParamValidationError):
        dag.params.get_param(param).resolve(bad)


def test_a_parameter_of_any_scenario_can_be_set(dag):
    texts = [f"{name}=1" for scenario in SCENARIOS.values() for name in scenario.settable]
    assert dag.params.get_param("set").resolve(texts) == texts


# --- a run, in one process


@pytest.fixture
def findings():
    """What is found."""
    return []


@pytest.fixture
def cardboard(home, findings, monkeypatch):
    """Searches of one trial that takes as long as there is; returns what was searched, and for how long."""
    searched = []

    def asked_for(request, streams, run, seed):
        fields = {"streams": streams, "broker": request.broker, "bisect": request.bisect}
        return SearchRequest(
            run=run,
            **fields,
            scenarios=("crash",),
            seed=seed,
            uniform=False,
            plant=None,
            harness=search_version(("crash",)),
        )

    def explore(folder, asked, seconds, named):
        searched.append((asked.streams, seconds))
        asked.write(folder.asked_file)
        log = SearchLog(folder.log_file)
        at = (log.lines[-1].at if log.lines else 0) + seconds
        schedule = Schedule("crash", "DEFAULT_CONFIG", (), 1)
        log.add(Tried(number=1, purpose=Purpose.SEARCH, schedule=schedule, seconds=seconds, at=at, command="c"))
        for finding in findings:
            finding.write(folder.finding(finding) / "finding.json")

    monkeypatch.setattr(verbs, "ask_for", asked_for)
    monkeypatch.setattr(verbs, "explore", explore)
    return searched


def run_it(dag, **params: object):
    run = dag.test(run_conf=DEFAULTS | params)
    return run.state, [task for task in run.get_task_instances() if task.task_id == "search"]


@pytest.mark.system
def test_each_release_is_searched_for_its_minutes(dag, database, cardboard, home):
    state, tasks = run_it(dag, streams=["4.3.1", "3.9.2"], minutes=10)
    assert state == "success"
    assert sorted(cardboard) == [("3.9.2", 600), ("4.3.1", 600)]
    files = {Path(task.xcom_pull(task_ids="search", map_indexes=task.map_index)) for task in tasks}
    assert len(files) == 2
    assert all(file.is_relative_to(home / "explorations") and file.name == "exploration.jsonl" for file in files)


@pytest.mark.system
def test_a_finding_fails_the_task_in_one_sentence(dag, database, cardboard, home, findings, caplog, capfd):
    findings.append(a_finding())
    state, _ = run_it(dag, minutes=10)
    assert state == "failed"
    said = capfd.readouterr()
    assert f"No known issue explains {a_finding().title}" in caplog.text + said.out + said.err


@pytest.mark.system
def test_what_cannot_be_searched_fails_in_one_sentence(dag, database, cardboard, home, caplog, capfd):
    state, _ = run_it(dag, until=None)
    assert state == "failed"
    said = capfd.readouterr()
    assert "set minutes or until" in caplog.text + said.out + said.err
    assert cardboard == []


@pytest.mark.system
def test_a_night_of_which_nothing_is_left_is_skipped(dag, database, cardboard, home, monkeypatch):
    monkeypatch.setattr(verbs, "seconds_left", lambda *_: -1.0)
    state, [task] = run_it(dag)
    assert (state, task.state) == ("success", "skipped")
    assert cardboard == []


@pytest.mark.system
def test_a_long_search_gives_others_their_turn_and_goes_on(dag, database, cardboard, home, monkeypatch):
    monkeypatch.setitem(dag.get_task("search").partial_kwargs, "poke_interval", 0)
    monkeypatch.setattr(verbs, "SLICE", 400.0)
    state, _ = run_it(dag, minutes=10)
    assert state == "success"
    assert cardboard == [("4.4.0", 400), ("4.4.0", 200)]


@pytest.mark.system
def test_the_next_night_continues_and_is_red_by_its_own_findings(dag, database, cardboard, home, findings):
    findings.append(a_finding(after=300.0))
    assert run_it(dag, minutes=10)[0] == "failed"
    state, [task] = run_it(dag, minutes=5)
    assert state == "success"
    assert cardboard == [("4.4.0", 600), ("4.4.0", 300)]
    assert SearchLog(Path(task.xcom_pull(task_ids="search", map_indexes=0))).lines[-1].at == 900
    findings.append(a_finding(number=2, after=950.0))
    assert run_it(dag, minutes=5)[0] == "failed"
    assert run_it(dag, minutes=5, anew=True)[1][0].xcom_pull(task_ids="search", map_indexes=0) is None
    assert len([*(home / "explorations").iterdir()]) == 2
