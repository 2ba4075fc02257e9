"""One trial's rows of a Spark table, for either engine of Great Expectations."""

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa
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


class TableReader:
    """Reads trials' rows of a run's tables, those of several trials at a time: each look goes over a whole table."""

    def __init__(self, run: RunFolder, trials: Sequence[str], at_once: int) -> None:
        """Expect these trials to be asked for, in this order; at most `at_once` rows of them are held of a table."""
        self._run = run
        self._trials = list(trials)
        self._at_once = at_once
        self._sizes: dict[str, Counter[str]] = {}
        self._held: dict[str, tuple[list[str], pa.Table]] = {}

    def size(self, table: str, trial: str) -> int:
        """Rows of a trial in a table."""
        if table not in self._sizes:
            batches = self._dataset(table).to_batches(columns=["trial"])
            counted = (entry for batch in batches for entry in batch["trial"].value_counts().to_pylist())
            sizes: Counter[str] = Counter()
            for entry in counted:
                sizes[entry["values"]] += entry["counts"]
            self._sizes[table] = sizes
        return self._sizes[table][trial]

    def rows(self, table: str, trial: str) -> pa.Table:
        """A trial's rows of a table."""
        held, rows = self._held.get(table, ([], None))
        if trial not in held:
            held = self._next(table, trial)
            columns = [*COLUMNS[table], "trial"]
            rows = self._dataset(table).to_table(columns=columns, filter=ds.field("trial").isin(held))
            self._held[table] = held, rows
        return rows.filter(pc.equal(rows["trial"], trial)).drop_columns("trial")

    def _next(self, table: str, trial: str) -> list[str]:
        """This trial and those after it, as many as may be held."""
        after = self._trials[self._trials.index(trial) :]
        totals = accumulate(self.size(table, name) for name in after)
        return [name for name, total in zip(after, totals, strict=True) if name == trial or total <= self._at_once]

    def _dataset(self, table: str) -> ds.Dataset:
        return ds.dataset(self._run.table(table), format="parquet")


def in_pandas(read: pa.Table, table: str, promises: Sequence[str] = ()) -> pd.DataFrame:
    """A trial's rows in memory; integers stay integers even where some are missing.

    Args:
        read: the rows.
        table: one of `COLUMNS`.
        promises: of the table `comparisons`, those whose rows are wanted.

    Out: the columns of the table, with the anomaly `none` where all is well; `changelogs` has four more (see
    `in_spark`).
    """
    if promises:
        read = read.filter(pc.is_in(read["promise"], pa.array(promises)))
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
    """A trial's rows in Spark, those of the promises as for `in_pandas`.

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
