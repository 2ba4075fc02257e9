"""Spark judges transactions from the log exactly as the independent reader does, every specimen in one run."""

from collections import defaultdict

import pytest
from pyspark.sql import SparkSession

from onceproof.model.anomaly import Comparison
from onceproof.readers.segments import compare_segments
from spark_jobs import tables
from spark_jobs.transforms.comparisons import in_memory
from spark_jobs.transforms.segments import check_segments, within
from tests.specimens.segments import SPECIMENS

pytestmark = pytest.mark.spark


def test_both_readers_compare_alike_and_the_table_has_every_part(spark: SparkSession) -> None:
    entries = [{"trial": n, **entry.to_dict()} for n, s in enumerate(SPECIMENS) for entry in s.entries]
    records = [
        {
            "trial": n,
            "role": role,
            "partition": r.partition,
            "offset": r.offset,
            "timestamp": r.timestamp * 1_000,
            "key": r.key,
            "value": r.value,
        }
        for n, specimen in enumerate(SPECIMENS)
        for role, topic in specimen.topics.items()
        for r in topic
    ]
    trials = [{"trial": n, "check": "counting", "facts": list(s.facts.items())} for n, s in enumerate(SPECIMENS)]
    checked = check_segments(
        in_memory(spark, entries, f"trial int, {tables.SEGMENTS}"),
        in_memory(
            spark,
            records,
            "trial int, role string, partition int, offset long, timestamp timestamp, key int, value long",
        ),
        in_memory(spark, trials, "trial int, check string, facts map<string, long>"),
    )
    for frame in checked.shared:
        frame.persist()
    reported: dict[int, list[Comparison]] = defaultdict(list)
    for row in checked.comparisons.collect():
        reported[row["trial"]].append(Comparison(*row[1:]))
    for n, specimen in enumerate(SPECIMENS):
        ours = compare_segments(specimen.entries, specimen.topics, "counting", specimen.facts)
        assert sorted(reported[n], key=str) == sorted(ours, key=str), specimen.name
    parts = checked.transactions.where("trial = 0").collect()  # of none: its number is that of the first specimen
    assert set(checked.transactions.columns) == set(tables.columns_of("transactions"))
    assert {
        (p["role"], p["records"], p["due"], p["written"], p["missing"]) for p in parts if p["role"] == "output"
    } == {
        ("output", 2, 3, 2, 1),
        ("output", 2, 2, 2, 0),
    }
    for frame in checked.shared:
        frame.unpersist()


def test_records_lie_in_intervals_of_any_length(spark: SparkSession) -> None:
    ends = [(0, 0), (1, 126), (127, 128), (130, 255), (256, 256), (257, 700), (703, 1023), (1024, 1024)]  # inclusive
    place = {"trial": 0, "role": "output", "partition": 1}
    intervals = [{**place, "first": first, "last": last, "number": n} for n, (first, last) in enumerate(ends)]
    records = [{**place, "partition": partition, "offset": offset} for partition in (0, 1) for offset in range(1100)]
    columns = "trial int, role string, partition int"
    placed = within(
        in_memory(spark, records, f"{columns}, offset long"),
        in_memory(spark, intervals, f"{columns}, first long, last long, number int"),
    )
    expected = {
        (partition, offset): next((n for n, (a, b) in enumerate(ends) if partition == 1 and a <= offset <= b), None)
        for partition in (0, 1)
        for offset in range(1100)
    }
    rows = placed.collect()
    assert len(rows) == len(expected)
    assert {(row["partition"], row["offset"]): row["number"] for row in rows} == expected
