"""The promise `windows`, by Spark: what an aggregation by windows of time gives."""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from spark_jobs.transforms.comparisons import comparison, fact, records_text
from spark_jobs.transforms.places import partition_of, place, place_text

SUM_BITS = 22  # of a value; the others are the time at which its window starts
HOPPING, SESSION, SLIDING = 1, 2, 3  # values of the fact `kind`; 0 is tumbling
MORE = 101  # the aggregator of the second stream, which has the odd values, adds what they lack to that
FIRST_TWICE = ", the first one twice"  # and the others once each, as is due
NEVER = 2**62  # offset of a record that does not come
COUNTED = ("lost-record", "duplicate-output")  # anomalies that are said in numbers of results
FACTS = ("kind", "size", "grace", "suppressed", "cogrouped", "limit")
WINDOW = ("trial", "key", "start", "end")
SESSIONS = "array<struct<start: bigint, end: bigint, sum: bigint>>"
UPDATES = "array<struct<start: bigint, end: bigint, sum: bigint, source: bigint>>"


def compare_windows(records: DataFrame, trials: DataFrame) -> DataFrame:
    """One comparison for each window, with the output for it and the first breach of it, if there is one.

    A window is identified by its key, start and end. Suppressed, it is emitted when it has closed, else at each update.
    Out: as the table `comparisons`.
    """
    trials = trials.where(fact("kind").isNotNull())  # else the drive failed at once: nothing is known of its windows
    stated = f.broadcast(trials.select("trial", *(fact(name).alias(name) for name in FACTS)))
    both = due(records, stated).join(collect_results(records, stated), list(WINDOW), "full")
    given, there = f.col("given"), f.coalesce("there", f.array())
    number = f.size(there)
    wanted = f.when(f.col("why").isNotNull(), f.lit(0)).otherwise(f.size(given))
    from_ = partition_of(f.col("source"))
    astray = f.filter(there, lambda result: partition_of(result["place"]) != from_)
    # The first place at which a result differs from the one that is due, from 0 on.
    differs = f.array_position(
        f.zip_with(
            given, there, lambda due_, result: (due_["sum"] == result["sum"]) & (due_["made"] == result["made"])
        ),
        f.lit(False),
    )
    which = (
        f.when(given.isNull(), f.lit("unexpected-record"))
        .when(wanted == 0, f.when(number > 0, f.lit("early-result")))
        .when(f.size(astray) > 0, f.lit("wrong-partition"))
        .when(number < wanted, f.lit("lost-record"))
        .when(number > wanted, f.lit("duplicate-output"))
        .when(differs > 0, f.lit("differs"))
    )
    judged = (
        both.withColumns(
            {"which": which, "wanted": wanted, "number": number, "astray": f.get(astray, f.lit(0)), "differs": differs}
        )
        .where((f.col("wanted") > 0) | (f.col("number") > 0))
        .withColumn("due", f.get("given", f.greatest(f.col("differs"), f.lit(1)).cast("int") - 1))
        .withColumn("result", f.get("there", f.greatest(f.col("differs"), f.lit(1)).cast("int") - 1))
        .withColumn("last", f.element_at("there", f.when(f.col("number") > 0, f.lit(-1))))
    )
    return judged.select(*_columns(judged))


def _columns(_: DataFrame) -> list[Column]:
    which, last, due_, result = (f.col(name) for name in ("which", "last", "due", "result"))
    named = f.format_string(" of the window from %d to %d", "start", "end")
    partition = "partition %d"
    value = due_["sum"] != result["sum"]
    where = (
        f.when(which == "lost-record", f.col("source"))
        .when(which == "wrong-partition", f.col("astray")["place"])
        .when(which == "differs", result["place"])
        .otherwise(last["place"])
    )
    return comparison(
        "windows",
        anomaly=f.when(
            which == "differs", f.when(value, f.lit("wrong-value")).otherwise(f.lit("wrong-timestamp"))
        ).otherwise(which),
        partition=partition_of(where),
        key=f.col("key"),
        place=f.when(which == "lost-record", place_text("input", where)).otherwise(place_text("output", where)),
        expected=f.when(which == "unexpected-record", f.lit("nothing"))
        .when(which == "early-result", f.concat(f.lit("nothing: "), f.col("why")))
        .when(which == "wrong-partition", f.format_string(partition, partition_of(f.col("source"))))
        .when(which.isin(*COUNTED), f.concat(records_text(f.col("wanted")), named))
        .when(which == "differs", _words(due_))
        .otherwise(_words(last)),
        observed=f.when(which == "wrong-partition", f.format_string(partition, partition_of(where)))
        .when(which.isin(*COUNTED), f.concat(records_text(f.col("number")), named, _twice()))
        .when(which == "differs", _words(result))
        .otherwise(_words(last)),
    )


