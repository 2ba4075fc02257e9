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

from spark_jobs.transforms.breaches import find_breaches, unite_sides
from spark_jobs.transforms.comparisons import COMPARISONS, comparison, fact, fingerprint, in_memory
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
from spark_jobs.transforms.places import place, place_text, text_of_place

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
    records = replay_inputs(records, trials, checks)
    spark = records.sparkSession
    logs = logs_of(trials)
    looked_at = (
        {row["log"]: row for row in compare_fingerprints(records, logs).collect()} if logs else {}
    )  # one row per topic
    well = [
        {**log, "place": log["role"], "comparisons": looked_at[log["log"]]["comparisons"], **WELL}
        for log in logs
        if log["log"] in looked_at and looked_at[log["log"]]["comparisons"]
    ]
    together = in_memory(spark, well, COMPARISONS)
    differing = [log for log in logs if log["log"] in looked_at and looked_at[log["log"]]["differs"]]
    if differing:
        few = sum(looked_at[log["log"]]["comparisons"] for log in differing) <= FEW
        together = together.unionByName(breaches(records, differing, few=few))
    return together


# What the input of a topology gives, where that is more than the record itself.
GIVEN: dict[str, Callable[[DataFrame, DataFrame], DataFrame]] = {
    AS_OF_JOIN: as_of,
    FOREIGN_KEY_JOIN: by_foreign_key,
    GLOBAL_JOIN: with_entries,
    GROUPED_TABLE: lambda records, _: by_group(records),
    TABLE_JOIN: by_key,
}


def replay_inputs(records: DataFrame, trials: DataFrame, checks: Collection[str]) -> DataFrame:
    """The records, of which inputs that are joined or grouped are what they give.

    Each topology by itself: one behind the other, they would have each query read the records a hundred times.

    In: trials with `facts` and `check`, one of `checks`. Out: records with gives LONG.
    """
    records = records.withColumn("gives", f.lit(None).cast("long"))
    inputs = trials.select("trial", "check", f.lit("input").alias("role"))

    def of(check: str) -> DataFrame:
        own = f.broadcast(inputs.where(f.col("check") == check).drop("check"))
        given = GIVEN[check](records.join(own, ["trial", "role"], "left_semi"), trials.where(f.col("check") == check))
        return given.localCheckpoint()  # each query would make them again

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


def group_logs(logs: Logs, *names: str) -> Iterator[tuple[Any, Logs]]:
    """The logs, grouped by their values in these columns, which come with each group."""
    same = itemgetter(*names)
    return ((of, list(alike)) for of, alike in groupby(sorted(logs, key=same), same))


def compare_fingerprints(records: DataFrame, logs: Logs) -> DataFrame:
    """Each topic compared with what the replay gives.

    Out: log, comparisons LONG (records that are or should be there), differs BOOLEAN.
    """
    spark = records.sparkSession
    wanted, found = [], []
    for (is_folded, replay), alike in group_logs(logs, "folded", "replay"):
        causes = inputs_of(records, in_memory(spark, alike, LOGS))
        rows = first_prints(causes) if replay == "first" else prints(causes)
        wanted.append(fingerprints(rows, "wanted", in_order=not is_folded))
    for is_folded, alike in group_logs(logs, "folded"):
        of_roles = records.where(f.col("role").isin({log["role"] for log in alike}))  # no other files are read
        rows = prints(find_written(of_roles, in_memory(spark, alike, LOGS)))
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


def find_causes(inputs: DataFrame) -> DataFrame:
    """The records that the replay of the input gives for each log.

    In: what `inputs_of` gives. Out: the same, the partition as home, the offset as source.
    """
    of_key = Window.partitionBy("log", "partition", "of_key").orderBy("offset")
    return (
        inputs.withColumn("nth", f.row_number().over(of_key))
        .where("replay != 'first' or nth = 1")
        .withColumnsRenamed({"partition": "home", "offset": "source"})
    )


def find_written(records: DataFrame, logs: DataFrame) -> DataFrame:
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

TASKS = 4  # that look closer at logs of few records; of long ones there are more
KEYS = 100_000  # for each of them, at most


