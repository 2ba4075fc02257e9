"""The suites, one function each. Each begins with the rows it must see: an empty table is green and worthless.

They run unchanged on GX's pandas and Spark engines. `$PARAMETER`s come from the producer, which counted what was
delivered before Spark or a topic came into play.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from great_expectations import ExpectationSuite
from great_expectations import expectations as gxe
from great_expectations.expectations.row_conditions import Column

from expectations.showing_rows import ExpectEqualPairs, ExpectGreaterPairs, ExpectNoAnomaly, ExpectUniqueValues

ID_UNIQUENESS = "id_uniqueness"
CHANGELOG_CONSISTENCY = "changelog_consistency"


def id_uniqueness() -> ExpectationSuite:
    """Over the table `assignments`: one row per key and ID of the output."""
    return ExpectationSuite(
        name=ID_UNIQUENESS,
        expectations=[
            gxe.ExpectTableRowCountToEqual(
                value={"$PARAMETER": "keys"},
                description="Every key that was produced came out with one ID: as many rows as keys were delivered.",
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
                description="Each key came out as often as it went in (lost-record, duplicate-output).",
            ),
        ],
    )


def changelog_consistency() -> ExpectationSuite:
    """Over the table `changelogs`: the stores' changelogs beside the output."""
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
                description="So was the counter's: beside the keys there is a row for each partition, at least.",
            ),
            ExpectGreaterPairs(
                column_A="changelog_value",
                column_B="previous_value",
                ignore_row_if="either_value_is_missing",
                description="The counter's changelog grows from each record to the next (counter-regression).",
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


def over_comparisons(name: str, seen: Mapping[str, str], anomalies: Mapping[str, str]) -> ExpectationSuite:
    """Over promises' rows of the table `comparisons`.

    Args:
        name: of the suite.
        seen: of each promise, what the number of its rows shows, which is at least the parameter `rows_<promise>`.
        anomalies: each anomaly that the promises can show, with the sentence that the reader of Data Docs needs.
    """
    return ExpectationSuite(
        name=name,
        expectations=[
            *(
                gxe.ExpectTableRowCountToBeBetween(
                    min_value={"$PARAMETER": f"rows_{promise}"},
                    row_condition=Column("promise") == promise,
                    description=sentence,
                )
                for promise, sentence in seen.items()
            ),
            *(
                ExpectNoAnomaly(column="anomaly", value_set=[anomaly], description=f"{sentence} ({anomaly})")
                for anomaly, sentence in anomalies.items()
            ),
        ],
    )


def store_reads() -> ExpectationSuite:
    """Over the promise `reads`."""
    return over_comparisons(
        "store_reads",
        {
            "reads": "Every record that was delivered told what it found in the store.",
            "assertions": "So did the application, which asserts the same while it runs.",
        },
        {
            "stale-read": "A cached store never gives an older value than the one put last, also when its task was "
            "active, standby and active again on one thread (KAFKA-14624).",
            "dirty-read": "Under exactly-once a store never gives a value that no committed record put there.",
        },
    )


def deliveries() -> ExpectationSuite:
    """Over the promise `deliveries`."""
    return over_comparisons(
        "deliveries",
        {"deliveries": "Every key that was delivered to the input was looked for behind the application."},
        {
            "lost-record": "No record is lost: a record that is delivered again after a crash is not dropped because "
            "the store remembers it from an aborted transaction (KAFKA-20685).",
            "duplicate-output": "Under exactly-once no record comes out more often than it should.",
        },
    )


def state_recovery() -> ExpectationSuite:
    """Over the promises `checkpoint`, `wipe` and `state`."""
    return over_comparisons(
        "state_recovery",
        {
            "checkpoint": "The checkpoint was sampled while records flowed (not if the crash fell into a restoration).",
            "wipe": "Of each store it is known how it was initialised after the crash.",
            "state": "Every record that was committed before the crash was looked for in the store after it.",
        },
        {
            "stale-checkpoint": "Under exactly-once a task has no checkpoint while it is RUNNING: one that is there "
            "when the process dies vouches for a store that may hold uncommitted writes (KAFKA-20685).",
            "skipped-wipe": "A store whose process was killed in a transaction is wiped and restored from its "
            "changelog, not trusted from a checkpoint.",
            "uncommitted-state": "After the restart the store holds nothing that a committed changelog record does not "
            "explain.",
            "lost-state": "After the restart the store holds all that its changelog holds as committed.",
        },
    )


def answers() -> ExpectationSuite:
    """Over the promises `answers` and `published`."""
    return over_comparisons(
        "answers",
        {
            "answers": "For every request to delete, its answers were looked at.",
            "published": "So was what was published of it when the process died (not if the record is deleted later).",
        },
        {
            "false-after-true": "No request is answered with false although its record was there: the deletion of an "
            "earlier attempt is not seen by a later one.",
            "duplicate-output": "No request is answered twice.",
            "lost-record": "Every request is answered.",
            "changelog-output-mismatch": "A deletion in the changelog and its answer in the output are published "
            "together or not at all.",
        },
    )


def throttling() -> ExpectationSuite:
    """Over the promises `throttle` and `transactions`."""
    return over_comparisons(
        "throttling",
        {
            "throttle": "The throttle, the lag and the log of the instance were looked at.",
            "transactions": "So were the transactions of the changelog.",
        },
        {
            "aborted-by-throttle": "A producer that is only throttled keeps its transaction: none is aborted, and "
            "there is no exception of the transaction (KAFKA-17455)."
        },
    )


@dataclass(frozen=True)
class Suite:
    """A suite, the table it looks at, and of the table `comparisons` the promises."""

    make: Callable[[], ExpectationSuite]
    table: str
    promises: tuple[str, ...] = ()


SUITES = {
    ID_UNIQUENESS: Suite(id_uniqueness, "assignments"),
    CHANGELOG_CONSISTENCY: Suite(changelog_consistency, "changelogs"),
    "store_reads": Suite(store_reads, "comparisons", ("reads", "assertions")),
    "deliveries": Suite(deliveries, "comparisons", ("deliveries",)),
    "state_recovery": Suite(state_recovery, "comparisons", ("checkpoint", "wipe", "state")),
    "throttling": Suite(throttling, "comparisons", ("throttle", "transactions")),
    "answers": Suite(answers, "comparisons", ("answers", "published")),
}