def _twice() -> Column:
    """The words for one result more than is due, if it is the first that is due, once more."""
    due_ = f.concat(f.slice("given", 1, 1), "given")
    pairs = f.zip_with("there", due_, lambda one, other: (one["sum"] == other["sum"]) & (one["made"] == other["made"]))
    is_first = (f.col("number") == f.col("wanted") + 1) & f.forall(pairs, lambda is_due: is_due)
    return f.when((f.col("which") == "duplicate-output") & is_first, f.lit(FIRST_TWICE)).otherwise(f.lit(""))


def _words(update: Column) -> Column:
    total = f.when(update["sum"] == 0, f.lit("nothing")).otherwise(update["sum"].cast("string"))
    return f.concat(total, f.lit(" at "), update["made"].cast("string"))


def collect_results(records: DataFrame, stated: DataFrame) -> DataFrame:
    """The results of each window. Out: WINDOW, there ARRAY<STRUCT<place, sum, made: LONG>> in order."""
    made = f.unix_millis("timestamp")
    results = (
        records.where(f.col("role") == "output")
        .join(stated, "trial")
        .withColumn("start", f.shiftright("value", SUM_BITS))
        .withColumn("end", f.when(f.col("kind") == SESSION, made).otherwise(f.col("start") + f.col("size")))
    )
    result = f.struct(
        place().alias("place"), f.col("value").bitwiseAND(f.lit(2**SUM_BITS - 1)).alias("sum"), made.alias("made")
    )
    return results.groupBy(*WINDOW).agg(f.array_sort(f.collect_list(result)).alias("there"))


def due(records: DataFrame, stated: DataFrame) -> DataFrame:
    """The state of each window of the input, open or closed, and the results that are due.

    Out: WINDOW, given ARRAY<STRUCT<number, sum, made: LONG>>: all updates, or, suppressed, the last; source LONG: the
    place of the record that made the last; why STRING: where none is due.
    """
    in_order = Window.partitionBy("trial", "partition").orderBy("offset").rowsBetween(Window.unboundedPreceding, 0)
    is_odd = (f.col("cogrouped") == 1) & (f.col("value") % 2 != 0)
    # The end of a window that slides is one of its times.
    kept = f.col("grace") + (
        f.when(f.col("kind") == SESSION, f.col("size")).when(f.col("kind") == SLIDING, f.lit(1)).otherwise(0)
    )
    inputs = (
        records.where(f.col("role") == "input")
        .join(stated, "trial")
        .withColumns(
            {
                "at": f.unix_millis("timestamp"),
                "source": place(),
                "value": f.when(is_odd, MORE - f.col("value")).otherwise(f.col("value")),
            }
        )
        .withColumn("closed", f.max("at").over(in_order) - kept)
    )
    ends = inputs.groupBy("trial", "partition").agg(f.max("closed").alias("closed"))
    updates = hold_back(
        of_times(inputs.where(~f.col("kind").isin(SESSION, SLIDING)))
        .unionByName(of_sessions(inputs.where(f.col("kind") == SESSION)))
        .unionByName(of_slides(inputs.where(f.col("kind") == SLIDING))),
        inputs,
    )
    update = f.struct("number", "sum", "made")
    of_windows = updates.groupBy(*WINDOW).agg(
        f.array_sort(f.collect_list(f.when(f.col("comes"), update))).alias("given"),
        f.coalesce(f.max(f.when(f.col("comes"), f.col("source"))), f.max("source")).alias("source"),
    )
    suppressed = f.col("suppressed") == 1
    last = f.get("given", f.size("given") - 1)
    return (
        of_windows.withColumn("partition", partition_of(f.col("source")))
        .join(f.broadcast(ends), ["trial", "partition"])
        .join(stated, "trial")
        .select(
            *WINDOW,
            f.when(suppressed, f.array(last)).otherwise(f.col("given")).alias("given"),
            "source",
            f.when(f.size("given") == 0, f.lit("its time is not up"))
            .when(suppressed & (last["sum"] == 0), f.lit("another took it in"))
            .when(suppressed & (f.col("end") > f.col("closed")), f.lit("it has not closed"))
            .alias("why"),
        )
    )


