"""Reads the Parquet tables that Spark wrote, without Spark."""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from onceproof.model.anomaly import Witness
from onceproof.model.cell import Trial
from onceproof.model.extras import PARQUET, require
from onceproof.model.run_folder import RunFolder


def rows_of(table: Path, columns: Sequence[str], wanted: Any = None) -> list[dict[str, Any]] | None:
    """Rows of a table for which `wanted` holds; None if there is none, as Spark was cut off, or it lacks a column.

    Raises:
        UsageError: there is one, and PyArrow is not installed.
    """
    if not table.exists():
        return None
    require(PARQUET, f"The table {table}")
    import pyarrow.dataset  # only where there are tables of Spark

    dataset = pyarrow.dataset.dataset(table, format="parquet", partitioning="hive")
    if not set(columns) <= set(dataset.schema.names):  # a table without a single row has no partition column
        return None
    rows: list[dict[str, Any]] = dataset.to_table(columns=list(columns), filter=wanted).to_pylist()
    return rows


def rows_of_trial(table: Path, trial: Trial, columns: Sequence[str], wanted: Any = None) -> list[dict[str, Any]] | None:
    """Rows of one trial in a table, without the column `trial`; None as `rows_of` says."""
    if not table.exists():
        return None
    from pyarrow.dataset import field

    of_trial = field("trial") == trial.key
    rows = rows_of(table, [*columns, "trial"], of_trial if wanted is None else of_trial & wanted)
    return None if rows is None else [{name: row[name] for name in columns} for row in rows]


def witnesses_in(run: RunFolder, trial: Trial) -> list[Witness] | None:
    """The findings of Spark in a trial, as its table `findings` has it; None as `rows_of` says."""
    rows = rows_of_trial(run.table("findings"), trial, [column.name for column in fields(Witness)])
    if rows is None:
        return None
    return [Witness(**{**row, "ids": tuple(row["ids"]), "offsets": tuple(row["offsets"])}) for row in rows]
