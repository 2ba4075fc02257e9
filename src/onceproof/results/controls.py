"""Rule 3 of the verdict (`docs/architecture.md`): bugs that must be found measure what a green is worth.

First *plants*: bugs planted into the very release that the cell is about, in its scenario, on its brokers and with its
restart; their trials are in the results database. Else a *positive control*: a cell of the run on another release,
which the registry says is affected. Of either, only exercised trials whose number was fixed before the first of them
count, and only those of one place (`model.sensitivity.Stratum`): the same release and commit, variant, brokers, harness
and machine. Nothing is averaged over plants, releases or variants: a claim is about a bug as visible as each of those
that support it.

All such trials of all nights count, and each night adds some: a draw that was lucky does not last.

For any green, the run's own positive control must have been red in this run, which shows that it can detect a bug.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlalchemy import select
from sqlalchemy.orm import Session

from onceproof.model.cell import Cell, Trial
from onceproof.model.files import Outcome
from onceproof.model.known_issues import IssueRegistry
from onceproof.model.matrices import RISK
from onceproof.model.plants import plants
from onceproof.model.sensitivity import NOTHING, Sensitivity, Stratum, Tally, commit_of, sensitivities
from onceproof.model.verdict import CellVerdict, Standing, TrialEvidence, Verdict, find_expected
from onceproof.results.database import CellRow, TrialRow, database, is_missing
from onceproof.results.sensitivity import read_planted_trials
from onceproof.scenarios import CATALOGUE
from onceproof.statistics import (
    MANY,
    SURE,
    control_trials,
    greens_needed,
    is_too_few,
    probability_missed,
    rate_found,
    wilson_interval,
)

GREENS = {Verdict.CLEAN, Verdict.FIXED}
# Of a cell with an error some other trial failed, which may have been added because its planned ones were green: if
# they did not count, the rate would look higher than it is.
AS_EXPECTED = {Verdict.KNOWN, Verdict.ERROR}
AXES = ("scenario", "variant", "streams", "broker", "restart_on")


@dataclass(frozen=True)
class Past:
    """The results of earlier runs."""

    controls: Mapping[Stratum, Tally] = field(default_factory=dict)  # of affected cells
    plants: Sequence[Sensitivity] = ()
    tried: Mapping[Stratum, int] = field(default_factory=dict)  # planned trials of affected cells, exercised or not


@dataclass(frozen=True)
class Control:
    """The evidence that may support the greens of a cell."""

    risk: float  # with which control and greens may come together, at most, if the cell has a bug of the control's rate
    cell: Cell | None = None  # its positive control in this run; None if there is none
    was_red: bool = False  # in this run, in any of its trials, as the registry expects
    now: Tally = NOTHING  # trials of the control in this run
    before: Tally = NOTHING  # and of earlier runs, of the same place
    exercised: tuple[int, int] = (0, 0)  # trials of the control, and those that say something, now and before
    plants: tuple[Sensitivity, ...] = ()  # on the cell's own release

    @property
    def is_sick(self) -> bool:
        """Whether the control was red significantly less often than before."""
        return is_too_few(self.now.red, self.now.counted, self.before.red, self.before.counted)

    @property
    def is_alive(self) -> bool:
        """Whether the control was red in this run, as often as it used to be."""
        return self.was_red and not self.is_sick

    @property
    def known(self) -> Tally:
        """All that is known about the control."""
        return self.now + self.before

    def carries(self, greens: int) -> bool:
        """Whether this many greens are enough."""
        return bool(self.carrying(greens)) or greens >= self.count_needed()

    def carrying(self, greens: int) -> tuple[Standing, ...]:
        """The plants that support this many greens, the weakest first."""
        found = [
            Standing(
                of.plant, of.tally.red, of.tally.counted, probability_missed(of.tally.red, of.tally.counted, greens)
            )
            for of in self.plants
            if self._count_asked(of.tally) <= greens
        ]
        return tuple(sorted(found, key=lambda plant: (-plant.missed, plant.name)))

    def count_needed(self, within: int = MANY - 1) -> int:
        """How many green trials support a claim.

        As many as are asked for by each plant about which enough is known and which asks for no more than `within`.
        If there is none: the least that any plant or the control asks for.
        """
        # The most that a plant asks for, not the least: by the least a run would stop at the bug that is found most
        # easily, and its green would say nothing of the others. A plant that asks for more than there can be does not
        # hold up the rest: it carries no claim, and the verdict names it as not found often enough.
        enough = control_trials(self.risk)
        known = [self._count_asked(of.tally) for of in self.plants if of.tally.counted >= enough]
        least = min(map(self._count_asked, (self.known, *(of.tally for of in self.plants))))
        return max((asked for asked in known if asked <= within), default=least)

    def _count_asked(self, tally: Tally) -> int:
        return greens_needed(tally.red, tally.counted, self.risk)


def control_of(
    cell: Cell, verdicts: Mapping[Cell, CellVerdict], registry: IssueRegistry, past: Past, risk: float
) -> Control:
    """The evidence that may support the greens of a cell of a run.

    `fixed` contradicts the registry: it takes the risk of `clean`, whatever the run allows. A control that ran on
    another machine is none.

    Its positive control is another affected cell of its scenario, as near to it as the run has one: of its own variant,
    or else of the variant that is the scenario's control; with its broker; restarted on another release if it is, or
    not. Of those the one with most trials, whatever they showed.
    """
    risk = min(risk, RISK) if registry.affecting(cell) else risk
    own, found = verdicts[cell].place, Control(risk)
    here = {c: v for c, v in verdicts.items() if not own or not v.place or v.place.machine == own.machine}
    for other in near_controls(cell, here, registry):
        verdict = verdicts[other]
        place = verdict.place
        before = past.controls.get(place, NOTHING) if place else NOTHING
        tried = past.tried.get(place, before.counted) if place else before.counted
        was_red = verdict.verdict is Verdict.KNOWN and not find_expected(other, registry).isdisjoint(verdict.anomalies)
        exercised = (verdict.counted + before.counted, verdict.tried + tried)
        control = Control(risk, other, was_red, tally_of(verdict), before, exercised)
        # By the number of its trials: by what they showed, the luckiest of several controls would be taken, and its
        # rate would be higher than that of the bug.
        if found.cell is None or control.known.counted > found.known.counted:
            found = control
    return replace(found, plants=_plants_of(cell, verdicts[cell].place, past))


def near_controls(cell: Cell, cells: Collection[Cell], registry: IssueRegistry) -> list[Cell]:
    """The affected cells nearest to a cell, in their order."""
    chosen = [o for o in cells if o != cell and o.scenario == cell.scenario and registry.affecting(o)]
    usual = CATALOGUE[cell.scenario].positive_control[0]
    variant = cell.variant if any(other.variant == cell.variant for other in chosen) else usual
    for is_near in (
        lambda other: other.variant == variant,
        lambda other: other.broker == cell.broker,
        lambda other: (other.restart_on is None) == (cell.restart_on is None),
    ):
        chosen = list(filter(is_near, chosen)) or chosen  # a condition that none fulfils excludes none
    return chosen


def _plants_of(cell: Cell, place: Stratum | None, past: Past) -> tuple[Sensitivity, ...]:
    """The plants on the cell's own release: of its variant, or else of the one that is the scenario's control."""
    if place is None:
        return ()
    usual = CATALOGUE[cell.scenario].positive_control[0]
    own, of_usual = (
        tuple(p for p in past.plants if p.place == replace(place, variant=v)) for v in (cell.variant, usual)
    )
    return own or of_usual


def plants_in(cell: Cell, harness: str, machine: str, plants: Iterable[Sensitivity]) -> list[Sensitivity]:
    """Those that were planted in the very place of a cell, on any commit: a published release has only one."""
    place = Stratum.of(cell, "", harness, machine)
    return [plant_ for plant_ in plants if replace(plant_.place, commit="") == place]


def tally_of(verdict: CellVerdict) -> Tally:
    """The weight of the trials of a cell as a control: red are those that show what the registry expects there, if
    everything was as it expects. What an issue shows there incidentally says nothing of how visible the expected one
    is.
    """
    if verdict.verdict is Verdict.ERROR:
        return NOTHING
    return Tally(verdict.hits if verdict.verdict is Verdict.KNOWN else 0, verdict.rated.counted)


def weigh(verdicts: Sequence[CellVerdict], registry: IssueRegistry, past: Past, risk: float) -> list[CellVerdict]:
    """The verdicts of a run with their arithmetic; a green that nothing supports is inconclusive."""
    by_cell = {verdict.cell: verdict for verdict in verdicts}
    return [_weigh(verdict, control_of(verdict.cell, by_cell, registry, past, risk)) for verdict in verdicts]


def _weigh(verdict: CellVerdict, control: Control) -> CellVerdict:
    # Rates are near 0 or 1 here, of some ten trials. There the usual interval (rate ± 2 standard errors) has no width
    # or leaves 0 to 1; Wilson's keeps its coverage (Brown, Cai and DasGupta, 2001).
    rated = verdict.rated
    judged = replace(verdict, interval=wilson_interval(rated.red, rated.counted) if rated.counted else None)
    if verdict.red and judged.interval:
        low, high = judged.interval
        return replace(
            judged,
            arithmetic=f"Red in {rated} that were exercised, their number fixed beforehand: {low:.0%} to {high:.0%} "
            "(95 %, Wilson).",
        )
    if not verdict.red and verdict.verdict in {*GREENS, Verdict.INCONCLUSIVE}:
        judged = _weigh_unexercised(judged, control)
    return _of_green(judged, control) if verdict.verdict in GREENS else judged


def _weigh_unexercised(verdict: CellVerdict, control: Control) -> CellVerdict:
    """A verdict that says so if trials were exercised much more seldom than those of the cell's control."""
    # Where the fault takes effect much more seldom than on another release, a green is of few trials because something
    # changed: the release may avoid the fault, or hide it.
    exercised, tried = control.exercised
    if control.cell is None or control.cell.variant != verdict.cell.variant or not tried:
        return verdict
    if not is_too_few(verdict.counted, verdict.tried, exercised, tried):
        return verdict
    jump = (
        f"Exercised in {verdict.counted} of {verdict.tried}, and its positive control {control.cell.releases} in "
        f"{exercised} of {tried}: a jump of this kind can be a finding."
    )
    return replace(verdict, sentence=f"{verdict.sentence} {jump}")


