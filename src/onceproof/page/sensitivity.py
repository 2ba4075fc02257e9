"""The tab *Sensitivity*: which of the bugs that were planted into a release were found, survivors first."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from onceproof.harness import harness_versions
from onceproof.model.plants import plants
from onceproof.model.release import Release
from onceproof.model.run_folder import TrialFolder
from onceproof.model.sensitivity import PlantedTrial, Sensitivity, sensitivities
from onceproof.page.runs import NotThereError, find_folder, own_folder
from onceproof.results.sensitivity import read_planted_trials
from onceproof.statistics import wilson_interval

# What became of a plant, in this order. These words are never those of a cell.
MISJUDGED, SURVIVED, SELDOM, IDLE, FOUND = "misjudged", "survived", "found now and then", "not exercised", "found"
EQUIVALENT = "cannot show"
ORDER = (SURVIVED, MISJUDGED, SELDOM, IDLE, FOUND, EQUIVALENT)
MEANING = {
    MISJUDGED: "the catalogue declares that it cannot show here, and it did",
    EQUIVALENT: "the catalogue declares that it cannot show here, and it did not",
    SURVIVED: "exercised, and no promise was broken that must see it",
    SELDOM: "found in some of the exercised trials",
    IDLE: "it did not fire, or the precondition of the scenario did not arise: nothing is known",
    FOUND: "found in every exercised trial",
}


@dataclass(frozen=True)
class PlantedView:
    """A trial with a planted bug: where its timeline is, and what it showed."""

    run: str
    key: str
    number: int
    sentence: str


@dataclass(frozen=True, kw_only=True)
class PlantView:
    """A plant in one place."""

    plant: str
    state: str  # a word of `ORDER`
    meaning: str
    scenario: str
    variant: str
    restart_on: str
    broker: str
    commit: str
    harness: str
    machine: str
    is_old: bool  # of another harness, so it counts for nothing now
    found: int
    exercised: int
    planned: int
    interval: str  # of the rate, 95 %, in words; empty if none was exercised
    trials: tuple[PlantedView, ...]


@dataclass(frozen=True)
class ReleaseView:
    """The plants that were planted into a release: of today's harness, or of the last one if that has none."""

    release: str
    found: int
    planted: int
    rows: tuple[PlantView, ...]


def sensitivity_view(trials: Iterable[PlantedTrial]) -> list[ReleaseView]:
    """The releases, newest first, each with the plants that were planted into it."""
    by_release: dict[Release, list[Sensitivity]] = defaultdict(list)
    for sensed in sensitivities(trials):
        by_release[sensed.trials[0].cell.streams].append(sensed)
    return [_release(release, by_release[release]) for release in sorted(by_release, reverse=True)]


def _release(release: Release, of_release: Sequence[Sensitivity]) -> ReleaseView:
    rows = sorted(map(_row, of_release), key=lambda row: (row.is_old, ORDER.index(row.state), row.plant))
    must = [row for row in rows if row.state not in (MISJUDGED, EQUIVALENT)]
    counted = [row for row in must if not row.is_old] or must
    found = {row.plant for row in counted if row.found}
    return ReleaseView(str(release), len(found), len({row.plant for row in counted}), tuple(rows))


def _row(sensed: Sensitivity) -> PlantView:
    tally, state, place = sensed.tally, _state(sensed), sensed.place
    low, high = wilson_interval(tally.red, tally.counted) if tally.counted else (0.0, 1.0)
    return PlantView(
        plant=sensed.plant,
        state=state,
        meaning=MEANING[state],
        scenario=place.scenario,
        variant=place.variant,
        restart_on=place.restart_on or "",
        broker=place.broker,
        commit=place.commit,
        harness=place.harness,
        machine=place.machine or "not known: counts for nothing now",
        is_old=place.harness != harness_versions().get(place.scenario),
        found=tally.red,
        exercised=tally.counted,
        planned=sensed.planned,
        interval=f"{low:.0%} to {high:.0%}" if tally.counted else "",
        trials=tuple(
            PlantedView(trial.run, trial.trial, number, sentence_of(trial))
            for number, trial in enumerate(sensed.trials, 1)
        ),
    )


def must_show(sensed: Sensitivity) -> bool:
    """Whether the catalogue says that the scenario must find the plant; true for one that it no longer has."""
    known = plants().get(sensed.plant)
    return known is None or known.claim(sensed.place.scenario) is not None


def _state(sensed: Sensitivity) -> str:
    if not must_show(sensed):
        return MISJUDGED if any(trial.found for trial in sensed.trials) else EQUIVALENT
    if not sensed.tally.counted:
        return IDLE
    if not sensed.tally.red:
        return SURVIVED
    return FOUND if sensed.tally.red == sensed.tally.counted else SELDOM


def sentence_of(trial: PlantedTrial) -> str:
    """The result of one trial, in a few words."""
    if trial.error:
        return trial.error
    if not trial.fired:
        return "the plant did not fire"
    seen = ", ".join(f"{count:,} {name}" for name, count in sorted(trial.anomalies.items())) or "no anomaly"
    times = "once" if trial.fired == 1 else f"{trial.fired:,} times"
    return f"fired {times}: {seen}{'' if trial.exercised else '; not exercised'}"


def find_planted(url: str, run: str, trial: str) -> PlantedTrial:
    """The planted trial of this run and key.

    Raises:
        NotThereError: none is stored.
        HarnessError: the database refuses.
    """
    found = next(
        (planted for planted in read_planted_trials(url) if (planted.run, planted.trial) == (run, trial)), None
    )
    if found is None:
        raise NotThereError(f"No bug was planted in a trial {trial!r} of a run {run!r}.")
    return found


def find_timeline(runs: Path, trial: PlantedTrial) -> TrialFolder:
    """The folder of a planted trial, of which every file is the run's own.

    Raises:
        NotThereError: it has no timeline (any more), or a link in it leads elsewhere.
    """
    run = find_folder(runs, trial.run)
    folder = run.planted.trial(trial.trial)
    own_folder(run, folder)
    if not folder.timeline.exists():
        raise NotThereError(f"The folder of the trial {trial.trial} was removed.")
    return folder
