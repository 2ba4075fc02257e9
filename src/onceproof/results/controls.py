"""Rule 3 of the verdict: what a green is worth is told by positive controls.

A positive control is a cell that the registry says is affected. How often the controls of a run were red, as the
registry expects, says how probable it is that a bug would have been missed in as many green trials as a cell has.
Earlier trials of the same scenario and variants count for less: each for half a trial, and all of them for ten at most.
Where a control of tonight was red so seldom that it does not fit what was seen before, tonight alone counts.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from onceproof.model.cell import Cell
from onceproof.model.known_issues import Registry
from onceproof.model.verdict import CellVerdict, Verdict
from onceproof.results.database import CellRow, database, is_missing
from onceproof.scenarios import CATALOGUE
from onceproof.statistics import SURE, greens_needed, is_too_few, probability_missed, wilson_interval

WEIGHT = 0.5  # of an earlier trial
MOST = 10.0  # trials of tonight that all earlier ones together can count for
GREENS = {Verdict.CLEAN, Verdict.FIXED}

Before = Mapping[tuple[str, str], "Tally"]  # (scenario, variant) -> trials of affected cells in the past


@dataclass(frozen=True)
class Tally:
    """`red` of `counted` trials showed an anomaly."""

    red: int = 0
    counted: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        return Tally(self.red + other.red, self.counted + other.counted)

    def __str__(self) -> str:
        return f"{self.red} of {self.counted} trials"


@dataclass(frozen=True)
class Control:
    """How often the anomaly of a scenario showed where it had to: in cells of this run, and before."""

    cells: Mapping[Cell, Tally]
    before: Tally

    @property
    def now(self) -> Tally:
        """All trials of this run."""
        return sum(self.cells.values(), Tally())

    @property
    def weight(self) -> float:
        """What one earlier trial counts for; nothing if a control of tonight does not fit them."""
        before = self.before
        if not before.counted or any(
            is_too_few(t.red, t.counted, before.red, before.counted) for t in self.cells.values()
        ):
            return 0.0
        return min(WEIGHT, MOST / before.counted)

    def missed(self, greens: int) -> float:
        """The probability that a bug that shows as often stays unseen in this many trials."""
        return probability_missed(*self._weighed(), greens)

    @property
    def needed(self) -> int:
        """How many green trials carry a claim."""
        return greens_needed(*self._weighed())

    def _weighed(self) -> tuple[float, float]:
        weight = self.weight
        return self.now.red + weight * self.before.red, self.now.counted + weight * self.before.counted

    def arithmetic(self, greens: int) -> str:
        """What the greens of a cell are worth, in words."""
        past = ""
        if self.before.counted:
            counts = f"each of which counts for {self.weight:.2g}" if self.weight else "which tonight does not fit"
            past = f", and before in {self.before}, {counts}"
        return (
            f"Its positive {_named(tuple(self.cells))} red in {self.now}{past}. A bug that shows as often would have "
            f"stayed unseen in {_trials(greens)} with a probability of {self.missed(greens):.1%}; at most "
            f"{1 - SURE:.0%} are allowed."
        )


def _named(cells: Sequence[Cell]) -> str:
    first = f"{cells[0].releases} × {cells[0].variant}"
    return f"control {first} was" if len(cells) == 1 else f"controls ({first} and {len(cells) - 1} more) were"


def _trials(count: int) -> str:
    return "1 trial" if count == 1 else f"{count} trials"


def tally_of(verdict: CellVerdict) -> Tally:
    """What the trials of a cell count for as a control: red only where all of it was as the registry expects."""
    if verdict.verdict is Verdict.ERROR:
        return Tally()
    return Tally(verdict.red if verdict.verdict is Verdict.KNOWN else 0, verdict.counted)


def control_of(cell: Cell, tallies: Mapping[Cell, Tally], registry: Registry, before: Before) -> Control | None:
    """The controls of a cell among the cells of its run; None if it has none.

    They are other affected cells of its scenario, as near to it as the run has any: of its own variant, or else of the
    variant that is the scenario's control; with its broker; restarted on another release as it is, or not.
    """
    chosen = [o for o in tallies if o != cell and o.scenario == cell.scenario and registry.affecting(o)]
    usual, _ = CATALOGUE[cell.scenario].control
    variant = cell.variant if any(other.variant == cell.variant for other in chosen) else usual
    for is_near in (
        lambda other: other.variant == variant,
        lambda other: other.broker == cell.broker,
        lambda other: (other.restart_on is None) == (cell.restart_on is None),
    ):
        chosen = list(filter(is_near, chosen)) or chosen
    if not chosen:
        return None
    variants = {other.variant for other in chosen}
    past = sum((before.get((cell.scenario, name), Tally()) for name in variants), Tally())
    return Control({other: tallies[other] for other in chosen}, past)


def weighed(verdicts: Sequence[CellVerdict], registry: Registry, before: Before) -> list[CellVerdict]:
    """The verdicts of a run with their arithmetic; a green that its controls do not carry is inconclusive."""
    tallies = {verdict.cell: tally_of(verdict) for verdict in verdicts}
    return [_weighed(verdict, control_of(verdict.cell, tallies, registry, before)) for verdict in verdicts]


def _weighed(verdict: CellVerdict, control: Control | None) -> CellVerdict:
    told = replace(verdict, interval=wilson_interval(verdict.red, verdict.counted) if verdict.counted else None)
    if verdict.red and told.interval:
        low, high = told.interval
        rate = f"Red in {Tally(verdict.red, verdict.counted)} that count: {low:.0%} to {high:.0%} (95 %, Wilson)."
        hint = " Trials end with the first red; ask for more with --trials if the rate matters." * (verdict.red == 1)
        return replace(told, arithmetic=rate + hint)
    if verdict.verdict not in GREENS:
        return told
    if control is None:
        return _unsure(told, "No other cell of the run is known to be affected, so nobody knows what a green is worth.")
    told = replace(
        told, arithmetic=control.arithmetic(verdict.counted), missed=round(control.missed(verdict.counted), 4)
    )
    if not control.now.red:
        return _unsure(
            told,
            f"Its positive {_named(tuple(control.cells))} not red as expected in this run, so a green says nothing.",
        )
    if verdict.counted < control.needed:
        return _unsure(told, f"That takes {_trials(control.needed)}, and there are {verdict.counted}.")
    return told


def _unsure(verdict: CellVerdict, why: str) -> CellVerdict:
    return replace(verdict, verdict=Verdict.INCONCLUSIVE, sentence=f"{why} {verdict.sentence}")


def trials_before(url: str, run_id: str, registry: Registry) -> dict[tuple[str, str], Tally]:
    """Trials of affected cells before a run: what the registry measured, and what the results database has.

    Returns:
        By (scenario, variant).

    Raises:
        HarnessError: the database refuses.
    """
    tallies = measured(registry)
    if is_missing(url):
        return tallies
    names = ("scenario", "variant", "streams", "broker", "restart_on", "verdict")
    columns = [getattr(CellRow, name) for name in names]
    query = select(*columns, func.sum(CellRow.red), func.sum(CellRow.counted)).where(CellRow.run_id < run_id)
    with database(url) as engine, Session(engine) as session:
        for *values, verdict, red, counted in session.execute(query.group_by(*columns)):
            cell = Cell.from_dict(dict(zip(names, values, strict=False)))
            if registry.affecting(cell) and verdict != Verdict.ERROR:
                tallies[cell.scenario, cell.variant] += Tally(red if verdict == Verdict.KNOWN else 0, counted)
    return tallies


def measured(registry: Registry) -> dict[tuple[str, str], Tally]:
    """Trials of affected cells that the registry knows of, by (scenario, variant)."""
    tallies: dict[tuple[str, str], Tally] = defaultdict(Tally)
    for issue in registry.issues:
        for variant, (red, trials) in issue.measured.items():
            tallies[issue.scenario, variant] += Tally(red, trials)
    return tallies