def _of_green(verdict: CellVerdict, control: Control) -> CellVerdict:
    """A verdict on a cell without an anomaly: its word, and what that is worth."""
    greens, known = verdict.greens, control.known
    # `clean` means the same in each run: a run that allows a greater risk has another word for what is short of it.
    strict = replace(control, risk=min(control.risk, RISK))
    is_strict = strict.carries(greens)
    used = strict if is_strict else control
    plants = used.carrying(greens)
    missed = plants[0].missed if plants else probability_missed(known.red, known.counted, greens)
    judged = replace(
        verdict, excluded_rate=round(rate_found(greens, 1 - SURE), 4), arithmetic=_describe_excluded(greens)
    )
    if control.cell or plants:
        arithmetic = f"{judged.arithmetic} {_arithmetic(verdict, used)}"
        judged = replace(judged, missed=round(missed, 4), plants=plants, arithmetic=arithmetic)
    if control.cell is None:
        return _unsure(
            judged,
            "No other cell that the run had on this kind of machine is known to be affected, so it is not known what a "
            "green is worth.",
        )
    name = f"{control.cell.releases} × {control.cell.variant}"
    if not control.was_red:
        return _unsure(
            judged, f"Its positive control {name} was not red as expected in this run: a green says nothing."
        )
    if control.is_sick:
        how = f"was red in only {control.now}, and before in {control.before}"
        return _unsure(judged, f"Its positive control {name} {how}: something is wrong, and a green says nothing.")
    if not used.carries(greens):
        return _unsure(
            judged, f"That takes {used.count_needed()} trials, and there {'is' if greens == 1 else 'are'} {greens}."
        )
    if is_strict:
        return judged
    return replace(judged, verdict=Verdict.PROVISIONAL, sentence=f"{_first_look(strict, greens)} {verdict.sentence}")


