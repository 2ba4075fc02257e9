"""The table `comparisons`: what a promise expects at one place, and what was observed there."""

from typing import Any, cast

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from spark_jobs import tables

COMPARISONS = tables.number_trials("comparisons")


def in_memory(spark: SparkSession, rows: list[dict[str, Any]], schema: str) -> DataFrame:
    """A frame of a few rows from the driver. From a plain list Spark would make a job wherever the frame is used."""
    table: Any = arrow_table(rows, schema)  # pyspark's annotations do not know it
    return spark.createDataFrame(table, struct(schema))


def arrow_table(rows: list[dict[str, Any]], schema: str) -> pa.Table:
    """The columns of a schema, of rows that may have more of them."""
    return pa.Table.from_pylist(rows, to_arrow_schema(struct(schema)))


def struct(schema: str) -> StructType:
    """The type of rows with these columns."""
    return cast("StructType", StructType.fromDDL(schema))


def comparison(
    promise: str | Column,
    *,
    anomaly: Column,
    partition: Column,
    key: Column,
    place: Column,
    expected: Column,
    observed: Column,
    comparisons: Column | None = None,
) -> list[Column]:
    """The columns of the table, in its order; `comparisons`: for how many it stands, if not for one."""
    return [
        f.col("trial"),
        (f.lit(promise) if isinstance(promise, str) else promise).alias("promise"),
        anomaly.cast("string").alias("anomaly"),
        partition.cast("int").alias("partition"),
        key.cast("int").alias("key"),
        place.alias("place"),
        expected.alias("expected"),
        observed.alias("observed"),
        (f.lit(1) if comparisons is None else comparisons).cast("long").alias("comparisons"),
    ]


def fingerprint(of_record: Column) -> Column:
    """An aggregate that is equal for two sets of records only if (but for one in 2^62) their hashes, LONG, are."""
    return f.struct(
        f.count("*").alias("records"),
        f.sum(of_record.bitwiseAND(f.lit(2**31 - 1))).alias("low"),  # of these sums neither can overflow
        f.sum(f.shiftrightunsigned(of_record, 33)).alias("high"),
    )


def comparison_findings(comparisons: DataFrame) -> DataFrame:
    """The comparisons that show an anomaly, as the table `findings`."""
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


def has_ended() -> Column:
    """Whether the drive of the trial came to its end; of one that failed some things are still due."""
    return f.coalesce(fact("ended"), f.lit(1)) == 1


def records_text(number: Column) -> Column:
    """A number of records as a column of text."""
    return f.when(number == 1, f.lit("1 record")).otherwise(f.format_string("%d records", number))


def value_text(value: Column) -> Column:
    """A store's value as a column of text."""
    return f.coalesce(value.cast("string"), f.lit("nothing"))
