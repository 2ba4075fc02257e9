"""The promise `stores`: what a store holds at the end is its changelog up to the offset that it claims."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_jobs.transforms.comparisons import comparison, value_text
from spark_jobs.transforms.places import text_of_place

DUMPS = "array<struct<store:string,partition:int,role:string,offset:long,title:string>>"


def compare_stores(records: DataFrame, trials: DataFrame) -> DataFrame:
    """One comparison for each store that holds what it must, and one for each key in which another differs.

    A trial's dumps say which stores were written, and what they claim; their entries are in the roles `<store>-dump`,
    with the number of the dump in place of an offset. A tombstone deletes, so a key that has one and is not in the
    store is well. Out: as the table `comparisons`.
    """
    dumps = trials.select("trial", f.posexplode("dumps").alias("dump", "of")).select("trial", "dump", "of.*")
    stores = f.broadcast(dumps.withColumnRenamed("offset", "end").drop("title"))
    changed = (
        records.where(f.col("role").endswith("-changelog"))
        .withColumn("store", f.regexp_replace("role", "-changelog$", ""))
        .join(stores.drop("role"), ["trial", "store", "partition"])
        .where(f.col("offset") < f.col("end"))
        .select("trial", "dump", "key", "value", "offset", f.lit(False).alias("held"))
    )
    entries = records.where(f.col("role").endswith("-dump")).select(
        "trial", f.col("offset").cast("int").alias("dump"), "key", "value", "offset", f.lit(True).alias("held")
    )
    held = f.col("held")
    keys = (
        changed.unionByName(entries)
        .groupBy("trial", "dump", "key")
        .agg(
            f.max_by("value", f.when(~held, f.col("offset"))).alias("expected"),
            f.max(f.when(held, f.col("value"))).alias("observed"),
            f.max(f.when(~held, f.col("offset"))).alias("changelog_offset"),
        )
    )
    wrong = ~f.col("expected").eqNullSafe(f.col("observed"))
    whole = keys.groupBy("trial", "dump").agg(
        f.count("observed").alias("entries"),
        f.collect_list(f.when(wrong, f.struct("key", "expected", "observed", "changelog_offset"))).alias("wrong"),
    )
    seen = dumps.join(whole, ["trial", "dump"], "left").select(
        *dumps.columns, f.coalesce("entries", f.lit(0)).alias("entries"), f.explode_outer("wrong").alias("of")
    )
    amiss = f.col("of").isNotNull()
    number = f.format_string("%d entries", "entries")
    return seen.select(
        *comparison(
            "stores",
            anomaly=f.when(amiss & (f.col("role") == "standby"), "wrong-standby").when(amiss, "wrong-store"),
            partition=f.col("partition"),
            key=f.col("of.key"),
            place=f.when(
                f.col("of.changelog_offset").isNotNull(),
                text_of_place(f.concat("store", f.lit("-changelog")), offset="of.changelog_offset"),
            ).otherwise(f.col("title")),
            expected=f.when(amiss, value_text(f.col("of.expected"))).otherwise(number),
            observed=f.when(amiss, f.concat(value_text(f.col("of.observed")), f.lit(": "), "title")).otherwise(number),
        )
    )
