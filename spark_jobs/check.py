"""Find the anomalies in the collected records: `spark-submit check.py --run-folder PATH`.

Reads `records`, writes `assignments`, `changelogs`, `comparisons`, `findings` and `counts`, of all trials at once. A
trial that could not be collected has no rows in any of them. Running it again replaces the tables.
"""

import argparse
from collections import defaultdict
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from onceproof.model.cell import Trial
from onceproof.model.run_folder import RunFolder, read_json
from spark_jobs import tables
from spark_jobs.transforms.checks import CHECKS, with_comparisons


def main() -> None:
    """Read the arguments, check, stop."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--run-folder", type=Path, required=True)
    run_folder = RunFolder(parser.parse_args().run_folder)
    spark = SparkSession.builder.appName(f"check {run_folder.run_id}").getOrCreate()
    try:
        check(spark, run_folder)
    finally:
        spark.stop()


def check(spark: SparkSession, run_folder: RunFolder) -> None:
    """Write the tables of every trial that was collected.

    Between reading and writing, `trial` is a number: a trial's key has some 50 characters, and without them the rows
    are a third as long. All of them are moved and sorted.
    """
    tables.drop(run_folder, *tables.CHECKED)
    unreadable = tables.read_errors(run_folder)
    trials = [trial for trial in run_folder.driven_trials() if trial.key not in unreadable]
    names = spark.createDataFrame([(trial.key, n) for n, trial in enumerate(trials)], "name string, trial int")
    records = tables.read_records(spark, run_folder).withColumnRenamed("trial", "name")
    observed = observations_of(spark, run_folder, trials)
    checks = []
    for name, of_check in trials_by_check(run_folder, trials).items():
        stated = spark.createDataFrame(of_check, "trial int, partitions int, facts map<string, long>")
        checked = CHECKS[name](numbered(records, stated, names), stated)
        checks.append(
            with_comparisons(checked, observed.join(f.broadcast(stated.select("trial")), "trial", "left_semi"))
        )
    shared = [frame.persist() for check in checks for frame in check.shared]
    for table in tables.CHECKED:
        nothing = spark.createDataFrame([], tables.CHECKED[table].replace("trial string", "trial int"))
        frames = [check.tables[table] for check in checks if table in check.tables]
        rows = reduce(DataFrame.unionByName, frames or [nothing])
        named = rows.join(f.broadcast(names), "trial").drop("trial").withColumnRenamed("name", "trial")
        tables.write(run_folder, table, named.select(*tables.columns_of(table)))
    for frame in shared:
        frame.unpersist()


def trials_by_check(run_folder: RunFolder, trials: list[Trial]) -> dict[str, list[tuple[int, int, dict[str, int]]]]:
    """The trials of each check: their place in the list, partitions, and facts by name."""
    stated: dict[str, list[tuple[int, int, dict[str, int]]]] = defaultdict(list)
    for number, trial in enumerate(trials):
        plan = read_json(run_folder.trial(trial).trial_file)
        stated[plan["check"]].append((number, int(plan["partitions"]), dict(run_folder.outcome(trial)["facts"])))
    return stated


def observations_of(spark: SparkSession, run_folder: RunFolder, trials: list[Trial]) -> DataFrame:
    """What the timelines of the trials show, as the table `comparisons` with the trial's place in the list."""
    rows = []
    for number, trial in enumerate(trials):
        file = run_folder.trial(trial).observations_file
        rows += [{**row, "trial": number} for row in (read_json(file) if file.exists() else [])]
    return spark.createDataFrame(rows, tables.CHECKED["comparisons"].replace("trial string", "trial int"))


def numbered(records: DataFrame, stated: DataFrame, names: DataFrame) -> DataFrame:
    """The records of the stated trials, with the trial's number in place of its name."""
    wanted = names.join(stated.select("trial"), "trial", "left_semi")
    return records.join(f.broadcast(wanted), "name").drop("name")


if __name__ == "__main__":
    main()
