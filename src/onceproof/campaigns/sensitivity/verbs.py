"""The verb of DAG `sensitivity`: which plants are tried on a release, and what became of them."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from onceproof.campaigns.requests import SensitivityRequest
from onceproof.model.cell import Cell, draw_seed
from onceproof.model.errors import ExitCode, UsageError
from onceproof.model.files import Outcome, Reading
from onceproof.model.json_file import read_json, write_json
from onceproof.model.known_issues import registry
from onceproof.model.plants import Plant, plant, plants
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.model.sensitivity import PlantedTrial
from onceproof.processes.signals import end_by_sigterm
from onceproof.scenarios import scenario
from onceproof.settings import get_settings

# As in `steps`: heavy modules are imported by the verb that needs them.
if TYPE_CHECKING:
    from onceproof.campaigns.sensitivity.plantings import Planting
    from onceproof.lab.cluster import EmbeddedCluster

INDEPENDENT, SPARK = "independent", "spark"  # the readers
UNREAD = "Spark has not read it yet; if the call was cut short, the same command continues it."


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
        """The release whose bugs are looked for."""
        return f"sensitivity of {self.release}"


def sense_for(request: SensitivityRequest, streams: str, seed: int) -> Sense:
    """The part of a request that is for one of its releases; `seed` is taken if it has none.

    Raises:
        UsageError: a plant or scenario does not exist, or nothing that is asked for can be tried on the release.
        HarnessError: the agent does not fit the release.
    """
    from onceproof.lab.agent import alterations
    from onceproof.lab.artifacts import check_published
    from onceproof.lab.java import require_java
    from onceproof.lab.releases import exact

    installation = get_settings().installation
    release, broker = (Release.parse(*exact(installation, [name])) for name in (streams, request.broker))
    for name in request.scenario:
        scenario(name)
    named = [plant(name) for name in request.plant]
    require_java(installation.java, broker.oldest_java, f"a broker of Kafka {broker}")
    check_published(installation, {release, broker})
    for candidate in named:
        if reason := candidate.refuse(release):
            raise UsageError(reason)
    wanted = [candidate for candidate in named or plants().values() if candidate.applies(release)]
    altered = alterations(installation, release)
    if lacking := next((candidate.name for candidate in wanted if not altered.get(candidate.name)), None):
        raise UsageError(f"{lacking} cannot be planted into {release}: it lacks the methods that the plant alters.")
    plantings: list[Planting] = []
    masked: dict[str, str] = {}
    for candidate in wanted:
        found, reasons = _plantings(candidate, release, broker, request.scenario)
        plantings += found
        masked |= reasons
    if not plantings:
        why = next(
            iter(masked.values()), "no plant is claimed or declared for these scenarios; see `onceproof check plants`."
        )
        raise UsageError(f"There is nothing to try on {release}: {why}")
    return Sense(release, broker, tuple(plantings), request.trials, request.seed_or(seed), masked)


def _plantings(
    planted: Plant, release: Release, broker: Release, scenarios: Sequence[str]
) -> tuple[list["Planting"], dict[str, str]]:
    """Where a plant is tried, and why it is not elsewhere."""
    from onceproof.campaigns.sensitivity.plantings import Planting

    plantings, masked = [], {}
    for claim in planted.claims:
        if scenarios and claim.scenario not in scenarios:
            continue
        try:
            plantings.append(Planting(planted, claim.cell(release, broker), claim))
        except UsageError as error:
            masked[f"{planted.name} in {claim.scenario}"] = str(error)
    for name in planted.equivalent:
        if not scenarios or name in scenarios:
            cells = [Cell(name, variant, release, broker) for variant in scenario(name).variants]
            quiet = next((cell for cell in cells if not registry().affecting(cell) and not _is_refused(cell)), None)
            if quiet is not None:
                plantings.append(Planting(planted, quiet, None))
    return plantings, masked


def _is_refused(cell: Cell) -> bool:
    return scenario(cell.scenario).refuse(cell) is not None


def sense(run: RunFolder, asked: Sense, report: Callable[[str], None] = print) -> dict[str, Any]:
    """Try the plants, store each trial in the results database, and say what became of each plant.

    Returns:
        run, streams, broker, seed, plants (a row each, see `row`), masked, exit_code: `sensitivity.json` of the
        run folder.

    Raises:
        HarnessError: the brokers failed, or the database refuses.
    """
    report(f"{len(asked.plantings)} plantings, {asked.trials} trials each, seed {asked.seed}, folder {run.path}")
    tried = _try_and_store(run, asked.plantings, asked.broker, asked.trials, asked.seed, report)
    rows = [row(planting, trials) for planting, trials in tried]
    answer = {
        "run": run.run_id,
        "streams": str(asked.release),
        "broker": str(asked.broker),
        "seed": asked.seed,
        "plants": rows,
        "masked": dict(asked.masked),
        "exit_code": int(exit_code([r["verdict"] for r in rows])),
    }
    write_json(run.sensitivity_file, answer)
    return answer


def _try_and_store(
    run: RunFolder,
    plantings: Sequence["Planting"],
    broker: Release,
    trials: int,
    seed: int,
    report: Callable[[str], None],
) -> list[tuple["Planting", list[PlantedTrial]]]:
    """Try the plants, have Spark read the same topics, and store what both readers saw.

    Each trial is stored as soon as it has ended, at first marked as not yet read by Spark. What the run tried before it
    was cut short is not tried again.
    """
    from onceproof.campaigns.sensitivity.plantings import plan_trials, try_planned
    from onceproof.harness import harness_version
    from onceproof.results.sensitivity import read_planted_trials, store_planted

    settings = get_settings()
    url = settings.database_url
    plan = plan_trials(run.run_id, plantings, trials, seed)
    with end_by_sigterm(), _lock(run):
        mine = [
            result
            for result in read_planted_trials(url)
            if result.run == run.run_id and result.harness == harness_version(result.cell.scenario)
        ]
        judged = {result.trial: result for result in mine if not result.error}
        left = [(planting, trial) for planting, trial in plan if trial.key not in judged]
        if left:
            read = partial(_read_by_spark, run.planted, report)
            tried = try_planned(
                settings.installation,
                run,
                left,
                broker,
                report,
                lambda result: store_planted([store_unread(result)], url),
                read,
            )
            both = read_by_both(run.planted, list(zip((planting for planting, _ in left), tried, strict=True)))
            store_planted(both, url)
            judged |= {result.trial: result for result in both}
    shown = [judged[trial.key] for _, trial in plan]
    return [(planting, shown[n * trials : (n + 1) * trials]) for n, planting in enumerate(plantings)]


def _lock(run: RunFolder) -> FileLock:
    """Held by the process that tries plants in a run folder; the kernel takes it from one that is killed.

    It lies on this machine: the run folder may be on a volume that several share, where locks cannot be relied on.
    """
    return FileLock(get_settings().artifacts / "locks" / run.run_id, blocking=False)


def find_unfinished(asked: Sense, seed: int | None) -> tuple[RunFolder, Sense] | None:
    """The newest call that asked the same of this harness and was cut short, with the seed that it had.

    Args:
        asked: what is asked for.
        seed: that it must have had; None for any.
    """
    from onceproof.campaigns.sensitivity.plantings import plan_trials, version_of

    for file in sorted(get_settings().runs.glob("*/planted/run.json"), reverse=True):
        run, begun = RunFolder(file.parents[1]), read_json(file)
        if run.sensitivity_file.exists() or run.run_file.exists():
            continue
        first = begun["trials"][0]["seed"]
        plan = plan_trials(run.run_id, asked.plantings, asked.trials, first)
        is_same = [trial.to_dict() for _, trial in plan] == begun["trials"] and begun["harness"] == version_of(plan)
        if seed in (None, first) and is_same and _is_free(run):
            return run, replace(asked, seed=first)
    return None


def _is_free(run: RunFolder) -> bool:
    try:
        with _lock(run):
            return True
    except Timeout:
        return False


def store_unread(trial: PlantedTrial) -> PlantedTrial:
    """A trial as it is stored until Spark, too, has read it: it does not count yet."""
    if trial.error:
        return trial
    found_by = (INDEPENDENT,) if trial.found else ()
    return replace(trial, found=False, exercised=False, found_by=found_by, error=UNREAD)


def _read_by_spark(planted: RunFolder, report: Callable[[str], None], cluster: "EmbeddedCluster") -> None:
    from onceproof.spark import choose_compiler, collect_and_check

    report("Spark reads the same topics")
    write_json(planted.cluster_file(str(cluster.release)), cluster.to_dict())
    collect_and_check(planted, env=choose_compiler(sum(1 for _ in planted.trials())))


def read_by_both(planted: RunFolder, tried: Sequence[tuple["Planting", PlantedTrial]]) -> list[PlantedTrial]:
    """The trials, each with the readers that found its plant.

    A trial on which they disagree on any witness is an error, and finds nothing.

    Raises:
        HarnessError: what one of them wrote cannot be read.
    """
    from onceproof.results.judging import collection_errors, disagreements, spark_counts

    spark, unreadable = spark_counts(planted), collection_errors(planted)

    def both(planting: "Planting", trial: PlantedTrial) -> PlantedTrial:
        if trial.error:
            return trial
        folder, counts = planted.trial(trial.trial), spark.get(trial.trial)
        outcome, reader = Outcome.read(folder.outcome_file), Reading.read(folder.reader_file)
        error = unreadable.get(trial.trial) or next(disagreements(outcome, reader, counts), None)
        if error or counts is None:
            return replace(trial, found=False, exercised=False, error=error)
        seen = {INDEPENDENT: reader.anomalies, SPARK: counts.anomalies}
        odd = reader.unexplained  # of Spark's witnesses, too: they are the same
        found_by = [name for name, anomalies in seen.items() if trial.fired and planting.is_shown_by(anomalies, odd)]
        return replace(trial, found=len(found_by) == len(seen), found_by=tuple(found_by))

    return [both(planting, trial) for planting, trial in tried]


def due(cells: Sequence[Cell], most: int, risk: float, run_id: str) -> list["Planting"]:
    """The plants that a run tries: in each scenario, on each release with greens, at most this many. Only how often
    they were tried matters, not what they showed.

    One about which something is known, but less than one green trial needs, is finished before the next is begun. Then
    comes the one tried least: it is new, or never fired, or enough is known of it. So what greens rest on is drawn
    again again and again, and a draw that was lucky does not last.
    """
    from onceproof.harness import harness_version
    from onceproof.lab.machine import machine
    from onceproof.results.controls import plants_in
    from onceproof.results.judging import past_before
    from onceproof.statistics import control_trials

    if not most:
        return []
    settings = get_settings()
    known, here = past_before(run_id, settings.database_url).plants, machine(settings.installation)
    found: list[Planting] = []
    ours = [cell for cell in cells if not cell.broker.is_claimed]  # of others, plants would say nothing
    places = {(cell.scenario, cell.streams, cell.broker) for cell in ours if not registry().affecting(cell)}
    for name, streams, broker in sorted(places):
        waiting = []
        for planting in _list_claimed(name, streams, broker):
            tried = [
                before
                for before in plants_in(planting.cell, harness_version(name), here, known)
                if before.plant == planting.plant.name
            ]
            exercised, planned = (
                sum(before.tally.counted for before in tried),
                sum(before.planned for before in tried),
            )
            begun = exercised if exercised < control_trials(risk) else 0
            waiting.append((-begun, planned, planting))
        waiting.sort(key=lambda before: before[:2])
        found += [planting for *_, planting in waiting[:most]]
    return found


def _list_claimed(name: str, streams: Release, broker: Release) -> Iterator["Planting"]:
    """The plants that a scenario must find on a release, with the parameters that cells have."""
    from onceproof.campaigns.sensitivity.plantings import Planting

    for candidate in plants().values():
        claim = candidate.claim(name)
        if claim is not None and candidate.applies(streams) and not claim.parameters:
            with suppress(UsageError):  # a known issue would hide it
                yield Planting(candidate, claim.cell(streams, broker), claim)


def sense_due(run: RunFolder, report: Callable[[str], None] = print) -> None:
    """Try the plants of the plan on brokers of their own, and store what they showed.

    Raises:
        HarnessError: the brokers failed, or the database refuses.
    """
    from onceproof.campaigns.sensitivity.plantings import Planting

    by_broker: dict[Release, list[Planting]] = defaultdict(list)
    for data in read_json(run.run_file).get("plants", []):
        planted, cell = plant(data["plant"]), Cell.from_dict(data)
        by_broker[cell.broker].append(Planting(planted, cell, planted.claim(cell.scenario)))
    if not by_broker:
        report("No plant is due: enough is known of each, or the matrix tries none.")
    for broker, plantings in by_broker.items():
        _try_and_store(run, plantings, broker, 1, draw_seed(run.run_id), report)


def row(planting: "Planting", trials: Sequence[PlantedTrial]) -> dict[str, Any]:
    """The sum of the trials of a planting.

    Returns:
        plant, scenario, variant, parameters, promises (that must show it; none if it cannot show), reason (why it
        cannot), verdict, trials, fired (trials in which it did), exercised (those of them that met the scenario's
        precondition), found (of the fired), found_by (in how many trials each reader saw it), rate and interval (of
        found among the exercised; 95 %, Wilson; null without any), anomalies (the most of each in a trial), seconds
        (mean), errors.
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
        "found_by": dict(Counter(reader for trial in trials for reader in trial.found_by)),
        "rate": round(found / len(exercised), 4) if exercised else None,
        "interval": list(wilson_interval(found, len(exercised))) if exercised else None,
        "anomalies": anomalies,
        "seconds": round(sum(trial.seconds or 0 for trial in trials) / len(trials), 1),
        "errors": [trial.error for trial in trials if trial.error],
    }


def verdict_of(claimed: bool, trials: Sequence[PlantedTrial]) -> str:
    """The fate of a plant. These words are never those of a cell: nothing of this is about Kafka.

    - `found`: both readers saw a promise broken that must show it, in one trial at least.
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


def complaint(report: Mapping[str, Any]) -> str:
    """The error, in a sentence."""
    bad = [row for row in report["plants"] if row["verdict"] not in ("found", "equivalent")]
    what = "; ".join(f"{row['plant']} {WORDS[row['verdict']]} in {row['scenario']}" for row in bad)
    return f"Of what was planted into {report['streams']}, {what}. All of it is stored; see the tab Sensitivity."


WORDS = {"survived": "survived", "misjudged": "showed where it cannot", "not-fired": "did not fire", "error": "failed"}


def exit_code(verdicts: Sequence[str]) -> ExitCode:
    """1 if one survived or was misjudged, else 4 if a trial failed, else 3 if one was not tried in earnest, else 0."""
    if {"survived", "misjudged"} & set(verdicts):
        return ExitCode.ANOMALY
    if "error" in verdicts:
        return ExitCode.ERROR
    return ExitCode.INCONCLUSIVE if {"not-fired", "not-exercised"} & set(verdicts) else ExitCode.OK
