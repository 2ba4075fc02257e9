"""What the topics that Kafka Streams makes for itself must be, on what brokers said of them in real trials."""

import pytest

from onceproof.model.anomaly import Comparison
from onceproof.scenarios.internal_topics import (
    PROMISE,
    compare_internal_topics,
    keep_joined,
    keep_versions,
    keep_windows,
)

TABLE = {"cleanup.policy": "compact", "retention.ms": "604800000", "min.compaction.lag.ms": "0"}
PASSED_ON = {"cleanup.policy": "delete", "retention.ms": "-1", "min.compaction.lag.ms": "0"}
WINDOWS = {"cleanup.policy": "compact,delete", "retention.ms": "86400600", "min.compaction.lag.ms": "0"}
JOINED = {"cleanup.policy": "delete", "retention.ms": "86400220", "min.compaction.lag.ms": "0"}
VERSIONS = {"cleanup.policy": "compact", "retention.ms": "604800000", "min.compaction.lag.ms": "86406000"}
# As Kafka Streams 4.4.0 made them on brokers 4.4.0 (windows, stream-join, table-join, as-of-join, foreign-key-join).
FOUND = {
    "left-changelog": TABLE,
    "groups-repartition": PASSED_ON,
    "KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000014-topic": PASSED_ON,
    "windowed-sums-changelog": WINDOWS,
    "windowed-sums-held-store-changelog": TABLE,
    "KSTREAM-OUTERTHIS-0000000006-store-changelog": JOINED,
    "KSTREAM-OUTERSHARED-0000000006-store-changelog": TABLE,
    "versions-changelog": VERSIONS,
}
KEPT = {
    "windowed-sums-changelog": keep_windows(600),
    "KSTREAM-.*(THIS|OTHER)-.*": keep_joined(220),
    "versions-changelog": keep_versions(6_000),
}


def compared(**changed: dict[str, str | int]) -> list[Comparison]:
    topics = {name: {"partitions": 4, **config} for name, config in FOUND.items()}
    for name, fields in changed.items():
        topics[name] = topics[name] | fields
    event = {"t": 1, "source": "driver", "event": PROMISE, "topics": topics}
    return list(compare_internal_topics([event], 4, KEPT))


def test_each_topic_is_compared_and_those_of_a_release_are_right():
    reported = compared()
    assert [c.place for c in reported] == sorted(FOUND)
    assert not [c for c in reported if c.anomaly]


@pytest.mark.parametrize(
    ("topic", "fields", "expected", "observed"),
    [
        (
            "left-changelog",
            {"cleanup.policy": "delete"},
            "partitions=4, cleanup.policy=compact",
            "partitions=4, cleanup.policy=delete",
        ),
        (
            "left-changelog",
            {"partitions": 1},
            "partitions=4, cleanup.policy=compact",
            "partitions=1, cleanup.policy=compact",
        ),
        (
            "windowed-sums-changelog",
            {"retention.ms": "600"},
            "partitions=4, cleanup.policy=compact,delete, retention.ms=86400600",
            "partitions=4, cleanup.policy=compact,delete, retention.ms=600",
        ),
        (
            "groups-repartition",
            {"retention.ms": "604800000"},
            "partitions=4, cleanup.policy=delete, retention.ms=-1",
            "partitions=4, cleanup.policy=delete, retention.ms=604800000",
        ),
        (
            "versions-changelog",
            {"min.compaction.lag.ms": "0"},
            "partitions=4, cleanup.policy=compact, min.compaction.lag.ms=86406000",
            "partitions=4, cleanup.policy=compact, min.compaction.lag.ms=0",
        ),
    ],
)
def test_a_topic_that_is_not_as_it_must_be_is_found_and_no_other(topic, fields, expected, observed):
    [wrong] = [c for c in compared(**{topic: fields}) if c.anomaly]
    assert (wrong.anomaly, wrong.place) == ("wrong-topic", topic)
    assert (wrong.expected, wrong.observed) == (expected, observed)


def test_a_topology_without_such_topics_keeps_the_promise():
    event = {"t": 1, "source": "driver", "event": PROMISE, "topics": {}}
    [reported] = compare_internal_topics([event], 4, {})
    assert (reported.anomaly, reported.place) == (None, "no internal topic")


def test_a_drive_that_failed_before_the_check_reports_nothing():
    assert not list(compare_internal_topics([], 4, {}))
