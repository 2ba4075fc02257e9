"""The arithmetic of verdicts, by scipy and numpy: how sure a rate is, and what a green is worth.

The rule of a green. A control was red in `red` of `counted` exercised trials, whose number was fixed before the first
of them. A cell has `greens` exercised trials without an anomaly. If it had a bug that shows as often as the control,
at some rate p that nobody knows, then both would come together with the probability

    P(red in `red` of `counted`) * (1 - p) ** greens

`greens_needed` asks for so many greens, for each number of reds, that the sum over all numbers of reds is at most
`risk`, *whatever p is*: of the cells that have such a bug, no more are called green. The numbers are found from the
best control downwards, the fewest greens first (an exact test by inversion, as that of Clopper and Pearson, 1934, for
one rate). No prior, and nothing is averaged over rates. Numbers of greens may follow from what the controls showed; the
number of control trials may not.
"""

from functools import cache

import numpy as np
from scipy.stats import binom, binomtest, fisher_exact

SURE = 0.95  # confidence of intervals and boundaries
MANY = 1000  # trials; whoever needs more has no control worth the name
# Rates at which the rule is checked: dense where few greens are needed, and where many are.
RATES = np.union1d(np.linspace(0.001, 1, 1000), np.geomspace(1e-4, 0.05, 500))


def wilson_interval(red: int, counted: int) -> tuple[float, float]:
    """Where the rate of red trials lies with 95 % confidence (Wilson, 1927); `counted` is at least 1."""
    interval = binomtest(red, counted).proportion_ci(confidence_level=SURE, method="wilson")
    return round(float(interval.low), 4), round(float(interval.high), 4)


def greens_needed(red: int, counted: int, risk: float) -> int:
    """How many trials must be green so that a bug as visible as the control is missed with a probability of at most
    `risk`; MANY if no number would do.

    Args:
        red: exercised trials of the control that were red; at least 0.
        counted: all its exercised trials, their number fixed beforehand.
        risk: for example 0.05.
    """
    return _needed(counted, risk).get(red, MANY)


@cache
def _needed(counted: int, risk: float) -> dict[int, int]:
    """Greens by the number of reds."""
    needed: dict[int, int] = {}
    missed, greens = np.zeros_like(RATES), 1
    for red in range(counted, 0, -1):
        seen = binom.pmf(red, counted, RATES)
        while greens < MANY and np.max(missed + seen * (1 - RATES) ** greens) > risk:
            greens += 1
        if greens >= MANY:
            break
        needed[red] = greens
        missed = missed + seen * (1 - RATES) ** greens
    return needed


def probability_missed(red: int, counted: int, greens: int) -> float:
    """The largest probability, over all rates, that a control is red so often or oftener and a cell with a bug of its
    rate is green in all of `greens` trials.
    """
    return float(np.max(binom.sf(red - 1, counted, RATES) * (1 - RATES) ** greens))


def rate_found(greens: int, risk: float) -> float:
    """The smallest rate at which a bug would have shown in this many green trials, except with probability `risk`."""
    return float(1 - risk ** (1 / greens))


def control_trials(risk: float, standing: int = MANY) -> int:
    """How many trials of a control cost least, with the greens that they ask for, if all are red.

    Args:
        risk: for example 0.05.
        standing: cells whose greens stand on it; with many of them, one green trial of each must be enough.
    """
    most = next(n for n in range(1, MANY) if greens_needed(n, n, risk) == 1)
    return min(range(1, most + 1), key=lambda n: n + standing * greens_needed(n, n, risk))


def is_too_few(red: int, counted: int, red_before: int, counted_before: int) -> bool:
    """Whether so few reds would have a probability of at most 5 % if their rate were the same as before (Fisher's
    exact test, one-sided).
    """
    table = [[red, counted - red], [red_before, counted_before - red_before]]
    return float(fisher_exact(table, alternative="less").pvalue) <= 1 - SURE
