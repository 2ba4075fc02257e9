"""Pacing, without a broker."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from onceproof.lab import load
from onceproof.lab.load import LabBulk
from onceproof.scenarios.base import Message, Workload
from tests.fakes.world import FakeCluster

PARTITIONS = 2  # of topics whose records have no partition of their own


class FakeProducer:
    def __init__(self, _config=None):
        self.waiting = []
        self.known = set()  # topics and partitions of which a record was delivered
        self.unknown = []  # of which others were produced before that
        self.headers = []

    def produce(self, topic, *_, on_delivery, key=None, partition=None, headers=(), **__):
        self.headers.append(headers)
        place = topic, sum(key) % PARTITIONS if partition is None else partition
        if place not in self.known and place in [other for other, _ in self.waiting]:
            self.unknown.append(place)
        self.waiting.append((place, on_delivery))

    def poll(self, _timeout):
        waiting, self.waiting = self.waiting, []
        for place, callback in waiting:
            self.known.add(place)
            topic, partition = place
            callback(None, SimpleNamespace(topic=lambda topic=topic: topic, partition=lambda number=partition: number))

    flush = poll

    def list_topics(self, topic, timeout):
        assert timeout
        return SimpleNamespace(topics={topic: SimpleNamespace(partitions=dict.fromkeys(range(PARTITIONS)))})


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass only when a test says so."""
    time = SimpleNamespace(now=0.0)
    time.monotonic = lambda: time.now
    monkeypatch.setattr(load, "Producer", FakeProducer)
    monkeypatch.setattr(threading.Thread, "start", lambda _: None)
    return time


def bulk_of(clock, records, rate, messages=(), partitions=1, *, labelled=False):
    timeline: Any = SimpleNamespace(add=lambda *_, **__: None)
    cluster: Any = FakeCluster()
    pairs = [(key, key) for key in range(records)]
    return LabBulk(
        cluster,
        "topic",
        lambda key: key // 2 % partitions,
        "second",
        pairs,
        rate,
        timeline,
        None,
        Workload([], [], messages, labelled=labelled),
        monotonic=clock.monotonic,
    )


@pytest.mark.parametrize("topics", [(), ("one", "other", "one", "other")])
def test_one_record_of_each_topic_is_delivered_first(clock, topics):
    bulk = bulk_of(clock, 4, None, [Message(topic, b"a", b"1", 0, None) for topic in topics])
    producer = FakeProducer()
    bulk._run(producer)
    assert bulk.is_done()
    assert producer.unknown == []


@pytest.mark.parametrize("keys", [(b"a", b"b", b"d", b"a"), (b"a", b"c", b"e", b"b", b"a", b"d")])
def test_so_is_one_of_each_partition_that_follows_from_the_keys(clock, keys):
    bulk = bulk_of(clock, len(keys), None, [Message("topic", key, b"1", 0, None) for key in keys])
    producer = FakeProducer()
    bulk._run(producer)
    assert bulk.is_done()
    assert producer.unknown == []
    assert producer.known == {("topic", 0), ("topic", 1)}


@pytest.mark.parametrize(
    ("labelled", "headers"), [(True, [[("place", b"second 0")], [("place", b"second 1")]]), (False, [[], []])]
)
def test_a_labelled_record_has_a_header_that_no_other_has(clock, labelled, headers):
    bulk = bulk_of(clock, 2, None, labelled=labelled)
    producer = FakeProducer()
    bulk._run(producer)
    assert producer.headers == headers


def test_one_record_of_each_partition_is_delivered_first(clock):
    bulk = bulk_of(clock, 12, None, partitions=3)
    producer = FakeProducer()
    bulk._run(producer)
    assert bulk.is_done()
    assert producer.unknown == []
    assert producer.known == {("topic", 0), ("topic", 1), ("topic", 2)}


def test_records_that_must_last_are_sent_more_slowly(clock, monkeypatch):
    bulk = bulk_of(clock, 1_000, 100.0)

    def report(_every):
        if bulk.delivered == min(due(), 1_000):
            raise InterruptedError

    monkeypatch.setattr(bulk, "_report", report)

    def after(seconds):
        clock.now += seconds
        with pytest.raises(InterruptedError):
            bulk._send(FakeProducer())
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
    assert bulk.is_done()
