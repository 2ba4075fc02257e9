"""KAFKA-20254: a group that went from the classic to the streams protocol, and whose broker can load it no more.

    .venv/bin/python benchmarks/migration.py [--only TEXT]

An application works under `group.protocol=classic` and commits the positions of two partitions, is killed, and comes
back under `group.protocol=streams`, where it commits those of the first partition only. `__consumer_offsets` is
compacted until nothing tells any more that the group was classic, neither its metadata nor the tombstone that ended it.
What is left of it are positions of the second partition, which now come before everything else of the group. Then the
broker is restarted. Releases with the bug make a group without a protocol of them, and refuse what follows: "Group ...
is not a streams group". The coordinator of that partition of `__consumer_offsets` cannot be loaded, so that no group of
it can work.

Prints a row a cell: what the log held of the group before the restart, whether the coordinator answers after it,
whether the application goes on, and what the broker says. Brokers are the culprit here, and each cell has brokers of
its own; no scenario has it, for the reasons in docs/known-failures.md.
"""

import argparse
import re
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from onceproof.lab.cluster import EmbeddedCluster
from onceproof.lab.instance import Instance
from onceproof.lab.load import Bulk
from onceproof.lab.topics import Topics
from onceproof.model.release import Release
from onceproof.model.segments import OFFSETS
from onceproof.model.timeline import Timeline
from onceproof.scenarios.base import partition_of_key
from onceproof.settings import get_settings

GROUP = "onceproof-migration"
PARTITIONS = 2
FIRST = 200  # records of both partitions
LATER = 100  # of the first one
HEAD = f"{'broker':8} {'streams':8} {'cell':16} {'records of the group':52} {'loaded':7} {'goes on':8} said"
# Each append begins a new segment, and all others are compacted at once; a tombstone goes with the second pass.
COMPACTED = {"segment.ms": "100", "min.cleanable.dirty.ratio": "0", "delete.retention.ms": "0"}
SAID = re.compile(r"Group \S+ is not a streams group\.?")
POSITION, CLASSIC = "position", "classic"
KINDS = {0: POSITION, 1: POSITION, 2: CLASSIC}  # by the version of a record's key; others are of the streams protocol
CELLS = (
    ("4.2.0", "4.2.1", "migrated"),
    ("4.2.1", "4.2.1", "migrated"),
    ("4.3.1", "4.2.1", "migrated"),
    ("4.2.0", "4.2.1", "not compacted"),
    ("4.2.0", "4.2.1", "not migrated"),
)


@dataclass(frozen=True)
class Seen:
    """What became of one cell."""

    held: str  # what the log held of the group, in its order
    loaded: bool
    goes_on: bool
    said: str


