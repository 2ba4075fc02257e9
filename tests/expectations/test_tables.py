"""The rows of trials are read together, as many as may be held, and each gets its own."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from expectations.tables import ASSIGNMENTS, TableReader
from onceproof.model.run_folder import RunFolder

TRIALS = {"a": 3, "b": 2, "c": 0, "d": 9, "e": 1}


@pytest.fixture
def run(tmp_path):
    """Tables in two files, each with rows of all trials."""
    run = RunFolder(tmp_path / "20261121T084500-3f2a")
    run.table("assignments").mkdir(parents=True)
    for part in (0, 1):
        rows = [
            {**dict.fromkeys(ASSIGNMENTS, number), "trial": trial}
            for trial, size in reversed(TRIALS.items())
            for number in range(part, size, 2)
        ]
        pq.write_table(pa.Table.from_pylist(rows), run.table("assignments") / f"part-{part}.parquet")
    return run


def keys(reader: TableReader, trial: str) -> list[int]:
    return sorted(reader.rows("assignments", trial)["key"].to_pylist())


@pytest.mark.parametrize("at_once", [0, 1, 5, 100])
def test_each_trial_gets_its_rows_however_many_are_read_at_once(run, at_once):
    reader = TableReader(run, list(TRIALS), at_once)
    for trial, size in TRIALS.items():
        assert reader.size("assignments", trial) == size
        assert keys(reader, trial) == list(range(size))
        assert set(reader.rows("assignments", trial).column_names) == set(ASSIGNMENTS)


def test_a_table_is_read_once_for_as_many_trials_as_may_be_held(run, monkeypatch):
    looks = []
    monkeypatch.setattr(TableReader, "_dataset", lambda self, table: looks.append(table) or whole(self, table))
    reader = TableReader(run, list(TRIALS), 5)
    for trial in TRIALS:
        for _ in range(2):
            reader.rows("assignments", trial)
    assert len(looks) == 1 + len([("a", "b", "c"), ("d",), ("e",)]), "the sizes, and each group"


whole = TableReader._dataset
