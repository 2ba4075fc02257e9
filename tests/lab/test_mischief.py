"""Applications that do what none should: one sentence each, and no process is left behind."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner

from onceproof import cli
from onceproof.lab import instance
from onceproof.model.errors import HarnessError
from tests.campaigns.test_application_run import app_run
from tests.homes import Tree

pytestmark = pytest.mark.broker
MAIN = "onceproof.streams.Main"


@pytest.fixture
def mischief(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """An application that does harm of a kind."""

    def make(kind: str) -> Path:
        folder = shutil.copytree(Path(__file__).with_name("mischief"), tmp_path / kind)
        file = folder / "onceproof.toml"
        file.write_text(file.read_text().replace('"exits"', f'"{kind}"'))
        return folder

    before = instances()
    yield make
    assert instances() <= before


def instances() -> set[int]:
    """The processes of our instances."""
    return {process.pid for process in Tree.of(psutil.Process()).running(MAIN)}


def test_one_that_ends_by_itself_is_told_with_the_end_of_its_log(mischief):
    done = CliRunner().invoke(cli.app, ["app", "run", str(mischief("exits")), "--streams", "4.3.1"])
    assert isinstance(done.exception, HarnessError)
    assert str(done.exception).startswith("instance-1 (Kafka Streams 4.3.1) ended (exit code 0); its log")


@pytest.mark.night
def test_one_that_does_not_end_when_asked_is_ended(mischief):
    code, [green] = app_run(mischief("stays"), "--streams", "4.3.1")
    assert (code, green["judgement"]) == (0, "green"), green["reason"]


@pytest.mark.night
def test_the_log_of_one_that_talks_without_end_is_bounded(mischief, monkeypatch):
    monkeypatch.setattr(instance, "LARGEST_FILE", 2**22)
    code, [green] = app_run(mischief("talks"), "--streams", "4.3.1")
    assert (code, green["judgement"]) == (0, "green"), green["reason"]
    logs = [log for folder in green["folders"] for log in Path(folder).rglob("*.log")]
    assert 2**21 < max(log.stat().st_size for log in logs) <= 2**22
