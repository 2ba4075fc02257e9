"""From what Kafka holds to integers, and what cannot be read as such."""

import json
import struct
from collections.abc import Callable, Collection, Sequence

from onceproof.model.files import Declared
from onceproof.model.record import Record, Token
from onceproof.model.serde import decode, value_text


def decode_integer(data: bytes | None, size: int = 4) -> int | None:
    """Read what Kafka's IntegerSerializer (LongSerializer for a size of 8) wrote: big-endian, padding after it.

    Raises:
        ValueError: it has another length.
    """
    if data is None:
        return None
    if len(data) != size:
        raise ValueError(f"has {len(data)} byte{'' if len(data) == 1 else 's'}, {_describe_size(size)} was expected")
    return int(struct.unpack_from(">q" if size == 8 else ">i", data)[0])


def _describe_size(size: int) -> str:
    return {4: "a 4-byte integer", 8: "an 8-byte integer"}.get(size, f"a 4-byte integer padded to {size} bytes")


# By the kind of a topic's keys, how a key continues after its integer: what that is called, and the bytes of a time.
KEYS: dict[str, tuple[str, Callable[[int], bytes]]] = {
    "integers": ("", lambda _: b""),
    "windows": (" with its window", lambda time: struct.pack(">qi", time, 0)),  # when it begins, and a sequence number
    "sessions": (" with its session", lambda time: struct.pack(">qq", time, time)),  # when it ends and begins
}


def decode_key(data: bytes | None, keys: str, timestamp: int) -> int:
    """Read a key, whose integer may be followed by the time of its record.

    Raises:
        ValueError: it is missing, has another length, or another time.
    """
    width, behind = KEYS[keys]
    if data is None:
        raise ValueError(f"is missing, a 4-byte integer{width} was expected")
    rest = behind(timestamp)
    if len(data) != 4 + len(rest):
        size = f"{len(data)} byte{'' if len(data) == 1 else 's'}"
        raise ValueError(f"has {size}, a 4-byte integer{width} was expected")
    if data[4:] != rest:
        raise ValueError(f"ends with {data[4:].hex()}, which is not of the record's time, {rest.hex()}")
    return int(struct.unpack(">i", data[:4])[0])


def decode_record(
    partition: int,
    offset: int,
    key: bytes | None,
    value: bytes | None,
    value_bytes: int = 4,
    timestamp: int = 0,
    headers: Sequence[tuple[str, bytes | None]] = (),
    keys: str = "integers",
    *,
    tombstones: bool = True,
) -> Record:
    """A record of integers; where there are `tombstones`, its value may be null.

    Raises:
        ValueError: key or value is not an integer; says which, and why.
    """
    name = "key"
    try:
        number = decode_key(key, keys, timestamp)
        name = "value"
        if value is None and not tombstones:
            raise ValueError(f"is missing, {_describe_size(value_bytes)} was expected")
        content = decode_integer(value, value_bytes)
    except ValueError as error:
        raise ValueError(f"the {name} {error}") from None
    return Record(partition, offset, number, content, timestamp, headers_text(headers))


def byte_record(
    partition: int,
    offset: int,
    key: bytes | None,
    value: bytes | None,
    timestamp: int = 0,
    headers: Sequence[tuple[str, bytes | None]] = (),
) -> Record:
    """A record of a changelog of which only bytes are compared; its number is that with which its key begins.

    Raises:
        ValueError: it has no key, or one that is shorter than an integer.
    """
    if key is None or len(key) < 4:
        raise ValueError("the key is no integer with something behind it")
    return Record(
        partition, offset, decode_integer(key[:4]), None, timestamp, headers_text(headers), entry_text(key, value)
    )


def entry_text(key: bytes | None, value: bytes | None) -> str:
    """Key and value, or the key alone of a tombstone, in hexadecimal digits."""
    return ",".join(data.hex() for data in (key, value) if data is not None)


def token(data: bytes | None, serde: str = "bytes") -> Token | None:
    """The value of these bytes; None for none.

    Raises:
        ValueError: they are not of this serde.
    """
    return None if data is None else Token.of(data, _text(serde, data))


def _text(serde: str, data: bytes) -> str:
    value = decode(serde, data)
    return value_text(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def token_record(
    partition: int,
    offset: int,
    key: bytes | None,
    value: bytes | None,
    declared: Declared,
    timestamp: int = 0,
    headers: Sequence[tuple[str, bytes | None]] = (),
) -> Record:
    """A record of your own application, as tokens of its key and of its value, without what is ignored.

    Raises:
        ValueError: key or value is not of its serde; says which.
    """
    name = "key"
    try:
        key_token = token(key, declared.key)
        name = "value"
        if declared.ignored and value is not None:
            value = without(value, declared.ignored)
        value_token = token(value, declared.value)
    except ValueError as error:
        raise ValueError(f"the {name} {error}") from None
    return Record(partition, offset, key_token, value_token, timestamp, headers_text(headers))


def without(data: bytes, fields: Collection[str]) -> bytes:
    """A JSON object without these fields; anything else is left as it is.

    Raises:
        ValueError: it is not JSON.
    """
    value = decode("json", data)
    if not isinstance(value, dict):
        return data
    return json.dumps({name: of for name, of in value.items() if name not in fields}, ensure_ascii=False).encode()


def headers_text(headers: Sequence[tuple[str, bytes | None]]) -> str:
    """Headers as `name=hex`, one after the other; for one without a value, its name."""
    return " ".join(name if value is None else f"{name}={value.hex()}" for name, value in headers)
