"""Which known issues explain what is wrong with a user application: all that is asked of them must hold."""

import re
from dataclasses import replace

import pytest

from onceproof.model.anomaly import Witness
from onceproof.model.application_issues import application_issues, explain, parse_application_issues
from onceproof.model.cell import Cell, Trial
from onceproof.model.errors import HarnessError
from onceproof.model.json_file import encode
from onceproof.model.known_issues import registry
from onceproof.model.release import Release
from onceproof.model.shape import Store
from tests.model.test_compared import part, shape
from tests.model.test_topology import FK, KAFKA, OWN, ROCKSDB, TABLE, WITH_TABLE, topology

EXACTLY = {"processing.guarantee": "exactly_once_v2"}
IN_MEMORY = ("MeteredKeyValueStore", "InMemoryKeyValueStore", "in memory")
WINDOWED = ("MeteredWindowStore", "ChangeLoggingWindowBytesStore", "RocksDBWindowStore", "persistent")
LOST = Witness("lost-record", 1, 7, (), ("out/1@5",), "'a': '1'", "nothing")
DIED = Witness("thread-died", 0, None, (), ("instance-1",), "no exception", "Store seen is currently closed")
LOCKED = replace(DIED, observed="RocksDBException: lock hold by current process, acquire time 1")
STUCK = Witness("stuck", 0, None, (), ("instance-1",), "records to be processed", "REBALANCING 0 processed")
UNOPENED = {"t": 2, "source": "driver", "event": "unopened", "instance": "instance-1", "store": "seen"}
STAYED = Witness("unexpected-record", 0, 7, (), ("out/0@1",), "'a': nothing", "'a': 'plan-1'")
UNSTABLE = Witness("unstable-final", 0, 7, (), ("out/0@1",), "'a': 'plan-1'", "'a': null")


def trial(streams, plant=None):
    return Trial("run", Cell("app", "DEFAULT_CONFIG", Release.parse(streams), Release.parse("3.9.1")), 1, 0, {}, plant)


def topology_of(*nodes, **described):
    """The event of an instance that describes its topology."""
    made = topology(*nodes, **described)
    return {
        "t": 1,
        "event": "topology",
        "parts": [{"sources": list(part.sources), "nodes": dict(part.nodes)} for part in made.parts],
        "processors": made.processors,
        "kinds": made.kinds,
        "internal": list(made.internal),
        "globals": list(made.globals_),
    }


DEDUP, JOIN = topology_of(OWN, kinds={"seen": ROCKSDB}), topology_of(FK, TABLE, kinds={"s": ROCKSDB})


def killed(tasks=("0_1",), uncommitted=True):
    """What happened in a trial with the fault instance-kill."""
    struck = {"t": 2, "source": "driver", "event": "fault", "name": "instance-kill", "action": "applied"}
    observed = {"tasks": list(tasks), "uncommitted_on_disk": uncommitted}
    return [struck, {**struck, "t": 3, "action": "observed", "bit": True, "summary": "", "observed": observed}]


def explained(streams, witness, events, config=EXACTLY, *later, plant=None):
    found = explain(trial(streams, plant), [witness], events, config, *later)
    return found.issues


@pytest.mark.parametrize(
    ("streams", "witness", "events", "key"),
    [
        ("4.1.2", LOST, [DEDUP, *killed()], "KAFKA-20685"),
        ("4.1.2", replace(LOST, offsets=("out, 'a' is not there",)), [DEDUP, *killed()], "KAFKA-20685"),
        ("4.3.1", DIED, [topology_of(OWN, kinds={"seen": WINDOWED}), *killed()], "KAFKA-20808"),
        (
            "4.4.0",
            LOCKED,
            [topology_of(OWN, kinds={"seen": WINDOWED}), *killed()],
            "KAFKA-20808, other segments (no JIRA)",
        ),
        ("4.4.0", STAYED, [JOIN], "KIP-213, same key (no JIRA)"),
        ("4.4.0", UNSTABLE, [JOIN], "KIP-213, same key (no JIRA)"),
        (
            "4.4.0",
            replace(UNSTABLE, expected="'a': nothing", observed="'a': '1'"),
            [JOIN],
            "KIP-213, same key (no JIRA)",
        ),
    ],
)
def test_what_a_mechanism_can_do_is_explained(streams, witness, events, key):
    assert explained(streams, witness, events) == (key,)


