"""Reproduction 003: the independent reader's judgement on the specimens, and what is read off logs and the timeline."""

import time
from collections import Counter
from operator import attrgetter
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onceproof.model.anomaly import Comparison
from onceproof.model.cell import Cell, Trial
from onceproof.model.errors import UsageError
from onceproof.model.release import Release
from onceproof.model.timeline import time_of_line
from onceproof.readers.checks import check_values as check
from onceproof.scenarios import SCENARIOS
from onceproof.scenarios.quota import (
    ALL,
    CHANGELOG,
    FAILURES,
    VARIANTS,
    GrowingLog,
    Requests,
    Watch,
    _bound_lag,
    _longest_stall,
    config,
    failures,
    observe,
    values,
    workload,
)
from tests.cases import check_each

SCENARIO = SCENARIOS["quota"]


def trial(variant="DEFAULT_CONFIG", parameters=None):
    cell = Cell("quota", variant, Release.parse("3.9.1"), Release.parse("3.9.1"))
    return Trial("20260101T000000-abcd", cell, 1, 7, parameters or {})


def test_a_stall_that_is_still_going_on_counts():
    moved = [{"t": t, "event": "progress"} for t in (1_000, 1_100, 3_100, 3_200)]
    assert _longest_stall(moved) == 2_000
    assert _longest_stall([*moved, {"t": 33_200, "event": "lag"}]) == 30_000
    assert _longest_stall([]) == 0


# --- check ---------------------------------------------------------------------------------------------------


TRANSACTIONS = st.lists(st.tuples(st.integers(1, 4), st.booleans()), max_size=12)  # size, whether it is committed


def written(transactions):
    """The topics of an application that rewrites what was aborted, in the end with success."""
    committed, everything, key, offset = [], [], 0, 0
    for size, whole in [*transactions, (1, True)]:
        records = [(0, offset + n, key + n, key + n) for n in range(size)]
        everything += records
        offset += size + 1
        if whole:
            committed += records
            key += size
    return {"input": [(0, k, k, k) for k in range(key)], CHANGELOG: committed, ALL: everything}


@given(TRANSACTIONS)
def test_exactly_the_aborted_transactions_are_found(transactions):
    aborted = [size for size, whole in transactions if not whole]
    found = check(written(transactions), {"exactly_once": 1})
    assert found.anomalies == ({"aborted-by-throttle": len(aborted)} if aborted else {})
    assert Counter(w.observed for w in found.witnesses) == Counter(
        f"aborted, {size} record{'s' if size > 1 else ''}" for size in aborted
    )


@given(TRANSACTIONS, st.data())
def test_a_record_that_is_not_in_the_changelog_is_found(transactions, data):
    topics = written(transactions)
    key = data.draw(st.sampled_from(topics["input"]))[2]
    aborted = sum(not whole for _, whole in transactions)
    lacking = {role: [r for r in records if role == "input" or r[2] != key] for role, records in topics.items()}
    found = check(lacking, {"exactly_once": 1}).anomalies
    assert found["lost-record"] == 1
    assert "duplicate-output" not in found
    assert ("aborted-by-throttle" in found) <= bool(aborted)


# --- forensics -----------------------------------------------------------------------------------------------

LOG = """\
[2026-11-21T08:45:00.123+0000] INFO [main] Kafka Streams version: 3.9.1 (o.a.k.streams.KafkaStreams)
[2026-11-21T08:45:30.500+0000] ERROR [a-StreamThread-1] stream-thread [a] Error sending to topic (o.a.k.RecordCollector)
org.apache.kafka.common.errors.TimeoutException: Timeout expired after 60000ms while awaiting AddOffsetsToTxn
\tat org.apache.kafka.clients.producer.internals.Sender.run(Sender.java:243)
[2026-11-21T09:45:31.000+0100] WARN [a-StreamThread-1] Detected that the thread is being fenced. (o.a.k.StreamThread)
org.apache.kafka.streams.errors.TaskMigratedException: Producer got fenced trying to send a record; it means all tasks \
belonging to this thread should be migrated.
Caused by: org.apache.kafka.common.errors.InvalidProducerEpochException: Producer attempted to produce with an old epoch.
"""
THROTTLE = {"t": 1, "source": "instance-1", "event": "throttle", "producers": [{"client_id": "x"}]}
AT = 1_795_250_730_500  # 2026-11-21T08:45:30.5Z


def lines_of(text):
    return [(time_of_line(line) or 0, line) for line in text.splitlines()]


def test_failures_have_the_time_of_the_line_before_them(tmp_path):
    log = tmp_path / "instance.log"
    log.write_text(LOG)
    found = list(failures(GrowingLog(log).read_grown()))
    assert [(failure["exception"], failure["at"]) for failure in found] == [
        ("TimeoutException", AT),
        ("TaskMigratedException", AT + 500),
        ("InvalidProducerEpochException", AT + 500),
    ]
    assert found[0]["message"] == "Timeout expired after 60000ms while awaiting AddOffsetsToTxn"


