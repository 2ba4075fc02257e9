"""The graph of the DAG: what follows what, what continues after a failure, and a run in a cardboard lab."""

import json
import os
from pathlib import Path

import pytest

from onceproof.model.client_properties import ClientProperties
from onceproof.model.files import VerdictRow
from onceproof.model.json_file import read_json
from onceproof.model.matrix import Request
from onceproof.model.run_folder import RunFolder
from onceproof.pipeline.request import RunRequest
from onceproof.results.history import read_runs
from onceproof.settings import get_settings
from tests.pipeline.cardboard import BROKEN, FakeLab
from tests.specimens.files import a_verdict

RUN = "20261121T084500-3f2a"


@pytest.fixture(scope="module")
def dag(bag):
    return bag.dags["regression"]


# --- the file


def test_it_can_be_imported_and_serialised(bag, dag):
    from airflow.serialization.serialized_objects import DagSerialization

    assert bag.import_errors == {}
    again = DagSerialization.from_dict(DagSerialization.to_dict(dag))
    assert set(again.task_ids) == set(dag.task_ids)


def test_it_runs_nightly_one_at_a_time_and_makes_up_for_nothing(dag):
    assert dag.timetable.expression == "15 2 * * *"
    assert dag.start_date is None
    assert (dag.catchup, dag.max_active_runs) == (False, 1)
    assert dag.dagrun_timeout.total_seconds() < 24 * 3600
    assert {task.task_id for task in dag.tasks if task.retries} == {"end_trials"}


@pytest.mark.parametrize(
    ("param", "bad"),
    [
        ("streams", ["3.3.x"]),
        ("streams", ["3.3.1; rm -rf /"]),
        ("brokers", ["latest"]),
        ("scenarios", ["elevator"]),
        ("variants", ["FAST"]),
        ("matrix", "all"),
        ("trials", 0),
    ],
)
def test_params_that_cannot_be_run_are_refused(dag, param, bad):
    from airflow.sdk.definitions.param import ParamValidationError

    with pytest.raises(ParamValidationError):
        dag.params.get_param(param).resolve(bad)


# --- the order of the dangerous tasks


def before(dag, task: str) -> set[str]:
    return {t.task_id for t in dag.get_task(task).get_flat_relatives(upstream=True)}


def test_everything_happens_in_the_order_of_the_design(dag):
    for driven in (["prepare", "drive"], ["drive_waiting_cells"]):
        order = ["plan", "start_cluster", *driven, "add_trials", "end_trials", "validate", "judge", "publish"]
        for number, name in enumerate(order):
            assert set(order[:number]) <= before(dag, name)
    assert before(dag, "sense") == {"plan"}  # bugs are planted on brokers of its own, while cells are driven
    assert "sense" in before(dag, "add_trials")


def test_spark_starts_early_and_its_failure_ends_nothing_early(dag):
    assert before(dag, "collect_and_check") == {"plan"}
    for name in ("stop_clusters", "validate", "judge"):
        assert {"collect_and_check", "end_trials"} <= before(dag, name)


def test_brokers_are_stopped_when_spark_is_done_and_not_later(dag):
    stop = dag.get_task("stop_clusters")
    assert stop.is_teardown
    assert dag.get_task("start_cluster").is_setup
    assert "collect_and_check" in before(dag, "stop_clusters")
    assert not {"validate", "judge", "publish", "gate"} & before(dag, "stop_clusters")
    assert "stop_clusters" not in before(dag, "gate")


def test_an_alert_follows_publishing_and_the_gate_does_not_wait(dag):
    assert "publish" in before(dag, "alert")
    assert "alert" not in before(dag, "gate")
    assert not dag.get_task("alert").downstream_task_ids


def test_an_atlas_that_cannot_be_extended_stops_no_verdict(dag):
    assert "publish" in before(dag, "extend_atlas")
    assert not dag.get_task("extend_atlas").downstream_task_ids


def test_the_gate_comes_after_everything_is_published(dag):
    assert "publish" in before(dag, "gate")
    assert not dag.get_task("gate").downstream_task_ids


def test_a_failed_cell_or_spark_job_stops_no_verdict(dag):
    for name in ("add_trials", "end_trials", "judge"):
        assert dag.get_task(name).trigger_rule == "all_done_min_one_success"
    for name in ("publish", "gate", "alert", "extend_atlas"):  # else the run would pass without having published
        assert dag.get_task(name).trigger_rule == "all_success"


def test_only_trials_wait_for_the_machine(dag):
    pools = {task.task_id: task.pool for task in dag.tasks if task.pool != "default_pool"}
    assert pools == dict.fromkeys(("drive", "sense", "add_trials"), "drive")
    assert {task.task_id for task in dag.tasks if task.queue == "lab"} == pools.keys()


def test_what_has_come_furthest_goes_first(dag):
    from airflow.task.weight_rule import WeightRule

    assert {task.weight_rule for task in dag.tasks} == {WeightRule.UPSTREAM}


