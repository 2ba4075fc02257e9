"""Nothing outlives its owner, whatever dies."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path

import psutil
import pytest

from onceproof.model.errors import HarnessError, StoodStillError
from onceproof.processes.cpu import CpuTime, check_not_starved, slowdown
from onceproof.processes.identity import boot_id
from onceproof.processes.process import REAPER, Process, open_pipes, spawn, tail
from onceproof.processes.waiting import await_condition
from tests.homes import has_ended
from tests.present import present

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


def command_of(process: Process) -> psutil.Process:
    reaper = psutil.Process(process.pid)
    await_condition("the command", reaper.children, timeout=30)
    return reaper.children()[0]


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Process]:
    process = spawn(SLEEP, log=tmp_path / "log")
    yield process
    process.kill()
    process.terminate(timeout=30)


def test_a_command_is_stopped_in_good_order(kept: Process) -> None:
    command = command_of(kept)
    kept.terminate()
    assert kept.poll() == 128 + signal.SIGTERM
    assert has_ended(command)


def test_a_command_is_killed_as_by_a_crash(kept: Process) -> None:
    command_of(kept)
    assert kept.boot == boot_id()
    kept.kill()
    await_condition("the reaper to end", lambda: not kept.alive(), timeout=30)
    assert kept.poll() == 128 + signal.SIGKILL


@pytest.mark.parametrize(
    ("ran", "waited", "starved"),
    [
        pytest.param(0.0, 0.0, False, id="it sleeps, or hangs"),
        pytest.param(60.0, 0.5, False, id="it spins alone"),
        pytest.param(20.0, 40.0, False, id="it spins beside two others"),
        pytest.param(2.0, 15.0, False, id="it hardly wanted a CPU"),
        pytest.param(2.0, 50.0, True, id="it hardly got a CPU"),
    ],
)
def test_a_thread_is_starved_if_it_hardly_got_what_it_asked_for(ran: float, waited: float, starved: bool) -> None:
    before = {"thread": CpuTime(100.0, 500.0)}
    after = {"thread": CpuTime(100.0 + ran, 500.0 + waited), "new": CpuTime(0.1, 0.2)}
    with pytest.raises(StoodStillError, match=f"waited {waited:.0f} s for one") if starved else nullcontext():
        check_not_starved(60.0, before, after)


def test_work_took_as_many_times_longer_as_a_thread_lacked_cpus() -> None:
    before, idle = {"thread": CpuTime(100.0, 500.0)}, CpuTime(0.1, 0.2)
    assert slowdown(before, {"thread": CpuTime(110.0, 515.0), "new": idle}) == 2.5
    assert slowdown(before, before) == slowdown({}, {}) == 1.0


SPINNER = [sys.executable, "-c", "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True: pass"]


def test_the_kernel_says_how_long_a_thread_waited_for_a_cpu(tmp_path: Path) -> None:
    cpu = str(min(os.sched_getaffinity(0)))
    spinners = [spawn([*SPINNER, cpu], log=tmp_path / f"log-{n}") for n in range(6)]  # each gets a sixth of a CPU
    try:
        longest = partial(max, key=lambda time: time.waited)
        await_condition(
            "a thread to wait",
            lambda: longest(spinners[0].cpu_times().values(), default=CpuTime()).waited > 1,
            timeout=60,
        )
        with pytest.raises(StoodStillError, match="too few CPUs"):
            check_not_starved(1.0, {}, spinners[0].cpu_times())
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.terminate(timeout=30)
    assert spinners[0].cpu_times() == {}


WRITER = """
import pathlib, sys
for line in sys.stdin:
    try:
        pathlib.Path(line.strip()).write_text("x")
        print("written", flush=True)
    except OSError as error:
        print(error.strerror, flush=True)