def main() -> None:
    """Run the cells and print what was seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="TEXT", help='cells whose name has this text ("4.2.0 migrated")')
    only = parser.parse_args().only
    print(HEAD)
    for broker, streams, name in CELLS:
        if only in f"{broker} {name}":
            with tempfile.TemporaryDirectory() as folder:
                seen = attempt(Release.parse(broker), Release.parse(streams), name, Path(folder))
            loaded, goes_on = (("yes" if it else "NO") for it in (seen.loaded, seen.goes_on))
            print(f"{broker:8} {streams:8} {name:16} {seen.held:52} {loaded:7} {goes_on:8} {seen.said}", flush=True)


def attempt(broker: Release, streams: Release, name: str, folder: Path) -> Seen:
    """One group, from its first record to what it does after the restart of its broker."""
    cluster = EmbeddedCluster.start(get_settings().installation, broker, folder / "cluster")
    topics = Topics(cluster, GROUP)
    timeline = Timeline(folder / "timeline.jsonl")
    try:
        topics.create([NewTopic(f"{GROUP}-{role}", PARTITIONS, 1) for role in ("input", "output")])
        lab = Lab(cluster, topics, timeline, streams, folder)
        with lab.instance("classic"):
            lab.produce(range(FIRST))
            lab.await_committed(FIRST)
        lab.compact(name != "not compacted")
        with lab.instance("classic" if name == "not migrated" else "streams") as instance:
            lab.produce(range(1, 1 + 2 * LATER, 2))
            lab.await_committed(FIRST + LATER)
            if name == "migrated":
                lab.await_(lambda: CLASSIC not in lab.held(), "the tombstone of the classic group to go", lab.touch)
            held = lab.held()
            cluster.kill_node(1, orderly=True)
            cluster.start_node(1)
            loaded = lab.holds_within(30, lambda: sum(topics.offsets(f"{GROUP}-input", PARTITIONS).values()) > 0)
            before, processed = lab.committed(), instance.processed
            lab.touch()
            goes_on = lab.holds_within(30, lambda: lab.committed() > before and instance.processed > processed)
        log = cluster.nodes[0].log.read_text(errors="replace")
        return Seen(told(held), loaded, goes_on, next(iter(SAID.findall(log)), "-").replace(GROUP, "..."))
    finally:
        topics.close()
        timeline.close()
        cluster.stop()


def told(held: list[str]) -> str:
    """Kinds of records in the order of their first one, with their number."""
    return ", ".join(f"{number} {kind}" for kind, number in Counter(held).items())


class Lab:
    """The world of one cell."""

    def __init__(
        self, cluster: EmbeddedCluster, topics: Topics, timeline: Timeline, streams: Release, folder: Path
    ) -> None:
        """Nothing runs yet."""
        self._cluster, self._topics, self._timeline = cluster, topics, timeline
        self._streams, self._folder = streams, folder
        self._sent = 0

    @contextmanager
    def instance(self, protocol: str) -> Iterator[Instance]:
        """An instance of the application, killed at the end, so that it leaves its group only when it is missed."""
        one = Instance(
            protocol, self._streams, self._folder / f"{protocol}.log", self._timeline, self._cluster.installation
        )
        config = {
            **self._cluster.java_client(self._streams),
            "application.id": GROUP,
            "client.id": protocol,
            "state.dir": str(self._folder / "state"),
            "processing.guarantee": "at_least_once",
            "num.stream.threads": "1",
            "commit.interval.ms": "100",
            **({"group.protocol": "streams"} if protocol == "streams" else SHORT_SESSION),
        }
        one.start("copy", {"input.topic": f"{GROUP}-input", "output.topic": f"{GROUP}-output"}, config)
        one.await_hello()
        try:
            yield one
        finally:
            one.kill()
        if protocol == "classic":
            self.await_(self._is_empty, "the classic group to be empty")

    def _is_empty(self) -> bool:
        admin = AdminClient(self._cluster.client())
        [described] = admin.describe_consumer_groups([GROUP]).values()
        return not described.result(10).members

    def produce(self, keys: range) -> None:
        """Send records of these keys, whose values are their keys, and wait until they are acknowledged."""
        records = [(key, key) for key in keys]
        bulk = Bulk(
            self._cluster,
            f"{GROUP}-input",
            lambda key: partition_of_key(key, PARTITIONS),
            "bulk",
            records,
            None,
            self._timeline,
        )
        bulk.await_delivered()
        self._sent += len(records)

    def touch(self) -> None:
        """One more record of the first partition."""
        self.produce(range(1, 2))

    def committed(self) -> int:
        """Records of the input whose processing is committed."""
        return self._topics.committed(f"{GROUP}-input", PARTITIONS)

    def await_committed(self, records: int) -> None:
        """Wait until so many are."""
        self.await_(lambda: self.committed() >= records, f"{records} records to be committed")

    def compact(self, wanted: bool) -> None:
        """Have the positions of groups compacted at once and all the time."""
        if wanted:
            self._alter(ResourceType.TOPIC, OFFSETS, COMPACTED)
            self._alter(ResourceType.BROKER, "1", {"log.cleaner.backoff.ms": "200"})

    def _alter(self, kind: ResourceType, name: str, config: dict[str, str]) -> None:
        entries = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in config.items()
        ]
        admin = AdminClient(self._cluster.client())
        for future in admin.incremental_alter_configs(
            [ConfigResource(kind, name, incremental_configs=entries)]
        ).values():
            future.result(10)

    def held(self) -> list[str]:
        """What `__consumer_offsets` holds of the group, in its order: kinds of records, tombstones among them."""
        consumer = Consumer({**self._cluster.client(), "group.id": "looker", "enable.partition.eof": True})
        places = [TopicPartition(OFFSETS, number, 0) for number in self._topics.positions()]
        left, kinds = len(places), []
        try:
            consumer.assign(places)
            while left:
                for message in consumer.consume(1_000, timeout=0.5):
                    if message.error() is None:
                        kinds += kind_of(message)
                    elif message.error().code() == KafkaError._PARTITION_EOF:
                        left -= 1
                    else:
                        raise KafkaException(message.error())
        finally:
            consumer.close()
        return kinds

    def await_(self, condition: Callable[[], bool], what: str, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Wait for a condition."""
        if not self.holds_within(90, condition, meanwhile):
            sys.exit(f"Waited 90 s for {what}, in vain.")

    def holds_within(
        self, seconds: float, condition: Callable[[], bool], meanwhile: Callable[[], None] = lambda: None
    ) -> bool:
        """Whether a condition becomes true within some time; a broker that does not answer makes it untrue."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                if condition():
                    return True
                meanwhile()
            except KafkaException:
                pass
            time.sleep(0.5)
        return False


def kind_of(message: Message) -> list[str]:
    """What a record of `__consumer_offsets` is, if it is of the group: `position`, `classic` or `streams`."""
    key = message.key()
    version, size = struct.unpack_from(">hh", key)
    if key[4 : 4 + size] != GROUP.encode():
        return []
    return [KINDS.get(version, "streams")]


# The classic member is missed soon after its process was killed.
SHORT_SESSION = {"main.consumer.session.timeout.ms": "2000", "main.consumer.heartbeat.interval.ms": "200"}


if __name__ == "__main__":
    main()
