"""The parts of `onceproof run` that need no Airflow."""

import io
import json
import os
from types import SimpleNamespace
from typing import Any

import pytest
from filelock import FileLock
from rich.console import Console
from typer.testing import CliRunner

from onceproof import cli
from onceproof.model.errors import ExitCode, HarnessError, UsageError
from onceproof.model.files import VerdictRow
from onceproof.model.json_file import write_json
from onceproof.model.matrix import Request
from onceproof.model.run_folder import RunFolder
from onceproof.pipeline import steps
from onceproof.pipeline.run import (
    LONGEST_PATIENCE,
    LOOK_EVERY,
    PATIENCE,
    _connect,
    _finish,
    _watch,
    explain,
    find_interrupted,
    run,
)
from onceproof.pipeline.supervisor import Airflow
from tests.conftest import a_trial
from tests.specimens.brokers import external_cluster
from tests.specimens.files import a_verdict

RUN = "20261121T084500-3f2a"
QUIET = Console(file=io.StringIO())


def instance(task: str, state: str, index: int = -1) -> dict[str, object]:
    return {"task_id": task, "state": state, "map_index": index, "try_number": 1, "end_date": "2026"}


@pytest.fixture
def airflow(tmp_path) -> Airflow:
    return Airflow("http://127.0.0.1:1", tmp_path, os.getpid(), 0.0, False)


def finished(tmp_path, airflow: Airflow, verdicts: list[str], *instances: dict[str, object]):
    folder = RunFolder(tmp_path / "20261121T084500-3f2a")
    VerdictRow.write_all(folder.verdicts_file, [a_verdict(a_trial("3.4.1").cell, verdict) for verdict in verdicts])
    return _finish(folder, folder.run_id, airflow, [instance("judge", "success"), *instances])


class Tasks:
    """An API whose look at all tasks takes some seconds; the run ends at the hundredth look at its state."""

    def __init__(self, takes: float) -> None:
        self.now, self.looks, self.states, self.takes = 0.0, 0, 0, takes

    def task_instances(self, _dag: str, _run: str) -> list[dict[str, object]]:
        self.looks += 1
        self.now += self.takes
        return [instance("judge", "success" if self.states == 100 else "running")]

    def run_state(self, _dag: str, _run: str) -> str:
        self.states += 1
        return "success" if self.states == 100 else "running"


@pytest.mark.parametrize("takes", [1.0, 7.5])
def test_whoever_watches_a_large_run_leaves_the_machine_to_it(tmp_path, monkeypatch, takes):
    tasks, shown = Tasks(takes), []
    api: Any = tasks  # as far as a watcher needs it, as are the next two
    display: Any = SimpleNamespace(show=lambda progress: shown.append(progress.stages))
    monkeypatch.setattr("onceproof.pipeline.run.time", SimpleNamespace(monotonic=lambda: tasks.now))
    monkeypatch.setattr("tenacity.nap.time", SimpleNamespace(sleep=lambda seconds: tick(tasks, seconds)))
    running: Any = SimpleNamespace(check=lambda: None)
    assert _watch(RunFolder(tmp_path / RUN), RUN, running, api, display)[0]["state"] == "success"
    assert tasks.looks <= tasks.now / PATIENCE + 1
    assert tasks.looks >= tasks.now / (LONGEST_PATIENCE + takes + LOOK_EVERY)  # while Airflow starts, looks are slow
    assert shown[0] == ("judge",)
    assert shown[-1] == ()


def tick(tasks: Tasks, seconds: float) -> None:
    tasks.now += seconds


def test_a_second_run_names_the_first(lab, home):
    write_json(home / "run.json", {"run": "20261121T084500-3f2a", "pid": 4711})
    with (
        FileLock(home / "run.lock"),
        pytest.raises(UsageError, match="Run 20261121T084500-3f2a is under way in process 4711"),
    ):
        run(Request("first-look"), console=QUIET)


def test_a_request_that_cannot_be_run_starts_nothing(lab, home):
    before = list(home.iterdir())
    with pytest.raises(UsageError, match=r"'3\.3\.x' is not a Kafka release"):
        run(Request(streams=("3.3.x",)), console=QUIET)
    assert list(home.iterdir()) == before


def test_brokers_that_do_not_answer_end_a_run_before_any_start(lab, home, monkeypatch):
    monkeypatch.setattr("onceproof.lab.external_brokers.REACHED_WITHIN", 0.0)
    before = list(home.iterdir())
    with pytest.raises(UsageError, match=r"The brokers at 127\.0\.0\.1:1 cannot be reached"):
        run(Request("first-look", brokers=("3.9.2-claimed",)), console=QUIET, external=external_cluster())
    assert list(home.iterdir()) == before


class FakeApi:
    """Connections of Airflow."""

    def __init__(self, *names: str) -> None:
        self.known: dict[str, dict[str, str]] = {name: {} for name in names}

    def connections(self, prefix: str) -> list[str]:
        return [name for name in self.known if name.startswith(prefix)]

    def add_connection(self, connection: dict[str, str]) -> None:
        self.known[connection["connection_id"]] = connection

    def delete_connection(self, name: str) -> None:
        del self.known[name]


def test_a_connection_that_people_made_is_left_alone():
    theirs = "onceproof_brokers.staging"
    connections = FakeApi(theirs)
    api: Any = connections  # as far as connections go
    with _connect(api, RUN, None):
        pass
    assert connections.known.keys() == {theirs}


