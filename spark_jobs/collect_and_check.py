"""Read a run's topics and find the anomalies in them: `spark-submit collect_and_check.py --run-folder PATH`.

One application does both, so that code which the JVM has compiled to read and write tables serves the checks, too. It
may be started while trials are still driven (`--early`): then it rehearses on those that have ended.
"""

import argparse
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from onceproof.model.client_properties import ClientProperties
from onceproof.model.files import Outcome
from onceproof.model.run_folder import RunFolder
from spark_jobs.check import check
from spark_jobs.collect import collect
from spark_jobs.rehearsal import rehearse

MANY = 3_000_000  # records of inputs


def main() -> None:
    """Collect into the given run folder, and check it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--run-folder", type=Path, required=True)
    parser.add_argument("--brokers", type=Path, help="a client.properties, of the brokers whose release is claimed")
    parser.add_argument("--early", action="store_true", help="wait until no further trial will be driven")
    asked = parser.parse_args()
    run_folder = RunFolder(asked.run_folder)
    given = ClientProperties.read(asked.brokers) if asked.brokers else None
    if asked.early:
        rehearse(run_folder, lambda rehearsal: collect_and_check(rehearsal, given))
    collect_and_check(run_folder, given)


def collect_and_check(run_folder: RunFolder, given: ClientProperties | None) -> None:
    """Do both in a session of their own, which takes nothing of a cluster before or after."""
    builder = SparkSession.builder.appName(f"collect and check {run_folder.run_id}")
    spark = builder.config(map=settings(run_folder)).getOrCreate()
    try:
        for trial, error in collect(spark, run_folder, given).items():
            print(f"{trial}: {error}")
        check(spark, run_folder)
    finally:
        spark.stop()


def settings(run_folder: RunFolder) -> dict[str, Any]:
    """Settings of the session beside those of `spark.conf`: what many records shuffle would fill a disk."""
    outcomes = (Outcome.read(run_folder.trial(trial).outcome_file) for trial in run_folder.driven_trials())
    compress = sum(outcome.produced.records for outcome in outcomes) > MANY
    return dict.fromkeys(("spark.shuffle.compress", "spark.shuffle.spill.compress"), "true") if compress else {}


if __name__ == "__main__":
    main()
