"""Producing the input: in the background, paced, and counted as it is delivered."""

import struct
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import KafkaException, Producer

from onceproof.lab.cluster import Cluster
from onceproof.model.errors import HarnessError
from onceproof.model.timeline import Timeline
from onceproof.scenarios.base import Message, Workload

PARTITIONER = "murmur2_random"  # Java's, for messages; the partition of integers is given
PRODUCER_CONFIG = {
    # Each record once and in order, or the trial is an error: the input itself must be beyond doubt. (An idempotent
    # producer would do as well, but takes a second to get its id.)
    "acks": "all",
    "retries": 0,
    "max.in.flight": 1,
    "linger.ms": 5,
    "delivery.timeout.ms": 30_000,
    "partitioner": PARTITIONER,
}
# Where a broker may die, records must be retried, and yet be there once and in order.
RETRYING = {
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 5,
    "delivery.timeout.ms": 60_000,
    "topic.metadata.refresh.interval.ms": 1_000,
    "partitioner": PARTITIONER,
}
NOTHING_ELSE = Workload([], [])  # than integers
LABEL = "place"  # header of a record that is labelled
TICK = 0.01  # seconds between two portions of a paced bulk
REPORT_EVERY = 0.1  # seconds between two `produced` events
DELIVERY_TIMEOUT = 60.0


