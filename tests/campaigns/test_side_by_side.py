"""Work that is done side by side: all of it, or none."""

import threading

import pytest

from onceproof.campaigns.application.side_by_side import side_by_side
from onceproof.model.errors import HarnessError

LONG = 600.0  # seconds that nobody waits


def test_each_returns_what_it_found_in_order():
    met = threading.Barrier(2)

    def meet(name):
        def work(_world):
            met.wait(timeout=60)  # each waits for the other one
            return name

        return work

    assert side_by_side([meet("a"), meet("b")]) == ["a", "b"]


def test_a_failure_of_one_ends_the_wait_of_the_other():
    ended = []

    def fail(_world):
        raise HarnessError("It failed.")

    def wait(world):
        try:
            world.sleep(LONG)
        finally:
            ended.append("waited")

    with pytest.raises(HarnessError, match="It failed"):
        side_by_side([wait, fail])
    assert ended == ["waited"]


def test_what_interrupts_this_thread_interrupts_all(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    ended = []

    def wait(world):
        try:
            world.sleep(LONG)
        finally:
            ended.append("waited")

    monkeypatch.setattr("onceproof.campaigns.application.side_by_side.wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        side_by_side([wait, wait])
    assert ended == ["waited"] * 2