def of_times(inputs: DataFrame) -> DataFrame:
    """Updates of windows that begin at fixed times: what they hold after each of their records.

    In: records of an input with facts, at, source, closed LONG. Out: WINDOW, number, sum, made, source LONG.
    """
    at, size = f.col("at"), f.col("size")
    advance = f.when(f.col("kind") == HOPPING, f.floor(size / 2)).otherwise(size)
    last = at - f.pmod(at, advance)
    so_far = Window.partitionBy("trial", "partition", "key", "start").orderBy("offset")
    return (
        inputs.withColumn("start", f.explode(f.sequence(last, at - size + 1, -advance)))
        .withColumn("end", f.col("start") + size)
        .where(f.col("end") > f.col("closed"))
        .select(
            *WINDOW,
            f.col("offset").alias("number"),
            f.sum("value").over(so_far).alias("sum"),
            f.max("at").over(so_far).alias("made"),
            "source",
        )
    )


def of_slides(inputs: DataFrame) -> DataFrame:
    """Updates of windows that slide: one ends with each record, and one begins just after it, if a record is in it.

    As `of_times`. A window is there from the first record on by which one of both holds.
    """
    at, size, start = f.col("at"), f.col("size"), f.col("start")
    owner = ("trial", "partition", "key")
    counted = inputs.where(at + size > f.col("closed"))
    bucket = f.floor(at / (size + 2))  # a window and what begins it are in two of them at most
    starts = (
        counted.select(*owner, "size", f.explode(f.array(at - size, at + 1)).alias("start"))
        .distinct()
        .select(
            *owner,
            "start",
            f.explode(f.array(*(f.floor((start - 1) / (size + 2)) + n for n in (0, 1)))).alias("bucket"),
        )
    )
    near = counted.withColumn("bucket", bucket).join(starts, [*owner, "bucket"])
    near = near.where((at >= start - 1) & (at <= start + size))
    window = Window.partitionBy(*owner, "start")
    so_far = window.orderBy("offset")
    is_inside = at >= start

    def first(condition: Column) -> Column:
        return f.min(f.when(condition, f.col("offset"))).over(window)

    behind = f.when(first(at == start - 1).isNotNull(), f.greatest(first(at == start - 1), first(is_inside)))
    return (
        near.withColumns(
            {
                "there_from": f.least(first(at == start + size), behind),
                "sum": f.sum(f.when(is_inside, f.col("value"))).over(so_far),
                "made": f.max(f.when(is_inside, at)).over(so_far),
                "end": start + size,
            }
        )
        .where((f.col("offset") == f.col("there_from")) | (is_inside & (f.col("offset") > f.col("there_from"))))
        .where(f.col("sum").isNotNull() & (f.col("end") > f.col("closed")))
        .select(*WINDOW, f.col("offset").alias("number"), "sum", "made", "source")
    )