def _first_look(strict: Control, greens: int) -> str:
    """Why a green is not `clean`."""
    needed = strict.count_needed()
    if needed >= MANY:
        return "A first look: with this control no number of green trials would be enough for `clean`."
    there = "is" if greens == 1 else "are"
    return f"A first look: with this control `clean` takes {needed} trials, and there {there} {greens}."


def _describe_excluded(greens: int) -> str:
    """The sentence on the bugs that the greens of a cell exclude."""
    trials = "1 green trial excludes" if greens == 1 else f"{greens} green trials exclude"
    rate = percent(rate_found(greens, 1 - SURE))
    return f"{trials}, with {percent(SURE)} confidence, bugs that show in {rate} of trials or more."


def _arithmetic(verdict: CellVerdict, control: Control) -> str:
    """How many of the cells that have a bug would be called green, in words."""
    greens, release, known = verdict.greens, verdict.cell.releases, control.known
    plants = control.carrying(greens)
    if plants:
        weakest, names = plants[0], ", ".join(f"{p.name} {p.found}/{p.exercised}" for p in plants)
        rest = sorted({p.plant for p in control.plants} - {p.name for p in plants})
        return (
            f"Behind it stand {len(plants)} of {len(control.plants)} bugs planted into {release} itself ({names}). "
            + _together(f"{weakest.name}, the weakest of them,", greens, weakest.missed, control.risk)
            + (f" Planted, and not found often enough: {', '.join(rest)}." if rest else "")
        )
    planted = ", ".join(f"{p.plant} {p.tally.red}/{p.tally.counted}" for p in control.plants)
    own = (
        f"Of the bugs planted into {release} itself none carries it ({planted})."
        if planted
        else (f"No bug was planted into {release} itself.")
    )
    if control.cell is None:
        return own
    past = f" and before in {control.before}" if control.before.counted else ""
    missed = probability_missed(known.red, known.counted, greens)
    return (
        f"{own} Its positive control, the known bug of {control.cell.releases} × {control.cell.variant}, was red in "
        f"{control.now}{past}. {_together('the control', greens, missed, control.risk)}"
    )