@pytest.mark.parametrize(
    ("streams", "witness", "events"),
    [
        pytest.param("4.2.2", LOST, [DEDUP, *killed()], id="a release that has the fix"),
        pytest.param("3.7.2", LOST, [DEDUP, *killed()], id="one that has it not yet"),
        pytest.param("4.1.2", LOST, [DEDUP], id="without the fault"),
        pytest.param("4.1.2", LOST, [DEDUP, *killed(uncommitted=False)], id="nothing to trust was on the disk"),
        pytest.param("4.1.2", LOST, [DEDUP, *killed(tasks=["0_0"])], id="a partition that was not struck"),
        pytest.param("4.1.2", LOST, killed(), id="a black box"),
        pytest.param("4.1.2", LOST, [topology_of(OWN, kinds={"seen": IN_MEMORY}), *killed()], id="a store in memory"),
        pytest.param("4.1.2", replace(LOST, anomaly="corrupt-record"), [DEDUP, *killed()], id="what it cannot do"),
        pytest.param("4.3.1", replace(DIED, observed="NullPointerException"), [topology_of(OWN, kinds={"seen": WINDOWED}), *killed()], id="another exception"),
        pytest.param("4.3.1", DIED, [DEDUP, *killed()], id="no store in segments"),
        pytest.param("4.4.0", DIED, [topology_of(OWN, kinds={"seen": WINDOWED}), *killed()], id="fixed in 4.4.0"),
        pytest.param("4.2.2", LOCKED, [topology_of(OWN, kinds={"seen": WINDOWED}), *killed()], id="began with 4.3.0"),
        pytest.param("4.4.0", LOCKED, [DEDUP, *killed()], id="no segments that could be locked"),
        pytest.param("4.4.0", STUCK, [DEDUP, UNOPENED], id="no transactional stores"),
        pytest.param("4.4.0", STAYED, [DEDUP], id="no such join"),
        pytest.param("4.4.0", replace(STAYED, expected="'a': 'plan-2'"), [JOIN], id="a result that should be another one"),
        pytest.param("4.4.0", replace(LOST, expected="'a': 'plan-1'"), [JOIN], id="a result that is missing"),
    ],
)  # fmt: skip
def test_and_nothing_more(streams, witness, events):
    assert explained(streams, witness, events) == ()
    [(anomaly, left)] = explain(trial(streams), [witness], events, EXACTLY).unexplained.items()
    assert (anomaly, left) == (witness.anomaly, 1)


def test_unopenable_transactional_stores_explain_a_standstill():
    transactional = {**EXACTLY, "enable.transactional.statestores": "true"}
    assert explained("4.4.0", STUCK, [DEDUP, UNOPENED], transactional) == ("KIP-892 (no JIRA)",)
    assert explained("4.4.0", STUCK, [DEDUP], transactional) == ()


