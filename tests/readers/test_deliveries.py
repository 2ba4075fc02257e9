"""A key comes out as often as it goes in: what several scenarios share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onceproof.model.anomaly import Comparison
from onceproof.model.record import Record
from onceproof.readers.comparisons import records_text
from onceproof.readers.deliveries import compare_deliveries

INPUT = [Record(1, 0, 7, 0), Record(0, 9, 7, 0), Record(0, 5, 8, 0)]


def delivered(anomaly, key, place, expected, observed, partition=0):
    return Comparison("deliveries", anomaly, partition, key, place, expected, observed)


def test_one_comparison_stands_for_keys_emitted_equally_often():
    outputs = [Record(1, 3, 7, 0), Record(1, 1, 7, 0), Record(0, 0, 8, 0)]
    [found] = compare_deliveries(INPUT, outputs)
    assert (found.anomaly, found.place, found.comparisons) == (None, "output", 2)


def test_a_lost_record_is_reported_at_its_keys_first_input_place():
    assert set(compare_deliveries(INPUT, [Record(1, 1, 7, 0)])) == {
        delivered("lost-record", 7, "input/0@9", "2 records", "1 record"),
        delivered("lost-record", 8, "input/0@5", "1 record", "0 records"),
    }


def test_a_surplus_is_reported_at_its_last_place_in_the_topic():
    outputs = [*INPUT, Record(0, 11, 8, 0), Record(0, 2, 9, 0)]
    found = {c.key: c for c in compare_deliveries(INPUT, outputs, role="log")}
    assert found[8] == delivered("duplicate-output", 8, "log/0@11", "1 record", "2 records")
    assert found[9] == delivered("unexpected-record", 9, "log/0@2", "0 records", "1 record")


@pytest.mark.parametrize(("came_out", "anomaly"), [(0, "lost-record"), (1, None), (2, "duplicate-output")])
def test_a_key_due_once_is_emitted_once_however_often_it_enters(came_out, anomaly):
    inputs = [Record(0, offset, 7, 0) for offset in range(2)]
    [found] = compare_deliveries(inputs, inputs[:came_out], once=True)
    assert (found.anomaly, found.comparisons) == (anomaly, 1)
    assert anomaly is None or found.expected == "1 record"


def test_a_key_that_never_went_in_is_not_to_come_out_once():
    [found] = compare_deliveries([], [Record(0, 3, 7, 0)], once=True)
    assert found == delivered("unexpected-record", 7, "output/0@3", "0 records", "1 record")


@pytest.mark.parametrize(("came_out", "anomaly"), [(1, "lost-record"), (2, None), (3, None)])
def test_at_least_once_allows_more_deliveries_and_not_fewer(came_out, anomaly):
    inputs = [Record(0, offset, 7, 0) for offset in range(3)]
    [found] = compare_deliveries(inputs[:2], inputs[:came_out], at_least=True)
    assert found.anomaly == anomaly


KEYS = st.lists(st.integers(-3, 3), max_size=12)


@given(KEYS, KEYS)
def test_every_key_is_compared_once_and_red_if_counts_differ(entered, left):
    inputs = [Record(0, offset, key, 0) for offset, key in enumerate(entered)]
    outputs = [Record(0, offset, key, 0) for offset, key in enumerate(left)]
    found = list(compare_deliveries(inputs, outputs))
    assert sum(c.comparisons for c in found) == len({*entered, *left})
    fields = {c.key: c.anomaly for c in found if c.anomaly}
    for key in {*entered, *left}:
        surplus = left.count(key) - entered.count(key)
        more = "duplicate-output" if key in entered else "unexpected-record"
        assert fields.get(key) == ("lost-record" if surplus < 0 else more if surplus else None)


@pytest.mark.parametrize(("count", "text"), [(0, "0 records"), (1, "1 record"), (2, "2 records")])
def test_records_are_counted_for_people(count, text):
    assert records_text(count) == text
