"""Brings together all that is known about a run and judges it."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from onceproof.model.cell import Trial
from onceproof.model.errors import HarnessError
from onceproof.model.files import Outcome, Reading, TrialPlan, VerdictRow
from onceproof.model.history import Input
from onceproof.model.json_file import read_json
from onceproof.model.known_issues import registry
from onceproof.model.matrices import RISK
from onceproof.model.promise import LOSSES, map_suites, suites_of
from onceproof.model.run_folder import RunFolder
from onceproof.model.timeline import read_timeline
from onceproof.model.verdict import CellVerdict, TrialEvidence, judge
from onceproof.results.controls import Past, past_of, place_evidence, weigh
from onceproof.results.qualified import explain_unqualified
from onceproof.results.spark_tables import rows_of, rows_of_trial, witnesses_in
from onceproof.scenarios.explaining import count_unexplained_in

Seen = tuple[str, int | None, tuple[str, ...]]  # of a witness: anomaly, key, places


@dataclass(frozen=True)
class SparkCounts:
    """The counts of Spark in one trial."""

    counts: Mapping[str, int]  # records, outputs, keys, ids
    witnesses: Collection[Seen]
    promises: Mapping[str, int]  # comparisons of those that are judged in the table `comparisons`

    @property
    def anomalies(self) -> Mapping[str, int]:
        """Witnesses per anomaly."""
        return Counter(anomaly for anomaly, _, _ in self.witnesses)


def judge_run(run: RunFolder, url: str, qualifications: Path | None = None) -> list[VerdictRow]:
    """Judge every cell of a run, write `verdicts.json` and return its rows.

    Args:
        run: what was measured.
        url: the results database, for how often positive controls were red before.
        qualifications: folder of what qualified releases showed; None: verdicts say nothing of it.

    Raises:
        HarnessError: the plan is damaged, or the verdicts cannot be written.
    """
    spark = spark_counts(run)
    errors = collection_errors(run)
    trials = run.trials_by_cell()
    if planted := next((trial for of_cell in trials.values() for trial in of_cell if trial.plant), None):
        raise HarnessError(
            f"{planted.key} ran with the planted bug {planted.plant}: it is no evidence about Kafka, so no cell is "
            "judged by it; `onceproof check sensitivity` is for such trials."
        )
    planned = run.list_planned_keys()

    def collect_evidence(trial: Trial) -> TrialEvidence:
        return place_evidence(evidence(run, trial, spark, errors), trial, run.outcome(trial), planned)

    verdicts = [judge(cell, list(map(collect_evidence, of_cell)), registry()) for cell, of_cell in trials.items()]
    verdicts = weigh(verdicts, registry(), past_before(run.run_id, url), risk_of(run))
    rows = [
        replace(
            _describe(run, verdict, trials[verdict.cell]),
            unqualified=explain_unqualified(qualifications, verdict.cell) if qualifications else "",
        )
        for verdict in verdicts
    ]
    VerdictRow.write_all(run.verdicts_file, rows)
    return rows


def past_before(run_id: str, url: str) -> Past:
    """The results of earlier runs; nothing without the database."""
    try:
        return past_of(url, run_id, registry())
    except HarnessError as error:  # greens count for less then, and nothing that was measured is lost
        print(f"Earlier runs do not count. {error}")
        return Past()


def risk_of(run: RunFolder) -> float:
    """With what probability at most a green of the run may miss a bug."""
    return float(read_json(run.run_file).get("risk", RISK))


def _describe(run: RunFolder, verdict: CellVerdict, trials: list[Trial]) -> VerdictRow:
    """A verdict with what tables for people need: seeds, seconds and places."""
    known = [outcome.seconds["total"] for trial in trials if (outcome := run.outcome(trial)) is not None]
    files = [run.trial(trial).reader_file for trial in trials]
    readers = [Reading.read(file) for file in files if file.exists()]
    promises: Counter[str] = Counter()
    for reader in readers:
        promises.update(reader.promises)
    plans = [plan for trial in trials if (plan := TrialPlan.read_known(run.trial(trial).trial_file))]
    cell = verdict.cell
    return VerdictRow(
        **cell.to_dict(),
        cell=cell.key,
        verdict=verdict.verdict,
        sentence=verdict.sentence,
        red=verdict.red,
        counted=verdict.counted,
        trials=verdict.trials,
        anomalies=verdict.anomalies,
        issues=verdict.issues,
        errors=verdict.errors,
        interval=verdict.interval,
        excluded_rate=verdict.excluded_rate,
        missed=verdict.missed,
        plants=verdict.plants,
        arithmetic=verdict.arithmetic,
        seeds=tuple(trial.seed for trial in trials),
        seconds=round(sum(known) / len(known), 2) if known else None,
        records=sum(reader.records for reader in readers),
        keys=sum(reader.keys for reader in readers),
        ids=sum(reader.ids for reader in readers),
        promises=promises,
        not_looked_at={promise: reason for plan in plans for promise, reason in plan.not_looked_at.items()},
        folders=tuple(str(run.trial(trial).path.relative_to(run.path)) for trial in trials),
    )


def evidence(
    run: RunFolder, trial: Trial, spark: Mapping[str, SparkCounts], errors: Mapping[str, str]
) -> TrialEvidence:
    """The knowledge about one trial; an `error` sentence if any part of the harness failed on it."""
    try:
        outcome = run.outcome(trial)
        if outcome is None:
            raise HarnessError("The trial did not run to its end; the log of its task says why.")
        if failure := outcome.error or errors.get(trial.key):
            raise HarnessError(failure)
        if outcome.void:
            return TrialEvidence(trial.key, trial.seed, reason=outcome.void, is_void=True)
        reader = Reading.read(run.trial(trial).reader_file)
        suites = _suites(run, trial)
        contradictions = [
            *disagreements(outcome, reader, spark.get(trial.key)),
            *_suite_contradictions(reader.anomalies, suites, reader.is_whole(outcome)),
        ]
        odd = {} if contradictions else _count_unexplained(run, trial, reader.anomalies)
    except HarnessError as error:
        return TrialEvidence(trial.key, trial.seed, error=str(error))
    if contradictions:
        return TrialEvidence(trial.key, trial.seed, error=f"{trial.key}: {contradictions[0]}")
    return TrialEvidence(
        trial.key,
        trial.seed,
        exercised=outcome.exercised,
        all_steps_tried=outcome.all_steps_tried,
        reason=outcome.reason,
        anomalies=reader.anomalies,
        unexplained=odd,
    )


def _count_unexplained(run: RunFolder, trial: Trial, anomalies: Mapping[str, int]) -> Mapping[str, int]:
    """The witnesses that no known issue of the trial's cell explains, as Spark found them.

    Raises:
        HarnessError: the witnesses or the timeline cannot be read.
    """
    if not anomalies:
        return {}
    witnesses = witnesses_in(run, trial)
    if witnesses is None:
        raise HarnessError(f"{trial.key}: its witnesses cannot be read; see the log of the task check.")
    return count_unexplained_in(trial, witnesses, read_timeline(run.trial(trial).timeline), lambda: _inputs(run, trial))


def _inputs(run: RunFolder, trial: Trial) -> Iterator[Input]:
    from pyarrow.dataset import field

    columns = ["partition", "offset", "key", "value", "timestamp"]
    for row in rows_of_trial(run.table("records"), trial, columns, field("role") == "input") or ():
        time = round(row["timestamp"].timestamp() * 1_000)
        yield row["partition"], row["offset"], row["key"], row["value"], time


def disagreements(outcome: Outcome, reader: Reading, spark: SparkCounts | None) -> Iterator[str]:
    """Where the producer, the independent reader and Spark disagree."""
    if spark is None:
        yield "Spark has not checked it; see the logs of the tasks collect and check."
        return
    whole = reader.is_whole(outcome)
    if whole and reader.records == 0:
        yield "The input topic is empty, so nothing was checked."
    for name, produced in (("records", outcome.produced.records), ("keys", outcome.produced.keys)):
        if whole and produced != (there := getattr(reader, name)):
            yield f"{produced:,} {name} were produced, but {there:,} are in the input topic."
    for name in ("records", "outputs", "keys", "ids"):
        if (of_reader := getattr(reader, name)) != (of_spark := spark.counts[name]):
            yield f"The independent reader counts {of_reader:,} {name}, Spark {of_spark:,}."
    for name in sorted({*reader.anomalies, *spark.anomalies}):
        of_reader, of_spark = reader.anomalies.get(name, 0), spark.anomalies.get(name, 0)
        if of_reader != of_spark:
            yield f"The independent reader sees {of_reader:,} {name}, Spark {of_spark:,}."
    seen = set(spark.witnesses)
    for witness in reader.witnesses:
        if (witness.anomaly, witness.key, witness.offsets) not in seen:
            of_key = "" if witness.key is None else f" of key {witness.key}"
            where = " ".join(witness.offsets)
            yield f"The independent reader sees {witness.anomaly}{of_key} at {where}, Spark does not."
    for name, of_spark in spark.promises.items():
        of_reader = reader.promises.get(name, 0)
        if of_reader != of_spark:
            yield f"The independent reader made {of_reader:,} comparisons for {name}, Spark {of_spark:,}."


def _suites(run: RunFolder, trial: Trial) -> dict[str, object]:
    file = run.validation_file(trial)
    suites: dict[str, Any] = read_json(file) if file.exists() else {}
    for name in suites_of(TrialPlan.read(run.trial(trial).trial_file).promises):
        if not suites.get(name, {}).get("evaluated"):
            raise HarnessError(f"{trial.key}: the suite {name} was not run; the log of the task validate says why.")
        if suites[name]["error"]:
            raise HarnessError(f"{trial.key}: the suite {name} could not be run: {suites[name]['error']}")
    return suites


def _suite_contradictions(anomalies: Mapping[str, int], suites: Mapping[str, Any], whole: bool) -> Iterator[str]:
    """Where readers and suites disagree.

    Several promises may name an anomaly alike (a record is lost on its way to the output, or to a changelog), so of the
    suites that see it one must have failed, not all. What is lost is not compared, so a suite that had too few rows and
    nothing else may have failed by a loss that another one saw.
    """
    failed = {name for name in suites if not suites[name]["success"]}
    for anomaly, count in sorted(anomalies.items()):
        seeing = [name for name in suites if anomaly in map_suites()[name]]
        if seeing and not failed & set(seeing):
            one, *others = seeing
            which = f"none of the suites {', '.join(seeing)} did" if others else f"the suite {one} did not"
            yield f"{count:,} {anomaly} were found, but {which} fail."
    for name in sorted(failed):
        failures = suites[name].get("failed", ())
        lacks_rows = bool(failures) and all(failure.get("floor") for failure in failures)
        explaining = map_suites()[name] | (LOSSES if lacks_rows else frozenset())
        if whole and not explaining & anomalies.keys():
            yield f"The suite {name} failed, but none of its anomalies was found; see the Data Docs."


def spark_counts(run: RunFolder) -> dict[str, SparkCounts]:
    """The counts of Spark, by trial."""
    findings: dict[str, list[Seen]] = defaultdict(list)
    for row in rows_of(run.table("findings"), ["trial", "anomaly", "key", "offsets"]) or ():
        findings[row["trial"]].append((row["anomaly"], row["key"], tuple(row["offsets"])))
    promises: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows_of(run.table("comparisons"), ["trial", "promise", "comparisons"]) or ():
        promises[row["trial"]][row["promise"]] += row["comparisons"]
    return {
        row["trial"]: SparkCounts(
            {name: row[name] for name in ("records", "outputs", "keys", "ids")},
            findings[row["trial"]],
            promises[row["trial"]],
        )
        for row in rows_of(run.table("counts"), ["trial", "records", "outputs", "keys", "ids"]) or ()
    }


def collection_errors(run: RunFolder) -> dict[str, str]:
    """Trials whose topics could not be collected, with the reason."""
    file = run.table("errors.json")
    return dict(read_json(file)) if file.exists() else {}
