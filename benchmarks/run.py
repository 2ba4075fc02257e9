"""A matrix, from the command to the Data Docs, compared with as many runs of Kafka's own test of the scenario.

    .venv/bin/python benchmarks/run.py [OPTION OF `onceproof run`]...

Without options the default matrix. Says for which share of the time no trial is driven, and what Airflow takes from the
moment that a task may begin until it runs.
The peer is run once and counted for each cell: it is the same test each time.
"""

import json
import sqlite3
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rich.console import Console
from rich.table import Table

from benchmarks.trial import peer
from onceproof.pipeline.environment import airflow_home
from onceproof.settings import get_settings

PATIENT = ("drive", "drive_waiting_cells")  # which wait for one another
DRIVING = ("drive", "drive_waiting_cells", "add_trials")


@dataclass(frozen=True)
class Task:
    """When a task of Airflow might begin, began and ended."""

    name: str
    scheduled: datetime
    start: datetime
    end: datetime


def main() -> None:
    """Run the matrix and print the figures."""
    command = [sys.executable, "-m", "onceproof.cli", "run", "--json", *sys.argv[1:]]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    result = json.loads(done.stdout)
    assert result.get("verdicts"), result
    cells, seconds, tasks = len(result["verdicts"]), result["seconds"], tasks_of(result["run"])
    trials = sum(verdict["trials"] for verdict in result["verdicts"])
    driven = sum_covered([task for task in tasks if task.name in DRIVING])
    waited = [(task.start - task.scheduled).total_seconds() for task in tasks if task.name not in PATIENT]
    table = Table("what", "seconds", title=f"{cells} cells, {trials} trials, exit {done.returncode}")
    table.add_row("onceproof run: Airflow, trials, Spark, GX, Data Docs", f"{seconds:.0f}")
    table.add_row("  while trials are driven", f"{driven:.0f}")
    table.add_row(f"  Airflow's latency, median of {len(waited)} tasks", f"{statistics.median(waited):.2f}")
    table.add_row(f"{cells} times Kafka's integration test of 3.4.1", f"{cells * peer():.0f}")
    Console().print(table)
    print(f"While no trial is driven: {1 - driven / seconds:.0%} of the time.")


def tasks_of(run: str) -> Sequence[Task]:
    """The tasks of a run that have ended, as Airflow's database knows them."""
    with sqlite3.connect(f"file:{airflow_home(get_settings())}/airflow.db?mode=ro", uri=True) as database:
        rows = database.execute(
            "SELECT task_id, scheduled_dttm, start_date, end_date FROM task_instance"
            " WHERE run_id = ? AND start_date NOT NULL AND end_date NOT NULL",
            (run,),
        ).fetchall()
    return [Task(name, *map(datetime.fromisoformat, times)) for name, *times in rows]


def sum_covered(tasks: Sequence[Task]) -> float:
    """For how many seconds at least one of the tasks ran."""
    seconds, until = 0.0, datetime.min
    for task in sorted(tasks, key=lambda task: task.start):
        begin = max(task.start, until)
        seconds += max(0.0, (task.end - begin).total_seconds())
        until = max(until, task.end)
    return seconds


if __name__ == "__main__":
    main()
