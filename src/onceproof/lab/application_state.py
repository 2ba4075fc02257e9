"""The stores of an application of people's own after it has closed, on disk, beside their changelogs."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from onceproof.lab.cluster import Cluster
from onceproof.lab.raw import offsets_of, raw_consumer, raw_records
from onceproof.lab.task_directory import StoreOnDisk, read_stores
from onceproof.model.release import Release
from onceproof.model.serde import value_text

CHANGELOG = "-changelog"
LATEST = b"\xff" * 8  # before the keys of the newest values of a versioned store
SHOWN = 3  # entries that are told
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
    """What each store holds beside what its changelog says up to the offset that it claims.

    Left out are stores in memory, without a changelog, versioned ones, and those that claim no offset.

    Args:
        cluster: that has the changelogs.
        release: of Kafka Streams, whose RocksDB reads the stores.
        application_id: of the application.
        topics: that exist.
        state: folder of the instances' state directories.
        held: by instance, the tasks that it had when it closed: `active` or `standby`.
        log: takes what the reading process logs.

    Returns:
        For each store: instance, type, store, partition, position, entries, wrong (how many), and the `first` of these
        as text.

    Raises:
        HarnessError: a store cannot be read.
        KafkaException: a changelog cannot be read.
    """
    logged = {topic for topic in topics if topic.startswith(f"{application_id}-") and topic.endswith(CHANGELOG)}
    changes = _changes(cluster, logged)
    rows = []
    for instance, tasks in held.items():
        directories = [path for task in tasks if (path := state / instance / application_id / task).is_dir()]
        if not directories:
            continue
        scratch = log.with_name("stores")
        for store in read_stores(cluster.installation, release, directories, scratch, log):
            topic = f"{application_id}-{store.store}{CHANGELOG}"
            if topic in logged and store.position is not None and not _is_versioned(store):
                wrong = differing(store, changes[topic, store.partition])
                rows.append(
                    {
                        "instance": instance,
                        "type": tasks[store.task],
                        "store": store.store,
                        "partition": store.partition,
                        "position": store.position,
                        "entries": len(store.entries),
                        "wrong": len(wrong),
                        "first": list(map(_told, wrong[:SHOWN])),
                    }
                )
    return rows


def _changes(cluster: Cluster, topics: Iterable[str]) -> Mapping[tuple[str, int], Sequence[Change]]:
    changes: dict[tuple[str, int], list[Change]] = defaultdict(list)
    if not (wanted := sorted(topics)):
        return changes
    consumer = raw_consumer(cluster)
    try:
        offsets = {place: low for topic in wanted for place, (low, _) in offsets_of(consumer, topic).items()}
        for message in raw_records(consumer, offsets):
            change = (message.offset(), message.key() or b"", message.value())
            changes[message.topic(), message.partition()].append(change)
    finally:
        consumer.close()
    return changes


def _is_versioned(store: StoreOnDisk) -> bool:
    return any(key.startswith(LATEST) for key in store.entries)


def differing(store: StoreOnDisk, changes: Iterable[Change]) -> list[Wrong]:
    """The entries in which a store differs from what its changelog folds to; tombstones delete.

    A store in segments drops old ones, as its changelog does, at another time: entries that only one of them has are
    no difference there.
    """
    folded = {key: value for offset, key, value in changes if offset < (store.position or 0)}
    expected = {key: value for key, value in folded.items() if value is not None}
    keys = expected.keys() & store.entries.keys() if store.segments else expected.keys() | store.entries.keys()
    wrong = ((key, expected.get(key), store.entries.get(key)) for key in sorted(keys))
    return [one for one in wrong if one[1] != one[2]]


def _told(wrong: Wrong) -> str:
    key, expected, observed = ("nothing" if data is None else _text(data) for data in wrong)
    return f"{key}: {observed}, where its changelog says {expected}"


def _text(data: bytes) -> str:
    return value_text(data.decode(errors="backslashreplace"))
