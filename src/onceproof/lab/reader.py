"""The independent reader: reads a trial's topics with confluent-kafka while the trial runs. No Spark involved."""

import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from onceproof.lab.cluster import Cluster
from onceproof.lab.messages import MessageLog, TopicMessage
from onceproof.model.anomaly import Comparison, corrupt_record
from onceproof.model.errors import HarnessError
from onceproof.model.files import Declared, StorePlan
from onceproof.model.record import Record
from onceproof.readers.kafka import byte_record, decode_record, entry_text, token_record

BATCH = 10_000
FINISH_TIMEOUT = 60.0
SILENT_FOR = 10.0  # seconds after which a consumer that is not at the end is replaced


@dataclass(frozen=True)
class TopicSource:
    """A topic to be read, the role that it plays, the size of its values, its partitions, and what its keys are."""

    topic: str
    role: str
    value_bytes: int
    partitions: int
    declared: Declared | None = None  # of your own application: what its records are
    keys: str = "integers"
    store: StorePlan | None = None  # of a changelog that is compared with it as bytes


class Decoder:
    """Makes records of messages, by the roles that their topics play."""

    def __init__(self, sources: Iterable[TopicSource]) -> None:
        """Begin without a record."""
        self.sources = {source.topic: source for source in sources}
        self.records: dict[str, list[Record]] = {source.role: [] for source in self.sources.values()}
        self.corrupt: list[Comparison] = []

    def take(self, message: TopicMessage) -> None:
        """Decode a message, which becomes one of `records`, or of what is `corrupt`."""
        topic, partition, offset, timestamp, key, value, headers = message
        source, tombstones = self.sources[topic], topic.endswith("-changelog")
        sent = (timestamp, headers)
        try:
            if source.store and not source.store.has_integers:
                record = byte_record(partition, offset, key, value, *sent)
            elif source.declared:
                record = token_record(partition, offset, key, value, source.declared, *sent)
            else:
                record = decode_record(
                    partition, offset, key, value, source.value_bytes, *sent, source.keys, tombstones=tombstones
                )
                if source.store:
                    record = record._replace(entry=entry_text(key, value))
        except ValueError as fault:
            self.corrupt.append(corrupt_record(source.role, partition, offset, str(fault)))
        else:
            self.records[source.role].append(record)


class Reader:
    """Reads topics from their beginning, in the background: committed records only, or all."""

    def __init__(self, cluster: Cluster, group: str, sources: Iterable[TopicSource], committed: bool = True) -> None:
        """Start reading."""
        self.committed = committed
        self._decoder = Decoder(sources)
        self._log = MessageLog()
        self._config = {
            **cluster.client(),
            "group.id": f"{group}-reader",
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
        }
        self._next = {(topic, p): 0 for topic, of in self._decoder.sources.items() for p in range(of.partitions)}
        self._consumer = self._open()
        self._heard = time.monotonic()
        self._ends: dict[tuple[str, int], int] = {}  # where a partition was last seen to end
        self._targets: Mapping[tuple[str, int], int] | None = None
        self._error: HarnessError | None = None
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="reader", daemon=True)
        self._thread.start()

    def finish(self, ends: Mapping[tuple[str, int], int]) -> tuple[dict[str, list[Record]], list[Comparison]]:
        """Read to the `ends` (by topic and partition; those of other topics do not matter).

        Returns the records by role, partitions in offset order, and those that are not pairs of integers. To be called
        once no producer writes any more.

        Raises:
            HarnessError: the topics could not be read to their end.
        """
        self._targets = {place: end for place, end in ends.items() if place[0] in self._decoder.sources}
        self._thread.join(FINISH_TIMEOUT)
        reached = self._complete()
        self.stop()
        if self._error:
            raise self._error
        if not reached:
            raise HarnessError(f"Waited {FINISH_TIMEOUT:g} s for the ends {ends} of the topics; read to {self._ends}.")
        return self._decoder.records, self._decoder.corrupt

    def keep(self, file: Path) -> None:
        """Write down the messages that were read, when it has finished.

        Raises:
            HarnessError: the disk is full or read-only.
        """
        self._log.write(file)

    def stop(self) -> None:
        """Wait for the thread that polls, and close the consumer."""
        self._stopped = True
        self._thread.join()
        self._consumer.close()

    def _open(self) -> Consumer:
        """A consumer that continues where the last one was."""
        consumer = Consumer(self._config)
        consumer.assign([TopicPartition(*place, offset) for place, offset in self._next.items()])
        return consumer

    def _replace_silent(self) -> None:
        """Replace a consumer that brings nothing though there is more, as happened after its broker started again.

        It keeps what it knows of the leader; a new client knows nothing.
        """
        if self._targets is None:  # there is no sign of more
            self._heard = time.monotonic()
        elif time.monotonic() - self._heard > SILENT_FOR:
            self._consumer.close()
            self._consumer, self._heard = self._open(), time.monotonic()

    def _complete(self) -> bool:
        targets = self._targets
        return targets is not None and all(self._ends.get(place, -1) >= end for place, end in targets.items())

    def _run(self) -> None:
        while not self._stopped and not self._complete():
            try:
                for message in self._consumer.consume(BATCH, timeout=0.05):
                    self._heard = time.monotonic()
                    self._take(message)
                self._replace_silent()
            except HarnessError as error:
                self._error = error
                return
            except KafkaException as error:
                self._error = HarnessError(f"The topics could not be read: {error}.")
                return

    def _take(self, message: Message) -> None:
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        error = message.error()
        if error is None:
            self._next[topic, partition] = offset + 1
            sent = message.timestamp()[1], message.key(), message.value(), message.headers() or ()
            read = TopicMessage(topic, partition, offset, *sent)
            self._log.append(read)
            self._decoder.take(read)
        elif error.code() == KafkaError._PARTITION_EOF:
            self._next[topic, partition] = self._ends[topic, partition] = offset
        elif not error.retriable():
            raise HarnessError(f"{topic} could not be read: {error.str()}.")
