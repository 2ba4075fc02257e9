"""Which witnesses a known issue explains: by what its mechanism can do, not by their name alone."""

from dataclasses import replace

import pytest

from onceproof.model.anomaly import Witness
from onceproof.model.explaining import Explanation, Scene, count_unexplained
from onceproof.model.known_issues import registry

CRASH = {
    "t": 5,
    "source": "driver",
    "event": "crash",
    "open": {
        "input": {"0": [3_000, 20_000]},
        "output": {"0": [3_010, None]},
        "ids-changelog": {"0": [3_010, None]},
        "__consumer_offsets": {"3": [13, None]},
    },
}
KEYS = {0: 7, 2_999: 8, 3_000: 9, 19_999: 10, 20_000: 11}  # by offset of the input


def scene(*events, **parameters):
    return Scene(events, lambda: [(0, offset, key, offset % 10, offset) for offset, key in KEYS.items()], parameters)


def witness(anomaly, *places, key=None, partition=0, expected="", observed=""):
    return Witness(anomaly, partition, key, (), places, str(expected), str(observed))


def explained(witness_, scene_, issue, variant="DEFAULT_CONFIG", scenario=None):
    """Whether a row explains a witness in a variant of a scenario, its first one if none is named."""
    [row] = [row for row in registry().issues if row.key == issue]
    return not count_unexplained([witness_], row.explanations(scenario or next(iter(row.variants)), variant), scene_)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(witness("lost-record", "input/0@3000", key=9), True, id="of the open transaction"),
        pytest.param(witness("lost-record", "input/0@2999", key=8), False, id="committed before the kill"),
        pytest.param(witness("lost-record", "input/0@20000", key=11), False, id="delivered after the restart"),
        pytest.param(witness("uncommitted-state", "seen-contents/0@4", key=10), True, id="by its key"),
        pytest.param(witness("uncommitted-state", "seen-contents/0@4", key=8), False, id="a committed key"),
        pytest.param(witness("uncommitted-state", "counter-changelog/0@2999", key=0), True, id="the counter"),
        pytest.param(witness("duplicate-id", "output/0@70", "output/0@3010"), True, id="an ID that was given again"),
        pytest.param(witness("duplicate-id", "output/0@70", "output/0@3009"), False, id="both before the kill"),
        pytest.param(witness("stale-checkpoint", "task 0_0, .checkpoint"), True, id="the checkpoint"),
        pytest.param(
            witness("torn-transaction", "__consumer_offsets/3@13", key=0), True, id="positions behind the kill"
        ),
        pytest.param(witness("torn-transaction", "__consumer_offsets/3@12", key=0), False, id="positions before it"),
        pytest.param(witness("lost-state", "seen-changelog/0@3", key=9), False, id="another anomaly"),
        pytest.param(witness("lost-record", "input/1@3000", key=70, partition=1), False, id="another partition"),
    ],
)
def test_a_kill_explains_what_was_open_then(seen, expected):
    assert explained(seen, scene(CRASH), "KAFKA-20685") is expected


def test_without_a_kill_it_explains_nothing():
    for anomaly in ("lost-record", "stale-checkpoint", "uncommitted-state"):
        assert not explained(witness(anomaly, "input/0@3000", key=9), scene(), "KAFKA-20685")


def assigned(t, active, standby):
    thread = {"thread": "a-instance-1-StreamThread-1", "active": active, "standby": standby}
    return {"t": t, "source": "instance-1", "event": "assignment", "threads": [thread]}


RETURNED = [assigned(1, ["0_0", "0_1"], []), assigned(2, ["0_0"], ["0_1"]), assigned(3, ["0_0", "0_1"], [])]


def test_a_stale_cache_explains_only_the_task_that_came_back():
    assert explained(witness("stale-read", "output/1@5", key=1, partition=1), scene(*RETURNED), "KAFKA-14624")
    assert not explained(witness("stale-read", "output/0@5", key=1, partition=0), scene(*RETURNED), "KAFKA-14624")
    assert not explained(witness("stale-read", "output/1@5", key=1, partition=1), scene(), "KAFKA-14624")


def test_a_stale_counter_explains_its_own_end_and_no_lost_id():
    counter = ("changelog-output-mismatch", "counter-changelog/1@6", "output/1@5")
    assert explained(witness(*counter, key=0, partition=1), scene(*RETURNED), "KAFKA-14172")
    assert not explained(witness(*counter, key=0, partition=1), scene(), "KAFKA-14172")
    assert not explained(witness(*counter, key=0, partition=0), scene(*RETURNED), "KAFKA-14172")
    of_an_id = witness("changelog-output-mismatch", "ids-changelog/1@6", "output/1@5", key=2, partition=1)
    assert not explained(of_an_id, scene(*RETURNED), "KAFKA-14172")


def test_a_throttle_explains_only_what_a_delayed_request_can_do():
    aborted = witness("aborted-by-throttle", "values-changelog/0@5")
    held = {"t": 1, "source": "driver", "event": "held", "request": "AddOffsetsToTxn", "ms": 30_000}
    assert explained(aborted, scene(held), "KAFKA-17455")
    assert not explained(aborted, scene({"t": 1, "source": "i", "event": "throttle", "producers": []}), "KAFKA-17455")


def test_a_lock_that_is_never_released_explains_a_stuck_trial():
    stuck = witness("stuck", "instance-1, instance-2", observed="instance-1 RUNNING, instance-2 REBALANCING")
    lagging = replace(stuck, observed="instance-1 RUNNING, instance-2 RUNNING")
    locked = {"t": 1, "source": "driver", "event": "locked", "instance": "instance-2", "task": "0_0"}
    assert explained(stuck, scene(locked), "KAFKA-19510", "NO_LAG_ACCEPTABLE")
    assert not explained(stuck, scene(), "KAFKA-19510", "NO_LAG_ACCEPTABLE")
    assert not explained(lagging, scene(locked), "KAFKA-19510", "NO_LAG_ACCEPTABLE")


def test_who_is_fenced_while_it_closes_stays_a_member():
    left = "instance-2, which left its group during a rebalance"
    stays = witness("wrong-membership", left, observed="others have 0_1, 0_3")
    issue = "KIP-1153 (no JIRA)"
    assert explained(stays, scene(held=15), issue, "REBALANCING_FENCED")
    assert not explained(stays, scene(held=0), issue, "REBALANCING_FENCED")
    assert not explained(stays, scene(held=15), issue, "REBALANCING")
    assert not explained(replace(stays, anomaly="wrong-end"), scene(held=15), issue, "REBALANCING_FENCED")


