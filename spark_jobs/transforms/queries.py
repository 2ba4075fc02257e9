"""The promise `queries`: the answer to an interactive query holds what it must, and nothing that it must not."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from spark_jobs.transforms.comparisons import comparison, has_ended
from spark_jobs.transforms.places import text_of_place

UNLIMITED = 2**63 - 1


def compare_queries(records: DataFrame, trials: DataFrame) -> DataFrame:
    """One comparison for each answer, with what it must hold at least and at most.

    Out: as the table `comparisons`.
    """
    answers = _answers(records)
    changelog = _values(records, "last-changelog")
    inputs = _values(records, "input")
    known = answers.join(_limits(answers, changelog), ["trial", "partition", "offset"]).join(
        _put(answers, inputs), ["trial", "partition", "offset"]
    )
    known = known.join(f.broadcast(trials.select("trial", has_ended().alias("ended"))), "trial")
    value, least = f.col("value"), f.greatest("floor_value", "read_value")
    anomaly = (
        f.when((value != 0) & ~f.col("put") & f.col("ended"), f.lit("unexplained-answer"))
        .when(value < least, f.lit("stale-answer"))
        .when((value > f.col("ceiling_value")) & (f.col("ceiling") < UNLIMITED) & f.col("ended"), f.lit("early-answer"))
    )
    expected = (
        f.when(anomaly == "unexplained-answer", f.lit("a value of the key"))
        .when(anomaly == "early-answer", f.format_string("%d or earlier", "ceiling_value"))
        .otherwise(f.format_string("%d or later", least))
    )
    return known.select(
        *comparison(
            "queries",
            anomaly=anomaly,
            partition=f.col("partition"),
            key=f.col("key"),
            place=text_of_place("answers"),
            expected=expected,
            observed=f.format_string("%d, %s", value, f.col("how")),
        )
    )


def _answers(records: DataFrame) -> DataFrame:
    """Out: trial, partition, offset, key, value, floor, ceiling, read LONG, how STRING."""
    numbers = {name: f.conv(_header(name), 16, 10).cast("long") for name in ("floor", "ceiling", "read")}
    return (
        records.where(f.col("role") == "answers")
        .withColumns({**numbers, "how": f.decode(f.unhex(_header("how")), "utf-8")})
        .select("trial", "partition", "offset", "key", "value", *numbers, "how")
    )


def _header(name: str) -> Column:
    return f.regexp_extract("headers", rf"(?:^| ){name}=([0-9a-f]*)", 1)


def _values(records: DataFrame, role: str) -> DataFrame:
    """Out: trial, key, at (offset), number LONG: the values of each key in a topic."""
    return records.where(f.col("role") == role).select(
        "trial", "key", f.col("offset").alias("at"), f.coalesce("value", f.lit(0)).cast("long").alias("number")
    )


def _before(limit: str) -> Column:
    """The greatest value before an offset; 0 if there is none."""
    return f.coalesce(f.max(f.when(f.col("at") < f.col(limit), f.col("number"))), f.lit(0)).alias(f"{limit}_value")


def _limits(answers: DataFrame, changelog: DataFrame) -> DataFrame:
    """Out: trial, partition, offset, floor_value, ceiling_value: by the changelog."""
    both = answers.join(changelog, ["trial", "key"], "left")
    return both.groupBy("trial", "partition", "offset").agg(_before("floor"), _before("ceiling"))


def _put(answers: DataFrame, inputs: DataFrame) -> DataFrame:
    """Out: trial, partition, offset, read_value, put BOOLEAN: whether the input has the value."""
    both = answers.join(inputs, ["trial", "key"], "left")
    has = f.coalesce(f.bool_or(f.col("number") == f.col("value")), f.lit(False)).alias("put")
    return both.groupBy("trial", "partition", "offset").agg(_before("read"), has)
