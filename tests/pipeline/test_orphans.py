"""What a killed Airflow left is found by its environment and ended, and nothing else is."""

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import pytest
from typer.testing import CliRunner

from onceproof import cli
from onceproof.model.json_file import read_json, write_json
from onceproof.pipeline.services import down
from onceproof.pipeline.supervisor import Supervisor
from onceproof.processes.identity import read_start
from onceproof.processes.orphans import OWNER, OWNER_STARTED, end_orphans, note_session, sessions_file
from onceproof.processes.waiting import await_condition

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


def of_airflow(home: Path, owner: int, started: float) -> subprocess.Popen[bytes]:
    fields = {"ONCEPROOF_HOME": str(home), OWNER: str(owner), OWNER_STARTED: str(started)}
    return subprocess.Popen(SLEEP, env={**os.environ, **fields}, start_new_session=True)


@pytest.fixture
def worker(home):
    """Of a supervisor that is gone: its process id is ours by now."""
    process = of_airflow(home, os.getpid(), read_start(os.getpid()) - 1000)
    yield process
    process.kill()
    process.wait()


NOBODY = 65534
PR_SET_DUMPABLE = 4


def as_nobody(does: Callable[[], object]) -> int:
    """A process without root's rights that does something, and whose exit code says whether that was true."""
    if child := os.fork():
        return child
    try:
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        os._exit(0 if does() else 1)
    finally:  # whatever happens, never a second pytest
        os._exit(2)


def is_true(check: Callable[[], bool]) -> bool:
    """What a check says where root's rights are not at hand."""
    code = os.waitstatus_to_exitcode(os.waitpid(as_nobody(check), 0)[1])
    assert code in (0, 1)
    return code == 0


@pytest.fixture
def open_home():
    """A home that anybody may read."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        (Path(folder) / "airflow").mkdir()
        yield Path(folder)


@pytest.fixture
def hidden(open_home):
    """A task of an Airflow, whose environment only root can read."""

    def hide() -> None:
        os.setsid()
        ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0)  # as Airflow's tasks do
        os.kill(os.getpid(), signal.SIGSTOP)  # it is ready, and does nothing

    process = psutil.Process(as_nobody(hide))
    await_condition("it to hide", lambda: process.status() == psutil.STATUS_STOPPED, timeout=30)
    note_session(open_home, process.pid)
    yield process
    with suppress(psutil.NoSuchProcess):
        process.kill()
        process.wait()


def noted(home: Path, change: Callable[[dict[str, Any]], None]) -> None:
    answer = read_json(sessions_file(home))
    change(answer)
    write_json(sessions_file(home), answer)
    sessions_file(home).chmod(0o644)


def reuse_owner(report: dict[str, Any]) -> None:
    """The id of the supervisor is ours by now."""
    report["owner"]["started"] -= 1000


def reuse_leader(report: dict[str, Any]) -> None:
    reuse_owner(report)
    report["sessions"][0]["started"] -= 1000


def start_anew(report: dict[str, Any]) -> None:
    reuse_owner(report)
    report["owner"]["boot"] = "another"


def test_a_task_with_hidden_environment_is_found_by_its_session(open_home, hidden):
    noted(open_home, reuse_owner)
    assert is_true(lambda: end_orphans(open_home) == [f"process {hidden.pid}"])
    assert hidden.wait(30) == -signal.SIGKILL


@pytest.mark.parametrize("change", [lambda _: None, reuse_leader, start_anew], ids=["owner", "leader", "machine"])
def test_a_session_of_somebody_who_lives_is_left_alone(open_home, hidden, change):
    noted(open_home, change)
    assert is_true(lambda: end_orphans(open_home) == [])
    assert hidden.status() == psutil.STATUS_STOPPED


def test_a_supervisor_notes_its_sessions_and_forgets_older_ones(own_settings):
    note_session(own_settings.home, os.getpid())
    with Supervisor(own_settings, scheduled=False) as supervisor:
        supervisor.prepare()
        supervisor._environment = dict(os.environ)
        supervisor._spawn("version", ("version",))
        [session] = read_json(sessions_file(own_settings.home))["sessions"]
        assert os.getsid(session["leader"]) == session["leader"] == supervisor._processes["version"].pid


def prepare(settings) -> None:
    with Supervisor(settings, scheduled=False) as supervisor:
        supervisor.prepare()


def sweep(_settings) -> None:
    assert CliRunner().invoke(cli.app, ["system", "sweep"]).output.startswith("removed process ")


@pytest.mark.parametrize("end", [prepare, down, sweep], ids=["the next start", "down", "sweep"])
def test_a_worker_whose_supervisor_is_gone_is_ended(own_settings, worker, end):
    end(own_settings)
    worker.wait(30)  # else it takes a minute


def test_nothing_else_is_ended(home, tmp_path_factory, monkeypatch, worker):
    living = of_airflow(home, os.getpid(), read_start(os.getpid()))
    elsewhere = of_airflow(tmp_path_factory.mktemp("elsewhere"), os.getpid(), 0.0)
    of_ours = subprocess.Popen(SLEEP, env={**os.environ, "ONCEPROOF_HOME": str(home)})
    others = [living, elsewhere, of_ours]
    try:
        assert end_orphans(home) == [f"process {worker.pid}"]
        assert [process.poll() for process in others] == [None] * 3
        monkeypatch.setattr(psutil.Process, "parents", lambda _: [psutil.Process(living.pid)])
        living_env = {"ONCEPROOF_HOME": str(home), OWNER: "1", OWNER_STARTED: "-1000"}
        monkeypatch.setattr(
            psutil.Process, "environ", lambda p: living_env if p.pid in (living.pid, os.getpid()) else {}
        )
        assert end_orphans(home) == []  # neither ourselves nor what has started us
    finally:
        for process in others:
            process.kill()
            process.wait()
