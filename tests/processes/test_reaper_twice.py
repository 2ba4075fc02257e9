"""The whole tree of a command ends with it, and with its owner; shown on real processes."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from onceproof.processes.process import below_reaper
from onceproof.processes.reaper import CANNOT_START
from onceproof.processes.waiting import await_condition
from tests.homes import has_ended

# A child that leaves its session and group and forgets its parent, as JVMs and brokers do.
RUNAWAY = "setsid sleep 4242 & echo $!; "


def start(owner: int, script: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        below_reaper(["sh", "-c", script], owner, twice=True),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def runaway_of(started: subprocess.Popen[str]) -> psutil.Process:
    assert started.stdout is not None
    process = psutil.Process(int(started.stdout.readline()))
    await_condition("setsid to become sleep", lambda: process.name() == "sleep", timeout=30)
    return process


@pytest.fixture
def owner() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["/bin/sleep", "4243"])
    yield process
    process.kill()
    process.wait()


def test_the_exit_code_is_the_commands_and_orphans_are_killed() -> None:
    started = start(os.getpid(), RUNAWAY + "sleep 0.3; exit 7")
    runaway = runaway_of(started)
    assert started.wait(30) == 7
    assert not runaway.is_running()


def test_a_killed_owner_takes_the_tree_along(owner: subprocess.Popen[bytes]) -> None:
    started = start(owner.pid, RUNAWAY + "exec sleep 4242")
    runaway = runaway_of(started)
    owner.kill()
    owner.wait()
    assert started.wait(30) == 128 + signal.SIGKILL
    assert not runaway.is_running()


def reapers_and_command(started: subprocess.Popen[str]) -> tuple[psutil.Process, psutil.Process, psutil.Process]:
    upper = psutil.Process(started.pid)
    (lower,) = upper.children()

    def commands() -> list[psutil.Process]:
        return [child for child in lower.children() if child.cmdline()[-1:] == ["4244"]]

    await_condition("sh to become sleep", commands, timeout=30)
    (command,) = commands()
    return upper, lower, command


def await_gone(*processes: psutil.Process) -> None:
    await_condition("all to be gone", lambda: all(map(has_ended, processes)), timeout=30)


@pytest.mark.parametrize("victim", [0, 1, 2], ids=["the upper reaper", "the lower reaper", "the command"])
def test_whoever_is_killed_takes_the_tree_along(victim: int) -> None:
    started = start(os.getpid(), RUNAWAY + "exec sleep 4244")
    runaway = runaway_of(started)
    chain = reapers_and_command(started)
    chain[victim].kill()
    assert started.wait(30) in (-signal.SIGKILL, 128 + signal.SIGKILL)
    await_gone(*chain, runaway)


@pytest.mark.parametrize("frozen", [0, 1], ids=["the upper reaper", "the lower reaper"])
def test_a_killed_owner_ends_the_tree_despite_a_frozen_reaper(owner: subprocess.Popen[bytes], frozen: int) -> None:
    started = start(owner.pid, RUNAWAY + "exec sleep 4244")
    runaway = runaway_of(started)
    chain = reapers_and_command(started)
    chain[frozen].suspend()
    owner.kill()
    owner.wait()
    await_gone(*chain[1:], runaway)
    chain[0].resume()
    assert started.wait(30) == 128 + signal.SIGKILL


def test_sigterm_is_passed_on() -> None:
    started = start(os.getpid(), "trap 'exit 3' TERM; echo ready; while :; do sleep 0.05; done")
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n"
    started.terminate()
    assert started.wait(30) == 3


def test_a_command_that_does_not_exist_says_so(tmp_path: Path) -> None:
    done = subprocess.run(
        below_reaper([str(tmp_path / "nothing")], os.getpid(), twice=True),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == CANNOT_START
    assert "nothing could not be started: No such file or directory" in done.stderr


def test_nothing_is_started_for_an_owner_that_is_gone(owner: subprocess.Popen[bytes], tmp_path: Path) -> None:
    owner.kill()
    owner.wait()
    started = start(owner.pid, f"touch {tmp_path / 'started'}")
    assert started.wait(30) == CANNOT_START
    assert not (tmp_path / "started").exists()
