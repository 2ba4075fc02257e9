"""Records of topics between offsets, without a broker."""

from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException

from onceproof.lab import raw
from onceproof.model.errors import HarnessError

PLACE = ("topic", 0)


def message(offset, error=None):
    return SimpleNamespace(
        topic=lambda: "topic", partition=lambda: 0, offset=lambda: offset, error=lambda: error and KafkaError(error)
    )


class FakeConsumer:
    def __init__(self, *batches):
        self.batches = list(batches)
        self.assigned = []

    def assign(self, places):
        self.assigned = [(place.topic, place.partition, place.offset) for place in places]

    def consume(self, _count, timeout):
        return self.batches.pop(0) if self.batches else []


def offsets(consumer, begin, end):
    return [one.offset() for one in raw.raw_records(consumer, {PLACE: (begin, end)})]


@pytest.mark.parametrize(
    ("batches", "read"),
    [
        ([[message(3), message(4)], [message(5), message(6)]], [3, 4]),  # others follow, and never end
        ([[message(3), message(6)]], [3]),  # a marker was the last
        ([[message(3)], [message(4, KafkaError._PARTITION_EOF)]], [3]),
    ],
)
def test_records_are_read_to_the_end_that_was_asked_for(batches, read):
    consumer = FakeConsumer(*batches)
    assert offsets(consumer, 3, 5) == read
    assert consumer.assigned == [("topic", 0, 3)]


def test_a_stretch_without_offsets_is_not_read():
    assert offsets(FakeConsumer(), 5, 5) == []


def test_what_may_not_be_read_and_what_never_comes_ends_it(monkeypatch):
    with pytest.raises(KafkaException):
        offsets(FakeConsumer([message(3, KafkaError.TOPIC_AUTHORIZATION_FAILED)]), 3, 5)
    monkeypatch.setattr(raw, "PATIENCE", -1)
    with pytest.raises(HarnessError, match="further records of topic; try again"):
        offsets(FakeConsumer(), 3, 5)
