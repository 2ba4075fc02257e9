"""When a fix is proven, with bugs that show at given rates."""

import random

import pytest

from onceproof import statistics
from onceproof.campaigns.bisection.boundaries import Probe
from onceproof.campaigns.verify_fix.answer import ATTEMPTS, Proof, compare, whole
from onceproof.model.cell import Cell
from onceproof.model.release import Release
from onceproof.model.sensitivity import NOTHING, Tally

RED, GREEN, IDLE = Probe(True, False), Probe(False, True), Probe(False, False, "It was not exercised.")
BEFORE = Cell("enumerator", "DEFAULT_CONFIG", Release.parse("3.4.1@bad0000"), Release.parse("3.9.1"))
AFTER = Cell("enumerator", "DEFAULT_CONFIG", Release.parse("3.4.1@600d000"), Release.parse("3.9.1"))


def compared(before, after, budget=60):
    """The result of trials that show this, one after the other; the last value repeats forever."""
    shown = {BEFORE: list(before), AFTER: list(after)}
    tried = []

    def probe(cell):
        tried.append(cell)
        return shown[cell].pop(0) if len(shown[cell]) > 1 else shown[cell][0]

    return compare(BEFORE, AFTER, probe, 0.05, budget), tried


def test_red_before_and_green_after_proves_the_fix():
    found, tried = compared([RED], [GREEN])
    assert (found.proof, found.reason) == (Proof.PROVEN, "3.4.1@bad0000 shows it, 3.4.1@600d000 does not.")
    planned = statistics.control_trials(0.05, 1)
    assert found.before == Tally(planned, planned)
    assert tried.count(BEFORE) == planned + 1  # the first red does not count
    assert found.after == Tally(0, found.needed)
    assert found.needed == statistics.greens_needed(planned, planned, 0.05)
    assert found.missed <= 0.05
    assert found.found_rate == pytest.approx(1 - 0.05 ** (1 / found.needed))
    assert found.interval == statistics.wilson_interval(planned, planned)


def test_a_red_after_is_not_fixed_and_nothing_more_is_tried():
    found, tried = compared([RED], [GREEN, RED])
    assert (found.proof, found.after) == (Proof.NOT_FIXED, Tally(1, 2))
    assert found.missed is None
    assert tried[-2:] == [AFTER, AFTER]


def test_what_is_seldom_red_asks_for_more_greens():
    often, _ = compared([RED], [GREEN])
    seldom, _ = compared([GREEN, RED, GREEN, RED], [GREEN])
    assert seldom.before.red < seldom.before.counted
    assert seldom.needed > often.needed
    assert seldom.proof is Proof.PROVEN


@pytest.mark.parametrize(
    ("before", "after", "budget", "reason"),
    [
        ([GREEN], [GREEN], 60, f"did not show it: all of {ATTEMPTS} exercised trials were green."),
        ([IDLE], [GREEN], 60, "did not show it: It was not exercised."),
        ([RED], [IDLE], 60, "It was not exercised."),
        ([RED], [GREEN], 3, "The proof takes 3 green trials, more than are left"),
        ([RED, GREEN], [GREEN], 60, "The proof takes 1000 green trials, more than are left"),
        ([GREEN], [GREEN], 2, "did not show it: all trials were used up"),
    ],
)
def test_what_cannot_be_told(before, after, budget, reason):
    found, tried = compared(before, after, budget)
    assert found.proof is Proof.UNKNOWN
    assert reason in found.reason
    assert len(tried) <= budget


def test_a_build_that_is_both_is_not_fixed():
    found = compare(BEFORE, BEFORE, lambda _: RED, 0.05, 60)
    assert found.proof is Proof.NOT_FIXED
    assert compare(BEFORE, BEFORE, lambda _: GREEN, 0.05, 60).before == NOTHING


@pytest.mark.parametrize("rate", [0.3, 0.6, 0.9])
def test_a_bug_that_is_not_fixed_is_seldom_called_so(rate):
    drawn = random.Random(1)

    def probe(_):
        return RED if drawn.random() < rate else GREEN

    proofs = [compare(BEFORE, AFTER, probe, 0.05, 200).proof for _ in range(300)]
    assert proofs.count(Proof.PROVEN) / len(proofs) <= 0.05


def test_all_scenarios_together_are_as_sure_as_the_worst():
    assert whole([Proof.PROVEN, Proof.UNKNOWN, Proof.NOT_FIXED]) is Proof.NOT_FIXED
    assert whole([Proof.PROVEN, Proof.UNKNOWN]) is Proof.UNKNOWN
    assert whole([Proof.PROVEN]) is Proof.PROVEN
    assert [proof.exit_code for proof in (Proof.PROVEN, Proof.NOT_FIXED, Proof.UNKNOWN)] == [0, 1, 3]
