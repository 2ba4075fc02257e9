"""An anomaly that is planted into a real clean trial is found by both readers, as what it is, and nothing else is."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from expectations.checkpoints import validate
from onceproof.model.anomaly import Findings
from onceproof.model.json_file import write_json
from onceproof.model.promise import ANOMALIES, TRANSACTION_ATOMICITY, promises_of, seen_by_suite
from onceproof.model.run_folder import RunFolder
from onceproof.readers.checks import CHECKS
from spark_jobs.check import check
from tests.specimens.mutations import MUTATIONS, Mutation, planted, untouched
from tests.specimens.trials import findings_of, kept_trials, run_of

SEEDS = (1, 2)
KEPT = kept_trials()
TRIALS = [
    *(mutation for clean in KEPT for seed in SEEDS for mutation in planted(clean, seed)),
    *(untouched(clean) for clean in KEPT),
]
# These show in the timeline and not in records.
OF_TIMELINES = {
    "stale-checkpoint",
    "skipped-wipe",
    "thread-died",
    "stuck",
    "unclean-close",
    "corrupt-record",
    "early-commit",
    "long-throttle",
    "runaway-lag",
}
# Planted into log segments, see `tests/specimens/segments.py`.
OF_LOGS = {anomaly for promise in promises_of(TRANSACTION_ATOMICITY) for anomaly in promise.anomalies}
OF_STORES = {"wrong-store", "wrong-standby"}  # planted in tests/specimens/stores.py


def named(mutation: Mutation) -> str:
    return f"{mutation.clean.name}: {mutation.kind}"


def test_every_check_has_a_real_trial_and_every_anomaly_that_records_can_show_is_planted() -> None:
    assert {clean.check for clean in KEPT} == set(MUTATIONS) == set(CHECKS)
    planted_elsewhere = OF_TIMELINES | OF_LOGS | OF_STORES
    assert {w.anomaly for mutation in TRIALS for w in mutation.witnesses} == set(ANOMALIES) - planted_elsewhere


@pytest.mark.parametrize("mutation", TRIALS, ids=named)
def test_the_independent_reader_finds_exactly_what_was_planted(mutation: Mutation) -> None:
    found = CHECKS[mutation.clean.check](mutation.topics, mutation.clean.facts)
    assert Counter(found.witnesses) == Counter(mutation.witnesses)


def test_the_same_seed_plants_at_the_same_places() -> None:
    for clean in KEPT:
        first, again, other = (planted(clean, seed) for seed in (1, 1, 2))
        assert [m.witnesses for m in first] == [m.witnesses for m in again] != [m.witnesses for m in other]


@dataclass
class Judged:
    """The run of all `TRIALS`, their keys in it, and what Spark found in each."""

    run: RunFolder
    trials: list[str]
    found: list[Findings]


@pytest.fixture(scope="module")
def judged(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Judged:
    run, trials = run_of(tmp_path_factory.mktemp("run") / "20261121T084500-3f2a", TRIALS)
    check(spark, run)
    found = findings_of(run)
    return Judged(run, list(trials), [found[trial] for trial in trials])


@pytest.mark.spark
@pytest.mark.parametrize("number", range(len(TRIALS)), ids=lambda number: named(TRIALS[number]))
def test_spark_finds_exactly_what_was_planted_and_counts_as_the_independent_reader(judged: Judged, number: int) -> None:
    mutation, found = TRIALS[number], judged.found[number]
    assert Counter(found.witnesses) == Counter(mutation.witnesses)
    read = CHECKS[mutation.clean.check](mutation.topics, mutation.clean.facts)
    assert (found.records, found.outputs, found.keys, found.ids) == (read.records, read.outputs, read.keys, read.ids)


@pytest.mark.spark
def test_the_suites_fail_where_their_anomalies_were_planted_and_nowhere_else(judged: Judged, project: Path) -> None:
    one_of_each = {(TRIALS[n].clean.check, TRIALS[n].kind): n for n in range(len(TRIALS))}
    chosen = {judged.trials[number]: TRIALS[number] for number in one_of_each.values()}
    planned = [trial.to_dict() for trial in judged.run.trials() if trial.key in chosen]
    write_json(judged.run.run_file, {"trials": planned})
    outcomes = validate(judged.run, project / ".onceproof" / "artifacts" / "data-docs-vendor")
    for trial, mutation in chosen.items():
        planted = {witness.anomaly for witness in mutation.witnesses}
        failed = set()
        for suite, outcome in outcomes[trial].items():
            told = named(mutation), suite, outcome["failed"]
            assert outcome["error"] is None, told
            assert outcome["success"] or planted & seen_by_suite()[suite], told
            failed |= set() if outcome["success"] else seen_by_suite()[suite]
        assert planted <= failed, (named(mutation), planted - failed)
