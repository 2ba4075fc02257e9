"""Committed records of topics, as bytes, between offsets."""

import secrets
import time
from collections.abc import Iterator, Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from onceproof.lab.cluster import Cluster
from onceproof.model.errors import HarnessError

BATCH = 10_000
PATIENCE = 60.0  # seconds without a record
ANSWERS_WITHIN = 10.0  # seconds
# By topic and partition: the first offset, and the one behind the last.
Stretches = Mapping[tuple[str, int], tuple[int, int]]


def raw_consumer(cluster: Cluster) -> Consumer:
    """A consumer for `raw_records`. It commits nothing and joins no group, though it must name one."""
    return Consumer(
        {
            **cluster.client(),
            "group.id": f"{cluster.prefix}.raw-{secrets.token_hex(4)}",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
        }
    )


def offsets_of(consumer: Consumer, topic: str) -> dict[tuple[str, int], tuple[int, int]]:
    """First and end offset of each partition of a topic.

    Raises:
        KafkaException: there is no such topic, or the brokers do not answer.
    """
    metadata = consumer.list_topics(topic, ANSWERS_WITHIN).topics[topic]
    if metadata.error is not None:
        raise KafkaException(metadata.error)
    return {
        (topic, partition): consumer.get_watermark_offsets(TopicPartition(topic, partition), ANSWERS_WITHIN)
        for partition in sorted(metadata.partitions)
    }


def raw_records(consumer: Consumer, stretches: Stretches) -> Iterator[Message]:
    """All records of these stretches; where others follow all the time, too.

    Raises:
        KafkaException: they cannot be read.
        HarnessError: none comes for a minute.
    """
    left = {place for place, (begin, end) in stretches.items() if begin < end}
    consumer.assign([TopicPartition(*place, stretches[place][0]) for place in sorted(left)])
    deadline = time.monotonic() + PATIENCE
    while left:
        for message in consumer.consume(BATCH, timeout=0.5):
            deadline = time.monotonic() + PATIENCE
            error, place = message.error(), (message.topic(), message.partition())
            if error is None:
                if message.offset() < stretches[place][1]:
                    yield message
                if message.offset() >= stretches[place][1] - 1:  # the last may be a marker, so that a later one comes
                    left.discard(place)
            elif error.code() == KafkaError._PARTITION_EOF:
                left.discard(place)
            elif not error.retriable():
                raise KafkaException(error)
        if time.monotonic() > deadline:
            topics = ", ".join(sorted({topic for topic, _ in left}))
            raise HarnessError(f"Waited {PATIENCE:g} s for further records of {topics}; try again.")
