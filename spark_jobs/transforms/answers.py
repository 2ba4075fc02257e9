"""The promises `answers` and `published`, by Spark: a request to delete is answered once, as its deletion says."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from spark_jobs.transforms.comparisons import comparison, fact
from spark_jobs.transforms.places import partition_of, place, place_text, text_of_place

DELETE = 0  # value of the input
TRUE, FALSE = 1, 0  # values of the output


def requests(records: DataFrame) -> DataFrame:
    """The request to delete each key. Out: trial, key, request LONG (its place)."""
    return records.where((f.col("role") == "input") & (f.col("value") == DELETE)).select(
        "trial", "key", place().alias("request")
    )


def compare_answers(records: DataFrame) -> DataFrame:
    """One comparison for each key that was to be deleted, which must have one answer, true, or was answered unasked.

    Out: as the table `comparisons`.
    """
    answers = (
        records.where(f.col("role") == "output")
        .groupBy("trial", "key")
        .agg(f.sort_array(f.collect_list(f.struct(place().alias("place"), "value"))).alias("answers"))
    )
    given = f.coalesce("answers", f.array().cast("array<struct<place: bigint, value: bigint>>"))
    said = f.transform("given", lambda answer: f.when(answer["value"] == TRUE, f.lit("true")).otherwise(f.lit("false")))
    none = f.size("given") == 0
    last = f.when(~none, f.element_at("given", -1)["place"])
    where = f.coalesce(last, f.col("request"))
    return (
        requests(records)
        .join(answers, ["trial", "key"], "full")
        .withColumn("given", given)
        .select(
            *comparison(
                "answers",
                anomaly=f.when(none, f.lit("lost-record"))
                .when(f.col("request").isNull(), f.lit("unexpected-record"))
                .when(f.exists("given", lambda answer: answer["value"] == FALSE), f.lit("false-after-true"))
                .when(f.size("given") > 1, f.lit("duplicate-output")),
                partition=partition_of(where),
                key=f.col("key"),
                place=f.when(none, place_text("input", f.col("request"))).otherwise(place_text("output", last)),
                expected=f.when(f.col("request").isNull(), f.lit("nothing")).otherwise(f.lit("true")),
                observed=f.when(none, f.lit("nothing")).otherwise(f.array_join(said, ", ")),
            )
        )
    )


def compare_published(records: DataFrame, trials: DataFrame) -> DataFrame:
    """One comparison for each key that was to be deleted: its deletion and its answer were both published, or neither.

    What counts is the moment when the process was killed (facts `changelog_end` and `output_end`). Nothing is compared
    if the deletion comes after the answer by design (fact `downstream`), or if the drive failed before.

    Out: as the table `comparisons`.
    """
    stated = trials.where((fact("downstream") == 0) & fact("output_end").isNotNull()).select(
        "trial", fact("changelog_end").alias("changelog_end"), fact("output_end").alias("output_end")
    )
    before = records.join(f.broadcast(stated), "trial")
    deletion = (
        (f.col("role") == "records-changelog") & f.col("value").isNull() & (f.col("offset") < f.col("changelog_end"))
    )
    answer = (f.col("role") == "output") & (f.col("offset") < f.col("output_end"))
    published = (
        before.where(deletion | answer)
        .groupBy("trial", "key")
        .agg(
            f.min(f.when(deletion, f.col("offset"))).alias("deletion"),
            f.min(f.when(answer, f.col("offset"))).alias("answer"),
        )
    )
    has_deletion, has_answer = f.col("deletion").isNotNull(), f.col("answer").isNotNull()
    parted = has_deletion != has_answer
    return (
        requests(records)
        .join(f.broadcast(stated.select("trial")), "trial", "left_semi")
        .join(published, ["trial", "key"], "left")
        .withColumn("partition", partition_of(f.col("request")))
        .select(
            *comparison(
                "published",
                anomaly=f.when(parted, f.lit("changelog-output-mismatch")),
                partition=f.col("partition"),
                key=f.col("key"),
                place=place_text("input", f.col("request")),
                expected=f.when(parted, f.lit("both or neither"))
                .when(has_answer, f.lit("both"))
                .otherwise(f.lit("neither")),
                observed=f.when(~has_deletion & ~has_answer, f.lit("neither")).otherwise(
                    f.concat_ws(
                        ", ",
                        _describe_published("deletion", "records-changelog", "deletion"),
                        _describe_published("answer", "output", "answer"),
                    )
                ),
            )
        )
    )


def _describe_published(noun: str, role: str, offset: str) -> Column:
    return f.when(f.col(offset).isNotNull(), f.concat(f.lit(f"{noun} "), text_of_place(role, offset=offset)))
