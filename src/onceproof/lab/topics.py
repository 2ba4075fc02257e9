"""Topics and offsets through the Admin API."""

import contextlib
import struct
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from tenacity import retry, retry_if_exception, stop_after_attempt, wait_fixed

from onceproof.lab.cluster import Cluster
from onceproof.model.errors import HarnessError
from onceproof.model.segments import CLASSIC, OFFSETS, POSITION, STREAMS
from onceproof.processes.waiting import await_condition, holds_within

TIMEOUT = 30.0
ATTEMPTS = 5  # to create topics
# Each append begins a new segment, and all others are compacted at once; a tombstone goes with the second pass.
COMPACTED = {"segment.ms": "100", "min.cleanable.dirty.ratio": "0", "delete.retention.ms": "0"}
LEFT_AS_IT_IS = {"min.cleanable.dirty.ratio": "1"}
COMPACTS_OFTEN = {"log.cleaner.backoff.ms": "200"}
# What a record of `__consumer_offsets` is, by the version of its key; all others are of the streams protocol.
KINDS = {0: POSITION, 1: POSITION, 2: CLASSIC}
INTERNAL = ("-changelog", "-repartition", "-topic")  # ends of their names; the last are of foreign-key joins
CONFIGURED = ("cleanup.policy", "retention.ms", "min.compaction.lag.ms", "message.timestamp.type")
MOVED = {  # what a broker answers when asked about a former leader
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
}


def _may_pass(error: BaseException) -> bool:
    """Whether topics may have been created after all.

    librdkafka gave up on the broker that it asked, because an answer left it out, as some do after a start; or the
    topics exist, created by a request whose answer was lost, and the broker that was asked for them did not know them
    yet.
    """
    passing = (KafkaError._DESTROY_BROKER, KafkaError.TOPIC_ALREADY_EXISTS)
    return isinstance(error, KafkaException) and error.args[0].code() in passing


