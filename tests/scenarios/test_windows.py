"""Windows of time: the independent reader's judgement on the specimens, and what is generated."""

import pytest

from onceproof.model.window_history import SEGMENT
from onceproof.scenarios.base import partition_of_key
from onceproof.scenarios.windows import SCENARIO, begins_at, facts, generate, values, workload
from tests.conftest import a_trial


def a_windows_trial(variant="DEFAULT_CONFIG", **parameters):
    return a_trial("4.3.1", variant, scenario="windows", **parameters)


@pytest.mark.parametrize(("variant", "late"), [("DEFAULT_CONFIG", (0.05, 0.15)), ("LATE", (0.85, 0.95))])
def test_too_late_records_are_generated_in_one_variant_only(variant, late):
    trial = a_windows_trial(variant, first=6_000, records=6_000)
    made, parameters = generate(trial), SCENARIO.values(trial)
    open_for = parameters["size"] + parameters["grace"]
    ages = [now - record.at for now, record in enumerate(made[:-4])]
    assert all(age < parameters["grace"] or 2 * open_for <= age <= 4 * open_for for age in ages)
    first, flow = ages[4 * open_for : 6_000], ages[6_000:]
    assert 0.05 < sum(age > open_for for age in first) / len(first) < 0.15
    share = sum(age > open_for for age in flow) / len(flow)
    assert late[0] < share < late[1] if variant == "LATE" else share == 0


@pytest.mark.parametrize("partitions", [1, 3, 4])
def test_the_last_record_of_a_partition_closes_all_other_windows(partitions):
    trial = a_windows_trial(partitions=partitions, first=100, records=100)
    made = generate(trial)
    closing = made[-partitions:]
    assert {partition_of_key(record.key, partitions) for record in closing} == set(range(partitions))
    parameters, latest = SCENARIO.values(trial), max(record.at for record in made[:-partitions])
    assert all(record.at >= latest + parameters["size"] + parameters["grace"] for record in closing)
    assert not workload(trial).first
    assert workload(trial).second == [(record.key, record.value) for record in made]


def test_the_topology_is_told_what_the_checks_are_told():
    for variant in SCENARIO.variants:
        trial = a_windows_trial(variant)
        reported, known = SCENARIO.app(trial), facts(values(trial))
        finals = reported["suppressed"] or reported["on.close"]
        assert (reported["size.ms"], reported["grace.ms"], finals) == (
            known["size"],
            known["grace"],
            bool(known["suppressed"]),
        )
        assert reported["retention.ms"] >= reported["size.ms"] + reported["grace.ms"]
        assert reported["kind"] == ("tumbling", "hopping", "session", "sliding")[known["kind"]]


@pytest.mark.parametrize(
    ("variant", "parameters", "reason"),
    [
        ("DEFAULT_CONFIG", {}, None),
        ("REBALANCED", {}, None),
        ("UPDATES", {"caching": True}, "of a cached store not every update is emitted"),
        ("IN_MEMORY", {"fault": "state-lost"}, "the fault state-lost is of stores on disk"),
        ("DEFAULT_CONFIG", {"records": 40_000}, "a sum has 22 bits; take fewer records, at most 41,942"),
        ("TIME_LIMIT", {}, None),
        ("TIME_LIMIT", {"kind": "hopping"}, "limit is for each update of windows that tumble"),
        ("TIME_LIMIT", {"late": 0.1}, "limit is for each update of windows that tumble"),
        ("COGROUPED", {"kind": "sliding"}, "cogrouped is for windows that tumble"),
        ("ROLLING", {}, "a rolling bounce takes a second release"),
        ("ON_CLOSE", {}, None),
        ("ON_CLOSE_SESSION_SEGMENTS", {}, None),
        ("ON_CLOSE_SESSION_SEGMENTS", {"kept.longer": True}, "two.segments is for sessions that are emitted when they"),
        ("ON_CLOSE_SESSION_SEGMENTS", {"kind": "tumbling"}, "two.segments is for sessions that are emitted when they"),
        ("ON_CLOSE", {"suppressed": True}, "windows are emitted either from suppress or when they close"),
        ("ON_CLOSE", {"records": 40_000}, "a sum has 22 bits"),
    ],
)
def test_what_cannot_be_run_is_refused(variant, parameters, reason):
    trial = a_windows_trial(variant, **parameters)
    refusal = SCENARIO.refuse_trial(trial)
    assert (refusal or "").startswith(reason or "")
    assert (refusal is None) == (reason is None)


