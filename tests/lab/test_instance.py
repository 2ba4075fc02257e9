"""What the death of a stream thread means, and that an instance runs what it should."""

import re

import pytest

from onceproof.lab.instance import InstanceProcess, thread_died
from onceproof.model.errors import HarnessError, KafkaFailedError
from onceproof.model.release import Release
from onceproof.model.timeline import Timeline
from tests.conftest import HERE

MAPPED = "/r/state/tmp/librocksdbjni1.so: /r/state/tmp/librocksdbjni1.so: failed to map segment from shared object"


@pytest.mark.parametrize(
    ("exception", "message", "causes", "error"),
    [
        ("java.lang.UnsatisfiedLinkError", MAPPED, [], HarnessError),  # as seen on a file system mounted noexec
        ("o.a.k.StreamsException", "x: failed to map", ["java.lang.UnsatisfiedLinkError: x"], HarnessError),
        ("java.lang.NoClassDefFoundError", "Could not initialize class org.rocksdb.Options", [], HarnessError),
        ("o.a.k.TransactionalIdAuthorizationException", "Transactional Id authorization failed.", [], HarnessError),
        ("o.a.k.StreamsException", "x", ["o.a.k.SaslAuthenticationException: y"], HarnessError),
        ("java.lang.IllegalStateException", "There is no such task.", [], KafkaFailedError),
        ("java.lang.NoClassDefFoundError", "org/apache/kafka/X", [], KafkaFailedError),
    ],
)
def test_what_is_missing_around_it_is_no_failure_of_kafka(exception, message, causes, error):
    uncaught: dict[str, object] = {"exception": exception, "message": message, "causes": causes, "frame": None}
    died = thread_died({"source": "instance-1", "event": "uncaught", "thread": "a-StreamThread-1", **uncaught})
    assert type(died) is error
    assert re.search("set ONCEPROOF_HOME|onceproof system preflight", str(died)) or error is KafkaFailedError
    assert "/r/state" not in str(died)


@pytest.mark.parametrize(
    "said", ["Topics not co-partitioned", "Following topics do not have the same number of partitions"]
)
def test_topics_with_unequal_partition_counts_are_named(said):
    message = f"Invalid topology: stream-thread [a-consumer] {said}: [{{left=2, right=3}}]"
    uncaught: dict[str, object] = {
        "exception": "o.a.k.TopologyException",
        "message": message,
        "causes": [],
        "frame": None,
    }
    died = thread_died({"source": "instance-1", "event": "uncaught", "thread": "a", **uncaught})
    assert isinstance(died, HarnessError)
    assert "equally many partitions (left=2, right=3): correct `partitions`" in str(died)


@pytest.mark.parametrize(
    ("expected", "error"),
    [
        ({}, None),
        ({"streams_commit": "ab12cd4000000000"}, r"loaded kafka-streams 3\.4\.1 \(commit ab12cd4000000000\)"),
        ({"streams_commit": None}, r"\(commit unknown\)"),
        ({"streams_version": "3.4.0"}, r"loaded kafka-streams 3\.4\.0"),
        ({"clients_version": "3.4.0"}, r"kafka-clients 3\.4\.0, but the cell asks for 3\.4\.1@ab12cd3"),
    ],
)
def test_what_loaded_must_be_the_build_of_the_cell(expected, error, tmp_path):
    instance = InstanceProcess(
        "instance-1", Release.parse("3.4.1@ab12cd3"), tmp_path / "log", Timeline(tmp_path / "timeline"), HERE
    )
    commits = {"streams_commit": "ab12cd3f00000000", "clients_commit": "8a516edc2755df89"}
    hello = {"streams_version": "3.4.1", "clients_version": "3.4.1", **commits, "java": "17", **expected}
    instance.last["hello"] = {"event": "hello", **hello}
    if error is None:
        assert instance.await_hello() == {**hello, "release": "3.4.1@ab12cd3", "plant": None}
        return
    with pytest.raises(HarnessError, match=error):
        instance.await_hello()
