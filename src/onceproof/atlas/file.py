"""An atlas as a file: SQLite with a table `cells`, a row for each measurement, and a table `about`.

The same measurements give the same bytes, whichever SQLite writes them. `about` has the schema of the file, the number
of rows and a checksum over them, so that a file that was cut or altered is not taken for evidence.
"""

import hashlib
import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import Any

from onceproof.atlas.measurement import Measurement
from onceproof.model.cell import Cell
from onceproof.model.decoding import decode
from onceproof.model.errors import UsageError
from onceproof.model.json_file import encode, replacing

SCHEMA = 1  # of the file; it changes when a column is removed or changes its meaning
AXES = ("scenario", "variant", "streams", "restart_on", "broker")
COLUMNS = (*AXES, *(field.name for field in fields(Measurement) if field.name != "cell"))
IN_JSON = ("anomalies", "issues", "witnesses", "controls", "plants", "seeds", "timeline")
LATER = ("timeline",)  # columns that an earlier Onceproof of the same schema does not write
KINDS = {
    **dict.fromkeys(("trials", "exercised", "red"), "INTEGER NOT NULL"),
    **dict.fromkeys(("excluded_rate", "missed", "seconds"), "REAL"),
    "restart_on": "TEXT",
}
TABLES = (
    "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE cells (" + ", ".join(f'"{name}" {KINDS.get(name, "TEXT NOT NULL")}' for name in COLUMNS) + ")",
)
# Of the header, what differs between two writings of the same: the counter of changes, twice, and SQLite's version.
COUNTERS = ((24, 4), (92, 8))


def write_atlas(file: Path, measurements: Iterable[Measurement]) -> str:
    """Write measurements, in order, as a whole or not at all.

    Returns:
        the checksum of what was written.

    Raises:
        UsageError: the target is a folder.
        HarnessError: the disk is full or read-only.
    """
    if file.is_dir():
        raise UsageError(f"{file} is a folder: name a file for the atlas.")
    rows = [_row(measurement) for measurement in sorted(measurements, key=lambda measurement: measurement.place)]
    about = {"checksum": _checksum(rows), "rows": str(len(rows)), "schema": str(SCHEMA)}
    with replacing(file, named=True) as draft:
        with closing(sqlite3.connect(draft)) as database:
            database.execute("PRAGMA journal_mode = OFF")
            with database:
                for table in TABLES:
                    database.execute(table)
                database.executemany("INSERT INTO about VALUES (?, ?)", sorted(about.items()))
                places = ", ".join("?" for _ in COLUMNS)
                database.executemany(f"INSERT INTO cells VALUES ({places})", rows)  # noqa: S608 - ours
        _settle(draft)
    return about["checksum"]


def _settle(file: Path) -> None:
    """Take out of the header what differs between two writings of the same."""
    with file.open("r+b") as written:
        for at, length in COUNTERS:
            written.seek(at)
            written.write(bytes(length))


def read_atlas(file: Path) -> tuple[Measurement, ...]:
    """The measurements of a file, in order.

    Raises:
        UsageError: it cannot be read, is no atlas, has another schema, or was cut or altered.
    """
    if not file.is_file():
        raise UsageError(f"There is no atlas {file}: name a file that `onceproof atlas export` has written.")
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            about = {str(name): str(value) for name, value in database.execute("SELECT name, value FROM about")}
            _check_schema(file, about.get("schema"))
            there = {name for _, name, *_ in database.execute("PRAGMA table_info(cells)")}
            names = tuple(name for name in COLUMNS if name in there or name not in LATER)
            columns = ", ".join(f'"{name}"' for name in names)
            rows = list(database.execute(f"SELECT {columns} FROM cells ORDER BY rowid"))  # noqa: S608 - names of ours
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise UsageError(f"{file} is no atlas ({error}): name one that `onceproof atlas export` has written.") from None
    if about.get("rows") != str(len(rows)) or about.get("checksum") != _checksum(rows):
        raise UsageError(f"{file} does not have the checksum that it was written with: fetch or export it again.")
    return tuple(_measurements(file, names, rows))


def _check_schema(file: Path, schema: str | None) -> None:
    if schema != str(SCHEMA):
        raise UsageError(
            f"{file} is an atlas of the schema {schema}, and this Onceproof reads {SCHEMA}: read it with the version "
            "that wrote it, or export it with this one."
        )


def _measurements(file: Path, names: Collection[str], rows: Iterable[tuple[Any, ...]]) -> Iterator[Measurement]:
    for number, row in enumerate(rows, 1):
        try:
            data = dict(zip(names, row, strict=True))
            data |= {name: json.loads(data[name]) for name in IN_JSON if name in names}
            cell = Cell.from_dict({name: data.pop(name) for name in AXES})
            yield decode(Measurement, {"cell": cell.to_dict(), **data})
        except (ValueError, TypeError, KeyError, UsageError) as error:
            raise UsageError(
                f"{file} has a measurement that cannot be read (row {number}: {error}): export it again."
            ) from None


def _row(measurement: Measurement) -> tuple[Any, ...]:
    data = encode(measurement)
    flat = {**data.pop("cell"), **data}
    flat |= {name: json.dumps(flat[name], sort_keys=True, separators=(",", ":")) for name in IN_JSON}
    return tuple(str(value) if name == "verdict" else value for name, value in ((n, flat[n]) for n in COLUMNS))


def _checksum(rows: Iterable[tuple[Any, ...]]) -> str:
    """SHA-256 of the rows: each as a line of JSON."""
    digest = hashlib.sha256(f"{SCHEMA}\n".encode())
    for row in rows:
        digest.update(json.dumps(row, separators=(",", ":")).encode() + b"\n")
    return digest.hexdigest()
