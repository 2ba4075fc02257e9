"""A cardboard lab, to test the steps and the DAG without brokers and JVMs."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from onceproof import settings
from onceproof.lab import alive, artifacts, cluster, java, trial
from onceproof.model.errors import HarnessError
from onceproof.processes.process import Process, spawn
from tests.published import keep_list
from tests.specimens.files import a_plan, a_reading, an_outcome

BROKEN = HarnessError("The broker died.")


@dataclass
class FakeLab:
    """Records what the steps ask of the lab; `failing` maps a verb and a variant or release to an error."""

    done: list[tuple[str, Any]] = field(default_factory=list)
    failing: dict[tuple[str, str], Exception] = field(default_factory=dict)
    stopped: list[str] = field(default_factory=list)
    held: list[Process] = field(default_factory=list)  # processes that say on external brokers that a run is alive

    def verb(self, name: str) -> Any:
        def call(prepared: Any, *given: Any) -> Any:
            trial = prepared.trial
            _cluster, folder, *more = given[name != "provision" :]
            self.done.append((name, trial.key))
            if error := self.failing.get((name, trial.cell.variant)) or self.failing.get((name, trial.key)):
                raise error
            if name == "provision":
                plan = a_plan(trial)
                plan.write(folder.trial_file)
                return plan
            if name == "drive":
                more[0]("drain")  # its report
                self.end(trial, folder)
            return None

        return call

    def end(self, trial: Any, folder: Any, **anomalies: int) -> None:
        """Leave what a trial that ended well leaves."""
        a_reading(anomalies=anomalies).write(folder.reader_file)
        an_outcome(trial, reason="It came back.").write(folder.outcome_file)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Settings whose home is the test's own folder."""
    monkeypatch.setenv("ONCEPROOF_HOME", str(tmp_path))
    keep_list(tmp_path / "artifacts")
    settings.get_settings.cache_clear()
    yield tmp_path
    settings.get_settings.cache_clear()


@pytest.fixture
def lab(home: Path, monkeypatch: pytest.MonkeyPatch) -> FakeLab:
    fake = FakeLab()

    class FakeCluster:
        def __init__(self, release: str) -> None:
            self.release = release

        @classmethod
        def start(cls, _installation: Any, release: Any, folder: Path, owner: int) -> "FakeCluster":
            if error := fake.failing.get(("start", str(release))):
                raise error
            fake.done.append(("start", f"{release} for {owner}"))
            (folder / "data-1").mkdir(parents=True, exist_ok=True)
            return cls(str(release))

        def to_dict(self) -> dict[str, str]:
            return {"release": self.release, "bootstrap_servers": "127.0.0.1:1"}

        @classmethod
        def from_dict(cls, _installation: Any, data: dict[str, str], *_: object) -> "FakeCluster":
            return cls(data["release"])

        def stop(self, keep_data: bool = False) -> None:
            assert keep_data
            fake.stopped.append(self.release)

        @staticmethod
        def has_data(folder: Path) -> bool:
            return (folder / "data-1").exists()

        @staticmethod
        def delete_data(folder: Path) -> None:
            shutil.rmtree(folder / "data-1", ignore_errors=True)

    def check_published(_installation: Any, releases: Any) -> None:
        for release in releases:
            if error := fake.failing.get(("published", str(release))):
                raise error

    def hold(_client: Any, _run: str, *, folder: Path, owner: int) -> Process:
        fake.held.append(spawn(["sleep", "60"], log=folder / "alive.log", owner=owner))
        return fake.held[-1]

    # Not the name in its module: what is imported meanwhile for the first time would keep the fake for ever.
    for name in ("start", "from_dict", "has_data", "delete_data"):
        monkeypatch.setattr(cluster.EmbeddedCluster, name, staticmethod(getattr(FakeCluster, name)))
    for name in ("provision", "preload", "drive"):
        monkeypatch.setattr(trial, name, fake.verb(name))
    monkeypatch.setattr(alive, "hold", hold)
    monkeypatch.setattr(artifacts, "check_published", check_published)
    monkeypatch.setattr(java, "require_java", lambda *_: None)
    return fake
