"""A sweep removes what bears our mark and belongs to nobody, and nothing else."""

import fcntl
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from onceproof.lab import trial
from onceproof.lab.sweep import Left, _list_named, find_kept, remove_folder, run_of, select_left, sweep
from onceproof.model.cell import MARK, refuse_prefix
from onceproof.model.errors import HarnessError
from onceproof.model.run_folder import TrialFolder
from onceproof.processes.locks import IN_USE, in_use, unless_in_use
from onceproof.processes.orphans import find_marked
from onceproof.processes.process import spawn
from onceproof.processes.waiting import await_condition
from tests.present import present

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture
def orphan(tmp_path):
    """A process that bears our mark and has no reaper."""
    process = subprocess.Popen([*SLEEP, f"-Donceproof.mark={tmp_path}/runs/r/clusters/3.9.1"])
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def kept_process(tmp_path):
    process = spawn([*SLEEP, f"-Donceproof.mark={tmp_path}/runs/r/clusters/4.3.1"], log=tmp_path / "log")
    yield process
    process.kill()
    process.terminate()


def test_an_ownerless_process_is_killed_and_its_data_deleted(tmp_path, orphan, kept_process):
    unused = tmp_path / "runs" / "r" / "clusters" / "3.9.1" / "data-1"
    in_use = tmp_path / "runs" / "r" / "clusters" / "4.3.1" / "data-1"
    state = tmp_path / "runs" / "r" / "trials" / "t" / "state"
    log = tmp_path / "runs" / "r" / "trials" / "t" / "instances" / "instance-1.log"
    bisected = tmp_path / "runs" / "b" / "cluster" / "data-1"
    planted = tmp_path / "runs" / "p" / "planted" / "clusters" / "3.9.1" / "data-1"
    for folder in (unused, in_use, state, bisected, planted, log.parent):
        folder.mkdir(parents=True)
    log.write_text("a log stays")
    young = tmp_path / "runs" / "r" / "trials" / "u" / "state"
    young.mkdir(parents=True)
    for folder in (unused, in_use, state, bisected, planted):
        os.utime(folder, (0, 0))
    runs = tmp_path / "runs"
    await_condition("both to be seen", lambda: len(list(find_marked(runs))) == 2, timeout=30)

    removed = list(sweep(runs))

    assert f"process {orphan.pid}" in removed
    assert orphan.wait(timeout=30) == -9
    assert kept_process.alive()
    assert not unused.exists()
    assert not state.exists()
    assert not bisected.exists()
    assert not planted.exists()
    assert in_use.exists()
    assert young.exists()  # its process may be about to start
    assert log.exists()


