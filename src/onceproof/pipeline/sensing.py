"""The verb of DAG `sensitivity`: which plants are tried on a release, and what became of them."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onceproof.model.cell import Cell
from onceproof.model.errors import ExitCode, UsageError
from onceproof.model.json_file import read_json, write_json
from onceproof.model.known_issues import registry
from onceproof.model.plants import Plant, plant, plants
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.model.sensitivity import PlantedTrial
from onceproof.scenarios import scenario
from onceproof.settings import get_settings

# As in `steps`: what is heavy is imported by the verb that needs it.
if TYPE_CHECKING:
    from onceproof.lab.sensitivity import Planting

READER = "independent"  # planted trials are read by the reader that needs no Spark


@dataclass(frozen=True)
class Sense:
    """Plantings that can be carried out on a release."""

    release: Release
    broker: Release
    plantings: tuple["Planting", ...]
    trials: int
    seed: int
    masked: Mapping[str, str]  # plant and scenario -> why it cannot be tried

    @property
    def title(self) -> str:
        """Name for people."""
        return f"sensitivity of {self.release}"


def sense_from_params(params: Mapping[str, Any], seed: int) -> Sense:
    """What the params ask for: `streams`, `broker`, `scenario` and `plant` (lists, empty for all), `trials`, `seed`.

    Raises:
        UsageError: a plant or scenario does not exist, or nothing of what is asked for can be tried on the release.
        HarnessError: the agent does not fit the release.
    """
    from onceproof.lab.agent import alterations
    from onceproof.lab.artifacts import check_published
    from onceproof.lab.java import require_java

    release, broker = Release.parse(params["streams"]), Release.parse(params["broker"])
    for name in params["scenario"]:
        scenario(name)
    named = [plant(name) for name in params["plant"]]
    require_java(get_settings().java, broker.oldest_java, f"a broker of Kafka {broker}")
    check_published({release, broker})
    for one in named:
        if reason := one.refuse(release):
            raise UsageError(reason)
    wanted = [one for one in named or plants().values() if one.applies(release)]
    altered = alterations(release)
    if lacking := next((one.name for one in wanted if not altered.get(one.name)), None):
        raise UsageError(f"{lacking} cannot be planted into {release}: it has not the methods that the plant alters.")
    plantings: list[Planting] = []
    masked: dict[str, str] = {}
    for one in wanted:
        found, reasons = _plantings(one, release, broker, params["scenario"])
        plantings += found
        masked |= reasons
    if not plantings:
        why = next(
            iter(masked.values()), "no plant is claimed or declared for these scenarios; see `onceproof plants`."
        )
        raise UsageError(f"There is nothing to try on {release}: {why}")
    chosen = seed if params["seed"] is None else params["seed"]
    return Sense(release, broker, tuple(plantings), params["trials"], chosen, masked)


def _plantings(
    one: Plant, release: Release, broker: Release, scenarios: Sequence[str]
) -> tuple[list["Planting"], dict[str, str]]:
    """Where a plant is tried, and why it is not elsewhere."""
    from onceproof.lab.sensitivity import Planting

    plantings, masked = [], {}
    for claim in one.claims:
        if scenarios and claim.scenario not in scenarios:
            continue
        try:
            plantings.append(Planting(one, claim.cell(release, broker), claim))
        except UsageError as error:
            masked[f"{one.name} in {claim.scenario}"] = str(error)
    for name in one.equivalent:
        if not scenarios or name in scenarios:
            cells = [Cell(name, variant, release, broker) for variant in scenario(name).variants]
            quiet = next((cell for cell in cells if not registry().affecting(cell) and not _refused(cell)), None)
            if quiet is not None:
                plantings.append(Planting(one, quiet, None))
    return plantings, masked


def _refused(cell: Cell) -> bool:
    return scenario(cell.scenario).refuse(cell) is not None


def sense(run: RunFolder, asked: Sense, report: Callable[[str], None] = print) -> dict[str, Any]:
    """Try the plants, store each trial in the results database, and tell what became of each plant.

    Returns:
        run, streams, broker, seed, reader, plants (a row each, see `row`), masked, exit_code: `sensitivity.json` of the
        run folder.

    Raises:
        HarnessError: the brokers failed, or the database refuses.
    """
    from onceproof.lab.sensitivity import try_plantings
    from onceproof.pipeline.steps import ended_by_sigterm
    from onceproof.results.sensitivity import store_planted

    report(f"{asked.title}: {len(asked.plantings)} plantings, {asked.trials} trials each, seed {asked.seed}")
    with ended_by_sigterm():
        tried = try_plantings(run, asked.plantings, asked.broker, asked.trials, asked.seed, report)
    store_planted([trial for _, trials in tried for trial in trials], get_settings().database_url)
    rows = [row(planting, trials) for planting, trials in tried]
    told = {
        "run": run.run_id,
        "streams": str(asked.release),
        "broker": str(asked.broker),
        "seed": asked.seed,
        "reader": READER,
        "plants": rows,
        "masked": dict(asked.masked),
        "exit_code": int(exit_code([r["verdict"] for r in rows])),
    }
    write_json(run.sensitivity_file, told)
    return told


def due(cells: Sequence[Cell], most: int, risk: float, run_id: str) -> list["Planting"]:
    """The plants that a run tries: in each scenario on each release with greens at most so many of which less is known
    than one green trial needs. What they showed decides nothing, only how often they were tried.

    Those that were exercised most come first, so that one is done before the next is begun; of equals the one that was
    tried least, so that one which never fires does not keep the others waiting.
    """
    from onceproof.harness import harness_version
    from onceproof.results.controls import plants_in
    from onceproof.results.judging import past_before
    from onceproof.statistics import control_trials

    if not most:
        return []
    known = past_before(run_id, get_settings().database_url).plants
    found: list[Planting] = []
    places = {(cell.scenario, cell.streams, cell.broker) for cell in cells if not registry().affecting(cell)}
    for name, streams, broker in sorted(places):
        waiting = []
        for planting in _claimed(name, streams, broker):
            tried = [
                one for one in plants_in(planting.cell, harness_version(), known) if one.plant == planting.plant.name
            ]
            exercised, planned = (sum(one.tally.counted for one in tried), sum(one.planned for one in tried))
            if exercised < control_trials(risk):
                waiting.append((-exercised, planned, planting))
        waiting.sort(key=lambda one: one[:2])
        found += [planting for *_, planting in waiting[:most]]
    return found


def _claimed(name: str, streams: Release, broker: Release) -> Iterator["Planting"]:
    """The plants that a scenario must find on a release, with the parameters that cells have."""
    from onceproof.lab.sensitivity import Planting

    for one in plants().values():
        claim = one.claim(name)
        if claim is not None and one.applies(streams) and not claim.parameters:
            with suppress(UsageError):  # a known issue would hide it
                yield Planting(one, claim.cell(streams, broker), claim)


def sense_due(run: RunFolder, report: Callable[[str], None] = print) -> None:
    """Try the plants of the plan on brokers of their own, and store what they showed.

    Raises:
        HarnessError: the brokers failed, or the database refuses.
    """
    from onceproof.lab.sensitivity import Planting, try_plantings
    from onceproof.pipeline.steps import ended_by_sigterm
    from onceproof.results.sensitivity import store_planted

    by_broker: dict[Release, list[Planting]] = defaultdict(list)
    for data in read_json(run.run_file).get("plants", []):
        one, cell = plant(data["plant"]), Cell.from_dict(data)
        by_broker[cell.broker].append(Planting(one, cell, one.claim(cell.scenario)))
    if not by_broker:
        report("No plant is due: enough is known of each, or the matrix tries none.")
    for broker, plantings in by_broker.items():
        with ended_by_sigterm():
            tried = try_plantings(run, plantings, broker, 1, int(run.run_id[-4:], 16), report)
        store_planted([trial for _, trials in tried for trial in trials], get_settings().database_url)


def row(planting: "Planting", trials: Sequence[PlantedTrial]) -> dict[str, Any]:
    """What the trials of a planting come to.

    Returns:
        plant, scenario, variant, parameters, promises (that must show it; none if it cannot show), reason (why it
        cannot), verdict, trials, fired (trials in which it did), exercised (those of them that met the scenario's
        precondition), found (of the fired), rate and interval (of found among the exercised; 95 %, Wilson; null without
        any), anomalies (the most of each in a trial), seconds (mean), errors.
    """
    from onceproof.statistics import wilson_interval

    exercised = [trial for trial in trials if trial.exercised]
    found = sum(trial.found for trial in exercised)
    anomalies: dict[str, int] = {}
    for trial in trials:
        for name, count in trial.anomalies.items():
            anomalies[name] = max(count, anomalies.get(name, 0))
    return {
        "plant": planting.plant.name,
        "scenario": planting.cell.scenario,
        "variant": planting.cell.variant,
        "parameters": dict(planting.parameters),
        "promises": list(planting.claim.promises) if planting.claim else [],
        "reason": None if planting.claim else planting.plant.equivalent[planting.cell.scenario],
        "verdict": verdict_of(planting.claim is not None, trials),
        "trials": len(trials),
        "fired": sum(trial.fired > 0 for trial in trials),
        "exercised": len(exercised),
        "found": sum(trial.found for trial in trials),
        "rate": round(found / len(exercised), 4) if exercised else None,
        "interval": list(wilson_interval(found, len(exercised))) if exercised else None,
        "anomalies": anomalies,
        "seconds": round(sum(trial.seconds or 0 for trial in trials) / len(trials), 1),
        "errors": [trial.error for trial in trials if trial.error],
    }


def verdict_of(claimed: bool, trials: Sequence[PlantedTrial]) -> str:
    """What became of a plant. These words are never those of a cell: nothing of this is about Kafka.

    - `found`: a promise that must show it was broken, in one trial at least.
    - `survived`: it fired, the scenario's precondition was met, and no such promise was broken.
    - `equivalent`: it is declared that it cannot show, it fired where the precondition was met, and it did not show.
    - `misjudged`: it is declared that it cannot show, and it did.
    - `not-fired`: in no trial.
    - `not-exercised`: it fired, but the precondition was met in no trial.
    - `error`: it was not found, and a trial failed.
    """
    if any(trial.found for trial in trials):
        return "found" if claimed else "misjudged"
    if any(trial.error for trial in trials):
        return "error"
    if not any(trial.fired for trial in trials):
        return "not-fired"
    if not any(trial.exercised for trial in trials):
        return "not-exercised"
    return "survived" if claimed else "equivalent"


def complaint(told: Mapping[str, Any]) -> str:
    """What was not as it should be, in a sentence."""
    bad = [row for row in told["plants"] if row["verdict"] not in ("found", "equivalent")]
    what = "; ".join(f"{row['plant']} {WORDS[row['verdict']]} in {row['scenario']}" for row in bad)
    return f"Of what was planted into {told['streams']}, {what}. All of it is stored; see the tab Sensitivity."


WORDS = {"survived": "survived", "misjudged": "showed where it cannot", "not-fired": "did not fire", "error": "failed"}


def exit_code(verdicts: Sequence[str]) -> ExitCode:
    """1 if one survived or was misjudged, else 4 if a trial failed, else 3 if one was not tried in earnest, else 0."""
    if {"survived", "misjudged"} & set(verdicts):
        return ExitCode.ANOMALY
    if "error" in verdicts:
        return ExitCode.ERROR
    return ExitCode.INCONCLUSIVE if {"not-fired", "not-exercised"} & set(verdicts) else ExitCode.OK
