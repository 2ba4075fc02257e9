"""The promises `output-order` and `changelog`: what the application wrote is what the replay of its input says.

First, every topic is fingerprinted, and so is what the replay of the input gives: where the two are the same, all is
well, and nothing else is looked at. Only topics that differ are joined, record by record; of long ones, only the keys
that differ.

A record is identified by its key and its number among the records of the key; under at-least-once, where a suffix may
be repeated, by key and value. A cached store's changelog is folded (a tombstone deletes) and compared key by key; each
record of it must still be one that the key had, and under exactly-once they come in the order of the input.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import groupby
from operator import itemgetter
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from spark_jobs.transforms.comparisons import (
    COMPARISONS,
    comparison,
    fact,
    fingerprint,
    in_memory,
    records_text,
    value_text,
)
from spark_jobs.transforms.groups import GROUPED_TABLE, by_group
from spark_jobs.transforms.joins import (
    AS_OF_JOIN,
    FOREIGN_KEY_JOIN,
    GLOBAL_JOIN,
    TABLE_JOIN,
    as_of,
    by_foreign_key,
    by_key,
    with_entries,
)
from spark_jobs.transforms.places import partition_of, place, place_text, text_of_place

DELETE = 0  # value of the input of the topology `deleter`
FEW = 1_000_000  # records, or keys, that are kept as a whole and sent to every task


@dataclass(frozen=True)
class Log:
    """The records of the topic of a role, as a function of the input's order.

    `replay` says which input records give one: `every`, the `first` of each key, each `delete`, each `version` of a
    table, or those that are `taken` or `skipped` as poison. `judged` says what is compared of the value: `nothing`, the
    `value`, the `number` in the upper half of the output's, that it is an `answer`, the `change` that a put or a delete
    makes, the `version` that a change of a table is, what the input `gives` when it is joined or grouped, or the
    `result` of a join, where 0 is as good as a tombstone. `key` is the key of all records, if it is not the input's.
    `counted`: another promise reports keys with too few or too many records; `beside`: the role in which another
    promise reports too few. `punctuated`: a punctuator writes, too, under keys below 0. `history`: each record of a
    folded log is one that an input of its key gives, in their order. `puts`: only what was put is compared, as a
    punctuator deletes it. `handled`: an exception handler wrote its headers behind those of the input (KIP-1034).
    """

    promise: str
    role: str
    replay: str = "every"
    judged: str = "value"
    key: int | None = None
    folded: bool = False
    counted: bool = False
    beside: str | None = None
    punctuated: bool = False
    history: bool = False
    puts: bool = False
    handled: bool = False


# With these columns a trial states its logs.
COLUMNS = (
    "promise string, role string, replay string, judged string, key int, folded boolean, counted boolean, "
    "beside string, punctuated boolean, history boolean, puts boolean, handled boolean"
)
LOG = f"struct<{COLUMNS}>"
LOGS = f"log int, trial int, exactly_once boolean, {COLUMNS}"
Logs = list[dict[str, Any]]  # rows of LOGS: a few for each trial, and what they say shapes the queries


def compare_contents(records: DataFrame, trials: DataFrame, checks: Collection[str]) -> DataFrame:
    """For each topic one comparison that stands for all of its records, and one for each that is not as it must be.

    In: trials with `logs`, `facts` and `check`, one of `checks`. Out: as the table `comparisons`.
    """
    records = replayed(records, trials, checks)
    spark = records.sparkSession
    logs = logs_of(trials)
    looked_at = {row["log"]: row for row in fingerprinted(records, logs).collect()} if logs else {}  # one row per topic
    well = [
        {**log, "place": log["role"], "comparisons": looked_at[log["log"]]["comparisons"], **WELL}
        for log in logs
        if log["log"] in looked_at and looked_at[log["log"]]["comparisons"]
    ]
    together = in_memory(spark, well, COMPARISONS)
    differing = [log for log in logs if log["log"] in looked_at and looked_at[log["log"]]["differs"]]
    for (is_folded, once), alike in grouped(differing, "folded", "exactly_once"):
        compare = folded if is_folded else numbered if once else repeated
        few = sum(looked_at[log["log"]]["comparisons"] for log in alike) <= FEW
        together = together.unionByName(breaches(records, in_memory(spark, alike, LOGS), compare, few=few))
    return together


# What the input of a topology gives, where that is more than the record itself.
GIVEN: dict[str, Callable[[DataFrame, DataFrame], DataFrame]] = {
    AS_OF_JOIN: as_of,
    FOREIGN_KEY_JOIN: by_foreign_key,
    GLOBAL_JOIN: with_entries,
    GROUPED_TABLE: lambda records, _: by_group(records),
    TABLE_JOIN: by_key,
}


def replayed(records: DataFrame, trials: DataFrame, checks: Collection[str]) -> DataFrame:
    """The records, of which inputs that are joined or grouped are what they give.

    Each topology by itself: one behind the other, they would have each query read the records a hundred times.

    In: trials with `facts` and `check`, one of `checks`. Out: records with gives LONG.
    """
    records = records.withColumn("gives", f.lit(None).cast("long"))
    inputs = trials.select("trial", "check", f.lit("input").alias("role"))

    def of(check: str) -> DataFrame:
        own = f.broadcast(inputs.where(f.col("check") == check).drop("check"))
        return GIVEN[check](records.join(own, ["trial", "role"], "left_semi"), trials.where(f.col("check") == check))

    given = sorted(GIVEN.keys() & set(checks))
    others = records.join(
        f.broadcast(inputs.where(f.col("check").isin(given)).drop("check")), ["trial", "role"], "left_anti"
    )
    return reduce(DataFrame.unionByName, map(of, given), others) if given else records


WELL = {"anomaly": None, "partition": 0, "key": None, "expected": "what the replay says", "observed": "the same"}


def logs_of(trials: DataFrame) -> Logs:
    """The logs that the trials state, numbered: rows with a number are narrower than with a trial and a role."""
    exactly_once = f.coalesce(fact("exactly_once"), f.lit(1)) == 1
    stated = trials.select("trial", exactly_once.alias("exactly_once"), f.explode("logs").alias("log")).select(
        "trial", "exactly_once", "log.*"
    )
    return [{"log": number, **row.asDict()} for number, row in enumerate(stated.collect())]


def grouped(logs: Logs, *names: str) -> Iterator[tuple[Any, Logs]]:
    """The logs, grouped by their values in these columns, which come with each group."""
    same = itemgetter(*names)
    return ((of, list(alike)) for of, alike in groupby(sorted(logs, key=same), same))


def fingerprinted(records: DataFrame, logs: Logs) -> DataFrame:
    """Each topic compared with what the replay gives.

    Out: log, comparisons LONG (records that are or should be there), differs BOOLEAN.
    """
    spark = records.sparkSession
    wanted, found = [], []
    for (is_folded, replay), alike in grouped(logs, "folded", "replay"):
        causes = inputs_of(records, in_memory(spark, alike, LOGS))
        rows = first_prints(causes) if replay == "first" else prints(causes)
        wanted.append(fingerprints(rows, "wanted", in_order=not is_folded))
    for is_folded, alike in grouped(logs, "folded"):
        of_roles = records.where(f.col("role").isin({log["role"] for log in alike}))  # no other files are read
        rows = prints(written(of_roles, in_memory(spark, alike, LOGS)))
        found.append(fingerprints(rows, "found", in_order=not is_folded))
    number = {side: f.coalesce(f.sum(side), f.lit(0)) for side in ("wanted", "found")}
    return (
        reduce(DataFrame.unionByName, wanted)
        .join(reduce(DataFrame.unionByName, found), ["log", "partition"], "full")
        .groupBy("log")
        .agg(
            f.greatest(number["wanted"], number["found"]).alias("comparisons"),
            f.bool_or(~f.col("wanted_print").eqNullSafe(f.col("found_print"))).alias("differs"),
        )
    )


def prints(rows: DataFrame, *more: str) -> DataFrame:
    """A hash of what is compared of each record. Out: log, partition, `more`, offset, print LONG."""
    absent = f.lit(-(2**62))
    of_record = f.xxhash64("key", f.coalesce("value", absent), f.unix_micros("timestamp"), "headers")
    return rows.select("log", "partition", *more, "offset", of_record.alias("print"))


def first_prints(causes: DataFrame) -> DataFrame:
    """The prints of the first input record of each key, where only that one gives any; integers need no sort."""
    return (
        prints(causes, "of_key")
        .groupBy("log", "partition", "of_key")
        .agg(f.min("offset").alias("offset"), f.min_by("print", "offset").alias("print"))
        .drop("of_key")
    )


def fingerprints(records: DataFrame, side: str, *, in_order: bool) -> DataFrame:
    """For each partition, the number of records and a fingerprint of them, and of their order, if that is wanted.

    In: as `prints`. Out: log, partition, `<side>` LONG, `<side>_print`.
    """
    order = Window.partitionBy("log", "partition").orderBy("offset")
    of_record = f.xxhash64(f.row_number().over(order), "print") if in_order else f.col("print")
    return (
        records.withColumn("print", of_record)
        .groupBy("log", "partition")
        .agg(f.count("*").alias(side), fingerprint(f.col("print")).alias(f"{side}_print"))
    )


def inputs_of(records: DataFrame, logs: DataFrame) -> DataFrame:
    """The input records with each log that they may be written to; for `first`, those that are not the first, too.

    Out: the columns of the log, partition, offset, of_key INT (of the input), key (of what is written), value LONG as
    it is judged, timestamp, headers.
    """
    value = (
        f.when(f.col("judged").isin("value", "number"), f.col("value"))
        .when(f.col("judged") == "change", f.when(f.col("value") != DELETE, f.col("value")))
        .when(f.col("judged") == "version", f.when(f.col("value") < 0, -f.col("value")))
        .when(f.col("judged") == "answer", f.lit(1))
        .when(f.col("judged").isin("gives", "result"), f.col("gives"))
        .otherwise(f.lit(0))
    )
    return (
        records.where(f.col("role") == "input")
        .select("trial", "partition", "offset", f.col("key").alias("of_key"), "value", "gives", "timestamp", "headers")
        .join(f.broadcast(logs.withColumnRenamed("key", "own_key")), "trial")
        .where((f.col("replay") != "delete") | (f.col("value") == DELETE))
        .where((f.col("replay") != "version") | (f.col("value") <= 0))
        .where((f.col("replay") != "taken") | (f.col("value") >= 0))
        .where((f.col("replay") != "skipped") | (f.col("value") < 0))
        .withColumns({"key": f.coalesce("own_key", "of_key"), "value": value.cast("long")})
    )


def caused(inputs: DataFrame) -> DataFrame:
    """The records that the replay of the input gives for each log.

    In: what `inputs_of` gives. Out: the same, the partition as home, the offset as source; value, timestamp and headers
    also as caused_value, caused and caused_headers.
    """
    of_key = Window.partitionBy("log", "partition", "of_key").orderBy("offset")
    return (
        inputs.withColumn("nth", f.row_number().over(of_key))
        .where("replay != 'first' or nth = 1")
        .withColumnsRenamed({"partition": "home", "offset": "source"})
        .withColumns({name: f.col(of) for name, of in CAUSED.items()})
    )


CAUSED = {"caused_value": "value", "caused": "timestamp", "caused_headers": "headers"}


def written(records: DataFrame, logs: DataFrame) -> DataFrame:
    """The records of each log.

    Out: the columns of the log, partition, key, offset, value LONG as it is judged, raw LONG as it is, gone BOOLEAN (a
    tombstone), timestamp, headers.
    """
    value = (
        f.when(f.col("judged").isin("value", "change", "version", "gives"), f.col("value"))
        .when(f.col("judged") == "number", f.shiftright("value", 32))
        .when(f.col("judged") == "result", f.nullif("value", f.lit(0)))
        .when(f.col("judged") == "answer", f.when(f.col("value").isin(0, 1), f.lit(1)).otherwise(f.col("value")))
        .otherwise(f.lit(0))
    )
    own_headers = f.regexp_replace("headers", r" ?__streams\.errors\..*", "")
    return (
        records.select("trial", "role", "partition", "offset", "key", "value", "timestamp", "headers")
        .join(f.broadcast(logs.withColumnRenamed("key", "own_key")), ["trial", "role"])
        .where(~(f.col("punctuated") & (f.col("key") < 0)) & ~(f.col("puts") & f.col("value").isNull()))
        .withColumns(
            {
                "gone": f.col("value").isNull() | value.isNull(),
                "raw": f.col("value"),
                "value": value.cast("long"),
                "headers": f.when(f.col("handled"), own_headers).otherwise(f.col("headers")),
            }
        )
    )


# --- what differs --------------------------------------------------------------------------------------------

Compare = Callable[[DataFrame, DataFrame], list[DataFrame]]  # of what is wanted and what is found
BREACH = ("trial", "promise", "role", "anomaly", "partition", "key", "place", "expected", "observed")


def breaches(records: DataFrame, logs: DataFrame, compare: Compare, *, few: bool) -> DataFrame:
    """The breaches in the topics of these logs, which have few records or many.

    Out: as the table `comparisons`.
    """
    inputs, found = inputs_of(records, logs), written(records, logs)
    wanted = caused(inputs)
    if few or compare is repeated:
        of_keys = wanted, found = wanted.localCheckpoint(), found.localCheckpoint()  # used often
    else:
        differing = keys_that_differ(wanted, found).localCheckpoint()
        keys = f.broadcast(differing) if differing.count() <= FEW else differing
        some = (side.join(keys, ["log", "key"], "left_semi") for side in (inputs, found))
        of_keys = caused(next(some)).localCheckpoint(), next(some).localCheckpoint()
    parts = compare(*of_keys)
    if compare is numbered:
        parts.append(disordered(wanted, found, logs))
    united = reduce(DataFrame.unionByName, [part.select(*BREACH) for part in parts])
    return united.join(
        reported_elsewhere(records, of_keys[0]), ["trial", "role", "key", "anomaly"], "left_anti"
    ).select(
        *comparison(
            f.col("promise"),
            **{name: f.col(name) for name in ("anomaly", "partition", "key", "place", "expected", "observed")},
            comparisons=f.lit(0),
        )
    )


def keys_that_differ(wanted: DataFrame, found: DataFrame) -> DataFrame:
    """The keys of which not every record is what the cause in its place gives; in narrow rows, as there may be many.

    Out: log, key.
    """
    causes = prints(wanted.withColumnsRenamed({"home": "partition", "source": "offset"}), "key")
    sides = causes.withColumn("side", f.lit(1)).unionByName(prints(found, "key").withColumn("side", f.lit(-1)))
    in_order = Window.partitionBy("log", "key", "side", "partition").orderBy("offset")
    of_record = f.xxhash64("partition", f.row_number().over(in_order), "print")
    halves = of_record.bitwiseAND(f.lit(2**31 - 1)), f.shiftrightunsigned(of_record, 33)  # as in `fingerprint`
    low, high = (half * f.col("side") for half in halves)
    return (
        sides.repartition("log", "key")  # serves the window and the aggregate
        .select("log", "key", "side", low.alias("low"), high.alias("high"))
        .groupBy("log", "key")
        .agg(*(f.sum(name).alias(name) for name in ("side", "low", "high")))
        .where("side != 0 or low != 0 or high != 0")
        .select("log", "key")
    )


def reported_elsewhere(records: DataFrame, wanted: DataFrame) -> DataFrame:
    """The keys of which another promise reports too few records. Out: trial, role, key, anomaly."""
    causes = (
        wanted.where(f.col("beside").isNotNull())
        .groupBy("trial", "role", "beside", "key")
        .agg(f.count("*").alias("causes"))
    )
    beside = f.broadcast(causes.select("trial", "beside").distinct())
    there = (
        records.withColumnRenamed("role", "beside")
        .join(beside, ["trial", "beside"], "left_semi")
        .groupBy("trial", "beside", "key")
        .agg(f.count("*").alias("there"))
    )
    return (
        causes.join(there, ["trial", "beside", "key"], "left")
        .where(f.coalesce("there", f.lit(0)) < f.col("causes"))
        .select("trial", "role", "key", f.lit("lost-record").alias("anomaly"))
    )


def numbered(wanted: DataFrame, found: DataFrame) -> list[DataFrame]:
    """Under exactly-once: the n-th record of a key is what its n-th cause gives. Their order: see `disordered`."""
    of_key = ["trial", "role", "key", "scope"]
    wanted, found = scoped(wanted.withColumn("partition", f.col("home"))), scoped(found)
    sizes = (
        wanted.groupBy(*of_key)
        .agg(f.count("*").alias("causes"), f.min(place("home", "source")).alias("first"), *_of_log())
        .join(
            found.groupBy(*of_key).agg(
                f.count("*").alias("there"),
                f.max(place()).alias("last"),
                f.max_by("raw", place()).alias("raw"),
                *_of_log("found_"),
            ),
            of_key,
            "full",
        )
        .withColumns({name: f.coalesce(name, f"found_{name}") for name in ("promise", "counted")})
        .withColumns({name: f.coalesce(name, f.lit(0)) for name in ("causes", "there")})
    )
    miscounted = sizes.where((f.col("causes") != f.col("there")) & ~f.col("counted"))
    lost = f.col("there") < f.col("causes")
    return [
        _lost(miscounted.where(lost)),
        _unexpected(miscounted.where("causes = 0").select("*", _at("last").alias("place"), _in("last"))),
        miscounted.where(~lost & (f.col("causes") > 0)).select(
            "*",
            f.lit("duplicate-output").alias("anomaly"),
            _in("last"),
            _at("last").alias("place"),
            records_text(f.col("causes")).alias("expected"),
            records_text(f.col("there")).alias("observed"),
        ),
        _different(paired(wanted, found)),
    ]


def disordered(wanted: DataFrame, found: DataFrame, logs: DataFrame) -> DataFrame:
    """Under exactly-once: records in the order of their causes, in narrow rows, as there may be many."""
    wanted, found = scoped(wanted.withColumn("partition", f.col("home"))), scoped(found)
    before = f.lag("source").over(Window.partitionBy("log", "partition").orderBy("offset"))
    pairs = paired(wanted, found).select("log", "key", "home", "source", "partition", "offset")
    behind = pairs.where("partition = home").withColumn("behind", before).where("source < behind")
    return _disordered(behind.join(f.broadcast(logs.select("log", "trial", "promise", "role")), "log"))


def scoped(rows: DataFrame) -> DataFrame:
    """Records or causes with the partition in which they are numbered; -1: in all of them together."""
    return rows.withColumn("scope", f.when(f.col("own_key").isNotNull(), f.col("partition")).otherwise(f.lit(-1)))


def paired(wanted: DataFrame, found: DataFrame) -> DataFrame:
    """The n-th record of each key with its n-th cause, of keys with as many records as causes. In: with a scope."""
    of_key = ["log", "key", "scope"]

    def numbers(*order: str) -> dict[str, Column]:
        within = Window.partitionBy(*of_key)
        return {"nth": f.row_number().over(within.orderBy(*order)), "size": f.count("*").over(within)}

    causes = wanted.withColumns(numbers("home", "source")).select(*of_key, "nth", "size", *_causes())
    return causes.join(found.withColumns(numbers("partition", "offset")), [*of_key, "nth", "size"])


def repeated(wanted: DataFrame, found: DataFrame) -> list[DataFrame]:
    """Under at-least-once: what was written continues what is there, or repeats some of it."""
    identity = ["trial", "role", "key", "value"]
    absent = f.lit(-(2**62))  # so that the values of two tombstones are equal
    wanted, found = (side.withColumn("value", f.coalesce("value", absent)) for side in (wanted, found))
    at = place("home", "source")
    causes = wanted.groupBy(*identity).agg(
        *(f.max_by(name, at).alias(name) for name in ("home", "source", "caused", "caused_headers"))
    )
    known = wanted.groupBy("trial", "role", "key").agg(f.min_by("value", at).alias("caused_value"))
    strange = found.join(causes, identity, "left_anti").join(known, ["trial", "role", "key"], "left")
    pairs = found.join(causes.withColumn("caused_value", f.col("value")), identity)
    in_place = pairs.where("partition = home").withColumn(
        "number", f.dense_rank().over(Window.partitionBy("trial", "role", "partition").orderBy("source"))
    )
    earlier = (
        Window.partitionBy("trial", "role", "partition").orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
    )
    in_place = in_place.withColumn("behind", f.max("source").over(earlier)).withColumn(
        "reached", f.max("number").over(earlier)
    )
    misvalued = strange.where(f.col("caused_value").isNotNull()).select("trial", "role", "key")
    missing = (
        wanted.where("not counted").join(found, identity, "left_anti").join(misvalued, misvalued.columns, "left_anti")
    )
    # If nothing gives a record's value, nothing else of it is compared.
    of_itself = {"home": f.col("partition"), "caused": f.col("timestamp"), "caused_headers": f.col("headers")}
    return [
        _different(strange.where(f.col("caused_value").isNotNull()).withColumns(of_itself)),
        _unexpected(
            strange.where(f.col("caused_value").isNull() & ~f.col("counted")).withColumn("place", _at(place()))
        ),
        _different(pairs),
        _disordered(in_place.where(f.col("number") > f.coalesce("reached", f.lit(0)) + 1)),
        _lost(
            missing.groupBy("trial", "promise", "role", "key").agg(
                f.count("*").alias("causes"), f.min(at).alias("first"), f.lit(0).alias("there")
            )
        ),
    ]


LAST = ("partition", "offset", "value", "raw", "gone", "timestamp", "headers")


def folded(wanted: DataFrame, found: DataFrame) -> list[DataFrame]:
    """Compare the tables that the two make, key by key; a tombstone deletes."""
    of_key = ["trial", "role", "key"]
    at = place("home", "source")
    table = wanted.groupBy(*of_key).agg(
        f.max(at).alias("first"),
        *(f.max_by(name, at).alias(name) for name in ("home", "source", "caused", "caused_headers", "caused_value")),
        *_of_log(),
    )
    there = found.groupBy(*of_key).agg(
        f.max(place()).alias("last"),
        *(
            f.max_by(n, place()).alias(n)
            for n in ("partition", "offset", "value", "raw", "gone", "timestamp", "headers")
        ),
        *_of_log("found_"),
    )
    both = table.join(there, of_key, "full").withColumns(
        {name: f.coalesce(name, f"found_{name}") for name in ("promise", "counted")}
    )
    is_wanted, is_there = f.col("caused_value").isNotNull(), f.coalesce(~f.col("gone"), f.lit(False))
    not_counted = ~f.col("counted")
    parts = [
        _different(both.where(is_wanted & is_there)),
        _lost(both.where(is_wanted & ~is_there & not_counted).withColumns({"causes": f.lit(1), "there": f.lit(0)})),
        _unexpected(both.where(~is_wanted & is_there & not_counted).withColumn("place", _at("last"))),
    ]
    keys = reduce(DataFrame.unionByName, [part.select(*of_key) for part in parts])
    return [*parts, *(part.join(keys, of_key, "left_anti") for part in strayed(wanted, found))]


def strayed(wanted: DataFrame, found: DataFrame) -> list[DataFrame]:
    """The records that no input of their key gives, and, under exactly-once, those that stand behind a later one.

    Inputs that give the same cannot be distinguished: a record may come from any of them. The next value of the key,
    with a timestamp that it did not have with it, is `wrong-timestamp`.
    """
    of_key = ["trial", "role", "key"]
    at = place("home", "source")
    rest = ("caused_value", "caused", "caused_headers")
    causes = (
        wanted.where("history")
        .groupBy(*of_key, *rest)
        .agg(f.min(at).alias("earliest"), f.max(at).alias("latest"))
        .withColumnsRenamed({name: f"cause_{name}" for name in of_key})
    )
    values = causes.groupBy(*(f"cause_{name}" for name in of_key), "caused_value").agg(
        f.collect_set("caused").alias("times"),
        f.min_by("caused", "earliest").alias("time"),
        f.min("earliest").alias("earliest_value"),
        f.max("latest").alias("latest_value"),
    )
    of_same_value = [f.col(name) == f.col(f"cause_{name}") for name in of_key]
    of_same_value.append(f.col("value").eqNullSafe(f.col("caused_value")))
    same = [*of_same_value, *(f.col(x).eqNullSafe(f.col(y)) for x, y in (("timestamp", rest[1]), ("headers", rest[2])))]
    before = Window.partitionBy(*of_key).orderBy("partition", "offset").rowsBetween(Window.unboundedPreceding, -1)
    records = (
        found.where("history")
        .join(values, of_same_value, "left")
        .drop(*values.columns[: len(of_key) + 1])
        .join(causes, same, "left")
        .withColumns({"behind": f.max("earliest").over(before), "behind_value": f.max("earliest_value").over(before)})
    )
    disordered = records.where(f.col("exactly_once") & (f.col("latest") <= f.col("behind")))
    strays = records.where(f.col("latest").isNull())
    is_next = f.col("behind_value").isNull() | (f.col("latest_value") > f.col("behind_value"))
    is_mistimed = f.coalesce(is_next & ~f.array_contains("times", f.col("timestamp")), f.lit(False))
    unexpected = strays.where(~is_mistimed).withColumns(
        {
            "anomaly": f.lit("unexpected-record"),
            "expected": f.lit("what the key had"),
            "observed": value_text(f.col("value")),
        }
    )
    mistimed = strays.where(is_mistimed).withColumns(
        {
            "anomaly": f.lit("wrong-timestamp"),
            "expected": f.unix_millis("time").cast("string"),
            "observed": f.unix_millis("timestamp").cast("string"),
        }
    )
    columns = {
        "anomaly": f.lit("wrong-order"),
        "expected": f.concat(f.lit("of a record behind "), place_text("input", f.col("behind"))),
        "observed": f.concat(f.lit("of "), place_text("input", f.col("latest"))),
    }
    parts = disordered.withColumns(columns), unexpected, mistimed
    return [part.withColumn("place", _at(place())) for part in parts]


def _of_log(prefix: str = "") -> list[Column]:
    """The columns that all rows of a log share."""
    return [f.first(name).alias(f"{prefix}{name}") for name in ("promise", "counted")]


def _causes() -> list[str]:
    return ["home", "source", "caused", "caused_headers", "caused_value"]


def _at(where: str | Column) -> Column:
    """A place in the log's topic, as readable text."""
    return place_text(f.col("role"), f.col(where) if isinstance(where, str) else where)


