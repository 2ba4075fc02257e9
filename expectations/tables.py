"""One trial's rows of a Spark table, for either engine of Great Expectations."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow.compute as pc
import pyarrow.dataset as ds

from onceproof.model.run_folder import RunFolder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ASSIGNMENTS = ("partition", "key", "id", "first_offset", "outputs", "inputs", "expected_id")
CHANGELOGS = (
    "store",
    "partition",
    "key",
    "changelog_offset",
    "changelog_value",
    "previous_value",
    "last",
    "output_value",
)


GONE = -1  # instead of the value of a deleted counter: less than any
COMPARISONS = ("promise", "partition", "place", "key", "expected", "observed", "anomaly", "comparisons")
COLUMNS = {"assignments": ASSIGNMENTS, "changelogs": CHANGELOGS, "comparisons": COMPARISONS}
# Sorted, so that keys that share an ID are next to each other.
ORDER = {
    "assignments": ["id", "first_offset"],
    "changelogs": ["store", "partition", "changelog_offset"],
    "comparisons": ["partition", "key", "place"],
}


def rows_of(run: RunFolder, table: str, trial: str) -> int:
    """Rows of a trial in a table."""
    return int(_dataset(run, table).count_rows(filter=ds.field("trial") == trial))


def _dataset(run: RunFolder, table: str) -> ds.Dataset:
    return ds.dataset(run.table(table), format="parquet")


def in_pandas(run: RunFolder, table: str, trial: str, promises: Sequence[str] = ()) -> pd.DataFrame:
    """A trial's rows in memory; integers stay integers even where some are missing.

    Args:
        run: the run.
        table: one of `COLUMNS`.
        trial: key of the trial.
        promises: of the table `comparisons`, those whose rows are wanted.

    Out: the columns of the table, with the anomaly `none` where all is well; `changelogs` has four more (see
    `in_spark`).
    """
    wanted = ds.field("trial") == trial
    if promises:
        wanted &= ds.field("promise").isin(list(promises))
    read = _dataset(run, table).to_table(columns=list(COLUMNS[table]), filter=wanted)
    if table == "changelogs":
        last = read["last"]
        read = read.append_column("stored", pc.if_else(last, read["changelog_value"], None))
        read = read.append_column("ids_key", pc.if_else(pc.equal(read["store"], "ids"), read["key"], None))
        gone = pc.and_(pc.equal(read["store"], "counter"), pc.is_valid(read["changelog_offset"]))
        read = read.append_column("written", pc.coalesce(read["changelog_value"], pc.if_else(gone, GONE, None)))
        read = read.append_column("shown", pc.if_else(last, read["output_value"], None))
    if table == "comparisons":  # GX leaves rows without a value out of its percentages
        at = read.schema.get_field_index("anomaly")
        read = read.set_column(at, "anomaly", pc.fill_null(read["anomaly"], "none"))
    # Integers with gaps would become floats, and an offending ID 17 would be shown as 17.0.
    order = [(name, "ascending") for name in ORDER[table]]
    rows: pd.DataFrame = read.sort_by(order).to_pandas(integer_object_nulls=True)
    return rows


def in_spark(
    spark: "SparkSession", run: RunFolder, table: str, trial: str, promises: Sequence[str] = ()
) -> "DataFrame":
    """A trial's rows in Spark; arguments as for `in_pandas`.

    Out: the columns of the table; `changelogs` has, where `last`, also `stored` (the changelog's value) and `shown`
    (the output's), `ids_key`, the key in the store ids, and `written`: the changelog's value, `GONE` if it was deleted.
    """
    rows: DataFrame = spark.read.parquet(str(run.table(table))).where(f"trial = '{trial}'")
    if table == "comparisons":
        wanted = rows.where(rows["promise"].isin(list(promises))) if promises else rows
        return wanted.select(*COMPARISONS).fillna("none", ["anomaly"])
    if table == "assignments":
        return rows.select(*ASSIGNMENTS)
    return rows.selectExpr(
        *CHANGELOGS,
        "cast(if(last, changelog_value, null) as bigint) as stored",
        "if(last, output_value, null) as shown",
        "if(store = 'ids', key, null) as ids_key",
        f"if(store = 'counter' and changelog_offset is not null, coalesce(changelog_value, {GONE}), changelog_value) "
        "as written",
    )