AWAITS_ITSELF = {"t": 1, "source": "driver", "event": "awaits-itself", "instance": "instance-2"}


@pytest.mark.parametrize(
    ("anomaly", "observed"),
    [
        ("wrong-end", "ended not in time"),
        ("unclean-close", "exit code 0, its threads did not end in time; it was last PENDING_SHUTDOWN"),
    ],
)
def test_who_closes_amid_a_rebalance_waits_for_its_own_member(anomaly, observed):
    late = witness(anomaly, "instance-2", observed=observed)
    other = replace(late, observed="exit code 1, it said nothing; it was last RUNNING")
    issue = "close amid a rebalance (no JIRA)"
    assert explained(late, scene(AWAITS_ITSELF, rebalancing=True), issue, None)
    assert not explained(late, scene(rebalancing=True), issue, None)
    assert not explained(late, scene(AWAITS_ITSELF, rebalancing=False), issue, None)
    assert not explained(other, scene(AWAITS_ITSELF, rebalancing=True), issue, None)
    assert not explained(replace(late, anomaly="lost-record"), scene(AWAITS_ITSELF, rebalancing=True), issue, None)


@pytest.mark.parametrize(
    ("observed", "expected"),
    [
        ("others have 0_1, 0_3", True),
        ("others have none of its tasks", True),
        ("others have 0_0, 0_1, 0_2, 0_3", False),
    ],
)
def test_who_waits_for_its_own_member_has_not_left(observed, expected):
    stays = witness("wrong-membership", "instance-2, which left its group during a rebalance", observed=observed)
    issue, variant = "close amid a rebalance (no JIRA)", "REBALANCING_THREADS"
    assert explained(stays, scene(AWAITS_ITSELF, rebalancing=True), issue, variant) is expected
    assert not explained(stays, scene(rebalancing=True), issue, variant)
    assert not explained(stays, scene(AWAITS_ITSELF, rebalancing=True), issue, "REBALANCING_STAYING")


def test_who_is_to_stay_leaves_under_the_streams_protocol():
    left = witness("wrong-membership", "instance-2, which stayed in its group", observed="others have 0_1, 0_3")
    by_broker = scene(**{"group.protocol": "streams"})
    assert explained(left, by_broker, "KAFKA-20167", "STREAMS_PROTOCOL_STAYING")
    assert not explained(left, by_broker, "KAFKA-20167", "STREAMS_PROTOCOL")
    assert not explained(replace(left, anomaly="lost-record"), by_broker, "KAFKA-20167", "STREAMS_PROTOCOL_STAYING")


def test_a_store_that_is_never_opened_explains_a_stuck_trial():
    stuck = witness("stuck", "instance-1", observed="instance-1 REBALANCING 0 processed")
    unopened = {"t": 1, "source": "driver", "event": "unopened", "instance": "instance-1", "store": "seen"}
    assert explained(stuck, scene(unopened), "KIP-892 (no JIRA)", "TRANSACTIONAL_SWITCHED_ON")
    assert not explained(stuck, scene(), "KIP-892 (no JIRA)", "TRANSACTIONAL_SWITCHED_ON")
    assert not explained(stuck, scene(unopened), "KIP-892 (no JIRA)", "TRANSACTIONAL")


@pytest.mark.parametrize(
    ("observed", "expected"),
    [
        pytest.param("committed, 72 effects, 72 foreign", True, id="no position is committed with them"),
        pytest.param("committed, 1 effect, 1 foreign", True, id="nor with one"),
        pytest.param("committed, 2629 effects, 1910 missing", True, id="the position that follows"),
        pytest.param("nothing", True, id="it follows alone"),
        pytest.param("committed, 500 effects, 1 missing, 1 foreign", False, id="a position that is one too low"),
        pytest.param("committed, 500 effects, 1 foreign", False, id="the first of these"),
        pytest.param("outside", False, id="in no transaction"),
        pytest.param("aborted", False, id="parts end in different ways"),
    ],
)
def test_a_revocation_explains_transactions_without_positions(observed, expected):
    torn = witness("torn-transaction", "ids-changelog/0@15928", key=27, observed=observed)
    assert explained(torn, scene(*RETURNED), "KAFKA-18943", "CACHING_DISABLED") is expected
    of_the_revoked = replace(torn, partition=1)
    assert not explained(of_the_revoked, scene(*RETURNED), "KAFKA-18943", "CACHING_DISABLED")
    assert not explained(torn, scene(RETURNED[0]), "KAFKA-18943", "CACHING_DISABLED")
    assert not explained(replace(torn, anomaly="lost-record"), scene(*RETURNED), "KAFKA-18943", "CACHING_DISABLED")


def struck(name, on="a", begin=0):
    open_ = {"input": {"0": [begin, None], "1": [begin, None]}}
    return {"t": 5, "source": "driver", "event": "fault", "name": name, "action": "applied", "on": on, "open": open_}


HELD = [{**assigned(1, ["0_0"], []), "source": "a"}, {**assigned(1, ["0_1"], []), "source": "b"}]


def test_a_fault_explains_only_what_it_can_do():
    given_twice = witness("duplicate-id", "output/0@70", "output/0@3010")

    def known(fault, seen=given_twice, **more):
        return explained(seen, scene(*HELD, {**struck(fault), **more}), "KAFKA-20685", None, "enumerator")

    assert [known(f) for f in ("instance-kill", "disk-full", "bounce", "pause")] == [True, True, False, False]
    assert not known("instance-kill", action="healed")
    assert not known("instance-kill", on="b")  # which had another task
    assert not known("instance-kill", replace(given_twice, partition=1))