def test_a_failure_before_any_time_is_found_too():
    [failure] = failures(lines_of("org.apache.kafka.common.errors.ProducerFencedException: There is a newer producer"))
    assert failure == {"at": 0, "exception": "ProducerFencedException", "message": "There is a newer producer"}


def test_a_failure_on_a_line_with_a_time_has_that_time():
    line = "[2026-11-21T08:45:30.500+0000] WARN [x] failed: o.a.k.TimeoutException: awaiting EndTxn (c)"
    assert [failure["at"] for failure in failures(lines_of(line))] == [AT]


@pytest.mark.parametrize("name", FAILURES)
def test_every_class_is_known(name):
    line = f"org.apache.kafka.{name}: Timeout expired after 60000ms while awaiting AddOffsetsToTxn"
    assert [failure["exception"] for failure in failures(lines_of(line))] == [name]


@pytest.mark.parametrize(
    "line",
    [
        "[2026-11-21T08:45:00.123+0000] INFO [main] ProducerIdAndEpoch(isFenced: false) (o.a.k.Sender)",
        "\tdefault.production.exception.handler = class org.apache.kafka.streams.errors.DefaultProductionExceptionHandler",
        "\tdefault.deserialization.exception.handler: LogAndFailExceptionHandler",
        "\tproducer.request.timeout.ms = 30000",
        "\tat org.apache.kafka.common.errors.TimeoutException.<init>(TimeoutException.java:1)",
        "java.net.SocketTimeoutException: Read timed out",
        "org.apache.kafka.common.errors.DisconnectException: closed",
        "[2026-11-21T08:45:00.123+0000] INFO [main] retries on TimeoutException and TaskCorruptedException",
        "TimeoutExceptions: 0",
        "o.a.k.TimeoutException: Timeout of 60000ms expired before the position for partition x-0 could be determined",
    ],
)
def test_what_only_looks_like_a_failure_does_not_count(line):
    assert list(failures(lines_of(line))) == []


def test_the_log_is_read_again_when_it_has_grown(tmp_path):
    log = tmp_path / "instance.log"
    log.write_text("[2026-11-21T08:45:00.123+0000] INFO [main] started (m)\n")
    events = [THROTTLE]
    lab = SimpleNamespace(events=events, count_committed=lambda: 7, note=lambda *_, **__: None, now=time.time)
    watch = Watch(lab, GrowingLog(log))
    assert not watch.look(9)
    assert (watch.failures, watch.lag) == ([], 2)
    half = LOG.index("TimeoutException")
    for text, failed in ((LOG[:half], False), (LOG[half:], True)):  # at first, a line that is not complete yet
        with log.open("a") as more:
            more.write(text)
        assert watch.look(9) is failed
    assert len(watch.failures) == 3


def test_a_failure_before_the_throttle_accuses_nobody(tmp_path):
    log = tmp_path / "instance.log"
    log.write_text(LOG)
    lab = SimpleNamespace(events=[], count_committed=lambda: 7, note=lambda *_, **__: None, now=time.time)
    watch = Watch(lab, GrowingLog(log))
    assert not watch.look(9)
    assert (watch.failures, watch.early) == ([], 3)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([], ("none", 0)),
        ([(1, "Enqueuing", "AddOffsetsToTxn"), (121, "Sending", "AddOffsetsToTxn")], ("AddOffsetsToTxn", 120)),
        ([(1, "Enqueuing", "EndTxn"), (5, "Sending", "EndTxn"), (7, "Enqueuing", "EndTxn")], ("EndTxn", 993)),
        ([(1, "Enqueuing", "EndTxn"), (9, "Enqueuing", "EndTxn"), (70, "Sending", "EndTxn")], ("EndTxn", 69)),  # again
        ([(1, "Sending", "AddPartitionsToTxn"), (2, "Enqueuing", "InitProducerId")], ("none", 0)),
    ],
)
def test_how_long_requests_of_transactions_waited(steps, expected):
    requests = Requests()
    requests.take(
        (at, f"DEBUG [p] {step} transactional request {name}RequestData(x='y') (c)") for at, step, name in steps
    )
    assert requests.longest(1_000) == expected


@pytest.mark.parametrize("rate", [25_000, 30_000])
def test_a_load_under_which_every_release_fails_is_refused(rate):
    with pytest.raises(UsageError, match="every release would fail"):
        SCENARIO.validate(trial(parameters={"rate": rate}))


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_variant_can_be_run(variant):
    SCENARIO.validate(trial(variant))


BULK = {"t": 10_000, "source": "driver", "event": "bulk", "name": "load", "records": 9, "rate": 1.0}
PRELOADED = {**BULK, "t": 1, "name": "preloaded"}
THROTTLED = {"t": 9, "source": "driver", "event": "load", "max": 1_234.4, "avg": 56.0, "lag": 242, "explained": 189}
SLIGHTLY = Comparison(
    "throttle",
    None,
    0,
    None,
    "instance-1",
    "slight throttling, slowly growing lag, no exception",
    "throttled for up to 1,234 ms; lag 242 records; nothing processed for up to 0.5 s; 0 exceptions",
)


def exception(at, name="TimeoutException", message="late"):
    return {"t": at, "source": "driver", "event": "exception", "at": at, "exception": name, "message": message}