VERSIONED = (
    "MeteredVersionedKeyValueStore",
    "ChangeLoggingVersionedKeyValueBytesStore",
    "RocksDBVersionedStore",
    "persistent",
)
BUFFER = ("RocksDBTimeOrderedKeyValueBuffer", "RocksDBTimeOrderedKeyValueBytesStore", "persistent")
SESSIONS = ("MeteredSessionStore", "ChangeLoggingSessionBytesStore", "InMemorySessionStore", "in memory")
SHARED = ("MeteredKeyValueStore", "ListValueStore", "ChangeLoggingListValueBytesStore", "RocksDBStore", "persistent")
ON_CLOSE = ("MeteredWindowStore", "ChangeLoggingWindowBytesStore", "RocksDBTimeOrderedWindowStore", "persistent")
WRONG = replace(LOST, anomaly="wrong-value", observed="'a': 'plan-1'")
STORE = Witness(
    "wrong-store", 1, None, (), ("active store {} of instance-1, partition 1, at offset 9",), "9 entries", "9"
)
RESTORED = {"t": 2, "source": "instance-1", "event": "restore", "store": "s", "partition": 1, "from": 0, "end": 9}
REOPENED = [
    {"t": t, "source": "driver", "event": "instance", "name": "instance-1", "action": action}
    for t, action in enumerate(("started", "closed", "started"))
]
CONTINUES = {**EXACTLY, "default.deserialization.exception.handler": "a.LogAndContinueExceptionHandler"}
AT_LEAST = {"processing.guarantee": "at_least_once"}
STREAMS_PROTOCOL = {**EXACTLY, "group.protocol": "streams"}
STANDBYS = {**EXACTLY, "num.standby.replicas": "1"}
ROUTE = Witness("wrong-route", 1, None, (), ("instance-1, store seen",), "instance-2", "unavailable")
STALE = Witness("stale-answer", 1, 7, (), ("answers-seen/1@3",), "'a': '2' or later", "'a': '1', instance-1 store")
RUNNING = replace(STUCK, observed="RUNNING 4,017 processed")


STREAMS = (f"{KAFKA}KStreamKStreamJoin$KStreamKStreamJoinProcessor", ("s",))
WINDOW = (f"{KAFKA}KStreamWindowAggregate$KStreamWindowAggregateProcessor", ("s",))
SESSION = (f"{KAFKA}KStreamSessionWindowAggregate$KStreamSessionWindowAggregateProcessor", ("s",))


GROUP = (f"{KAFKA}KTableRepartitionMap$KTableMapProcessor", ("s",))
HELD_BACK = ("InMemoryTimeOrderedKeyValueChangeBuffer", "in memory")
FINAL_SUMS = topology_of(GROUP, kinds={"s": HELD_BACK}, internal=["sums-repartition"])
MOVED = topology_of(OWN, internal=["moved-repartition"])
HELD = {"t": 2, "source": "driver", "event": "fault", "name": "held-rebalance", "action": "applied"}

UNKNOWN_PARTITION = replace(DIED, observed="Stream task 0_0 does not know the partition: returns-0")
LEFT_OUT = {"t": 3, "source": "driver", "event": "logged", "what": "unkeyed", "topic": "in", "times": 2}
TOO_LARGE = replace(DIED, observed="caused by org.apache.kafka.common.errors.RecordTooLargeException: The message is")
OPTIMIZED = {**EXACTLY, "topology.optimization": "all"}
SKIPPED = {"t": 3, "source": "driver", "event": "logged", "what": "skipped", "topic": "in", "partition": 1, "times": 9}
DROPPED = {"t": 3, "source": "driver", "event": "logged", "what": "dropped", "topic": "out", "task": "0_1", "times": 4}
UNREADABLE = replace(
    DIED,
    observed="processor=KTABLE-SOURCE-0000000001, topic=in, caused by common.errors.SerializationException: A test",
)
OF_TABLE = shape({"0": part(["in"], "s", ["out"])})
REUSED = {
    **topology_of(TABLE, kinds={"s": ROCKSDB}),
    "source": "instance-1",
    "shape": {**encode(replace(OF_TABLE, stores={"s": Store(ROCKSDB, "in")}))},
}
NAMING = {**REUSED, **topology_of(WITH_TABLE, kinds={"s": ROCKSDB})}
GLOBAL = topology_of(OWN, kinds={"rates": ROCKSDB}, globals_=["rates"])
GLOBALLY = {"processing.exception.handler.global.enabled": "true"}
TO_FAIL = "GlobalStreamThread died of Deserialization exception handler is set to fail upon a deserialization error"
FAILS = replace(DIED, observed=f"{TO_FAIL}, caused by java.lang.NumberFormatException")
AT_START = (
    "GlobalStreamThread died of org.apache.kafka.streams.errors.StreamsException: Exception caught during "
    "initialization of GlobalStreamThread, caused by"
)
UNPARSED = replace(DIED, observed=f"{AT_START} java.lang.NumberFormatException: For input string")


def store(kind, *nodes):
    return topology_of(OWN, *nodes, kinds={"s": kind, "other": ROCKSDB, "table": VERSIONED})


