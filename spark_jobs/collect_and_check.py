"""Collect and check in one application: `spark-submit collect_and_check.py --run-folder PATH`.

For trials whose brokers are kept up for it, as those with planted bugs: they do without a second start of Spark.
"""

from pyspark.sql import SparkSession

from onceproof.model.run_folder import RunFolder
from spark_jobs.application import run_application
from spark_jobs.check import check
from spark_jobs.collect import collect


def main() -> None:
    """Collect into the run folder that is given, and check it."""
    run_application("collect and check", __doc__, collect_and_check)


def collect_and_check(spark: SparkSession, run_folder: RunFolder) -> None:
    """Write the tables of both."""
    collect(spark, run_folder)
    check(spark, run_folder)


if __name__ == "__main__":
    main()
