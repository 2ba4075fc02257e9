"""Every specimen must be judged exactly, all of them in one run as separate trials."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from onceproof.lab.segments import write_segments
from onceproof.model.anomaly import Witness
from onceproof.model.files import Outcome, Produced
from onceproof.model.promise import PROMISES
from onceproof.model.run_folder import RunFolder
from onceproof.model.segments import LogEntry
from onceproof.results import spark_tables
from spark_jobs import tables
from spark_jobs.check import check, divide
from tests.present import present
from tests.specimens.enumerator import ANOMALOUS, HEALTHY, SPECIMENS, Specimen
from tests.specimens.folders import run_folder_of

pytestmark = pytest.mark.spark

NOW = datetime(2026, 11, 21, 8, 45, tzinfo=UTC)


def rows_of(trial: str, specimen: Specimen) -> list[tuple[Any, ...]]:
    roles: dict[str, Sequence[Sequence[int | None]]] = {
        "input": [(*record, record[-1]) for record in specimen.input],
        "output": specimen.output,
        "counter-changelog": specimen.counter,
        "ids-changelog": specimen.ids,
    }
    return [
        (partition, offset, NOW, key, value, "", None, trial, role)
        for role, records in roles.items()
        for partition, offset, key, value in records
    ]


def write_records(spark: SparkSession, run_folder: RunFolder, specimens: dict[str, Specimen]) -> None:
    rows = [row for trial, specimen in specimens.items() for row in rows_of(trial, specimen)]
    records = spark.createDataFrame(rows, tables.RECORDS)
    records.write.parquet(str(run_folder.table("records")))
    tables.write_errors(run_folder, {})


@pytest.fixture(scope="module")
def checked(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFolder, dict[str, Specimen]]:
    run_folder, specimens = run_folder_of(tmp_path_factory.mktemp("run"), SPECIMENS)
    write_records(spark, run_folder, specimens)
    check(spark, run_folder)
    return run_folder, specimens


def read(spark: SparkSession, run_folder: RunFolder, name: str) -> dict[str, list[dict[str, Any]]]:
    by_trial: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in spark.read.parquet(str(run_folder.table(name))).collect():
        values = row.asDict()
        by_trial[values.pop("trial")].append(values)
    return by_trial


def witness_of(row: dict[str, Any]) -> Witness:
    return Witness(**{**row, "ids": tuple(row["ids"]), "offsets": tuple(row["offsets"])})


def in_order(witnesses: list[Witness]) -> list[Witness]:
    return sorted(witnesses, key=repr)


def test_every_anomaly_has_a_specimen() -> None:
    seen = {*PROMISES["identities"].anomalies, *PROMISES["counters"].anomalies}
    assert seen == {name for specimen in ANOMALOUS for name in specimen.expected}


def test_every_specimen_is_judged_exactly(spark: SparkSession, checked: tuple[RunFolder, dict[str, Specimen]]) -> None:
    run_folder, specimens = checked
    found = read(spark, run_folder, "findings")
    for trial, specimen in specimens.items():
        witnesses = [witness_of(row) for row in found[trial]]
        assert in_order(witnesses) == in_order(specimen.witnesses), specimen.name


def test_every_trial_is_counted_also_the_empty_one(
    spark: SparkSession, checked: tuple[RunFolder, dict[str, Specimen]]
) -> None:
    run_folder, specimens = checked
    counted = read(spark, run_folder, "counts")
    for trial, specimen in specimens.items():
        assert counted[trial] == [
            {
                "records": specimen.records,
                "outputs": specimen.outputs,
                "keys": specimen.distinct_keys,
                "ids": specimen.distinct_ids,
            }
        ], specimen.name


def test_assignments_hold_one_row_per_key_and_id(
    spark: SparkSession, checked: tuple[RunFolder, dict[str, Specimen]]
) -> None:
    run_folder, specimens = checked
    assigned = read(spark, run_folder, "assignments")
    (healthy,) = (trial for trial, specimen in specimens.items() if specimen is HEALTHY)
    columns = ("partition", "key", "id", "first_offset", "outputs", "inputs", "expected_id")
    assert sorted(tuple(row[name] for name in columns) for row in assigned[healthy]) == [
        (0, 1, 0, 0, 2, 2, 0),
        (0, 3, 2, 1, 1, 1, 2),
        (1, 0, 1, 0, 1, 1, 1),
        (1, 2, 3, 2, 1, 1, 3),
    ]


def test_changelogs_hold_last_values_beside_the_output(
    spark: SparkSession, checked: tuple[RunFolder, dict[str, Specimen]]
) -> None:
    run_folder, specimens = checked
    logs = read(spark, run_folder, "changelogs")
    (healthy,) = (trial for trial, specimen in specimens.items() if specimen is HEALTHY)
    columns = ("partition", "key", "changelog_value", "previous_value", "last", "output_value")
    rows = {
        store: sorted(
            [tuple(row[name] for name in columns) for row in logs[healthy] if row["store"] == store], key=repr
        )
        for store in ("ids", "counter")
    }
    assert rows == {
        "ids": [
            (0, 1, 0, None, True, 0),
            (0, 3, 2, None, True, 2),
            (1, 0, 1, None, True, 1),
            (1, 2, 3, None, True, 3),
        ],
        "counter": [
            (0, 0, 0, None, False, None),
            (0, 0, 1, 0, True, 1),
            (1, 0, 0, None, False, None),
            (1, 0, 1, 0, True, 1),
        ],
    }


def test_checking_again_replaces_tables(spark: SparkSession, tmp_path: Path) -> None:
    run_folder, specimens = run_folder_of(tmp_path, [HEALTHY, HEALTHY])
    write_records(spark, run_folder, specimens)
    check(spark, run_folder)
    first, second = specimens
    tables.write_errors(run_folder, {second: "topic t partition 0 offset 0: the key is missing"})
    check(spark, run_folder)
    for name in ("assignments", "changelogs", "counts"):
        assert set(read(spark, run_folder, name)) == {first}


def test_a_run_without_any_record_has_empty_tables(spark: SparkSession, tmp_path: Path) -> None:
    run_folder, _ = run_folder_of(tmp_path, [])
    write_records(spark, run_folder, {})
    check(spark, run_folder)
    assert all(spark_tables.rows_of(run_folder.table(name), tables.columns_of(name)) == [] for name in tables.CHECKED)


def test_the_log_segments_of_a_trial_are_read_and_judged(spark: SparkSession, tmp_path: Path) -> None:
    run_folder, specimens = run_folder_of(tmp_path, [HEALTHY])
    [trial] = specimens
    folder = run_folder.trial(trial)
    replace(Outcome.read(folder.outcome_file), facts={"ended": 1}).write(folder.outcome_file)
    hanging = LogEntry("data", "output", 0, 0, 1, 7, 0, 0, 1)  # and a marker nowhere
    write_segments(folder.segments_file, [hanging])
    write_records(spark, run_folder, specimens)
    check(spark, run_folder)
    [part] = read(spark, run_folder, "transactions")[trial]
    assert (part["place"], part["outcome"], part["records"], part["visible"]) == ("output/0@0", "open", 2, 2)
    found = [(row["anomaly"], row["offsets"]) for row in read(spark, run_folder, "findings")[trial]]
    assert ("hanging-transaction", ["output/0@0"]) in found
    assert ("isolation-breach", ["output/0@0"]) in found


def test_it_is_one_job_of_one_stage_whatever_is_checked(spark: SparkSession, tmp_path: Path) -> None:
    run_folder, specimens = run_folder_of(tmp_path, SPECIMENS)
    write_records(spark, run_folder, specimens)
    spark.sparkContext.setJobGroup("counted", "check")
    check(spark, run_folder)
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # it takes None
    tracker = spark.sparkContext.statusTracker()
    [job] = tracker.getJobIdsForGroup("counted")
    assert len(present(tracker.getJobInfo(job)).stageIds) == 1


def test_trials_are_divided_by_their_records(tmp_path: Path) -> None:
    run_folder, specimens = run_folder_of(tmp_path, [HEALTHY] * 5)
    few, more, most, *others = specimens
    for trial, records in ((few, 1), (more, 50), (most, 60), *((other, 20) for other in others)):
        file = run_folder.trial(trial).outcome_file
        replace(Outcome.read(file), produced=Produced(records, 1)).write(file)
    assert sorted(map(sorted, divide(run_folder, list(specimens), 2))) == sorted(
        map(sorted, ([most, others[1]], [more, others[0], few]))
    )
    assert divide(run_folder, list(specimens)[:1], 2) == [[few]]
    assert divide(run_folder, [], 2) == [[]]
