"""The promise `entries`: a store holds what its changelog says, entry by entry, as bytes, with timestamps and headers.

What is older than the retention of a store it need not hold, seen from the youngest entry of its changelog. Of a store
of versions its history is compared, which goes back as far.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from spark_jobs.transforms.comparisons import comparison
from spark_jobs.transforms.kafka import integer
from spark_jobs.transforms.places import text_of_place

STORES = "array<struct<store:string,form:string,retention:long>>"
CHANGELOG = ("trial", "store", "partition", "end")  # the changelog of a store before the offset `end`
ENTRY = ("value", "timestamp", "headers")
ENTRY_TYPE = "struct<value:string,timestamp:bigint,headers:string>"
VERSIONS = "form = 'versions'"
WRONG_HEADERS = "wrong-entry-headers"
DELETED = "deleted"  # in place of a value: from this time on a store of versions has none


def compare_entries(records: DataFrame, trials: DataFrame) -> DataFrame:
    """One comparison for each store that holds what it must, and one for each key in which another differs.

    The entries of a trial's `entry_dumps` are in the roles `<store>-entries`, with the number of the dump in place of
    an offset. Out: as the table `comparisons`.
    """
    dumps = trials.select("trial", f.posexplode("entry_dumps").alias("dump", "of")).select("trial", "dump", "of.*")
    dumps = f.broadcast(dumps.withColumnRenamed("offset", "end"))
    stores = trials.select("trial", f.explode("entry_stores").alias("of")).select("trial", "of.*")
    said = changes(records, dumps, f.broadcast(stores))
    begins = said.groupBy(*CHANGELOG).agg(begin().alias("begin"))
    due = fold_known(said.where(f"not {VERSIONS}")).unionByName(versions(said.where(VERSIONS), begins))
    of_dump = dumps.select("dump", *CHANGELOG)
    due, begins = (
        due.join(of_dump, list(CHANGELOG)),
        begins.join(of_dump, list(CHANGELOG)).select("trial", "dump", "begin"),
    )
    held = (
        records.where(f.col("role").endswith("-entries"))
        .select(
            "trial",
            f.col("offset").cast("int").alias("dump"),
            f.substring_index("raw", ",", 1).alias("shown"),
            f.substring_index("raw", ",", -1).alias("value"),
            f.unix_millis("timestamp").alias("timestamp"),
            "headers",
        )
        .groupBy("trial", "dump", "shown")
        .agg(entries_of(f.lit(True)).alias("held"))
    )
    of_key = ["trial", "dump", "shown"]
    compared = (
        due.select(*of_key, "due", "kept", "last")
        .join(held, of_key, "full")
        .join(f.broadcast(begins), ["trial", "dump"], "left")
        .withColumn("held", f.when(f.col("begin").isNull(), f.col("held")).otherwise(history("held")))
        .withColumn("due", f.coalesce("due", f.array().cast(f"array<{ENTRY_TYPE}>")))
        .withColumn("held", f.coalesce("held", f.array().cast(f"array<{ENTRY_TYPE}>")))
        .withColumn("anomaly", anomaly())
    )
    by_store = (
        compared.groupBy("trial", "dump")
        .agg(
            f.sum(f.size("held")).alias("entries"),
            f.collect_list(
                f.when(f.col("anomaly").isNotNull(), f.struct("anomaly", "shown", "last", "due", "held"))
            ).alias("wrong"),
        )
        .join(dumps, ["trial", "dump"], "right")
        .join(f.broadcast(stores), ["trial", "store"])
        .withColumn(
            "at", f.when(f.col("form") == "waiting", 19).when(f.col("form") == "subscriptions", 17).otherwise(1)
        )
    )
    number = f.format_string("%d entries", f.coalesce("entries", f.lit(0)))
    well = by_store.where(f.coalesce(f.size("wrong"), f.lit(0)) == 0).select(
        *comparison(
            "entries",
            anomaly=f.lit(None),
            partition=f.col("partition"),
            key=f.lit(None),
            place=f.col("title"),
            expected=number,
            observed=number,
        )
    )
    wrong = by_store.withColumn("wrong", f.explode("wrong")).select(
        *comparison(
            "entries",
            anomaly=f.col("wrong.anomaly"),
            partition=f.col("partition"),
            key=integer(f.unhex(f.expr("substring(wrong.shown, at, 8)"))),
            place=f.when(
                f.col("wrong.last").isNotNull(),
                text_of_place(f.concat("store", f.lit("-changelog")), offset="wrong.last"),
            ).otherwise(f.col("title")),
            expected=of_anomaly("wrong.due"),
            observed=f.concat(of_anomaly("wrong.held"), f.lit(": "), "title"),
        )
    )
    return well.unionByName(wrong)


def entries_of(where: Column) -> Column:
    """An aggregate: the entries in their order."""
    return f.sort_array(f.collect_list(f.when(where, f.struct(*ENTRY))))


def changes(records: DataFrame, dumps: DataFrame, stores: DataFrame) -> DataFrame:
    """The records of the changelogs up to the offsets `end` which stores claim.

    Out: trial, store, partition, end, offset, key, value (null of a tombstone), timestamp LONG, form, retention.
    """
    ends = dumps.select(*CHANGELOG).distinct()
    return (
        records.where(f.col("role").endswith("-changelog") & f.col("raw").isNotNull())
        .withColumn("store", f.regexp_replace("role", "-changelog$", ""))
        .withColumn("key", f.substring_index("raw", ",", 1))
        .withColumn("value", f.when(f.col("raw").contains(","), f.substring_index("raw", ",", -1)))
        .withColumn("timestamp", f.unix_millis("timestamp"))
        .join(f.broadcast(ends), ["trial", "store", "partition"])
        .where(f.col("offset") < f.col("end"))
        .join(stores, ["trial", "store"])
        .select(*CHANGELOG, "offset", "key", *ENTRY, "form", "retention")
    )


def fold_known(said: DataFrame) -> DataFrame:
    """The content of changelogs.

    In: as `changes` gives it. Out: trial, store, partition, end, shown STRING (the key, without what stores do not
    show), due ARRAY of values and timestamps, last LONG (the offset of the last record), kept BOOLEAN (whether the
    store must still have it).
    """
    form, key = f.col("form"), f.col("key")
    digits = (
        f.when(form == "windows", f.expr("substring(key, length(key) - 23, 16)"))
        .when(form == "sessions", f.expr("substring(key, length(key) - 31, 16)"))
        .otherwise("0")
    )
    last = (
        said.groupBy(*CHANGELOG, "key", "form", "retention")
        .agg(f.max_by(f.struct(*ENTRY), "offset").alias("entry"), f.max("offset").alias("offset"))
        .withColumn("time", f.conv(digits, 16, 10).cast("long"))
        .withColumn("shown", f.when(form == "windows", f.expr("left(key, length(key) - 8)")).otherwise(key))
        .select(*CHANGELOG, "shown", "offset", "time", "retention", "entry.*")
    )
    youngest = last.groupBy(*CHANGELOG).agg(f.max("time").alias("youngest"))
    return (
        last.groupBy(*CHANGELOG, "shown")
        .agg(
            entries_of(f.col("value").isNotNull()).alias("due"),
            f.max("offset").alias("last"),
            f.max("time").alias("time"),
            f.max("retention").alias("retention"),
        )
        .join(f.broadcast(youngest), list(CHANGELOG))
        .withColumn("kept", (f.col("retention") == 0) | (f.col("time") > f.col("youngest") - f.col("retention")))
        .drop("time", "retention", "youngest")
    )


def begin() -> Column:
    """An aggregate: when the history of a store of versions begins, in ms; null of another store."""
    return f.max(f.when(f.expr(VERSIONS), f.col("timestamp"))) - f.max("retention")


def versions(said: DataFrame, begins: DataFrame) -> DataFrame:
    """The history of the keys of stores of versions. In: as `changes` and `begin` give it. Out: as `fold_known`."""
    before = Window.partitionBy(*CHANGELOG).orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
    oldest = f.max("timestamp").over(before) - f.col("retention")
    in_time = f.coalesce(f.col("timestamp") >= oldest, f.lit(True))
    at_once = f.max_by(f.struct("value"), f.when(f.col("in_time"), f.col("offset")))
    put = f.when(f.col("put").isNotNull(), f.struct(f.col("put.value"), "timestamp"))
    return (
        said.withColumn("in_time", in_time)
        .groupBy(*CHANGELOG, f.col("key").alias("shown"), "timestamp")
        .agg(at_once.alias("put"), f.max("offset").alias("last"))
        .groupBy(*CHANGELOG, "shown")
        .agg(f.collect_list(put).alias("put"), f.max("last").alias("last"))
        .join(f.broadcast(begins), list(CHANGELOG))
        .select(*CHANGELOG, "shown", history("put").alias("due"), "last", f.lit(True).alias("kept"))
    )


def history(of: str) -> Column:
    """The versions that can be seen since `begin`: the one that is valid then, and each change after that."""
    by_time = f.sort_array(
        f.transform(of, lambda x: f.struct(x["timestamp"].alias("timestamp"), _put(x).alias("value")))
    )
    past = f.filter(by_time, lambda x: x["timestamp"] <= f.col("begin"))
    since = f.concat(f.slice(past, -1, 1), f.filter(by_time, lambda x: x["timestamp"] > f.col("begin")))
    return f.aggregate(
        since,
        f.array().cast(f"array<{ENTRY_TYPE}>"),
        lambda before, x: f.when(
            (x["value"] != DELETED) | ((f.size(before) > 0) & (f.element_at(before, -1)["value"] != DELETED)),
            f.concat(before, f.array(f.struct(x["value"], x["timestamp"], f.lit(None)).cast(ENTRY_TYPE))),
        ).otherwise(before),
    )


def _put(version: Column) -> Column:
    return f.when(version["value"] != "", version["value"]).otherwise(DELETED)


def anomaly() -> Column:
    """The anomaly of a key by what is due and held; null if all is well."""
    due, held = f.col("due.value"), f.col("held.value")
    lacks = (f.size("held") < f.size("due")) & (f.size(f.array_except(held, due)) == 0)
    return (
        f.when((due == held) & differ("timestamp"), "wrong-entry-time")
        .when((due == held) & differ("headers"), WRONG_HEADERS)
        .when(due == held, None)
        .when(lacks, f.when(f.col("kept"), "lost-entry"))
        .otherwise("wrong-entry")
    )


def differ(part: str) -> Column:
    """Whether a store that keeps this part of entries has another one than is due."""
    keeps = ~f.exists("held", lambda entry: entry[part].isNull())
    return keeps & (f.col(f"held.{part}") != f.col(f"due.{part}"))


def of_anomaly(entries: str) -> Column:
    """Entries in words, with what their anomaly is about."""
    return f.when(f.col("wrong.anomaly") == WRONG_HEADERS, with_headers(entries)).otherwise(text(entries))


def with_headers(entries: str) -> Column:
    """A column of values with their headers in words."""
    no_header = f.lit("no header")
    texts = f.transform(
        entries,
        lambda e: f.concat_ws(" with ", e["value"], f.coalesce(f.nullif(e["headers"], f.lit("")), no_header)),
    )
    return f.array_join(texts, " and ")


def text(entries: str) -> Column:
    """A column of entries in words, as the other reader writes them."""
    texts = f.transform(
        entries, lambda e: f.concat_ws(" at ", e["value"], e["timestamp"].cast("string"))
    )  # without a null
    joined = f.array_join(texts, " and ")
    return f.when(joined == "", f.lit("nothing")).otherwise(joined)
