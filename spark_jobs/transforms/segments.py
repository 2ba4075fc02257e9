"""The promises `atomicity`, `isolation`, `fencing` and `ownership`: transactions, from the brokers' log segments.

In: entries, the columns of `onceproof.model.segments.LogEntry` with the number of the trial; records of the trials'
topics (trial, role, partition, offset, timestamp, key, value), as a read_committed reader saw them; a record that it
could not decode has no key.
"""

from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from onceproof.model.segments import ABORT, COMMIT, COORDINATOR, DATA, OFFSETS, POSITION, PREPARE_COMMIT
from spark_jobs.transforms.comparisons import comparison, fact, records_text
from spark_jobs.transforms.ownership import compare_ownership
from spark_jobs.transforms.places import text_of_place

QUEUE = "dead-letters"  # a role of trials with the fact `queue`
OF_CLIENTS = ("input", "answers")  # roles of topics to which no task writes

# What an input record makes each topology (`streams_app`) write into the same partition: `each` one, the `first` of its
# key, one that asks to `delete`, a `version` of a table, one that is `taken`, or one that is `skipped` as poison; under
# its own key or a fixed one. `once`: an entry of a store, which may be cached, so only the last record of a key counts.
# `judged`: how its value follows from that of the input, as the `value` itself, as the `change` that a put or a delete
# makes, or as a `version`; null if another promise judges it.
EFFECTS = "check string, role string, when string, once boolean, fixed_key int, judged string"
_OF_TOPOLOGY = [
    ("enumerator", "output", "each", False, None, None),
    ("enumerator", "ids-changelog", "first", True, None, None),
    ("enumerator", "counter-changelog", "first", True, 0, None),
    ("copy", "output", "each", False, None, None),
    ("counting", "output", "each", False, None, None),
    ("counting", "last-changelog", "each", True, None, "value"),
    ("interactive-queries", "output", "each", False, None, None),
    ("interactive-queries", "last-changelog", "each", True, None, "value"),
    ("dedup", "output", "first", False, None, None),
    ("dedup", "seen-changelog", "first", True, None, "value"),
    ("dead-letters", "output", "taken", False, None, None),
    ("dead-letters", QUEUE, "skipped", False, None, None),
    ("deleter", "output", "delete", False, None, None),
    ("deleter", "records-changelog", "each", True, None, "change"),
    ("as-of-join", "output", "each", False, None, None),
    ("as-of-join", "versions-changelog", "version", True, None, "version"),
    ("global-join", "output", "each", False, None, None),
    ("scans", "output", "delete", False, None, None),
    ("scans", "records-changelog", "each", True, None, "change"),
    ("values", "values-changelog", "each", True, None, "value"),
]
DELETE = 0
LOG = ("trial", "role", "partition")
PART = (*LOG, "producer", "number")
TRANSACTION = ("trial", "producer", "decision")  # the decision's place
NONE = ""  # while there is no decision


def transactions(
    positions: DataFrame, parts: DataFrame, seen: DataFrame, tallied: DataFrame, records: DataFrame, trials: DataFrame
) -> tuple[DataFrame, DataFrame]:
    """Each transaction in each log that it belongs to: how it ended there, and what is due to the inputs it commits.

    In: the committed positions (`_positions`), what `number_parts` gives of the entries, `assign_parts` of the records,
    and `tally` of that; trials (trial INT, check STRING). Out: the table `transactions` of `spark_jobs.tables`; and the
    frame that it uses twice: what is due, and what was written.
    """
    effects = parts.sparkSession.createDataFrame(_OF_TOPOLOGY, EFFECTS)
    stated = [f.coalesce(fact(name) == 1, f.lit(False)).alias(name) for name in ("punctuated", "queue", "waits")]
    wanted = f.broadcast(
        trials.select("trial", "check", *stated)
        .join(f.broadcast(effects), "check")
        .where((f.col("role") != QUEUE) | f.col("queue"))
        .where(~f.col("waits") | (f.col("role") != "output"))  # which comes later than its input is committed
        .select("trial", "role", "when", "once", "fixed_key", "judged", "punctuated")
    )
    pairs = _pairs(_due(positions, records, wanted), _count_written(seen, parts, wanted))
    judged = f.broadcast(wanted.select("trial", "role").distinct().withColumn("judged", f.lit(True)))
    of_parts = (
        parts.join(tallied.drop("begin"), list(PART), "left")
        .withColumns({name: f.coalesce(name, f.lit(0)) for name in ("visible", "decoded")})
        .join(judged, ["trial", "role"], "left")
        .join(pairs, [*TRANSACTION, *LOG[1:]], "left")
    )
    # It is not for the promise `atomicity` to report what was not seen or not decoded.
    known = f.col("judged") & (f.col("decoded") == f.col("records"))
    counts = [f.when(known, f.coalesce(name, f.lit(0))).alias(name) for name in COUNTS]
    rows = of_parts.select(*_PLACED, *counts, f.when(known, f.col("key")).alias("key"))
    return rows.unionByName(_nothing(pairs, parts, positions)), pairs


