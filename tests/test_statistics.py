"""The arithmetic of verdicts: figures that can be worked out by hand, and every claim by simulation."""

import inspect
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import betabinom, binom, binomtest, fisher_exact

from onceproof import statistics
from onceproof.statistics import (
    MANY,
    _chances,
    _count_needed,
    control_trials,
    greens_needed,
    is_too_few,
    probability_missed,
    rate_found,
    wilson_interval,
)
from onceproof.statistics import (
    RATES as CHECKED,
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
        (0, 7, 0.99, MANY),  # a control that was never red carries nothing at any risk
        (1, 1, 1.0, 1),  # and a claim takes a trial
    ],
)
def test_how_many_greens_a_control_asks_for(red, counted, risk, needed):
    assert greens_needed(red, counted, risk) == needed


def test_how_many_trials_of_a_control_let_one_green_do():
    assert (control_trials(0.05), control_trials(0.25)) == (7, 1)
    assert [control_trials(0.05, standing) for standing in (1, 4, 5)] == [2, 3, 7]


@pytest.mark.parametrize(("greens", "rate"), [(1, 0.95), (2, 0.7764), (3, 0.6316), (7, 0.3482), (59, 0.0495)])
def test_which_rates_greens_exclude(greens, rate):
    assert rate_found(greens, 0.05) == pytest.approx(rate, abs=1e-4)


@given(counted=st.integers(1, 40), data=st.data(), risk=st.sampled_from([0.05, 0.1, 0.25]))
def test_a_claim_keeps_its_bound(counted, data, risk):
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
def test_the_risk_holds_over_nights_with_unexercised_trials(risk):
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


# Of nights after one whose seven control trials were all red, which at a rate of 65 % one in twenty is.
LUCKY = 7


def asked_for(red, counted):
    """Greens that each of many controls asks for; all have as many trials."""
    by_reds = np.array([greens_needed(LUCKY + r, LUCKY + counted, 0.05) for r in range(counted + 1)])
    return by_reds[red]


def misses_after_luck(rate, nights, every=1, budget=6):
    """In each night the share of cells that are called green, with the rate of their control, which was lucky once.

    One control trial is planned every so many nights, and counts. Each of them is red tonight, or some further trial is,
    so that no night's claims are taken away: the worst case.
    """
    draw = np.random.default_rng(5)
    red, counted, shares = np.zeros(CELLS, int), 0, []
    for night in range(nights + 1):
        if night and night % every == 0:
            red, counted = red + draw.binomial(1, rate, CELLS), counted + 1
        asked = asked_for(red, counted)
        shares.append(float(np.mean((asked <= budget) & (draw.geometric(rate, CELLS) > asked))))
    return shares


@pytest.mark.parametrize("rate", [0.5, 0.65, 0.8])
def test_a_lucky_night_does_not_last(rate):
    shares = misses_after_luck(rate, 30)
    assert shares[0] == pytest.approx(1 - rate, abs=0.01)  # one green is enough, and misses that much
    assert shares[5] < 0.5 * shares[0]
    assert shares[14] < 0.36 * shares[0]
    assert shares[30] < 0.25 * shares[0]


def test_a_lucky_night_of_injected_bugs_does_not_last():
    shares = misses_after_luck(0.65, 60, every=4)
    assert shares[0] > 0.34
    assert shares[20] < 0.5 * shares[0]
    assert shares[60] < 0.32 * shares[0]


def test_the_simulation_sees_a_draw_that_is_kept_for_ever():
    kept = misses_after_luck(0.65, 30, every=31)
    assert min(kept) > 0.34


@pytest.mark.parametrize("rate", [0.35, 0.5, 0.65, 0.8, 0.95])
def test_a_green_excludes_its_rate_however_lucky_its_control_was(rate):
    """Of bugs at least as frequent as the printed rate, no more than 5 % are green, in each history of the control."""
    draw = np.random.default_rng(6)
    for counted in (0, 1, 5, 14):
        asked = asked_for(draw.binomial(counted, rate, CELLS), counted)
        for greens in np.unique(asked):
            excluded = rate_found(int(greens), 0.05)
            missed = draw.geometric(max(rate, excluded), np.sum(asked == greens)) > greens
            assert not too_many(missed, 0.05), (counted, greens)


def test_the_simulation_sees_a_rate_that_is_too_small():
    draw = np.random.default_rng(7)
    assert too_many(draw.geometric(0.9, CELLS) > 1, 0.05)  # one green excludes 95 %, not 90 %


