"""Marks of a trial, on lines as Kafka Streams 3.4.0 and 4.3.1 wrote them."""

import pytest

from onceproof.model.coverage import LOGGED, name_reached, read_logged, read_timeline, spans

THREAD = "[a-instance-1-StreamThread-1]"
LINES = {
    "aborted": "INFO [a] [Producer clientId=a] Aborting incomplete transaction (org.apache.kafka.clients.producer.KafkaProducer)",
    "checkpoint": "INFO [a] stream-thread [a] standby-task [0_1] State store ids initialized from checkpoint with offset 3764 at changelog a-ids-changelog-1",
    "closed": "INFO [a] stream-thread [a] task [0_0] Closed clean (org.apache.kafka.streams.processor.internals.StreamTask)",
    "corrupted": "WARN [a] stream-thread [a] Detected the states of tasks [0_1, 0_0] are corrupted. Will close the task as dirty and re-create",
    "dirty": "INFO [a] stream-thread [a] standby-task [0_1] Closed dirty (org.apache.kafka.streams.processor.internals.StandbyTask)",
    "epoch": "org.apache.kafka.common.errors.InvalidProducerEpochException: Producer attempted to produce with an old epoch.",
    "failed": "ERROR [a] stream-thread [a] Encountered the following exception during processing and the thread is going to shut down:",
    "fenced": "WARN [a] stream-thread [a] Detected that the thread is being fenced. This implies that this thread missed a rebalance",
    "follow-up": "INFO [a] stream-thread [a] Triggering the followup rebalance scheduled for 2026-11-23T04:23:23,100 Z.",
    "from-beginning": "INFO [a] stream-thread [a] stream-task [0_0] State store ids did not find checkpoint offset, hence would default to the starting offset at changelog a-ids-changelog-0",
    "lost": "INFO [a] stream-thread [a] at state RUNNING: partitions [a-input-1] lost due to missed rebalance.",
    "migrated": "org.apache.kafka.streams.errors.TaskMigratedException: Error encountered sending record to topic a-output for task 0_0",
    "not-locked": "Exception: standby-task [0_0] Failed to lock the state directory for task 0_0",
    "rebalance": "INFO [a] stream-client [a] State transition from RUNNING to REBALANCING (org.apache.kafka.streams.KafkaStreams)",
    "recycled": "INFO [a] stream-thread [a] task [0_1] Closed clean and recycled state (org.apache.kafka.streams.processor.internals.StreamTask)",
    "restored": "INFO [a] stream-thread [a] Finished restoring changelog a-ids-changelog-0 to store ids with a total number of 3 records",
    "revoked": "INFO [a] [Consumer clientId=a] Revoke previously assigned partitions [a-input-1]",
    "timed-out": "INFO [a] [Producer clientId=a] Disconnecting from node 1 due to request timeout. (a)",
}  # fmt: skip


def test_each_mark_has_its_line():
    assert LINES.keys() == LOGGED.keys()


@pytest.mark.parametrize("name", LINES)
def test_a_line_leaves_its_mark_and_no_other(name):
    assert list(read_logged([f"[2026-11-23T04:18:58.405+0000] {LINES[name]}"])) == [(1795407538405, name)]


def test_a_line_without_a_time_is_of_the_one_before():
    lines = [f"[2026-11-23T04:18:58.405+0000] INFO {THREAD} anything", LINES["migrated"], "	at somewhere"]
    assert list(read_logged(lines)) == [(1795407538405, "migrated")]


def assignment(t, active=(), standby=(), source="instance-1", thread="T1"):
    threads = [{"thread": thread, "active": list(active), "standby": list(standby)}]
    return {"t": t, "source": source, "event": "assignment", "threads": threads}


def test_tasks_are_promoted_demoted_and_taken_away():
    events = [
        assignment(1, active=["0_0", "0_1"]),
        assignment(2),  # between two assignments
        assignment(3, active=["0_0"], standby=["0_1"]),
        assignment(4, standby=["0_1"]),
        assignment(5, active=["0_1"]),
        assignment(6, active=["0_1"], source="instance-2"),
    ]
    assert list(read_timeline(events)) == [(3, "demoted"), (4, "taken-away"), (5, "promoted")]


def test_what_was_done_to_instances_leaves_marks():
    def instance(t, action):
        return {"t": t, "source": "driver", "event": "instance", "name": "instance-1", "action": action}

    fault = {"source": "driver", "event": "fault", "name": "pause"}
    events = [
        instance(1, "started"),
        {**fault, "t": 2, "action": "applied"},
        instance(3, "killed"),
        instance(4, "started"),
        {**fault, "t": 5, "action": "healed"},
        {**fault, "t": 6, "action": "observed"},
        {"t": 7, "source": "driver", "event": "step", "action": "add-thread", "instance": "instance-1"},
    ]
    reported = ["instance-started", "pause", "instance-killed", "instance-restarted", "pause-over", "add-thread"]
    assert [name for _, name in read_timeline(events)] == reported


def test_what_comes_when_all_is_drained_does_not_count():
    events = [
        {"t": 1795407538000, "source": "driver", "event": "phase", "name": "drain"},
        {"t": 1795407538405, "source": "driver", "event": "drained", "committed": 3},
    ]
    lines = [
        f"[2026-11-23T04:18:58.{ms}+0000] {LINES[name]}"
        for ms, name in (("100", "recycled"), ("405", "revoked"), ("406", "closed"), ("500", "recycled"))
    ]
    assert spans(events, [lines]) == {"recycled": (100, 100), "revoked": (405, 405)}


def test_what_comes_between_two_drains_counts():
    events = [
        {"t": t, "source": "driver", "event": name, "name": "x", "action": "x"}
        for t, name in ((0, "phase"), (1, "drained"), (2, "step"), (3, "drained"))
    ]
    assert spans(events, []) == {"x": (2, 2)}


def test_a_pair_is_reached_if_one_begins_before_the_other_ends():
    assert name_reached({"a": (1, 5), "b": (3, 3), "c": (5, 5)}) == {
        "a",
        "b",
        "c",
        "a > b",
        "b > a",
        "a > c",
        "b > c",
        "a > a",
    }
    assert name_reached({}) == frozenset()
