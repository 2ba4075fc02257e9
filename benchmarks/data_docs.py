"""How long the Data Docs of a run take with many validation results, and how long the page takes to serve them.

    .venv/bin/python benchmarks/data_docs.py [RESULTS ...]

Runs of small clean trials with two suites each, 100 and 1,000 results by default: they are built once per run, so
nothing else than the run itself is built with them.
"""

import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from fastapi.testclient import TestClient
from rich.console import Console
from rich.table import Table

from expectations.checkpoints import validate
from onceproof.model.cell import Cell, Trial
from onceproof.model.files import Produced
from onceproof.model.json_file import write_json
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.page.app import create_app
from onceproof.settings import Settings, get_settings
from tests.expectations.conftest import ASSIGNMENTS, CHANGELOGS, HEALTHY
from tests.specimens.files import a_plan, an_outcome

RUN = "20261121T084500-3f2a"
PROMISES = {"identities": "keys", "counters": "keys"}


def main() -> None:
    """Build, serve, and print the figures."""
    table = Table("results", "suites and Data Docs", "a result", "served: index", "served: a suite's page")
    for results in [int(text) for text in sys.argv[1:]] or [100, 1_000]:
        with tempfile.TemporaryDirectory() as folder:
            run = RunFolder(Path(folder) / "runs" / RUN)
            fill(run, results // len(PROMISES))
            begin = time.perf_counter()
            validate(run, get_settings().artifacts / "data-docs-vendor")
            built = time.perf_counter() - begin
            client = TestClient(create_app(Settings(home=Path(folder))))
            pages = sorted(run.data_docs.parent.glob("validations/*/*/*/*.html"))
            assert len(pages) == results
            paths = (run.data_docs, pages[0])
            served = [time_answer(client, path.relative_to(run.path).as_posix()) for path in paths]
        table.add_row(f"{results:,}", f"{built:.1f} s", f"{built / results * 1_000:.0f} ms", *served)
    Console().print(table)


def fill(run: RunFolder, trials: int) -> None:
    """A run as Spark leaves it."""
    cell = Cell("enumerator", "DEFAULT_CONFIG", Release.parse("3.4.1"), Release.parse("3.9.1"))
    planned = [Trial(RUN, cell, number, number) for number in range(1, trials + 1)]
    cells = [{"key": cell.key, "title": cell.title, **cell.to_dict()}]
    write_json(run.run_file, {"cells": cells, "trials": [trial.to_dict() for trial in planned]})
    write_json(run.table("errors.json"), {})
    for trial in planned:
        a_plan(trial, promises=PROMISES).write(run.trial(trial).trial_file)
        an_outcome(trial, produced=Produced(5, 4)).write(run.trial(trial).outcome_file)
    for name, schema in (("assignments", ASSIGNMENTS), ("changelogs", CHANGELOGS)):
        columns = zip(*map(tuple, HEALTHY[name]), strict=True)
        one = pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
        parts = [one.append_column("trial", pa.array([trial.key] * one.num_rows, pa.string())) for trial in planned]
        run.table(name).mkdir()
        pq.write_table(pa.concat_tables(parts), run.table(name) / "part-0.parquet")


def time_answer(client: TestClient, path: str) -> str:
    """Milliseconds of an answer."""
    begin = time.perf_counter()
    assert client.get(f"/runs/{RUN}/{path}").status_code == 200
    return f"{(time.perf_counter() - begin) * 1_000:.0f} ms"


if __name__ == "__main__":
    main()