@pytest.mark.parametrize(
    ("scenario", "anomaly", "key", "partition", "begin", "expected"),
    [
        pytest.param("windows", "lost-record", 9, 0, 3_000, True, id="it came in the open transaction"),
        pytest.param("windows", "lost-record", 8, 0, 3_000, False, id="it had been committed"),
        pytest.param("windows", "lost-record", 9, 1, 3_000, False, id="it was another's task"),
        pytest.param("as-of-join", "wrong-value", 8, 0, 3_000, False, id="a value that had been committed"),
        pytest.param("punctuators", "unreleased", 8, 0, 3_000, True, id="committed, and about to come out"),
        pytest.param("punctuators", "unreleased", 8, 1, 3_000, False, id="in the buffer of another's task"),
        pytest.param("stream-join", "lost-record", 9, 0, 3_000, False, id="another anomaly"),
    ],
)
def test_a_kill_explains_only_what_its_tasks_had_not_committed(scenario, anomaly, key, partition, begin, expected):
    seen = witness(anomaly, f"input/{partition}@{begin - 1}", key=key, partition=partition)
    there = scene(*HELD, struck("instance-kill", begin=begin))
    assert explained(seen, there, "KAFKA-20685", None, scenario) is expected


@pytest.mark.parametrize(
    ("anomaly", "observed", "expected"),
    [
        ("thread-died", "T-1 died of StreamsException: x, caused by InvalidProducerEpochException: old epoch", True),
        (
            "thread-died",
            "T-1 died of TimeoutException: Timeout expired after 3 ms while awaiting AddOffsetsToTxn",
            True,
        ),
        ("thread-died", "T-1 died of java.lang.NullPointerException: null", False),
        ("thread-died", "T-1 died of ProcessorStateException: Error opening store values", False),
    ],
)
def test_a_throttle_explains_a_death_by_an_aborted_transaction(anomaly, observed, expected):
    held = {"t": 1, "source": "driver", "event": "held", "request": "AddOffsetsToTxn", "ms": 30_000}
    assert explained(witness(anomaly, "instance-1", observed=observed), scene(held), "KAFKA-17455") is expected


def halt(halted):
    """A trial in which an instance ended while it deleted a segment, or did not."""
    return scene(halted=True) if halted else scene()


OPENING = (
    "org.apache.kafka.streams.errors.ProcessorStateException: Error opening store windowed-sums.60000 at location /a"
)
GONE = "caused by org.rocksdb.RocksDBException: While opening a file: /a/MANIFEST-000005: No such file or directory"


@pytest.mark.parametrize(
    ("observed", "halted", "expected"),
    [
        (f"KafkaStreams.start died of {OPENING}, {GONE}, at org.rocksdb.RocksDB.open(Native Method)", True, True),
        (f"KafkaStreams.start died of {OPENING}, caused by X: wal_dir contains existing log file: 4.log", True, True),
        (f"KafkaStreams.start died of {OPENING}, {GONE}", False, False),
        (f"StreamThread-1 died of {OPENING}, {GONE}", True, False),
        (f"KafkaStreams.start died of {OPENING}, caused by X: lock hold by current process", True, False),
        ("KafkaStreams.start died of ProcessorStateException: base state directory /a: No such file", True, False),
    ],
)
def test_a_half_deleted_store_explains_that_it_does_not_open(observed, halted, expected):
    seen, key = witness("thread-died", "instance-1", observed=observed), "KIP-1035, half-deleted store (no JIRA)"
    assert explained(seen, halt(halted), key, "HALTED", "windows") is expected
    if halted:  # a kill may fall there by chance
        assert explained(seen, scene(struck("instance-kill")), key, "SLIDING", "windows") is expected


RESTORING = (
    "StreamThread-1 died of org.apache.kafka.streams.errors.ProcessorStateException: stream-thread [a] stream-task [0_2] "
    "Exception caught while trying to restore state from app-windowed-sums-changelog-2"
)
NO_ACCESSOR = 'caused by java.lang.NullPointerException: Cannot invoke "a.addToBatch(byte[])" because "this.b" is null'
BATCH = "at org.apache.kafka.streams.state.internals.RocksDBStore.addToBatch(RocksDBStore.java:650)"


@pytest.mark.parametrize(
    ("observed", "halted", "expected"),
    [
        (f"{RESTORING}, {NO_ACCESSOR}, {BATCH}", True, True),
        (f"{RESTORING}, {NO_ACCESSOR}, {BATCH}", False, False),
        (f"{RESTORING}, {NO_ACCESSOR}, at org.apache.kafka.streams.state.internals.RocksDBStore.put(A:1)", True, False),
        (f"{RESTORING}, caused by org.rocksdb.RocksDBException: IO error, {BATCH}", True, False),
        (f"KafkaStreams.start died of {OPENING}, {GONE}", True, True),
    ],
)
def test_a_half_deleted_segment_explains_a_failed_restoration(observed, halted, expected):
    seen, key = witness("thread-died", "instance-1", observed=observed), "half-deleted segment (no JIRA)"
    assert explained(seen, halt(halted), key, "HALTED_AT_LEAST_ONCE", "windows") is expected


def test_a_window_repeats_after_late_records_and_a_restoration():
    key, again, there = "KAFKA-20099 (documented)", witness("duplicate-output", "output/0@70", key=7), restore(0, 9)
    assert explained(again, scene(there, late=0.9), key, "LATE")
    assert not explained(again, scene(there, late=0.0), key, "LATE")
    assert not explained(again, scene(restore(1, 9), late=0.9), key, "LATE")
    assert not explained(again, scene(struck("instance-kill")), key, None)
    rows = next(row for row in registry().issues if row.key == key).explains
    all_windows = [replace(again, key=number) for number in range(600)]
    assert count_unexplained(all_windows, rows, scene(there, late=0.9)) == {"duplicate-output": 600}


@pytest.mark.parametrize(
    ("issue", "variant", "event", "message"),
    [
        (
            "KAFKA-20731",
            "TOPOLOGY_PAUSED",
            "resumed",
            "The changelog reader is not restoring active tasks (is STANDBY_",
        ),
        ("KAFKA-20808", "SESSION", "crash", "Store seen.1795415400000 is currently closed"),
        ("KAFKA-21034", "KILLED", "crash", "Tasks [-1_-1] are corrupted and hence need to be re-initialized"),
        ("KIP-889 (no JIRA)", "RESTARTED", "reopened", "Timestamp is too large to be found in this segment."),
    ],
)
def test_a_thread_that_dies_of_something_else_is_not_explained(issue, variant, event, message):
    there = scene({"t": 1, "source": "driver", "event": event})
    assert explained(witness("thread-died", "instance-1", observed=f"T-1 died of X: {message}"), there, issue, variant)
    other = witness("thread-died", "instance-1", observed="T-1 died of java.lang.NullPointerException: null")
    assert not explained(other, there, issue, variant)


