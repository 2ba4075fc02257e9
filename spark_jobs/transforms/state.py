"""The promise `state`: after a restart a store holds what its changelog held as committed."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from spark_jobs.transforms.comparisons import comparison


def compare_state(records: DataFrame, trials: DataFrame) -> DataFrame:
    """One comparison for each key that a store held after the restart, or its changelog as committed at the kill.

    A store was looked at if the trial has the fact `<store>_end`: where its changelog ended at the kill; what it held
    is in the role `<store>-contents`. A key with a tombstone, and not in the store, is not compared.
    Out: as the table `comparisons`.
    """
    ends = trials.select("trial", f.explode("facts").alias("fact", "end")).where(f.col("fact").endswith("_end"))
    stores = ends.select("trial", f.regexp_replace("fact", "_end$", "").alias("store"), "end")
    placed = records.select(
        "trial",
        f.regexp_extract("role", "^(.*)-(changelog|contents)$", 1).alias("store"),
        f.col("role").endswith("-contents").alias("held"),
        "offset",
        "key",
        "value",
    ).join(f.broadcast(stores), ["trial", "store"])
    held = f.col("held")
    value = {
        side: f.max_by("value", f.when(of, f.col("offset"))) for side, of in (("expected", ~held), ("observed", held))
    }
    return (
        placed.where(held | (f.col("offset") < f.col("end")))
        .groupBy("trial", "store", "key")
        .agg(
            value["expected"].alias("expected"),
            value["observed"].alias("observed"),
            f.max(f.when(~held, f.col("offset"))).alias("changelog_offset"),
            f.max(f.when(held, f.col("offset"))).alias("entry"),
        )
        .where(f.col("expected").isNotNull() | f.col("observed").isNotNull())
        .select(
            *comparison(
                "state",
                anomaly=f.when(f.col("observed").isNull(), f.lit("lost-state")).when(
                    ~f.col("observed").eqNullSafe(f.col("expected")), f.lit("uncommitted-state")
                ),
                partition=f.lit(0),
                key=f.col("key"),
                place=f.when(
                    f.col("changelog_offset").isNotNull(),
                    f.format_string("%s-changelog/0@%d", "store", "changelog_offset"),
                ).otherwise(f.format_string("%s-contents/0@%d", "store", "entry")),
                expected=_text("expected"),
                observed=_text("observed"),
            )
        )
    )


def _text(name: str) -> Column:
    return f.coalesce(f.col(name).cast("string"), f.lit("nothing"))
