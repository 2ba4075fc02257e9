"""Read a run's topics and find the anomalies in them: `spark-submit collect_and_check.py --run-folder PATH`.

It may be started while trials are still driven (`--early`): then it makes parts of the tables, of those that have
ended.
"""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from onceproof.model.client_properties import ClientProperties
from onceproof.model.run_folder import RunFolder
from spark_jobs.check import check
from spark_jobs.collect import collect
from spark_jobs.owner import end_with
from spark_jobs.parts import complete, make_ahead


def main() -> None:
    """Collect into the given run folder, and check it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--run-folder", type=Path, required=True)
    parser.add_argument("--brokers", type=Path, help="a client.properties, of the brokers whose release is claimed")
    parser.add_argument("--early", action="store_true", help="wait until no further trial will be driven")
    parser.add_argument("--kept", action="store_true", help="read what trials kept of their topics, not brokers")
    parser.add_argument("--owner", type=int, metavar="PID", help="process on this machine with which it ends")
    asked = parser.parse_args()
    if asked.owner:
        end_with(asked.owner)
    run_folder = RunFolder(asked.run_folder)
    external = ClientProperties.read(asked.brokers) if asked.brokers else None
    perform = partial(collect_and_check, external=external, kept=asked.kept)
    complete(run_folder, make_ahead(run_folder, perform) if asked.early else [], perform)


def collect_and_check(run_folder: RunFolder, external: ClientProperties | None, *, kept: bool = False) -> None:
    """Do both in one session: it has a cluster's executors only while it works."""
    with session(run_folder) as spark:
        for trial, error in collect(spark, run_folder, external, kept=kept).items():
            print(f"{trial}: {error}")
        check(spark, run_folder)


@contextmanager
def session(run_folder: RunFolder) -> Iterator[SparkSession]:
    """A session of its own, which takes nothing of a cluster before or after."""
    spark = SparkSession.builder.appName(f"collect and check {run_folder.run_id}").getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