@pytest.mark.parametrize(
    ("issue", "scenario", "fault", "message", "other"),
    [
        (
            "KAFKA-20808",
            "windows",
            "instance-kill",
            "Store windowed-sums.1795562460000 is currently closed",
            "Store windowed-sums is currently closed",
        ),
        (
            "KAFKA-20827",
            "windows",
            "instance-kill",
            "Attempted to create an standby task that we already own: 0_1",
            "Attempted to create an active task while we already own its standby: 0_1",
        ),
        (
            "KAFKA-20764",
            "multirunner",
            "topology-pause",
            "Duplicate key 0_1 (attempted merging values ReadOnlyTask and ReadOnlyTask)",
            "Duplicate key counts (attempted merging values 1 and 2)",
        ),
        (
            "KAFKA-16876",
            "multirunner",
            "pause",
            "Illegal state RUNNING while closing active task 0_1",
            "Illegal state RESTORING while closing active task 0_1",
        ),
    ],
)
def test_a_death_is_explained_by_the_words_of_the_code(issue, scenario, fault, message, other):
    reported = [
        f"StreamThread-1 died of X: y, caused by java.lang.IllegalStateException: {m}" for m in (message, other)
    ]
    there = scene(struck(fault))
    assert [explained(witness("thread-died", "a", observed=t), there, issue, None, scenario) for t in reported] == [
        True,
        False,
    ]


def test_an_expired_batch_explains_records_that_were_not_sent():
    key, timeout = "CVE-2026-35554", {"t": 1, "source": "driver", "event": "timeout"}
    for anomaly, expected in (("corrupt-record", True), ("unexpected-record", True), ("lost-record", False)):
        assert explained(witness(anomaly, "output/0@7"), scene(timeout), key, "TIMED_OUT") is expected
        assert not explained(witness(anomaly, "output/0@7"), scene(), key, "TIMED_OUT")


def restore(partition, end):
    return {"t": 3, "source": "i", "event": "restore", "store": "s", "partition": partition, "from": 0, "end": end}


# Offset, value and time of the records of key 1: a version's number is its value below 0, above 0 it asks, 0 deletes.
VERSIONS = [
    (0, -1, 100),
    (1, -2, 200),
    (2, 0, 300),
    (3, -4, 400),
    (4, -5, 500),  # the last one before the store was opened again
    (5, -6, 20),  # too old: 480 less than the youngest, of a history of 400
    (6, 7, 250),  # asks within 2
    (7, 8, 350),  # asks when there is none
    (8, 9, 550),  # asks for the last one
    (9, 10, 90),  # asks for what is too old
    (10, -11, 900),
    (11, 12, 600),  # asks within 5, which has ended since
    (12, 13, 950),
]
REOPENED = {"t": 1, "source": "driver", "event": "reopened", "open": {"input": {"0": [5, None]}}}


def version(asks, expected, observed):
    return witness(
        "wrong-value", "output/0@9", key=1, expected=(asks << 32) | expected, observed=(asks << 32) | observed
    )


def entries(anomaly, expected, observed):
    title = "active store versions of instance-1, partition 0, at offset 13"
    return witness(anomaly, "versions-changelog/0@9", key=1, expected=expected, observed=f"{observed}: {title}")


@pytest.mark.parametrize(
    ("seen", "forgotten", "revived"),
    [
        pytest.param(version(7, 2, 0), True, False, id="one that had ended is not found"),
        pytest.param(version(7, 2, 1), True, False, id="an older one in its place"),
        pytest.param(version(7, 2, 4), False, False, id="a younger one"),
        pytest.param(version(8, 0, 2), True, False, id="before a deletion within the history"),
        pytest.param(version(9, 5, 0), False, False, id="the last one is lost"),
        pytest.param(version(9, 5, 4), False, False, id="the last one is an older one"),
        pytest.param(version(10, 0, 6), True, False, id="what is too old is given"),
        pytest.param(version(9, 5, 6), True, False, id="what is too old was taken"),
        pytest.param(version(12, 5, 0), False, False, id="one that ended afterwards"),
        pytest.param(version(13, 11, 0), False, False, id="one that came afterwards"),
        pytest.param(version(7, 2, 99), False, False, id="a version that was never put"),
        pytest.param(
            witness("wrong-value", "output/0@9", key=1, expected=2, observed=3), False, False, id="no version"
        ),
        pytest.param(
            entries("lost-entry", "04 at 400 and 05 at 500 and 0b at 900", "05 at 500 and 0b at 900"),
            True,
            False,
            id="the store lacks one that had ended",
        ),
        pytest.param(
            entries("lost-entry", "05 at 500 and 0b at 900", "0b at 900"),
            False,
            False,
            id="the store lacks one that ended afterwards",
        ),
        pytest.param(
            entries("wrong-entry", "04 at 400", "06 at 20 and 04 at 400"),
            True,
            False,
            id="the store has what is too old",
        ),
        pytest.param(
            entries("wrong-entry", "04 at 400", "63 at 20 and 04 at 400"),
            False,
            False,
            id="the store has what was never put",
        ),
    ],
)
def test_a_reopened_versioned_store_forgets_ended_versions(seen, forgotten, revived):
    there = Scene([REOPENED], lambda: [(0, o, 1, value, time) for o, value, time in VERSIONS], {"retention": 400})
    assert explained(seen, there, "KIP-889 (no JIRA)", "RESTARTED") is forgotten
    by_fault = {**REOPENED, "event": "fault", "action": "observed", "name": "bounce"}
    applied = {**struck("bounce"), "open": {"input": {"0": [2, None]}}}
    rolled = Scene([applied, by_fault], lambda: there.inputs, {"retention": 400})
    assert explained(seen, rolled, "KIP-889 (no JIRA)", "ROLLING") is forgotten
    restored = Scene([restore(0, 9)], lambda: there.inputs, {"retention": 400, "ended": 0.5})
    assert explained(seen, restored, "KIP-889, restored (no JIRA)", "REVIVED") is revived


