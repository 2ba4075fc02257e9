"""Check a kept run again, without brokers: how long each action of Spark takes, and how large its plan is.

    .venv/bin/python benchmarks/check_run.py RUN_FOLDER

The tables go to a folder of their own; the run stays as it is. Prints seconds of analysis, optimisation, planning and
of the whole action, the nodes of its final plan, its shuffles and broadcasts; then seconds and CPU seconds in all.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, ClassVar

from rich.console import Console
from rich.table import Table

from benchmarks.measuring import measure
from onceproof.model.run_folder import RunFolder
from onceproof.settings import get_settings
from onceproof.spark import choose_compiler, spark_environment, submit_command

COLUMNS = ("analysis", "optimization", "planning", "whole", "nodes", "shuffles", "broadcasts")


def main() -> None:
    """Check the run in an application of its own, and print what it and all of it took."""
    run = RunFolder(Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        again = Path(folder, run.run_id)
        link(run, again)
        took = measure(submit, again, sum(1 for _ in run.trials()))
    print(f"in all, with the start of Spark: {took.seconds:.1f} s, CPU {took.cpu:.1f} s, {took.memory / 2**30:.1f} GiB")


def link(run: RunFolder, again: Path) -> None:
    """Make a folder that shares everything with the run but the tables that are to be made."""
    tables = again / "tables"
    tables.mkdir(parents=True)
    for entry in run.path.iterdir():
        if entry.name != "tables":
            (again / entry.name).symlink_to(entry)
    for entry in run.table("records").parent.iterdir():
        if entry.name == "records":
            (tables / entry.name).symlink_to(entry)
        elif entry.is_file():
            shutil.copy(entry, tables)


def submit(folder: Path, trials: int) -> None:
    """Run this file by spark-submit, with the settings of a run."""
    environment = spark_environment(get_settings()) | choose_compiler(trials)
    subprocess.run(submit_command(__file__, "--check", str(folder)), env=environment, check=True)


class Listener:
    """Keeps figures of each action: called by Spark."""

    class Java:
        """The interface that Spark knows."""

        implements: ClassVar = ["org.apache.spark.sql.util.QueryExecutionListener"]

    def __init__(self) -> None:
        self.rows: list[tuple[str, ...]] = []

    def onSuccess(self, name: str, execution: Any, nanoseconds: int) -> None:  # noqa: N802 (Spark's name)
        """Add a row."""
        phases = execution.tracker().phases()
        seconds = [phases.apply(of).durationMs() / 1000 if phases.contains(of) else 0.0 for of in COLUMNS[:3]]
        plan = final_plan(execution.executedPlan().toString())
        counts = len(plan), *(sum(kind in line for line in plan) for kind in (" Exchange ", " BroadcastExchange "))
        row = (*(f"{number:.2f}" for number in (*seconds, nanoseconds / 1e9)), *map(str, counts))
        self.rows.append((name, *row))

    def onFailure(self, name: str, execution: Any, exception: Any) -> None:  # noqa: N802, ARG002
        """Add a row that says so."""
        self.rows.append((f"{name} failed", *[""] * len(COLUMNS)))


def final_plan(text: str) -> list[str]:
    """The lines of a plan, a node each, without those that adaptive execution has replaced."""
    lines, hidden = [], None  # the column from which on lines belong to an initial plan
    for line in text.splitlines():
        depth = len(line) - len(line.lstrip(" :+-"))
        if hidden is not None and depth >= hidden:
            continue
        hidden = depth if "== Initial Plan ==" in line else None
        if not line.lstrip(" :+-").startswith("=="):
            lines.append(f" {line}")
    return lines


def check_again(folder: Path) -> None:
    """Inside the application: check, and print the rows."""
    from pyspark.java_gateway import ensure_callback_server_started

    from spark_jobs.check import check
    from spark_jobs.collect_and_check import session

    run = RunFolder(folder)
    listener = Listener()
    with session(run) as spark:
        ensure_callback_server_started(spark.sparkContext._gateway)  # type: ignore[no-untyped-call]
        spark._jsparkSession.listenerManager().register(listener)
        begin = time.monotonic()
        check(spark, run)
        seconds = time.monotonic() - begin
        spark._jsparkSession.sparkContext().listenerBus().waitUntilEmpty()
    table = Table("action", *COLUMNS, title=f"check of {run.run_id}: {seconds:.1f} s, {len(listener.rows)} actions")
    for row in listener.rows:
        table.add_row(*row)
    sums = [sum(float(row[place] or 0) for row in listener.rows) for place in range(1, len(COLUMNS) + 1)]
    table.add_row("sum", *(f"{number:.2f}" for number in sums[:4]), *(f"{number:.0f}" for number in sums[4:]))
    Console(width=120).print(table)


if __name__ == "__main__":
    if sys.argv[1] == "--check":
        check_again(Path(sys.argv[2]))
    else:
        main()