def test_no_part_of_a_cell_starts_before_its_siblings_are_over(dag):
    """No rule that makes Airflow wait for all cells (`one_...`) or that lets a part start without its forerunner."""
    assert {dag.get_task(part).trigger_rule for part in ("prepare", "drive")} == {"all_success"}


# --- a run, in one process, with cardboard in place of real things


@pytest.fixture
def verdicts():
    """What the judge says about a cell, by its key, if not `clean` or `error`."""
    return {}


@pytest.fixture
def cardboard(lab: FakeLab, home, verdicts, monkeypatch):
    """The lab, Spark, Great Expectations and the judge, who finds what the lab has written; the database is real."""
    import sys
    import types

    from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

    def judge_run(run: RunFolder, *_: object) -> None:
        outcomes = {trial.cell: run.outcome(trial) for trial in run.trials()}
        assert verdicts.keys() <= {cell.key for cell in outcomes}, "no such cell was run"
        trials = {cell: ended.error if ended else "No trial was run." for cell, ended in outcomes.items()}
        text = f"The judge's word; see {run.path}/trials, password=hunter2"
        rows = [
            a_verdict(cell, "error" if error else verdicts.get(cell.key, "clean"), sentence=error or text)
            for cell, error in trials.items()
        ]
        VerdictRow.write_all(run.verdicts_file, rows)

    monkeypatch.setattr("onceproof.lab.trial.run_trial", lambda trial, folder, *_, **__: lab.end(trial, folder))
    monkeypatch.setattr("onceproof.results.judging.judge_run", judge_run)
    checkpoints = types.ModuleType("expectations.checkpoints")
    vars(checkpoints)["validate"] = lambda *_: None
    monkeypatch.setitem(sys.modules, "expectations.checkpoints", checkpoints)

    def submit(operator: SparkSubmitOperator, context: object) -> None:
        lab.done.append((operator.task_id, " ".join(operator.application_args)))
        lab.done.append(("options", (operator.env_vars or {}).get("SPARK_SUBMIT_OPTS")))
        if "--brokers" in operator.application_args:
            lab.done.append(("read", ClientProperties.read(Path(operator.application_args[-1]))))
        if error := lab.failing.get(("spark", operator.task_id)):
            raise error

    monkeypatch.setattr(SparkSubmitOperator, "execute", submit)
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", "spark://local")
    jars = home / "artifacts" / "spark-connector"
    jars.mkdir(parents=True)
    (jars / "connector.jar").touch()
    return lab


REQUEST = Request("first-look", ("3.3.1", "3.4.1"), scenarios=("enumerator",), variants=("DEFAULT_CONFIG",))


def run_it(dag, **params: object):
    # All params, because `dag.test` leaves those of one run in the DAG for the next.
    run = dag.test(run_conf=RunRequest.of(REQUEST, RUN).model_dump(mode="json") | params)
    return run.state, {(t.task_id, t.map_index): t.state for t in run.get_task_instances()}


@pytest.mark.system
def test_a_run_goes_from_the_plan_to_the_gate(dag, database, cardboard, home):
    state, tasks = run_it(dag)
    assert state == "success"
    assert tasks.pop(("alert", -1)) == "skipped"
    assert set(tasks.values()) == {"success"}
    assert {index for name, index in tasks if name == "drive"} == {0, 1}
    applications = [done for done in cardboard.done if done[0] == "collect_and_check"]
    assert applications == [("collect_and_check", f"--owner {os.getpid()} --early --run-folder {home / 'runs' / RUN}")]
    assert RunFolder(home / "runs" / RUN).trials_over.exists()
    [options] = [value for what, value in cardboard.done if what == "options"]
    assert options.startswith("-XX:TieredStopAtLevel=1 ")  # two trials
    assert "-XX:ReservedCodeCacheSize=" in options  # or Spark dies when it is full
    assert [run.id for run in read_runs(get_settings().database_url)] == [RUN]
    assert cardboard.stopped == ["3.9.2"]


def test_spark_compiles_as_ever_if_there_are_many_trials(dag, cardboard, tmp_path, monkeypatch):
    monkeypatch.setattr("onceproof.model.run_folder.RunFolder.trials", lambda _: iter(range(21)))
    RunFolder(tmp_path).run_file.write_text("{}")
    application = dag.get_task("collect_and_check")
    monkeypatch.setattr(application, "application_args", [str(tmp_path)])
    application.execute({})
    assert ("options", None) in cardboard.done