def hold_back(updates: DataFrame, inputs: DataFrame) -> DataFrame:
    """The updates, and whether each is emitted.

    With a limit each waits until its task is so many ms older than it. One that comes meanwhile takes its place.
    In: as `of_times` gives; records of an input with facts, at LONG. Out: WINDOW, number, sum, made, source LONG, comes
    BOOLEAN.
    """
    is_limited = inputs.where(f.col("limit") > 0)
    limits = f.broadcast(is_limited.select("trial", "limit").distinct())
    waiting = (
        updates.withColumn("partition", partition_of(f.col("source")))
        .join(limits, "trial")
        .withColumn("time", f.col("made") + f.col("limit"))
    )
    older = is_limited.select("trial", "partition", f.col("at").alias("time"), f.col("offset").alias("over"))
    from_then_on = Window.partitionBy("trial", "partition").orderBy("time").rangeBetween(0, Window.unboundedFollowing)
    timed = (
        waiting.unionByName(older, allowMissingColumns=True)
        .withColumn("until", f.min("over").over(from_then_on))  # the record with which the wait of an update ends
        .where(f.col("over").isNull())
    )
    begin = f.struct(f.lit(-1).cast("long").alias("until"), f.array().cast("array<bigint>").alias("ends"))

    def waits(so_far: Column, one: Column) -> Column:
        over = f.coalesce(one["until"], f.lit(NEVER))
        until = f.when(one["number"] > so_far["until"], over).otherwise(so_far["until"])
        return f.struct(until.alias("until"), f.concat(so_far["ends"], f.array(until)).alias("ends"))

    limited = (
        timed.groupBy(*WINDOW)
        .agg(f.array_sort(f.collect_list(f.struct("number", "sum", "made", "source", "until"))).alias("all"))
        .withColumn("ends", f.aggregate("all", begin, waits, lambda done: done["ends"]))
        .select(*WINDOW, f.posexplode(f.arrays_zip("all", "ends")), "all")
        .withColumn("next", f.get("all", f.col("pos") + 1)["number"])
        .select(
            *WINDOW,
            *(f.col(f"col.all.{name}").alias(name) for name in ("number", "sum", "made", "source")),
            ((f.col("col.ends") < NEVER) & (f.col("next").isNull() | (f.col("next") > f.col("col.ends")))).alias(
                "comes"
            ),
        )
    )
    others = updates.join(limits, "trial", "anti")
    return others.withColumn("comes", f.lit(True)).unionByName(limited)


def of_sessions(inputs: DataFrame) -> DataFrame:
    """Updates of sessions: what they hold after each of their records, 0 when another has taken them in.

    As `of_times`; the records of a key are folded in their order, since whether one is too late hangs on the
    sessions that are there.
    """
    record = f.struct("offset", "at", "value", "closed", "size", "source")
    begin = f.struct(f.array().cast(SESSIONS).alias("sessions"), f.array().cast(UPDATES).alias("updates"))
    return (
        inputs.groupBy("trial", "partition", "key")
        .agg(f.array_sort(f.collect_list(record)).alias("in_order"))
        .select(
            "trial", "key", f.posexplode(f.aggregate("in_order", begin, _join_sessions, lambda done: done["updates"]))
        )
        .select(
            "trial",
            "key",
            f.col("col.start").alias("start"),
            f.col("col.end").alias("end"),
            f.col("pos").cast("long").alias("number"),
            f.col("col.sum").alias("sum"),
            f.col("col.end").alias("made"),
            f.col("col.source").alias("source"),
        )
    )


def _join_sessions(so_far: Column, record: Column) -> Column:
    """The sessions of a key and their updates, when a record has begun one or joined those that are near."""
    at, gap = record["at"], record["size"]

    def is_near(session: Column) -> Column:
        return (session["start"] <= at + gap) & (session["end"] >= at - gap)

    may_be_open = f.filter(so_far["sessions"], lambda session: session["end"] > record["closed"])
    near = f.filter(may_be_open, is_near)
    rest = f.filter(may_be_open, lambda session: ~is_near(session))
    start = f.least(at, f.array_min(f.transform(near, lambda session: session["start"])))  # skips null
    end = f.greatest(at, f.array_max(f.transform(near, lambda session: session["end"])))
    total = f.aggregate(near, record["value"], lambda before, session: before + session["sum"])
    new = f.array(f.struct(start.alias("start"), end.alias("end"), total.alias("sum")))

    def result(session: Column, total: Column) -> Column:
        return f.struct(
            session["start"].alias("start"),
            session["end"].alias("end"),
            total.alias("sum"),
            record["source"].alias("source"),
        )

    grown = f.when(start < end, f.transform(near, lambda session: result(session, f.lit(0).cast("long"))))
    gone = f.coalesce(grown, f.array().cast(UPDATES))
    updates = f.concat(so_far["updates"], gone, f.transform(new, lambda session: result(session, session["sum"])))
    joined = f.struct(f.concat(rest, new).alias("sessions"), updates.alias("updates"))
    return f.when(end < record["closed"], so_far).otherwise(joined)
