"""The results of joins, by Spark, as a function of the input's order."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from spark_jobs.transforms.comparisons import fact
from spark_jobs.transforms.places import place

AS_OF_JOIN, GLOBAL_JOIN, FOREIGN_KEY_JOIN = "as-of-join", "global-join", "foreign-key-join"
TABLE_JOIN = "table-join"
LEFT, OUTER = 1, 2  # values of the fact `join`; 0 is inner
FIRST_TOTAL = 1_000_000  # the key of the first total in the output
GROUPS = 5_000  # a number of keys that are as far apart are a group


def with_entries(records: DataFrame, trials: DataFrame) -> DataFrame:
    """The input of the topology `global-join` with what must be emitted for each record: `value << 32 | entry`.

    An entry of the table has a value below 0, and its own number is emitted with the value 0; any other record is
    emitted with the number of the last entry of the key before its value, or with 0. The processor of a global store
    adds the fact `added` to an entry.

    In: input records with gives; trials with `facts`. Out: as the records.
    """
    value, added = f.col("value"), f.coalesce(fact("added"), f.lit(0))
    entries = (
        records.where(value < 0)
        .join(f.broadcast(trials.select("trial", added.alias("added"))), "trial")
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
    """The input of the topology `foreign-key-join` as the table that its results must make.

    Only the last record of each key of the left table stays, with its result `left << 32 | right` and
    the later of the two timestamps; if there is no right record, the result is null, or in a left join (fact `join`)
    the left one alone. Records of the right table have values below 0. Of one of the left table the value is its second
    attribute, by millions, and the number after the key that it asks for, 0 for none; 999,999 says that it is deleted.

    In: input records with gives; trials with `facts`. Out: as the records.
    """
    own = f.broadcast(trials.select("trial", (f.coalesce(fact("join"), f.lit(0)) > 0).alias("outer")))
    rest = [name for name in records.columns if name not in ("trial", "role", "key")]
    last = (
        records.join(own, "trial")
        .groupBy("trial", "role", "key", "outer")
        .agg(*(f.max_by(name, "offset").alias(name) for name in rest))
    )
    right = last.where("value < 0").select(
        "trial",
        (f.col("key").cast("long") + 1).alias("asked"),
        (-f.col("value")).alias("other"),
        f.col("timestamp").alias("changed"),
    )
    is_there = f.col("value") != 999_999
    asked = f.when(is_there, f.nullif(f.col("value") % 1_000_000, f.lit(0)))
    left = last.where("value >= 0").withColumn("asked", asked).join(right, ["trial", "asked"], "left")
    joined = left.withColumns(
        {
            "gives": f.when(
                f.col("other").isNotNull() | (f.col("outer") & is_there),
                f.shiftleft("value", 32) + f.coalesce("other", f.lit(0)),
            ),
            "timestamp": f.greatest("timestamp", "changed"),
        }
    )
    return joined.select(records.columns)


def as_of(records: DataFrame, trials: DataFrame) -> DataFrame:
    """The input of the topology `as-of-join` with what must be emitted for each record.

    A version has a value below 0, a deletion 0, and its own number is emitted with the value 0. Any other record is
    emitted with the version of its key that began last, and not after the record's time, of those before it in its
    partition: `value << 32 | version`, 0 for none. Older than the youngest version before it by more than the fact
    `retention` a version does not count, and a record gets only a version after which none begins. Where that fact is 0
    the version that was put last is emitted.

    In: input records with gives; trials with `facts`. Out: as the records.
    """
    own = f.broadcast(trials.select("trial", f.coalesce(fact("retention"), f.lit(0)).alias("retention")))
    before = Window.partitionBy("trial", "partition").orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
    inputs = (
        records.join(own, "trial")
        .withColumns({"at": f.when(f.col("retention") > 0, f.unix_millis("timestamp")).otherwise(0), "source": place()})
        .withColumn("youngest", f.max(f.when(f.col("value") <= 0, f.col("at"))).over(before))
        .withColumn("is_old", f.coalesce(f.col("at") < f.col("youngest") - f.col("retention"), f.lit(False)))
    )
    changes = inputs.where("value <= 0")
    began = f.struct("from", "put")
    versions = changes.where(~f.col("is_old")).select(
        "trial",
        "partition",
        "key",
        f.col("at").alias("from"),
        f.col("source").alias("put"),
        (-f.col("value")).alias("of"),
    )
    asking = inputs.where("value > 0").join(versions, ["trial", "partition", "key"], "left")
    there = f.when(f.col("put") < f.col("source"), began)
    valid = f.when((f.col("put") < f.col("source")) & (f.col("from") <= f.col("at")), began)
    rest = [name for name in records.columns if name not in ("trial", "partition", "key", "gives")]
    found = asking.groupBy("trial", "partition", "key", "source").agg(
        *(f.first(name).alias(name) for name in (*rest, "is_old")),
        f.max(there).alias("last"),
        f.max(valid).alias("valid"),
        f.max_by("of", valid).alias("of"),
    )
    is_there = f.col("valid").isNotNull() & (~f.col("is_old") | (f.col("valid") == f.col("last")))
    given = found.withColumn(
        "gives", f.shiftleft("value", 32) + f.when(is_there, f.col("of")).otherwise(f.lit(0).cast("long"))
    )
    put = changes.withColumn("gives", -f.col("value"))
    return put.select(records.columns).unionByName(given.select(records.columns))


def by_key(records: DataFrame, trials: DataFrame) -> DataFrame:
    """The input of the topology `table-join` as the table that its output must make.

    The last record of each key stays, with the result of the join as its last values give it; the value 1
    deletes in the left table, -1 in the right one. For each total, the last digit of a key, there is one record more,
    with the latest timestamp of the records that changed a result. Its value has the last three digits of the sum of
    each group of keys with the same last digits, and that sum has both sides of all results.

    In: input records with gives; trials with `facts`. Out: as the records; gives is null where there is no result.
    """
    own = f.broadcast(trials.select("trial", f.coalesce(fact("join"), f.lit(0)).alias("join")))
    so_far = Window.partitionBy("trial", "key").orderBy("partition", "offset")
    value = f.col("value")

    def newest(of: str) -> Column:
        """The value of one table until now; 0 if there is none, or it is deleted."""
        held = f.last(f.when(f.expr(of), f.abs(value)), ignorenulls=True).over(so_far)
        return f.when(held == 1, f.lit(0)).otherwise(f.coalesce(held, f.lit(0)))

    left, right = f.col("of_left"), f.col("of_right")
    enough = (
        f.when(f.col("join") == OUTER, (left > 0) | (right > 0))
        .when(f.col("join") == LEFT, left > 0)
        .otherwise((left > 0) & (right > 0))
    )
    changes = (
        records.join(own, "trial")
        .withColumns({"of_left": newest("value > 0"), "of_right": newest("value < 0")})
        .withColumn("gives", f.when(enough, f.shiftleft(left.cast("long"), 32) + right))
        .withColumn("before", f.lag("gives").over(so_far))
        .withColumn("added", f.when(enough, left + right))
    )
    of_key = ["trial", "role", "key"]
    rest = [name for name in records.columns if name not in of_key]
    last = changes.groupBy(*of_key).agg(*(f.max_by(name, place()).alias(name) for name in (*rest, "added")))
    total = (f.col("key") % 10 + FIRST_TOTAL).alias("key")
    changed = changes.where("gives is not null or before is not null").select("trial", "role", total, *rest)
    groups = last.groupBy("trial", "role", (f.col("key") % GROUPS).alias("key")).agg(f.sum("added").alias("added"))
    sums = groups.groupBy("trial", "role", total).agg(f.coalesce(f.sum(f.expr("added % 1000")), f.lit(0)).alias("sum"))
    totals = (
        changed.groupBy(*of_key)
        .agg(
            *(f.max_by(name, place()).alias(name) for name in rest if name not in ("gives", "timestamp")),
            f.max("timestamp").alias("timestamp"),
        )
        .join(sums, of_key)
        .withColumn("gives", f.nullif("sum", f.lit(0)))
    )
    return last.select(records.columns).unionByName(totals.select(records.columns))
