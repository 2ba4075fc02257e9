"""What the enumerator must have done, and where it did not.

The output is a pure function of the input's order within a partition: the n-th new key of partition p gets the ID
n * partitions + p. So the check is exact: replay the input, join, compare.

Every function takes and gives the rows of all trials at once; `trial` is part of every key, group and window. Where
a frame is called `records` it has trial, role, partition, offset, key, value; `trials` has trial, partitions INT.
A `place` is partition and offset as one number, see `places`.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from spark_jobs.transforms.places import offset_of, partition_of, place, place_text

COUNTER_KEY = 0  # the counter store has one entry in each partition, under this key
NAMED = 5  # of many keys, IDs or places this many are named


def replay(records: DataFrame, trials: DataFrame) -> DataFrame:
    """The ID that the order of the input determines for each key.

    A key that was sent to more than one partition has its ID from the first of them.
    Out: trial, key, inputs LONG, input_place LONG, expected_id LONG.
    """
    in_order = Window.partitionBy("trial", "partition").orderBy("input_place")
    return (
        records.where(f.col("role") == "input")
        .groupBy("trial", "partition", "key")
        .agg(f.min(place()).alias("input_place"), f.count("*").alias("inputs"))
        .withColumn("n", f.row_number().over(in_order).cast("long") - 1)
        .join(f.broadcast(trials), "trial")
        .withColumn("expected_id", f.col("n") * f.col("partitions") + f.col("partition"))
        .groupBy("trial", "key")
        .agg(
            f.sum("inputs").alias("inputs"),
            f.min("input_place").alias("input_place"),
            f.min_by("expected_id", "input_place").alias("expected_id"),
        )
    )


def assign(records: DataFrame, replayed: DataFrame) -> DataFrame:
    """Which IDs the output gave to which keys, beside what `replay` expects.

    Out, one row per key and ID: trial, key, id INT, first_place LONG, last_place LONG, outputs LONG, inputs LONG,
    expected_id LONG (the two null where the key is not in the input), shared BOOLEAN: the ID has another key, too,
    leads BOOLEAN: of the keys of its ID this is the smallest, unstable BOOLEAN: the key has another ID, too.
    """
    of_id, of_key = Window.partitionBy("trial", "id"), Window.partitionBy("trial", "key")
    key, identity = f.col("key"), f.col("id")
    return (
        records.where(f.col("role") == "output")
        .groupBy("trial", "key", f.col("value").alias("id"))
        .agg(
            f.min(place()).alias("first_place"),
            f.max(place()).alias("last_place"),
            f.count("*").alias("outputs"),
        )
        .withColumn("smallest", f.min(key).over(of_id))
        .withColumn("largest", f.max(key).over(of_id))
        .withColumn("unstable", f.min(identity).over(of_key) != f.max(identity).over(of_key))
        .join(replayed, ["trial", "key"], "left")
        .select(
            "trial",
            "key",
            "id",
            "first_place",
            "last_place",
            "outputs",
            "inputs",
            "expected_id",
            (f.col("smallest") != f.col("largest")).alias("shared"),
            (f.col("smallest") == key).alias("leads"),
            "unstable",
        )
    )


def assignments(assigned: DataFrame) -> DataFrame:
    """The table `assignments` from what `assign` gives.

    Out: trial, partition, key, id, first_offset, outputs, inputs, expected_id.
    """
    first = f.col("first_place")
    return assigned.select(
        "trial",
        partition_of(first).alias("partition"),
        "key",
        "id",
        offset_of(first).alias("first_offset"),
        "outputs",
        "inputs",
        "expected_id",
    )


def changelogs(records: DataFrame, assigned: DataFrame, trials: DataFrame) -> DataFrame:
    """The table `changelogs`: what the stores ended with beside what the output implies.

    Out: trial, store, partition, key, changelog_offset, changelog_value, previous_offset, previous_value, last,
    output_partition, output_offset, output_value.
    """
    return ids_store(records, assigned).unionByName(counter_store(records, trials))


def ids_store(records: DataFrame, assigned: DataFrame) -> DataFrame:
    """Of each key, the last ID in the changelog beside the last ID in the output; a tombstone counts as no ID.

    Out: as `changelogs`, store `ids`.
    """
    stored = (
        records.where(f.col("role") == "ids-changelog")
        .groupBy("trial", "key")
        .agg(f.max(place()).alias("changelog_place"), f.max_by("value", place()).alias("changelog_value"))
    )
    shown = assigned.groupBy("trial", "key").agg(
        f.max("last_place").alias("output_place"), f.max_by("id", "last_place").alias("output_value")
    )
    either = f.coalesce("changelog_place", "output_place")
    return (
        stored.join(shown, ["trial", "key"], "full")
        .where(f.col("changelog_value").isNotNull() | f.col("output_value").isNotNull())
        .select(
            "trial",
            f.lit("ids").alias("store"),
            partition_of(either).alias("partition"),
            "key",
            offset_of(f.col("changelog_place")).alias("changelog_offset"),
            "changelog_value",
            f.lit(None).cast("long").alias("previous_offset"),
            f.lit(None).cast("int").alias("previous_value"),
            f.lit(True).alias("last"),
            partition_of(f.col("output_place")).alias("output_partition"),
            offset_of(f.col("output_place")).alias("output_offset"),
            f.col("output_value").cast("long").alias("output_value"),
        )
    )


def counter_store(records: DataFrame, trials: DataFrame) -> DataFrame:
    """Every record of the counter's changelog beside the one before it, the last one beside the output.

    The output of partition p implies the counter max((id - p) / partitions).
    Out: as `changelogs`, store `counter`.
    """
    in_order = Window.partitionBy("trial", "partition").orderBy("offset")
    written = records.where(f.col("role") == "counter-changelog").select(
        "trial",
        "partition",
        "key",
        f.col("offset").alias("changelog_offset"),
        f.col("value").alias("changelog_value"),
        f.lag("offset").over(in_order).alias("previous_offset"),
        f.lag("value").over(in_order).alias("previous_value"),
        f.lead("offset").over(in_order).isNull().alias("last"),
    )
    implied = (
        records.where(f.col("role") == "output")
        .groupBy("trial", "partition")
        .agg(f.max("offset").alias("output_offset"), f.max("value").alias("largest"))
        .join(f.broadcast(trials), "trial")
        .select(
            "trial",
            "partition",
            "output_offset",
            f.floor((f.col("largest") - f.col("partition")) / f.col("partitions")).alias("output_value"),
            f.lit(True).alias("last"),
        )
    )
    return written.join(f.broadcast(implied), ["trial", "partition", "last"], "full").select(
        "trial",
        f.lit("counter").alias("store"),
        "partition",
        f.coalesce("key", f.lit(COUNTER_KEY)).alias("key"),
        "changelog_offset",
        "changelog_value",
        "previous_offset",
        "previous_value",
        "last",
        f.when(f.col("output_offset").isNotNull(), f.col("partition")).alias("output_partition"),
        "output_offset",
        "output_value",
    )


def findings(replayed: DataFrame, assigned: DataFrame, logs: DataFrame) -> DataFrame:
    """The table `findings`: every anomaly of `onceproof.model.anomaly`, from what the functions above give.

    Out: trial, anomaly, partition, key, ids, offsets, expected, observed.
    """
    frames = [
        duplicate_ids(assigned),
        unstable_ids(assigned),
        wrong_ids(assigned),
        miscounted(replayed, assigned),
        counter_regressions(logs),
        changelog_mismatches(logs),
    ]
    found = frames[0]
    for frame in frames[1:]:
        found = found.unionByName(frame)
    return found


def witness(
    anomaly: str | Column,
    *,
    partition: Column,
    key: Column | None,
    ids: Column | None,
    offsets: Column,
    expected: Column,
    observed: Column,
) -> list[Column]:
    """The columns of a witness, in the table's order; None is no key, or no IDs."""
    return [
        f.col("trial"),
        (f.lit(anomaly) if isinstance(anomaly, str) else anomaly).alias("anomaly"),
        partition.cast("int").alias("partition"),
        (f.lit(None) if key is None else key).cast("int").alias("key"),
        (f.array() if ids is None else ids).cast("array<int>").alias("ids"),
        offsets.alias("offsets"),
        expected.alias("expected"),
        observed.alias("observed"),
    ]


