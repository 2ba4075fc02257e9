"""Check a kept run again, without brokers: how long the application of Spark takes, and each question by itself.

    .venv/bin/python -m benchmarks.check_run RUN_FOLDER

The tables go to a folder of their own; the run stays as it is. Prints a row for each question, asked about all trials
by one thread, and the seconds, CPU seconds and memory of the application, which has as many tasks as there are cores.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.measuring import measure
from onceproof.model.run_folder import RunFolder
from onceproof.settings import get_settings
from onceproof.spark import choose_compiler, spark_environment, submit_command


def main() -> None:
    """Check the run in an application of its own, then ask each question here, and print what both took."""
    run = RunFolder(Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        again = RunFolder(Path(folder, run.run_id))
        link(run, again.path)
        took = measure(submit, again.path, sum(1 for _ in run.trials()))
        print_questions(again)
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


def print_questions(run: RunFolder) -> None:
    """Ask all questions about the trials of the run, and print the seconds of each."""
    from spark_jobs.check import load
    from spark_jobs.questions import answer_all, open_database

    trials = [trial.key for trial in run.list_driven()]
    table = Table("question", "seconds", title=f"{len(trials)} trials of {run.run_id}, one thread")

    @contextmanager
    def observe(question: str) -> Iterator[None]:
        begin = time.monotonic()
        yield
        table.add_row(question, f"{time.monotonic() - begin:.2f}")

    with open_database() as database:
        with observe("load"):
            load(database, run, trials)
        answer_all(database, observe)
    Console(width=120).print(table)


def check_again(folder: Path) -> None:
    """Inside the application: check, and print how long that took."""
    from spark_jobs.check import check
    from spark_jobs.collect_and_check import session

    run = RunFolder(folder)
    with session(run) as spark:
        begin = time.monotonic()
        check(spark, run)
        print(f"check of {run.run_id}: {time.monotonic() - begin:.1f} s")


if __name__ == "__main__":
    if sys.argv[1] == "--check":
        check_again(Path(sys.argv[2]))
    else:
        main()
