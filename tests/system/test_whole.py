"""The whole thing as a person runs it: red and green cells under a real Airflow, on real brokers, through Spark and GX."""

import json
import os
import subprocess
import sys

import psutil
import pytest
from sqlalchemy import create_engine, select
from sqlalchemy.orm import Session

from onceproof.results.database import CellRow
from onceproof.settings import get_settings

pytestmark = [pytest.mark.system, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home of its own that shares what `make setup` resolved."""
    home = tmp_path_factory.mktemp("home")
    (home / "artifacts").symlink_to(get_settings().artifacts)
    return home


@pytest.fixture(scope="module")
def ran(home):
    """`onceproof run` of two scenarios on two releases, and a second one begun while it was under way."""
    environment = {**os.environ, "ONCEPROOF_HOME": str(home)}
    command = [sys.executable, "-m", "onceproof.cli", "run", "--variant", "DEFAULT_CONFIG"]
    command += ["--scenario", "enumerator", "--scenario", "at-least-once"]
    first = subprocess.Popen(
        [*command, "--streams", "3.3.1", "--streams", "3.4.1", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    begun = first.stderr.readline()
    second = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)
    out, err = first.communicate(timeout=800)
    assert out, err
    return first.returncode, json.loads(out), begun + err, second


def test_the_run_ends_as_the_registry_expects(ran):
    code, result, said, _ = ran
    assert code == result["exit_code"] == 0, said
    assert result["failures"] == []


def test_the_affected_release_is_red_and_the_fixed_one_green(ran):
    red, green, *documented = ran[1]["verdicts"]
    assert (red["streams"], red["verdict"], red["issues"]) == ("3.3.1", "known", ["KAFKA-14172"])
    assert red["anomalies"]["duplicate-id"] > 100
    assert (green["streams"], green["verdict"], green["counted"]) == ("3.4.1", "clean", 1)
    for parted in documented:  # promises that are compared place by place take the same way
        assert (parted["scenario"], parted["verdict"]) == ("at-least-once", "known")
        assert parted["anomalies"].keys() == {"false-after-true", "changelog-output-mismatch"}


def test_the_data_docs_show_the_offending_ids(ran, home):
    docs = home / "runs" / ran[1]["run"] / "data_docs"
    [failed] = [p for p in docs.rglob("*3.3.1*.html") if "validations/id_uniqueness" in str(p)]
    assert "duplicate-id" in failed.read_text()
    assert "unexpected values found" in failed.read_text()
    assert (docs / "index.html").exists()


def test_the_verdicts_are_in_the_results_database(ran, home):
    with Session(create_engine(f"sqlite:///{home}/results.db")) as session:
        stored = session.execute(select(CellRow.scenario, CellRow.streams, CellRow.verdict)).all()
    assert sorted(map(tuple, stored)) == [
        ("at-least-once", "3.3.1", "known"),
        ("at-least-once", "3.4.1", "known"),
        ("enumerator", "3.3.1", "known"),
        ("enumerator", "3.4.1", "clean"),
    ]


def test_a_second_run_while_one_is_under_way_is_refused(ran):
    _, result, _, second = ran
    assert second.returncode == 2
    assert result["run"] in second.stderr


def test_nothing_is_left_running(ran, home):
    left = [
        p.info["cmdline"]
        for p in psutil.process_iter(["cmdline"])
        if any(str(home) in word for word in p.info["cmdline"] or []) and p.status() != psutil.STATUS_ZOMBIE
    ]
    assert left == []
