"""The promise `stores`: what a store holds at the end is its changelog up to the offset that it claims.

First each store and its changelog are fingerprinted: if the two are the same, all is well, and nothing else is read.
Only stores that differ are joined, key by key.
"""

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_jobs.transforms.comparisons import COMPARISONS, comparison, fingerprint, in_memory, value_text
from spark_jobs.transforms.places import text_of_place

DUMPS = "array<struct<store:string,partition:int,task_type:string,offset:long,title:string>>"
CHANGELOG = ("trial", "store", "partition", "end")  # the changelog of a store before the offset `end`


def compare_stores(records: DataFrame, trials: DataFrame) -> DataFrame:
    """One comparison for each store that holds what it must, and one for each key in which another differs.

    A trial's dumps say which stores were written, and what they claim; their entries are in the roles `<store>-dump`,
    with the number of the dump in place of an offset. A tombstone deletes, so a key that has one and is not in the
    store is fine. Out: as the table `comparisons`.
    """
    spark = records.sparkSession
    dumps = trials.select("trial", f.posexplode("dumps").alias("dump", "of")).select("trial", "dump", "of.*")
    entries = records.where(f.col("role").endswith("-dump")).select(
        "trial", f.col("offset").cast("int").alias("dump"), "key", "value"
    )
    claimed = dumps.withColumnRenamed("offset", "end")
    looked_at = (
        claimed.join(
            fingerprint_tables(fold(records, claimed).where("value is not null"), *CHANGELOG), list(CHANGELOG), "left"
        )
        .withColumnRenamed("print", "due")
        .join(fingerprint_tables(entries, "trial", "dump"), ["trial", "dump"], "left")
        .select(
            *("trial", "dump", "partition", "title"),
            f.coalesce("print.records", f.lit(0)).alias("entries"),
            (~f.col("due").eqNullSafe(f.col("print"))).alias("differs"),
        )
        .collect()  # a row a store
    )
    well = in_memory(spark, [_well(row.asDict()) for row in looked_at if not row["differs"]], COMPARISONS)
    differing = [row.asDict() for row in looked_at if row["differs"]]
    if not differing:
        return well
    closer = in_memory(spark, differing, "trial int, dump int")
    wrong = f.broadcast(claimed.join(f.broadcast(closer), ["trial", "dump"]))
    return well.unionByName(breaches(wrong, records, entries))


def fold(records: DataFrame, dumps: DataFrame) -> DataFrame:
    """The tables that the changelogs make up to the offsets `end` which stores claim.

    Out: trial, store, partition, end, key, value LONG (null where a tombstone came last), changelog_offset LONG.
    """
    ends = dumps.select(*CHANGELOG).distinct()
    return (
        records.where(f.col("role").endswith("-changelog"))
        .withColumn("store", f.regexp_replace("role", "-changelog$", ""))
        .join(f.broadcast(ends), ["trial", "store", "partition"])
        .where(f.col("offset") < f.col("end"))
        .groupBy(*CHANGELOG, "key")
        .agg(f.max_by("value", "offset").alias("value"), f.max("offset").alias("changelog_offset"))
    )


def fingerprint_tables(entries: DataFrame, *of: str) -> DataFrame:
    """The fingerprint of the entries (key, value) of each table, with the columns `of`, and `print`."""
    return entries.groupBy(*of).agg(fingerprint(f.xxhash64("key", "value")).alias("print"))


def breaches(dumps: DataFrame, records: DataFrame, entries: DataFrame) -> DataFrame:
    """One comparison for each key in which these stores differ from their changelogs. As the table `comparisons`."""
    of_key = ["trial", "dump", "key"]
    due = (
        fold(records, dumps)
        .join(dumps.select(*CHANGELOG, "dump"), list(CHANGELOG))
        .select(*of_key, f.col("value").alias("expected"), "changelog_offset")
    )
    held = entries.join(dumps.select("trial", "dump"), ["trial", "dump"]).select(
        *of_key, f.col("value").alias("observed")
    )
    wrong = due.join(held, of_key, "full").where(~f.col("expected").eqNullSafe(f.col("observed")))
    return wrong.join(dumps, ["trial", "dump"]).select(
        *comparison(
            "stores",
            anomaly=f.when(f.col("task_type") == "standby", "wrong-standby").otherwise("wrong-store"),
            partition=f.col("partition"),
            key=f.col("key"),
            place=f.when(
                f.col("changelog_offset").isNotNull(),
                text_of_place(f.concat("store", f.lit("-changelog")), offset="changelog_offset"),
            ).otherwise(f.col("title")),
            expected=value_text(f.col("expected")),
            observed=f.concat(value_text(f.col("observed")), f.lit(": "), "title"),
        )
    )


def _well(store: dict[str, Any]) -> dict[str, Any]:
    entries = f"{store['entries']} entries"
    return {
        **{name: store[name] for name in ("trial", "partition")},
        **{"promise": "stores", "anomaly": None, "key": None, "place": store["title"]},
        **{"expected": entries, "observed": entries, "comparisons": 1},
    }
