"""The arithmetic of verdicts, against figures that can be worked out by hand or found in the literature."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onceproof.statistics import SURE, greens_needed, is_too_few, probability_missed, wilson_interval


@pytest.mark.parametrize(
    ("red", "counted", "expected"),
    [(1, 1, (0.2065, 1.0)), (0, 1, (0.0, 0.7935)), (20, 20, (0.8389, 1.0)), (5, 10, (0.2366, 0.7634))],
)
def test_wilson_intervals(red, counted, expected):
    assert wilson_interval(red, counted) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("red", "greens", "expected"),
    [
        (1, 1, Fraction(1, 4)),  # (1/2) / 2
        (1, 2, Fraction(1, 8)),  # (1/2)(3/2) / (2 * 3)
        (3, 1, Fraction(1, 8)),
        (9, 1, Fraction(1, 20)),
    ],
)
def test_what_a_green_misses_after_as_many_red_trials(red, greens, expected):
    assert probability_missed(red, red, greens) == pytest.approx(float(expected))


@pytest.mark.parametrize(("red", "counted", "needed"), [(1, 1, 5), (2, 2, 3), (3, 3, 2), (9, 9, 1), (1, 2, 11)])
def test_how_many_greens_a_control_asks_for(red, counted, needed):
    assert greens_needed(red, counted) == needed


@given(counted=st.integers(1, 50), data=st.data())
def test_one_green_less_than_needed_would_not_do(counted, data):
    red = data.draw(st.integers(1, counted))
    needed = greens_needed(red, counted)
    if needed < 1000:
        assert probability_missed(red, counted, needed) <= 1 - SURE + 1e-12
    if needed > 1:
        assert probability_missed(red, counted, needed - 1) > 1 - SURE


@given(red=st.integers(0, 30), more=st.integers(0, 30), greens=st.integers(1, 20))
def test_more_greens_miss_less(red, more, greens):
    assert probability_missed(red, red + more, greens + 1) < probability_missed(red, red + more, greens)


@pytest.mark.parametrize(
    ("now", "before", "too_few"),
    [((1, 1), (40, 40), False), ((0, 1), (40, 40), True), ((1, 6), (40, 40), True), ((9, 10), (40, 40), False)],
)
def test_reds_that_do_not_fit_what_was_seen_before(now, before, too_few):
    assert is_too_few(*now, *before) is too_few


@given(counted=st.integers(1, 10))
def test_all_red_always_fits(counted):
    assert not is_too_few(counted, counted, 20, 20)
