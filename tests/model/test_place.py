"""A place in a topic is read from its text; a description in words is not a place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onceproof.model.place import Place


@given(st.from_regex(r"[a-z][a-z-]*", fullmatch=True), st.integers(0, 32_767), st.integers(0, 2**48))
def test_what_is_written_is_read(role, partition, offset):
    place = Place(role, partition, offset)
    assert Place.parse(str(place)) == place


@pytest.mark.parametrize("text", ["", "task 0_0, .checkpoint", "output/0", "output/0@", "output/0@1 ", "output/x@1"])
def test_words_are_no_place(text):
    assert Place.parse(text) is None