def test_older_records_extend_sessions_just_before_the_restart():
    trial = a_windows_trial("EXTENDED", extended=30, first=400, records=500)
    made, parameters = generate(trial), SCENARIO.values(trial)
    begun, older, youngest = made[400:430], made[430:460], made[460:464]
    again, others = made[464:494], made[494:994]
    assert [r.key for r in begun] == [r.key for r in older] == [r.key for r in again] == list(range(50, 80))
    assert older[0].at < begun[0].at < youngest[0].at < again[0].at < others[0].at
    assert begun[0].at - older[0].at <= parameters["size"]  # one session
    assert older[0].at < youngest[0].at - parameters["size"] - parameters["grace"]  # older than the retention
    assert begun[0].at > youngest[0].at - parameters["size"] - parameters["grace"]  # and still open
    assert max(record.at for record in made[:400]) < older[0].at
    assert {partition_of_key(record.key, 4) for record in youngest} == set(range(4))
    assert len({record.key for record in made[994:]} - {record.key for record in made[:994]}) == 4


@pytest.mark.parametrize("now", [1_000_000_000_000, 1_000_000_031_234, 1_000_000_059_999])
@pytest.mark.parametrize(("variant", "segments"), [("ON_CLOSE_SESSION", 1), ("ON_CLOSE_SESSION_SEGMENTS", 2)])
def test_records_span_the_segments_that_drop_their_sessions(now, variant, segments):
    trial = a_windows_trial(variant)
    begin, first = begins_at(values(trial), now), values(trial).first
    places = [(begin + record.at) // SEGMENT for record in generate(trial)]
    assert len(set(places)) == segments
    assert len({*places[:first]}) == 1
    assert abs(begin - now) < SEGMENT


@pytest.mark.parametrize("now", [1_000_000_000_000, 1_000_000_031_234])
def test_the_first_records_fall_mid_segment_before_it_expires(now):
    assert begins_at(values(a_windows_trial("HALTED")), now) % SEGMENT == SEGMENT // 2


def test_elsewhere_the_youngest_record_is_made_now():
    assert begins_at(values(a_windows_trial("ON_CLOSE")), 59_000) == 59_000


def test_no_later_record_is_out_of_order_where_updates_wait():
    made = generate(a_windows_trial("TIME_LIMIT", first=2_000, records=2_000))
    ages = [now - record.at for now, record in enumerate(made[:-4])]
    assert any(ages[:2_000])
    assert not any(ages[2_000:])


def test_a_release_that_cannot_emit_on_close_is_refused():
    cell = a_trial("3.2.3", "ON_CLOSE", scenario="windows").cell
    assert SCENARIO.refuse(cell) == (
        "Kafka Streams 3.2.3 lacks EmitStrategy.onWindowClose (KIP-825); take 3.3.0 or later."
    )
    assert SCENARIO.refuse(a_trial("3.3.0", "ON_CLOSE", scenario="windows").cell) is None


def test_on_close_windows_are_closed_twice_with_equal_records():
    made = generate(a_windows_trial("ON_CLOSE", first=100, records=100))
    assert made[-4:] == made[-8:-4]
    assert max(record.at for record in made[:-8]) < made[-1].at


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({}, None),
        ({"guarantee": "exactly_once_v2"}, "extended is for cached sessions without transactions"),
        ({"caching": False}, "extended is for cached sessions without transactions"),
        ({"first": 5_000}, "the first records must be older than all others; take first=4000 or fewer."),
    ],
)
def test_sessions_that_cannot_be_extended_are_refused(parameters, reason):
    trial = a_windows_trial("EXTENDED", **parameters)
    refusal = SCENARIO.refuse_trial(trial)
    assert (refusal or "").startswith(reason or "")
    assert (refusal is None) == (reason is None)
