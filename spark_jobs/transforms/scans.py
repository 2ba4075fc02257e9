"""The promise `scans`, by Spark: a scan of a store finds what was put and not deleted."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from spark_jobs.transforms.comparisons import comparison, fact
from spark_jobs.transforms.places import partition_of, place, place_text

DELETE = 0  # value of the input


def compare_scans(records: DataFrame, trials: DataFrame) -> DataFrame:
    """One comparison for each request to delete a key, by what the following scan found, and for each unasked answer.

    Redelivered requests may be answered again, except under exactly-once. Out: as the table `comparisons`.
    """
    expected = requests(records, trials)
    answers = (
        records.where(f.col("role") == "output")
        .groupBy("trial", "key")
        .agg(
            f.count("*").alias("answers"),
            f.min(place()).alias("first"),
            f.max(place()).alias("last"),
            f.min_by("value", place()).alias("first_value"),
            f.max_by("value", place()).alias("last_value"),
        )
    )
    both = expected.join(answers, ["trial", "key"], "full").join(
        f.broadcast(trials.select("trial", (fact("exactly_once") == 1).alias("once"))), "trial"
    )
    unasked, unanswered = f.col("request").isNull(), f.col("answers").isNull()
    number, total = _number(f.col("first_value")), _sum(f.col("first_value"))
    wanted, wanted_total = f.col("number"), f.col("total")
    amiss = f.when(number < wanted, f.lit("missing-key")).when(
        (number != wanted) | (total != wanted_total), f.lit("ghost-key")
    )
    again = amiss.isNull() & f.col("once") & (f.col("answers") > 1)
    answer = _text(number, total)
    where = f.when(unasked | again, f.col("last")).otherwise(f.col("first"))
    return both.select(
        *comparison(
            "scans",
            anomaly=f.when(unasked, f.lit("unexpected-record"))
            .when(unanswered, f.lit("lost-record"))
            .when(again, f.lit("duplicate-output"))
            .otherwise(amiss),
            partition=partition_of(f.coalesce(where, f.col("request"))),
            key=f.col("key"),
            place=f.when(unanswered, place_text("input", f.col("request"))).otherwise(place_text("output", where)),
            expected=f.when(unasked, f.lit("nothing")).otherwise(_text(wanted, wanted_total)),
            observed=f.when(unanswered, f.lit("no answer"))
            .when(unasked, _text(_number(f.col("last_value")), _sum(f.col("last_value"))))
            .when(again, f.format_string("%d answers", "answers"))
            .otherwise(answer),
        )
    )


def requests(records: DataFrame, trials: DataFrame) -> DataFrame:
    """The result that the scan after each request must find. Each key is put once, and deleted once at most.

    Out: trial, key, request LONG (its place), number LONG and total LONG of the keys that are there.
    """
    inputs = records.where(f.col("role") == "input")
    deleted = f.col("value") == DELETE
    spans = inputs.groupBy("trial", "partition", f.col("key").alias("other")).agg(
        f.min(f.when(~deleted, f.col("offset"))).alias("put"), f.min(f.when(deleted, f.col("offset"))).alias("gone")
    )
    stated = trials.select("trial", fact("reach").alias("reach"), fact("all_every").alias("every"))
    asked = (
        inputs.where(deleted)
        .select("trial", "partition", "offset", "key", place().alias("request"))
        .join(f.broadcast(stated), "trial")
    )
    whole = f.col("key") % f.col("every") == 0
    wide = f.col("key").cast("long")  # the greatest key has a successor, too
    around = f.explode(f.sequence(wide - f.col("reach"), wide + f.col("reach")))
    near = asked.where(~whole).withColumn("other", around).join(spans, ["trial", "partition", "other"])
    everywhere = asked.where(whole).join(spans, ["trial", "partition"]).select(near.columns)
    found = (
        near.unionByName(everywhere)
        .where((f.col("put") < f.col("offset")) & (f.col("gone").isNull() | (f.col("gone") > f.col("offset"))))
        .groupBy("trial", "key")
        .agg(f.count("*").alias("number"), f.sum(f.col("other").cast("long")).alias("total"))
    )
    none = f.lit(0).cast("long")
    return asked.join(found, ["trial", "key"], "left").select(
        "trial", "key", "request", *(f.coalesce(name, none).alias(name) for name in ("number", "total"))
    )


def _number(value: Column) -> Column:
    return f.shiftright(value, 32)


def _sum(value: Column) -> Column:
    return value.bitwiseAND(f.lit(2**32 - 1))


def _text(number: Column, total: Column) -> Column:
    keys = f.when(number == 1, f.lit("1 key")).otherwise(f.format_string("%d keys", number))
    return f.concat(keys, f.lit(" with the sum "), total.cast("string"))
