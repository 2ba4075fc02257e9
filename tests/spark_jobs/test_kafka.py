"""Decoding: what is an integer, and the sentence about what is not."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.transforms.kafka import decoded, first_faults

pytestmark = pytest.mark.spark

MESSAGE = "topic string, partition int, offset long, timestamp timestamp, key binary, value binary"
NOW = datetime(2026, 11, 21, 8, 45, tzinfo=UTC)
ONE = b"\x00\x00\x00\x01"


def decode(spark: SparkSession, *messages: tuple[str, int, int, bytes | None, bytes | None]) -> Any:
    rows = [(topic, partition, offset, NOW, key, value) for topic, partition, offset, key, value in messages]
    topics = [("in", "t1", "input"), ("ids", "t1", "ids-changelog"), ("other", "t2", "input")]
    return decoded(
        spark.createDataFrame(rows, MESSAGE),
        spark.createDataFrame(topics, "topic string, trial string, role string"),
    )


@pytest.mark.parametrize("number", [0, 1, -1, 255, 256, 2**31 - 1, -(2**31), -559038737])
def test_a_java_integer_is_read_back(spark: SparkSession, number: int) -> None:
    written = number.to_bytes(4, "big", signed=True)
    (row,) = decode(spark, ("in", 0, 0, written, written)).collect()
    assert (row["trial"], row["role"]) == ("t1", "input")
    assert (row["key"], row["value"], row["fault"]) == (number, number, None)


@pytest.mark.parametrize(
    ("topic", "key", "value", "fault"),
    [
        ("in", ONE, b"\x00" * 7, "the value has 7 bytes"),
        ("in", ONE, b"\x00", "the value has 1 byte"),
        ("in", ONE, b"", "the value has 0 bytes"),
        ("in", ONE, None, "the value is missing"),
        ("in", None, ONE, "the key is missing"),
        ("in", b"\x00" * 5, b"\x00" * 7, "the key has 5 bytes"),
        ("ids", ONE, b"\x00" * 8, "the value has 8 bytes"),
        ("ids", None, None, "the key is missing"),
        ("ids", ONE, None, None),
    ],
)
def test_what_is_not_an_integer_has_a_fault(
    spark: SparkSession, topic: str, key: bytes | None, value: bytes | None, fault: str | None
) -> None:
    (row,) = decode(spark, (topic, 0, 0, key, value)).collect()
    assert row["fault"] == fault


def test_a_trial_has_the_sentence_of_its_first_faulty_message(spark: SparkSession) -> None:
    messages = decode(
        spark,
        ("in", 1, 3, ONE, b""),
        ("in", 0, 70, ONE, b"\x00" * 7),
        ("in", 0, 7, ONE, ONE),
        ("other", 0, 0, ONE, ONE),
    )
    sentence = "topic in partition 0 offset 70: the value has 7 bytes, a 4-byte integer was expected"
    assert [tuple(row) for row in first_faults(messages).collect()] == [("t1", sentence)]
