"""What joins give, as a function of the input's order."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_jobs.transforms.comparisons import fact

GLOBAL_JOIN, FOREIGN_KEY_JOIN = "global-join", "foreign-key-join"


def with_entries(records: DataFrame, trials: DataFrame) -> DataFrame:
    """Add to the input records of the topology `global-join` what must come out for them: `value << 32 | entry`.

    An entry of the table has a value below 0, and its own number comes out with the value 0; any other record comes
    out with the number of the last entry of the key before its value, or with 0. The processor of a global store adds
    the fact `added` to an entry.

    In: trials with `check`, `facts`. Out: records with gives LONG.
    """
    value, added = f.col("value"), f.coalesce(fact("added"), f.lit(0))
    entries = (
        records.where((f.col("role") == "input") & (value < 0))
        .join(f.broadcast(trials.where(f.col("check") == GLOBAL_JOIN).select("trial", added.alias("added"))), "trial")
        .groupBy("trial", (f.col("key").cast("long") + 1).alias("value"))
        .agg(f.max_by(f.col("added") - value, "offset").alias("entry"))
    )
    return (
        records.join(f.broadcast(entries), ["trial", "value"], "left")
        .withColumn(
            "gives",
            f.when(value < 0, -value).otherwise(f.shiftleft(value, 32) + f.coalesce("entry", f.lit(0).cast("long"))),
        )
        .drop("entry")
    )


def by_foreign_key(records: DataFrame, trials: DataFrame) -> DataFrame:
    """The records, with the input of the topology `foreign-key-join` as the table that its results must make.

    Of this input, only the last record of each key of the left table stays, with its result `left << 32 | right` and
    the later of the two timestamps; if there is no right record, the result is null, or in a left join (fact `join`)
    the left one alone. Records of the right table have values below 0; one of the left table asks for the key before
    its value, or for none if its value is 0.

    In: records with gives; trials with `check`, `facts`. Out: as the records.
    """
    own = f.broadcast(
        trials.where(f.col("check") == FOREIGN_KEY_JOIN).select(
            "trial", f.lit("input").alias("role"), (f.coalesce(fact("join"), f.lit(0)) > 0).alias("outer")
        )
    )
    others = records.join(own, ["trial", "role"], "left_anti")
    rest = [name for name in records.columns if name not in ("trial", "role", "key")]
    last = (
        records.join(own, ["trial", "role"])
        .groupBy("trial", "role", "key", "outer")
        .agg(*(f.max_by(name, "offset").alias(name) for name in rest))
    )
    right = last.where("value < 0").select(
        "trial",
        (f.col("key").cast("long") + 1).alias("value"),
        (-f.col("value")).alias("other"),
        f.col("timestamp").alias("changed"),
    )
    left = last.where("value >= 0").join(right, ["trial", "value"], "left")
    joined = left.withColumns(
        {
            "gives": f.when(
                f.col("other").isNotNull() | f.col("outer"),
                f.shiftleft("value", 32) + f.coalesce("other", f.lit(0)),
            ),
            "timestamp": f.greatest("timestamp", "changed"),
        }
    )
    return others.unionByName(joined.select(records.columns))
