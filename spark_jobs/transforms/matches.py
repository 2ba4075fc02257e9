"""The promise `matches`, by Spark: what a join of two streams within a window of time gives."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from spark_jobs.transforms.comparisons import comparison, fact, has_ended
from spark_jobs.transforms.places import partition_of, place, place_text

LEFT, OUTER = 1, 2  # values of the fact `join`; 0 is inner
RESULT = ("trial", "key", "value")


def compare_matches(records: DataFrame, trials: DataFrame) -> DataFrame:
    """One comparison for each result that the input gives, and for each that it does not.

    A record that comes too late, by more than the grace, may find its matches or not, and be emitted alone or not.
    Results are distinguished by their key and value: no two records of an input have the same. What comes again is a
    breach under exactly-once only. Out: as the table `comparisons`.
    """
    found = (
        records.where(f.col("role") == "output")
        .groupBy(*RESULT)
        .agg(
            f.count("*").alias("there"),
            f.min(place()).alias("first"),
            f.max(place()).alias("last"),
            f.min_by(f.unix_millis("timestamp"), place()).alias("made"),
        )
    )
    trials = trials.where(fact("join").isNotNull())  # else the drive failed at once: the join is unknown
    known = trials.select(
        "trial",
        (fact("exactly_once") == 1).alias("once"),
        # Records that wait alone are looked for once a second, so a drive that failed may owe some.
        has_ended().alias("is_over"),
    )
    lost, unasked = f.col("there").isNull(), f.col("source").isNull()
    alone = (_take_left(f.col("value")) == 0) | (_take_right(f.col("value")) == 0)
    both = find_given(records, trials).join(found, list(RESULT), "full").join(f.broadcast(known), "trial")
    both = both.where(~lost | (f.col("is_due") & (~alone | f.col("is_over"))))
    astray = partition_of(f.col("first")) != partition_of(f.col("source"))
    aged = ~f.col("made").eqNullSafe(f.col("at"))
    again = f.col("once") & (f.col("there") > 1)
    which = (
        f.when(lost, f.when(alone, f.lit("lost-alone")).otherwise(f.lit("lost-record")))
        .when(unasked, f.when(alone, f.lit("early-alone")).otherwise(f.lit("unexpected-record")))
        .when(astray, f.lit("wrong-partition"))
        .when(aged, f.lit("wrong-timestamp"))
        .when(again, f.lit("duplicate-output"))
    )
    where = (
        f.when(lost, f.col("source"))
        .when(unasked | (which == "duplicate-output"), f.col("last"))
        .otherwise(f.col("first"))
    )
    partition = f.format_string("partition %d", partition_of(f.col("source")))
    return both.withColumn("anomaly", which).select(
        *comparison(
            "matches",
            anomaly=f.col("anomaly"),
            partition=partition_of(where),
            key=f.col("key"),
            place=f.when(lost, place_text("input", where)).otherwise(place_text("output", where)),
            expected=f.when(unasked, f.lit("nothing"))
            .when(f.col("anomaly") == "wrong-partition", partition)
            .when(f.col("anomaly") == "wrong-timestamp", f.col("at").cast("string"))
            .when(f.col("anomaly") == "duplicate-output", f.lit("1 record"))
            .otherwise(_text(f.col("value"))),
            observed=f.when(lost, f.lit("nothing"))
            .when(f.col("anomaly") == "wrong-partition", f.format_string("partition %d", partition_of(f.col("first"))))
            .when(f.col("anomaly") == "wrong-timestamp", f.col("made").cast("string"))
            .when(f.col("anomaly") == "duplicate-output", f.format_string("%d records", "there"))
            .otherwise(_text(f.col("value"))),
        )
    )


def find_given(records: DataFrame, trials: DataFrame) -> DataFrame:
    """The results of the input: pairs within the window, and records that are alone when their window has closed.

    Out: trial, key, value LONG (`left << 32 | right`), at LONG (ms), source LONG (place of the younger record), is_due
    BOOLEAN (no record of it came too late, so that it must be there).
    """
    stated = trials.select(
        "trial",
        *(fact(name).alias(name) for name in ("window", "grace", "join")),
        f.coalesce(fact("before"), fact("window")).alias("before"),
    )
    of_task = ["trial", "partition"]
    so_far = Window.partitionBy(*of_task).orderBy("offset").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    inputs = (
        records.where(f.col("role") == "input")
        .join(f.broadcast(stated), "trial")
        .withColumns({"at": f.unix_millis("timestamp"), "source": place()})
        .withColumn("is_late", f.col("at") < f.max("at").over(so_far) - f.col("grace"))
    )
    side = ("at", "value", "source", "is_late")
    left = inputs.where("value > 0")
    right = inputs.where("value <= 0").withColumn("value", -f.col("value"))
    pairs = left.join(
        right.select(*of_task, "key", *(f.col(name).alias(f"other_{name}") for name in side)), [*of_task, "key"]
    ).where((f.col("other_at") - f.col("at")).between(-f.col("before"), f.col("window")))
    pairs = pairs.withColumn("is_due", ~(f.col("is_late") | f.col("other_is_late")))
    ends = inputs.groupBy(*of_task).agg(f.max("at").alias("end"))
    waiting = (
        left.where(f.col("join") >= LEFT)
        .withColumn("gives", f.shiftleft("value", 32))
        .unionByName(right.where(f.col("join") == OUTER).withColumn("gives", f.col("value")))
    )
    met = (
        pairs.select("trial", "source", "is_due")
        .unionByName(pairs.select("trial", f.col("other_source").alias("source"), "is_due"))
        .groupBy("trial", "source")
        .agg(f.max("is_due").alias("matched"))
    )
    alone = (
        waiting.join(met, ["trial", "source"], "left")
        .where(~f.coalesce("matched", f.lit(False)))
        .withColumn("is_due", f.col("matched").isNull() & ~f.col("is_late"))
        .join(f.broadcast(ends), of_task)
        .where(f.col("at") + f.col("window") + f.col("grace") < f.col("end"))
    )
    return pairs.select(
        "trial",
        "key",
        (f.shiftleft("value", 32) + f.col("other_value")).alias("value"),
        f.greatest("at", "other_at").alias("at"),
        f.greatest("source", "other_source").alias("source"),
        "is_due",
    ).unionByName(alone.select("trial", "key", f.col("gives").alias("value"), "at", "source", "is_due"))


def _take_left(value: Column) -> Column:
    return f.shiftright(value, 32)


def _take_right(value: Column) -> Column:
    return value.bitwiseAND(f.lit(2**32 - 1))


def _text(value: Column) -> Column:
    sides = _take_left(value), _take_right(value)
    numbers = [f.when(n == 0, f.lit("nothing")).otherwise(n.cast("string")) for n in sides]
    return f.concat_ws(" with ", *numbers)
