import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from onceproof.lab.cluster import REGISTERED, EmbeddedCluster, free_ports
from onceproof.model.release import Release
from tests.conftest import HERE


def test_free_ports_differ():
    assert len(set(free_ports(10))) == 10


def test_brokers_without_data_have_nobody_registered(tmp_path):
    (tmp_path / REGISTERED).touch()
    (tmp_path / "data-1").mkdir()
    EmbeddedCluster.delete_data(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.broker
def test_brokers_that_kept_their_data_go_on_with_it(tmp_path):
    release = Release.parse("3.9.1")
    cluster = EmbeddedCluster.start(HERE, release, tmp_path)
    admin = AdminClient(cluster.client())
    admin.create_topics([NewTopic("kept", 1)])["kept"].result(30)
    producer = Producer(cluster.client())
    producer.produce("kept", b"value")
    assert producer.flush(30) == 0
    cluster.stop(keep_data=True)
    assert EmbeddedCluster.has_data(tmp_path)
    cluster = EmbeddedCluster.start(HERE, release, tmp_path)
    try:
        consumer = Consumer({**cluster.client(), "group.id": "any"})
        consumer.assign([TopicPartition("kept", 0, 0)])
        [message] = consumer.consume(1, timeout=30)
        assert message.value() == b"value"
        consumer.close()
    finally:
        cluster.stop()
    assert not EmbeddedCluster.has_data(tmp_path)
