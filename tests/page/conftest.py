"""A home of specimens as the page finds it: two judged runs, their folders, their Data Docs, the results database."""

import json
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
import uvicorn
from fastapi import FastAPI
from fastapi.testclient import TestClient
from playwright.sync_api import expect

from onceproof.model.anomaly import Witness
from onceproof.model.cell import Cell, Trial
from onceproof.model.files import FaultOutcome, VerdictRow
from onceproof.model.json_file import write_json
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.page.app import create_app
from onceproof.processes.waiting import await_condition
from onceproof.results.database import store_run
from onceproof.settings import Settings
from tests.specimens.files import a_plan, a_reading, a_verdict, an_outcome

OLDER, NEWEST = "20261119T021500-aaaa", "20261120T021500-bbbb"
BROKER = Release(3, 9, 1)
RED = Cell("enumerator", "DEFAULT_CONFIG", Release(3, 3, 1), BROKER)
GREEN = Cell("enumerator", "DEFAULT_CONFIG", Release(3, 10, 0), BROKER)  # after 3.4.1 as a release, before it as text
TURNED = Cell("enumerator", "CACHING_DISABLED", Release(3, 4, 1), BROKER)
STALE = Cell("quota", "DEFAULT_CONFIG", Release(3, 8, 1), BROKER)
RESTART = Cell("crash", "DEFAULT_CONFIG", Release(4, 1, 2), BROKER, Release(4, 3, 1))
SCRIPT = "<script>document.title = 'broken in'</script>"
expect.set_options(timeout=30_000)  # the machine may be busy
T0 = 1795264571000  # epoch milliseconds
VERDICTS = {
    OLDER: {RED: "known", GREEN: "clean", TURNED: "clean", STALE: "inconclusive"},
    NEWEST: {RED: "known", GREEN: "clean", TURNED: "regression", RESTART: "avoided"},
}
WITNESS = Witness("duplicate-id", 0, 7, (14,), ("output/0@50",), f"one key {SCRIPT}", "2 keys: 7, 9")


def make_run(runs: Path, run_id: str, verdicts: dict[Cell, str], judged: bool = True) -> RunFolder:
    """A run with two trials of each cell; the second of a red cell is the red one."""
    run = RunFolder(runs / run_id)
    trials = [Trial(run_id, cell, number, 10 + number) for cell in verdicts for number in (1, 2)]
    created = datetime.strptime(run_id[:15], "%Y%m%dT%H%M%S").replace(tzinfo=UTC).isoformat()
    write_json(
        run.run_file,
        {
            "run": run_id,
            "created": created,
            "matrix": "seed",
            "cells": [{"key": cell.key, "title": cell.title, **cell.to_dict()} for cell in verdicts],
            "trials": [trial.to_dict() for trial in trials],
        },
    )
    for trial in trials:
        is_red = verdicts[trial.cell] in ("known", "regression") and trial.number == 2
        make_trial(run, trial, is_red)
    if judged:
        _make_tables(run, trials)
        VerdictRow.write_all(run.verdicts_file, [_judged(cell, verdict) for cell, verdict in verdicts.items()])
    return run


def make_trial(run: RunFolder, trial: Trial, is_red: bool) -> None:
    """What a trial leaves that is drawn and read."""
    folder = run.trial(trial)
    a_plan(trial, description=f"The variant {SCRIPT}", partitions=1, preloaded=10).write(folder.trial_file)
    fields = {"streams_version": "3.3.1", "streams_commit": None, "clients_version": "3.3.1", "java": "17.0.15"}
    reason = f"Task 0_0 came back {SCRIPT}"
    fault = FaultOutcome("pause", bit=True, summary="It stood still.", observed={"stood_still_ms": 7_091, "by": SCRIPT})
    outcome = an_outcome(trial, reason=reason, fault=fault, attested={"instance-1": fields}, seconds={"total": 8.25})
    outcome.write(folder.outcome_file)
    found = {"anomalies": {"duplicate-id": 1}, "witnesses": (WITNESS,)} if is_red else {}
    a_reading(records=100, outputs=100, keys=100, ids=99, **found).write(folder.reader_file)
    events: list[tuple[int, str, str, dict[str, object]]] = [
        (0, "driver", "phase", {"name": "first bulk"}),
        (10, "driver", "instance", {"name": "instance-1", "action": "started", "release": "3.3.1"}),
        (20, "driver", "bulk", {"name": "first", "records": 100, "rate": None}),
        (100, "instance-1", "state", {"from": "CREATED", "to": "RUNNING"}),
        (200, "driver", "produced", {"name": "first", "records": 100}),
        (300, "driver", "step", {"action": f"add {SCRIPT}", "instance": "instance-1"}),
        (900, "driver", "drained", {"committed": 100}),
    ]
    lines = [json.dumps({"t": T0 + t, "source": by, "event": what, **rest}) for t, by, what, rest in events]
    folder.timeline.write_text("\n".join(lines) + "\n")


