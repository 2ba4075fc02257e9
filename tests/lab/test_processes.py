"""Nothing outlives its owner, whatever dies."""

import os
import signal
import subprocess
import sys

import psutil
import pytest

from onceproof.lab.processes import REAPER, await_condition, open_pipes, spawn, tail
from onceproof.model.errors import HarnessError

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


def gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def command_of(process) -> psutil.Process:
    reaper = psutil.Process(process.pid)
    await_condition("the command", reaper.children, timeout=5)
    return reaper.children()[0]


@pytest.fixture
def kept(tmp_path):
    process = spawn(SLEEP, log=tmp_path / "log")
    yield process
    process.kill()
    process.terminate(timeout=2)


def test_a_command_is_stopped_in_good_order(kept):
    command = command_of(kept)
    kept.terminate()
    assert kept.poll() == 128 + signal.SIGTERM
    assert gone(command)


def test_a_command_is_killed_as_by_a_crash(kept):
    command_of(kept)
    kept.kill()
    await_condition("the reaper to end", lambda: not kept.alive(), timeout=5)
    assert kept.poll() == 128 + signal.SIGKILL


WRITER = """
import pathlib, sys
for line in sys.stdin:
    try:
        pathlib.Path(line.strip()).write_text("x")
        print("written", flush=True)
    except OSError as error:
        print(error.strerror, flush=True)
"""


def test_a_command_is_refused_to_write_files_until_the_limit_is_lifted(tmp_path):
    process = spawn([sys.executable, "-c", WRITER], log=tmp_path / "log", piped=True)
    stdin, stdout = open_pipes(process)

    def write() -> str:
        stdin.write(f"{tmp_path / 'file'}\n")
        stdin.flush()
        return stdout.readline().strip()

    assert write() == "written"
    process.limit_files(0)
    assert write() == "File too large"
    process.limit_files(None)
    assert write() == "written"
    process.kill()
    process.terminate(timeout=2)
    process.limit_files(0)  # nobody is there


def test_a_command_dies_with_its_reaper(kept):
    command = command_of(kept)
    os.kill(kept.pid, signal.SIGKILL)
    await_condition("the command to die", lambda: gone(command), timeout=5)


def test_a_command_dies_with_its_owner(tmp_path):
    owner = subprocess.Popen(SLEEP)
    process = spawn(SLEEP, log=tmp_path / "log", owner=owner.pid)
    command = command_of(process)
    owner.kill()
    owner.wait()
    await_condition("the command to die", lambda: gone(command), timeout=5)


def test_an_owner_that_is_gone_already_keeps_nothing(tmp_path):
    owner = subprocess.Popen([sys.executable, "-c", ""])
    owner.wait()
    process = spawn(SLEEP, log=tmp_path / "log", owner=owner.pid)
    await_condition("the reaper to give up", lambda: process.poll() is not None, timeout=5)


def test_a_command_that_does_not_exist_says_so_in_its_log(tmp_path):
    process = spawn(["no-such-command"], log=tmp_path / "log")
    await_condition("its end", lambda: process.poll() is not None, timeout=5)
    assert process.poll() == 127
    assert tail(process.log) == "no-such-command could not be started: No such file or directory"


def test_a_log_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(HarnessError, match="could not be started"):
        spawn(SLEEP, log=tmp_path / "file" / "log")


def test_the_pipes_are_the_commands(tmp_path):
    process = spawn(["cat"], log=tmp_path / "log", piped=True)
    out, _ = process.popen.communicate("a line\n", timeout=5)
    assert out == "a line\n"


def test_the_reaper_needs_no_site_packages():
    assert (
        subprocess.run([sys.executable, "-I", "-S", str(REAPER), str(os.getpid()), "true"], check=False).returncode == 0
    )


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def test_a_wait_in_vain_tells_what_was_seen_last():
    clock = Clock()
    with pytest.raises(HarnessError, match=r"Waited 30 s for the moon, in vain\. It was half\."):
        await_condition(
            "the moon",
            lambda: False,
            timeout=30,
            last_seen=lambda: "It was half.",
            clock=clock,
            sleep=clock.sleep,
        )


def test_a_wait_ends_when_it_becomes_pointless():
    def died():
        raise HarnessError("it died")

    with pytest.raises(HarnessError, match="it died"):
        await_condition("life", lambda: False, timeout=30, check=died)
