"""Spark ends with the task that started it."""

import signal
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from onceproof.processes.waiting import holds_within
from tests.homes import has_ended

OWNER = [sys.executable, "-c", "import time; time.sleep(60)"]
# What stands for the JVM starts the driver, as spark-submit does.
JVM = "import subprocess, sys; subprocess.run([sys.executable, '-c', *sys.argv[1:]])"
DRIVER = "import sys, time; from spark_jobs.owner import end_with; end_with(int(sys.argv[1])); print(flush=True); "


@pytest.fixture
def owner() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(OWNER)
    yield process
    process.kill()
    process.wait()


def started(owner: int, then: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", JVM, DRIVER + then, str(owner)], stdout=subprocess.PIPE)


def test_both_end_when_the_task_is_killed(owner: subprocess.Popen[bytes]) -> None:
    jvm = started(owner.pid, "time.sleep(60)")
    assert jvm.stdout is not None
    jvm.stdout.readline()
    [driver] = psutil.Process(jvm.pid).children()
    assert not holds_within(0.2, lambda: not driver.is_running())
    owner.kill()
    assert jvm.wait(timeout=30) == -signal.SIGKILL
    assert holds_within(30, lambda: has_ended(driver))


def test_one_that_is_started_too_late_ends_at_once(owner: subprocess.Popen[bytes]) -> None:
    owner.kill()
    owner.wait()
    assert started(owner.pid, "time.sleep(60)").wait(timeout=30) == -signal.SIGKILL


def test_it_ends_by_itself_if_the_task_lives(owner: subprocess.Popen[bytes]) -> None:
    assert started(owner.pid, "").wait(timeout=30) == 0