@pytest.mark.system
def test_waiting_trials_run_concurrently_and_fail_alone(dag, database, cardboard, home):
    cardboard.failing["drive", "quota-DEFAULT_CONFIG-s3.3.1-b3.9.2-t1"] = RuntimeError("boom")
    _, tasks = run_it(dag, scenarios=["enumerator", "quota"])
    assert {index for name, index in tasks if name == "drive"} == {0, 1}
    assert {task for task, what in tasks.items() if what == "failed"} == {("drive_waiting_cells", -1), ("gate", -1)}
    verdicts = {v["cell"]: v["verdict"] for v in read_json(home / "runs" / RUN / "verdicts.json")}
    assert [cell for cell, verdict in verdicts.items() if verdict == "error"] == ["quota-DEFAULT_CONFIG-s3.3.1-b3.9.2"]
    assert sorted(cell.partition("-")[0] for cell in verdicts) == ["enumerator"] * 2 + ["quota"] * 2


@pytest.mark.system
def test_one_failed_cell_does_not_take_the_others_results(dag, database, cardboard, home):
    cardboard.failing["drive", "enumerator-DEFAULT_CONFIG-s3.3.1-b3.9.2-t1"] = RuntimeError("boom")
    state, tasks = run_it(dag)
    assert state == "failed"
    assert {task for task, what in tasks.items() if what == "failed"} == {("drive", 0), ("gate", -1)}
    verdicts = read_json(home / "runs" / RUN / "verdicts.json")
    assert [v["verdict"] for v in verdicts] == ["error", "clean"]
    assert cardboard.stopped == ["3.9.2"]


@pytest.mark.system
def test_brokers_that_do_not_start_fail_their_cells_alone(dag, database, cardboard, home):
    cardboard.failing["start", "3.0.0"] = BROKEN
    state, tasks = run_it(dag, streams=["3.3.1"], brokers=["3.0.0", "3.9.1"])
    assert state == "failed"
    assert [tasks["drive", n] for n in (0, 1)] == ["failed", "success"]
    assert tasks["publish", -1] == "success"
    assert cardboard.stopped == ["3.9.1"]


@pytest.mark.system
def test_a_run_on_external_brokers_passes_a_connection_to_spark(dag, database, cardboard, home, monkeypatch):
    # As in Airflow: a blank and a backslash must come through.
    fields = {
        "bootstrap.servers": "127.0.0.1:1",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": "C\\\n D",
    }
    monkeypatch.setenv("AIRFLOW_CONN_THEIRS", json.dumps({"conn_type": "kafka", "extra": fields}))
    monkeypatch.setattr(
        "onceproof.lab.external_brokers.check_access", lambda external, *_: cardboard.done.append(("asked", external))
    )
    monkeypatch.setattr("onceproof.lab.sweep.remove_run", lambda external, run: cardboard.stopped.append(run))
    state, _ = run_it(dag, brokers=["3.9.1-claimed"], connection="theirs")
    assert state == "success"
    [(_, asked)] = [done for done in cardboard.done if done[0] == "asked"]
    [(_, read)] = [done for done in cardboard.done if done[0] == "read"]
    assert asked.properties == read == ClientProperties.of(fields, "a test")
    assert cardboard.stopped == [RUN]
    assert [holder.alive() for holder in cardboard.held] == [False]


@pytest.mark.system
def test_a_damaged_atlas_suppresses_neither_gate_nor_alert(dag, database, cardboard, home, verdicts, monkeypatch):
    (home / "atlas.sqlite").write_text("no atlas")
    monkeypatch.setenv("ONCEPROOF_ATLAS", str(home / "atlas.sqlite"))
    get_settings.cache_clear()
    verdicts["enumerator-DEFAULT_CONFIG-s3.3.1-b3.9.2"] = "regression"
    state, tasks = run_it(dag)
    told = {task: tasks[task, -1] for task in ("publish", "gate", "alert", "extend_atlas")}
    assert told == {"publish": "success", "gate": "failed", "alert": "success", "extend_atlas": "failed"}
    assert state == "failed"


@pytest.mark.system
def test_without_the_connection_nothing_runs(dag, database, cardboard):
    state, tasks = run_it(dag, brokers=["3.9.1-claimed"], connection="nobody")
    assert (state, tasks["plan", -1]) == ("failed", "failed")
    assert cardboard.done == []


@pytest.mark.system
def test_a_failed_spark_job_ends_in_verdicts_too(dag, database, cardboard):
    cardboard.failing["spark", "collect_and_check"] = RuntimeError("no driver")
    state, tasks = run_it(dag)
    assert state == "success"  # the cardboard judge does not look at tables; the real one says error
    assert tasks["validate", -1] == "upstream_failed"
    assert tasks["publish", -1] == "success"
    assert cardboard.stopped == ["3.9.2"]


@pytest.mark.system
def test_without_a_plan_nothing_runs(dag, database, cardboard):
    cardboard.failing["published", "3.3.1"] = BROKEN
    state, tasks = run_it(dag)
    assert state == "failed"
    assert tasks["plan", -1] == "failed"
    assert set(tasks.values()) == {"failed", "upstream_failed"}
    assert cardboard.done == []