class LabBulk:
    """Records on their way into a topic."""

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        partition: Callable[[int], int],
        name: str,
        records: Sequence[tuple[int, int]],
        rate: float | None,
        timeline: Timeline,
        timestamps: Sequence[int] | None = None,
        workload: Workload = NOTHING_ELSE,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start producing `records` (key, value) at `rate` records/s, None for full speed; `timestamps` are in ms.

        `workload`: which messages the records stand for, if any, and whether those of integers are labelled: with
        `name`, and the place among these records.
        """
        self._monotonic = monotonic
        producer = Producer({**cluster.client(), **producer_config(cluster), "throttle_cb": self._take_throttle})
        self._topic, self._partition, self._name = topic, partition, name
        self._records, self._timeline = records, timeline
        self._timestamps, self._messages, self._labelled = timestamps, workload.messages, workload.labelled
        self._sent = 0
        self._known: set[tuple[str, int | bytes | None]] = (
            set()
        )  # topics with a partition or key of which one was delivered
        self._reached: dict[str, set[int]] = defaultdict(set)  # by topic, partitions of which one was delivered
        self._sizes: dict[str, int] = {}  # partitions of topics in which the place of a record follows from its key
        self._pace = (self._monotonic(), 0, rate)  # since when, from which record on, records/s
        self._error: str | None = None
        self._stop = False
        self._reported = 0.0
        self.delivered = 0
        self.throttled = 0.0
        timeline.add("driver", "bulk", name=name, records=len(records), rate=rate)
        # It alone keeps the producer, which ends with it: a trial may have a thousand bulks.
        self._thread = threading.Thread(target=self._run, args=(producer,), name=f"bulk-{name}", daemon=True)
        self._thread.start()

    def full_speed(self) -> None:
        """Stop pacing: the rest is sent as fast as possible."""
        self._pace = (self._monotonic(), self._sent, None)

    def make_last(self, seconds: float) -> None:
        """Lower the rate if what is left would be sent in less than these seconds."""
        left, rate = len(self._records) - self._sent, self._pace[2]
        if rate is not None and left < seconds * rate:
            self._pace = (self._monotonic(), self._sent, left / seconds)

    def stop(self) -> None:
        """Send no more; what was sent becomes all there is."""
        self._stop = True

    @property
    def sent(self) -> Sequence[tuple[int, int]]:
        """The delivered records: key and value, in the order in which they were sent."""
        return self._records[: self.delivered]

    def check(self) -> None:
        """Raise a HarnessError if a record could not be delivered."""
        if self._error:
            raise HarnessError(f"Producing to {self._topic} failed: {self._error}.")

    def is_done(self) -> bool:
        """Whether the brokers have confirmed as many records as there are."""
        return self.delivered == len(self._records)

    def await_sent(self) -> None:
        """Wait until nothing more is in flight, delivered or not."""
        self._thread.join(DELIVERY_TIMEOUT)

    def await_delivered(self) -> None:
        """Wait until every record is delivered.

        Raises:
            HarnessError: a record was not.
        """
        self.await_sent()
        self.check()
        if not self.is_done():
            raise HarnessError(
                f"Waited {DELIVERY_TIMEOUT:g} s for {len(self._records):,} records to reach {self._topic}, "
                f"{self.delivered:,} did."
            )

    def _run(self, producer: Producer) -> None:
        try:
            self._send(producer)
            producer.flush(DELIVERY_TIMEOUT)
        except (KafkaException, BufferError) as error:
            self._error = str(error)
        self._report(0)

    def _send(self, producer: Producer) -> None:
        while self._sent < len(self._records) and not self._stop and not self._error:
            since, first, rate = self._pace
            due = len(self._records)
            if rate is not None:
                due = min(due, first + int((self._monotonic() - since) * rate))
            # In portions, so that deliveries are counted while a bulk runs at full speed.
            for key, value in self._records[self._sent : min(due, self._sent + 5_000)]:
                record = _fields(self._messages[value]) if self._messages else self._of_integers(key, value)
                producer.produce(**record, on_delivery=self._note_delivered)
                self._sent += 1
                if self._is_first(producer, record["topic"], record.get("partition"), record["key"]):
                    # What the client takes before it knows a partition and its leader may come behind later records.
                    producer.flush(DELIVERY_TIMEOUT)
            producer.poll(TICK if self._sent >= due and rate is not None else 0)
            self._report(REPORT_EVERY)
        if self._stop:
            self._records = self._records[: self._sent]

    def _is_first(self, producer: Producer, topic: str, partition: int | None, key: bytes | None) -> bool:
        """Whether no other record is known to have been delivered to the partition of a record."""
        if partition is None:
            if topic not in self._sizes:
                self._sizes[topic] = len(producer.list_topics(topic, timeout=DELIVERY_TIMEOUT).topics[topic].partitions)
            if len(self._reached[topic]) == self._sizes[topic]:
                return False
            if key is None:  # it goes anywhere
                return True
        place = topic, key if partition is None else partition
        is_first = place not in self._known
        self._known.add(place)
        return is_first

    def _of_integers(self, key: int, value: int) -> dict[str, Any]:
        return {
            "topic": self._topic,
            "key": encode_integer(key),
            "value": encode_integer(value),
            "partition": self._partition(key),
            "timestamp": self._timestamps[self._sent] if self._timestamps else 0,  # 0 is now
            "headers": [(LABEL, f"{self._name} {self._sent}".encode())] if self._labelled else [],
        }

    def _note_delivered(self, error: Any, message: Any) -> None:
        if error is None:
            self.delivered += 1
            if self._messages:
                self._reached[message.topic()].add(message.partition())
        else:
            self._error = str(error)

    def _take_throttle(self, event: Any) -> None:
        self.throttled = max(self.throttled, event.throttle_time)

    def _report(self, every: float) -> None:
        if self._monotonic() - self._reported >= every:
            self._reported = self._monotonic()
            self._timeline.add("driver", "produced", name=self._name, records=self.delivered)


def _fields(message: Message) -> dict[str, Any]:
    """The arguments for a producer; no partition number means "by the key"."""
    place = {} if message.partition is None else {"partition": message.partition}
    named = {name: getattr(message, name) for name in ("topic", "key", "value", "timestamp")}
    return {**named, **place, "headers": list(message.headers)}


def producer_config(cluster: Cluster) -> dict[str, Any]:
    """How the input is produced to these brokers."""
    return RETRYING if cluster.leaders_move else PRODUCER_CONFIG


def encode_integer(number: int) -> bytes:
    """Write as Kafka's IntegerSerializer does."""
    return struct.pack(">i", number)