def of(name):
    return replace(STORE, offsets=tuple(place.format(name) for place in STORE.offsets))


@pytest.mark.parametrize(
    ("key", "streams", "witness", "events", "config", "nearest"),
    [
        ("KIP-889 (no JIRA)", "4.3.1", WRONG, [store(VERSIONED), *REOPENED], EXACTLY, {"events": [store(VERSIONED), *REOPENED[:2]]}),
        ("KIP-889, restored (no JIRA)", "4.3.1", WRONG, [store(VERSIONED), RESTORED], EXACTLY, {"witness": replace(WRONG, partition=0)}),
        ("KIP-923, restored (no JIRA)", "4.4.0", of("s"), [store(BUFFER, WITH_TABLE)], EXACTLY, {"witness": of("other")}),
        ("KIP-923, restored (no JIRA)", "4.4.0", LOST, [store(BUFFER, WITH_TABLE), RESTORED], EXACTLY, {"events": [store(BUFFER, WITH_TABLE)]}),
        ("KIP-923 (no JIRA)", "4.4.0", LOST, [store(BUFFER, WITH_TABLE), *REOPENED], EXACTLY, {"witness": WRONG}),
        ("KAFKA-13499, out of order (no JIRA)", "4.4.0", WRONG, [store(SESSIONS, SESSION), RESTORED], AT_LEAST, {"config": EXACTLY}),
        ("KAFKA-15417", "3.7.2", replace(WRONG, anomaly="unexpected-record"), [store(SHARED, STREAMS)], EXACTLY, {"streams": "3.8.0"}),
        ("KAFKA-17299", "3.9.0", RUNNING, [DEDUP], CONTINUES, {"config": EXACTLY}),
        ("KAFKA-17299", "3.9.0", RUNNING, [DEDUP], CONTINUES, {"witness": STUCK}),
        ("KAFKA-19775", "4.1.0", UNKNOWN_PARTITION, [topology_of(WINDOW, kinds={"s": WINDOWED})], EXACTLY, {"streams": "4.1.1"}),
        ("KAFKA-19775", "4.1.0", UNKNOWN_PARTITION, [topology_of(WINDOW, kinds={"s": WINDOWED})], EXACTLY, {"events": [DEDUP]}),
        ("KAFKA-19775", "4.1.0", UNKNOWN_PARTITION, [topology_of(WINDOW, kinds={"s": WINDOWED})], EXACTLY, {"witness": DIED}),
        ("KAFKA-12317", "3.6.2", LOST, [NAMING, LEFT_OUT], EXACTLY, {"streams": "3.7.0"}),
        ("KAFKA-12317", "3.6.2", LOST, [NAMING, LEFT_OUT], EXACTLY, {"events": [NAMING]}),
        ("KAFKA-12317", "3.6.2", LOST, [NAMING, LEFT_OUT], EXACTLY, {"events": [NAMING, {**LEFT_OUT, "topic": "x"}]}),
        ("KAFKA-12317", "3.6.2", LOST, [NAMING, LEFT_OUT], EXACTLY, {"witness": replace(LOST, offsets=("other/1@5",))}),
        ("KAFKA-12317", "3.6.2", STAYED, [NAMING, LEFT_OUT], EXACTLY, {"witness": WRONG}),
        ("KAFKA-12317", "3.6.2", STAYED, [NAMING, LEFT_OUT], EXACTLY, {"events": [{**REUSED, **topology_of(OWN)}, LEFT_OUT]}),
        ("KAFKA-15259", "4.4.0", TOO_LARGE, [DEDUP, DROPPED], EXACTLY, {"config": AT_LEAST}),
        ("KAFKA-15259", "4.4.0", TOO_LARGE, [DEDUP, DROPPED], EXACTLY, {"events": [DEDUP]}),  # the handler lets it fail
        ("KAFKA-15259", "4.4.0", TOO_LARGE, [DEDUP, DROPPED], EXACTLY, {"witness": DIED}),
        ("KAFKA-8037", "4.4.0", WRONG, [REUSED, SKIPPED, RESTORED], OPTIMIZED, {"config": EXACTLY}),
        ("KAFKA-8037", "4.4.0", WRONG, [REUSED, SKIPPED, RESTORED], OPTIMIZED, {"events": [REUSED, SKIPPED]}),
        ("KAFKA-8037", "4.4.0", WRONG, [REUSED, SKIPPED, RESTORED], OPTIMIZED, {"events": [REUSED, RESTORED]}),
        ("KAFKA-8037", "4.4.0", WRONG, [REUSED, SKIPPED, RESTORED], OPTIMIZED, {"events": [REUSED, {**SKIPPED, "topic": "x"}, RESTORED]}),
        ("KAFKA-8037", "4.4.0", WRONG, [REUSED, SKIPPED, RESTORED], OPTIMIZED, {"events": [REUSED, {**SKIPPED, "partition": 0}, RESTORED]}),
        ("KAFKA-8037", "4.4.0", WRONG, [REUSED, SKIPPED, RESTORED], OPTIMIZED, {"witness": replace(WRONG, offsets=("other/1@5",))}),
        ("KAFKA-8037", "4.4.0", UNREADABLE, [REUSED, SKIPPED, RESTORED], OPTIMIZED, {"events": [REUSED, RESTORED]}),
        ("KAFKA-8037", "4.4.0", UNREADABLE, [REUSED, SKIPPED, RESTORED], OPTIMIZED, {"witness": replace(UNREADABLE, observed="processor=own SerializationException")}),
        ("KAFKA-19939", "4.2.2", FAILS, [GLOBAL], {**EXACTLY, **GLOBALLY}, {"config": EXACTLY}),  # it could not be read
        ("KAFKA-19939", "4.2.2", FAILS, [GLOBAL], {**EXACTLY, **GLOBALLY}, {"streams": "4.3.0"}),
        ("KAFKA-19939", "4.2.2", FAILS, [GLOBAL], {**EXACTLY, **GLOBALLY}, {"events": [DEDUP]}),
        ("KAFKA-19939", "4.2.2", FAILS, [GLOBAL], {**EXACTLY, **GLOBALLY}, {"witness": replace(DIED, observed=f"{TO_FAIL}, caused by org.apache.kafka.common.errors.SerializationException")}),
        ("KAFKA-19939, at the start (no JIRA)", "4.4.0", UNPARSED, [GLOBAL], CONTINUES, {"streams": "4.2.2"}),
        ("KAFKA-19939, at the start (no JIRA)", "4.4.0", UNPARSED, [GLOBAL], CONTINUES, {"config": EXACTLY}),
        ("KAFKA-19939, at the start (no JIRA)", "4.4.0", UNPARSED, [GLOBAL], CONTINUES, {"config": {**CONTINUES, **GLOBALLY}}),
        ("KAFKA-19939, at the start (no JIRA)", "4.4.0", UNPARSED, [GLOBAL], CONTINUES, {"events": [DEDUP]}),
        ("KAFKA-19939, at the start (no JIRA)", "4.4.0", UNPARSED, [GLOBAL], CONTINUES, {"witness": replace(UNPARSED, observed="StreamThread-1 died of it")}),
        ("KAFKA-19939, at the start (no JIRA)", "4.4.0", UNPARSED, [GLOBAL], CONTINUES, {"witness": replace(UNPARSED, observed=f"{AT_START} org.apache.kafka.common.errors.TimeoutException")}),
        ("KAFKA-17635", "3.9.0", LOST, [MOVED, HELD], EXACTLY, {"events": [DEDUP, HELD]}),
        ("KAFKA-17635", "3.9.0", LOST, [MOVED, HELD], EXACTLY, {"events": [MOVED]}),
        ("KAFKA-17635", "3.9.0", LOST, [MOVED, HELD], EXACTLY, {"streams": "3.9.1"}),
        ("KAFKA-20782", "4.3.1", ROUTE, [DEDUP], STREAMS_PROTOCOL, {"config": EXACTLY}),
        ("KAFKA-20782", "4.3.1", ROUTE, [DEDUP], STREAMS_PROTOCOL, {"witness": replace(ROUTE, observed="instance-2")}),
        ("KAFKA-20782", "4.3.1", ROUTE, [DEDUP], STREAMS_PROTOCOL, {"streams": "4.4.0"}),
        ("KIP-562 (no JIRA)", "3.7.2", STALE, [DEDUP], STANDBYS, {"config": EXACTLY}),
        ("KIP-562 (no JIRA)", "3.7.2", STALE, [DEDUP], STANDBYS, {"witness": replace(STALE, observed="1, instance-1 stale")}),
        ("KIP-825, retention (no JIRA)", "4.4.0", LOST, [store(ON_CLOSE, WINDOW)], EXACTLY, {"events": [store(WINDOWED, WINDOW)]}),
        ("KIP-328, old value (no JIRA)", "4.4.0", WRONG, [FINAL_SUMS], EXACTLY, {"events": [topology_of(GROUP, kinds={"s": WINDOWED}, internal=["sums-repartition"])]}),
        ("KIP-328, old value (no JIRA)", "3.0.0", WRONG, [FINAL_SUMS], EXACTLY, {"events": [topology_of(OWN, kinds={"s": HELD_BACK}, internal=["sums-repartition"])]}),
        ("KIP-328, old value (no JIRA)", "4.4.0", WRONG, [FINAL_SUMS], EXACTLY, {"witness": LOST}),
    ],
)  # fmt: skip
def test_a_mechanism_explains_its_case_and_not_the_nearest_bug(key, streams, witness, events, config, nearest):
    case = {"streams": streams, "witness": witness, "events": events, "config": config}
    assert key in explained(**case)
    assert key not in explained(**{**case, **nearest})


