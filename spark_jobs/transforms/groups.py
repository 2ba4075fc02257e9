"""The sums of the groups of a table, by Spark, from the input alone."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_jobs.transforms.places import place

GROUPED_TABLE = "grouped-table"
GROUPS = 100


def by_group(records: DataFrame) -> DataFrame:
    """The input of the topology `grouped-table` as the table of sums that its results must make.

    The last record of each group stays, under the group instead of its key, which is the key's remainder
    by 100. It gives the sum of the last values of the group's keys, with the latest timestamp of all its records.

    In: input records with gives. Out: as the records.
    """
    rest = [name for name in records.columns if name not in ("trial", "role", "key", "gives", "timestamp")]
    last = records.groupBy("trial", "role", "key").agg(
        *(f.max_by(name, "offset").alias(name) for name in rest), f.max("timestamp").alias("timestamp")
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
    return sums.select(records.columns)
