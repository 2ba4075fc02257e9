"""The promise `punctuations`, by Spark: a punctuator releases each record of a buffer once, when it is due."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from spark_jobs.transforms.comparisons import comparison, fact, has_ended, records_text, value_text
from spark_jobs.transforms.places import partition_of, place, place_text

WAITED = 2**32 - 1  # the lower half of an output value: ms from the time of a record to that of its punctuation
SO_FAR = (Window.unboundedPreceding, Window.currentRow)
EARLIER = (Window.unboundedPreceding, -1)


def compare_punctuations(records: DataFrame, trials: DataFrame) -> DataFrame:
    """One comparison for each record, with how it was emitted and the first breach of it, and one for each that was
    emitted and is still held.

    Out: as the table `comparisons`.
    """
    trials = trials.where(fact("clock").isNotNull())  # else the drive failed at once: nothing is known of its clock
    stated = f.broadcast(
        trials.select(
            "trial",
            (fact("clock") == 0).alias("by_stream_time"),
            fact("interval").alias("interval"),
            has_ended().alias("ended"),
        )
    )
    inputs = time_records(records, stated)
    expected = due(inputs)
    return find_released(records, inputs, expected).unionByName(find_left(records, expected))


def time_records(records: DataFrame, stated: DataFrame) -> DataFrame:
    """Each record of the input, with the time that its task then has.

    Out: as the records, with what is stated; made, now (the time of the task), due LONG (ms).
    """
    so_far = Window.partitionBy("trial", "partition").orderBy("offset").rowsBetween(*SO_FAR)
    made = f.unix_millis("timestamp")
    return (
        records.where(f.col("role") == "input")
        .join(stated, "trial")
        .withColumns({"made": made, "now": f.max(made).over(so_far), "due": f.max(made + f.col("value")).over(so_far)})
    )


def due(inputs: DataFrame) -> DataFrame:
    """Which record is due when, and whether a punctuation must have come since.

    Out: trial, key, source (its place), made, due LONG (ms), by_stream_time, is_over BOOLEAN.
    """
    last = f.max("now").over(Window.partitionBy("trial", "partition"))
    tasks = (
        inputs.withColumn("multiple", last - last % f.col("interval"))
        .where("by_stream_time")
        .groupBy("trial", "partition")
        .agg(f.min(f.when(f.col("now") >= f.col("multiple"), f.col("now"))).alias("over"))
    )
    return inputs.join(tasks, ["trial", "partition"], "left").select(
        "trial",
        "key",
        place().alias("source"),
        "made",
        "due",
        "by_stream_time",
        f.coalesce(f.col("due") <= f.col("over"), f.col("ended")).alias("is_over"),
    )


def find_released(records: DataFrame, inputs: DataFrame, expected: DataFrame) -> DataFrame:
    """How each record was emitted."""
    outputs = records.where(f.col("role") == "output").select("trial", "key", place().alias("place"), "value")
    both = outputs.join(expected, ["trial", "key"], "full")
    at = f.col("made") + f.col("value").bitwiseAND(f.lit(WAITED))
    home = partition_of(f.col("place")) == partition_of(f.col("source"))
    before = Window.partitionBy("trial", partition_of(f.col("place"))).orderBy("place").rowsBetween(*EARLIER)
    of_key = Window.partitionBy("trial", "key")
    times = inputs.select("trial", f.col("partition").alias("of"), f.col("now").alias("at")).distinct()
    dated = both.withColumns({"at": at, "home": home, "of": partition_of(f.col("place"))})
    dated_releases = dated.join(times.withColumn("had", f.lit(True)), ["trial", "of", "at"], "left").withColumns(
        {
            "before": f.max(f.when(f.col("home"), f.col("at"))).over(before),
            "number": f.count("place").over(of_key),
            "last": f.max("place").over(of_key),
        }
    )
    one = dated_releases.where(f.col("last").isNull() | (f.col("place") == f.col("last")))
    return one.select(*_columns())


def _columns() -> list[Column]:
    at, due_, number, before = (f.col(name) for name in ("at", "due", "number", "before"))
    by_stream_time = f.col("home") & f.col("by_stream_time")
    strange = by_stream_time & f.col("had").isNull()  # its task never had that time
    late = by_stream_time & (due_ <= before) & (before < at)
    which = (
        f.when(f.col("source").isNull(), f.lit("unexpected-record"))
        .when(number == 0, f.when(f.col("is_over"), f.lit("unreleased")))
        .when(number > 1, f.lit("duplicate-output"))
        .when(at < due_, f.lit("early-release"))
        .when(strange, f.lit("early-release"))
        .when(late, f.lit("late-release"))
    )
    expected = (
        f.when(f.col("source").isNull(), f.lit("nothing"))
        .when((number == 0) & ~f.col("is_over"), f.format_string("nothing before %d", due_))
        .when(number != 1, f.lit("1 record"))
        .when(at < due_, f.format_string("at %d or later", due_))
        .when(strange, f.lit("at a time of its task"))
        .when(late, f.format_string("at %d, as others", before))
        .otherwise(f.format_string("at %d", at))
    )
    observed = (
        f.when((number == 0) & ~f.col("is_over"), f.lit("nothing"))
        .when(f.col("source").isNull() | (number != 1), records_text(number))
        .otherwise(f.format_string("at %d", at))
    )
    where = f.coalesce("place", "source")
    return comparison(
        "punctuations",
        anomaly=which,
        partition=partition_of(where),
        key=f.col("key"),
        place=f.when(number == 0, place_text("input", where)).otherwise(place_text("output", where)),
        expected=expected,
        observed=observed,
    )


def find_left(records: DataFrame, expected: DataFrame) -> DataFrame:
    """The records in a buffer at the end, though they had been due and were emitted."""
    kept = (
        records.where(f.col("role") == "buffer-changelog")
        .groupBy("trial", "partition", "key")
        .agg(f.max("offset").alias("offset"), f.max_by("value", "offset").alias("value"))
        .where(f.col("value").isNotNull())
        .withColumn("place", place())
    )
    over = expected.where("is_over").select("trial", "key", partition_of(f.col("source")).alias("partition"))
    came_out = records.where(f.col("role") == "output")
    there = kept.join(over, ["trial", "key", "partition"]).join(came_out, ["trial", "key"], "left_semi")
    return there.select(
        *comparison(
            "punctuations",
            anomaly=f.lit("unreleased"),
            partition=f.col("partition"),
            key=f.col("key"),
            place=place_text("buffer-changelog", f.col("place")),
            expected=f.lit("nothing"),
            observed=value_text(f.col("value")),
            comparisons=f.lit(0),
        )
    )
