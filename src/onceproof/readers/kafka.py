"""From what Kafka holds to integers, and what cannot be read as such."""

import struct
from collections.abc import Sequence

from onceproof.model.record import Record


def decode_integer(data: bytes | None, size: int = 4) -> int | None:
    """Read what Kafka's IntegerSerializer (LongSerializer for a size of 8) wrote: big-endian, padding after it.

    Raises:
        ValueError: it has another length.
    """
    if data is None:
        return None
    if len(data) != size:
        raise ValueError(f"has {len(data)} byte{'' if len(data) == 1 else 's'}, {_described(size)} was expected")
    return int(struct.unpack_from(">q" if size == 8 else ">i", data)[0])


def _described(size: int) -> str:
    return {4: "a 4-byte integer", 8: "an 8-byte integer"}.get(size, f"a 4-byte integer padded to {size} bytes")


def decode_record(
    partition: int,
    offset: int,
    key: bytes | None,
    value: bytes | None,
    value_bytes: int = 4,
    timestamp: int = 0,
    headers: Sequence[tuple[str, bytes | None]] = (),
    *,
    tombstones: bool = True,
) -> Record:
    """A record of integers; where there are `tombstones`, its value may be null.

    Raises:
        ValueError: key or value is not an integer; says which, and why.
    """
    name = "key"
    try:
        if key is None:
            raise ValueError("is missing, a 4-byte integer was expected")
        number = decode_integer(key)
        name = "value"
        if value is None and not tombstones:
            raise ValueError(f"is missing, {_described(value_bytes)} was expected")
        content = decode_integer(value, value_bytes)
    except ValueError as error:
        raise ValueError(f"the {name} {error}") from None
    return Record(partition, offset, number, content, timestamp, headers_text(headers))


def headers_text(headers: Sequence[tuple[str, bytes | None]]) -> str:
    """Headers as `name=hex`, one after the other; of one without a value, its name."""
    return " ".join(name if value is None else f"{name}={value.hex()}" for name, value in headers)
