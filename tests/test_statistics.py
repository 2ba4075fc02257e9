"""The arithmetic of verdicts: figures that can be worked out by hand, and every claim by simulation."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import betabinom, fisher_exact

from onceproof.statistics import (
    MANY,
    control_trials,
    greens_needed,
    is_too_few,
    probability_missed,
    wilson_interval,
)


@pytest.mark.parametrize(
    ("red", "counted", "expected"),
    [(1, 1, (0.2065, 1.0)), (0, 1, (0.0, 0.7935)), (20, 20, (0.8389, 1.0)), (5, 10, (0.2366, 0.7634))],
)
def test_wilson_intervals(red, counted, expected):
    assert wilson_interval(red, counted) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("red", "greens", "expected"),
    [
        (1, 1, Fraction(1, 4)),  # p (1 - p) is largest at 1/2
        (1, 2, Fraction(4, 27)),  # p (1 - p)^2 at 1/3
        (2, 1, Fraction(4, 27)),
        (3, 3, Fraction(1, 64)),
        (7, 1, Fraction(7**7, 8**8)),
    ],
)
def test_what_greens_miss_at_most_after_as_many_red_trials(red, greens, expected):
    assert probability_missed(red, red, greens) == pytest.approx(float(expected), rel=1e-4)


@pytest.mark.parametrize(
    ("red", "counted", "risk", "needed"),
    [
        (1, 1, 0.25, 1),
        (1, 1, 0.05, 7),  # 7^7 / 8^8 = 4.9 %
        (2, 2, 0.05, 3),
        (3, 3, 0.05, 2),
        (7, 7, 0.05, 1),
        (6, 7, 0.05, 3),
        (0, 7, 0.05, MANY),
        (0, 0, 0.05, MANY),
    ],
)
def test_how_many_greens_a_control_asks_for(red, counted, risk, needed):
    assert greens_needed(red, counted, risk) == needed


def test_how_many_trials_of_a_control_let_one_green_do():
    assert (control_trials(0.05), control_trials(0.25)) == (7, 1)
    assert [control_trials(0.05, standing) for standing in (1, 4, 5)] == [2, 3, 7]


@given(counted=st.integers(1, 40), data=st.data(), risk=st.sampled_from([0.05, 0.1, 0.25]))
def test_a_claim_keeps_its_bound_and_a_better_control_asks_for_no_more(counted, data, risk):
    red = data.draw(st.integers(1, counted))
    needed = greens_needed(red, counted, risk)
    if needed < MANY:
        assert probability_missed(red, counted, needed) <= risk
    assert greens_needed(red - 1, counted, risk) >= needed


# --- claims by simulation: cells that have a bug as visible as their control, and are called green nevertheless

CELLS = 200_000
RATES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)


def claims(draw, rate, control, budget, risk, needed=greens_needed):
    """Which cells are claimed green: those that get as many green trials as their control asks for."""
    asked = np.array([needed(red, control, risk) for red in range(control + 1)])[draw.binomial(control, rate, CELLS)]
    first_red = draw.geometric(rate, CELLS) if rate else np.full(CELLS, MANY)
    return (asked <= budget) & (first_red > asked)


def too_many(missed, risk):
    """More than the risk, by more than chance explains (four standard errors)."""
    return missed.mean() > risk + 4 * np.sqrt(risk * (1 - risk) / len(missed))


@pytest.mark.parametrize("risk", [0.05, 0.1, 0.25])
@pytest.mark.parametrize("control", [1, 2, 3, 7, 8, 20])
@pytest.mark.parametrize("budget", [1, 6, 100])
def test_no_more_of_the_claimed_greens_are_misses_than_the_risk(risk, control, budget):
    draw = np.random.default_rng(1)
    for rate in RATES:
        assert not too_many(claims(draw, rate, control, budget, risk), risk), rate


@pytest.mark.parametrize("risk", [0.05, 0.25])
def test_nor_night_after_night_with_controls_that_add_up_and_trials_that_are_not_exercised(risk):
    """What a run does: as many planned trials of the control as are lacking, at least one; some are not exercised.

    Greens are claimed only if tonight's control was red, and not too seldom for its past; this takes claims away.
    """
    draw, cells = np.random.default_rng(2), 20_000
    for rate in RATES:
        red, counted = np.zeros(cells, int), np.zeros(cells, int)
        for _ in range(6):
            planned = np.maximum(control_trials(risk) - counted, 1)
            exercised = draw.binomial(planned, 0.8)
            tonight = draw.binomial(exercised, rate)
            pairs = np.stack([red + tonight, counted + exercised], axis=1)
            kinds, of = np.unique(pairs, axis=0, return_inverse=True)
            asked = np.array([greens_needed(int(r), int(n), risk) for r, n in kinds])[of.ravel()]
            claimed = (tonight > 0) & (asked <= 6) & (draw.geometric(rate, cells) > asked)
            assert not too_many(claimed, risk), rate
            red, counted = red + tonight, counted + exercised


def test_the_simulation_sees_rules_that_claim_too_much():
    """The mean of Jeffreys' prior, the point estimate, and the rate of a control whose trials end with the first red."""
    draw = np.random.default_rng(3)

    def jeffreys(red, counted, risk):
        missed = betabinom.pmf(0, np.arange(1, 50), red + 0.5, counted - red + 0.5)
        return int(np.argmax(missed <= risk)) + 1 if missed[-1] <= risk else MANY

    def point(red, counted, risk):
        return 1 if red == counted else next((g for g in range(1, 50) if (1 - red / counted) ** g <= risk), MANY)

    for rule in (jeffreys, point):
        assert any(too_many(claims(draw, rate, 1, 100, 0.05, rule), 0.05) for rate in RATES), rule

    first_red = draw.geometric(0.3, CELLS)  # as if its number had been fixed
    asked = np.array([greens_needed(1, int(n), 0.25) if n <= 6 else MANY for n in range(8)])[np.minimum(first_red, 7)]
    assert too_many((asked <= 100) & (draw.geometric(0.3, CELLS) > asked), 0.25)


def test_where_there_is_no_bug_greens_are_claimed():
    assert claims(np.random.default_rng(4), 0.0, 7, 6, 0.05).sum() == 0  # a control that is never red carries nothing
    assert [greens_needed(n, n, 0.05) for n in (7, 8, 20, 100)] == [1, 1, 1, 1]


# --- controls that do not fit their past


@pytest.mark.parametrize(
    ("now", "before", "too_few"),
    [
        ((1, 1), (40, 40), False),
        ((0, 1), (40, 40), True),
        ((1, 6), (7, 7), True),
        ((0, 3), (3, 3), True),
        ((9, 10), (40, 40), False),
    ],
)
def test_reds_that_do_not_fit_what_was_seen_before(now, before, too_few):
    assert is_too_few(*now, *before) is too_few


@given(red=st.integers(0, 10), green=st.integers(0, 10), before=st.integers(1, 40), data=st.data())
def test_it_is_fishers_exact_test(red, green, before, data):
    red_before = data.draw(st.integers(0, before))
    if red + green:
        p = fisher_exact([[red, green], [red_before, before - red_before]], alternative="less").pvalue
        # 5 % is few enough, and may be a little more as a float: none of 3 where it was 3 of 3.
        assert is_too_few(red, red + green, red_before, before) is bool(p <= 0.05 * (1 + 1e-12))