COUNTS = ("due", "written", "missing", "foreign")
_PLACED = (*TRANSACTION, "decided", *LOG[1:], "place", "first_offset", "marker_offset", "outcome", "records", "visible")


def assign_parts(entries: DataFrame, batches: DataFrame, records: DataFrame) -> DataFrame:
    """The records, each with the part of a transaction (see `PART`) that it belongs to: number -1 if to none.

    Producer and number are null if no batch of the log holds the record.
    """
    outside = entries.where((f.col("kind") == DATA) & ~f.col("transactional")).withColumn(
        "number", f.lit(-1).cast("long")
    )
    intervals = batches.where(f.col("kind") == DATA).unionByName(outside, allowMissingColumns=True)
    return within(records, intervals.select(*LOG, "first", "last", "producer", "number"))


def tally(seen: DataFrame) -> DataFrame:
    """How many records of each part were seen, how many of them decoded, and where the first of them is."""
    return seen.groupBy(*PART).agg(
        f.count("*").alias("visible"), f.count("key").alias("decoded"), f.min("offset").alias("begin")
    )


def number_parts(entries: DataFrame) -> tuple[DataFrame, DataFrame]:
    """The parts of transactions that producers wrote, each numbered within its log; and those parts, with the
    decisions.

    In each log, a producer's transactions follow one another, each ended by a marker; so the coordinator's decisions
    about transactions in a log match them one to one.
    """
    is_marker = f.col("kind").isin(COMMIT, ABORT)
    in_order = Window.partitionBy(*LOG, "producer").orderBy("first")
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)
    written = entries.where((f.col("role") != COORDINATOR) & f.col("transactional") & (f.col("producer") >= 0))
    numbered = written.withColumn("number", f.coalesce(f.sum(is_marker.cast("int")).over(before), f.lit(0)))
    ended = numbered.groupBy(*PART).agg(
        f.min(f.when(~is_marker, f.col("first"))).alias("begin"),
        f.max(f.when(is_marker, f.col("first"))).alias("marker_offset"),
        f.max(f.when(is_marker, f.col("kind"))).alias("marker"),
        f.sum(f.when(~is_marker, f.col("last") - f.col("first") + 1)).alias("records"),
    )
    of_log = Window.partitionBy("trial", "of_role", "of_partition", "producer").orderBy("partition", "first")
    decisions = entries.where((f.col("role") == COORDINATOR) & f.col("of_role").isNotNull()).select(
        "trial",
        f.col("of_role").alias("role"),
        f.col("of_partition").alias("partition"),
        "producer",
        (f.row_number().over(of_log) - 1).cast("long").alias("number"),
        text_of_place(f.col("role"), offset="first").alias("decided_at"),
        f.col("first").alias("decided_offset"),
        f.col("kind").alias("decided_kind"),
    )
    held = f.coalesce("begin", "marker_offset")
    parts = ended.join(decisions, list(PART), "full").select(
        *PART,
        f.coalesce("decided_at", f.lit(NONE)).alias("decision"),
        f.when(f.col("decided_at").isNull(), _outcome("marker")).otherwise(_outcome("decided_kind")).alias("decided"),
        f.when(held.isNull(), f.col("decided_at")).otherwise(text_of_place(f.col("role"), offset=held)).alias("place"),
        f.coalesce(held, "decided_offset").alias("first_offset"),
        "marker_offset",
        _outcome("marker").alias("outcome"),
        f.coalesce("records", f.lit(0)).alias("records"),
    )
    return numbered.where(~is_marker), parts


