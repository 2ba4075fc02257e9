"""Whether a build has the fix of a bug: red before, green after, and in how many trials.

The build without the fix is tried until it is red. Then it is tried a number of times fixed beforehand, which gives the
rate; the first red does not count, for without it there would be no comparison. The rate says how many trials of the
build with the fix must be green so that, if it were as bad, this would be missed with a probability of at most `risk`
(`onceproof.statistics`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from onceproof.campaigns.bisection.boundaries import ATTEMPTS as UNEXERCISED
from onceproof.campaigns.bisection.boundaries import Probe
from onceproof.model.cell import Cell
from onceproof.model.errors import ExitCode
from onceproof.model.json_file import JsonFile
from onceproof.model.sensitivity import NOTHING, Tally
from onceproof.statistics import control_trials, greens_needed, probability_missed, rate_found, wilson_interval

ATTEMPTS = 10  # exercised trials of the build before, until one is red


class Proof(StrEnum):
    """The finding on a fix."""

    NOT_FIXED = "not fixed"
    UNKNOWN = "could not tell"
    PROVEN = "proven"

    @property
    def exit_code(self) -> ExitCode:
        """0 only if the fix is proven: everything undecided is inconclusive."""
        return {Proof.PROVEN: ExitCode.OK, Proof.NOT_FIXED: ExitCode.ANOMALY}.get(self, ExitCode.INCONCLUSIVE)


def whole(proofs: list[Proof]) -> Proof:
    """The finding for all variants together: the worst."""
    return next((proof for proof in Proof if proof in proofs), Proof.UNKNOWN)


@dataclass(frozen=True)
class ComparedVariant:
    """The results of the trials of one variant before and after."""

    scenario: str
    variant: str
    proof: Proof
    reason: str
    before: Tally = NOTHING  # red of counted, after the first red
    interval: tuple[float, float] | None = None  # of the rate before, 95 %
    after: Tally = NOTHING
    needed: int | None = None  # greens that the proof needs
    missed: float | None = None  # that the build is as bad as the one before, and was missed, at most
    found_rate: float | None = None  # bugs that show at least as often would have been seen, with 95 % probability


@dataclass(frozen=True, kw_only=True)
class FixAnswer(JsonFile):
    """`fix.json`, which `issue verify-fix --json` prints: what the trials of all scenarios came to."""

    schema: int = 1  # it changes when a field is removed or changes its meaning, not when one is added
    issue: str
    title: str
    before: str
    build: str
    broker: str
    proof: Proof
    scenarios: tuple[ComparedVariant, ...]
    risk: float
    seed: int
    command: str
    folder: str


def compare(before: Cell, after: Cell, probe: Callable[[Cell], Probe], risk: float, budget: int) -> ComparedVariant:
    """Try a variant on both builds, `budget` times in all at most."""
    search = _Search(probe, budget)
    of = (before.scenario, before.variant)
    if not search.shows(before):
        return ComparedVariant(*of, Proof.UNKNOWN, f"{before.streams} did not show it: {search.reason}")
    planned = control_trials(risk, 1)
    rate = search.tally(before, planned)
    interval = wilson_interval(rate.red, rate.counted) if rate.counted else None
    needed = greens_needed(rate.red, rate.counted, risk) if rate.counted == planned else None
    is_within = needed is not None and needed <= search.left
    # If no number of greens would prove anything, one trial may still show that nothing is fixed.
    seen = search.tally(after, needed if is_within and needed else 1, until_red=True)
    compared = ComparedVariant(*of, Proof.UNKNOWN, search.reason, rate, interval, seen, needed)
    if seen.red:
        return replace(compared, proof=Proof.NOT_FIXED, reason=f"{after.streams} shows it, too.")
    if seen.counted and rate.counted:
        missed = probability_missed(rate.red, rate.counted, seen.counted)
        compared = replace(compared, missed=missed, found_rate=rate_found(seen.counted, risk))
    if needed is not None and seen.counted >= needed:
        return replace(compared, proof=Proof.PROVEN, reason=f"{before.streams} shows it, {after.streams} does not.")
    if needed is not None and not is_within:
        return replace(
            compared, reason=f"The proof takes {needed} green trials, more than are left: allow more trials."
        )
    return compared


@dataclass
class _Search:
    """A comparison in progress."""

    probe: Callable[[Cell], Probe]
    left: int  # trials
    reason: str = ""  # why nothing more was learned

    def shows(self, cell: Cell) -> bool:
        """Whether some trial of the first few is red."""
        for _ in range(ATTEMPTS):
            red = self._try(cell)
            if red is None:
                return False
            if red:
                return True
        self.reason = f"all of {ATTEMPTS} exercised trials were green."
        return False

    def tally(self, cell: Cell, wanted: int, *, until_red: bool = False) -> Tally:
        """This many exercised trials, or fewer if nothing more can be learned."""
        tally = NOTHING
        while tally.counted < wanted and not (until_red and tally.red):
            red = self._try(cell)
            if red is None:
                break
            tally += Tally(int(red), 1)
        return tally

    def _try(self, cell: Cell) -> bool | None:
        """Try a cell until a trial is exercised: whether it was red; None if nothing can be learned."""
        for _ in range(UNEXERCISED):
            if not self.left:
                self.reason = "all trials were used up; allow more."
                return None
            self.left -= 1
            seen = self.probe(cell)
            if seen.red or seen.green:
                return seen.red
            self.reason = seen.reason
        return None