@pytest.mark.parametrize(("reached", "expected"), [(1, True), (0, False)])
def test_a_deletion_is_in_the_history_as_soon_as_it_comes(reached, expected):
    """As `VersionedStoreTest` has it: a late version that it had ended is found if it was put before."""
    opened = {**REOPENED, "open": {"input": {"0": [reached, None]}}}
    inputs = [(0, 0, 1, 0, 2_000), (0, 1, 1, -11, 1_500), (0, 2, 1, 7, 2_200)]
    there = Scene([opened], lambda: inputs, {"retention": 20_000})
    assert explained(version(7, 0, 11), there, "KIP-889 (no JIRA)", "RESTARTED") is expected


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(version(8, 0, 2), True, id="a version from before an old deletion"),
        pytest.param(version(8, 0, 9), False, id="one that was never put"),
        pytest.param(version(9, 0, 3), False, id="from before a deletion within the history"),
        pytest.param(version(10, 7, 3), False, id="in place of a younger version"),
        pytest.param(version(10, 7, 0), False, id="nothing"),
    ],
)
def test_a_restored_versioned_store_forgets_old_deletions(seen, expected):
    key, records = "KIP-889, restored (no JIRA)", [(0, -2, 100), (1, 0, 200), (2, -3, 700), (3, 0, 750), (4, -5, 800)]
    more = [(5, -6, 900), (6, 8, 600), (7, 9, 760), (8, -7, 770), (9, 10, 780)]
    inputs = [(0, offset, 1 if value != -5 else 2, value, time) for offset, value, time in records + more]
    inputs[5] = (0, 5, 2, -6, 900)

    def known(*events, **parameters):
        return explained(seen, Scene(events, lambda: inputs, {"retention": 400, **parameters}), key, "REVIVED")

    assert known(restore(0, 1_757), ended=0.5) is expected
    assert not known(restore(0, 0), restore(1, 1_757), ended=0.5)
    assert not known(restore(0, 1_757), ended=0)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(entries("wrong-entry", "nothing", "03 at 150"), True, id="which they had ended"),
        pytest.param(entries("wrong-entry", "nothing", "03 at 150 and deleted at 800"), True, id="and deleted anew"),
        pytest.param(entries("wrong-entry", "nothing", "deleted at 800"), False, id="but only the next deletion"),
        pytest.param(entries("wrong-entry", "nothing", "05 at 90"), True, id="which an older version had ended, too"),
        pytest.param(entries("wrong-entry", "nothing", "02 at 100"), False, id="which came before them"),
        pytest.param(entries("wrong-entry", "nothing", "03 at 151"), False, id="which was never put"),
        pytest.param(entries("wrong-entry", "nothing", "03 at 150 and 09 at 700"), False, id="and a later one"),
        pytest.param(entries("lost-entry", "03 at 150", "nothing"), False, id="and lacks them"),
    ],
)
def test_a_restored_store_revives_versions_that_deletions_ended(seen, expected):
    key, inputs = "KIP-889, restored (no JIRA)", [(0, 0, 1, -2, 100), (0, 1, 1, 0, 200), (0, 2, 1, -3, 150)]
    more = [(0, 3, 1, -5, 90), (0, 4, 2, -4, 900), (0, 5, 1, 0, 800)]
    there = Scene([restore(0, 9)], lambda: inputs + more, {"retention": 400, "ended": 0.5})
    assert explained(seen, there, key, "REVIVED") is expected


def test_more_stale_results_than_a_cache_leaves_are_unexplained():
    key, given = "KIP-213 (no JIRA)", {"no.key": True, "caching": True}
    [issue] = [issue for issue in registry().issues if issue.key == key]
    rows = issue.explanations("foreign-key-join", "CACHED")
    stale = [witness("unexpected-record", f"output/0@{key}", key=key) for key in range(4)]

    def left(number, **more):
        inputs = [(0, offset, offset, 0, 0) for offset in range(4)]
        return count_unexplained(stale[:number], rows, Scene([], lambda: inputs, {**given, **more}))

    assert left(3) == {}
    assert left(4) == {"unexpected-record": 4}
    assert left(4, absent=0.1) == {}


@pytest.mark.parametrize(
    ("issue", "values", "expected"),
    [
        pytest.param("same key", [3, 150, 1_000_150], True, id="another attribute with the same key"),
        pytest.param("same key", [3, 999_998, 1_999_998], True, id="the last key"),
        pytest.param("same key", [3, 50, 1_000_150], False, id="another key"),
        pytest.param("same key", [3, 50, 150], False, id="another key, that ends alike"),
        pytest.param("same key", [3, 150, 150], False, id="the same row"),
        pytest.param("same key", [3, 150, 1_000_150, 4], False, id="and then another key"),
        pytest.param("same key", [1_000_150], False, id="only once"),
        pytest.param("same key", [3, 0, 1_000_150], False, id="null in between"),
        pytest.param("same key", [150, 3, 1_000_150], False, id="not one after the other"),
        pytest.param("insert", [3, 0, 150], True, id="from null to a key"),
        pytest.param("insert", [3, 0, 150, 150], True, id="which was told twice"),
        pytest.param("insert", [3, 999_999, 1_000_150], True, id="deleted and inserted again"),
        pytest.param("insert", [3, 0, 150, 7], False, id="and then another key"),
        pytest.param("insert", [3, 0, 150, 15], False, id="and then one that begins alike"),
        pytest.param("insert", [3, 150, 0], False, id="to null"),
        pytest.param("insert", [3, 0, 999_999], False, id="null, then deleted"),
        pytest.param("insert", [3, 10, 150], False, id="no null"),
        pytest.param("insert", [3, 150, 1_000_150], False, id="the same key"),
    ],
)
def test_a_result_stays_where_changes_of_its_row_can_leave_it(issue, values, expected):
    key = f"KIP-213, {issue} (no JIRA)"
    stale = witness("unexpected-record", "output/0@70", key=9)

    def there(**given):
        return Scene([], lambda: [(0, 5 - place, 9, value, 0) for place, value in enumerate(values[::-1])], given)

    assert explained(stale, there(absent=0.5), key, None) is expected
    assert not explained(stale, there(absent=0.0), key, None)
    assert not explained(witness("lost-record", "input/0@5", key=9), there(absent=0.5), key, None)
    assert not explained(witness("unexpected-record", "output/0@70", key=8), there(absent=0.5), key, None)


