"""The tab *Sensitivity*: which of the bugs that were planted into a release were found, survivors first."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from onceproof.harness import harness_versions
from onceproof.model.plants import plants
from onceproof.model.release import Release
from onceproof.model.run_folder import TrialFolder
from onceproof.model.sensitivity import PlantedTrial, Sensitivity, sensitivities
from onceproof.page.runs import NotThereError, find_folder, own_folder
from onceproof.results.sensitivity import planted_trials
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


def sensitivity_view(trials: Iterable[PlantedTrial]) -> list[dict[str, Any]]:
    """The releases, newest first, each with what was planted into it.

    Returns:
        release, found and planted (plants of today's harness, or of the last one if that has none), rows (see `_row`).
    """
    by_release: dict[Release, list[Sensitivity]] = defaultdict(list)
    for one in sensitivities(trials):
        by_release[one.trials[0].cell.streams].append(one)
    return [_release(release, by_release[release]) for release in sorted(by_release, reverse=True)]


def _release(release: Release, of_release: Sequence[Sensitivity]) -> dict[str, Any]:
    rows = sorted(map(_row, of_release), key=lambda row: (row["is_old"], ORDER.index(row["state"]), row["plant"]))
    must = [row for row in rows if row["state"] not in (MISJUDGED, EQUIVALENT)]
    counted = [row for row in must if not row["is_old"]] or must
    found = {row["plant"] for row in counted if row["found"]}
    return {
        "release": str(release),
        "found": len(found),
        "planted": len({row["plant"] for row in counted}),
        "rows": rows,
    }


def _row(one: Sensitivity) -> dict[str, Any]:
    """A plant in one place.

    Returns:
        plant, state (a word of `ORDER`), meaning, scenario, variant, restart_on, broker, commit, harness, machine,
        is_old (of another harness, so it counts for nothing now), found, exercised, planned, interval (of the rate,
        95 %, in words; empty if none was exercised), trials (run, key, number, sentence).
    """
    tally, state = one.tally, _state(one)
    low, high = wilson_interval(tally.red, tally.counted) if tally.counted else (0.0, 1.0)
    place = one.place
    return {
        "plant": one.plant,
        "state": state,
        "meaning": MEANING[state],
        "scenario": place.scenario,
        "variant": place.variant,
        "restart_on": place.restart_on or "",
        "broker": place.broker,
        "commit": place.commit,
        "harness": place.harness,
        "machine": place.machine or "not known: counts for nothing now",
        "is_old": place.harness != harness_versions().get(place.scenario),
        "found": tally.red,
        "exercised": tally.counted,
        "planned": one.planned,
        "interval": f"{low:.0%} to {high:.0%}" if tally.counted else "",
        "trials": [
            {"run": trial.run, "key": trial.trial, "number": number, "sentence": sentence_of(trial)}
            for number, trial in enumerate(one.trials, 1)
        ],
    }


def must_show(one: Sensitivity) -> bool:
    """Whether the catalogue says that the scenario must find the plant; true for one that it no longer has."""
    known = plants().get(one.plant)
    return known is None or known.claim(one.place.scenario) is not None


def _state(one: Sensitivity) -> str:
    if not must_show(one):
        return MISJUDGED if any(trial.found for trial in one.trials) else EQUIVALENT
    if not one.tally.counted:
        return IDLE
    if not one.tally.red:
        return SURVIVED
    return FOUND if one.tally.red == one.tally.counted else SELDOM


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
    found = next((one for one in planted_trials(url) if (one.run, one.trial) == (run, trial)), None)
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
