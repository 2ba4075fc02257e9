"""The promise `transactions`, by Spark: each transaction of a changelog is committed."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from spark_jobs.transforms.comparisons import comparison, records_text
from spark_jobs.transforms.places import text_of_place


def compare_transactions(records: DataFrame, committed: str, written: str) -> DataFrame:
    """One comparison for each transaction of a topic that one producer at a time writes to.

    The role `committed` holds what was committed to the topic, the role `written` all that was written to it. A
    transaction ends with a marker, which takes up an offset, so records with consecutive offsets are one transaction.
    Out: as the table `comparisons`.
    """
    in_order = Window.partitionBy("trial", "partition").orderBy("offset")
    places = records.where(f.col("role") == committed).select("trial", "partition", "offset", f.lit(True).alias("kept"))
    transactions = (
        records.where(f.col("role") == written)
        .select("trial", "partition", "offset", (f.col("offset") - f.row_number().over(in_order)).alias("transaction"))
        .join(places, ["trial", "partition", "offset"], "left")
        .groupBy("trial", "partition", "transaction")
        .agg(
            f.min("offset").alias("first"),
            f.count("*").alias("size"),
            f.coalesce(f.min_by("kept", "offset"), f.lit(False)).alias("kept"),
        )
    )
    outcome = f.when(f.col("kept"), f.lit("committed")).otherwise(f.lit("aborted"))
    return transactions.select(
        *comparison(
            "transactions",
            anomaly=f.when(~f.col("kept"), f.lit("aborted-by-throttle")),
            partition=f.col("partition"),
            key=f.lit(None),
            place=text_of_place(committed, offset="first"),
            expected=f.lit("committed"),
            observed=f.concat_ws(", ", outcome, records_text(f.col("size"))),
        )
    )