def test_of_each_anomaly_the_unexplained_are_counted():
    rows = [Explanation(("lost-record",), open_at="crash")]
    seen = [witness("lost-record", f"input/0@{offset}", key=key) for offset, key in KEYS.items()]
    assert count_unexplained(seen, rows, scene(CRASH)) == {"lost-record": 3}


def test_what_a_punctuator_writes_has_no_record_of_the_input():
    written = witness("uncommitted-state", "seen-contents/0@4", key=-7)
    assert explained(written, scene(CRASH), "KAFKA-20685", "PUNCTUATOR")
    assert not explained(written, scene(CRASH), "KAFKA-20685")


def test_a_key_with_several_input_values_explains_its_results():
    rows = [Explanation(("wrong-value",), changed=True)]
    inputs = [(0, 0, 5, 1, 0), (0, 1, 6, 1, 0), (0, 2, 5, 2, 0), (0, 3, 6, 1, 0)]
    seen = [witness("wrong-value", f"output/0@{key}", key=key) for key in (5, 6, 7)]
    assert count_unexplained(seen, rows, Scene([], lambda: inputs)) == {"wrong-value": 2}


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        pytest.param(7, True, id="it asked for no key"),
        pytest.param(8, False, id="it asked for one"),
        pytest.param(12, False, id="nobody sent it"),
        pytest.param(None, False, id="no key is told"),
    ],
)
def test_an_input_value_explains_what_happened_to_its_key(key, expected):
    assert explained(witness("lost-record", "input/0@0", key=key), scene(), "KAFKA-19208") is expected


RESTORED = {"t": 1, "source": "instance-1", "event": "restore", "store": "x", "partition": 0, "from": 3, "end": 9}
ELSEWHERE = {**RESTORED, "partition": 1}


@pytest.mark.parametrize(
    ("issue", "scenario", "variant", "parameter", "anomaly", "events", "expected"),
    [
        ("KIP-923, restored (no JIRA)", "as-of-join", "GRACE", "grace", "lost-record", [RESTORED], True),
        ("KIP-923, restored (no JIRA)", "as-of-join", "GRACE", "grace", "wrong-value", [RESTORED], False),
        ("KIP-923, restored (no JIRA)", "as-of-join", "GRACE", None, "lost-record", [RESTORED], False),
        ("KIP-923, restored (no JIRA)", "as-of-join", "GRACE", "grace", "lost-record", [], False),
        ("KIP-923 (no JIRA)", "as-of-join", "GRACE_RESTARTED", "grace", "lost-record", [{"event": "reopened"}], True),
        ("KIP-923 (no JIRA)", "as-of-join", "GRACE_RESTARTED", "grace", "lost-record", [], False),
        ("KAFKA-13499, out of order (no JIRA)", "windows", "EXTENDED", "extended", "lost-record", [RESTORED], True),
        ("KAFKA-13499, out of order (no JIRA)", "windows", "EXTENDED", "extended", "wrong-value", [RESTORED], False),
        ("KAFKA-13499, out of order (no JIRA)", "windows", "EXTENDED", "extended", "lost-record", [], False),
        ("KIP-328, held again (no JIRA)", "windows", "TIME_LIMIT", "limit", "wrong-value", [RESTORED], True),
        ("KIP-328, held again (no JIRA)", "windows", "TIME_LIMIT", "limit", "duplicate-output", [RESTORED], True),
        ("KIP-328, held again (no JIRA)", "windows", "TIME_LIMIT", "limit", "lost-record", [RESTORED], False),
        ("KIP-328, held again (no JIRA)", "windows", "TIME_LIMIT", "limit", "wrong-timestamp", [RESTORED], False),
        ("KIP-328, held again (no JIRA)", "windows", "TIME_LIMIT", "limit", "wrong-value", [], False),
        ("KIP-328, held again (no JIRA)", "windows", "TIME_LIMIT", "limit", "wrong-value", [ELSEWHERE], False),
        ("KIP-328, held again (no JIRA)", "windows", "TIME_LIMIT", None, "wrong-value", [RESTORED], False),
        ("KAFKA-15417", "stream-join", "ASYMMETRIC", "before", "early-alone", [], True),
        ("KAFKA-15417", "stream-join", "ASYMMETRIC", "before", "lost-alone", [], False),
        ("KAFKA-15417", "stream-join", "ASYMMETRIC", None, "early-alone", [], False),
    ],
)
def test_timed_issues_explain_only_their_own_effects(issue, scenario, variant, parameter, anomaly, events, expected):
    reported = scene(*events, **({parameter: 1} if parameter else {}))
    assert explained(witness(anomaly, "input/0@3"), reported, issue, variant, scenario) is expected


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(
            witness("torn-transaction", "dead-letters/0@5", key=9, observed="committed, 21 effects, 1 foreign"),
            True,
            id="a dead letter ahead of its position",
        ),
        pytest.param(
            witness("torn-transaction", "dead-letters/0@5", key=9, observed="committed, 20 effects, 1 missing"),
            True,
            id="a position behind its dead letter",
        ),
        pytest.param(
            witness("torn-transaction", "__consumer_offsets/3@13", key=9, observed="nothing"), True, id="alone"
        ),
        pytest.param(
            witness("torn-transaction", "dead-letters/0@5", key=9, observed="committed, 2 effects, 11 foreign"),
            False,
            id="several dead letters",
        ),
        pytest.param(
            witness("torn-transaction", "output/0@5", key=8, observed="committed, 21 effects, 1 foreign"),
            False,
            id="a good record",
        ),
        pytest.param(witness("torn-transaction", "output/0@5", key=9, observed="aborted"), False, id="its end"),
        pytest.param(
            witness("duplicate-output", "dead-letters/0@6", key=9, observed="2 records"), True, id="it came twice"
        ),
        pytest.param(witness("duplicate-output", "dead-letters/0@6", key=9, observed="3 records"), False, id="thrice"),
        pytest.param(witness("duplicate-output", "output/0@6", key=9, observed="2 records"), False, id="came out"),
        pytest.param(
            witness("duplicate-output", "dead-letters/0@6", key=7, observed="2 records"),
            False,
            id="it was committed before the kill",
        ),
        pytest.param(witness("lost-record", "input/0@3000", key=9, observed="0 records"), False, id="it is lost"),
    ],
)
@pytest.mark.parametrize(("event", "variant"), [("crash", "COMMITTED_AHEAD"), ("fault", "KILLED")])
def test_a_dead_letter_ahead_of_its_position_explains_itself(event, variant, seen, expected):
    killed = {"t": 5, "source": "driver", "event": event, "open": {"input": {"0": [3_000, 3_001]}}}
    records = [(0, 0, 7, -7, 0), (0, 1, 8, 8, 0), (0, 3_000, 9, -9, 0)]
    assert explained(seen, Scene([killed], lambda: records, {}), "KIP-1034 (no JIRA)", variant) is expected


