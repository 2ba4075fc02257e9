"""Serdes write what Kafka's serializers of the same name write, and say what they cannot."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onceproof.model.serde import SERDES, decode, encode, from_text
from tests.present import present

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda of: st.lists(of) | st.dictionaries(st.text(), of)
)
VALUES = {
    "string": st.text(),
    "integer": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "double": st.floats(allow_nan=False),
    "json": JSON.filter(lambda value: value is not None),
    "bytes": st.binary().map(lambda data: base64.b64encode(data).decode()),
}


@pytest.mark.parametrize("serde", SERDES)
@given(data=st.data())
def test_what_is_written_is_read_again(serde, data):
    value = data.draw(VALUES[serde])
    assert decode(serde, present(encode(serde, value))) == value


@pytest.mark.parametrize(
    ("serde", "value", "written"),
    [
        ("string", "a", b"a"),
        ("integer", 1, b"\0\0\0\1"),
        ("long", -1, b"\xff" * 8),
        ("double", 1, b"\x3f\xf0" + b"\0" * 6),
        ("json", {"a": [1]}, b'{"a":[1]}'),
        ("bytes", "AAE=", b"\0\1"),
        ("long", None, None),
    ],
)
def test_bytes_are_those_of_kafka(serde, value, written):
    assert encode(serde, value) == written


@pytest.mark.parametrize(
    ("serde", "value", "why"),
    [
        ("string", 7, "'7' is not a text"),
        ("long", "7", "'7' is not a whole number of 8 bytes"),
        ("long", True, "'true' is not"),
        ("integer", 2**31, "'2147483648' is not a whole number of 4 bytes"),
        ("bytes", "no base", "'no base' is not bytes in Base64"),
        ("string", {"a": "b" * 200}, r"b\.\.\.' is not"),
    ],
)
def test_what_does_not_fit_is_said(serde, value, why):
    with pytest.raises(ValueError, match=why):
        encode(serde, value)


@pytest.mark.parametrize(
    ("serde", "text", "written"),
    [("long", "3", b"\0" * 7 + b"\3"), ("json", '{"a": 1}', b'{"a":1}'), ("string", "3", b"3")],
)
def test_a_text_is_read_by_the_serde(serde, text, written):
    assert from_text(serde, text) == written


@pytest.mark.parametrize(("serde", "text"), [("long", "three"), ("json", "{"), ("bytes", "!")])
def test_a_text_that_is_none_of_the_serde_is_said(serde, text):
    with pytest.raises(ValueError, match="is not"):
        from_text(serde, text)


@pytest.mark.parametrize(("serde", "data"), [("integer", b"123"), ("string", b"\xff"), ("json", b"{"), ("double", b"")])
def test_bytes_of_another_serde_are_said(serde, data):
    with pytest.raises(ValueError, match=f"has {len(data)} bytes that are not"):
        decode(serde, data)