def duplicate_ids(assigned: DataFrame) -> DataFrame:
    """One witness for each ID that more than one key was given.

    In: what `assign` gives. Out: as `findings`.
    """
    uses = f.sort_array(f.collect_list(f.struct("first_place", "key")))
    named = f.slice("uses", 1, NAMED)
    return (
        assigned.where("shared")
        .groupBy("trial", "id")
        .agg(uses.alias("uses"))
        .select(
            *witness(
                "duplicate-id",
                partition=partition_of(f.col("uses")[0]["first_place"]),
                key=None,
                ids=f.array("id"),
                offsets=f.transform(named, lambda use: place_text("output", use["first_place"])),
                expected=f.lit("one key"),
                observed=listing("uses", "keys", f.transform(named, lambda use: use["key"])),
            )
        )
    )


def unstable_ids(assigned: DataFrame) -> DataFrame:
    """One witness for each key that was given more than one ID.

    In: what `assign` gives. Out: as `findings`.
    """
    uses = f.sort_array(f.collect_list(f.struct("first_place", "id")))
    ids = f.transform("uses", lambda use: use["id"])
    return (
        assigned.where("unstable")
        .groupBy("trial", "key")
        .agg(uses.alias("uses"))
        .select(
            *witness(
                "unstable-id",
                partition=partition_of(f.col("uses")[0]["first_place"]),
                key=f.col("key"),
                ids=ids,
                offsets=f.transform("uses", lambda use: place_text("output", use["first_place"])),
                expected=f.lit("one ID"),
                observed=listing("uses", "IDs", ids),
            )
        )
    )


