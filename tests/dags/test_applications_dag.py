"""DAG `applications`: its params, its turn with the machine, and applications of cardboard."""

from pathlib import Path

import pytest

from onceproof.campaigns.application import verbs
from onceproof.campaigns.requests import ApplicationRequest
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.judged import AppAnswer, Judgement
from onceproof.model.run_folder import RunFolder
from onceproof.pipeline import application_service
from onceproof.settings import get_settings
from tests.specimens.files import an_app_answer, on_release

DEFAULTS = {name: schema["default"] for name, schema in ApplicationRequest.params().items()}


@pytest.fixture(scope="module")
def dag(bag):
    return bag.dags["applications"]


def test_it_can_be_imported_and_serialised(bag, dag):
    from airflow.serialization.serialized_objects import DagSerialization

    assert bag.import_errors == {}
    reported = DagSerialization.from_dict(DagSerialization.to_dict(dag))
    assert set(reported.task_ids) == {"applications", "run_application"}


def test_it_runs_nightly_one_at_a_time_and_makes_up_for_nothing(dag):
    assert dag.timetable.expression == "15 6 * * *"
    assert (dag.catchup, dag.max_active_runs, dag.is_paused_upon_creation) == (False, 1, False)
    assert {task.retries for task in dag.tasks} == {0}


def test_it_takes_turns_with_the_trials_of_regression(bag, dag):
    assert dag.get_task("run_application").pool == bag.dags["regression"].get_task("drive").pool == "drive"


@pytest.mark.parametrize(
    ("param", "bad"),
    [
        ("applications", ["../elsewhere"]),
        ("streams", ["4"]),
        ("fault", "flood"),
        ("fault", "rolling-bounce"),
        ("seed", -1),
    ],
)
def test_params_that_cannot_be_run_are_refused(dag, param, bad):
    from airflow.sdk.definitions.param import ParamValidationError

    with pytest.raises(ParamValidationError):
        dag.params.get_param(param).resolve(bad)


def test_the_folders_of_applications_are_those_with_a_file(home):
    for name in ("a", "b"):
        (home / "applications" / name).mkdir(parents=True)
        (home / "applications" / name / "onceproof.toml").touch()
    (home / "applications" / "notes").mkdir()
    assert [Path(folder).name for folder in verbs.applications([])] == ["a", "b"]
    assert [Path(folder).name for folder in verbs.applications(["b"])] == ["b"]
    with pytest.raises(UsageError, match=r"There is no application 'notes' in .*; there is a, b\."):
        verbs.applications(["notes"])


def test_a_folder_is_of_one_run(tmp_path):
    run = RunFolder(tmp_path / "runs" / "20261121T061500-3f2a91c7")
    verbs.claim_folder(run)
    with pytest.raises(UsageError, match=r"3f2a91c7 is there already, .*: trigger a new run"):
        verbs.claim_folder(run)
    (tmp_path / "file").touch()
    with pytest.raises(HarnessError, match="could not be written"):
        verbs.claim_folder(RunFolder(tmp_path / "file" / "r"))


# --- a run, in one process


@pytest.fixture
def cardboard(home, monkeypatch):
    """Two applications: `good` is green on all releases, `bad` is red on 4.1.2."""
    for name in ("bad", "good"):
        (home / "applications" / name).mkdir(parents=True)
        (home / "applications" / name / "onceproof.toml").touch()

    def app_run(run, folder, request, seed):
        return run, folder, request, seed

    def apply(wanted):
        run, folder, request, seed = wanted
        assert run.path.is_dir()  # no other run has it
        is_bad = Path(folder).name == "bad"
        found = [
            on_release(streams=one, judgement=Judgement("red" if is_bad and one == "4.1.2" else "green"), reason="Why.")
            for one in request.streams or ["4.4.0"]
        ]
        answer = an_app_answer(*found, application=folder, broker=request.broker, seed=seed)
        answer.write(run.app_file)
        return answer

    monkeypatch.setattr(verbs, "app_run", app_run)
    monkeypatch.setattr(verbs, "apply", apply)


def run_it(dag, **params: object):
    run = dag.test(run_conf=DEFAULTS | params)
    return run.state, {(t.task_id, t.map_index): t for t in run.get_task_instances()}


@pytest.mark.system
def test_each_application_runs_and_a_red_one_fails_its_task(dag, database, cardboard, caplog, capfd):
    state, tasks = run_it(dag, streams=["4.1.2", "4.3.1"])
    assert state == "failed"
    assert [tasks["run_application", n].state for n in (0, 1)] == ["failed", "success"]
    answer = AppAnswer.read(Path(tasks["run_application", 1].xcom_pull(task_ids="run_application", map_indexes=1)))
    assert (answer.name, [one.streams for one in answer.releases]) == ("good", ["4.1.2", "4.3.1"])
    assert "bad on 4.1.2: red, unknown: Why." in caplog.text + "".join(capfd.readouterr())


@pytest.mark.system
def test_where_nobody_says_on_which_releases_the_file_says_it(dag, database, cardboard, monkeypatch):
    asked = []
    app_run = verbs.app_run
    monkeypatch.setattr(verbs, "app_run", lambda *args: asked.append(args[2].streams) or app_run(*args))
    state, _ = run_it(dag, applications=["good"])
    assert (state, asked) == ("success", [()])


@pytest.mark.system
def test_without_applications_the_night_is_skipped(dag, database, home):
    state, tasks = run_it(dag)
    assert (state, tasks["applications", -1].state) == ("success", "skipped")


@pytest.mark.system
def test_where_there_is_a_service_it_runs_the_application(dag, database, cardboard, home, monkeypatch):
    asked = []

    def run_application(door, run, folder, request, seed):
        asked.append((door, Path(folder).name, request.streams, request.broker))
        answer = an_app_answer(on_release(streams="4.3.1"), application=folder)
        verbs.claim_folder(run)
        answer.write(run.app_file)
        return answer

    monkeypatch.setenv("ONCEPROOF_APPLICATION_SERVICE", str(home / "door"))
    get_settings.cache_clear()
    monkeypatch.setattr(
        verbs, "resolve_releases", lambda folder, request: request.model_copy(update={"broker": "9.9.9"})
    )
    monkeypatch.setattr(application_service, "run_application", run_application)
    state, _ = run_it(dag, applications=["good"], streams=["4.3.1"])
    assert (state, asked) == ("success", [(home / "door", "good", ("4.3.1",), "9.9.9")])
