"""How long the matrix takes with many runs in the database, compared with reading all of them.

    .venv/bin/python benchmarks/page.py [RUNS]

Fills a throw-away database with nightly runs of 20 cells, and asks the page for its matrix as a browser would. The
peer is the same matrix from `history.read_runs`, which reads every run.
"""

import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fastapi.testclient import TestClient
from httpx import Response
from rich.console import Console
from rich.table import Table
from sqlalchemy import insert

from onceproof.model.cell import Cell
from onceproof.page.app import create_app
from onceproof.page.matrix import Filters, matrix_of
from onceproof.results.database import CellRow, RunRow, database
from onceproof.results.history import read_runs
from onceproof.results.matrix_query import DEPTH, DatedVerdict, KnownVerdicts
from onceproof.settings import Settings

RUNS, REPEATS = 1_000, 20
FIRST = datetime(2024, 1, 1, 2, 15, tzinfo=UTC)
VARIANTS, STREAMS = ("A", "B", "C", "D"), ("3.3.1", "3.4.1", "3.9.1", "4.1.2", "4.3.1")


def main() -> None:
    """Fill the database, ask, and print the figures."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(home=Path(folder))
        fill(settings.database_url, runs)
        client = TestClient(create_app(settings))
        newest = read_runs(settings.database_url)[0]
        table = Table("what", "median ms", "slowest ms", title=f"{runs:,} runs of {len(newest.cells)} cells")
        asked: dict[str, Callable[[], Response]] = {
            "the matrix, newest run": lambda: client.get("/"),
            "the matrix, filtered": lambda: client.get("/?scenario=enumerator&verdict=known"),
            "the matrix, oldest run": lambda: client.get(f"/?run={run_id(0)}"),
        }
        for what, ask in asked.items():
            assert ask().status_code == 200
            table.add_row(what, *measure(ask))
        table.add_row("peer: the newest run's view from all runs, not rendered", *measure(lambda: peer(settings)))
        Console().print(table)


def run_id(number: int) -> str:
    """Id of the run of one night."""
    return f"{FIRST + timedelta(days=number):%Y%m%dT%H%M%S}-{number % 65536:04x}"


def fill(url: str, runs: int) -> None:
    """Store the runs; one cell in ten has a different verdict than the night before."""
    draw = random.Random(1)
    keys = [
        {"scenario": "enumerator", "variant": v, "streams": s, "broker": "3.9.1"} for v in VARIANTS for s in STREAMS
    ]
    fields = {"sentence": "No anomaly in 1 exercised trial. " * 4, "red": 0, "counted": 1, "issues": [], "seconds": 8.4}
    with database(url) as engine, engine.begin() as connection:
        for number in range(runs):
            created = FIRST + timedelta(days=number)
            row = {"id": run_id(number), "matrix": "seed", "created": created.isoformat(), "folder": ""}
            connection.execute(insert(RunRow), {**row, "stored": created.replace(tzinfo=None)})
            cells = [
                {**key, **fields, "run_id": run_id(number), "verdict": "known" if draw.random() < 0.1 else "clean"}
                for key in keys
            ]
            connection.execute(insert(CellRow), cells)


def measure(ask: Callable[[], object]) -> tuple[str, str]:
    """Median and slowest of the repeats, in milliseconds."""
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        ask()
        times.append(1000 * (time.perf_counter() - begin))
    return f"{statistics.median(times):.0f}", f"{max(times):.0f}"


def peer(settings: Settings) -> object:
    """The same view, from all that is stored."""
    runs = read_runs(settings.database_url)
    past: dict[Cell, list[DatedVerdict]] = defaultdict(list)
    for run in runs:
        for judged in run.cells:
            if len(past[judged.cell]) < DEPTH:
                past[judged.cell].append(DatedVerdict(run.created, judged))
    return matrix_of(KnownVerdicts(runs[0].id, runs[0].created, runs[0].matrix, past), Filters())


if __name__ == "__main__":
    main()