def _outcome(kind: str) -> Column:
    return (
        f.when(f.col(kind).isNull(), f.lit("open"))
        .when(f.col(kind).isin(COMMIT, PREPARE_COMMIT), f.lit("committed"))
        .otherwise(f.lit("aborted"))
    )


def within(records: DataFrame, intervals: DataFrame) -> DataFrame:
    """Records with the columns of the offset interval (trial, role, partition, first, last, ...) in which they lie.

    Null where they lie in none; intervals do not overlap. The offsets are cut into stretches, and a record is compared
    with the few intervals of its own stretch: there is no need to sort the records, or to move them.
    """
    carried = [name for name in intervals.columns if name not in (*LOG, "first", "last")]
    stretches = f.explode(f.sequence(_stretch("first"), _stretch("last")))
    of = f.broadcast(intervals.withColumn("stretch", stretches)).alias("of")
    read = records.withColumn("stretch", _stretch("offset")).alias("read")
    same = [f.col(f"read.{name}") == f.col(f"of.{name}") for name in (*LOG, "stretch")]
    inside = f.col("read.offset").between(f.col("of.first"), f.col("of.last"))
    return read.join(of, [*same, inside], "left").select(
        *(f"read.{name}" for name in records.columns), *(f"of.{name}" for name in carried)
    )


def _stretch(offset: str) -> Column:
    return f.shiftright(offset, 7)  # about as many offsets as a batch has records


def _positions(batches: DataFrame, parts: DataFrame) -> DataFrame:
    """The positions in the input that were committed: which inputs (partition, first, last) by which transaction, and
    when (`at`, epoch ms).
    """
    committed = (
        batches.where((f.col("kind") == POSITION) & (f.col("of_role") == "input"))
        .select(*PART, "first", "of_partition", "position", f.col("timestamp").alias("at"))
        .join(parts.where(f.col("decided") == "committed").select(*PART, "decision"), list(PART))
    )
    before = Window.partitionBy("trial", "of_partition").orderBy("partition", "first")
    reached = f.max("position").over(before.rowsBetween(Window.unboundedPreceding, -1))
    return committed.select(
        *TRANSACTION,
        f.col("partition").alias("at_partition"),
        f.col("first").alias("at_offset"),
        "at",
        f.lit("input").alias("role"),
        f.col("of_partition").alias("partition"),
        f.coalesce(reached, f.lit(0)).alias("first"),
        (f.col("position") - 1).alias("last"),
    )


def _due(positions: DataFrame, records: DataFrame, wanted: DataFrame) -> DataFrame:
    """The effects that each committed transaction must have.

    Out: trial, producer, decision, role, partition, offset (of the input), key, value LONG (null if it is not judged),
    once.
    """
    ranges = positions.where(f.col("last") >= f.col("first")).select(*LOG, "first", "last", "producer", "decision")
    # The first record of a key may not have been committed; the second one does not become the first by that.
    is_first = f.min("offset").over(Window.partitionBy("trial", "partition", "key")) == f.col("offset")
    inputs = records.where((f.col("role") == "input") & f.col("key").isNotNull()).withColumn("is_first", is_first)
    gives = (
        f.when(f.col("when") == "first", f.col("is_first"))
        .when(f.col("when") == "delete", f.col("value") == DELETE)
        .when(f.col("when") == "version", f.col("value") <= 0)
        .when(f.col("when") == "taken", f.col("value") >= 0)
        .when(f.col("when") == "skipped", f.col("value") < 0)
        .otherwise(f.lit(True))
    )
    value = (
        f.when(f.col("judged") == "value", f.col("value"))
        .when(f.col("judged") == "change", f.when(f.col("value") != DELETE, f.col("value")))
        .when(f.col("judged") == "version", f.when(f.col("value") < 0, -f.col("value")))
    )
    return (
        within(inputs, ranges)
        .where("producer is not null")
        .drop("role")
        .join(wanted, "trial")
        .where(gives)
        .withColumns({"key": f.coalesce("fixed_key", "key"), "value": value.cast("long")})
        .select(*TRANSACTION, "role", "partition", "offset", "key", "value", "once")
    )


