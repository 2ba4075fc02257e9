"""Decoding: what is an integer, and the sentence about what is not."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession

from onceproof.readers.kafka import decode_record, headers_text
from spark_jobs.decoding import decode_messages, faults

pytestmark = pytest.mark.spark

MESSAGE = (
    "topic string, partition int, offset long, timestamp timestamp, key binary, value binary, "
    "headers array<struct<key: string, value: binary>>"
)
HEADERS = [("stray", b"\x01\xff"), ("empty", None)]
NOW = datetime(2026, 11, 21, 8, 45, tzinfo=UTC)
ONE = b"\x00\x00\x00\x01"


def decode(
    spark: SparkSession,
    *messages: tuple[str, int, int, bytes | None, bytes | None],
    headers: list[tuple[str, bytes | None]] | None = None,
) -> Any:
    rows = [(topic, partition, offset, NOW, key, value, headers) for topic, partition, offset, key, value in messages]
    topics = [
        ("in", "t1", "input", 4, "integers", None),
        ("app-ids-changelog", "t1", "ids-changelog", 4, "integers", None),
        ("app-seen-changelog", "t1", "seen-changelog-all", 4, "integers", None),
        ("app-windows-changelog", "t1", "windows-changelog", 4, "windows", None),
        ("app-sessions-changelog", "t1", "sessions-changelog", 4, "sessions", None),
        ("pairs", "t1", "output", 8, "integers", None),
        ("padded", "t1", "values-changelog", 10, "integers", None),
        ("other", "t2", "input", 4, "integers", None),
        ("app-sums-changelog", "t1", "sums-changelog", 4, "integers", "windows"),
        ("app-table-changelog", "t1", "table-changelog", 4, "integers", "keys"),
    ]
    return decode_messages(
        spark.createDataFrame(rows, MESSAGE),
        spark.createDataFrame(
            topics, "topic string, trial string, role string, value_bytes int, keys string, form string"
        ),
    )


@pytest.mark.parametrize("number", [0, 1, -1, 255, 256, 2**31 - 1, -(2**31), -559038737])
def test_a_java_integer_is_read_back(spark: SparkSession, number: int) -> None:
    written = number.to_bytes(4, "big", signed=True)
    (row,) = decode(spark, ("in", 0, 0, written, written)).collect()
    assert (row["trial"], row["role"]) == ("t1", "input")
    assert (row["key"], row["value"], row["fault"]) == (number, number, None)


@pytest.mark.parametrize(("headers", "message"), [(None, ""), ([], ""), (HEADERS, "stray=01ff empty")])
def test_headers_are_told_as_the_independent_reader_does(spark: SparkSession, headers: Any, message: str) -> None:
    (row,) = decode(spark, ("in", 0, 0, ONE, ONE), headers=headers).collect()
    assert row["headers"] == message == headers_text(headers or ())


@pytest.mark.parametrize("number", [0, 1, -1, 2**32 + 7, (58 << 32) | 31, 2**63 - 1, -(2**63)])
def test_a_java_long_is_read_back(spark: SparkSession, number: int) -> None:
    (row,) = decode(spark, ("pairs", 0, 0, ONE, number.to_bytes(8, "big", signed=True))).collect()
    assert (row["value"], row["fault"]) == (number, None)


def test_of_a_padded_value_the_integer_is_read(spark: SparkSession) -> None:
    (row,) = decode(spark, ("padded", 0, 0, ONE, (-5).to_bytes(4, "big", signed=True) + b"random")).collect()
    assert (row["value"], row["fault"]) == (-5, None)


@pytest.mark.parametrize(
    ("topic", "key", "value", "fault"),
    [
        ("in", ONE, b"\x00" * 7, "the value has 7 bytes, a 4-byte integer was expected"),
        ("in", ONE, b"\x00", "the value has 1 byte, a 4-byte integer was expected"),
        ("in", ONE, b"", "the value has 0 bytes, a 4-byte integer was expected"),
        ("in", ONE, None, "the value is missing, a 4-byte integer was expected"),
        ("in", None, ONE, "the key is missing, a 4-byte integer was expected"),
        ("in", b"\x00" * 5, b"\x00" * 7, "the key has 5 bytes, a 4-byte integer was expected"),
        ("app-ids-changelog", ONE, b"\x00" * 8, "the value has 8 bytes, a 4-byte integer was expected"),
        ("app-ids-changelog", None, None, "the key is missing, a 4-byte integer was expected"),
        ("pairs", ONE, ONE, "the value has 4 bytes, an 8-byte integer was expected"),
        ("padded", ONE, ONE, "the value has 4 bytes, a 4-byte integer padded to 10 bytes was expected"),
        ("app-ids-changelog", ONE, None, None),
        ("app-seen-changelog", ONE, None, None),
    ],
)
def test_what_is_not_an_integer_has_a_fault(
    spark: SparkSession, topic: str, key: bytes | None, value: bytes | None, fault: str | None
) -> None:
    (row,) = decode(spark, (topic, 0, 0, key, value)).collect()
    assert row["fault"] == fault


TIME = int(NOW.timestamp() * 1_000).to_bytes(8, "big")
WINDOW, SESSION = ONE + TIME + b"\x00" * 4, ONE + TIME + TIME
# Look-alikes of each: another time, one byte more or less, and keys of the other kind.
KEYS = [
    None, ONE, WINDOW, SESSION, WINDOW[:-1], SESSION + b"\x00", ONE + ONE * 3, ONE + ONE * 4, WINDOW[:-1] + b"\x01",
    ONE + TIME + b"\x00" * 8,
]  # fmt: skip


@pytest.mark.parametrize("keys", ["windows", "sessions"])
def test_keys_with_times_are_read_as_the_independent_reader_does(spark: SparkSession, keys: str) -> None:
    messages = [(f"app-{keys}-changelog", 0, n, key, ONE) for n, key in enumerate(KEYS)]
    fields = {row["offset"]: row["fault"] or row["key"] for row in decode(spark, *messages).collect()}
    assert [fields[n] for n in range(len(KEYS))] == [read(key, keys) for key in KEYS]
    assert list(fields.values()).count(1) == 1


def read(key: bytes | None, keys: str) -> int | str | None:
    """What the independent reader makes of it: the key, or what is wrong with it."""
    try:
        return decode_record(0, 0, key, ONE, timestamp=int(NOW.timestamp() * 1_000), keys=keys).key
    except ValueError as fault:
        return str(fault)


def test_undecodable_messages_are_reported_with_their_places(spark: SparkSession) -> None:
    messages = decode(
        spark,
        ("in", 1, 3, ONE, b""),
        ("in", 0, 70, ONE, b"\x00" * 7),
        ("in", 0, 7, ONE, ONE),
        ("other", 0, 0, ONE, ONE),
    )
    assert [tuple(row) for row in faults(messages).collect()] == [
        ("t1", "input", 0, 70, "the value has 7 bytes, a 4-byte integer was expected"),
        ("t1", "input", 1, 3, "the value has 0 bytes, a 4-byte integer was expected"),
    ]


def test_a_changelog_is_read_as_bytes(spark: SparkSession) -> None:
    messages = [
        ("app-sums-changelog", 0, 0, b"\xff\xff\xff\xfeabc", b"\x0a"),
        ("app-sums-changelog", 0, 1, b"\xff\xff\xff\xfeabc", b""),
        ("app-sums-changelog", 0, 2, b"\xff\xff\xff\xfeabc", None),
        ("app-sums-changelog", 0, 3, b"abc", b"\x0a"),
        ("in", 0, 0, b"\x00\x00\x00\x01", b"\x00\x00\x00\x01"),
        ("app-table-changelog", 0, 0, b"\x00\x00\x00\x01", b"\x00\x00\x00\x02"),
    ]
    found = {
        (r["role"], r["offset"]): (r["key"], r["value"], r["raw"], r["fault"])
        for r in decode(spark, *messages).collect()
    }
    short = "the key is no integer with something behind it"
    assert found == {
        ("sums-changelog", 0): (-2, None, "fffffffe616263,0a", None),
        ("sums-changelog", 1): (-2, None, "fffffffe616263,", None),
        ("sums-changelog", 2): (-2, None, "fffffffe616263", None),
        ("sums-changelog", 3): (None, None, "616263,0a", short),
        ("input", 0): (1, 1, None, None),
        ("table-changelog", 0): (1, 2, "00000001,00000002", None),
    }
