import pytest
from hypothesis import given
from hypothesis import strategies as st

from onceproof.model.errors import UsageError
from onceproof.model.release import Release

parts = st.tuples(st.integers(3, 20), st.integers(0, 20), st.integers(0, 20))


@given(parts)
def test_what_is_printed_is_read_again(numbers):
    assert Release.parse(str(Release(*numbers))) == Release(*numbers)


@given(parts, parts)
def test_order_is_that_of_the_numbers(a, b):
    assert (Release(*a) < Release(*b)) == (a < b)


@pytest.mark.parametrize(
    "text",
    ["3.3", "3.3.1; rm -rf /", "3.3.1.0", "v3.3.1", "", "3.3.1\n", "3.-1.0", "३.३.१", "latest", "3.3.1-rc0"],
)
def test_a_malformed_release_is_refused_with_its_text(text):
    with pytest.raises(UsageError) as refused:
        Release.parse(text)
    assert repr(text) in str(refused.value)


def test_a_release_before_kraft_is_refused():
    with pytest.raises(UsageError, match=r"2\.8\.2 is too old"):
        Release.parse("2.8.2")


def test_questions_to_a_release():
    assert Release.parse("3.3.2").cache_size_config == "cache.max.bytes.buffering"
    assert Release.parse("3.4.0").cache_size_config == "statestore.cache.max.bytes"
    assert Release.parse("3.9.1").oldest_java == 11
    assert Release.parse("4.0.0").oldest_java == 17
