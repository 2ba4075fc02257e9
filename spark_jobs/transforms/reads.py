"""The promise `reads`, by Spark: a store returns what was put last."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from spark_jobs.transforms.comparisons import comparison, fact
from spark_jobs.transforms.places import text_of_place


def compare_reads(records: DataFrame, trials: DataFrame) -> DataFrame:
    """One comparison for each output record of the topology `counting`: `number << 32 | found`.

    The record of the same key before it, in the order of the input, says what must be found: its number. More is an
    anomaly only in an exactly-once trial: otherwise a record may be processed twice.
    Out: as the table `comparisons`.
    """
    in_order = Window.partitionBy("trial", "key").orderBy("partition", "offset")
    asked = records.where(f.col("role") == "input").select(
        "trial", "key", f.col("value").alias("number"), f.lag("value", 1, 0).over(in_order).alias("before")
    )
    given = records.where(f.col("role") == "output").select(
        "trial",
        "partition",
        "offset",
        "key",
        f.shiftright("value", 32).alias("number"),
        f.col("value").bitwiseAND(f.lit(2**32 - 1)).alias("found"),
    )
    expected, found = f.coalesce("before", f.col("number") - 1), f.col("found")
    return (
        given.join(asked, ["trial", "key", "number"], "left")
        .join(f.broadcast(trials), "trial")
        .select(
            *comparison(
                "reads",
                anomaly=f.when(found < expected, f.lit("stale-read")).when(
                    (found > expected) & (fact("exactly_once") == 1), f.lit("dirty-read")
                ),
                partition=f.col("partition"),
                key=f.col("key"),
                place=text_of_place("output"),
                expected=expected.cast("string"),
                observed=found.cast("string"),
            )
        )
    )
