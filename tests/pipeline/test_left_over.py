"""What a killed Airflow left is found by its environment and ended, and nothing else is."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner

from onceproof import cli
from onceproof.lab.processes import started_at
from onceproof.pipeline.environment import OWNER, OWNER_STARTED
from onceproof.pipeline.left_over import end_left_over
from onceproof.pipeline.services import down
from onceproof.pipeline.supervisor import Supervisor

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


def of_airflow(home: Path, owner: int, started: float) -> subprocess.Popen[bytes]:
    told = {"ONCEPROOF_HOME": str(home), OWNER: str(owner), OWNER_STARTED: str(started)}
    return subprocess.Popen(SLEEP, env={**os.environ, **told}, start_new_session=True)


@pytest.fixture
def worker(home):
    """Of a supervisor that is gone: its process id is ours by now."""
    process = of_airflow(home, os.getpid(), started_at(os.getpid()) - 1000)
    yield process
    process.kill()
    process.wait()


def prepare(settings) -> None:
    with Supervisor(settings, scheduled=False) as supervisor:
        supervisor.prepare()


def sweep(_settings) -> None:
    assert CliRunner().invoke(cli.app, ["sweep"]).output.startswith("removed process ")


@pytest.mark.parametrize("end", [prepare, down, sweep], ids=["the next start", "down", "sweep"])
def test_a_worker_whose_supervisor_is_gone_is_ended(own_settings, worker, end):
    end(own_settings)
    worker.wait(5)  # else it takes a minute


def test_nothing_else_is_ended(home, tmp_path_factory, monkeypatch, worker):
    living = of_airflow(home, os.getpid(), started_at(os.getpid()))
    elsewhere = of_airflow(tmp_path_factory.mktemp("elsewhere"), os.getpid(), 0.0)
    of_ours = subprocess.Popen(SLEEP, env={**os.environ, "ONCEPROOF_HOME": str(home)})
    others = [living, elsewhere, of_ours]
    try:
        assert end_left_over(home) == [f"process {worker.pid}"]
        assert [process.poll() for process in others] == [None] * 3
        monkeypatch.setattr(psutil.Process, "parents", lambda _: [psutil.Process(living.pid)])
        living_env = {"ONCEPROOF_HOME": str(home), OWNER: "1", OWNER_STARTED: "-1000"}
        monkeypatch.setattr(
            psutil.Process, "environ", lambda p: living_env if p.pid in (living.pid, os.getpid()) else {}
        )
        assert end_left_over(home) == []  # neither ourselves nor what has started us
    finally:
        for process in others:
            process.kill()
            process.wait()