@pytest.mark.parametrize(
    ("issue", "seen", "expected"),
    [
        ("KAFKA-15770", witness("stale-answer", "answers/0@3", observed="4, instance-1 query"), True),
        ("KAFKA-15770", witness("stale-answer", "answers/0@3", observed="4, instance-1 bounded"), True),
        ("KAFKA-15770", witness("stale-answer", "answers/0@3", observed="4, instance-1 stale"), False),
        ("KAFKA-15770", witness("unexplained-answer", "answers/0@3", observed="4, instance-1 query"), False),
        ("KIP-562 (no JIRA)", witness("stale-answer", "answers/0@3", observed="4, instance-1 store"), True),
        ("KIP-562 (no JIRA)", witness("stale-answer", "answers/0@3", observed="4, instance-1 standby stale"), False),
        ("KAFKA-19629", witness("stuck", "instance-1"), True),
        ("KAFKA-19629", witness("thread-died", "instance-1"), False),
    ],
)
def test_answers_and_a_deadlock_of_queries_are_distinguished(issue, seen, expected):
    deadlock = {"t": 5, "source": "instance-1", "event": "deadlock", "threads": [{"thread": "a", "lacks": "b"}]}
    assert explained(seen, scene(deadlock), issue, "QUERY", "interactive-queries") is expected


def test_an_application_with_queries_is_stuck_only_by_a_deadlock():
    assert not explained(witness("stuck", "instance-1"), scene(), "KAFKA-19629", "QUERY", "interactive-queries")


OUTDATED = {"t": 5, "source": "driver", "event": "outdated", "instance": "instance-1"}
LEFT_BEHIND = "503: active store left of instance-1, partition 0, at offset 20010"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param([503, -7, 1], True, id="deleted at the end"),
        pytest.param([503, 1, -7], True, id="changed in the other table since"),
        pytest.param([-7, 503, -1, 8], True, id="deleted in the other table"),
        pytest.param([503, 1, 8, -7], False, id="put again"),
        pytest.param([503, 11, -7], False, id="never deleted"),
        pytest.param([], False, id="never there"),
    ],
)
def test_a_forgotten_deletion_explains_what_a_store_still_has(values, expected):
    inputs = [(0, offset, 7, value, offset) for offset, value in enumerate(values)]
    there, issue = Scene([OUTDATED], lambda: inputs), ("KAFKA-19943", "COMPACTED_KEPT")
    assert explained(witness("wrong-store", key=7, observed=LEFT_BEHIND), there, *issue) is expected
    assert not explained(witness("wrong-store", key=7, observed=LEFT_BEHIND), Scene([], lambda: inputs), *issue)
    sum_of_it = LEFT_BEHIND.replace("left", "groups")
    assert not explained(witness("wrong-store", key=7, observed=sum_of_it), there, *issue)


def test_a_forgotten_deletion_shows_where_the_state_survived():
    seen, issue = witness("unexpected-record", "output/0@70", key=7), ("KAFKA-19943", "COMPACTED_KEPT")
    assert explained(seen, scene(OUTDATED), *issue)
    assert not explained(seen, scene({**OUTDATED, "event": "forgotten"}), *issue)


def of_window(anomaly, start, end, observed="2 records of the window from 0 to 0, the first one twice", partition=0):
    expected = f"1 record of the window from {start} to {end}"
    return witness(anomaly, "output/0@9", key=1, expected=expected, observed=observed, partition=partition)


