"""The questions that are asked about trials, in DuckDB: the statements of `sql`, over the trials of one task.

So Spark plans one job, whatever promises the trials make (ADR 33). Memory is bounded: DuckDB writes to disk what
exceeds it. A statement that fails ends the task.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow as pa

from spark_jobs import tables
from spark_jobs.checks import PROMISES

SQL = Path(__file__).with_name("sql")
GIGABYTES = 1  # of memory, for each thread
# The scripts, in this order, and for which table of `results` each gives rows in which table of its own.
SCRIPTS: dict[str, dict[str, str]] = {
    "inputs": {},
    "logs": {"log_comparisons": "comparisons"},
    "enumerator": {
        "assignments": "assignments",
        "changelogs": "changelogs",
        "enumerator_findings": "findings",
        "enumerator_counts": "counts",
    },
    "segments": {"transactions": "transactions", "segment_comparisons": "comparisons"},
}
# The statements, in this order, and the table of `results` for which each gives rows.
QUESTIONS = {**dict.fromkeys(PROMISES, "comparisons"), "counts": "counts", "findings": "findings"}


@contextmanager
def open_database(threads: int = 1) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database with the tables of `sql/tables.sql`, empty, and those of the results in the schema `results`."""
    with TemporaryDirectory(prefix="onceproof-check-") as folder:
        settings: dict[str, Any] = {
            "threads": threads,
            "memory_limit": f"{GIGABYTES * threads}GB",
            "temp_directory": folder,
        }
        with duckdb.connect(config=settings) as database:
            run_script(database, "macros")
            run_script(database, "tables")
            database.execute("create schema results")
            for table in tables.CHECKED:
                database.execute(f"create table results.{table} ({tables.number_trials(table)})")
            yield database


def run_script(database: duckdb.DuckDBPyConnection, name: str) -> None:
    """Run the statements of a file of `sql`."""
    database.execute((SQL / f"{name}.sql").read_text(encoding="utf-8"))


def insert_rows(
    database: duckdb.DuckDBPyConnection, table: str, rows: Sequence[Mapping[str, Any]], columns: str = "*"
) -> None:
    """Add rows to a table by the names of its columns, which may be made of those of the rows."""
    if rows:
        given = database.from_arrow(pa.Table.from_pylist([dict(row) for row in rows])).project(columns)
        given.query("given", f"insert into {table} by name from given")


def state_trials(database: duckdb.DuckDBPyConnection, stated: Sequence[Mapping[str, Any]]) -> None:
    """Fill the table `trials` with rows of `spark_jobs.checks.state_trial`."""
    insert_rows(database, "trials", stated, "* replace (map_from_entries(facts) as facts)")


def answer_all(
    database: duckdb.DuckDBPyConnection, observe: Callable[[str], AbstractContextManager[object]] = nullcontext
) -> None:
    """Ask all questions about the trials, records and entries, and add to the tables of `results`.

    Args:
        database: with rows in the tables of `sql/tables.sql`.
        observe: entered with the name of each question while it is answered.
    """
    for script, given in SCRIPTS.items():
        with observe(script):
            run_script(database, script)
            for made, table in given.items():
                database.execute(f"insert into results.{table} by name from {made}")
    for question, table in QUESTIONS.items():
        with observe(question):
            ask(database, question, table)


def ask(database: duckdb.DuckDBPyConnection, question: str, table: str) -> None:
    """Add the rows that the last statement of a file of `sql` gives to a table of `results`."""
    text = (SQL / f"{question.replace('-', '_')}.sql").read_text(encoding="utf-8")
    *macros, statement = database.extract_statements(text)
    for macro in macros:
        database.execute(macro)
    database.execute(f"insert into results.{table} by name {statement.query}")


def write_results(database: duckdb.DuckDBPyConnection, table: str, file: Path) -> None:
    """Write a table of `results` as Parquet, with the trials' names in place of their numbers."""
    named = database.table("trials").project("trial, name")
    rows = database.table(f"results.{table}").join(named, "trial")
    rows.project("name as trial, * exclude (trial, name)").write_parquet(str(file))
