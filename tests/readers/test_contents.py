"""The changelog of a cached store: each record of it is one that its key had, in the order of the input."""

import pytest

from onceproof.model.record import Record
from onceproof.readers.contents import LogCheck, compare_contents

LOG = LogCheck("changelog", "kept-changelog", folded=True, history=True)
INPUT = [(0, 0, 1, 5, 10), (0, 1, 1, 6, 20), (0, 2, 1, 5, 30), (0, 3, 2, 9, 40)]
LAST = (5, 30)


def breaches(*had, entered=INPUT, exactly_once=True):
    """What is wrong with the records of key 1, values with their times; that of key 2 is well."""
    changelog = [*((0, n, 1, value, time) for n, (value, time) in enumerate(had)), (0, len(had), 2, 9, 40)]
    topics = {"input": [Record(*row) for row in entered], LOG.role: [Record(*row) for row in changelog]}
    first, *others = compare_contents(LOG, topics, exactly_once=exactly_once)
    assert (first.anomaly, first.comparisons) == (None, max(len(entered), len(changelog)))
    assert {(other.partition, other.key, other.comparisons) for other in others} <= {(0, 1, 0)}
    return [(other.anomaly, other.place, other.expected, other.observed) for other in others]


@pytest.mark.parametrize(
    "had",
    [[LAST], [(5, 10), (6, 20), LAST], [(5, 10), LAST], [(6, 20), LAST]],
    ids=["the last alone", "all", "the first and the last", "the second and the last"],
)
def test_a_cache_may_leave_out_what_another_value_replaced(had):
    assert breaches(*had) == breaches(*had, exactly_once=False) == []


def test_a_value_that_the_key_never_had_is_unexpected():
    unexpected = ("unexpected-record", "kept-changelog/0@1", "what the key had", "7")
    assert breaches((5, 10), (7, 20), LAST) == [unexpected]
    deleted = ("unexpected-record", "kept-changelog/0@0", "what the key had", "nothing")
    assert breaches((None, 10), LAST) == [deleted]


def test_the_next_value_with_a_foreign_time_is_found():
    wrong = ("wrong-timestamp", "kept-changelog/0@1", "20", "10")
    assert breaches((5, 10), (6, 10), LAST) == [wrong]
    assert breaches((6, 10), LAST) == [("wrong-timestamp", "kept-changelog/0@0", "20", "10")]
    assert breaches((5, 20), LAST) == [("wrong-timestamp", "kept-changelog/0@0", "10", "20")]  # of the first of both
    # 6 came between two 5s: after the first of them it is the next.
    assert breaches((5, 10), (6, 99), LAST) == [("wrong-timestamp", "kept-changelog/0@1", "20", "99")]
    assert breaches((6, 20), (6, 99), LAST) == [("unexpected-record", "kept-changelog/0@1", "what the key had", "6")]


@pytest.mark.parametrize(
    ("had", "place", "behind", "of"),
    [
        ([(6, 20), (5, 10), LAST], "kept-changelog/0@1", "input/0@1", "input/0@0"),
        ([(5, 10), (5, 10), LAST], "kept-changelog/0@1", "input/0@0", "input/0@0"),
        ([(5, 10), (6, 20), (5, 10), LAST], "kept-changelog/0@2", "input/0@1", "input/0@0"),
    ],
    ids=["an earlier one", "the same again", "an earlier one again"],
)
def test_under_exactly_once_records_keep_the_order_of_the_input(had, place, behind, of):
    assert breaches(*had) == [("wrong-order", place, f"of a record behind {behind}", f"of {of}")]
    assert breaches(*had, exactly_once=False) == []


def test_inputs_that_give_the_same_may_each_have_given_a_record():
    alike = [(0, 0, 1, 5, 10), (0, 1, 1, 5, 10), (0, 2, 1, 6, 20), (0, 3, 1, 5, 10), (0, 4, 2, 9, 40)]
    assert breaches((5, 10), (5, 10), (5, 10), entered=alike) == []
    assert breaches((5, 10), (6, 20), (5, 10), entered=alike) == []
    assert [wrong[0] for wrong in breaches((6, 20), (5, 10), (6, 20), (5, 10), entered=alike)] == ["wrong-order"]


def test_a_key_that_is_wrong_at_the_end_is_told_once():
    assert breaches((5, 10), (7, 30)) == [("wrong-value", "kept-changelog/0@1", "5", "7")]
    assert breaches((5, 10)) == [("wrong-timestamp", "kept-changelog/0@0", "30", "10")]
    assert [wrong[0] for wrong in breaches((5, 10), (None, 30))] == ["lost-record"]
