"""The promise `ownership`: a partition with records is processed, also when its owner is gone.

A partition is idle from the last committed position that moved, or from when the first record behind that was sent if
this was later, until the next commit that moves it. The times of commits are those that brokers gave their records in
`__consumer_offsets`: the only ones that say when an input was processed. The time before the first commit does not
count. The fact `idle` is the number of ms for which a partition may be idle; trials without it are not judged.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from spark_jobs.transforms.comparisons import comparison, fact
from spark_jobs.transforms.places import text_of_place

PROMISE = "ownership"
PARTITION = ("trial", "partition")


def compare_ownership(positions: DataFrame, records: DataFrame, trials: DataFrame) -> DataFrame:
    """One comparison for each partition of the input, of the longest time in which it was idle; of several the first.

    In: the ranges of the input that were committed (trial, partition, first, last, at_partition, at_offset, at LONG);
    records (trial, role, partition, offset, timestamp); trials (trial, facts). Out: as the table `comparisons`.
    """
    judged = f.broadcast(
        trials.where(fact("idle").isNotNull()).select(
            "trial",
            fact("idle").alias("allowed"),
            f.explode(f.sequence(f.lit(0), fact("partitions").cast("int") - 1)).alias("partition"),
        )
    )
    in_order = Window.partitionBy(*PARTITION).orderBy("at_partition", "at_offset")
    moves = (
        positions.where(f.col("last") >= f.col("first"))
        .join(judged.select(*PARTITION), list(PARTITION))
        .select(*PARTITION, f.col("first").alias("offset"), "at", f.lag("at").over(in_order).alias("before"))
    )
    sent = records.where(f.col("role") == "input").select(*PARTITION, "offset", "timestamp")
    waited = moves.where(f.col("before").isNotNull()).join(sent, [*PARTITION, "offset"])
    ms = f.col("at") - f.greatest("before", f.unix_millis("timestamp"))
    longest = (
        waited.withColumn("ms", ms)
        .groupBy(*PARTITION)
        .agg(f.max(f.struct("ms", (-f.col("offset")).alias("earlier"))).alias("longest"))
        .select(*PARTITION, f.col("longest.ms").alias("ms"), (-f.col("longest.earlier")).alias("offset"))
    )
    rows = judged.join(longest, list(PARTITION), "left").withColumn("offset", f.coalesce("offset", f.lit(0)))
    waited_for = f.format_string("they waited for %,d ms", "ms")
    return rows.select(
        *comparison(
            PROMISE,
            anomaly=f.when(f.col("ms") > f.col("allowed"), f.lit("idle-partition")),
            partition=f.col("partition"),
            key=f.lit(None),
            place=text_of_place("input"),
            expected=f.format_string("records wait for %,d ms at most", "allowed"),
            observed=f.when(f.col("ms").isNull(), f.lit("none waited")).otherwise(waited_for),
        )
    )
