"""A whole run on somebody else's brokers: verdicts as on our own, no credential anywhere, and nothing left behind."""

import json
import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
from sqlalchemy import create_engine, select
from sqlalchemy.orm import Session

from onceproof.results.database import CellRow
from tests.specimens.secured import PASSWORD, USER, Secured, secured_broker, seen_in_ps, written_to

pytestmark = [pytest.mark.system, pytest.mark.night, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    """The broker, whose user may do what a trial does."""
    with secured_broker(tmp_path_factory.mktemp("secured")) as started:
        started.allow(USER)
        yield started


def run(broker: Secured, properties: str, home: Path) -> subprocess.Popen[str]:
    """`onceproof run` of an affected and a fixed release, once each, or more often where a verdict needs it."""
    file = broker.folder / "client.properties"
    file.write_text(properties)
    command = [sys.executable, "-m", "onceproof.cli", "run", "--brokers", str(file), "--json", "--risk", "0.5"]
    asked = ["--scenario", "enumerator", "--variant", "DEFAULT_CONFIG"]
    environment = {**os.environ, "ONCEPROOF_HOME": str(home)}
    return subprocess.Popen(
        [*command, *asked, "--streams", "3.3.1", "--streams", "3.4.1"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_an_external_run_has_controls_there_and_hides_passwords(broker, home):
    process = run(broker, broker.scram_properties(), home)
    with seen_in_ps(PASSWORD) as in_ps:
        out, err = process.communicate(timeout=1500)
    assert process.returncode == 0, out + err
    verdicts = {verdict["streams"]: verdict for verdict in json.loads(out)["verdicts"]}
    assert {streams: verdict["verdict"] for streams, verdict in verdicts.items()} == {
        "3.3.1": "known",
        "3.4.1": "provisional",
    }
    for verdict in verdicts.values():
        assert verdict["broker"] == "3.9.1-claimed"
        assert set(verdict["not_looked_at"]) == {"atomicity", "isolation", "fencing", "internal-topics"}
    assert "3.3.1" in verdicts["3.4.1"]["arithmetic"]
    with Session(create_engine(f"sqlite:///{home}/results.db")) as session:
        assert set(session.scalars(select(CellRow.broker))) == {"3.9.1-claimed"}
    assert PASSWORD not in out + err
    assert not in_ps
    written = list(written_to(home, PASSWORD))
    assert written == []
    broker.await_left()
    shown = outputs_of(home)
    assert "3.9.1-claimed" in shown["page.html"].decode()
    assert [name for name, content in shown.items() if PASSWORD.encode() in content] == []


def outputs_of(home: Path) -> dict[str, bytes]:
    """What leaves the machine about the red cell: its evidence, file by file, and the page."""
    environment = {**os.environ, "ONCEPROOF_HOME": str(home)}
    archive, page = home / "evidence.zip", home / "page.html"
    for command in (
        ["results", "evidence", "last", "3.3.1", "--output", str(archive)],
        ["results", "report", "--html", str(page)],
    ):
        subprocess.run([sys.executable, "-m", "onceproof.cli", *command], env=environment, check=True, timeout=60)
    with ZipFile(archive) as zipped:
        return {name: zipped.read(name) for name in zipped.namelist()} | {page.name: page.read_bytes()}


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        (lambda broker: broker.scram_properties("wrong"), "check sasl.jaas.config"),
        (lambda broker: broker.scram_properties(servers="127.0.0.1:1"), "cannot be reached"),
    ],
    ids=["a wrong password", "an unreachable host"],
)
def test_unreachable_brokers_end_a_run_before_anything_starts(broker, tmp_path, properties, expected):
    process = run(broker, properties(broker), tmp_path)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 2, out + err
    assert expected in json.loads(out)["error"]
    assert not (tmp_path / "airflow").exists()
    assert not (tmp_path / "runs").exists()