def test_throttling_alone_is_no_anomaly():
    reported, *slowdown = observe(trial(), [PRELOADED, BULK, {**THROTTLED, "stall_ms": 500}])
    assert reported == SLIGHTLY
    assert [(row.anomaly, row.observed) for row in slowdown] == [
        (None, "1,234 ms at most, 56 on average"),
        (None, "242 records"),
    ]


@pytest.mark.parametrize(
    ("measured", "anomaly"),
    [
        ({"max": 2_936.0}, None),  # twice 16 KiB at 35,000 bytes/s, and a second
        ({"max": 2_937.0}, "long-throttle"),
        ({"lag": 2 * 189 + 109}, None),  # 109 records come in the 3 seconds over which a quota is measured
        ({"lag": 2 * 189 + 110}, "runaway-lag"),
        # In two seconds for which the application waited for a CPU 73 others come.
        ({"lag": 2 * 189 + 181, "waited_ms": 2_000}, None),
        ({"lag": 2 * 189 + 182, "waited_ms": 2_000}, "runaway-lag"),
    ],
)
def test_throttle_and_lag_are_compared_with_the_quota(measured, anomaly):
    rows = observe(trial(), [BULK, {**THROTTLED, "stall_ms": 500, **measured}])
    assert [row.anomaly for row in rows if row.anomaly] == ([anomaly] if anomaly else [])


@pytest.mark.parametrize(
    ("variant", "seconds", "lag"), [("SLEEP_25", 40, 313), ("SLEEP_30", 45, 52), ("DEFAULT_CONFIG", 0, 0)]
)
def test_the_lag_that_load_and_quota_explain(variant, seconds, lag):
    assert _bound_lag(values(trial(variant)), seconds) == lag


def test_exceptions_are_told_of_by_class_with_the_first_of_each():
    events = [
        PRELOADED,
        BULK,
        exception(41_500),
        exception(42_000, "TaskMigratedException", "fenced"),
        exception(43_000, message="later"),
        {**THROTTLED, "stall_ms": 30_000},
    ]
    rows = observe(trial(), events)
    assert [(row.anomaly, row.expected, row.observed) for row in rows[:2]] == [
        ("aborted-by-throttle", "no TaskMigratedException", "1 lines in the log, the first after 32.0 s: fenced"),
        ("aborted-by-throttle", "no TimeoutException", "2 lines in the log, the first after 31.5 s: late"),
    ]
    assert rows[2].anomaly is None
    assert rows[2].observed.endswith("for up to 30.0 s; 3 exceptions")


# --- workload and variants -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("variant", "records"), [("DEFAULT_CONFIG", 1_636), ("LARGE_RECORDS", 409)])
def test_there_is_a_record_for_each_time_the_generator_wakes_up(variant, records):
    work = workload(trial(variant))
    assert work.first == []
    assert work.second == [(key, key) for key in range(records)]


@pytest.mark.parametrize(("request_", "delivery"), [(30_000, "120000"), (200_000, "200000")])
def test_the_delivery_timeout_is_never_below_the_request_timeout(request_, delivery):
    parameters = config(trial(parameters={"request.timeout.ms": request_}))
    assert (parameters["producer.request.timeout.ms"], parameters["producer.delivery.timeout.ms"]) == (
        str(request_),
        delivery,
    )


def test_the_changelog_is_read_twice_with_values_of_their_size():
    roles = SCENARIO.system(trial("LARGE_RECORDS")).roles
    assert {name: (role.value_bytes, role.topic, role.committed) for name, role in roles.items()} == {
        "input": (4, None, True),
        CHANGELOG: (4_096, None, True),
        ALL: (4_096, CHANGELOG, False),
    }


@check_each("variant", VARIANTS.values(), named=attrgetter("name"))
def test_every_variant_says_what_it_changes_and_can_be_run(variant):
    assert variant.description.endswith(".")
    assert SCENARIO.parse(f"{name}={value}" for name, value in variant.parameters.items()) == variant.parameters
    SCENARIO.validate(trial(variant.name))


@check_each("name", SCENARIO.settable)
def test_every_default_can_be_given(name):
    assert SCENARIO.parse([f"{name}={SCENARIO.settable[name].default}"]) == {name: SCENARIO.settable[name].default}


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("quota=1", "'quota=1' sets no parameter of quota"),
        ("rate", "rate has no value: write rate=VALUE. It is "),
        ("rate=0", "at least 1"),
        ("rate=35k", "a whole number"),
        ("record.bytes=3", "at least 4"),
        ("sleep.ms=0.5", "at least 1"),
        ("sleep.ms=soon", "a number"),
        ("transaction.timeout.ms=999", "at least 1000"),
    ],
)
def test_a_parameter_that_makes_no_sense_is_refused(setting, said):
    with pytest.raises(UsageError, match=said):
        SCENARIO.parse([setting])


@pytest.mark.parametrize("text", ["nan", "inf"])
def test_a_time_that_is_no_number_is_refused(text):
    with pytest.raises(UsageError):
        SCENARIO.parse([f"sleep.ms={text}"])