class ApplicationTopics:
    """The topics and the consumer group of one application id."""

    def __init__(self, cluster: Cluster, application_id: str, named: Collection[str] = ()) -> None:
        """Connect to the cluster; topics that are `named` belong to the application, whatever they are called."""
        self._admin = AdminClient(cluster.client())
        # Asks for the group's offsets and never joins it. (AdminClient.list_consumer_group_offsets, asked often
        # while the coordinator loads, crashed in librdkafka 2.16.1.)
        self._offsets = Consumer({**cluster.client(), "group.id": application_id})
        self._cluster = cluster
        self._prefix, self._named = application_id, frozenset(named)
        self._known: dict[str, dict[int, int]] = {}  # by topic, the last answer of the group's coordinator

    def names(self) -> set[str]:
        """Existing topics of the application, its changelogs included."""
        return set(self.sizes())

    def sizes(self) -> dict[str, int]:
        """How many partitions each of them has."""
        present = self._admin.list_topics(timeout=5).topics
        ours = {name for name in present if name.startswith(self._prefix + "-") or name in self._named}
        return {name: len(present[name].partitions) for name in ours}

    def create(self, topics: Iterable[NewTopic]) -> None:
        """Create topics and wait until they are known; what an earlier attempt left is deleted first.

        Raises:
            HarnessError: the brokers refused.
        """
        wanted = {topic.topic: topic for topic in topics}
        try:
            self._create_anew(list(wanted.values()))
        except KafkaException as error:
            raise HarnessError(f"The topics of {self._prefix} could not be created: {error}.") from error
        await_condition(
            f"the topics of {self._prefix}",
            lambda: wanted.keys() <= self.names(),
            timeout=TIMEOUT,
            check=self._cluster.check_alive,
        )

    @retry(retry=retry_if_exception(_may_pass), wait=wait_fixed(0.2), stop=stop_after_attempt(ATTEMPTS), reraise=True)
    def _create_anew(self, topics: list[NewTopic]) -> None:
        self.delete()
        for future in self._admin.create_topics(topics).values():
            future.result(TIMEOUT)

    def alter(self, name: str, config: Mapping[str, str]) -> None:
        """Change a topic's configuration; other settings stay as they are.

        Raises:
            HarnessError: the brokers refused.
        """
        self._alter(ResourceType.TOPIC, name, config)

    def alter_group(self, config: Mapping[str, str]) -> None:
        """Change the configuration of the group, which need not exist yet.

        Raises:
            HarnessError: the brokers refused.
        """
        self._alter(ResourceType.GROUP, self._prefix, config)

    def _alter(self, kind: ResourceType, name: str, config: Mapping[str, str]) -> None:
        entries = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in config.items()
        ]
        resource = ConfigResource(kind, name, incremental_configs=entries)
        try:
            for future in self._admin.incremental_alter_configs([resource]).values():
                future.result(TIMEOUT)
        except KafkaException as error:
            raise HarnessError(f"The configuration of {name} could not be changed: {error}.") from error

    def internal(self) -> dict[str, dict[str, int | str]]:
        """The topics that Kafka Streams has made for itself: by name, `partitions` and what of `CONFIGURED` is set.

        Raises:
            HarnessError: the brokers do not say how they are configured.
        """
        sizes = {name: size for name, size in self.sizes().items() if name.endswith(INTERNAL)}
        if not sizes:  # librdkafka refuses to be asked about nothing
            return {}
        asked = [ConfigResource(ResourceType.TOPIC, name) for name in sizes]
        try:
            described = {
                resource.name: future.result(TIMEOUT)
                for resource, future in self._admin.describe_configs(asked).items()
            }
        except KafkaException as error:
            raise HarnessError(f"The configuration of topics of {self._prefix} could not be read: {error}.") from error
        configs = {name: {key: config[key].value for key in CONFIGURED} for name, config in described.items()}
        return {name.removeprefix(f"{self._prefix}-"): {"partitions": sizes[name], **configs[name]} for name in configs}

    def delete(self) -> None:
        """Delete all topics of the application and wait until they are gone."""
        old = self.names()
        if not old:
            return
        for future in self._admin.delete_topics(list(old)).values():
            with contextlib.suppress(KafkaException):
                future.result(TIMEOUT)
        await_condition(f"the topics of {self._prefix} to go", lambda: not self.names(), timeout=TIMEOUT)

    def count_committed(self, topic: str, partitions: int) -> int:
        """Sum of the offsets that the application's group has committed for a topic."""
        try:
            return sum(self.offsets(topic, partitions).values())
        except KafkaException:  # no coordinator yet: nothing is committed
            return 0

    def offsets(self, topic: str, partitions: int) -> dict[int, int]:
        """The offset that the application's group has committed for each partition of a topic.

        Raises:
            KafkaException: the group's coordinator gave no answer.
        """
        places = [TopicPartition(topic, p) for p in range(partitions)]
        answer = self._offsets.committed(places, timeout=5)
        self._known[topic] = {place.partition: max(0, place.offset) for place in answer}
        return self._known[topic]

    def last_offsets(self, topic: str, partitions: int, within: float) -> dict[int, int]:
        """The same; from a coordinator that gives no answer within some seconds, its last one.

        One that cannot load the group (KAFKA-20254) accepts no commit either.
        """

        def is_reported() -> bool:
            with contextlib.suppress(KafkaException):
                return bool(self.offsets(topic, partitions))
            return False

        holds_within(within, is_reported)
        return self._known.get(topic, dict.fromkeys(range(partitions), 0))

    def are_processed(self, sizes: Mapping[str, int]) -> bool:
        """Whether the group has committed all that topics hold, nothing comes any more, and no transaction is open.

        The input of a transaction may count as committed before its output does, and one of a process that was killed
        stays open until it times out: what lies behind is not read yet.
        """
        ends = self.ends(sizes)
        if self.ends(sizes, committed=True) != ends:
            return False
        return not self._count_unprocessed(sizes) and self.ends(sizes) == ends

    def _count_unprocessed(self, sizes: Mapping[str, int]) -> int:
        """Committed records of topics beyond what the group has committed, not counting transaction markers."""
        places = [
            TopicPartition(topic, partition, offset)
            for topic, partitions in sizes.items()
            for partition, offset in self.offsets(topic, partitions).items()
        ]
        return sum(1 for _ in self._messages(places))

    def _messages(self, places: Sequence[TopicPartition]) -> Iterator[Message]:
        """The records behind these places, until the end of each partition is reached."""
        consumer = Consumer(
            {
                **self._cluster.client(),
                "group.id": f"{self._prefix}-looker",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 50,
            }
        )
        left = {(place.topic, place.partition) for place in places}
        try:
            consumer.assign(list(places))
            while left:
                for message in consumer.consume(1_000, timeout=0.2):
                    if message.error() is None:
                        yield message
                    elif message.error().code() == KafkaError._PARTITION_EOF:
                        left.discard((message.topic(), message.partition()))
                    elif not message.error().retriable():
                        raise KafkaException(message.error())
        finally:
            consumer.close()

    def close(self) -> None:
        """Disconnect."""
        self._offsets.close()

    def positions(self) -> dict[int, int]:
        """End offset of each partition of the log of groups' positions; nothing if we are not allowed to see it."""
        log = self._admin.list_topics(OFFSETS, timeout=5).topics[OFFSETS]
        if log.error is not None:
            return {}
        return {partition: end for (_, partition), end in self.ends({OFFSETS: len(log.partitions)}).items()}

    def compact_positions(self) -> None:
        """Have the log of groups' positions compacted at once and from now on; of these brokers, and for all groups.

        Raises:
            HarnessError: the brokers refused.
        """
        self.compact([OFFSETS])

    def compact(self, topics: Iterable[str]) -> None:
        """Have topics compacted at once and from now on.

        Raises:
            HarnessError: the brokers refused.
        """
        for topic in topics:
            self._alter(ResourceType.TOPIC, topic, COMPACTED)
        for node in self._admin.list_topics(timeout=5).brokers:
            self._alter(ResourceType.BROKER, str(node), COMPACTS_OFTEN)

    def compact_no_more(self, topics: Iterable[str]) -> None:
        """Leave topics as they are from now on.

        Raises:
            HarnessError: the brokers refused.
        """
        for topic in topics:
            self._alter(ResourceType.TOPIC, topic, LEFT_AS_IT_IS)

    def keys(self, topic: str) -> set[int]:
        """The keys of the committed records that are left in a changelog, tombstones among them.

        Raises:
            HarnessError: the brokers gave no answer.
        """
        partitions = range(self.sizes()[topic])
        messages = self._messages([TopicPartition(topic, partition, 0) for partition in partitions])
        return {int.from_bytes(message.key(), "big") for message in messages}

    def group_records(self) -> list[str]:
        """The records in the log of groups' positions of the application's group, in its order; tombstones, too."""
        places = [TopicPartition(OFFSETS, partition, 0) for partition in self.positions()]
        return [kind for message in self._messages(places) if (kind := kind_of(message.key(), self._prefix))]

    def ends(self, sizes: Mapping[str, int], committed: bool = False) -> dict[tuple[str, int], int]:
        """End offsets by topic and partition; if `committed`, those before the first open transaction.

        Args:
            sizes: the topics, and how many partitions each has.
            committed: as said.

        Raises:
            HarnessError: the brokers gave no answer.
        """
        places = [TopicPartition(name, p) for name, partitions in sizes.items() for p in range(partitions)]
        asked = {place: OffsetSpec.latest() for place in places}
        isolation = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        deadline = time.monotonic() + TIMEOUT
        while True:
            try:
                answers = self._admin.list_offsets(asked, isolation_level=isolation)
                return {(place.topic, place.partition): f.result(TIMEOUT).offset for place, f in answers.items()}
            except KafkaException as error:
                if error.args[0].code() not in MOVED or time.monotonic() > deadline:
                    message = f"The ends of the topics of {self._prefix} could not be read: {error}."
                    raise HarnessError(message) from error
                # The client keeps asking with the epoch of the leader that it knows; a new client knows none.
                self._admin = AdminClient(self._cluster.client())


def kind_of(key: bytes, group: str) -> str | None:
    """The kind of a record of `__consumer_offsets` with this key: `position`, `classic` or `streams`; None of other
    groups.

    A key is a version, which says what it is, and the name of the group, behind its length.
    """
    version, size = struct.unpack_from(">hh", key)
    return KINDS.get(version, STREAMS) if key[4 : 4 + size] == group.encode() else None
