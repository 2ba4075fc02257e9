"""DAG `qualify`: its params, its turn with the machine, and a release that does not qualify."""

import pytest

from onceproof.campaigns.qualification import verbs
from onceproof.campaigns.requests import QualifyRequest
from onceproof.model.qualification import Qualification, QualificationPart, QualificationRow, Sight
from onceproof.model.run_folder import RunFolder

DEFAULTS = {name: schema["default"] for name, schema in QualifyRequest.params().items()}


@pytest.fixture(scope="module")
def dag(bag):
    return bag.dags["qualify"]


def test_it_can_be_imported_and_serialised(bag, dag):
    from airflow.serialization.serialized_objects import DagSerialization

    assert bag.import_errors == {}
    assert set(DagSerialization.from_dict(DagSerialization.to_dict(dag)).task_ids) == {"releases", "qualify"}


def test_it_is_triggered_and_runs_one_at_a_time(dag):
    from airflow.sdk.definitions.timetables.simple import NullTimetable

    assert isinstance(dag.timetable, NullTimetable)
    assert (dag.max_active_runs, dag.is_paused_upon_creation) == (1, False)
    assert {task.retries for task in dag.tasks} == {0}


def test_it_goes_before_the_trials_of_regression(bag, dag):
    task, trial = dag.get_task("qualify"), bag.dags["regression"].get_task("drive")
    assert task.pool == trial.pool == "drive"
    assert task.priority_weight > trial.priority_weight


@pytest.mark.parametrize(
    ("param", "bad"), [("streams", []), ("streams", ["three"]), ("scenario", ["elevator"]), ("broker", "latest")]
)
def test_params_that_cannot_be_run_are_refused(dag, param, bad):
    from airflow.sdk.definitions.param import ParamValidationError

    with pytest.raises(ParamValidationError):
        dag.params.get_param(param).resolve(bad)


@pytest.mark.system
@pytest.mark.parametrize("sight", [Sight.SEEN, Sight.MISSING])
def test_each_release_is_examined_and_an_unqualified_one_fails(dag, database, home, monkeypatch, capfd, sight):
    def qualify(run: RunFolder, request: QualifyRequest, streams: str, seed: int) -> Qualification:
        rows = (QualificationRow(QualificationPart.PHRASE, "fenced", sight, f"seed {request.seed_or(seed)}"),)
        found = Qualification(
            run=run.run_id,
            streams=streams,
            broker="4.4.0",
            harness="h",
            scenarios=(),
            trials=1,
            seconds=1.0,
            rows=rows,
        )
        found.write(run.qualification_file)
        return found

    monkeypatch.setattr(verbs, "qualify", qualify)
    run = dag.test(run_conf=DEFAULTS | {"streams": ["4.4.0", "4.3.1"], "seed": 7})
    assert run.state == ("success" if sight is Sight.SEEN else "failed")
    said = capfd.readouterr()
    if sight is Sight.MISSING:
        assert "4.4.0 does not qualify. The harness has to learn: phrase fenced: seed 7" in said.out + said.err
