"""Find the anomalies in the collected records.

Reads `records`, writes `assignments`, `changelogs`, `transactions`, `comparisons`, `findings` and `counts`, for all
trials: one job of Spark, whose tasks take some trials each and ask DuckDB (`spark_jobs.questions`). A trial that could
not be collected has no rows in any of them. Running it again replaces the tables.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import duckdb
from pyspark.sql import SparkSession

from onceproof.model.anomaly import corrupt_record
from onceproof.model.files import Outcome, TrialPlan, read_observations
from onceproof.model.run_folder import RunFolder
from spark_jobs import tables
from spark_jobs.checks import state_trial
from spark_jobs.questions import answer_all, insert_rows, open_database, run_script, state_trials, write_results


def check(spark: SparkSession, run_folder: RunFolder) -> None:
    """Write the tables of every trial that was collected."""
    tables.drop(run_folder, *tables.CHECKED)
    unreadable = tables.read_errors(run_folder)
    trials = [trial.key for trial in run_folder.list_driven() if trial.key not in unreadable]
    cores = spark.sparkContext.defaultParallelism
    parts = divide(run_folder, trials, cores)
    drafts = {table: tables.draft(run_folder, table) for table in tables.CHECKED}
    for draft in drafts.values():
        draft.mkdir(parents=True)
    work = partial(check_part, run_folder, max(1, cores // len(parts)))
    spark.sparkContext.parallelize(list(enumerate(parts)), len(parts)).foreach(work)
    for table, draft in drafts.items():
        tables.publish(run_folder, table, draft)


def divide(run_folder: RunFolder, trials: Sequence[str], tasks: int) -> list[list[str]]:
    """The keys of trials in at most so many parts, with about as many records in each; one part without any trial."""
    records = {key: Outcome.read(run_folder.trial(key).outcome_file).produced.records for key in trials}
    parts: list[list[str]] = [[] for _ in range(max(1, min(tasks, len(trials))))]
    for key in sorted(trials, key=records.__getitem__, reverse=True):
        min(parts, key=lambda part: sum(records[of] for of in part)).append(key)
    return parts


def check_part(run_folder: RunFolder, threads: int, part: tuple[int, Sequence[str]]) -> None:
    """A task: write the tables of some trials, a file each, into the drafts."""
    number, keys = part
    with open_database(threads) as database:
        load(database, run_folder, keys)
        insert_rows(database, "results.comparisons", observations_of(run_folder, keys))
        answer_all(database)
        for table in tables.CHECKED:
            write_results(database, table, tables.draft_folder(run_folder, table) / f"part-{number}.parquet")


def load(database: duckdb.DuckDBPyConnection, run_folder: RunFolder, trials: Sequence[str]) -> None:
    """Fill the tables that questions read."""
    state_trials(database, [state(run_folder, number, key) for number, key in enumerate(trials)])
    if any(run_folder.table("records").rglob("*.parquet")):
        database.execute(
            """
            insert into records by name
            select t.trial, role, r.partition, r.offset, epoch_ms(r.timestamp) as timestamp, key, value, headers, raw
            from read_parquet(?, hive_types_autocast = false) r join trials t on t.name = r.trial
            """,
            [f"{run_folder.table('records')}/**/*.parquet"],
        )
    for number, key in enumerate(trials):
        if (file := run_folder.trial(key).segments_file).exists():
            rows = "insert into entries by name select ?::int as trial, * from read_parquet(?)"
            database.execute(rows, [number, str(file)])
    place = ("role", "partition", "offset")
    corrupt = tables.read_corrupt(run_folder)
    insert_rows(database, "undecoded", [{"name": c["trial"], **{name: c[name] for name in place}} for c in corrupt])
    run_script(database, "ends")


def state(run_folder: RunFolder, number: int, key: str) -> dict[str, Any]:
    """State a trial by its files: a row of `state_trial`."""
    folder = run_folder.trial(key)
    plan = TrialPlan.read(folder.trial_file)
    return state_trial(
        key,
        number,
        plan.check,
        plan.partitions,
        Outcome.read(folder.outcome_file).facts,
        folder.dumps(),
        folder.entry_dumps(),
        plan.byte_stores,
        [name for name, role in plan.roles.items() if role.committed and folder.segments_file.exists()],
    )


def observations_of(run_folder: RunFolder, trials: Sequence[str]) -> list[dict[str, Any]]:
    """The findings in timelines, and records that cannot be decoded, as rows of the table `comparisons`."""
    numbers = {key: number for number, key in enumerate(trials)}
    files = {key: run_folder.trial(key).observations_file for key in trials}
    observations = {key: read_observations(file) for key, file in files.items() if file.exists()}
    rows = [
        {**vars(comparison), "trial": numbers[key]} for key, observed in observations.items() for comparison in observed
    ]
    for c in tables.read_corrupt(run_folder):
        if c["trial"] in numbers:
            comparison = corrupt_record(c["role"], c["partition"], c["offset"], c["fault"])
            rows.append({**vars(comparison), "trial": numbers[c["trial"]]})
    return rows
