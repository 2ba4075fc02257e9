"""The table `comparisons`: what a promise expects at one place, beside what was observed there."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f


def comparison(
    promise: str,
    *,
    anomaly: Column,
    partition: Column,
    key: Column,
    place: Column,
    expected: Column,
    observed: Column,
) -> list[Column]:
    """The columns of the table, in its order, after `trial`."""
    return [
        f.col("trial"),
        f.lit(promise).alias("promise"),
        anomaly.cast("string").alias("anomaly"),
        partition.cast("int").alias("partition"),
        key.cast("int").alias("key"),
        place.alias("place"),
        expected.alias("expected"),
        observed.alias("observed"),
    ]


def comparison_findings(comparisons: DataFrame) -> DataFrame:
    """Of the comparisons, those that show an anomaly, as the table `findings`."""
    return comparisons.where(f.col("anomaly").isNotNull()).select(
        "trial",
        "anomaly",
        "partition",
        "key",
        f.array().cast("array<int>").alias("ids"),
        f.array("place").alias("offsets"),
        "expected",
        "observed",
    )


def fact(name: str) -> Column:
    """A fact of the trial, as LONG; null if it has none of this name."""
    return f.col("facts")[name]


def records_text(number: Column) -> Column:
    """A number of records for people."""
    return f.when(number == 1, f.lit("1 record")).otherwise(f.format_string("%d records", number))


def value_text(value: Column) -> Column:
    """A store's value for people."""
    return f.coalesce(value.cast("string"), f.lit("nothing"))
