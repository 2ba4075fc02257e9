"""The independent reader goes on where a consumer of it fell silent."""

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from onceproof.lab import reader
from onceproof.lab.load import encode_integer
from onceproof.lab.reader import Reader, TopicSource
from onceproof.model.errors import HarnessError
from onceproof.processes.waiting import await_condition
from tests.conftest import a_run_id

pytestmark = pytest.mark.broker


@pytest.fixture
def topic(cluster):
    """A topic of two partitions."""
    admin, name = AdminClient(cluster.client()), f"onceproof.{a_run_id()}.reader"
    admin.create_topics([NewTopic(name, 2)])[name].result(30)
    yield name
    admin.delete_topics([name])[name].result(30)


class Silenced(Reader):
    """A reader whose first consumer brings nothing any more as soon as it is told to be silent."""

    silent = False

    def _replace_silent(self):
        if self.silent:
            self.silent = False
            self._consumer.unassign()
        super()._replace_silent()


def send(cluster, topic, values):
    producer = Producer(cluster.client())
    for value in values:
        producer.produce(topic, encode_integer(value), encode_integer(value), partition=value % 2)
    assert producer.flush(30) == 0


def test_a_silent_consumer_is_replaced_without_reading_twice(cluster, topic, monkeypatch):
    monkeypatch.setattr(reader, "SILENT_FOR", 1.0)
    one = Silenced(cluster, topic, [TopicSource(topic, "input", 4, 2)])
    send(cluster, topic, range(10))
    await_condition("the first records", lambda: sum(one._ends.values()) == 10, timeout=30)
    silent, one.silent = one._consumer, True
    await_condition("the consumer to be silent", lambda: not one.silent, timeout=30)
    send(cluster, topic, range(10, 20))
    records, corrupt = one.finish({(topic, 0): 10, (topic, 1): 10})
    assert one._consumer is not silent
    assert [[r.value for r in records["input"] if r.partition == p] for p in (0, 1)] == [
        list(range(0, 20, 2)),
        list(range(1, 20, 2)),
    ]
    assert corrupt == []


def test_ends_that_are_not_reached_are_an_error(cluster, topic, monkeypatch):
    monkeypatch.setattr(reader, "FINISH_TIMEOUT", 2.0)
    with pytest.raises(HarnessError, match=r"^Waited 2 s for the ends"):
        Reader(cluster, topic, [TopicSource(topic, "input", 4, 2)]).finish({(topic, 0): 1})