def _count_written(seen: DataFrame, parts: DataFrame, wanted: DataFrame) -> DataFrame:
    """The effects that each committed transaction has, as `_due`, the offset that of what was written.

    It lacks what a punctuator wrote, which no input causes.
    """
    value = f.when(f.col("judged").isNotNull(), f.col("value"))
    return (
        seen.join(f.broadcast(parts.where(f.col("decided") == "committed").select(*PART, "decision")), list(PART))
        .join(f.broadcast(wanted.select("trial", "role", "once", "judged", "punctuated").distinct()), ["trial", "role"])
        .where(~(f.col("punctuated") & (f.col("key") < 0)))
        .select(*TRANSACTION, "role", "partition", "offset", "key", value.cast("long").alias("value"), "once")
    )


def _pairs(due: DataFrame, written: DataFrame) -> DataFrame:
    """The due and the written records, counted for each part.

    Of entries of a store only the last of each key counts; another value than the one that is due is one that is
    missing and one that is foreign.
    """
    is_due = f.col("is_due")
    counted = (
        due.withColumn("is_due", f.lit(True))
        .unionByName(written.withColumn("is_due", f.lit(False)))
        .groupBy(*TRANSACTION, "role", "partition", "key")
        .agg(
            f.max("once").alias("once"),
            f.count_if(is_due).alias("due"),
            f.count_if(~is_due).alias("written"),
            f.max_by("value", f.when(is_due, f.col("offset"))).alias("due_value"),
            f.max_by("value", f.when(~is_due, f.col("offset"))).alias("written_value"),
        )
    )
    at_most = f.when(f.col("once"), f.lit(1)).otherwise(f.lit(2**62))
    counted = counted.withColumn("due", f.least("due", at_most)).withColumn("written", f.least("written", at_most))
    both = f.col("once") & (f.col("due") > 0) & (f.col("written") > 0)
    other = (both & ~f.col("due_value").eqNullSafe(f.col("written_value"))).cast("int")
    difference = f.col("due") - f.col("written")
    return counted.groupBy(*TRANSACTION, "role", "partition").agg(
        f.sum("due").alias("due"),
        f.sum("written").alias("written"),
        f.sum(f.greatest(difference, f.lit(0)) + other).alias("missing"),
        f.sum(f.greatest(-difference, f.lit(0)) + other).alias("foreign"),
        f.min(f.when((difference != 0) | (other != 0), f.col("key"))).alias("key"),
    )


def _nothing(pairs: DataFrame, parts: DataFrame, positions: DataFrame) -> DataFrame:
    """Where something is due from a transaction that wrote nothing there; the place is the position that it commits."""
    first = positions.groupBy(*TRANSACTION).agg(f.min(f.struct("at_partition", "at_offset")).alias("at"))
    absent = pairs.join(parts.select(*TRANSACTION, *LOG[1:]), [*TRANSACTION, *LOG[1:]], "left_anti")
    return absent.join(first, list(TRANSACTION)).select(
        *TRANSACTION,
        f.lit("committed").alias("decided"),
        *LOG[1:],
        text_of_place(OFFSETS, "at.at_partition", "at.at_offset").alias("place"),
        f.col("at.at_offset").alias("first_offset"),
        f.lit(None).cast("long").alias("marker_offset"),
        f.lit("nothing").alias("outcome"),
        f.lit(0).cast("long").alias("records"),
        f.lit(0).cast("long").alias("visible"),
        *COUNTS,
        "key",
    )


# --- the promises --------------------------------------------------------------------------------------------


