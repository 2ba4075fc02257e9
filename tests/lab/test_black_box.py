"""Black boxes as processes: what they read from their environment, and how they end."""

import sys
import time

import pytest

from onceproof.lab.black_box import BlackBox
from onceproof.model.errors import HarnessError, KafkaFailedError
from onceproof.model.release import Release
from onceproof.model.timeline import Timeline
from tests.conftest import HERE

CONFIG = {"bootstrap.servers": "127.0.0.1:9", "application.id": "app", "sasl.jaas.config": "secret"}
TELLS = """
import os, time
names = ("BOOTSTRAP_SERVERS", "APPLICATION_ID", "STATE_DIR")
print([os.environ[f"ONCEPROOF_{name}"] for name in names], os.getcwd(), "secret" in str(os.environ), flush=True)
time.sleep(60)
"""
DEAF = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(60)
"""
SORRY = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
print("ready", flush=True)
time.sleep(60)
"""


@pytest.fixture
def started(tmp_path):
    """Starts one that runs a program in Python."""
    boxes = []

    def start(program):
        box = BlackBox("instance-1", Release(3, 9, 1).claimed, tmp_path / "box.log", Timeline(tmp_path / "t"), HERE)
        boxes.append(box)
        app = {"application": str(tmp_path), "command": [sys.executable, "-c", program]}
        box.start("app", app, {**CONFIG, "state.dir": str(tmp_path / "state")})
        return box

    yield start
    for box in boxes:
        box.kill()


def watch(box):
    while True:
        box.await_hello()
        box.check_alive()


def await_line(box):
    deadline = time.monotonic() + 30
    while not box.log.read_text() and time.monotonic() < deadline:
        time.sleep(0.02)
    return box.log.read_text().strip()


def test_a_black_box_gets_its_environment_and_ends_on_request(started, tmp_path):
    box = started(TELLS)
    assert box.await_hello() == {"release": "3.9.1-claimed", "plant": None}
    assert box.state == "RUNNING"
    assert await_line(box) == f"['127.0.0.1:9', 'app', '{tmp_path}/state'] {tmp_path} False"
    assert (tmp_path / "state").is_dir()
    box.close()
    box.await_closed()
    assert box.state == "NOT_STARTED"


def test_a_black_box_that_ends_at_once_is_an_error(started):
    box = started("raise SystemExit('no such topic')")
    with pytest.raises(HarnessError, match=r"(?s)instance-1 ended \(exit code 1\).*no such topic"):
        watch(box)


def test_one_that_ignores_sigterm_did_not_close(started):
    box = started(DEAF)
    box.await_hello()
    await_line(box)
    box.close()
    with pytest.raises(KafkaFailedError) as failed:
        box.await_closed(timeout=0.2)
    assert failed.value.anomaly == "unclean-close"
    assert "SIGTERM" in failed.value.expected


def test_a_non_zero_exit_code_is_no_clean_close(started):
    box = started(SORRY)
    box.await_hello()
    await_line(box)
    box.close()
    with pytest.raises(KafkaFailedError, match="exit code 3"):
        box.await_closed()