def _make_tables(run: RunFolder, trials: list[Trial]) -> None:
    records = [
        {"role": role, "partition": 0, "offset": n, "timestamp": None, "key": n % 30, "value": 2 * n, "trial": t.key}
        for t in trials
        for role in ("input", "output", "ids-changelog")
        for n in range(100)
    ]
    types = {"role": pa.string(), "partition": pa.int32(), "offset": pa.int64(), "timestamp": pa.timestamp("ns")}
    schema = pa.schema({**types, "key": pa.int32(), "value": pa.int64(), "trial": pa.string()})
    parts = ds.partitioning(pa.schema([("role", pa.string())]), flavor="hive")
    ds.write_dataset(pa.Table.from_pylist(records, schema), run.table("records"), format="parquet", partitioning=parts)


def _judged(cell: Cell, verdict: str) -> VerdictRow:
    red = verdict in ("known", "regression")
    return a_verdict(
        cell,
        verdict,
        sentence=f"1 duplicate-id {SCRIPT}" if red else "No anomaly in 2 exercised trials.",
        red=int(red),
        counted=0 if verdict == "avoided" else 2,
        trials=2,
        anomalies={"duplicate-id": 1} if red else {},
        issues=("KAFKA-14172",) if verdict == "known" else (),
        seeds=(11, 12),
        seconds=8.25,
        records=200,
        keys=200,
        ids=198,
        interval=(0.0945, 0.9055) if red else None,
    )


def add_docs(run: RunFolder) -> None:
    """Data Docs with GX's names: an index, and a page of a suite for each trial."""
    site = run.data_docs.parent
    (site / "static").mkdir(parents=True)
    (site / "static" / "site.css").write_text("body { color: black }")
    index = '<html lang="en"><head><title>Data Docs</title><link rel="icon" href="data:,"></head><body><h1>Data Docs</h1>{}</body></html>'
    links = []
    for trial in run.trials():
        folder = site / "validations" / "id_uniqueness" / f"run {run.run_id}" / "20261120T022000.000000Z"
        folder.mkdir(parents=True, exist_ok=True)
        name = f"assignments-{trial.title}.html"
        (folder / name).write_text(
            "<html><head><title>Suite</title><link rel='icon' href='data:,'></head><body><h1>Suite id_uniqueness</h1>"
            "<script>document.body.dataset.drawn = 'yes'</script></body></html>"
        )
        links.append(f'<a href="{(folder / name).relative_to(site)}">{trial.title}</a>')
    run.data_docs.write_text(index.format("".join(links)))


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home, made once; tests that change it get a copy."""
    home = tmp_path_factory.mktemp("pristine") / "home"
    for run_id, verdicts in VERDICTS.items():
        run = make_run(home / "runs", run_id, verdicts)
        add_docs(run)
        store_run(run, Settings(home=home).database_url)
    return home


@pytest.fixture
def settings(pristine: Path, tmp_path: Path) -> Settings:
    """A home of the test's own."""
    shutil.copytree(pristine, tmp_path / "home")
    return Settings(home=tmp_path / "home")


@pytest.fixture
def client(settings: Settings) -> TestClient:
    """The app over that home, asked as by a browser."""
    return TestClient(create_app(settings), headers={"Accept": "text/html"})


@contextmanager
def served(app: FastAPI) -> Iterator[str]:
    """The URL of a running server, on a free port of loopback."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        await_condition("the page's server", lambda: server.started, timeout=30, interval=0.02)
        [listener] = server.servers[0].sockets
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(30)


def age(path: Path, seconds: float) -> None:
    """Make a file look older."""
    stat = path.stat()
    os.utime(path, (stat.st_atime - seconds, stat.st_mtime - seconds))