def compare_atomicity(parts: DataFrame, entries: DataFrame, trials: DataFrame) -> DataFrame:
    """One comparison for each transaction, of its first part that is wrong or else of its first; and for outsiders.

    In: the table `transactions`; trials (trial, facts), whose fact `ended` is 0 if the drive failed, so that
    transactions may be open. Out: as the table `comparisons`.
    """
    parts = parts.join(f.broadcast(trials.select("trial", fact("ended").alias("ended"))), "trial")
    state = (
        f.when(f.col("outcome") == "open", f.when(f.col("ended") == 1, f.lit("hanging-transaction")))
        .when(f.col("outcome") != f.col("decided"), f.lit("torn-transaction"))
        .when((f.col("missing") > 0) | (f.col("foreign") > 0), f.lit("torn-transaction"))
    )
    counted = (f.col("decided") == "committed") & f.col("due").isNotNull()
    committed = f.concat(f.lit("committed, "), _effects_text("due"))
    undecided = (f.col("outcome") == "open") & (f.col("decision") == NONE)
    expected = (
        f.when(undecided, f.lit("committed or aborted"))
        .when((f.col("outcome") == "nothing") | ((f.col("outcome") == "committed") & counted), committed)
        .otherwise(f.col("decided"))
    )
    observed = (
        f.when(f.col("outcome") == "open", f.concat(f.lit("open, "), records_text(f.col("records"))))
        .when(
            (f.col("outcome") == "committed") & counted,
            f.concat_ws(
                ", ",
                f.lit("committed"),
                _effects_text("written"),
                *(f.when(f.col(n) > 0, f.format_string(f"%d {n}", n)) for n in ("missing", "foreign")),
            ),
        )
        .otherwise(f.col("outcome"))
    )
    reported = f.struct(
        state.alias("anomaly"), "partition", "key", "place", expected.alias("expected"), observed.alias("observed")
    )
    in_order = f.struct(state.isNull(), "role", "partition", "first_offset")
    chosen = parts.groupBy(*TRANSACTION).agg(f.min_by(reported, in_order).alias("row")).select("trial", "row.*")
    outside = entries.where(
        ~f.col("transactional")
        & ((f.col("kind") == POSITION) | ((f.col("kind") == DATA) & ~f.col("role").isin(*OF_CLIENTS)))
    ).select(
        "trial",
        f.lit("torn-transaction").alias("anomaly"),
        "partition",
        f.lit(None).cast("int").alias("key"),
        _place("first").alias("place"),
        f.lit("in a transaction").alias("expected"),
        f.lit("outside").alias("observed"),
    )
    return _comparisons("atomicity", chosen.unionByName(outside))


def _effects_text(count: str) -> Column:
    return f.when(f.col(count) == 1, f.lit("1 effect")).otherwise(f.format_string("%d effects", count))


def _place(offset: str) -> Column:
    return text_of_place(f.col("role"), offset=offset)


def _comparisons(promise: str, rows: DataFrame) -> DataFrame:
    named = {name: f.col(name) for name in ("anomaly", "partition", "key", "place", "expected", "observed")}
    return rows.select(*comparison(promise, **named))


def compare_isolation(parts: DataFrame, entries: DataFrame, tallied: DataFrame) -> DataFrame:
    """One comparison for each part of a transaction, one for what each log holds outside of any, one for strangers.

    In: the table `transactions`; what `tally` gives. Out: as the table `comparisons`.
    """
    committed = f.when(f.col("outcome") == "committed", f.col("records")).otherwise(f.lit(0))
    inside = parts.where((f.col("role") != OFFSETS) & (f.col("records") > 0)).select(
        *LOG, "first_offset", committed.alias("due"), "visible"
    )
    outside = (
        entries.where((f.col("kind") == DATA) & ~f.col("transactional"))
        .groupBy(*LOG)
        .agg(f.min("first").alias("first_offset"), f.sum(f.col("last") - f.col("first") + 1).alias("due"))
        .join(tallied.where("number = -1").groupBy(*LOG).agg(f.sum("visible").alias("visible")), list(LOG), "left")
        .withColumn("visible", f.coalesce("visible", f.lit(0)))
    )
    strangers = tallied.where("number is null").select(
        *LOG, f.col("begin").alias("first_offset"), f.lit(0).alias("due"), "visible"
    )
    rows = inside.unionByName(outside).unionByName(strangers).select(
        "trial",
        f.when(f.col("due") != f.col("visible"), f.lit("isolation-breach")).alias("anomaly"),
        "partition",
        f.lit(None).alias("key"),
        _place("first_offset").alias("place"),
        f.concat(records_text(f.col("due")), f.lit(" visible")).alias("expected"),
        f.concat(records_text(f.col("visible")), f.lit(" visible")).alias("observed"),
    )  # fmt: skip
    return _comparisons("isolation", rows)


