"""Samples of topics on given brokers, as a file of records for a user application."""

import pyarrow as pa
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaException, Message

from onceproof.lab.external_brokers import ExternalCluster
from onceproof.lab.raw import offsets_of, raw_consumer, raw_records
from onceproof.model.errors import UsageError

# As `onceproof.scenarios.declared` takes it.
SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("timestamp", pa.int64()),
        ("headers", pa.map_(pa.string(), pa.binary())),
    ]
)


def sample(cluster: ExternalCluster, topic: str, records: int) -> pa.Table:
    """The last committed records of a topic, about equally many of each partition, in the order of their timestamps.

    Raises:
        UsageError: the brokers cannot be reached, there is no such topic, it is empty, or it may not be read.
        HarnessError: it could not be read to its end.
    """
    cluster.check_reached()
    consumer = raw_consumer(cluster)
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
    offsets = offsets_of(consumer, topic)
    stretch = -(-records // len(offsets))
    while True:
        stretches = {place: (max(low, high - stretch), high) for place, (low, high) in offsets.items()}
        read = list(raw_records(consumer, stretches))
        if len(read) >= records or all(stretches[place][0] == low for place, (low, _) in offsets.items()):
            return read
        stretch *= 4


def _row(message: Message) -> dict[str, object]:
    kind, timestamp = message.timestamp()
    return {
        "key": message.key(),
        "value": message.value(),
        "timestamp": None if kind == TIMESTAMP_NOT_AVAILABLE else timestamp,
        "headers": message.headers() or [],
    }
