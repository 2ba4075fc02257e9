"""What a broker's log compaction leaves of a changelog of versions: the reason for a part of a finding."""

import itertools
import secrets

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from onceproof.lab.cluster import EmbeddedCluster
from onceproof.processes.waiting import await_condition


@pytest.mark.broker
@pytest.mark.night  # a broker looks for what is to be compacted every 15 s
def test_compaction_keeps_a_late_version_and_drops_its_deletion(cluster):
    """Versioned stores' changelogs are compacted by offset, too, once the retention and a day are over (here at once)."""
    topic = f"changelog-{secrets.token_hex(4)}"
    config = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.001"}
    admin = AdminClient(cluster.client())
    [created] = admin.create_topics([NewTopic(topic, 1, 1, config=config)]).values()
    created.result()
    producer = Producer(cluster.client())

    def put(key: str, value: str | None, timestamp: int) -> None:
        producer.produce(topic, value, key, timestamp=timestamp)
        producer.flush()

    put("k", "v1", 1_000)
    put("k", None, 2_000)
    put("k", "late", 1_500)
    assert values_of(b"k", cluster, topic) == [b"v1", None, b"late"]
    later = itertools.count(60_000, 1_000)

    def is_compacted() -> bool:
        put("other", "v", next(later))  # begins a segment of its own: the last one is never compacted
        return len(values_of(b"k", cluster, topic)) == 1

    await_condition("the changelog to be compacted", is_compacted, timeout=120, interval=1)
    assert values_of(b"k", cluster, topic) == [b"late"]


def values_of(key: bytes, cluster: EmbeddedCluster, topic: str) -> list[bytes | None]:
    """The values of a key in a topic of one partition, in the order of their offsets."""
    consumer = Consumer(cluster.client() | {"group.id": "none", "auto.offset.reset": "earliest"})
    place = TopicPartition(topic, 0, OFFSET_BEGINNING)
    end, found, position = consumer.get_watermark_offsets(place)[1], [], 0
    consumer.assign([place])
    while position < end:
        if (message := consumer.poll(10)) is None:
            break
        position = message.offset() + 1
        found += [message.value()] * (message.key() == key)
    consumer.close()
    return found