def _together(standing: str, greens: int, missed: float, risk: float) -> str:
    """The joint probability, as what it is: one of the procedure, over all that both might have shown."""
    green = "1 green trial" if greens == 1 else f"{greens} green trials"
    return (
        f"If this cell had a bug as visible, so many reds of {standing} and {green} here would come together with a "
        f"probability of at most {percent(missed, 1)}; {percent(risk)} are allowed."
    )


def percent(share: float, digits: int = 0) -> str:
    """For example `4.9 %`."""
    return f"{100 * share:.{digits}f} %"


def _unsure(verdict: CellVerdict, why: str) -> CellVerdict:
    return replace(verdict, verdict=Verdict.INCONCLUSIVE, sentence=f"{why} {verdict.sentence}")


def place_evidence(
    evidence: TrialEvidence, trial: Trial, outcome: Outcome | None, planned: Collection[str]
) -> TrialEvidence:
    """The evidence with what makes a trial comparable: whether it was planned, its commit, harness and machine."""
    evidence = replace(evidence, planned=trial.key in planned)
    if outcome is None:
        return evidence
    commit = commit_of(trial.cell, outcome.attested)
    return replace(evidence, commit=commit, harness=outcome.harness or "", machine=outcome.machine or "")


def control_trials_lacking(
    cells: Sequence[Cell], registry: IssueRegistry, past: Past, risk: float, harness: Mapping[str, str], machine: str
) -> dict[Cell, int]:
    """How many trials positive controls lack for one green trial of the cells that depend on them to suffice.

    That depends on how many trials of a control are known, not on what they showed; one more is planned in each run,
    and counts. Cells on whose own release enough trials of a plant are known lack nothing.
    """
    enough = control_trials(risk)

    def place_of(cell: Cell) -> Stratum:
        return Stratum.of(cell, "", harness[cell.scenario], machine)

    known: dict[Stratum, int] = defaultdict(int)  # a published release has one commit, which is not known before it ran
    for place, tally in past.controls.items():
        known[replace(place, commit="")] += tally.counted
    lacking: dict[Cell, int] = {}
    for cell in cells:
        near = near_controls(cell, cells, registry)
        if registry.affecting(cell) or registry.avoidance(cell) or not near:
            continue
        own = replace(past, plants=[replace(p, place=replace(p.place, commit="")) for p in past.plants])
        if any(plant.tally.counted >= enough for plant in _plants_of(cell, place_of(cell), own)):
            continue
        control = max(near, key=lambda other: known[place_of(other)])
        lacking[control] = max(enough - known[place_of(control)], 1)
    return lacking


def past_of(url: str, run_id: str, registry: IssueRegistry) -> Past:
    """The knowledge of the results database from before a run.

    Raises:
        HarnessError: the database refuses.
    """
    if is_missing(url):
        return Past()
    tallies: dict[Stratum, Tally] = defaultdict(Tally)
    tried: dict[Stratum, int] = defaultdict(int)
    query = (
        select(CellRow, TrialRow)
        .join(TrialRow, TrialRow.cell_id == CellRow.id)
        .where(CellRow.run_id < run_id)  # ids begin with the time
        .where(TrialRow.planned, TrialRow.error.is_(None))
    )
    with database(url) as engine, Session(engine) as session:
        for row, trial in session.execute(query):
            cell = Cell.from_dict({name: getattr(row, name) for name in AXES})
            place = Stratum.of(cell, commit_of(cell, trial.attested), trial.harness or "", trial.machine or "")
            # Claimed brokers may be others each time: what was red on them says nothing of those of another run.
            if registry.affecting(cell) and place.is_known and not cell.broker.is_claimed:
                tried[place] += 1
                if trial.exercised:
                    shown = {anomaly.name for anomaly in trial.anomalies}
                    is_hit = row.verdict in AS_EXPECTED and not find_expected(cell, registry).isdisjoint(shown)
                    tallies[place] += Tally(int(is_hit), 1)
    stored = [trial for trial in read_planted_trials(url, run_id) if trial.machine]  # of older ones it is not known
    return Past(dict(tallies), tuple(filter(_stands, sensitivities(stored))), dict(tried))


def _stands(sensitivity: Sensitivity) -> bool:
    """Whether a plant may support cells: its scenario must find it, with the parameters that cells have."""
    known = plants().get(sensitivity.plant)
    claim = known.claim(sensitivity.place.scenario) if known else None
    return claim is not None and not claim.parameters
