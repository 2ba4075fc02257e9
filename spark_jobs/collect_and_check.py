"""Read a run's topics and find the anomalies in them: `spark-submit collect_and_check.py --run-folder PATH`.

One application does both, so that code which the JVM has compiled to read and write tables serves the checks, too.
"""

import argparse
from pathlib import Path

from pyspark.sql import SparkSession

from onceproof.model.client_properties import ClientProperties
from onceproof.model.run_folder import RunFolder
from spark_jobs.check import check
from spark_jobs.collect import collect


def main() -> None:
    """Collect into the given run folder, and check it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--run-folder", type=Path, required=True)
    parser.add_argument("--brokers", type=Path, help="a client.properties, of the brokers whose release is claimed")
    asked = parser.parse_args()
    run_folder = RunFolder(asked.run_folder)
    given = ClientProperties.read(asked.brokers) if asked.brokers else None
    spark = SparkSession.builder.appName(f"collect and check {run_folder.run_id}").getOrCreate()
    try:
        for trial, error in collect(spark, run_folder, given).items():
            print(f"{trial}: {error}")
        check(spark, run_folder)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
