"""The whole thing as a person runs it: red and green cells under a real Airflow, on real brokers, through Spark and GX.

It is interrupted when a trial has ended, and resumed.
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
from sqlalchemy import create_engine, select
from sqlalchemy.orm import Session

from onceproof.processes.waiting import await_condition
from onceproof.results.database import CellRow
from tests.homes import Home
from tests.present import present

pytestmark = [pytest.mark.system, pytest.mark.timeout(1800)]


@dataclass(frozen=True)
class Ran:
    """A run that has ended."""

    code: int
    result: dict[str, Any]
    said: str
    beside: subprocess.CompletedProcess[str]  # a second run, begun while it was under way
    interrupted: int  # its exit code then
    finished: list[dict[str, str]]  # digests of outcomes that say something: once it was interrupted, and in the end


@pytest.fixture(scope="module")
def ran(home, tmp_path_factory):
    """`onceproof run` of two scenarios on a fixed release; its positive controls come by themselves."""
    runs = Home(home, tmp_path_factory.mktemp("output"), {})
    environment = {**os.environ, "ONCEPROOF_HOME": str(home)}
    command = [sys.executable, "-m", "onceproof.cli", "run", "--variant", "DEFAULT_CONFIG"]
    command += ["--scenario", "enumerator", "--scenario", "at-least-once"]
    first = subprocess.Popen(
        [*command, "--streams", "4.3.1", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    said = present(first.stderr).readline()
    beside = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)
    await_condition("a trial to end", runs.finished, timeout=600, interval=0.2)
    first.send_signal(signal.SIGINT)
    said += "".join(first.communicate(timeout=120))
    finished = [runs.finished()]
    again = subprocess.run(
        [*command[:4], "--resume", "last", "--json"],
        capture_output=True,
        text=True,
        env=environment,
        timeout=1500,
        check=False,
    )
    said += again.stderr
    assert again.stdout, said
    finished.append(runs.finished())
    return Ran(again.returncode, json.loads(again.stdout), said, beside, first.returncode, finished)


def test_the_run_ends_as_the_registry_expects(ran):
    assert ran.code == ran.result["exit_code"] == 0, ran.said
    assert ran.result["failures"] == []


def test_an_interrupted_run_continues_without_repeating_work(ran):
    before, after = ran.finished
    assert ran.interrupted == 130
    assert 0 < len(before) < len(after)
    assert before.items() <= after.items()


def test_the_fixed_release_is_green_and_its_control_red(ran):
    verdicts = {(v["scenario"], v["streams"]): v for v in ran.result["verdicts"]}
    assert verdicts.keys() == {("enumerator", "4.3.1"), ("enumerator", "3.3.1"), ("at-least-once", "4.3.1")}
    green, red = verdicts["enumerator", "4.3.1"], verdicts["enumerator", "3.3.1"]
    assert (red["verdict"], red["issues"]) == ("known", ["KAFKA-14172"])
    assert red["anomalies"]["duplicate-id"] > 100
    assert (green["verdict"], green["counted"]) == ("provisional", 1)  # a first look
    assert green["missed"] <= 0.25
    assert green["excluded_rate"] == 0.95
    parted = verdicts["at-least-once", "4.3.1"]  # promises that are compared place by place go the same way
    assert parted["verdict"] == "known"
    assert parted["anomalies"].keys() == {"false-after-true", "changelog-output-mismatch"}


def test_the_data_docs_show_the_offending_ids(ran, home):
    docs = home / "runs" / ran.result["run"] / "data_docs"
    [failed] = [p for p in docs.rglob("*3.3.1*.html") if "validations/id_uniqueness" in str(p)]
    assert "duplicate-id" in failed.read_text()
    assert "unexpected values found" in failed.read_text()
    assert (docs / "index.html").exists()


def test_the_verdicts_are_in_the_results_database(ran, home):
    with Session(create_engine(f"sqlite:///{home}/results.db")) as session:
        stored = session.execute(select(CellRow.scenario, CellRow.streams, CellRow.verdict)).all()
    assert sorted(map(tuple, stored)) == [
        ("at-least-once", "4.3.1", "known"),
        ("enumerator", "3.3.1", "known"),
        ("enumerator", "4.3.1", "provisional"),
    ]


def test_a_second_run_while_one_is_under_way_is_refused(ran):
    assert ran.beside.returncode == 2
    assert ran.result["run"] in ran.beside.stderr


def test_nothing_is_left_running(ran, home):
    left = [
        p.info["cmdline"]
        for p in psutil.process_iter(["cmdline"])
        if any(str(home) in word for word in p.info["cmdline"] or []) and p.status() != psutil.STATUS_ZOMBIE
    ]
    assert left == []
