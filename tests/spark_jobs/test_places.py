"""Spark and Python write a place in the same way, and what either wrote is read as the place that was meant."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from onceproof.model.place import Place
from spark_jobs.transforms.places import place, place_text, text_of_place

pytestmark = pytest.mark.spark
PLACES = [Place("input", 0, 0), Place("counter-changelog", 1, 62_999), Place("output", 32_767, 2**48 - 1)]


def test_a_place_is_written_alike_in_both_languages(spark: SparkSession) -> None:
    rows = spark.createDataFrame(PLACES, "role string, partition int, offset long").select(
        text_of_place(f.col("role")).alias("columns"), place_text(f.col("role"), place()).alias("packed")
    )
    written = {(row.columns, row.packed) for row in rows.collect()}
    assert written == {(str(where), str(where)) for where in PLACES}
    assert {Place.parse(text) for text, _ in written} == set(PLACES)


def test_a_role_may_be_named_and_columns_be_others(spark: SparkSession) -> None:
    rows = spark.range(1).select(f.lit(3).alias("part"), f.lit(7).alias("first"))
    [reported] = rows.select(text_of_place("output", "part", "first").alias("text")).collect()
    assert reported.text == str(Place("output", 3, 7))
