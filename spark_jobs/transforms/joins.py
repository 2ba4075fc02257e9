"""What joins give, as a function of the input's order."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

GLOBAL_JOIN = "global-join"


def with_entries(records: DataFrame, trials: DataFrame) -> DataFrame:
    """The records with what those of the input of the topology `global-join` come out with: `value << 32 | entry`.

    An entry of the table has a value below 0, and its own number comes out with the value 0; another record comes out
    with the number of the last entry of the key before its value, or with 0.

    In: trials with `check`. Out: records with gives LONG.
    """
    value = f.col("value")
    entries = (
        records.where((f.col("role") == "input") & (value < 0))
        .join(f.broadcast(trials.where(f.col("check") == GLOBAL_JOIN).select("trial")), "trial", "left_semi")
        .groupBy("trial", (f.col("key") + 1).cast("long").alias("value"))
        .agg(f.max_by(-value, "offset").alias("entry"))
    )
    return (
        records.join(f.broadcast(entries), ["trial", "value"], "left")
        .withColumn(
            "gives",
            f.when(value < 0, -value).otherwise(f.shiftleft(value, 32) + f.coalesce("entry", f.lit(0).cast("long"))),
        )
        .drop("entry")
    )
