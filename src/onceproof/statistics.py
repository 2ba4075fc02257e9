"""The arithmetic of verdicts: how sure a rate is, and what a green is worth.

The rule of a green. A control was red in `red` of `counted` exercised trials, whose number was fixed before the first
of them. A cell has `greens` exercised trials without an anomaly. If it had a bug that shows as often as the control,
at some unknown rate p, then both would come together with the probability

    P(red in `red` of `counted`) * (1 - p) ** greens

`greens_needed` asks for so many greens, for each number of reds, that the sum over all numbers of reds is at most
`risk`, *whatever p is*: of the cells that have such a bug, no more are called green. The numbers are found from the
best control downwards, the fewest greens first (an exact test by inversion, as that of Clopper and Pearson, 1934, for
one rate). No prior, and nothing is averaged over rates. Numbers of greens may follow from what the controls showed; the
number of control trials may not.

A distribution is one line of Python's whole numbers. SciPy and NumPy would take 200 MB of each installation; the tests
compare with SciPy.
"""

from functools import cache
from math import comb, exp, log, log1p, sqrt
from statistics import NormalDist

SURE = 0.95  # confidence of intervals and boundaries
MANY = 1000  # trials; a control that needs more is none
# Rates at which the rule is checked: dense where few greens are needed, and where many are.
RATES = sorted({n / 1000 for n in range(1, 1001)} | {1e-4 * 500 ** (n / 499) for n in range(500)})


def wilson_interval(red: int, counted: int) -> tuple[float, float]:
    """Where the rate of red trials lies with 95 % confidence (Wilson, 1927); `counted` is at least 1."""
    z = NormalDist().inv_cdf((1 + SURE) / 2)
    rate, about = red / counted, z * z / counted
    middle = (rate + about / 2) / (1 + about)
    half = z * sqrt(rate * (1 - rate) / counted + about / (4 * counted)) / (1 + about)
    return round(max(0.0, middle - half), 4), round(min(1.0, middle + half), 4)


def _chances(red: int, counted: int) -> list[float]:
    """For each rate the probability of so many red trials of all, by the binomial distribution.

    By logarithms, as there are more ways to draw 500 of 1,030 trials than a float can hold.
    """
    ways, green = log(comb(counted, red)), counted - red
    below_1 = [exp(ways + red * log(rate) + green * log1p(-rate)) for rate in RATES[:-1]]
    return [*below_1, float(red == counted)]


def greens_needed(red: int, counted: int, risk: float) -> int:
    """How many trials must be green so that a bug as visible as the control is missed with a probability of at most
    `risk`; MANY if no number would do.

    Args:
        red: exercised trials of the control that were red; at least 0.
        counted: all its exercised trials, their number fixed beforehand.
        risk: for example 0.05.
    """
    if not 0 < red <= counted:
        return MANY
    for more in range(counted, red, -1):
        _count_needed(more, counted, risk)  # which is kept, so that it does not ask itself for hundreds of them
    return _count_needed(red, counted, risk)[0]


@cache
def _count_needed(red: int, counted: int, risk: float) -> tuple[int, list[float]]:
    """The greens that a number of reds of at least 1 asks for, and for each rate, with what probability a bug is missed
    by that number of reds or a larger one.
    """
    greens, missed = _count_needed(red + 1, counted, risk) if red < counted else (1, [0.0] * len(RATES))
    seen = _chances(red, counted)
    while greens < MANY:
        now = [m + s * (1 - rate) ** greens for m, s, rate in zip(missed, seen, RATES, strict=True)]
        if max(now) <= risk:
            return greens, now
        greens += 1
    return MANY, missed


def probability_missed(red: int, counted: int, greens: int) -> float:
    """The largest probability, over all rates, that a control is red so often or oftener and a cell with a bug of its
    rate is green in all of `greens` trials.
    """
    at_least = zip(*(_chances(n, counted) for n in range(red, counted + 1)), strict=True)
    return max(float(sum(seen) * (1 - rate) ** greens) for seen, rate in zip(at_least, RATES, strict=True))


def rate_found(greens: int, risk: float) -> float:
    """The smallest rate at which a bug would have shown in this many green trials, except with probability `risk`."""
    return float(1 - risk ** (1 / greens))


def control_trials(risk: float, standing: int = MANY) -> int:
    """How many trials of a control cost least, with the greens that they ask for, if all are red.

    Args:
        risk: for example 0.05.
        standing: cells whose greens stand on it; with many of them, one green trial of each must be enough.
    """
    most = next(n for n in range(MANY) if greens_needed(n, n, risk) == 1)
    return min(range(1, most + 1), key=lambda n: n + standing * greens_needed(n, n, risk))


def is_too_few(red: int, counted: int, red_before: int, counted_before: int) -> bool:
    """Whether so few reds would have a probability of at most 5 % if their rate were the same as before (Fisher's
    exact test, one-sided).
    """
    reds, trials = red + red_before, counted + counted_before
    as_few = sum(comb(reds, n) * comb(trials - reds, counted - n) for n in range(red + 1))
    return as_few * 20 <= comb(trials, counted)  # whole numbers: a float cannot say whether 1 in 20 is at most 5 %
