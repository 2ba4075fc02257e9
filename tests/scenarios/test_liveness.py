"""The promise of every scenario: the application runs until it is asked to end."""

from onceproof.scenarios.liveness import compare_liveness

STARTED = {
    "t": 1,
    "source": "driver",
    "event": "instance",
    "name": "instance-1",
    "action": "started",
    "release": "4.3.1",
}
CLOSED = {"t": 9, "source": "driver", "event": "instance", "name": "instance-1", "action": "closed"}
UNCAUGHT = {
    "t": 5,
    "source": "instance-1",
    "event": "uncaught",
    "thread": "onceproof-t-instance-1-StreamThread-1",
    "exception": "org.apache.kafka.streams.errors.StreamsException",
    "message": "Deserialization exception handler is set to fail",
    "causes": ["SerializationException: Size of data received by IntegerDeserializer is not 4"],
    "frame": "IntegerDeserializer.deserialize(IntegerDeserializer.java:30)",
    "response": "SHUTDOWN_CLIENT",
}


def failure(anomaly):
    fields = {
        "anomaly": anomaly,
        "place": "instance-1",
        "expected": "12 records to be committed",
        "observed": "in vain",
    }
    return {"t": 6, "source": "driver", "event": "failure", **fields}


def test_each_start_is_looked_at():
    [row] = compare_liveness([STARTED, CLOSED])
    assert (row.anomaly, row.place, row.observed) == (None, "instance-1", "started on 4.3.1")


def test_a_dead_thread_is_reported_once_with_its_cause():
    rows = [row for row in compare_liveness([STARTED, UNCAUGHT, failure("thread-died")]) if row.anomaly]
    assert [(row.anomaly, row.place) for row in rows] == [("thread-died", "instance-1")]
    assert rows[0].observed == (
        "StreamThread-1 died of org.apache.kafka.streams.errors.StreamsException: Deserialization exception handler is "
        "set to fail, caused by SerializationException: Size of data received by IntegerDeserializer is not 4, at "
        "IntegerDeserializer.deserialize(IntegerDeserializer.java:30)"
    )
    [of_all] = compare_liveness([{**UNCAUGHT, "thread": "GlobalStreamThread"}])
    assert of_all.observed.startswith("GlobalStreamThread died of ")
    [bare] = compare_liveness([{**UNCAUGHT, "causes": [], "frame": None}])
    assert bare.observed.endswith("set to fail")


def test_the_end_of_the_drive_is_a_witness_with_what_was_awaited():
    [row] = compare_liveness([failure("stuck")])
    assert (row.anomaly, row.expected, row.observed) == ("stuck", "12 records to be committed", "in vain")
