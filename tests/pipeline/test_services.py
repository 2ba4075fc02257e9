"""An Airflow that is really started: up and down, and nothing left, whatever dies."""

import os
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import psutil
import pytest

from onceproof.model.errors import HarnessError, UsageError
from onceproof.pipeline.services import down, services, up
from onceproof.pipeline.supervisor import DAG, Airflow, furnish
from onceproof.processes.waiting import await_condition
from onceproof.settings import Settings
from tests.homes import ask_living

pytestmark = pytest.mark.system

GONE_WITHIN = 10.0  # seconds from SIGKILL until nothing is left
RUN = """
import sys
from rich.console import Console
from onceproof.model.matrix import Request
from onceproof.pipeline.run import run
try:
    run(Request("first-look", ("3.4.1",), scenarios=("enumerator",), variants=("DEFAULT_CONFIG",)), console=Console())
except KeyboardInterrupt:
    sys.exit(130)
"""


def processes(settings: Settings) -> list[psutil.Process]:
    """Everything that was started for this home, by anyone: all of it inherits the environment."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("ONCEPROOF_HOME") == str(settings.home) and process.pid != os.getpid():
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def await_gone(settings: Settings) -> None:
    await_condition(
        "everything to be gone",
        lambda: not processes(settings),
        timeout=GONE_WITHIN,
        last_seen=lambda: str([(p.pid, p.name()) for p in processes(settings)]),
        interval=0.1,
    )


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    """The module's own home, with the project's artifacts; at no hour does a scheduled run begin there."""
    home = tmp_path_factory.mktemp("home")
    (home / "artifacts").symlink_to(Settings().artifacts)
    own = Settings(home=home)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE", "False")
        yield own
        down(own)
    await_gone(own)


@pytest.fixture
def airflow(settings) -> Airflow:
    return up(settings)[0]


def test_a_port_that_is_taken_starts_nothing(settings):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        with pytest.raises(UsageError, match=f"Port {port} on 127.0.0.1 is taken"):
            up(Settings(home=settings.home, airflow_port=port))
    assert processes(settings) == []


def test_up_twice_is_one_airflow(settings, airflow):
    assert up(settings) == (airflow, False)
    with services(settings) as running:  # a run uses it, too
        assert running.airflow == airflow
    assert airflow.alive()


def test_only_loopback_listens(settings, airflow):
    listening = {
        connection.laddr.ip
        for connections in ask_living(lambda process: process.net_connections("inet"), processes(settings))
        for connection in connections
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {"127.0.0.1"}


def test_it_is_furnished(settings, airflow):
    with airflow.api() as api:
        assert api._call("GET", "/pools/drive")["slots"] == 2
        api.set_pool_slots("drive", 2)
        assert api._call("GET", "/pools/drive")["slots"] == 2
        api.set_pool_slots("drive", 1)
        of_spark = partial(api._call, "GET", "/connections/spark_default")
        before = of_spark()
        assert before["host"] == "local[*]"
        master = Settings(home=settings.home, spark_master="spark://master:7077")
        furnish(api, master)
        furnish(api, settings)
        assert of_spark() == before | {"host": "spark://master:7077"}
        furnish(api, master.model_copy(update={"spark_master": "local[*]"}))
        assert of_spark() == before
        assert api._call("GET", f"/dags/{DAG}")["is_paused"] is False


@pytest.mark.parametrize(
    "conf",
    [
        {"streams": ["3.3.x"]},
        {"streams": ["3.3.1; rm -rf /"]},
        {"matrix": "everything"},
        {"scenarios": ["elevator"]},
        {"variants": ["NONE"]},
    ],
)
def test_a_nonsensical_request_is_refused_before_it_is_a_run(airflow, conf):
    with airflow.api() as api:
        with pytest.raises(HarnessError, match=r"\(HTTP 400\): Invalid input for param"):
            api.trigger(DAG, "20261121T084500-3f2a", conf)
        assert api.active_runs(DAG) == []


def test_a_killed_supervisor_leaves_nothing_behind(settings, airflow):
    psutil.Process(airflow.supervisor).kill()
    await_gone(settings)
    again, new = up(settings)
    assert new
    assert again.url == airflow.url


@pytest.mark.parametrize("victim", ["the lower reaper", "the scheduler"])
def test_a_component_that_dies_takes_all_with_it_and_is_named(settings, airflow, victim):
    for upper in psutil.Process(airflow.supervisor).children():
        if "scheduler" in upper.cmdline():
            lower = upper.children()[0]
            (lower if victim == "the lower reaper" else lower.children()[0]).kill()
    await_gone(settings)
    log = (Path(airflow.home) / "supervisor.log").read_text()
    assert log.startswith("Airflow's scheduler ended (exit code 137), so all of it stops; log ")


def is_java(process: psutil.Process) -> bool:
    """Whether it is one, and still there."""
    try:
        return process.name() == "java"
    except psutil.NoSuchProcess:
        return False


@pytest.mark.broker
def test_runs_that_are_killed_and_interrupted_leave_nothing(settings, tmp_path):
    """One whose scheduler is killed is in `tests/system/test_whole_under_fire.py`."""

    def run_until_driven(log: Path) -> subprocess.Popen[bytes]:
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, "-c", RUN],
                env={**os.environ, "ONCEPROOF_HOME": str(settings.home)},
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        await_condition(
            "brokers and an instance",
            lambda: sum(map(is_java, processes(settings))) >= 2,
            timeout=300,
            check=lambda: None if process.poll() is None else pytest.fail(log.read_text()),
            last_seen=log.read_text,
            interval=0.2,
        )
        return process

    killed = run_until_driven(tmp_path / "killed.log")
    killed.kill()
    killed.wait()
    await_gone(settings)

    # The next one is not told that a run is under way.
    interrupted = run_until_driven(tmp_path / "interrupted.log")
    interrupted.send_signal(signal.SIGINT)
    assert interrupted.wait(120) == 130
    assert processes(settings) == []

    # What they left behind does not disturb the next one.
    airflow, _ = up(settings)
    with airflow.api() as api:
        assert api.active_runs(DAG) == []
        states = {api.run_state(DAG, folder.name) for folder in settings.runs.iterdir()}
    assert states == {"failed"}
    assert down(settings)
    assert processes(settings) == []
    assert not down(settings)
