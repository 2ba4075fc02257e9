"""KAFKA-14862: the independent reader's judgement on the specimens, and what is generated."""

from collections import defaultdict

import pytest

from onceproof.model.errors import UsageError
from onceproof.scenarios.base import partition_of_key
from onceproof.scenarios.stream_join import SCENARIO, facts, values, workload
from tests.conftest import a_trial


@pytest.mark.parametrize("partitions", [1, 2, 3])
def test_numbers_grow_in_partitions_and_the_last_closes_windows(partitions):
    made = workload(a_trial("4.3.1", scenario="stream-join", records=200, partitions=partitions))
    assert not made.first
    numbers = defaultdict(list)
    for key, value in made.second:
        numbers[partition_of_key(key, partitions)].append(abs(value))
    assert numbers.keys() == set(range(partitions))
    waits = sum(int(SCENARIO.settable[name].default) for name in ("window", "grace"))
    for of_partition in numbers.values():
        assert of_partition == sorted(set(of_partition))
        assert of_partition[-1] == 200 + waits + 1
    assert {value > 0 for _, value in made.second} == {True, False}


def test_the_first_partition_comes_last():
    made = workload(a_trial("4.3.1", scenario="stream-join", records=200)).second
    partitions = [partition_of_key(key, 2) for key, _ in made]
    assert set(partitions[:100]) == {0, 1}
    assert partitions[100:] == sorted(partitions[100:], reverse=True)


@pytest.mark.parametrize(("streams", "refused"), [("3.0.2", True), ("3.1.0", False), ("4.3.1", False)])
def test_releases_that_do_not_wait_for_windows_are_refused(streams, refused):
    refusal = SCENARIO.refuse(a_trial(streams, scenario="stream-join").cell)
    assert bool(refusal) is refused
    assert refusal is None or "does not wait for a window to close" in refusal


def test_under_a_fault_all_partitions_stay_in_step():
    made = workload(a_trial("4.3.1", scenario="stream-join", records=200, fault="pause")).second
    assert [abs(value) for _, value in made] == [*range(1, 201), 321, 321]


@pytest.mark.parametrize(
    ("streams", "asked", "refused"),
    [
        ("4.3.1", {"guarantee": "at_least_once"}, "a store may be ahead of its input"),
        ("3.4.0", {}, r"share a clock \(KAFKA-14862\).*choose 3.4.1"),
        ("3.4.0", {"join": "inner"}, None),
        ("3.4.1", {}, None),
    ],
)
def test_faults_that_would_break_the_promise_are_refused(streams, asked, refused):
    trial = a_trial(streams, scenario="stream-join", fault="bounce", **asked)
    if refused is None:
        SCENARIO.validate(trial)
    else:
        with pytest.raises(UsageError, match=refused):
            SCENARIO.validate(trial)


@pytest.mark.parametrize(
    ("variant", "streams", "restart_on", "from_the_start"),
    [("HEADERS", "4.3.1", None, True), ("ROLLING_HEADERS", "4.2.2", "4.4.0", False)],
)
def test_where_stores_keep_headers_each_record_has_one(variant, streams, restart_on, from_the_start):
    trial = a_trial(streams, variant, scenario="stream-join", restart_on=restart_on)
    SCENARIO.validate(trial)
    assert workload(trial).labelled
    assert ("dsl.store.format" in SCENARIO.config(trial)) is from_the_start
    assert not workload(a_trial("4.3.1", "KILLED", scenario="stream-join")).labelled


def test_releases_whose_stores_keep_no_headers_are_refused():
    refusal = SCENARIO.refuse_trial(a_trial("4.2.2", "HEADERS", scenario="stream-join"))
    assert refusal == "Kafka Streams 4.2.2 keeps no headers in stores (KIP-1271); take 4.3.0 or later."
    rolled = SCENARIO.refuse_trial(a_trial("4.3.1", "ROLLING_HEADERS", scenario="stream-join", restart_on="4.4.0"))
    assert str(rolled).endswith("hangs on where it was restored; roll from 4.2 or earlier.")


def test_records_are_out_of_order_within_the_grace_or_too_late():
    trial = a_trial("4.3.1", "OUT_OF_ORDER", scenario="stream-join")
    made = workload(trial)
    assert [abs(value) for _, value in made.second] == [*range(1, 6_001), 6_181]
    delays = [abs(value) - at for (_, value), at in zip(made.second, made.times, strict=True)]
    assert {delay > 80 for delay in delays if delay} == {True, False}
    assert max(delays) <= 2 * (100 + 80)
    assert 1_500 < sum(0 < delay <= 80 for delay in delays) < 2_100
    assert 200 < sum(delay > 80 for delay in delays) < 400
    in_order = workload(a_trial("4.3.1", "ONE_TASK", scenario="stream-join"))
    assert made.second[:-1] == in_order.second[:-1]
    assert [*in_order.times[:-1]] == [*range(1, 6_001)]


@pytest.mark.parametrize(("partitions", "refused"), [(1, False), (2, True)])
def test_records_out_of_order_ask_for_a_clock_of_each_task(partitions, refused):
    reason = SCENARIO.refuse_trial(a_trial("3.4.0", "LONG_GRACE", scenario="stream-join", partitions=partitions))
    assert ("share a clock" in str(reason)) is refused
    assert SCENARIO.refuse_trial(a_trial("3.4.1", "LONG_GRACE", scenario="stream-join", partitions=2)) is None


def test_partitions_stay_in_step_in_an_asymmetric_join():
    trial = a_trial("4.3.1", "ASYMMETRIC", scenario="stream-join", records=200)
    assert [abs(value) for _, value in workload(trial).second] == [*range(1, 201), 521, 521]
    assert SCENARIO.app(trial)["before.ms"] == 20
    assert facts(values(trial)) == {"window": 300, "before": 20, "grace": 20, "join": 2}
    symmetric = a_trial("4.3.1", scenario="stream-join")
    assert "before.ms" not in SCENARIO.app(symmetric)
    assert facts(values(symmetric))["before"] == 100
    with pytest.raises(UsageError, match=r"before is 301, but may be window \(300\) at most"):
        SCENARIO.validate(a_trial("4.3.1", "ASYMMETRIC", scenario="stream-join", before=301))
