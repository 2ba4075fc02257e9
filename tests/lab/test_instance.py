"""What the death of a stream thread means."""

import re

import pytest

from onceproof.lab.instance import thread_died
from onceproof.model.errors import HarnessError, KafkaFailedError

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
    uncaught = {"exception": exception, "message": message, "causes": causes, "frame": None}
    died = thread_died({"source": "instance-1", "event": "uncaught", "thread": "a-StreamThread-1", **uncaught})
    assert type(died) is error
    assert re.search("set ONCEPROOF_HOME|onceproof preflight", str(died)) or error is KafkaFailedError
    assert "/r/state" not in str(died)