# Times of the records of key 1, in their order; windows of 100 ms slide.
TIMES = [900, 1_000, 1_101, 1_250, 1_300, 1_350, 1_401, 1_450, 1_601, 1_500, 1_800, 1_901]


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(of_window("duplicate-output", 1_001, 1_101), True, id="just after a record, up to the next"),
        pytest.param(of_window("duplicate-output", 1_301, 1_401), False, id="a record in between came first"),
        pytest.param(of_window("duplicate-output", 1_501, 1_601), False, id="the older record came later"),
        pytest.param(of_window("duplicate-output", 1_801, 1_901), False, id="no window shows the record before it"),
        pytest.param(of_window("duplicate-output", 1_150, 1_250), False, id="no record just before it"),
        pytest.param(of_window("duplicate-output", 1_102, 1_202), False, id="no record at its end"),
        pytest.param(of_window("duplicate-output", 1_001, 1_101, partition=1), False, id="of another partition"),
        pytest.param(of_window("duplicate-output", 1_001, 1_101, "3 records"), False, id="not the first one twice"),
        pytest.param(of_window("lost-record", 1_001, 1_101), False, id="another anomaly"),
        pytest.param(witness("duplicate-output", "output/0@9", key=1), False, id="no window"),
    ],
)
def test_a_window_created_twice_explains_its_first_result_twice(seen, expected):
    trial = Scene([], lambda: [(0, offset, 1, 5, time) for offset, time in enumerate(TIMES)])
    assert explained(seen, trial, "KIP-450 (no JIRA)", "SLIDING_UPDATES") is expected
    assert not explained(seen, trial, "KIP-450 (no JIRA)", "SLIDING")


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(of_window("lost-record", 59_000, 59_999), True, id="of the segment that was left"),
        pytest.param(of_window("lost-record", 59_990, 60_000), False, id="of the last segment"),
        pytest.param(of_window("lost-record", 59_000, 59_999, partition=1), False, id="a task that did not leave it"),
        pytest.param(of_window("unexpected-record", 59_000, 59_999), False, id="another anomaly"),
    ],
)
def test_a_segment_that_is_gone_explains_the_sessions_in_it(seen, expected):
    inputs = [(0, 0, 1, 5, 59_999), (0, 1, 1, 5, 60_500), (1, 0, 1, 5, 59_999)]
    trial = Scene([], lambda: inputs, {"on.close": True})
    assert explained(seen, trial, "KIP-825, segment (no JIRA)", "ON_CLOSE_SESSION_SEGMENTS") is expected
    assert not explained(seen, trial, "KIP-825, segment (no JIRA)", "ON_CLOSE_SESSION")


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(of_window("lost-record", 1_040, 1_200), True, id="within the gap of its start"),
        pytest.param(of_window("duplicate-output", 900, 950), True, id="within the gap of its end"),
        pytest.param(of_window("lost-record", 1_070, 1_200), False, id="not within the gap"),
        pytest.param(
            witness("unexpected-record", "output/0@9", key=1, observed="12 at 1200"), True, id="it ends later"
        ),
        pytest.param(witness("unexpected-record", "output/0@9", key=1, observed="12 at 900"), False, id="it ended"),
        pytest.param(witness("unexpected-record", "output/0@9", key=2, observed="12 at 1200"), False, id="another key"),
        pytest.param(of_window("wrong-value", 1_040, 1_200), False, id="another anomaly"),
    ],
)
def test_a_record_that_is_too_late_explains_sessions_near_it(seen, expected):
    inputs = [(0, 0, 1, 5, 1_171), (0, 1, 1, 5, 1_000), (0, 2, 2, 5, 1_100)]
    trial = Scene([], lambda: inputs, {"size": 60, "grace": 100})
    assert explained(seen, trial, "KIP-825, sessions up to 3.3 (no JIRA)", "SESSION") is expected


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(of_window("duplicate-output", 900, 1_000), True, id="closed when the record came"),
        pytest.param(of_window("duplicate-output", 900, 1_001), False, id="still open"),
        pytest.param(of_window("duplicate-output", 900, 989), False, id="not within the gap"),
        pytest.param(of_window("duplicate-output", 900, 1_000, partition=1), False, id="another partition"),
        pytest.param(of_window("wrong-order", 900, 1_000), False, id="another anomaly"),
    ],
)
def test_a_session_that_grew_after_closing_explains_its_removal(seen, expected):
    inputs = [(0, 0, 1, 5, 1_000), (0, 1, 2, 5, 1_071), (0, 2, 1, 5, 1_050)]
    trial = Scene([], lambda: inputs, {"kind": "session", "size": 60, "grace": 10, "kept.longer": True})
    assert explained(seen, trial, "KIP-825, sessions (no JIRA)", "SESSION_KEPT") is expected


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (Explanation(("lost-record", "stuck"), after="crash"), "lost-record, stuck (after crash)"),
        (
            Explanation(("stuck",), open_at="crash", returned=True, given=("late", "kept.longer"), most=3),
            "stuck (open at crash; returned; given late, kept.longer; most 3)",
        ),
        (Explanation(("stuck",), scenarios=("scan",), variants=("SCAN",)), "stuck ()"),
        (Explanation(("stuck",), sent=12), "stuck (sent 12)"),
    ],
)
def test_an_explanation_is_described_by_anomalies_and_conditions(row, words):
    assert row.summary == words


def test_a_limit_counts_witnesses_that_other_rows_explain_too():
    few = Explanation(("lost-record",), most=1)
    stuck, first, second = (
        witness("stuck", "instance-1"),
        witness("lost-record", "input/0@1", key=1),
        witness("lost-record", "input/0@2", key=2),
    )
    of_first = Explanation(("lost-record",), values="^1$")
    there = Scene([], lambda: [(0, 1, 1, 1, 0), (0, 2, 2, 2, 0)])
    assert count_unexplained([stuck, first, second], [of_first, few], there) == {"stuck": 1, "lost-record": 1}
    assert count_unexplained([stuck, first], [few], there) == {"stuck": 1}


def test_values_are_ordered_by_offset_and_not_by_time():
    records = [(0, 1, 7, 2, 100), (0, 0, 7, 1, 200), (1, 5, 8, 3, 0), (0, 2, 7, 3, 50)]
    assert Scene([], lambda: records).values == {7: "1,2,3", 8: "3"}


def healed(name, on="a"):
    return {"t": 6, "source": "driver", "event": "fault", "name": name, "action": "healed", "on": on}


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([*HELD, struck("bounce")], {0}, id="the task that it had"),
        pytest.param([*HELD, struck("bounce"), RETURNED[0] | {"source": "a"}], {0, 1}, id="and that it got meanwhile"),
        pytest.param([*HELD, struck("bounce"), healed("bounce"), RETURNED[0] | {"source": "a"}], {0}, id="not later"),
        pytest.param([*HELD, {**assigned(2, [], []), "source": "a"}, struck("bounce")], {0}, id="between assignments"),
        pytest.param([*HELD, {**assigned(2, ["0_4"], []), "source": "a"}, struck("bounce")], {4}, id="the last one"),
        pytest.param(HELD, set(), id="no fault"),
        pytest.param([*HELD, {**struck("bounce"), "on": None}], set(), id="of no instance"),
    ],
)
def test_a_fault_affects_the_tasks_its_instance_has_meanwhile(events, expected):
    assert Scene(events, tuple).struck == expected


@pytest.mark.parametrize(
    ("did", "expected"),
    [
        ([("a", "started"), ("a", "closed"), ("a", "started")], True),
        ([("a", "started"), ("a", "closed"), ("b", "started")], False),
        ([("a", "started"), ("a", "killed"), ("a", "started")], False),
        ([("a", "closed")], False),
    ],
)
def test_an_instance_is_reopened_by_a_start_after_a_clean_close(did, expected):
    events = [{"event": "instance", "name": name, "action": action} for name, action in did]
    assert Scene([{"event": "crash", "name": "a"}, *events], tuple).reopened is expected


@pytest.mark.parametrize(
    ("conditions", "of_trial"),
    [
        ({}, True),
        ({"after": "crash"}, True),
        ({"after": "crash", "faults": ("bounce",), "given": ("eager",)}, True),
        ({"after": "crash", "sent": 0}, False),
        ({"after": "crash", "faults": ("bounce",), "given": ("eager",), "changed": True}, False),
    ],
)
def test_an_explanation_is_of_a_trial_if_all_its_conditions_are(conditions, of_trial):
    assert Explanation(("lost-record",), **conditions).is_of_trial is of_trial
