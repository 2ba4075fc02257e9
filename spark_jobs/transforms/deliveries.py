"""The promise `deliveries`, by Spark: a key is emitted as often as it goes in."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_jobs.transforms.comparisons import comparison, fact, records_text
from spark_jobs.transforms.places import partition_of, place, place_text

DELIVERED = ("output", "values-changelog")  # records are emitted in one of them; no trial has both


def count_deliveries(records: DataFrame) -> DataFrame:
    """For each key, the records that went in and those that were emitted.

    Out: trial, key, inputs LONG, outputs LONG, input_place LONG (the first), output_place LONG (the last).
    """
    went_in = f.col("role") == "input"
    return (
        records.where(f.col("role").isin("input", *DELIVERED))
        .withColumn("place", place())
        .groupBy("trial", "key")
        .agg(
            f.count_if(went_in).alias("inputs"),
            f.count_if(~went_in).alias("outputs"),
            f.min(f.when(went_in, f.col("place"))).alias("input_place"),
            f.max(f.when(~went_in, f.col("place"))).alias("output_place"),
        )
    )


def compare_deliveries(deliveries: DataFrame, trials: DataFrame) -> DataFrame:
    """One comparison for each key of these trials; more than expected is an anomaly only if a trial is exactly-once.

    In: what `count_deliveries` gives; trials with `delivered`, the role in which records are emitted, and `once`: a key
    must be emitted once, however often it went in.
    Out: as the table `comparisons`.
    """
    expected = f.when(f.col("once"), f.least("inputs", f.lit(1))).otherwise(f.col("inputs"))
    lost, surplus = f.col("outputs") < f.col("expected"), f.col("outputs") > f.col("expected")
    where = f.when(lost, f.col("input_place")).otherwise(f.col("output_place"))
    role = f.when(lost, f.lit("input")).otherwise(f.col("delivered"))
    return (
        deliveries.join(f.broadcast(trials), "trial")
        .withColumn("expected", expected)
        .select(
            *comparison(
                "deliveries",
                anomaly=f.when(lost, f.lit("lost-record"))
                .when(f.col("expected") == 0, f.lit("unexpected-record"))
                .when(surplus & (fact("exactly_once") == 1), f.lit("duplicate-output")),
                partition=partition_of(where),
                key=f.col("key"),
                place=place_text(role, where),
                expected=records_text(f.col("expected")),
                observed=records_text(f.col("outputs")),
            )
        )
    )
