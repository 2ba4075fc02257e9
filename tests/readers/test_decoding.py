"""The independent reader's sentences about non-integers: the same as Spark's (`tests/spark_jobs/test_kafka.py`)."""

import re

import pytest

from onceproof.model.record import Record
from onceproof.readers.kafka import decode_record, without

ONE = b"\x00\x00\x00\x01"


@pytest.mark.parametrize(
    ("key", "value", "size", "fault"),
    [
        (ONE, b"\x00" * 7, 4, "the value has 7 bytes, a 4-byte integer was expected"),
        (ONE, b"\x00", 4, "the value has 1 byte, a 4-byte integer was expected"),
        (ONE, b"", 4, "the value has 0 bytes, a 4-byte integer was expected"),
        (ONE, None, 4, "the value is missing, a 4-byte integer was expected"),
        (None, ONE, 4, "the key is missing, a 4-byte integer was expected"),
        (b"\x00" * 5, b"\x00" * 7, 4, "the key has 5 bytes, a 4-byte integer was expected"),
        (ONE, ONE, 8, "the value has 4 bytes, an 8-byte integer was expected"),
        (ONE, ONE, 10, "the value has 4 bytes, a 4-byte integer padded to 10 bytes was expected"),
    ],
)
def test_what_is_not_an_integer_has_a_sentence(key: bytes | None, value: bytes | None, size: int, fault: str) -> None:
    with pytest.raises(ValueError, match=f"^{fault}$"):
        decode_record(0, 7, key, value, size, tombstones=False)


TIMES = (1_234).to_bytes(8, "big")
KEYS = {"windows": ONE + TIMES + b"\x00" * 4, "sessions": ONE + TIMES + TIMES}


@pytest.mark.parametrize(("keys", "key"), KEYS.items())
def test_a_key_may_have_the_time_of_the_record_behind_it(keys: str, key: bytes) -> None:
    assert decode_record(0, 7, key, ONE, timestamp=1_234, keys=keys) == Record(0, 7, 1, 1, 1_234)


@pytest.mark.parametrize(
    ("keys", "key", "fault"),
    [
        ("windows", None, "the key is missing, a 4-byte integer with its window was expected"),
        ("windows", ONE, "the key has 4 bytes, a 4-byte integer with its window was expected"),
        ("sessions", KEYS["windows"], "the key has 16 bytes, a 4-byte integer with its session was expected"),
        (
            "windows",
            ONE + TIMES + ONE,
            "the key ends with 00000000000004d200000001, which is not of the record's time, 00000000000004d200000000",
        ),
        (
            "sessions",
            ONE + TIMES + b"\x00" * 8,
            "the key ends with 00000000000004d20000000000000000, which is not of the record's time, "
            "00000000000004d200000000000004d2",
        ),
    ],
)
def test_a_key_of_another_time_has_a_sentence(keys: str, key: bytes | None, fault: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(fault)}$"):
        decode_record(0, 7, key, ONE, timestamp=1_234, keys=keys)


def test_a_tombstone_is_a_record_where_there_may_be_one() -> None:
    assert decode_record(0, 7, ONE, None) == Record(0, 7, 1, None)


def test_ignored_fields_of_an_object_are_removed_and_others_kept() -> None:
    assert without('{"a": 1, "b": "\u00fc"}'.encode(), ["a"]) == '{"b": "\u00fc"}'.encode()
    assert without(b"[1]", ["a"]) == b"[1]"
