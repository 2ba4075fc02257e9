"""The suites, one function each. Each begins with the rows it must see: an empty table is green and worthless.

They run unchanged on GX's pandas and Spark engines. `$PARAMETER`s come from the producer, which counted what was
delivered before Spark or a topic came into play.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from great_expectations import ExpectationSuite
from great_expectations import expectations as gxe
from great_expectations.expectations.row_conditions import Column

from expectations.showing_rows import ExpectEqualPairs, ExpectGreaterPairs, ExpectNoAnomaly, ExpectUniqueValues
from onceproof.model.promise import PROMISES, promises_of, suites_of

ID_UNIQUENESS = "id_uniqueness"
CHANGELOG_CONSISTENCY = "changelog_consistency"
# Expectations that only fail where there are too few rows.
FLOORS = (
    "expect_column_sum_to_be_between",
    "expect_column_unique_value_count_to_be_between",
    "expect_table_row_count_to_be_between",
)


def id_uniqueness() -> ExpectationSuite:
    """Over the table `assignments`: one row per key and ID of the output."""
    return ExpectationSuite(
        name=ID_UNIQUENESS,
        expectations=[
            gxe.ExpectTableRowCountToEqual(
                value={"$PARAMETER": "keys"},
                description="Every key that was produced was emitted with one ID: as many rows as keys were delivered.",
            ),
            ExpectUniqueValues(column="id", description="No ID was given to more than one key (duplicate-id)."),
            ExpectUniqueValues(column="key", description="No key was given more than one ID (unstable-id)."),
            ExpectEqualPairs(
                column_A="id",
                column_B="expected_id",
                description="Each ID is the one that the order of the input determines: "
                "counter * partitions + partition.",
            ),
            ExpectEqualPairs(
                column_A="outputs",
                column_B="inputs",
                description="Each key was emitted as often as it went in (lost-record, duplicate-output).",
            ),
        ],
    )


def changelog_consistency() -> ExpectationSuite:
    """Over the table `changelogs`: the stores' changelogs, compared with the output."""
    return ExpectationSuite(
        name=CHANGELOG_CONSISTENCY,
        expectations=[
            gxe.ExpectColumnUniqueValueCountToBeBetween(
                column="ids_key",
                min_value={"$PARAMETER": "keys"},
                description="The changelog of the store ids was seen: it has as many keys as were delivered.",
            ),
            gxe.ExpectTableRowCountToBeBetween(
                min_value={"$PARAMETER": "entries"},
                description="So was the counter's: in addition to the keys there is at least a row for each partition.",
            ),
            ExpectGreaterPairs(
                column_A="written",
                column_B="previous_value",
                ignore_row_if="either_value_is_missing",
                description="The counter's changelog grows from each record to the next, and is never deleted "
                "(counter-regression).",
            ),
            ExpectEqualPairs(
                column_A="stored",
                column_B="shown",
                ignore_row_if="both_values_are_missing",
                description="The last value in a changelog is what the output shows (changelog-output-mismatch): "
                "the key's ID in the store ids, the highest counter among the partition's IDs in the store counter.",
            ),
        ],
    )


def least(promise: str) -> str:
    """The parameter that says how many comparisons a promise must have had at least."""
    return f"least_{promise.replace('-', '_')}"  # GX would subtract


def over_comparisons(name: str) -> ExpectationSuite:
    """Over promises' rows of the table `comparisons`: each promise was checked often enough, and not broken."""
    anomalies = {anomaly: promise.sentence for promise in promises_of(name) for anomaly in promise.anomalies}
    return ExpectationSuite(
        name=name,
        expectations=[
            *(
                gxe.ExpectColumnSumToBeBetween(
                    column="comparisons",
                    min_value={"$PARAMETER": least(promise.name)},
                    row_condition=Column("promise") == promise.name,
                    description=promise.counted,
                )
                for promise in promises_of(name)
            ),
            *(
                ExpectNoAnomaly(column="anomaly", value_set=[anomaly], description=f"{sentence} ({anomaly})")
                for anomaly, sentence in anomalies.items()
            ),
        ],
    )


@dataclass(frozen=True)
class Suite:
    """A suite, the table it looks at, and, for the table `comparisons`, the promises."""

    make: Callable[[], ExpectationSuite]
    table: str
    promises: tuple[str, ...] = ()


def _suite(name: str) -> Suite:
    """The suite of this name; those over tables other than `comparisons` are written above."""
    [table] = {promise.table for promise in promises_of(name)}
    if table == "comparisons":
        return Suite(partial(over_comparisons, name), table, tuple(promise.name for promise in promises_of(name)))
    return Suite({ID_UNIQUENESS: id_uniqueness, CHANGELOG_CONSISTENCY: changelog_consistency}[name], table)


SUITES = {name: _suite(name) for name in suites_of(PROMISES)}
