"""A promise of every scenario: the topics that Kafka Streams makes for itself keep what they must.

A changelog that deletes by time loses the state of its store after a week. One that only compacts never forgets old
windows. A repartition topic with a retention loses records that were not processed yet. Under `group.protocol=streams`
brokers create these topics, so what is asked for may be lost on the way.

Sources: Kafka Streams' developer guide, "Manage Kafka Streams application topics"; KIP-889 of versioned stores;
`InternalTopicConfig` and its subclasses.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from onceproof.model.anomaly import Comparison
from onceproof.model.timeline import Event

PROMISE = "internal-topics"  # and the event with `partitions` and the configuration of each of them, by name
DAY = 86_400_000  # ms; windowstore.changelog.additional.retention.ms
Kept = Mapping[str, str]  # what a topic's configuration must be

TABLE: Kept = {"cleanup.policy": "compact"}
PASSED_ON: Kept = {"cleanup.policy": "delete", "retention.ms": "-1"}  # purged when it is committed


def keep_windows(retention: int) -> Kept:
    """The changelog of windows or sessions that a store keeps for so many ms."""
    return {"cleanup.policy": "compact,delete", "retention.ms": str(retention + DAY)}


def keep_joined(retention: int) -> Kept:
    """The changelog of the records of a stream that a join keeps for so many ms; several have one key."""
    return {"cleanup.policy": "delete", "retention.ms": str(retention + DAY)}


def keep_versions(history: int) -> Kept:
    """The changelog of a versioned store that keeps so many ms of its history."""
    return {"cleanup.policy": "compact", "min.compaction.lag.ms": str(history + DAY)}


def compare_internal_topics(events: Sequence[Event], partitions: int, kept: Mapping[str, Kept]) -> Iterator[Comparison]:
    """One comparison for each internal topic, or one for all, if there is none; nothing if the drive failed before.

    Args:
        events: of the trial.
        partitions: of its input, and so of each task's topics.
        kept: of changelogs that are no tables', by a regular expression of the name.
    """
    described = next((event["topics"] for event in events if event["event"] == PROMISE), None)
    if described is None:
        return
    if not described:
        yield Comparison(PROMISE, None, 0, None, "no internal topic", "as documented", "as documented")
    for name, found in sorted(described.items()):
        due: dict[str, int | str] = {"partitions": partitions, **_due(name, kept)}
        there = {key: found[key] for key in due}
        anomaly = None if there == due else "wrong-topic"
        yield Comparison(PROMISE, anomaly, 0, None, name, _text(due), _text(there))


def _due(name: str, kept: Mapping[str, Kept]) -> Kept:
    if not name.endswith("-changelog"):
        return PASSED_ON
    return next((config for pattern, config in kept.items() if re.fullmatch(pattern, name)), TABLE)


def _text(config: Mapping[str, int | str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in config.items())
