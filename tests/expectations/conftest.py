"""Run folders as Spark leaves them, handmade from specimens of the tables."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onceproof.model.files import Produced
from onceproof.model.json_file import write_json
from onceproof.model.run_folder import RunFolder
from tests.conftest import a_trial
from tests.specimens.files import a_plan, an_outcome

ASSIGNMENTS = pa.schema(
    [
        ("partition", pa.int32()),
        ("key", pa.int32()),
        ("id", pa.int32()),
        ("first_offset", pa.int64()),
        ("outputs", pa.int64()),
        ("inputs", pa.int64()),
        ("expected_id", pa.int64()),
    ]
)
CHANGELOGS = pa.schema(
    [
        ("store", pa.string()),
        ("partition", pa.int32()),
        ("key", pa.int32()),
        ("changelog_offset", pa.int64()),
        ("changelog_value", pa.int32()),
        ("previous_value", pa.int32()),
        ("last", pa.bool_()),
        ("output_value", pa.int64()),
    ]
)
HEALTHY: dict[str, list[tuple[Any, ...]]] = {
    "assignments": [(0, 1, 0, 0, 2, 2, 0), (0, 3, 2, 1, 1, 1, 2), (1, 0, 1, 0, 1, 1, 1), (1, 2, 3, 1, 1, 1, 3)],
    "changelogs": [
        *[("ids", p, key, at, value, None, True, value) for p, key, at, value in
          [(0, 1, 0, 0), (0, 3, 1, 2), (1, 0, 0, 1), (1, 2, 1, 3)]],
        ("counter", 0, 0, 0, 0, None, False, None),
        ("counter", 0, 0, 1, 1, 0, True, 1),
        ("counter", 1, 0, 0, 1, None, True, 1),
    ],
}  # fmt: skip


def make_run(home: Path, tables: dict[str, list[tuple[object, ...]]], keys: int = 4) -> tuple[RunFolder, str]:
    """A run of one trial with these rows, whose producer delivered `keys`."""
    trial = a_trial("3.3.1")
    run = RunFolder(home / trial.run)
    write_json(run.run_file, {"trials": [trial.to_dict()]})
    a_plan(trial, promises={"identities": "keys", "counters": "keys"}).write(run.trial(trial).trial_file)
    an_outcome(trial, produced=Produced(5, keys)).write(run.trial(trial).outcome_file)
    write_json(run.table("errors.json"), {})
    for name, schema in (("assignments", ASSIGNMENTS), ("changelogs", CHANGELOGS)):
        columns = list(zip(*tables[name], strict=True)) or [() for _ in schema]
        table = pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
        table = table.append_column("trial", pa.array([trial.key] * table.num_rows, pa.string()))
        run.table(name).mkdir()
        pq.write_table(table, run.table(name) / "part-0.parquet")
    return run, trial.key


@pytest.fixture
def vendor(project: Path) -> Path:
    """The unpacked WebJars, which `make setup` fetches."""
    return project / ".onceproof" / "artifacts" / "data-docs-vendor"
