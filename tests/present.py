"""A value that may be missing by its type, and is there in a test."""

from typing import TypeVar

T = TypeVar("T")


def present(value: T | None) -> T:
    """The value; the test fails if it is None."""
    assert value is not None, "there is None where the test expects a value"
    return value
