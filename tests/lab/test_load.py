"""Pacing, without a broker."""

import threading
from types import SimpleNamespace

import pytest

from onceproof.lab import load
from onceproof.lab.load import Bulk
from onceproof.scenarios.base import Message
from tests.fakes.world import FakeCluster


class FakeProducer:
    def __init__(self, _config):
        self.waiting = []
        self.asked = []

    def list_topics(self, topic, _timeout):
        self.asked.append(topic)

    def produce(self, topic, *_, on_delivery, **__):
        self.knew = topic in self.asked
        self.waiting.append(on_delivery)

    def poll(self, _timeout):
        waiting, self.waiting = self.waiting, []
        for told in waiting:
            told(None, None)

    flush = poll


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass only when a test says so."""
    time = SimpleNamespace(now=0.0, monotonic=lambda: time.now)
    monkeypatch.setattr(load, "Producer", FakeProducer)
    monkeypatch.setattr(threading.Thread, "start", lambda _: None)
    return time


def bulk_of(clock, records, rate, messages=()):
    timeline = SimpleNamespace(add=lambda *_, **__: None)
    pairs = [(key, key) for key in range(records)]
    return Bulk(
        FakeCluster(), "topic", lambda _: 0, "second", pairs, rate, timeline, None, messages, monotonic=clock.monotonic
    )


@pytest.mark.parametrize("messages", [(), (Message("other", b"a", b"1", 0, None),)])
def test_the_partitions_of_a_topic_are_known_before_anything_is_produced(clock, messages):
    bulk = bulk_of(clock, 1, None, messages)
    bulk._run()
    assert bulk.done()
    assert bulk._producer.knew


def test_records_that_must_last_are_sent_more_slowly(clock, monkeypatch):
    bulk = bulk_of(clock, 1_000, 100.0)

    def report(_every):
        if bulk.delivered == min(due(), 1_000):
            raise InterruptedError

    monkeypatch.setattr(bulk, "_report", report)

    def after(seconds):
        clock.now += seconds
        with pytest.raises(InterruptedError):
            bulk._send()
        return bulk.delivered

    due = lambda: round(clock.now * 100)  # noqa: E731 - as it is paced now
    assert after(2) == 200
    bulk.make_last(8)  # 800 records at 100/s do
    assert after(2) == 400
    bulk.make_last(12)  # 600 at 50/s
    due = lambda: 400 + round((clock.now - 4) * 50)  # noqa: E731
    assert after(6) == 700
    bulk.full_speed()
    due = lambda: 1_000  # noqa: E731
    assert after(0) == 1_000
    assert bulk.done()
