"""The work that the enumerator must have done, and where it did not do it.

The output is a pure function of the input's order within a partition: the n-th new key of partition p gets the ID
n * partitions + p. So the check is exact: replay the input, join, compare.

Every function takes and returns the rows of all trials at once; `trial` is part of every key, group and window. Where a
frame is called `records` it has trial, role, partition, offset, key, value; `trials` has trial, partitions INT. A
`place` is partition and offset as one number, see `places`.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from spark_jobs.transforms.comparisons import records_text, value_text
from spark_jobs.transforms.places import offset_of, partition_of, place, place_text, text_of_place

COUNTER_KEY = 0  # the counter store has one entry in each partition, under this key
NAMED = 5  # of many keys, IDs or places this many are named


def replay(records: DataFrame, trials: DataFrame) -> DataFrame:
    """The ID that the order of the input determines for each key of each input partition.

    Out: trial, key, inputs LONG, input_place LONG, expected_id LONG.
    """
    in_order = Window.partitionBy("trial", "partition").orderBy("input_place")
    return (
        records.where(f.col("role") == "input")
        .select("trial", "partition", "key", "offset")
        .repartition("trial", "partition")  # serves the aggregate and the window
        .groupBy("trial", "partition", "key")
        .agg(f.min(place()).alias("input_place"), f.count("*").alias("inputs"))
        .withColumn("n", f.row_number().over(in_order).cast("long") - 1)
        .join(f.broadcast(trials), "trial")
        .select(
            "trial",
            "key",
            "inputs",
            "input_place",
            (f.col("n") * f.col("partitions") + f.col("partition")).alias("expected_id"),
        )
    )


def keys(records: DataFrame, trials: DataFrame) -> DataFrame:
    """All that is known about each key that was sent, emitted or stored: one pass, no join.

    A key that was sent to more than one partition is expected to have its ID from the first of them.
    Out: trial, key, inputs LONG, input_place LONG, expected_id LONG (from `replay`), outputs LONG, first_place LONG,
    last_place LONG (in the output), smallest_id INT, largest_id INT, last_id INT (of the output), stored_place LONG,
    stored_id INT (last in the changelog, a tombstone is null). Null is what the key does not have; counts are 0.
    """
    sent = replay(records, trials)
    shown = records.where(f.col("role") == "output").select(
        "trial", "key", place().alias("output_place"), f.col("value").alias("id")
    )
    stored = records.where(f.col("role") == "ids-changelog").select(
        "trial", "key", place().alias("store_place"), f.col("value").alias("stored")
    )
    return (
        sent.unionByName(shown, allowMissingColumns=True)
        .unionByName(stored, allowMissingColumns=True)
        .repartition("trial", "key")  # the facts are narrower than the aggregates, so they travel
        .groupBy("trial", "key")
        .agg(
            f.coalesce(f.sum("inputs"), f.lit(0)).alias("inputs"),
            f.min("input_place").alias("input_place"),
            f.min_by("expected_id", "input_place").alias("expected_id"),
            f.count("output_place").alias("outputs"),
            f.min("output_place").alias("first_place"),
            f.max("output_place").alias("last_place"),
            f.min("id").alias("smallest_id"),
            f.max("id").alias("largest_id"),
            f.max_by("id", "output_place").alias("last_id"),
            f.max("store_place").alias("stored_place"),
            f.max_by("stored", "store_place").alias("stored_id"),
        )
    )


def assign(records: DataFrame, of_keys: DataFrame) -> DataFrame:
    """Which IDs the output gave to which keys: one row per key and ID.

    In: `of_keys` from `keys`. Only for keys with several IDs are the records looked at again; they are anomalies, and
    few enough to be sent to every task.
    Out: trial, key, id INT, first_place LONG, outputs LONG, inputs LONG, expected_id LONG (null where the key is not in
    the input), unstable BOOLEAN: the key has another ID, too.
    """
    stable = of_keys.where(f.col("smallest_id") == f.col("largest_id")).select(
        "trial",
        "key",
        f.col("smallest_id").alias("id"),
        "first_place",
        "outputs",
        "inputs",
        "expected_id",
        f.lit(False).alias("unstable"),
    )
    several = of_keys.where(f.col("smallest_id") != f.col("largest_id"))
    unstable = (
        records.where(f.col("role") == "output")
        .select("trial", "key", f.col("value").alias("id"), place().alias("place"))
        .join(f.broadcast(several.select("trial", "key", "inputs", "expected_id")), ["trial", "key"])
        .groupBy("trial", "key", "id", "inputs", "expected_id")
        .agg(f.min("place").alias("first_place"), f.count("*").alias("outputs"))
        .withColumn("unstable", f.lit(True))
    )
    return stable.unionByName(unstable)


def identities(assigned: DataFrame) -> DataFrame:
    """Each ID of the output, and whether it was given to more than one key.

    In: what `assign` gives. Out: trial, id, shared BOOLEAN.
    """
    return (
        assigned.select("trial", "id", "key")
        .repartition("trial", "id")
        .groupBy("trial", "id")
        .agg((f.min("key") != f.max("key")).alias("shared"))
    )


def suspects(assigned: DataFrame, of_ids: DataFrame) -> DataFrame:
    """The suspects of `assign`: IDs that are shared, unstable or not the expected ones; few, if all is well.

    In: what `assign` and `identities` give. Out: as `assign`, and shared BOOLEAN.
    """
    shared = of_ids.where("shared")
    return (
        assigned.join(f.broadcast(shared), ["trial", "id"], "left")
        .withColumn("shared", f.col("shared").isNotNull())
        .where(f.col("shared") | f.col("unstable") | (f.col("id") != f.col("expected_id")))
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


def ids_store(of_keys: DataFrame) -> DataFrame:
    """For each key, the last ID in the changelog and the last ID in the output; a tombstone counts as no ID.

    In: what `keys` gives. Out: as the table `changelogs`, store `ids`.
    """
    either = f.coalesce("stored_place", "last_place")
    return of_keys.where(f.col("stored_id").isNotNull() | f.col("last_id").isNotNull()).select(
        "trial",
        f.lit("ids").alias("store"),
        partition_of(either).alias("partition"),
        "key",
        offset_of(f.col("stored_place")).alias("changelog_offset"),
        f.col("stored_id").alias("changelog_value"),
        f.lit(None).cast("long").alias("previous_offset"),
        f.lit(None).cast("int").alias("previous_value"),
        f.lit(True).alias("last"),
        partition_of(f.col("last_place")).alias("output_partition"),
        offset_of(f.col("last_place")).alias("output_offset"),
        f.col("last_id").cast("long").alias("output_value"),
    )


def counter_store(records: DataFrame, trials: DataFrame) -> DataFrame:
    """Every record of the counter's changelog with the one before it, the last one with the output.

    The output of partition p implies the counter max((id - p) / partitions).
    Out: as the table `changelogs`, store `counter`.
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
    return written.join(implied, ["trial", "partition", "last"], "full").select(
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


def findings(of_keys: DataFrame, suspected: DataFrame, logs: DataFrame) -> DataFrame:
    """The table `findings`: every anomaly of the enumerator.

    In: what `keys`, `suspects` and the two stores give.
    Out: trial, anomaly, partition, key, ids, offsets, expected, observed.
    """
    frames = [
        duplicate_ids(suspected),
        unstable_ids(suspected),
        wrong_ids(suspected),
        find_miscounted(of_keys),
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


def duplicate_ids(suspected: DataFrame) -> DataFrame:
    """One witness for each ID that more than one key was given.

    In: what `suspects` gives. Out: as `findings`.
    """
    uses = f.sort_array(f.collect_list(f.struct("first_place", "key")))
    named = f.slice("uses", 1, NAMED)
    return (
        suspected.where("shared")
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


def unstable_ids(suspected: DataFrame) -> DataFrame:
    """One witness for each key that was given more than one ID.

    In: what `suspects` gives. Out: as `findings`.
    """
    uses = f.sort_array(f.collect_list(f.struct("first_place", "id")))
    ids = f.transform("uses", lambda use: use["id"])
    return (
        suspected.where("unstable")
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


def wrong_ids(suspected: DataFrame) -> DataFrame:
    """One witness for each key whose ID is its own and stable, but not the one that the input determines.

    In: what `suspects` gives. Out: as `findings`; a key that is not in the input has no right ID.
    """
    wrong = ~f.col("unstable") & ~f.col("shared") & (f.col("id") != f.col("expected_id"))
    return suspected.where(wrong).select(
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


def find_miscounted(of_keys: DataFrame) -> DataFrame:
    """One witness for each key with fewer records out than in, with more, or with any that was not sent at all.

    In: what `keys` gives. Out: as `findings`.
    """
    inputs, outputs = f.col("inputs"), f.col("outputs")
    lost = inputs > outputs
    where = f.when(lost, f.col("input_place")).otherwise(f.col("last_place"))
    text = f.when(lost, place_text("input", where)).otherwise(place_text("output", where))
    return of_keys.where(inputs != outputs).select(
        *witness(
            f.when(lost, f.lit("lost-record"))
            .when(inputs == 0, f.lit("unexpected-record"))
            .otherwise(f.lit("duplicate-output")),
            partition=partition_of(where),
            key=f.col("key"),
            ids=None,
            offsets=f.array(text),
            expected=records_text(inputs),
            observed=records_text(outputs),
        )
    )


def counter_regressions(logs: DataFrame) -> DataFrame:
    """One witness for each record of the counter's changelog that is not larger than the one before it.

    In: what the two stores give. Out: as `findings`. A tombstone is less than any value; what follows it starts afresh.
    """
    deleted = f.col("changelog_offset").isNotNull() & f.col("changelog_value").isNull()
    fell = f.col("previous_value").isNotNull() & (deleted | (f.col("changelog_value") <= f.col("previous_value")))
    return logs.where((f.col("store") == "counter") & fell).select(
        *witness(
            "counter-regression",
            partition=f.col("partition"),
            key=f.col("key"),
            ids=None,
            offsets=f.array(
                text_of_place("counter-changelog", offset="previous_offset"),
                text_of_place("counter-changelog", offset="changelog_offset"),
            ),
            expected=f.format_string("more than %d", "previous_value"),
            observed=value_text(f.col("changelog_value")),
        )
    )


def changelog_mismatches(logs: DataFrame) -> DataFrame:
    """One witness for each key of the ids store, and each partition's counter, that ended unlike the output.

    In: what the two stores give. Out: as `findings`.
    """
    stored, shown = f.col("changelog_value").cast("long"), f.col("output_value")
    is_id = f.col("store") == "ids"
    changelog_place = f.when(
        f.col("changelog_offset").isNotNull(),
        text_of_place(f.concat("store", f.lit("-changelog")), offset="changelog_offset"),
    )
    output_place = f.when(
        f.col("output_offset").isNotNull(),
        text_of_place("output", "output_partition", "output_offset"),
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


def counts(of_keys: DataFrame, of_ids: DataFrame, trials: DataFrame) -> DataFrame:
    """The table `counts`, with a row for every trial, even one without any record.

    In: what `keys` and `identities` give. Out: trial, records, outputs, keys, ids.
    """
    sums = of_keys.groupBy("trial").agg(
        f.sum("inputs").alias("records"),
        f.sum("outputs").alias("outputs"),
        f.count_if(f.col("inputs") > 0).alias("keys"),
    )
    ids = of_ids.groupBy("trial").agg(f.count("*").alias("ids"))
    numbers = (f.coalesce(name, f.lit(0)).alias(name) for name in ("records", "outputs", "keys", "ids"))
    return trials.join(sums, "trial", "left").join(ids, "trial", "left").select("trial", *numbers)


def listing(counted: str, noun: str, named: Column) -> Column:
    """How many there are and which, for example `2 keys: 17, 4031`."""
    return f.format_string(f"%d {noun}: %s", f.size(counted), f.array_join(named.cast("array<string>"), ", "))
