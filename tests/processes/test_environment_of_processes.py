"""No credential of our environment reaches what we start, and user code sees only what it needs."""

import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from onceproof.lab import instance
from onceproof.lab.black_box import BlackBox
from onceproof.lab.instance import InstanceProcess
from onceproof.lab.programs import run_program
from onceproof.model.release import Release
from onceproof.model.timeline import Timeline
from onceproof.processes.environment import without_credentials
from onceproof.processes.process import Process, spawn
from onceproof.processes.waiting import await_condition
from tests.conftest import HERE
from tests.published import NEWEST

PLANTED = "planted-5ecret"
CREDENTIALS = {
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": PLANTED,
    "AIRFLOW_CONN_BROKERS": PLANTED,
    "ONCEPROOF_DATABASE_URL": PLANTED,
    "PGPASSWORD": PLANTED,
    "GITHUB_TOKEN": PLANTED,
    "AWS_SECRET_ACCESS_KEY": PLANTED,
    "HTTPS_PROXY": f"http://me:{PLANTED}@proxy:3128",
}
UNKNOWN = {"DEPLOY_KEY": PLANTED}  # a name that does not tell what it holds
NEEDED = {
    "PATH": "/bin",
    "LC_ALL": "C",
    "TZ": "UTC",
    "LD_PRELOAD": "",
    "FAKETIME_NO_CACHE": "1",
    "ONCEPROOF_OWNER_PID": "1",
}
SLEEP = [sys.executable, "-c", "import time; print('ready', flush=True); time.sleep(60)"]


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**CREDENTIALS, **UNKNOWN, "LC_TIME": "C"}.items():
        monkeypatch.setenv(name, value)


def environments(process: Process, log: Path) -> list[dict[str, str]]:
    """Those of the reaper and of its command, once that runs."""
    await_condition("the command", lambda: "ready" in log.read_text(), timeout=20)
    reaper = psutil.Process(process.pid)
    return [one.environ() for one in (reaper, *reaper.children())]


def test_credentials_are_known_by_name_and_by_value() -> None:
    assert without_credentials({**CREDENTIALS, **UNKNOWN, **NEEDED}) == UNKNOWN | NEEDED
    assert without_credentials({**CREDENTIALS, **UNKNOWN, **NEEDED}, user_code=True) == NEEDED


@pytest.mark.usefixtures("planted")
def test_what_we_start_sees_no_credentials(tmp_path: Path) -> None:
    process = spawn(SLEEP, log=tmp_path / "log", env={"SPARK_LOCAL_IP": "127.0.0.1"})
    try:
        seen = environments(process, tmp_path / "log")
    finally:
        process.terminate()
    assert len(seen) == 2
    for one in seen:
        assert not one.keys() & CREDENTIALS.keys()
        assert one["SPARK_LOCAL_IP"] == "127.0.0.1"
        assert one["DEPLOY_KEY"] == PLANTED


@pytest.mark.usefixtures("planted")
def test_an_application_sees_what_it_needs_and_nothing_else(tmp_path: Path) -> None:
    box = BlackBox("instance-1", Release(3, 9, 1).claimed, tmp_path / "log", Timeline(tmp_path / "t"), HERE)
    config = {"bootstrap.servers": "127.0.0.1:9", "application.id": "app", "state.dir": str(tmp_path / "state")}
    box.start("app", {"application": str(tmp_path), "command": SLEEP}, config)
    try:
        seen = environments(box.process, box.log)
    finally:
        box.kill()
    for one in seen:
        assert PLANTED not in str(one)
        assert one["LC_TIME"] == "C"
        assert one["ONCEPROOF_APPLICATION_ID"] == "app"


@pytest.mark.usefixtures("planted")
@pytest.mark.parametrize("start", ["instance", "program"])
def test_a_jvm_with_classes_of_people_s_own_does_not_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: str
) -> None:
    java = tmp_path / "java"
    java.write_text(f"#!/bin/sh\nexec {sys.executable} -c 'import os; print(dict(os.environ))' >&2\n")
    java.chmod(0o755)
    here, log = replace(HERE, java=str(java)), tmp_path / "log"
    if start == "instance":
        monkeypatch.setattr(instance, "application_class_path", lambda *_: [tmp_path])
        one = InstanceProcess("instance-1", NEWEST, log, Timeline(tmp_path / "t"), here)
        one.start("app", {"application": str(tmp_path)}, {"state.dir": str(tmp_path / "state")})
        await_condition("its end", lambda: not one.process.alive(), timeout=20)
    else:
        run_program(here, NEWEST, ("onceproof.streams.Describe",), log, "an end", beside=[tmp_path])
    assert "ONCEPROOF" in log.read_text() or "PATH" in log.read_text()
    assert PLANTED not in log.read_text()