def test_misses_stay_within_the_risk_in_each_history_of_nights():
    draw, cells = np.random.default_rng(8), 50_000
    for rate in RATES:
        red, counted = draw.binomial(LUCKY, rate, cells), LUCKY
        for _ in range(20):
            asked = np.array([greens_needed(r, counted, 0.05) for r in range(counted + 1)])[red]
            assert not too_many((asked <= 6) & (draw.geometric(rate, cells) > asked), 0.05), (rate, counted)
            red, counted = red + draw.binomial(1, rate, cells), counted + 1


def test_the_simulation_detects_nights_dropped_by_their_results():
    """A control that is green gets further trials, one of which may fail; its night counts all the same."""
    draw, cells, rate = np.random.default_rng(9), 50_000, 0.65
    shown = draw.random((14, cells)) < rate
    counts = shown | (draw.random((14, cells)) < 0.5)  # as if half of the green nights did not
    kinds, of = np.unique(np.stack([shown.sum(axis=0), counts.sum(axis=0)], axis=1), axis=0, return_inverse=True)
    asked = np.array([greens_needed(int(r), int(n), 0.05) for r, n in kinds])[of.ravel()]
    assert too_many((asked <= 6) & (draw.geometric(rate, cells) > asked), 0.05)


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


@pytest.mark.parametrize("counted", [1, 2, 7, 20, 40])
def test_intervals_and_missed_greens_are_those_of_scipy(counted):
    rates = np.array(CHECKED)
    for red in range(counted + 1):
        interval = binomtest(red, counted).proportion_ci(confidence_level=0.95, method="wilson")
        assert wilson_interval(red, counted) == pytest.approx(interval, abs=1e-4)
        missed = np.max(binom.sf(red - 1, counted, rates) * (1 - rates) ** 3)
        assert probability_missed(red, counted, 3) == pytest.approx(missed, rel=1e-9)


@given(st.integers(1, 30), st.integers(1, 30), st.data())
def test_too_few_reds_are_those_of_scipy(counted, before, data):
    red, red_before = data.draw(st.integers(0, counted)), data.draw(st.integers(0, before))
    table = [[red, counted - red], [red_before, before - red_before]]
    probability = fisher_exact(table, alternative="less").pvalue
    # SciPy's probabilities are floats, so they cannot decide a tie.
    assume(probability != pytest.approx(0.05, rel=1e-9))
    assert is_too_few(red, counted, red_before, before) == (probability < 0.05)


def test_one_in_twenty_is_too_few():
    assert is_too_few(0, 3, 3, 3)  # 1 / C(6, 3) = 1 / 20


def test_intervals_have_four_digits_and_stay_within_0_and_1():
    assert [wilson_interval(red, 10) for red in (0, 5, 10)] == [(0.0, 0.2775), (0.2366, 0.7634), (0.7225, 1.0)]


def test_a_thousand_greens_are_none():
    least = probability_missed(1, 1, 999)
    assert greens_needed(1, 1, least) == 999
    assert greens_needed(1, 1, least * 0.9999) == 1000


def test_small_rates_are_dense_where_many_greens_are_needed():
    thousandth = [rate for rate in CHECKED if rate < 0.001]
    assert thousandth == pytest.approx([rate for rate in np.geomspace(1e-4, 0.05, 500) if rate < 0.001])
    assert CHECKED[-1] == 1.0


def test_large_rates_are_thousandths():
    assert [round(1_000 * rate, 9) for rate in CHECKED if rate > 0.05] == list(range(51, 1_001))
    assert {n / 1_000 for n in range(1, 51)} < {*CHECKED}
    assert len(CHECKED) == 1_499


def test_where_each_trial_is_red_all_of_them_are():
    assert [_chances(red, 2)[-1] for red in range(3)] == [0.0, 0.0, 1.0]


def test_a_mostly_green_control_does_not_recurse_too_deeply(monkeypatch):
    monkeypatch.setattr(statistics, "RATES", [0.01, 0.5, 1.0])
    _count_needed.cache_clear()
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 60)
    try:
        assert greens_needed(1, 100, 0.9) >= 1
    finally:
        sys.setrecursionlimit(before)
        _count_needed.cache_clear()


def test_a_control_has_a_trial_even_if_no_green_stands_on_it():
    assert control_trials(0.05, standing=0) == 1


def test_nearly_one_in_twenty_is_not_too_few():
    assert not is_too_few(0, 1, 18, 18)  # 1 in 19


def test_a_control_may_have_trials_of_years():
    red, counted, rates = 620, 1240, np.array(CHECKED)
    needed = greens_needed(red, counted, 0.05)
    missed = binom.sf(red - 1, counted, rates)
    assert needed < MANY
    for greens in (3, needed):
        expected = np.max(missed * (1 - rates) ** greens)
        assert probability_missed(red, counted, greens) == pytest.approx(expected, rel=1e-9)
    assert expected <= 0.05