def test_joins_lose_no_more_records_than_they_left_out():
    found = explain(trial("3.6.2"), [LOST, LOST, LOST], [NAMING, LEFT_OUT], EXACTLY)
    assert (found.issues, found.unexplained) == (("KAFKA-12317",), {"lost-record": 1})


def test_transactional_issues_need_exactly_once():
    assert explained("4.1.2", LOST, [DEDUP, *killed()], {"processing.guarantee": "at_least_once"}) == ()


def test_what_is_planted_is_explained_by_nothing():
    assert explained("4.1.2", LOST, [DEDUP, *killed()], plant="batch-lost") == ()


def test_any_partition_may_show_an_issue_behind_a_repartition():
    events = [topology_of(OWN, kinds={"seen": ROCKSDB}, internal=["sums-repartition"]), *killed(tasks=["0_0"])]
    assert explained("4.1.2", LOST, events) == ("KAFKA-20685",)


def test_unexplained_witnesses_are_counted_and_issues_are_named():
    found = explain(trial("4.1.2"), [LOST, replace(LOST, anomaly="corrupt-record")], [DEDUP, *killed()], EXACTLY)
    assert found.issues == ("KAFKA-20685",)
    assert found.unexplained == {"corrupt-record": 1}
    assert "KAFKA-20808" not in found.concerned  # another release
    assert "KAFKA-20731" not in found.concerned  # no standby


def test_each_row_belongs_to_a_registered_issue():
    assert {row.issue for row in application_issues()} <= {issue.key for issue in registry().issues}


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ('issue = "KAFKA-1"\nanomalies = ["stuck"]\nafter = "x"', "'KAFKA-1' is no issue of the registry"),
        ('issue = "KAFKA-20685"\nanomalies = ["broken"]\nafter = "x"', "there is no anomaly 'broken'"),
        ('issue = "KAFKA-20685"\nanomalies = ["stuck"]', "says nothing of its witnesses"),
        ('issue = "KAFKA-20685"\nanomalies = ["stuck"]\nsays = "("', "it is no regular expression"),
        ('issue = "KAFKA-20685"\nanomalies = ["stuck"]\nsaid = "x"', "there is no field 'said'; "),
    ],
)
def test_a_row_that_cannot_be_is_named(row, sentence):
    with pytest.raises(HarnessError, match=re.escape(sentence)):
        parse_application_issues(f"[[shows]]\n{row}", registry())
