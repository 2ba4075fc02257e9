"""The promise `time-order`, by Spark: each record of a stream finds the entry of a table at its own time."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from spark_jobs.transforms.comparisons import comparison, fact
from spark_jobs.transforms.places import partition_of, place, place_text

NONE = 0  # instead of an entry


def compare_time_order(records: DataFrame, trials: DataFrame) -> DataFrame:
    """One comparison for each record of the stream, and for each result of none. Out: as the table `comparisons`."""
    lost, unasked = f.col("there").isNull(), f.col("source").isNull()
    known = trials.select("trial", (f.coalesce(fact("exactly_once"), f.lit(1)) == 1).alias("once"))
    both = (
        due(records)
        .join(results(records), ["trial", "key", "number"], "full")
        .join(f.broadcast(known), "trial")
        .withColumn("home", partition_of(f.col("source")))
        .withColumn("behind", _latest_before())
    )
    breach = (
        f.when(lost, f.lit("lost-record"))
        .when(unasked, f.lit("unexpected-record"))
        .when(partition_of(f.col("first")) != f.col("home"), f.lit("wrong-partition"))
        .when(f.col("made") != f.col("at"), f.lit("wrong-timestamp"))
        .when(
            f.col("found") != f.col("entry"),
            f.when(f.array_contains("ever", f.col("found")), f.lit("wrong-time")).otherwise(f.lit("wrong-value")),
        )
        .when(f.col("once") & (f.col("there") > 1), f.lit("duplicate-output"))
        .when(f.col("first") < f.col("behind"), f.lit("wrong-order"))
    )
    judged = both.withColumn("anomaly", breach)
    is_ = {name: f.col("anomaly") == name for name in ("wrong-partition", "wrong-timestamp", "wrong-order")}
    again = f.col("anomaly") == "duplicate-output"
    where = (
        f.when(lost, f.col("source"))
        .when(unasked | (f.col("anomaly") == "duplicate-output"), f.col("last"))
        .otherwise(f.col("first"))
    )
    return judged.select(
        *comparison(
            "time-order",
            anomaly=f.col("anomaly"),
            partition=partition_of(where),
            key=f.col("key"),
            place=f.when(lost, place_text("input", where)).otherwise(place_text("output", where)),
            expected=f.when(unasked, f.lit("nothing"))
            .when(is_["wrong-partition"], f.format_string("partition %d", "home"))
            .when(is_["wrong-timestamp"], f.col("at").cast("string"))
            .when(again, f.lit("1 record"))
            .when(is_["wrong-order"], f.concat(f.lit("behind "), place_text("output", f.col("behind"))))
            .otherwise(_text(f.col("entry"))),
            observed=f.when(lost, f.lit("nothing"))
            .when(is_["wrong-partition"], f.format_string("partition %d", partition_of(f.col("first"))))
            .when(is_["wrong-timestamp"], f.col("made").cast("string"))
            .when(again, f.format_string("%d records", "there"))
            .when(is_["wrong-order"], f.concat(f.lit("at "), place_text("output", f.col("first"))))
            .when(unasked, _text(f.col("ended_with")))
            .otherwise(_text(f.col("found"))),
        )
    )


def due(records: DataFrame) -> DataFrame:
    """The entry that each record of the stream must find.

    Out: trial, key, number INT (its value), at LONG (ms), source LONG (its place), entry LONG (0 for none), ever
    ARRAY<LONG> (all that the key ever has, and 0).
    """
    timed = records.where(f.col("role").isin("input", "entries")).withColumn("at", f.unix_millis("timestamp"))
    before = (
        Window.partitionBy("trial", "partition", "key")
        .orderBy("at")
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    is_entry = f.col("role") == "entries"
    held = timed.withColumns(
        {
            "source": place(),
            "number": f.col("value"),
            "entry": f.coalesce(f.last(f.when(is_entry, f.col("value")), ignorenulls=True).over(before), f.lit(NONE)),
            "ever": f.array_append(
                f.collect_set(f.when(is_entry, f.col("value"))).over(Window.partitionBy("trial", "partition", "key")),
                f.lit(NONE).cast("long"),
            ),
        }
    )
    return held.where(~is_entry).select("trial", "key", "number", "at", "source", "entry", "ever")


def results(records: DataFrame) -> DataFrame:
    """The output, by the record of the stream that it names.

    Out: trial, key, number LONG, there LONG, first and last LONG (places), made LONG (ms), found and ended_with LONG
    (the entries of these two).
    """
    entry = f.col("value").bitwiseAND(f.lit(2**32 - 1))
    return (
        records.where(f.col("role") == "output")
        .groupBy("trial", "key", f.shiftright("value", 32).alias("number"))
        .agg(
            f.count("*").alias("there"),
            f.min(place()).alias("first"),
            f.max(place()).alias("last"),
            f.min_by(f.unix_millis("timestamp"), place()).alias("made"),
            f.min_by(entry, place()).alias("found"),
            f.max_by(entry, place()).alias("ended_with"),
        )
    )


def _latest_before() -> Column:
    """The last place of the output that the records before it in its partition have, in that partition."""
    before = Window.partitionBy("trial", "home").orderBy("source").rowsBetween(Window.unboundedPreceding, -1)
    at_home = partition_of(f.col("first")) == f.col("home")
    return f.max(f.when(at_home, f.col("first"))).over(before)


def _text(entry: Column) -> Column:
    name = f.when(entry == NONE, f.lit("nothing")).otherwise(entry.cast("string"))
    return f.concat_ws(" with ", f.col("number").cast("string"), name)