def test_external_brokers_are_a_connection_during_the_run():
    mine, killed = "onceproof_brokers", "onceproof_brokers.20261120T084500-3f2a"
    connections = FakeApi(mine, killed)
    api: Any = connections  # as far as connections go
    with _connect(api, RUN, external_cluster(ssl_truststore_certificates="C", ssl_truststore_type="PEM")) as name:
        assert name == f"onceproof_brokers.{RUN}"
        assert connections.known.keys() == {mine, name}
        answer = json.loads(connections.known[name]["extra"])
        assert answer["ssl.truststore.certificates"] == "C"
    assert connections.known.keys() == {mine}
    connections.add_connection({"connection_id": killed})
    with _connect(api, RUN, None) as name:  # a run on brokers of our own removes it, too
        assert name == mine
        assert connections.known.keys() == {mine}


@pytest.mark.parametrize("wanted", ["last", RUN])
@pytest.mark.parametrize("options", [[], ["--brokers", "client.properties"]], ids=["alone", "with the brokers"])
def test_a_run_on_external_brokers_is_not_resumed_and_says_why(lab, home, monkeypatch, tmp_path, wanted, options):
    monkeypatch.setattr("onceproof.lab.external_brokers.check_access", lambda *_: None)
    begun = steps.plan(
        RUN, Request("first-look", brokers=("3.9.2-claimed",)), external=lambda: external_cluster().properties
    )
    steps.start_cluster(begun, "3.9.2-claimed", lambda: external_cluster().properties)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "client.properties").write_text("bootstrap.servers=127.0.0.1:1")
    refused = CliRunner().invoke(cli.app, ["run", "--resume", wanted, *options]).exception
    assert isinstance(refused, UsageError)
    assert f"Run {RUN} cannot be resumed: its topics were on brokers of your own" in str(refused)


def test_an_interrupted_run_is_found_with_its_request(lab, home):
    older, asked = "20261121T084500-3f2a", Request("first-look", ("3.4.1",), scenarios=("enumerator",), trials=2)
    steps.start_cluster(steps.plan(older, asked), "3.9.2")
    assert find_interrupted("last") == find_interrupted(older) == (older, asked)
    newer = steps.plan("20261121T094500-3f2a", Request("first-look", scenarios=("enumerator",)))
    with pytest.raises(UsageError, match="There is no interrupted run 'last' that could be resumed: there is none"):
        find_interrupted("last")  # the older one has lost its topics, and the newer one has none yet
    steps.start_cluster(newer, "3.9.2")
    with pytest.raises(UsageError, match=f"there is {newer.run_id}"):
        find_interrupted(older)
    cell = next(newer.trials()).cell
    VerdictRow.write_all(newer.verdicts_file, [a_verdict(cell, "error")])
    steps.publish(newer)
    assert find_interrupted("last")[0] == newer.run_id  # what failed can be repeated
    VerdictRow.write_all(newer.verdicts_file, [a_verdict(cell, "clean")])
    assert find_interrupted("last")[0] == newer.run_id  # this verdict is not stored
    steps.publish(newer)
    with pytest.raises(UsageError, match="there is none"):
        find_interrupted(newer.run_id)


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        (["clean", "known", "avoided"], ExitCode.OK),
        (["clean", "inconclusive"], ExitCode.INCONCLUSIVE),
        (["error", "inconclusive"], ExitCode.ERROR),
        (["error", "regression"], ExitCode.ANOMALY),
    ],
)
def test_the_exit_code_is_that_of_the_verdicts(tmp_path, airflow, verdicts, code):
    assert finished(tmp_path, airflow, verdicts).exit_code == code


@pytest.mark.parametrize(("verdict", "code"), [("clean", ExitCode.ERROR), ("regression", ExitCode.ANOMALY)])
def test_a_failed_task_is_an_error_unless_something_is_proven(tmp_path, airflow, verdict, code):
    result = finished(tmp_path, airflow, [verdict], instance("publish", "failed"))
    assert result.exit_code == code
    assert result.failures[0].startswith("Task publish failed (log ")


def test_without_verdicts_the_first_failure_is_told(tmp_path, airflow):
    with pytest.raises(HarnessError, match=r"Task plan failed \(log .*/task_id=plan/attempt=1\.log\)"):
        _finish(RunFolder(tmp_path / "r"), "r", airflow, [instance("plan", "failed")])


@pytest.mark.parametrize(
    ("kind", "text"),
    [("AirflowFailException", "the disk is full"), ("KeyError", "KeyError: the disk is full")],
)
def test_a_failed_task_is_explained_by_the_end_of_its_log(tmp_path, kind, text):
    log = tmp_path / "dag_id=regression/run_id=r/task_id=start_cluster/map_index=2/attempt=1.log"
    log.parent.mkdir(parents=True)
    lines = [
        {"event": "first", "error_detail": [{"exc_type": "OSError", "exc_value": "retried"}]},
        {"event": "Task failed", "error_detail": [{"exc_type": kind, "exc_value": "the disk is full"}]},
        {"event": "end"},
    ]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines) + "not JSON\n")
    assert explain(tmp_path, "r", instance("start_cluster", "failed", 2)) == (
        f"Task start_cluster failed: {text} (log {log})"
    )
