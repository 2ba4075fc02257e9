"""KAFKA-16407 and KAFKA-16434: the independent reader's judgement on the specimens, and what is generated."""

from collections import Counter

import pytest

from onceproof.model.errors import UsageError
from onceproof.model.record import Record
from onceproof.readers.checks import check_foreign_key_join as check
from onceproof.scenarios.base import partition_of_key
from onceproof.scenarios.foreign_key_join import (
    ATTRIBUTE,
    DELETED,
    NULL,
    SCENARIO,
    app,
    changes,
    last_key,
    last_records,
    workload,
)
from tests.conftest import a_trial
from tests.specimens.foreign_key_join import HEALTHY, found


def judged(topics, facts):
    return check({role: [Record(*record) for record in records] for role, records in topics.items()}, facts)


@pytest.mark.parametrize(
    ("timestamp", "anomalies"),
    [pytest.param(108, [], id="the younger"), pytest.param(102, ["wrong-timestamp"], id="the older")],
)
def test_a_result_is_as_old_as_the_younger_of_both(timestamp, anomalies):
    inputs = [(0, 0, 0, -50, 102), (0, 1, 10, 1, 108)]
    judgement = judged({"input": inputs, "output": [(0, 0, 10, 1 << 32 | 50, timestamp)]}, HEALTHY.facts)
    assert [witness.anomaly for witness in judgement.witnesses] == anomalies
    assert judgement.witnesses == [found("wrong-timestamp", 10, "output/0@0", "108", "102") for _ in anomalies]


def test_the_last_record_has_a_new_key_and_a_known_reference():
    trial = a_trial("4.3.1", scenario="foreign-key-join", left=20, right=10, records=200)
    made = workload(trial)
    right = {key for key, value in made.first if value < 0}
    assert 0 in right <= set(range(10))
    assert made.second[-1] == (last_key(trial), 1)
    assert last_key(trial) not in {key for key, _ in (*made.first, *made.second[:-1])}
    assert {key for key, value in made.second[:-1] if value >= NULL} <= set(range(10, 30))


def test_each_left_partition_asks_for_every_key_last():
    trial = a_trial("4.3.1", "LEFT", scenario="foreign-key-join", left=20, right=10, records=200)
    last = last_records(trial)
    assert {(partition_of_key(key, 2), value) for key, value in last} == {(p, k + 1) for p in (0, 1) for k in range(10)}
    assert len({key for key, _ in last}) == len(last) == app(trial)["last.keys"]
    changed = workload(trial).second[: -len(last)]
    assert [value >= NULL for _, value in changed] == sorted(value >= NULL for _, value in changed)


def test_a_left_join_with_null_keys_is_refused():
    trial = a_trial("4.3.1", "LEFT", scenario="foreign-key-join", no_key=True)
    with pytest.raises(UsageError, match=r"add --set no\.key=false\."):
        SCENARIO.validate(trial)


@pytest.mark.parametrize(("absent", "there"), [(0.0, 10), (0.5, 5), (1.0, 1)])
def test_foreign_keys_may_be_of_no_right_record(absent, there):
    made = workload(a_trial("4.3.1", scenario="foreign-key-join", left=50, right=10, records=600, absent=absent))
    records = (*made.first, *made.second)
    assert {key for key, value in records if value < 0} == set(range(there))
    assert {value for _, value in records if value > 0} == set(range(1, 11))


def test_a_share_of_more_than_all_is_refused():
    with pytest.raises(UsageError, match=r"absent is 1\.5, but must be from 0 to 1: share of"):
        SCENARIO.validate(a_trial("4.3.1", scenario="foreign-key-join", absent=1.5))


def test_no_foreign_key_is_null_in_the_control():
    made = workload(a_trial("4.3.1", "NO_NULL_KEY", scenario="foreign-key-join"))
    assert NULL not in {value for _, value in (*made.first, *made.second)}


@pytest.mark.parametrize(
    ("variant", "between"),
    [
        pytest.param("SAME_KEY", None, id="the key, then the attribute"),
        pytest.param("SAME_KEY_CACHED", None, id="in the next commit"),
        pytest.param("TO_NULL", NULL, id="null in between"),
        pytest.param("REINSERTED", DELETED, id="deleted in between"),
    ],
)
def test_each_row_changes_twice_to_a_key_that_may_be_absent(variant, between):
    trial = a_trial("4.3.1", variant, scenario="foreign-key-join", left=2_000)
    made, parameters = workload(trial), SCENARIO.values(trial)
    there = {key for key, value in made.first if value < NULL}
    rows = {key: value for key, value in made.first if value >= NULL}
    assert len(there) == 150
    assert len(rows) == 2_000
    assert {value - 1 for value in rows.values()} == there
    twice = made.second[: -len(last_records(trial))]
    for place, (key, value) in enumerate(twice):
        if value < ATTRIBUTE:
            again = twice[place + parameters["apart"]]
            assert again[0] == key
            assert value == (again[1] - ATTRIBUTE if between is None else between)
    assert Counter(key for key, _ in twice) == dict.fromkeys(rows, 2)
    asked = {value - ATTRIBUTE - 1 for _, value in twice if value >= ATTRIBUTE}
    assert asked - there
    assert asked & there


@pytest.mark.parametrize(
    ("variant", "given", "sentence"),
    [
        ("SAME_KEY", {"absent": 0.0}, r"rows race only to foreign keys that are absent; add --set absent=0\.5\."),
        ("TO_NULL", {"no.key": False}, r"race=null makes foreign keys null; add --set no\.key=true\."),
        ("SAME_KEY", {"right": 1_000_000}, r"right is 1,000,000, but a row has no place for more than 999,998"),
    ],
)
def test_a_race_that_cannot_be_is_refused(variant, given, sentence):
    with pytest.raises(UsageError, match=sentence):
        SCENARIO.validate(a_trial("4.3.1", variant, scenario="foreign-key-join", **given))


def test_rows_may_race_to_the_left_too():
    SCENARIO.validate(a_trial("4.3.1", "TO_NULL", scenario="foreign-key-join", join="left"))


@pytest.mark.parametrize("variant", ["DEFAULT_CONFIG", "LEFT", "NO_NULL_KEY"])
def test_without_a_race_rows_are_their_foreign_keys(variant):
    made = workload(a_trial("4.3.1", variant, scenario="foreign-key-join"))
    assert max(value for _, value in (*made.first, *made.second)) <= 300


@pytest.mark.parametrize(
    ("of_left", "expected"),
    [
        pytest.param([(1, 0), (1, 5)], (1, 0, 0), id="from null"),
        pytest.param([(1, 5), (1, 0)], (0, 1, 0), id="to null"),
        pytest.param([(1, 5), (1, 6), (2, 0), (2, 0)], (0, 0, 1), id="to another"),
        pytest.param([(1, 5), (1, 5)], (0, 0, 0), id="not at all"),
        pytest.param([(1, 5), (1, 0), (1, 5), (2, 0), (2, 1)], (2, 1, 0), id="both"),
    ],
)
def test_changes_of_foreign_keys_are_counted(of_left, expected):
    assert changes(of_left) == expected
