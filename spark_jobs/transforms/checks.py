"""Which transforms check which topology of the application."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from spark_jobs.transforms import enumerator
from spark_jobs.transforms.answers import compare_answers, compare_published
from spark_jobs.transforms.comparisons import comparison_findings
from spark_jobs.transforms.deliveries import compare_deliveries, count_deliveries
from spark_jobs.transforms.reads import compare_reads
from spark_jobs.transforms.state import compare_state
from spark_jobs.transforms.transactions import compare_transactions


@dataclass(frozen=True)
class Checked:
    """What a check derives from the records: one frame per table of `spark_jobs.tables`, by the table's name.

    A table that the check has nothing for may be left out. `shared` are the frames that several tables are made of:
    worth keeping while those are written.
    """

    tables: dict[str, DataFrame]
    shared: tuple[DataFrame, ...] = ()


def check_enumerator(records: DataFrame, trials: DataFrame) -> Checked:
    """Check trials of the topology `enumerator`.

    In: records (trial, role, partition, offset, key, value); trials (trial, partitions, facts). `trial` may be of any
    type.
    """
    integers = records.withColumn("value", f.col("value").cast("int"))
    stated = trials.select("trial", "partitions")
    of_keys = enumerator.keys(integers, stated)
    assigned = enumerator.assign(integers, of_keys)
    of_ids = enumerator.identities(assigned)
    counter = enumerator.counter_store(integers, stated)
    logs = enumerator.ids_store(of_keys).unionByName(counter)
    return Checked(
        tables={
            "assignments": enumerator.assignments(assigned),
            "changelogs": logs,
            "comparisons": compare_state(records, trials),
            "findings": enumerator.findings(of_keys, assigned, of_ids, logs),
            "counts": enumerator.counts(of_keys, of_ids, stated),
        },
        shared=(of_keys, of_ids, counter),
    )


def check_counting(records: DataFrame, trials: DataFrame) -> Checked:
    """Check trials of the topology `counting`; in as for `check_enumerator`."""
    deliveries = count_deliveries(records)
    return _checked(
        trials,
        deliveries,
        compare_reads(records, trials),
        compare_deliveries(deliveries, trials),
    )


def check_dedup(records: DataFrame, trials: DataFrame) -> Checked:
    """Check trials of the topology `dedup`; in as for `check_enumerator`."""
    deliveries = count_deliveries(records)
    return _checked(
        trials,
        deliveries,
        compare_deliveries(deliveries, trials, once=True),
        compare_state(records, trials),
    )


def check_deleter(records: DataFrame, trials: DataFrame) -> Checked:
    """Check trials of the topology `deleter`; in as for `check_enumerator`."""
    return _checked(trials, count_deliveries(records), compare_answers(records), compare_published(records, trials))


def check_values(records: DataFrame, trials: DataFrame) -> Checked:
    """Check trials of the topology `values`; in as for `check_enumerator`."""
    changelog = "values-changelog"
    deliveries = count_deliveries(records, changelog)
    return _checked(
        trials,
        deliveries,
        compare_deliveries(deliveries, trials, role=changelog),
        compare_transactions(records, changelog, f"{changelog}-all"),
    )


def _checked(trials: DataFrame, deliveries: DataFrame, *compared: DataFrame) -> Checked:
    """The tables of a check that has nothing but comparisons."""
    counts = deliveries.groupBy("trial").agg(
        f.sum("inputs").alias("records"),
        f.sum("outputs").alias("outputs"),
        f.count_if(f.col("inputs") > 0).alias("keys"),
    )
    numbers = (f.coalesce(name, f.lit(0)).alias(name) for name in ("records", "outputs", "keys"))
    counted = trials.join(counts, "trial", "left").select("trial", *numbers, f.lit(0).cast("long").alias("ids"))
    comparisons = reduce(DataFrame.unionByName, compared)
    return Checked(tables={"comparisons": comparisons, "counts": counted}, shared=(comparisons,))


def with_comparisons(checked: Checked, observed: DataFrame) -> Checked:
    """Add what timelines showed to the comparisons, and what is anomalous in them to the findings."""
    comparisons = checked.tables["comparisons"].unionByName(observed)
    found = comparison_findings(comparisons)
    own = checked.tables.get("findings")
    findings = found if own is None else own.unionByName(found)
    return replace(checked, tables={**checked.tables, "comparisons": comparisons, "findings": findings})


CHECKS: dict[str, Callable[[DataFrame, DataFrame], Checked]] = {
    "enumerator": check_enumerator,
    "counting": check_counting,
    "dedup": check_dedup,
    "deleter": check_deleter,
    "values": check_values,
}