def compare_fencing(entries: DataFrame) -> DataFrame:
    """One comparison for each producer and log: its epochs grow, and in each the sequences follow one another.

    The group coordinator writes positions for the producer, without its sequences. Out: as the table `comparisons`.
    """
    of_writer = Window.partitionBy(*LOG, "producer")
    in_order = of_writer.orderBy("first")
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)
    # The last data batch that came before: markers and positions have no sequence.
    last = f.last(
        f.when(f.col("kind") == DATA, f.struct("epoch", "last_sequence")), ignorenulls=True
    ).over(before)  # fmt: skip
    follows = (last["epoch"] == f.col("epoch")) & (last["last_sequence"] != 2**31 - 1)
    written = (
        entries.where((f.col("role") != COORDINATOR) & (f.col("producer") >= 0))
        .withColumn("reached", f.max("epoch").over(before))
        .withColumn("following", f.when(follows, last["last_sequence"] + 1).otherwise(f.lit(0)))
    )
    falls = f.col("epoch") < f.col("reached")
    jumps = (f.col("kind") == DATA) & (f.col("sequence") != f.col("following"))
    expected = f.when(falls, f.format_string("epoch %d or more", "reached")).otherwise(
        f.format_string("sequence %d", "following")
    )
    observed = f.when(falls, f.format_string("epoch %d", "epoch")).otherwise(f.format_string("sequence %d", "sequence"))
    breach = f.coalesce(falls, f.lit(False)) | jumps
    reported = f.struct(
        f.when(breach, f.lit("fencing-breach")).alias("anomaly"),
        _place("first").alias("place"),
        f.when(breach, expected).otherwise(f.lit("growing")).alias("expected"),
        f.when(breach, observed).otherwise(f.lit("growing")).alias("observed"),
    )
    chosen = written.groupBy(*LOG, "producer").agg(f.min_by(reported, f.struct(~breach, "first")).alias("row"))
    return _comparisons("fencing", chosen.select("trial", "partition", f.lit(None).alias("key"), "row.*"))


def compare_positions(positions: DataFrame) -> DataFrame:
    """One comparison for each partition of the input: the positions that are committed never fall.

    In: as of `_positions`. Out: as the table `comparisons`.
    """
    positions = positions.withColumn("position", f.col("last") + 1)
    falls = f.col("position") < f.col("first")  # which is the highest one before
    reported = f.struct(
        f.when(falls, f.lit("fencing-breach")).alias("anomaly"),
        text_of_place(OFFSETS, "at_partition", "at_offset").alias("place"),
        f.when(falls, f.format_string("position %d or more", "first")).otherwise(f.lit("growing")).alias("expected"),
        f.when(falls, f.format_string("position %d", "position")).otherwise(f.lit("growing")).alias("observed"),
    )
    in_order = f.struct(~falls, "at_partition", "at_offset")
    chosen = positions.groupBy("trial", "partition").agg(f.min_by(reported, in_order).alias("row"))
    return _comparisons("fencing", chosen.select("trial", "partition", f.lit(None).alias("key"), "row.*"))


@dataclass(frozen=True)
class Segments:
    """The tables derived from the log segments: the table `transactions`, and the comparisons of the promises.

    `shared` are frames from which both are made: worth keeping while those are written.
    """

    transactions: DataFrame
    comparisons: DataFrame
    shared: tuple[DataFrame, ...]


def check_segments(entries: DataFrame, records: DataFrame, trials: DataFrame) -> Segments:
    """Compare the log segments of all trials with what was committed, and with what was seen.

    In: see the module; trials (trial INT, check STRING, facts MAP<STRING, LONG>).
    """
    batches, numbers = number_parts(entries)
    seen = assign_parts(entries, batches, records)
    tallied = tally(seen)
    positions = _positions(batches, numbers)
    parts, pairs = transactions(positions, numbers, seen, tallied, records, trials)
    compared = (
        compare_atomicity(parts, entries, trials),
        compare_isolation(parts, entries, tallied),
        compare_fencing(entries),
        compare_positions(positions),
        compare_ownership(positions, records, trials),
    )
    return Segments(parts, reduce(DataFrame.unionByName, compared), (batches, numbers, tallied, pairs, parts))
