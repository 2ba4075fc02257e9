"""The promise `state`, by Spark: after a restart a store holds what its changelog held as committed."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_jobs.transforms.comparisons import comparison, value_text


def compare_state(records: DataFrame, trials: DataFrame) -> DataFrame:
    """One comparison for each key that a store held after the restart, or its changelog as committed at the kill.

    A store was looked at if the trial has the fact `<store>_end`: where its changelog ended at the kill; what it held
    is in the role `<store>-contents`. A key with a tombstone, and not in the store, is not compared.
    Out: as the table `comparisons`.
    """
    placed = records.join(f.broadcast(store_roles(trials)), ["trial", "role"])
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
                expected=value_text(f.col("expected")),
                observed=value_text(f.col("observed")),
            )
        )
    )


def store_roles(trials: DataFrame) -> DataFrame:
    """The roles in which a store appears: its changelog, and what it held after the restart.

    Out: trial, store STRING, end LONG (of the changelog at the kill), role STRING, held BOOLEAN.
    """
    ends = trials.select("trial", f.explode("facts").alias("fact", "end")).where(f.col("fact").endswith("_end"))
    stores = ends.select("trial", f.regexp_replace("fact", "_end$", "").alias("store"), "end")
    sides = [
        stores.select("*", f.concat("store", f.lit(suffix)).alias("role"), f.lit(held).alias("held"))
        for suffix, held in (("-changelog", False), ("-contents", True))
    ]
    return sides[0].unionByName(sides[1])
