"""Spark judges what stores held at the end as the independent reader does."""

from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from onceproof.readers.stores import compare_stores
from spark_jobs.transforms import checks, stores
from spark_jobs.transforms.comparisons import in_memory
from tests.specimens.stores import CHANGELOG, SPECIMENS

pytestmark = pytest.mark.spark


def test_spark_judges_every_specimen_as_the_reader(spark: SparkSession, tmp_path: Path) -> None:
    records, stated = [], []
    expected: Counter[tuple[object, ...]] = Counter()
    for trial, specimen in enumerate(SPECIMENS):
        dumps = specimen.write(tmp_path / str(trial))
        stated.append(checks.state_trial(f"trial {trial}", trial, "dedup", 2, {}, dumps))
        records += [(trial, "seen-changelog", *record[:4]) for record in CHANGELOG]
        records += [
            (trial, "seen-dump", dump.partition, number, key, value)
            for number, dump in enumerate(dumps)
            for key, value in dump.entries().items()
        ]
        topics = {"seen-changelog": CHANGELOG}
        expected.update((trial, *asdict(c).values()) for c in compare_stores(dumps, topics))
    frame = spark.createDataFrame(
        records, "trial int, role string, partition int, offset bigint, key int, value bigint"
    )
    compared = stores.compare_stores(frame, in_memory(spark, stated, checks.TRIALS))
    assert Counter(tuple(row) for row in compared.collect()) == expected
