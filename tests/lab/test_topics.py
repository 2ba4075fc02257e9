"""Topics: offsets are asked for again if a leader has moved, topics if a broker was given up, and what is processed."""

import struct
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from onceproof.lab import topics
from onceproof.model.errors import HarnessError
from onceproof.processes.waiting import await_condition
from tests.specimens.brokers import external_cluster


class FakeAdmin:
    """Answers with errors, one per client, and then with an end offset."""

    codes: list[int]
    created: list[str]

    def __init__(self, _config):
        pass

    def list_offsets(self, asked, **_):
        answer = Future[Any]()
        if FakeAdmin.codes:
            answer.set_exception(KafkaException(KafkaError(FakeAdmin.codes.pop(0))))
        else:
            answer.set_result(SimpleNamespace(offset=7))
        return dict.fromkeys(asked, answer)

    def list_topics(self, **_):
        return SimpleNamespace(topics=dict.fromkeys(FakeAdmin.created, SimpleNamespace(partitions={0: None})))

    def create_topics(self, topics):
        answer = Future[Any]()
        if FakeAdmin.codes:
            answer.set_exception(KafkaException(KafkaError(FakeAdmin.codes.pop(0))))
        else:
            answer.set_result(None)
            FakeAdmin.created = [topic.topic for topic in topics]
        return dict.fromkeys(topics, answer)


@pytest.fixture
def asked(monkeypatch):
    monkeypatch.setattr(topics, "AdminClient", FakeAdmin)
    monkeypatch.setattr(topics.ApplicationTopics._create_anew.retry, "sleep", lambda _: None)
    FakeAdmin.created = []
    return topics.ApplicationTopics(external_cluster(), "app")


def test_who_asks_for_a_leader_of_before_asks_again(asked):
    FakeAdmin.codes = [KafkaError.FENCED_LEADER_EPOCH, KafkaError.NOT_LEADER_FOR_PARTITION]
    assert asked.ends({"app-input": 1}) == {("app-input", 0): 7}


def test_what_is_no_move_is_an_error_at_once(asked):
    FakeAdmin.codes = [KafkaError.TOPIC_AUTHORIZATION_FAILED]
    with pytest.raises(HarnessError, match=r"^The ends of the topics of app could not be read"):
        asked.ends({"app-input": 1})
    assert FakeAdmin.codes == []


@pytest.mark.parametrize("then", [KafkaError._DESTROY_BROKER, KafkaError.TOPIC_ALREADY_EXISTS])
def test_topics_are_recreated_after_librdkafka_drops_its_broker(asked, then):
    FakeAdmin.codes = [KafkaError._DESTROY_BROKER, then]
    asked.create([NewTopic("app-input", 1)])
    assert FakeAdmin.created == ["app-input"]


@pytest.mark.parametrize("codes", [[KafkaError._DESTROY_BROKER] * topics.ATTEMPTS, [KafkaError.POLICY_VIOLATION]])
def test_topics_that_brokers_refuse_are_an_error(asked, codes):
    FakeAdmin.codes = list(codes)
    with pytest.raises(HarnessError, match=r"^The topics of app could not be created"):
        asked.create([NewTopic("app-input", 1)])
    assert FakeAdmin.codes == []


@pytest.mark.parametrize(
    ("version", "group", "kind"),
    [
        (0, "app", "position"),
        (1, "app", "position"),
        (2, "app", "classic"),
        (17, "app", "streams"),
        (23, "app", "streams"),
    ]
    + [(2, other, None) for other in ("another", "app-2", "ap", "")],
)
def test_a_record_of_a_group_is_known_by_its_key(version, group, kind):
    """A key begins, as Kafka's `GroupMetadataKey` and its like do, with a version and the group's id with its size."""
    key = struct.pack(">hh", version, len(group)) + group.encode() + b"\0\5input\0\0\0\1"
    assert topics.kind_of(key, "app") == kind


@pytest.mark.broker
def test_a_silent_coordinator_is_taken_at_its_last_answer(cluster, monkeypatch):
    own = topics.ApplicationTopics(cluster, "silent")
    own.create([NewTopic("silent-input", 2)])
    group = Consumer({**cluster.client(), "group.id": "silent"})
    try:
        assert own.last_offsets("silent-input", 2, 0) == {0: 0, 1: 0}
        group.commit(offsets=[TopicPartition("silent-input", 1, 7)], asynchronous=False)
        assert own.last_offsets("silent-input", 2, 10) == {0: 0, 1: 7}
        assert own.group_records() == ["position"]
        own.close()  # whoever is closed is told nothing
        monkeypatch.setattr(
            own, "offsets", lambda *_: (_ for _ in ()).throw(KafkaException(KafkaError(KafkaError._TIMED_OUT)))
        )
        assert own.last_offsets("silent-input", 2, 0) == {0: 0, 1: 7}
    finally:
        group.close()
        own.delete()
        own.close()


@pytest.mark.broker
def test_what_lies_behind_an_open_transaction_is_not_processed(cluster):
    own = topics.ApplicationTopics(cluster, "behind")
    own.create([NewTopic("behind-repartition", 1)])
    group = Consumer({**cluster.client(), "group.id": "behind"})
    producer = Producer({**cluster.client(), "transactional.id": "behind"})
    producer.init_transactions()
    try:
        assert own.are_processed({"behind-repartition": 1})
        producer.begin_transaction()
        producer.produce("behind-repartition", b"1")
        producer.flush()
        assert not own.are_processed({"behind-repartition": 1})
        producer.commit_transaction()
        assert not own.are_processed({"behind-repartition": 1})
        group.commit(offsets=[TopicPartition("behind-repartition", 0, 1)], asynchronous=False)
        await_condition("the marker", lambda: own.are_processed({"behind-repartition": 1}), timeout=30)
    finally:
        group.close()
        own.delete()
        own.close()
