"""What every Spark application of ours begins and ends with."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pyspark.sql import SparkSession

from onceproof.model.run_folder import RunFolder

T = TypeVar("T")


def run_application(name: str, document: str | None, job: Callable[[SparkSession, RunFolder], T]) -> T:
    """Read the argument `--run-folder`, do the job on that folder in a session of its own, stop.

    Args:
        name: of the application, beside the run's id, in Spark's pages and logs.
        document: of the module that is started; its first line is the help.
        job: what is done; what it returns is returned.
    """
    parser = argparse.ArgumentParser(description=(document or "").splitlines()[0])
    parser.add_argument("--run-folder", type=Path, required=True)
    run_folder = RunFolder(parser.parse_args().run_folder)
    spark = SparkSession.builder.appName(f"{name} {run_folder.run_id}").getOrCreate()
    try:
        return job(spark, run_folder)
    finally:
        spark.stop()