def wrong_ids(assigned: DataFrame) -> DataFrame:
    """One witness for each key whose ID is its own and stable, but not the one that the input determines.

    In: what `assign` gives. Out: as `findings`; a key that is not in the input has no right ID.
    """
    return assigned.where(~f.col("shared") & ~f.col("unstable") & (f.col("id") != f.col("expected_id"))).select(
        *witness(
            "wrong-id",
            partition=partition_of(f.col("first_place")),
            key=f.col("key"),
            ids=f.array("id"),
            offsets=f.array(place_text("output", f.col("first_place"))),
            expected=f.col("expected_id").cast("string"),
            observed=f.col("id").cast("string"),
        )
    )


def miscounted(replayed: DataFrame, assigned: DataFrame) -> DataFrame:
    """One witness for each key with fewer (lost-record) or more (duplicate-output) records out than in.

    In: what `replay` and `assign` give. Out: as `findings`.
    """
    sent = replayed.select("trial", "key", "inputs", "input_place")
    shown = assigned.groupBy("trial", "key").agg(
        f.sum("outputs").alias("outputs"), f.max("last_place").alias("last_place")
    )
    inputs, outputs = (f.coalesce(name, f.lit(0)) for name in ("inputs", "outputs"))
    lost = inputs > outputs
    where = f.when(lost, f.col("input_place")).otherwise(f.col("last_place"))
    text = f.when(lost, place_text("input", where)).otherwise(place_text("output", where))
    return (
        sent.join(shown, ["trial", "key"], "full")
        .where(inputs != outputs)
        .select(
            *witness(
                f.when(lost, f.lit("lost-record")).otherwise(f.lit("duplicate-output")),
                partition=partition_of(where),
                key=f.col("key"),
                ids=None,
                offsets=f.array(text),
                expected=records_text(inputs),
                observed=records_text(outputs),
            )
        )
    )


def counter_regressions(logs: DataFrame) -> DataFrame:
    """One witness for each record of the counter's changelog that is not larger than the one before it.

    In: what `changelogs` gives. Out: as `findings`. A tombstone compares to nothing, on either side.
    """
    in_log = "counter-changelog/%d@%d"
    return logs.where((f.col("store") == "counter") & (f.col("changelog_value") <= f.col("previous_value"))).select(
        *witness(
            "counter-regression",
            partition=f.col("partition"),
            key=f.col("key"),
            ids=None,
            offsets=f.array(
                f.format_string(in_log, "partition", "previous_offset"),
                f.format_string(in_log, "partition", "changelog_offset"),
            ),
            expected=f.format_string("more than %d", "previous_value"),
            observed=f.col("changelog_value").cast("string"),
        )
    )


def changelog_mismatches(logs: DataFrame) -> DataFrame:
    """One witness for each key of the ids store, and each partition's counter, that ended unlike the output.

    In: what `changelogs` gives. Out: as `findings`.
    """
    stored, shown = f.col("changelog_value").cast("long"), f.col("output_value")
    is_id = f.col("store") == "ids"
    changelog_place = f.when(
        f.col("changelog_offset").isNotNull(),
        f.format_string("%s-changelog/%d@%d", "store", "partition", "changelog_offset"),
    )
    output_place = f.when(
        f.col("output_offset").isNotNull(),
        f.format_string("output/%d@%d", "output_partition", "output_offset"),
    )
    return logs.where(f.col("last") & ~stored.eqNullSafe(shown)).select(
        *witness(
            "changelog-output-mismatch",
            partition=f.col("partition"),
            key=f.col("key"),
            ids=f.when(is_id, f.array_compact(f.array(stored, shown))).otherwise(f.array().cast("array<bigint>")),
            offsets=f.array_compact(f.array(changelog_place, output_place)),
            expected=value_text(shown),
            observed=value_text(stored),
        )
    )


def counts(replayed: DataFrame, assigned: DataFrame, trials: DataFrame) -> DataFrame:
    """The table `counts`, with a row for every trial, also one without any record.

    Out: trial, records, outputs, keys, ids.
    """
    sent = replayed.groupBy("trial").agg(f.sum("inputs").alias("records"), f.count("*").alias("keys"))
    shown = assigned.groupBy("trial").agg(f.sum("outputs").alias("outputs"), f.count_if("leads").alias("ids"))
    return (
        trials.join(sent, "trial", "left")
        .join(shown, "trial", "left")
        .select("trial", *(f.coalesce(name, f.lit(0)).alias(name) for name in ("records", "outputs", "keys", "ids")))
    )


def listing(counted: str, noun: str, named: Column) -> Column:
    """How many there are and which, for example `2 keys: 17, 4031`."""
    return f.format_string(f"%d {noun}: %s", f.size(counted), f.array_join(named.cast("array<string>"), ", "))


def records_text(number: Column) -> Column:
    """A number of records for people."""
    return f.when(number == 1, f.lit("1 record")).otherwise(f.format_string("%d records", number))


def value_text(value: Column) -> Column:
    """A store's value for people."""
    return f.coalesce(value.cast("string"), f.lit("nothing"))