def breaches(records: DataFrame, logs: Logs, *, few: bool) -> DataFrame:
    """The breaches in the topics of these logs, which have few records or many.

    Out: as the table `comparisons`.
    """
    stated = in_memory(records.sparkSession, logs, LOGS)
    wanted, found = find_causes(inputs_of(records, stated)), find_written(records, stated)
    sides, tasks = unite_sides(wanted, found, count_beside(records, stated)), TASKS
    if not few:
        differing = keys_that_differ(wanted, found).localCheckpoint()
        number = differing.count()
        keys = f.broadcast(differing) if number <= FEW else differing
        sides, tasks = sides.join(keys, ["log", "key"], "left_semi"), max(TASKS, number // KEYS + 1)
    parts = [find_breaches(sides, logs, tasks)]
    if any(log["exactly_once"] and not log["folded"] for log in logs):
        parts.append(find_disordered(wanted, found))
    if any(not log["exactly_once"] and not log["folded"] for log in logs):
        parts.append(find_interrupting(wanted, found))
    united = reduce(DataFrame.unionByName, parts)
    names = f.broadcast(stated.select("log", "trial", "promise"))
    return united.join(names, "log").select(
        *comparison(
            f.col("promise"),
            **{name: f.col(name) for name in ("anomaly", "partition", "key", "place", "expected", "observed")},
            comparisons=f.lit(0),
        )
    )


def count_beside(records: DataFrame, logs: DataFrame) -> DataFrame:
    """How many records of each key are in the role in which another promise reports those that are lost.

    Out: log, key, value LONG.
    """
    roles = logs.where(f.col("beside").isNotNull()).select("log", "trial", f.col("beside").alias("role"))
    return (
        records.select("trial", "role", "key")
        .join(f.broadcast(roles), ["trial", "role"])
        .groupBy("log", "key")
        .agg(f.count("*").alias("value"))
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


def find_disordered(wanted: DataFrame, found: DataFrame) -> DataFrame:
    """Under exactly-once: the records that stand behind one of a later cause, in narrow rows, as there may be many.

    Out: as `find_breaches`.
    """
    wanted = wanted.withColumn("partition", f.col("home"))
    wanted, found = (scope(side.where("not folded and exactly_once")) for side in (wanted, found))
    before = f.lag("source").over(Window.partitionBy("log", "partition").orderBy("offset"))
    pairs = pair(wanted, found).where("partition = home").withColumn("behind", before).where("source < behind")
    return describe_disorder(pairs)


def scope(rows: DataFrame) -> DataFrame:
    """Records or causes with the partition in which they are numbered; -1: in all of them together."""
    return rows.withColumn("scope", f.when(f.col("own_key").isNotNull(), f.col("partition")).otherwise(f.lit(-1)))


def pair(wanted: DataFrame, found: DataFrame) -> DataFrame:
    """The n-th record of each key with its n-th cause, of keys with as many records as causes. In: with a scope.

    Out: log, key, role, home, source, partition, offset.
    """
    of_key = ["log", "key", "scope"]

    def numbers(*order: str) -> dict[str, Column]:
        within = Window.partitionBy(*of_key)
        return {"nth": f.row_number().over(within.orderBy(*order)), "size": f.count("*").over(within)}

    causes = wanted.withColumns(numbers("home", "source")).select(*of_key, "nth", "size", "home", "source")
    records = found.withColumns(numbers("partition", "offset"))
    records = records.select(*of_key, "nth", "size", "role", "partition", "offset")
    return causes.join(records, [*of_key, "nth", "size"])


def find_interrupting(wanted: DataFrame, found: DataFrame) -> DataFrame:
    """Under at-least-once: the records that neither continue what is there, nor repeat some of it.

    Out: as `find_breaches`.
    """
    identity = ["log", "key", "value"]
    absent = f.lit(-(2**62))  # so that the values of two tombstones are equal
    wanted, found = (
        side.where("not folded and not exactly_once").withColumn("value", f.coalesce("value", absent))
        for side in (wanted, found)
    )
    at = place("home", "source")
    causes = wanted.groupBy(*identity).agg(*(f.max_by(name, at).alias(name) for name in ("home", "source")))
    in_partition = Window.partitionBy("log", "partition")
    earlier = in_partition.orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
    in_place = (
        found.select(*identity, "role", "partition", "offset")
        .join(causes, identity)
        .where("partition = home")
        .withColumn("number", f.dense_rank().over(in_partition.orderBy("source")))
        .withColumns({"behind": f.max("source").over(earlier), "reached": f.max("number").over(earlier)})
    )
    return describe_disorder(in_place.where(f.col("number") > f.coalesce("reached", f.lit(0)) + 1))


def describe_disorder(rows: DataFrame) -> DataFrame:
    """In: records that do not follow the one whose cause is at the offset `behind`, if there is one."""
    behind = f.concat(f.lit("of a record behind "), text_of_place("input", offset="behind"))
    return rows.select(
        "log",
        f.lit("wrong-order").alias("anomaly"),
        "partition",
        "key",
        place_text(f.col("role"), place()).alias("place"),
        f.when(f.col("behind").isNotNull(), behind).otherwise(f.lit("of the first record")).alias("expected"),
        f.concat(f.lit("of "), text_of_place("input", offset="source")).alias("observed"),
    )
