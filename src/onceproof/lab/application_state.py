"""The stores of a user application after it has closed, on disk, and their changelogs."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigEntry, ConfigResource, ResourceType

from onceproof.lab.cluster import Cluster
from onceproof.lab.raw import offsets_of, raw_consumer, raw_records
from onceproof.lab.task_directory import StoreOnDisk, read_stores
from onceproof.model.release import Release
from onceproof.model.serde import value_text

CHANGELOG = "-changelog"
VERSIONED = "min.compaction.lag.ms"  # what Kafka Streams sets for the changelogs of versioned stores alone
ANSWER_SECONDS = 10
TOPIC = ResourceType.TOPIC
SHOWN = 3  # entries that are shown
Change = tuple[int, bytes, bytes | None]  # offset, key, value
Wrong = tuple[bytes, bytes | None, bytes | None]  # key, value by the changelog, value in the store


def compare_state(
    cluster: Cluster,
    release: Release,
    application_id: str,
    topics: Iterable[str],
    state: Path,
    held: Mapping[str, Mapping[str, str]],
    log: Path,
) -> list[dict[str, Any]]:
    """The entries of each store that differ from what its changelog says up to the offset that it claims.

    Stores in memory are left out. Of each other one that cannot be compared it is said why: it has no changelog, or a
    versioned one, claims no offset, has column families that are not understood, or no key that the changelog has.

    Args:
        cluster: that has the changelogs.
        release: of Kafka Streams, whose RocksDB reads the stores.
        application_id: of the application.
        topics: that exist.
        state: folder of the instances' state directories.
        held: by instance, the tasks that it had when it closed: `active` or `standby`.
        log: takes what the reading process logs.

    Returns:
        For each store: instance, type, store, partition; and position, entries, wrong (how many), and the `first` of
        these as text; or why it is `unread`.

    Raises:
        HarnessError: a store cannot be read.
        KafkaException: a changelog cannot be read.
    """
    logged = {topic for topic in topics if topic.startswith(f"{application_id}-") and topic.endswith(CHANGELOG)}
    versioned = _find_versioned(cluster, logged)
    changes = _changes(cluster, logged - versioned)
    rows = []
    for instance, tasks in held.items():
        directories = [path for task in tasks if (path := state / instance / application_id / task).is_dir()]
        if not directories:
            continue
        scratch = log.with_name("stores")
        for store in read_stores(cluster.installation, release, directories, scratch, log):
            topic = f"{application_id}-{store.store}{CHANGELOG}"
            row = {
                "instance": instance,
                "type": tasks[store.task],
                "store": store.store,
                "partition": store.partition,
            }
            if topic not in logged:
                rows.append({**row, "unread": "it has no changelog"})
            elif topic in versioned:
                rows.append({**row, "unread": "its changelog is that of a versioned store, or it is not known"})
            elif isinstance(wrong := differing(store, changes[topic, store.partition]), str):
                rows.append({**row, "unread": wrong})
            else:
                found = {"position": store.position, "entries": len(store.entries), "wrong": len(wrong)}
                rows.append({**row, **found, "first": list(map(_wrong_text, wrong[:SHOWN]))})
    return rows


def _changes(cluster: Cluster, topics: Iterable[str]) -> Mapping[tuple[str, int], Sequence[Change]]:
    changes: dict[tuple[str, int], list[Change]] = defaultdict(list)
    if not (wanted := sorted(topics)):
        return changes
    consumer = raw_consumer(cluster)
    try:
        stretches = {place: stretch for topic in wanted for place, stretch in offsets_of(consumer, topic).items()}
        for message in raw_records(consumer, stretches):
            change = (message.offset(), message.key() or b"", message.value())
            changes[message.topic(), message.partition()].append(change)
    finally:
        consumer.close()
    return changes


def _find_versioned(cluster: Cluster, topics: Collection[str]) -> set[str]:
    """The changelogs of versioned stores, of which a fold says nothing; and those that brokers do not describe."""
    if not topics:
        return set()
    admin = AdminClient(cluster.client())  # it must live until it has answered
    asked = admin.describe_configs([ConfigResource(TOPIC, topic) for topic in topics])
    return {resource.name for resource, config in asked.items() if _is_versioned(config)}


def _is_versioned(config: Future[Mapping[str, ConfigEntry]]) -> bool:
    try:
        return int(config.result(ANSWER_SECONDS)[VERSIONED].value or 0) > 0
    except KafkaException as error:
        if error.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:  # on brokers that are not ours
            return True
        raise


def differing(store: StoreOnDisk, changes: Iterable[Change]) -> list[Wrong] | str:
    """The entries in which a store differs from what its changelog folds to; or why they cannot be compared.

    A store in segments drops old ones, as its changelog does, at another time: what only one of them has is no
    difference there. If they have nothing in common, the store writes its keys in a form of its own.
    """
    if store.unknown:
        return f"Onceproof does not understand its column families {', '.join(store.unknown)}"
    if store.position is None:
        return "it does not claim up to which offset it has its changelog"
    last = {key: value for offset, key, value in changes if offset < store.position}
    expected = {key: value for key, value in last.items() if value is not None}  # tombstones delete
    held = store.entries
    keys = expected.keys() & held.keys() if store.segments else expected.keys() | held.keys()
    if not keys and expected and held:
        return "it has none of the keys of its changelog, so it writes them in a form of its own"
    wrong = ((key, expected.get(key), held.get(key)) for key in sorted(keys))
    return [entry for entry in wrong if entry[1] != entry[2]]


def _wrong_text(wrong: Wrong) -> str:
    key, expected, observed = ("nothing" if data is None else _text(data) for data in wrong)
    return f"{key}: {observed}, where its changelog says {expected}"


def _text(data: bytes) -> str:
    return value_text(data.decode(errors="backslashreplace"))
