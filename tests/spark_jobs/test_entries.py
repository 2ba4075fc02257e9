"""Spark judges the entries of stores as the independent reader does."""

from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from onceproof.readers.entries import compare_entries
from spark_jobs.transforms import checks, entries
from spark_jobs.transforms.comparisons import in_memory
from tests.specimens.entries import SPECIMENS

pytestmark = pytest.mark.spark


def test_spark_judges_every_specimen_as_the_reader(spark: SparkSession, tmp_path: Path) -> None:
    records: list[tuple[object, ...]] = []
    stated = []
    expected: Counter[tuple[object, ...]] = Counter()
    for trial, specimen in enumerate(SPECIMENS):
        dumps = specimen.write(tmp_path / str(trial))
        name, of = f"trial {trial}", {"sums": specimen.store}
        stated.append(checks.state_trial(name, trial, "windows", 2, {}, entry_dumps=dumps, entry_stores=of))
        records += [
            (trial, "sums-changelog", 0, r.offset, r.timestamp, r.key, r.entry, r.headers) for r in specimen.changelog
        ]
        records += [
            (trial, "sums-entries", 0, number, timestamp, None, f"{key},{value}", headers)
            for number, dump in enumerate(dumps)
            for key, value, timestamp, headers in dump.byte_entries()
        ]
        topics, stores = {"sums-changelog": specimen.changelog}, {"sums-changelog": specimen.store}
        expected.update((trial, *asdict(c).values()) for c in compare_entries(dumps, topics, stores))
    frame = spark.createDataFrame(
        records,
        "trial int, role string, partition int, offset bigint, timestamp bigint, key int, raw string, headers string",
    ).withColumn("timestamp", f.timestamp_millis("timestamp"))
    compared = entries.compare_entries(frame, in_memory(spark, stated, checks.TRIALS))
    assert Counter(tuple(row) for row in compared.collect()) == expected
