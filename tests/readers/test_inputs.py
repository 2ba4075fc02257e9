"""The input holds what was generated: key by key, the same values in the same order, in the right partition."""

import pytest

from onceproof.model.record import Record
from onceproof.readers.inputs import deviation


def home(key):
    return (key + 1) % 2


GENERATED = [(1, 10), (0, 20), (1, 11)]
THERE = [Record(0, 0, 1, 10), Record(0, 3, 1, 11), Record(1, 0, 0, 20)]


def test_generated_input_is_found_in_any_order_of_partitions():
    assert deviation(THERE, GENERATED, home) is None
    assert deviation(THERE[::-1], GENERATED, home) is None
    assert deviation([], [], home) is None


@pytest.mark.parametrize(
    ("there", "said"),
    [
        (THERE[1:], "key 1 was delivered with the values 10, 11, but is there with 11 (0@3)"),
        ([*THERE, Record(1, 5, 0, 20)], "key 0 was delivered with the values 20, but is there with 20, 20 (1@0, 1@5)"),
        ([*THERE, Record(1, 5, 2, 7)], "key 2 was delivered with the values none, but is there with 7 (1@5)"),
        ([*THERE[:2], Record(1, 0, 0, 21)], "key 0 was delivered with the values 20, but is there with 21 (1@0)"),
        (
            [Record(0, 0, 1, 11), Record(0, 3, 1, 10), THERE[2]],
            "key 1 was delivered with the values 10, 11, but is there with 11, 10 (0@0, 0@3)",
        ),
        ([*THERE[:2], Record(0, 5, 0, 20)], "key 0 is in partition 0 (offset 5), not in 1"),
    ],
    ids=["one is missing", "one is there twice", "a key of nobody", "another value", "another order", "elsewhere"],
)
def test_where_it_is_not_is_said(there, said):
    assert deviation(there, GENERATED, home) == said


def test_records_without_a_key_have_no_order_over_partitions():
    inputs = [Record(0, 0, None, 2), Record(1, 0, None, 1)]
    assert deviation(inputs, [(None, 1), (None, 2)], None) is None
    assert "key None" in str(deviation(inputs, [(None, 1), (None, 3)], None))


@pytest.mark.parametrize("value", [None, 7])
def test_a_key_that_occurs_once_must_be_in_its_partition(value):
    assert deviation([Record(1, 0, 0, value)], [(0, value)], home) is None
    assert deviation([Record(0, 0, 0, value)], [(0, value)], home) == "key 0 is in partition 0 (offset 0), not in 1"
    assert deviation([Record(0, 0, None, value)], [(None, value)], home) is None  # who has no key has no home


def test_of_many_values_five_are_told():
    inputs = [Record(0, offset, 1, offset) for offset in range(6)]
    said = str(deviation(inputs, [(1, value) for value in range(5)], home))
    assert said.startswith(
        "key 1 was delivered with the values 0, 1, 2, 3, 4, but is there with 0, 1, 2, 3, 4 and 1 more"
    )
