"""What stores held becomes rows of the table `records`, without Spark."""

from pathlib import Path

import pyarrow.parquet as pq

from onceproof.model.run_folder import StoreDump
from spark_jobs.collect import HELD, append, read_dump


def test_entries_of_dumps_are_rows_and_an_empty_store_has_none(tmp_path: Path) -> None:
    held = {"one.ids.1.active.7.csv": "5,50\n6,-7\n", "two.ids.1.standby.0.csv": "", "two.ids.0.active.3.csv": "8,80\n"}
    for name, entries in held.items():
        (tmp_path / name).write_text(entries)
    dumps = [StoreDump.of(tmp_path / name) for name in held]
    append(tmp_path, "ids-dump", (read_dump("t1", number, dump) for number, dump in enumerate(dumps)))
    file = pq.ParquetFile(tmp_path / "role=ids-dump" / "held.parquet")
    rows = file.read().to_pylist()
    assert [(r["trial"], r["partition"], r["offset"], r["key"], r["value"]) for r in rows] == [
        ("t1", 1, 0, 5, 50),
        ("t1", 1, 0, 6, -7),
        ("t1", 0, 2, 8, 80),
    ]
    assert file.schema_arrow == HELD
    assert file.num_row_groups == 2
