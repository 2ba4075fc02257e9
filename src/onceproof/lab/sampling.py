"""Samples of topics on given brokers, as a file of records for an application of people's own."""

import secrets
import time
from collections.abc import Iterator

import pyarrow as pa
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, KafkaException, Message, TopicPartition

from onceproof.lab.given import REACHED_WITHIN, GivenCluster
from onceproof.model.cell import MARK
from onceproof.model.errors import HarnessError, UsageError

BATCH = 10_000
PATIENCE = 60.0  # seconds without a record
# As `onceproof.scenarios.declared` takes it.
SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("timestamp", pa.int64()),
        ("headers", pa.map_(pa.string(), pa.binary())),
    ]
)


def sample(cluster: GivenCluster, topic: str, records: int) -> pa.Table:
    """The last committed records of a topic, about equally many of each partition, in the order of their timestamps.

    Nothing is committed, and no group is joined.

    Raises:
        UsageError: the brokers cannot be reached, there is no such topic, it is empty, or it may not be read.
        HarnessError: it could not be read to its end.
    """
    cluster.check_reached()
    consumer = Consumer(
        {
            **cluster.client(),
            "group.id": f"{MARK}.sample-{secrets.token_hex(4)}",  # it must have one, though none is joined
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        read = sorted(_last(consumer, topic, records), key=lambda message: message.timestamp()[1])[-records:]
    except KafkaException as error:
        raise UsageError(f"{topic} at {cluster.bootstrap_servers} could not be read: {error.args[0].str()}.") from None
    finally:
        consumer.close()
    if not read:
        raise UsageError(f"{topic} at {cluster.bootstrap_servers} has no records to be sampled.")
    return pa.Table.from_pylist(list(map(_row, read)), SCHEMA)


def _last(consumer: Consumer, topic: str, records: int) -> list[Message]:
    """So many committed records at least, if there are; markers and what was aborted take offsets, too."""
    ends = _ends(consumer, topic)
    stretch = -(-records // len(ends))
    while True:
        begins = {partition: max(low, high - stretch) for partition, (low, high) in ends.items()}
        consumer.assign([TopicPartition(topic, *place) for place in begins.items()])
        read = list(_read(consumer, topic, len(ends)))
        if len(read) >= records or all(begins[partition] == low for partition, (low, _) in ends.items()):
            return read
        stretch *= 4


def _ends(consumer: Consumer, topic: str) -> dict[int, tuple[int, int]]:
    """First and end offset of each partition."""
    told = consumer.list_topics(topic, REACHED_WITHIN).topics[topic]
    if told.error is not None:
        raise KafkaException(told.error)
    places = (TopicPartition(topic, partition) for partition in sorted(told.partitions))
    return {place.partition: consumer.get_watermark_offsets(place, REACHED_WITHIN) for place in places}


def _read(consumer: Consumer, topic: str, partitions: int) -> Iterator[Message]:
    """All records from where the consumer stands, until each partition has ended."""
    ended: set[int] = set()
    deadline = time.monotonic() + PATIENCE
    while len(ended) < partitions:
        for message in consumer.consume(BATCH, timeout=0.5):
            deadline = time.monotonic() + PATIENCE
            error = message.error()
            if error is None:
                yield message
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            elif not error.retriable():
                raise KafkaException(error)
        if time.monotonic() > deadline:
            raise HarnessError(f"Waited {PATIENCE:g} s for further records of {topic}; try again.")


def _row(message: Message) -> dict[str, object]:
    kind, timestamp = message.timestamp()
    return {
        "key": message.key(),
        "value": message.value(),
        "timestamp": None if kind == TIMESTAMP_NOT_AVAILABLE else timestamp,
        "headers": message.headers() or [],
    }
