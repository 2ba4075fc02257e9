"""The arithmetic of verdicts, by scipy: how sure a rate is, and what a green is worth.

A trial that counts is red or green. How often trials of a bug are red is not known, only that `red` of `counted` were.
With Jeffreys' prior the rate then follows a Beta(red + 1/2, counted - red + 1/2) distribution, and the number of reds
among further trials a beta-binomial one. Numbers of trials may be fractions, where they count for less.
"""

from scipy.stats import betabinom, binomtest

SURE = 0.95  # confidence of intervals and boundaries; a green may miss a bug with a probability of 1 - SURE at most
JEFFREYS = 0.5
MANY = 1000  # trials; who needs more has no control worth the name


def wilson_interval(red: int, counted: int) -> tuple[float, float]:
    """Where the rate of red trials lies with 95 % confidence (Wilson, 1927); `counted` is at least 1."""
    interval = binomtest(red, counted).proportion_ci(confidence_level=SURE, method="wilson")
    return round(float(interval.low), 4), round(float(interval.high), 4)


def probability_missed(red: float, counted: float, greens: int) -> float:
    """How probable it is that a bug which was red in `red` of `counted` trials is green in all of `greens` others."""
    return float(betabinom.pmf(0, greens, red + JEFFREYS, counted - red + JEFFREYS))


def greens_needed(red: float, counted: float) -> int:
    """How many trials must be green so that such a bug would have been missed with 5 % probability at most."""
    return next((n for n in range(1, MANY) if probability_missed(red, counted, n) <= 1 - SURE), MANY)


def is_too_few(red: int, counted: int, red_before: int, counted_before: int) -> bool:
    """Whether so few reds would come with 5 % probability at most, were they of the same rate as those before."""
    before = red_before + JEFFREYS, counted_before - red_before + JEFFREYS
    return float(betabinom.cdf(red, counted, *before)) <= 1 - SURE
