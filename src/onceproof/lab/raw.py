"""Committed records of topics, as bytes, from somewhere to where they end now."""

import secrets
import time
from collections.abc import Iterator, Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from onceproof.lab.cluster import Cluster
from onceproof.model.cell import MARK
from onceproof.model.errors import HarnessError

BATCH = 10_000
PATIENCE = 60.0  # seconds without a record
ANSWERS_WITHIN = 10.0  # seconds
Begins = Mapping[tuple[str, int], int]  # by topic and partition


def raw_consumer(cluster: Cluster) -> Consumer:
    """A consumer for `raw_records`. It commits nothing and joins no group, though it must name one."""
    return Consumer(
        {
            **cluster.client(),
            "group.id": f"{MARK}.raw-{secrets.token_hex(4)}",
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
    told = consumer.list_topics(topic, ANSWERS_WITHIN).topics[topic]
    if told.error is not None:
        raise KafkaException(told.error)
    return {
        (topic, partition): consumer.get_watermark_offsets(TopicPartition(topic, partition), ANSWERS_WITHIN)
        for partition in sorted(told.partitions)
    }


def raw_records(consumer: Consumer, begins: Begins) -> Iterator[Message]:
    """All records from these offsets on, until each partition has ended.

    Raises:
        KafkaException: they cannot be read.
        HarnessError: none comes for a minute.
    """
    consumer.assign([TopicPartition(*place, offset) for place, offset in begins.items()])
    ended: set[tuple[str, int]] = set()
    deadline = time.monotonic() + PATIENCE
    while len(ended) < len(begins):
        for message in consumer.consume(BATCH, timeout=0.5):
            deadline = time.monotonic() + PATIENCE
            error = message.error()
            if error is None:
                yield message
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add((message.topic(), message.partition()))
            elif not error.retriable():
                raise KafkaException(error)
        if time.monotonic() > deadline:
            topics = ", ".join(sorted({topic for topic, _ in begins}))
            raise HarnessError(f"Waited {PATIENCE:g} s for further records of {topics}; try again.")
