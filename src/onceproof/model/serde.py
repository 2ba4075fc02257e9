"""The serdes in which an application's records can be written: as text, and as Kafka's bytes."""

import base64
import binascii
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

SHOWN = 80  # characters of a value that are shown


@dataclass(frozen=True)
class Serde:
    """How values of one kind are written: as Kafka's serializer of the name does."""

    kind: type
    what: str  # for people
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]


def _number(form: str, kind: type, what: str) -> Serde:
    return Serde(kind, what, lambda value: struct.pack(form, value), lambda data: struct.unpack(form, data)[0])


def _compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


SERDES = {
    "string": Serde(str, "a text", str.encode, bytes.decode),
    "integer": _number(">i", int, "a whole number of 4 bytes"),
    "long": _number(">q", int, "a whole number of 8 bytes"),
    "double": _number(">d", float, "a number"),
    "json": Serde(object, "any JSON", _compact, json.loads),
    "bytes": Serde(
        str,
        "bytes in Base64",
        lambda text: base64.b64decode(text, validate=True),
        lambda data: base64.b64encode(data).decode(),
    ),
}


def encode(serde: str, value: Any) -> bytes | None:
    """The bytes of a value; None stays None, and bytes that are of this serde stay as they are.

    Raises:
        ValueError: it is not a value of this serde; says what was expected.
    """
    if value is None:
        return None
    known = SERDES[serde]
    if isinstance(value, bytes):
        decode(serde, value)
        return value
    fits = isinstance(value, known.kind if known.kind is not float else (int, float)) and not (
        isinstance(value, bool) and known.kind in (int, float)
    )
    if fits:
        try:
            return known.encode(value)
        except (struct.error, binascii.Error, TypeError, ValueError):
            pass
    raise ValueError(f"{_show(value)} is not {known.what}")


def from_text(serde: str, text: str) -> bytes:
    """The bytes of a value written as text: a number as its digits, JSON as it is.

    Raises:
        ValueError: it is not a value of this serde; says what was expected.
    """
    known = SERDES[serde]
    try:
        value = json.loads(text) if serde == "json" else text if known.kind is str else known.kind(text)
    except ValueError:
        raise ValueError(f"{_show(text)} is not {known.what}") from None
    return encode(serde, value) or b""


def decode(serde: str, data: bytes) -> Any:
    """The value that the bytes mean.

    Raises:
        ValueError: they are not of this serde; says what was expected.
    """
    try:
        return SERDES[serde].decode(data)
    except (struct.error, ValueError):
        raise ValueError(f"has {len(data)} bytes that are not {SERDES[serde].what}") from None


def _show(value: Any) -> str:
    return value_text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))


def value_text(text: str) -> str:
    """A text in quotes, cut if it is long."""
    return repr(text if len(text) <= SHOWN else f"{text[:SHOWN]}...")
