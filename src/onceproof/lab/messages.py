"""The messages of a trial's topics, as its independent reader got them: kept, so that they can be judged again.

Parquet files, compressed by Zstandard: one of what readers of committed records see, and one of what others see.
"""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from arro3.core import Array, DataType, Field, RecordBatch, Schema, Table
from arro3.io import read_parquet, write_parquet

from onceproof.model.errors import HarnessError
from onceproof.model.json_file import replacing

COLUMNS = {
    "topic": DataType.string(),
    "partition": DataType.int32(),
    "offset": DataType.int64(),
    "timestamp": DataType.int64(),
    "key": DataType.binary(),
    "value": DataType.binary(),
    "headers": DataType.string(),
}
SCHEMA = Schema([Field(name, of, nullable=True) for name, of in COLUMNS.items()])
# Nearly all values of these differ, and offsets and times grow little by little: dictionaries would double the file.
DISTINCT, GROWING = ("offset", "timestamp", "key", "value"), ("offset", "timestamp")
MARK = b"PAR1"
TOGETHER = 20_000  # messages that wait to be packed

Headers = Sequence[tuple[str, bytes | None]]


class TopicMessage(NamedTuple):
    """A message of a topic; `timestamp` in ms."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class MessageLog:
    """Messages in the order in which they were read."""

    def __init__(self) -> None:
        """None yet."""
        self._rows: list[tuple[object, ...]] = []
        self._packed: list[RecordBatch] = []

    def append(self, message: TopicMessage) -> None:
        """Add one."""
        self._rows.append((*message[:-1], _headers_text(message.headers)))
        if len(self._rows) >= TOGETHER:
            self._pack()

    def _pack(self) -> None:
        columns = zip(*self._rows, strict=True)
        arrays = [Array(list(column), of) for column, of in zip(columns, COLUMNS.values(), strict=True)]
        self._packed.append(RecordBatch.from_arrays(arrays, schema=SCHEMA))
        self._rows.clear()

    def write(self, file: Path) -> None:
        """Write all of them.

        Raises:
            HarnessError: the disk is full or read-only.
        """
        if self._rows:
            self._pack()
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as draft:
            write_parquet(
                Table.from_batches(self._packed, schema=SCHEMA),
                str(draft),
                compression="zstd(9)",
                column_dictionary_enabled=dict.fromkeys(DISTINCT, False),
                column_encoding=dict.fromkeys(GROWING, "delta_binary_packed"),
            )


def read_messages(file: Path) -> Iterator[TopicMessage]:
    """The messages of a file, those of a partition in the order of their offsets.

    Raises:
        HarnessError: it is missing, or was cut.
    """
    _check_whole(file)
    for batch in read_parquet(str(file)):
        columns = [batch[name].to_pylist() for name in COLUMNS]
        headers = map(_read_headers, columns.pop())
        yield from map(TopicMessage, *columns, headers)


def _check_whole(file: Path) -> None:
    """Parquet begins and ends with a mark; the library that reads it ends the process if one is missing."""
    try:
        with file.open("rb") as stream:
            begin = stream.read(len(MARK))
            stream.seek(-len(MARK), os.SEEK_END)
            end = stream.read()
    except OSError as error:
        raise HarnessError(f"The messages in {file} cannot be read: {error}.") from error
    if not begin == end == MARK:
        raise HarnessError(f"The messages in {file} cannot be read: it is no Parquet file, or was cut.")


def _headers_text(headers: Headers) -> str | None:
    """Headers as JSON: `key`, and `value` in hexadecimal digits; None for none."""
    if not headers:
        return None
    return json.dumps([{"key": key, "value": None if value is None else value.hex()} for key, value in headers])


def _read_headers(text: str | None) -> Headers:
    headers = json.loads(text) if text else ()
    return [(of["key"], None if of["value"] is None else bytes.fromhex(of["value"])) for of in headers]
