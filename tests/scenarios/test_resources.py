"""What grows in every round is a leak, on counts as instances report them."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onceproof.model.anomaly import Comparison
from onceproof.scenarios.resources import ROUNDS, WARM, compare_resources

WARMING = [5, 9, 7]


def compared(**numbers: Sequence[int | None]) -> dict[str, Comparison]:
    """What is said of each resource; None stands for a round in which it was not seen."""
    rounds = zip(*numbers.values(), strict=True)
    events = [
        {"t": 1, "event": "resources", "held": {k: n for k, n in zip(numbers, held, strict=True) if n is not None}}
        for held in rounds
    ]
    return {c.place: c for c in compare_resources(events)}


def test_what_grows_in_every_round_is_a_leak_and_nothing_else_is():
    found = compared(
        threads=[*WARMING, 7, 8, 9, 11, 12, 13, 14],
        metrics=[*WARMING, 7, 8, 9, 11, 11, 13, 14],
        handles=[*WARMING, 7, 8, 9, 11, 12, 13, 12],
    )
    assert {place: c.anomaly for place, c in found.items()} == {"handles": None, "metrics": None, "threads": "leak"}
    assert found["threads"].observed == "threads: 7, 8, 9, 11, 12, 13, 14"


def test_growth_while_it_warms_up_is_none():
    assert [c.anomaly for c in compared(threads=[1, 2, 3, *[4] * ROUNDS]).values()] == [None]


def test_an_object_that_appears_later_can_leak():
    found = compared(objects=[None, None, None, None, *range(1, ROUNDS)], threads=[1] * (WARM + ROUNDS))
    assert found["objects"].anomaly == "leak"


@pytest.mark.parametrize("rounds", [0, WARM, WARM + ROUNDS - 1])
def test_too_few_rounds_say_nothing(rounds):
    assert compared(threads=list(range(rounds))) == {}


@given(st.lists(st.integers(0, 50), min_size=ROUNDS, max_size=ROUNDS + 3))
def test_a_leak_is_a_number_without_a_repeat_or_a_fall(numbers):
    [found] = compared(threads=[*WARMING, *numbers]).values()
    assert (found.anomaly == "leak") == (sorted(set(numbers)) == numbers)
