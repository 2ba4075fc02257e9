"""Shrinking, with a stand-in for the trials: what is red is known beforehand."""

from hypothesis import given
from hypothesis import strategies as st

from onceproof.campaigns.shrinking.reductions import NUMBERS, Candidate, shrink, smaller

START = {"partitions": 12, "keys": 100, "threads": 2, "records.per.step": 1_500, "records": 30_000}


def contains(program, wanted):
    steps = iter(program)
    return all(step in steps for step in wanted)


def test_the_program_of_the_seed_is_found_again():
    candidate = Candidate.of([3, 3, 1, 2, 4, 3, 4], START)
    found = shrink(
        candidate, lambda c: contains(c.program, (1, 2, 3)) and dict(c.numbers)["keys"] >= 25, lambda: True, smaller
    )
    assert found.program == (1, 2, 3)
    assert dict(found.numbers) == {"partitions": 1, "keys": 25, "threads": 1, "records.per.step": 10, "records": 100}
    assert found.parameters["instances"] == 3


@given(st.lists(st.integers(1, 5), min_size=1, max_size=8))
def test_every_reduction_is_smaller_and_still_a_program(program):
    candidate = Candidate.of(program, START)
    for less in smaller(candidate):
        assert less.program
        assert set(less.program) == set(range(1, max(less.program) + 1)) or less.program == candidate.program
        assert all(value >= NUMBERS[name] for name, value in less.numbers)
        assert (len(less.program), len(set(less.program)), sum(n for _, n in less.numbers)) < (
            len(candidate.program),
            max(candidate.program) + 1,
            sum(n for _, n in candidate.numbers) + 1,
        )


def test_nothing_is_tried_twice_and_the_budget_is_kept():
    asked = []

    def is_red(candidate):
        asked.append(candidate)
        return len(candidate.program) > 2

    shrink(Candidate.of([1, 2, 3, 1, 2], START), is_red, lambda: True, smaller)
    assert len(asked) == len(set(asked))
    asked.clear()
    left = iter([True, True, True, False])
    shrink(Candidate.of([1, 2, 3, 1, 2], START), is_red, lambda: next(left), smaller)
    assert len(asked) == 3


def test_what_was_not_red_before_is_tried_again_last():
    asked = []

    def is_red(letters):
        asked.append(letters)
        return {"a", "b"} <= set(letters)

    def without_one(letters):
        return [letters.replace(letter, "") for letter in letters]

    assert shrink("abcdef", is_red, lambda: True, without_one) == "ab"
    assert asked == ["bcdef", "acdef", "abdef", "abef", "abf", "ab", "b", "a"]
