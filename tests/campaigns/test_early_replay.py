"""What is replayed before a run has ended stands for its input only if that is the same."""

from typing import Any

import pytest

from onceproof.campaigns.application.early_replay import EarlyReplay, Replayed
from onceproof.lab.world import REAL
from onceproof.model.oracle import Outputs
from onceproof.model.release import Release
from onceproof.model.run_folder import TrialFolder
from tests.conftest import a_trial
from tests.published import NEWEST

OUTPUTS = Outputs({"out": ((0, None, None),)})


@pytest.fixture
def folders(tmp_path):
    """The folders of a run, and of what was replayed."""
    for name in ("run", "own"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "replay.jsonl").write_text("[1]\n")
    return TrialFolder(tmp_path / "run"), TrialFolder(tmp_path / "own")


def test_a_replay_holds_for_its_input_and_its_releases_only(folders):
    run, own = folders
    reports = Replayed(own, {NEWEST: OUTPUTS})
    assert reports.of(NEWEST, run) is OUTPUTS
    assert reports.of(Release(3, 9, 1), run) is None
    run.replay_file.write_text("[2]\n")
    assert reports.of(NEWEST, run) is None


def early_replay(folders: tuple[TrialFolder, TrialFolder]) -> EarlyReplay:
    """Nobody asks it for its jars or its brokers."""
    unused: Any = None
    return EarlyReplay(unused, a_trial("4.4.0"), unused, folders)


def test_a_run_that_ends_before_its_input_is_not_replayed(folders):
    early = early_replay(folders)
    early.run_is_over()
    assert early.replay({NEWEST}, REAL).outputs == {}


def test_it_begins_when_the_last_records_are_on_their_way(folders, monkeypatch):
    early = early_replay(folders)
    looked: list[bool] = []
    reports: list[str] = []

    def look() -> None:
        looked.append(True)
        early.run_is_over()

    monkeypatch.setattr(early, "_input", look)
    hear = early.watch_report(reports.append)
    for phase in ("first", "restart", "flow"):
        hear(phase)
    assert not early._flows.is_set()
    hear("drain")
    assert early.replay({NEWEST}, REAL).outputs == {}
    assert (looked, reports) == ([True], ["first", "restart", "flow", "drain"])
