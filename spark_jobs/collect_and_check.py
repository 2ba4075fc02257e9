"""Collect and check in one application: `spark-submit collect_and_check.py --run-folder PATH`.

For trials whose brokers are kept up for it, as those with planted bugs: they do without a second start of Spark.
"""

import argparse
from pathlib import Path

from pyspark.sql import SparkSession

from onceproof.model.run_folder import RunFolder
from spark_jobs.check import check
from spark_jobs.collect import collect


def main() -> None:
    """Read the arguments, collect, check, stop."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--run-folder", type=Path, required=True)
    run_folder = RunFolder(parser.parse_args().run_folder)
    spark = SparkSession.builder.appName(f"collect and check {run_folder.path}").getOrCreate()
    try:
        collect(spark, run_folder)
        check(spark, run_folder)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