def _in(where: str) -> Column:
    return partition_of(f.col(where)).alias("partition")


def _lost(keys: DataFrame) -> DataFrame:
    """In: causes, there (numbers of records), first (place of a cause)."""
    return _breaches(
        keys,
        "lost-record",
        partition=partition_of(f.col("first")),
        place=place_text("input", f.col("first")),
        expected=f.concat(records_text(f.col("causes")), f.lit(" in "), "role"),
        observed=records_text(f.col("there")),
    )


def _unexpected(rows: DataFrame) -> DataFrame:
    """In: place, partition, raw (the value)."""
    columns = {name: f.col(name) for name in ("partition", "place")}
    return _breaches(rows, "unexpected-record", **columns, expected=f.lit("nothing"), observed=value_text(f.col("raw")))


def _breaches(rows: DataFrame, anomaly: str, **columns: Column) -> DataFrame:
    named = [column.alias(name) for name, column in columns.items()]
    return rows.select("trial", "promise", "role", "key", f.lit(anomaly).alias("anomaly"), *named)


def _different(pairs: DataFrame) -> DataFrame:
    """In: records with what gave them.

    Names the first aspect in which each differs: partition, value, timestamp, headers.
    """
    absent = f.lit(-(2**62))
    value, caused_value = (f.nullif(f.col(name), absent) for name in ("value", "caused_value"))
    aspects = [
        (
            "wrong-partition",
            f.col("partition") != f.col("home"),
            f.format_string("partition %d", "home"),
            f.format_string("partition %d", "partition"),
        ),
        ("wrong-value", ~value.eqNullSafe(caused_value), value_text(caused_value), value_text(value)),
        (
            "wrong-timestamp",
            ~f.col("timestamp").eqNullSafe(f.col("caused")),
            f.unix_millis("caused").cast("string"),
            f.unix_millis("timestamp").cast("string"),
        ),
        (
            "wrong-header",
            ~f.col("headers").eqNullSafe(f.col("caused_headers")),
            _headers_text("caused_headers"),
            _headers_text("headers"),
        ),
    ]

    def first(which: int) -> Column:
        return f.coalesce(*(f.when(differs, texts[which]) for _, differs, *texts in aspects))

    names = f.coalesce(*(f.when(differs, f.lit(name)) for name, differs, *_ in aspects))
    return (
        pairs.withColumns({"anomaly": names, "expected": first(0), "observed": first(1)})
        .where(f.col("anomaly").isNotNull())
        .withColumn("place", _at(place()))
    )


def _headers_text(headers: str) -> Column:
    return f.when(f.coalesce(headers, f.lit("")) == "", f.lit("no header")).otherwise(f.col(headers))


def _disordered(rows: DataFrame) -> DataFrame:
    """In: records that do not follow the one whose cause is at the offset `behind`, if there is one."""
    return rows.withColumns(
        {
            "anomaly": f.lit("wrong-order"),
            "place": _at(place()),
            "expected": f.when(
                f.col("behind").isNotNull(),
                f.concat(f.lit("of a record behind "), text_of_place("input", offset="behind")),
            ).otherwise(f.lit("of the first record")),
            "observed": f.concat(f.lit("of "), text_of_place("input", offset="source")),
        }
    )
