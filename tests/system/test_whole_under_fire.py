"""A whole run under fire, with the blows of `benchmarks/chaos.py`: it is interrupted, then its scheduler is killed, and
both times it is resumed. And one of so many trials that its tables are made in parts.
"""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import psutil
import pytest

from onceproof.model.errors import ExitCode
from onceproof.processes.waiting import await_condition
from tests.homes import Home, Tree, left_after
from tests.present import present

pytestmark = [pytest.mark.system, pytest.mark.night, pytest.mark.timeout(1800)]


@dataclass(frozen=True)
class Ran:
    """A run that was interrupted and resumed, beheaded and resumed."""

    code: int
    result: dict[str, Any]
    said: str
    interrupted: subprocess.CompletedProcess[str]
    beheaded: subprocess.CompletedProcess[str]
    left: list[str]  # processes, 10 s after it was beheaded
    finished: list[dict[str, str]]  # digests of outcomes that say something: once it was interrupted, and in the end


@pytest.fixture(scope="module")
def ran(home, tmp_path_factory):
    """`onceproof run` of two scenarios on a fixed release; its positive controls come by themselves."""
    runs = Home(home, tmp_path_factory.mktemp("output"), {})
    environment = {**os.environ, "ONCEPROOF_HOME": str(home)}
    command = [sys.executable, "-m", "onceproof.cli", "run"]
    asked = ["--variant", "DEFAULT_CONFIG", "--scenario", "enumerator", "--scenario", "at-least-once"]
    first = subprocess.Popen(
        [*command, *asked, "--streams", "4.3.1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    said = present(first.stderr).readline()
    # Asked of the files, as what is said comes a little later, and trials are short: the control is still to be driven.
    await_condition("a trial to end", runs.finished, timeout=300, interval=0.2)
    first.send_signal(signal.SIGINT)
    out, err = first.communicate(timeout=120)
    interrupted = subprocess.CompletedProcess(command, first.returncode, out, said + err)
    finished = [runs.finished()]
    beheaded, left = behead(runs)
    again = subprocess.run(
        [*command, "--resume", "last", "--json"],
        capture_output=True,
        text=True,
        env=environment,
        timeout=1500,
        check=False,
    )
    assert again.stdout, again.stderr
    finished.append(runs.finished())
    return Ran(again.returncode, json.loads(again.stdout), again.stderr, interrupted, beheaded, left, finished)


def behead(home):
    """Resume the last run, and kill Airflow's scheduler while it drives a trial; what is left of it 10 s later."""
    resumed = home.start("--resume", "last")

    def tree():
        assert resumed.poll() is None, (home.output / "stderr").read_text()
        return Tree.of(psutil.Process(resumed.pid))

    try:
        await_condition("a trial to be driven", lambda: tree().drivers(), timeout=600, interval=0.2)
        (scheduler,) = tree().component("scheduler")
        scheduler.kill()
        code = resumed.wait(300)
    finally:
        left = left_after(home)  # and ended
    written = [(home.output / name).read_text() for name in ("stdout", "stderr")]
    return subprocess.CompletedProcess(["run", "--resume", "last"], code, *written), left


def test_the_run_ends_as_the_registry_expects(ran):
    assert ran.code == ran.result["exit_code"] == 0, ran.said
    assert ran.result["failures"] == []
    verdicts = {(one["scenario"], one["streams"]): one["verdict"] for one in ran.result["verdicts"]}
    assert verdicts == {
        ("enumerator", "4.3.1"): "clean",
        ("enumerator", "3.3.1"): "known",
        ("at-least-once", "4.3.1"): "known",
    }


def test_an_interrupted_run_continues_without_repeating_work(ran):
    assert ran.interrupted.returncode == 130
    assert "everything that was started has been stopped" in ran.interrupted.stderr
    before, after = ran.finished
    assert 0 < len(before) < len(after)
    assert before.items() <= after.items()
    assert ran.result["run"] in ran.interrupted.stderr


def test_a_killed_scheduler_is_reported_and_leaves_nothing(ran):
    assert ran.beheaded.returncode == ExitCode.ERROR
    assert "scheduler ended (exit code 137)" in ran.beheaded.stdout + ran.beheaded.stderr
    assert ran.left == []


def test_a_run_with_tables_made_in_parts_is_judged_as_any_other(ran, home, tmp_path):
    runs = Home(home, tmp_path, {})
    asked = ["--scenario", "at-least-once", "--streams", "4.3.1", "--trials", "8"]  # enough are left when some end
    code = runs.start(*asked, "--variant", "DEFAULT_CONFIG", "--variant", "EXACTLY_ONCE").wait(600)
    output = runs.said()
    assert code == output["exit_code"] == 0, (tmp_path / "stderr").read_text()
    verdicts = {one["variant"]: (one["verdict"], one["red"], one["counted"]) for one in output["verdicts"]}
    assert verdicts == {"DEFAULT_CONFIG": ("known", 8, 8), "EXACTLY_ONCE": ("clean", 0, 8)}
    files = (home / "runs" / output["run"] / "tables" / "counts").iterdir()
    assert len({file.name.partition("-")[0] for file in files}) > 1


def test_nothing_is_left_running(ran, home):
    left = [
        p.info["cmdline"]
        for p in psutil.process_iter(["cmdline"])
        if any(str(home) in word for word in p.info["cmdline"] or []) and p.status() != psutil.STATUS_ZOMBIE
    ]
    assert left == []
