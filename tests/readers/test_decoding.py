"""The independent reader's sentences about what is no integer, which are Spark's (`tests/spark_jobs/test_kafka.py`)."""

import pytest

from onceproof.model.record import Record
from onceproof.readers.kafka import decode_record

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


def test_a_tombstone_is_a_record_where_there_may_be_one() -> None:
    assert decode_record(0, 7, ONE, None) == Record(0, 7, 1, None)