"""


def test_a_command_cannot_write_files_until_the_limit_is_lifted(tmp_path: Path) -> None:
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
    process.terminate(timeout=30)
    process.limit_files(0)  # nobody is there


def test_a_command_dies_with_its_reaper(kept: Process) -> None:
    command = command_of(kept)
    os.kill(kept.pid, signal.SIGKILL)
    await_condition("the command to die", lambda: has_ended(command), timeout=30)


def test_a_command_dies_with_its_owner(tmp_path: Path) -> None:
    owner = subprocess.Popen(SLEEP)
    process = spawn(SLEEP, log=tmp_path / "log", owner=owner.pid)
    command = command_of(process)
    owner.kill()
    owner.wait()
    await_condition("the command to die", lambda: has_ended(command), timeout=30)


WRAPPER = ["sh", "-c", "sleep 4245 & sleep 4245; echo unreached"]  # it does not exec, as npm and gradlew do not
Wrapped = tuple[Process, subprocess.Popen[bytes], list[psutil.Process]]
DAEMON = "setsid sleep 4245 & echo $!; exit 7"  # an orphan at once, in a session of its own


@pytest.fixture
def wrapped(tmp_path: Path) -> Iterator[Wrapped]:
    """A script that waits for what it started, its owner, and what it started."""
    owner = subprocess.Popen(SLEEP)
    process = spawn(WRAPPER, log=tmp_path / "log", owner=owner.pid)
    command = command_of(process)
    await_condition("both", lambda: len(command.children()) == 2, timeout=30)
    started = command.children()
    yield process, owner, started
    for one in started:
        with suppress(psutil.NoSuchProcess):
            one.kill()
    owner.kill()
    owner.wait()


def test_what_a_script_started_dies_with_its_owner(wrapped: Wrapped) -> None:
    process, owner, started = wrapped
    owner.kill()
    await_condition("what it started to die", lambda: all(map(has_ended, started)), timeout=30)
    await_condition("the reaper to end", lambda: not process.alive(), timeout=30)


@pytest.mark.parametrize("end", [Process.kill, Process.terminate])
def test_what_a_script_started_is_gone_when_its_end_is_known(
    wrapped: Wrapped, end: Callable[[Process], object]
) -> None:
    process, _, started = wrapped
    end(process)
    await_condition("the reaper to end", lambda: not process.alive(), timeout=30)
    assert all(map(has_ended, started))


def test_what_a_script_started_is_frozen_and_thawed_with_it(wrapped: Wrapped) -> None:
    process, _, started = wrapped
    process.freeze()
    await_condition("all to stop", lambda: {p.status() for p in started} == {psutil.STATUS_STOPPED}, timeout=30)
    process.thaw()
    await_condition("all to go on", lambda: {p.status() for p in started} == {psutil.STATUS_SLEEPING}, timeout=30)


def test_a_daemon_ends_with_the_command_whose_exit_code_stays(tmp_path: Path) -> None:
    process = spawn(["sh", "-c", DAEMON], log=tmp_path / "log")
    await_condition("its end", lambda: process.poll() is not None, timeout=30)
    assert process.poll() == 7
    assert not psutil.pid_exists(int(tail(process.log)))


def test_ended_orphans_are_reaped_while_the_command_runs(tmp_path: Path) -> None:
    process = spawn(["sh", "-c", "for i in 1 2 3; do (true &); done; exec sleep 4245"], log=tmp_path / "log")
    reaper = psutil.Process(process.pid)

    def is_alone() -> bool:
        return [p.name() for p in reaper.children()] == ["sleep"]

    await_condition("them to be reaped", is_alone, timeout=30)
    process.kill()
    process.terminate(timeout=30)
    assert process.poll() == 128 + signal.SIGKILL


def test_an_owner_that_is_gone_already_keeps_nothing(tmp_path: Path) -> None:
    owner = subprocess.Popen([sys.executable, "-c", ""])
    owner.wait()
    process = spawn(SLEEP, log=tmp_path / "log", owner=owner.pid)
    await_condition("the reaper to give up", lambda: process.poll() is not None, timeout=30)


def test_a_command_that_does_not_exist_says_so_in_its_log(tmp_path: Path) -> None:
    process = spawn(["no-such-command"], log=tmp_path / "log")
    await_condition("its end", lambda: process.poll() is not None, timeout=30)
    assert process.poll() == 127
    assert tail(process.log) == "no-such-command could not be started: No such file or directory"


def test_a_log_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HarnessError, match="could not be started"):
        spawn(SLEEP, log=tmp_path / "file" / "log")


def test_the_pipes_are_the_commands(tmp_path: Path) -> None:
    process = spawn(["cat"], log=tmp_path / "log", piped=True)
    out, _ = present(process.popen).communicate("a line\n", timeout=30)
    assert out == "a line\n"


def test_the_reaper_needs_no_site_packages() -> None:
    assert (
        subprocess.run([sys.executable, "-I", "-S", str(REAPER), str(os.getpid()), "true"], check=False).returncode == 0
    )


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_a_wait_in_vain_tells_what_was_seen_last() -> None:
    clock = Clock()
    with pytest.raises(HarnessError, match=r"Waited 30 s for the moon, without success\. It was half\."):
        await_condition(
            "the moon",
            lambda: False,
            timeout=30,
            last_seen=lambda: "It was half.",
            clock=clock,
            sleep=clock.sleep,
        )


def test_a_wait_ends_when_it_becomes_pointless() -> None:
    def died() -> None:
        raise HarnessError("it died")

    with pytest.raises(HarnessError, match="it died"):
        await_condition("life", lambda: False, timeout=30, check=died)


def test_a_byte_that_is_no_text_does_not_end_who_listens(tmp_path: Path) -> None:
    process = spawn(["printf", r"a\377b\nc\n"], log=tmp_path / "log", piped=True)
    _, stdout = open_pipes(process)
    assert stdout.read() == "a\N{REPLACEMENT CHARACTER}b\nc\n"
    process.terminate()