DRIVES = """
import sys
from pathlib import Path
from onceproof.processes.locks import in_use
with in_use(Path(sys.argv[1])):
    print("driven", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def driver(tmp_path):
    """Of a trial whose application is a command: none of its processes bears our mark."""
    trial = tmp_path / "runs" / "r" / "trials" / "app-t2"
    (trial / "state").mkdir(parents=True)
    os.utime(trial / "state", (0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVES, str(trial)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    said, asked = present(process.stdout), present(process.stdin)
    assert said.readline() == "driven\n"
    yield process
    process.kill()
    process.wait()
    asked.close()
    said.close()


def test_a_driven_trials_state_stays_while_its_driver_lives(tmp_path, driver):
    runs = tmp_path / "runs"
    state = runs / "r" / "trials" / "app-t2" / "state"
    assert list(sweep(runs)) == []
    assert state.exists()
    driver.kill()
    driver.wait()
    assert list(sweep(runs)) == [str(state)]
    assert not state.exists()


def test_a_trial_is_in_use_as_long_as_it_is_driven(tmp_path, monkeypatch):
    seen = []

    def look() -> None:
        with unless_in_use(tmp_path) as unused:
            seen.append(unused)

    def drives() -> None:
        look()
        raise HarnessError("seen enough")

    outcome = SimpleNamespace(write=lambda _: None)
    made = SimpleNamespace(
        drive=drives,
        stop=look,
        context=SimpleNamespace(void=None),
        outcome=lambda error: outcome,
    )
    monkeypatch.setattr(trial, "Driver", lambda *_: made)
    unused: Any = None  # by the driver above
    with pytest.raises(HarnessError, match="seen enough"):
        trial.drive(unused, unused, unused, TrialFolder(tmp_path))
    look()
    assert seen == [False, False, True]


@pytest.fixture
def interrupted(tmp_path):
    """The topics of a run that was cut off."""
    topics = tmp_path / "runs" / "r" / "clusters" / "3.9.1" / "data-1"
    topics.mkdir(parents=True)
    os.utime(topics, (0, 0))
    (tmp_path / "runs" / "r" / "run.json").write_text("{}")
    return topics


def test_the_topics_of_a_resumable_run_stay_unless_requested(tmp_path, interrupted):
    runs = tmp_path / "runs"
    assert list(sweep(runs)) == []
    assert [run.run_id for run in find_kept(runs)] == ["r"]
    assert list(sweep(runs, topics=True)) == [str(interrupted)]
    assert not interrupted.exists()
    assert find_kept(runs) == []


def test_nothing_is_told_of_a_run_at_work(tmp_path, interrupted, kept_process):
    await_condition("its broker to be seen", lambda: list(find_marked(tmp_path / "runs")), timeout=30)
    assert find_kept(tmp_path / "runs") == []


def test_who_begins_to_drive_waits_for_a_sweep_that_is_at_it(tmp_path):
    with unless_in_use(tmp_path) as unused:
        assert unused
        with (tmp_path / IN_USE).open() as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    with in_use(tmp_path), unless_in_use(tmp_path) as unused:
        assert not unused


def test_the_runs_of_another_home_are_not_touched(tmp_path, orphan):
    await_condition("the orphan to be seen", lambda: list(find_marked(tmp_path / "runs")), timeout=30)
    assert list(sweep(tmp_path / "elsewhere")) == []
    assert orphan.poll() is None


def marked_below(folder: Path) -> list[tuple[psutil.Process, Path]]:
    """The processes of ours that are marked below a folder."""
    return list(find_marked(folder))


NOW = datetime(2026, 1, 1, 3, tzinfo=UTC)
OLD, YOUNG = "20260101T000000-abcd1234", "20260101T023000-abcd1234"


@pytest.mark.parametrize(
    ("name", "run"),
    [
        (f"onceproof.{OLD}.enumerator-DEFAULT_CONFIG-s3.3.1-b3.9.1-t1-input", OLD),
        ("onceproof.20260101T000000-abcd.preflight", "20260101T000000-abcd"),  # of an earlier version
        ("onceproof.orders", None),
        (f"onceproof.team-a.{OLD}.x-t1-input", None),  # of a team with a prefix of its own
        ("onceproof-20260101T000000-abcd.x", None),
        ("team.onceproof.20260101T000000-abcd.x", None),
    ],
)
def test_a_name_on_brokers_says_whose_it_is(name, run):
    assert run_of(name, MARK) == run


def test_on_brokers_only_what_an_old_run_of_ours_left_is_swept():
    names = [f"onceproof.{OLD}.x", f"onceproof.{YOUNG}.x", "orders"]
    left = select_left(MARK, dict.fromkeys(names, False), names, names, NOW)
    assert left == Left((names[0],), (names[0],), (names[0],))
    assert list(left) == [f"group {names[0]}", f"topic {names[0]}", f"quota of {names[0]}"]
    assert not any(select_left(MARK, {}, ["orders"], [], NOW))


def test_a_run_is_spared_if_one_of_its_groups_has_a_member():
    trials = [f"onceproof.{OLD}.x-t{number}" for number in (1, 2)]
    topics = [f"{trial}-input" for trial in trials]
    clients = [f"{trial}-instance-1-StreamThread-1-producer" for trial in trials]
    for busy in (trials[0], f"onceproof.{OLD}.alive"):
        groups = dict.fromkeys(trials, False) | {busy: True}
        assert select_left(MARK, groups, topics, clients, NOW) == Left()
    assert select_left(MARK, dict.fromkeys(trials, False), topics, clients, NOW) == Left(
        *map(tuple, (trials, topics, clients))
    )


def test_each_team_sweeps_only_its_own_prefix():
    """Also where the prefix of one begins with that of another."""
    teams = [MARK, "onceproof.a", "onceproof.ab", "onceproof.a.b", "payments"]
    everything = [f"{team}.{OLD}.x" for team in teams]
    for team, own in zip(teams, everything, strict=True):
        assert refuse_prefix(team) is None
        assert select_left(team, dict.fromkeys(everything, False), everything, everything, NOW) == Left(
            (own,), (own,), (own,)
        )
        busy = {f"{other}.{OLD}.alive": True for other in teams if other != team}
        assert select_left(team, busy, everything, [], NOW) == Left((), (own,))


def test_only_what_was_shown_and_is_still_left_is_removed():
    shown, now = Left(("a", "b"), ("c",), ()), Left(("b",), ("c", "d"), ("e",))
    assert shown.of_both(now) == Left(("b",), ("c",), ())


def test_brokers_that_do_not_tell_all_groups_are_not_swept():
    listed = SimpleNamespace(errors=["a broker is away"], valid=[])
    admin: Any = SimpleNamespace(list_consumer_groups=lambda **_: SimpleNamespace(result=lambda _: listed))
    with pytest.raises(HarnessError, match="a broker is away"):
        _list_named(admin, lambda _: True)


def test_what_could_not_be_removed_is_not_called_removed(tmp_path):
    (tmp_path / "sealed").touch()  # no folder, so nothing of it can be
    assert remove_folder(tmp_path / "sealed").startswith(f"what could be of {tmp_path}/sealed")
    (tmp_path / "state").mkdir()
    assert remove_folder(tmp_path / "state") == str(tmp_path / "state")
