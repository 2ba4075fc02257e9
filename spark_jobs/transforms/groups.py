"""What the groups of a table add up to."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_jobs.transforms.places import place

GROUPED_TABLE = "grouped-table"
GROUPS = 100


def by_group(records: DataFrame, trials: DataFrame) -> DataFrame:
    """The records, with the input of the topology `grouped-table` as the table of sums that its results must make.

    Of this input the last record of each group stays, under the group instead of its key, which is the key's remainder
    by 100. It gives the sum of the last values of the group's keys, with the latest timestamp of all its records.

    In: records with gives; trials with `check`. Out: as the records.
    """
    own = f.broadcast(trials.where(f.col("check") == GROUPED_TABLE).select("trial", f.lit("input").alias("role")))
    rest = [name for name in records.columns if name not in ("trial", "role", "key", "gives", "timestamp")]
    last = (
        records.join(own, ["trial", "role"])
        .groupBy("trial", "role", "key")
        .agg(*(f.max_by(name, "offset").alias(name) for name in rest), f.max("timestamp").alias("timestamp"))
    )
    sums = (
        last.withColumn("key", f.col("key") % GROUPS)
        .groupBy("trial", "role", "key")
        .agg(
            f.sum("value").alias("gives"),
            f.max("timestamp").alias("timestamp"),
            *(f.max_by(name, place()).alias(name) for name in rest),
        )
    )
    return records.join(own, ["trial", "role"], "left_anti").unionByName(sums.select(records.columns))
