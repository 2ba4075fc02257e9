"""The tables of a run: Parquet, one folder each, with a column `trial`; a folder that exists is complete.

records      as read from Kafka, partitioned by `role` STRING; and what stores held, in the roles `<store>-contents`
             and `<store>-dump`, as bytes in `<store>-entries`
             partition INT, offset LONG, timestamp TIMESTAMP, key INT, value LONG, headers STRING (`name=hex`),
             raw STRING (what is compared as bytes: `key,value` in hexadecimal digits, or the key of a tombstone)
assignments  one row per key and ID of the output; partition and first_offset are their first place there
             partition INT, key INT, id INT, first_offset LONG, outputs LONG, inputs LONG, expected_id LONG
changelogs   store `ids`: one row per key. Store `counter`: one row per changelog record, and one per partition
             that has output but no record. `last` marks the rows that say what the store ended with
             store STRING, partition INT, key INT, changelog_offset LONG, changelog_value INT,
             previous_offset LONG, previous_value INT, last BOOLEAN, output_partition INT, output_offset LONG,
             output_value LONG
transactions one row per transaction and log that it belongs to, from the brokers' log segments: how the coordinator
             decided (at the place `decision`), how it ended in this log, how many records it wrote there, how many of
             them readers saw; and, where it is known what its inputs make the topology write, how much that is, how
             much was written, what of it is missing or foreign, and the least such key. An `outcome` is committed,
             aborted, open, or nothing where nothing was written though something is due
             producer LONG, decision STRING, decided STRING, role STRING, partition INT, place STRING,
             first_offset LONG, marker_offset LONG, outcome STRING, records LONG, visible LONG, due LONG, written LONG,
             missing LONG, foreign LONG, key INT
comparisons  what a promise expects at one place and what was observed, `onceproof.model.anomaly.Comparison`;
             `anomaly` is null where all is well; `comparisons`: for how many places the row stands
             promise STRING, anomaly STRING, partition INT, key INT, place STRING, expected STRING, observed STRING,
             comparisons LONG
findings     one row per witness, the columns of `onceproof.model.anomaly.Witness`
             anomaly STRING, partition INT, key INT, ids ARRAY<INT>, offsets ARRAY<STRING>, expected STRING,
             observed STRING
counts       one row per trial
             records LONG, outputs LONG, keys LONG, ids LONG

Next to them, `errors.json` holds one sentence for each trial whose topics could not be read as what they must be, and
`corrupt.json` the records that are no pair of integers: trial, role, partition, offset, fault.
"""

import shutil
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as t

from onceproof.model.json_file import read_json, write_json
from onceproof.model.run_folder import RunFolder

# The tables that the checks write, with the types of DuckDB.
CHECKED = {
    "assignments": "trial string, partition int, key int, id int, first_offset long, outputs long, inputs long, "
    "expected_id long",
    "changelogs": "trial string, store string, partition int, key int, changelog_offset long, changelog_value int, "
    "previous_offset long, previous_value int, last boolean, output_partition int, output_offset long, "
    "output_value long",
    "transactions": "trial string, producer long, decision string, decided string, role string, partition int, "
    "place string, first_offset long, marker_offset long, outcome string, records long, visible long, due long, "
    'written long, missing long, "foreign" long, key int',
    "comparisons": "trial string, promise string, anomaly string, partition int, key int, place string, "
    "expected string, observed string, comparisons long",
    "findings": "trial string, anomaly string, partition int, key int, ids int[], offsets string[], "
    "expected string, observed string",
    "counts": "trial string, records long, outputs long, keys long, ids long",
}

RECORDS = t.StructType(
    [
        t.StructField("partition", t.IntegerType()),
        t.StructField("offset", t.LongType()),
        t.StructField("timestamp", t.TimestampType()),
        t.StructField("key", t.IntegerType()),
        t.StructField("value", t.LongType()),
        t.StructField("headers", t.StringType()),
        t.StructField("raw", t.StringType()),
        t.StructField("trial", t.StringType()),
        t.StructField("role", t.StringType()),
    ]
)


def columns_of(table: str) -> list[str]:
    """Columns of a table that the checks write, in its order."""
    return [column.split()[0].strip('"') for column in CHECKED[table].split(", ")]


def number_trials(table: str) -> str:
    """Columns of a table while the checks make it, with types: with the trial's number in place of its name."""
    return CHECKED[table].replace("trial string", "trial int", 1)


def errors_file(run_folder: RunFolder) -> Path:
    """Where the sentences about unreadable trials stand, as JSON object from trial key to sentence."""
    return run_folder.path / "tables" / "errors.json"


def read_errors(run_folder: RunFolder) -> dict[str, str]:
    """The sentences about unreadable trials, by trial key."""
    return dict(read_json(errors_file(run_folder)))


def write_errors(run_folder: RunFolder, errors: dict[str, str]) -> None:
    """Write the sentences about unreadable trials; an empty object when there are none."""
    write_json(errors_file(run_folder), errors)


def corrupt_file(run_folder: RunFolder) -> Path:
    """Where the records stand that cannot be decoded."""
    return run_folder.path / "tables" / "corrupt.json"


def read_corrupt(run_folder: RunFolder) -> list[dict[str, Any]]:
    """The records that cannot be decoded; none where nothing was collected."""
    file = corrupt_file(run_folder)
    return list(read_json(file)) if file.exists() else []


def write_corrupt(run_folder: RunFolder, corrupt: list[dict[str, Any]]) -> None:
    """Write the records that cannot be decoded."""
    write_json(corrupt_file(run_folder), corrupt)


def drop(run_folder: RunFolder, *names: str) -> None:
    """Remove tables, so that no later step takes those of an earlier attempt for results."""
    for name in names:
        shutil.rmtree(run_folder.table(name), ignore_errors=True)


def draft(run_folder: RunFolder, name: str, kind: str = "") -> Path:
    """Where a table is written before it is complete; emptied. Drafts of several kinds may stand side by side."""
    folder = draft_folder(run_folder, name, kind)
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def draft_folder(run_folder: RunFolder, name: str, kind: str = "") -> Path:
    """The folder of a draft, as it is."""
    return run_folder.table(name).with_name(f".{name}{kind}.draft")


def publish(run_folder: RunFolder, name: str, written: Path) -> None:
    """Give the complete draft the table's name; what stood there before is replaced."""
    drop(run_folder, name)
    written.rename(run_folder.table(name))


def in_few_files(rows: DataFrame) -> DataFrame:
    """The rows in two tasks for each core.

    Spark would make a task and a file of each partition of each topic, and of each part of a union: both cost more
    than what is in them.
    """
    return rows.coalesce(2 * rows.sparkSession.sparkContext.defaultParallelism)
