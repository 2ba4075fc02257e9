"""The promise `deliveries`: a key comes out as often as it goes in."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from spark_jobs.transforms.comparisons import comparison, fact
from spark_jobs.transforms.places import partition_of, place, place_text


def count_deliveries(records: DataFrame, role: str = "output") -> DataFrame:
    """Of each key, the records that went in and those that came out in the topic of the role.

    Out: trial, key, inputs LONG, outputs LONG, input_place LONG (the first), output_place LONG (the last).
    """
    went_in = f.col("role") == "input"
    return (
        records.where(f.col("role").isin("input", role))
        .withColumn("place", place())
        .groupBy("trial", "key")
        .agg(
            f.count_if(went_in).alias("inputs"),
            f.count_if(~went_in).alias("outputs"),
            f.min(f.when(went_in, f.col("place"))).alias("input_place"),
            f.max(f.when(~went_in, f.col("place"))).alias("output_place"),
        )
    )


def compare_deliveries(
    deliveries: DataFrame, trials: DataFrame, *, once: bool = False, role: str = "output"
) -> DataFrame:
    """One comparison for each key; more than expected is an anomaly only in a trial that is exactly-once.

    In: what `count_deliveries` gives; `once`: a key is to come out once, however often it went in.
    Out: as the table `comparisons`.
    """
    expected = f.least(f.col("inputs"), f.lit(1)) if once else f.col("inputs")
    lost, surplus = f.col("outputs") < f.col("expected"), f.col("outputs") > f.col("expected")
    where = f.when(lost, f.col("input_place")).otherwise(f.col("output_place"))
    text = f.when(lost, place_text("input", f.col("input_place"))).otherwise(place_text(role, f.col("output_place")))
    return (
        deliveries.withColumn("expected", expected)
        .join(f.broadcast(trials), "trial")
        .select(
            *comparison(
                "deliveries",
                anomaly=f.when(lost, f.lit("lost-record")).when(
                    surplus & (fact("exactly_once") == 1), f.lit("duplicate-output")
                ),
                partition=partition_of(where),
                key=f.col("key"),
                place=text,
                expected=_records("expected"),
                observed=_records("outputs"),
            )
        )
    )


def _records(name: str) -> Column:
    return f.when(f.col(name) == 1, f.lit("1 record")).otherwise(f.format_string("%d records", name))
