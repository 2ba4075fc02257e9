"""Find the anomalies in the collected records: `spark-submit check.py --run-folder PATH`.

Reads `records`, writes `assignments`, `changelogs`, `findings` and `counts`, of all trials at once. A trial that could
not be collected has no rows in any of them. Running it again replaces the tables.
"""

import argparse
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from onceproof.model.cell import Trial
from onceproof.model.run_folder import RunFolder, read_json
from spark_jobs import tables
from spark_jobs.transforms.scenarios import CHECKS, Checked


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
    """Write the tables of every trial that was collected."""
    tables.drop(run_folder, *tables.CHECKED)
    unreadable = tables.read_errors(run_folder)
    trials = [trial for trial in run_folder.driven_trials() if trial.key not in unreadable]
    checks = [checked(spark, run_folder, scenario, trials) for scenario in CHECKS]
    shared = [frame.persist() for check in checks for frame in check.shared]
    for name in tables.CHECKED:
        rows = checks[0].tables[name]
        for check in checks[1:]:
            rows = rows.unionByName(check.tables[name])
        tables.write(run_folder, name, rows)
    for frame in shared:
        frame.unpersist()


def checked(spark: SparkSession, run_folder: RunFolder, scenario: str, trials: list[Trial]) -> Checked:
    """The frames of one scenario's trials."""
    stated = [
        (trial.key, int(read_json(run_folder.trial(trial).trial_file)["partitions"]))
        for trial in trials
        if trial.cell.scenario == scenario
    ]
    of_scenario = spark.createDataFrame(stated, "trial string, partitions int")
    records = tables.read_records(spark, run_folder).where(f.col("trial").isin([key for key, _ in stated]))
    return CHECKS[scenario](records, of_scenario)


if __name__ == "__main__":
    main()
