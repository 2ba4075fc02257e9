"""Which windows a record counts in, at the edges: all that is due is reported as lost, as the output is empty."""

import re

import pytest

from onceproof.model.record import Record
from onceproof.readers.windows import compare_windows
from onceproof.scenarios.windows import KINDS

OTHER = 9  # a key whose record makes the task older
SIZE, GRACE = 10, 5


def facts(kind, *, suppressed):
    return {"kind": KINDS.index(kind), "size": SIZE, "grace": GRACE, "suppressed": int(suppressed)}


def due(kind, *times, suppressed=False):
    """The windows of key 7 that are due, with how often each comes out, for records at these times; of `OTHER`, below 0."""
    inputs = [Record(0, offset, OTHER if at < 0 else 7, 1, abs(at)) for offset, at in enumerate(times)]
    lost = compare_windows(inputs, [], facts(kind, suppressed=suppressed))
    texts = [re.match(r"(\d+) records? of the window from (-?\d+) to (\d+)", c.expected) for c in lost if c.key == 7]
    return {(int(text[2]), int(text[3])): int(text[1]) for text in texts if text}


@pytest.mark.parametrize(
    ("kind", "times", "windows"),
    [
        ("tumbling", (100, 109), {(100, 110): 2}),
        ("tumbling", (99, 110), {(90, 100): 1, (110, 120): 1}),
        ("tumbling", (100, -114, 109), {(100, 110): 2}),
        ("tumbling", (100, -115, 109), {(100, 110): 1}),  # its end and the grace are over
        ("hopping", (104,), {(95, 105): 1, (100, 110): 1}),
        ("hopping", (105,), {(100, 110): 1, (105, 115): 1}),
        ("hopping", (3,), {(0, 10): 1}),  # none starts before time does
        ("hopping", (105, -114, 104), {(100, 110): 2, (105, 115): 1}),  # that from 95 has closed
        ("session", (100, 110), {(100, 100): 2, (100, 110): 1}),  # the first is taken in
        ("session", (110, 100), {(110, 110): 2, (100, 110): 1}),
        ("session", (100, 111), {(100, 100): 1, (111, 111): 1}),
        ("session", (111, 100), {(100, 100): 1, (111, 111): 1}),
        ("session", (100, 114, 107), {(100, 100): 2, (114, 114): 2, (100, 114): 1}),
        ("session", (100, 100), {(100, 100): 2}),  # nothing is taken in where the session stays the same
        ("session", (100, -114, 105), {(100, 100): 2, (100, 105): 1}),
        ("session", (100, -115, 105), {(100, 100): 1, (105, 105): 1}),  # the gap and the grace are over
        ("session", (-115, 100), {(100, 100): 1}),
        ("session", (-115, 99), {}),  # too late
        ("sliding", (100,), {(90, 100): 1}),
        ("sliding", (100, 110), {(90, 100): 1, (100, 110): 1, (101, 111): 1}),
        ("sliding", (100, 111), {(90, 100): 1, (101, 111): 1}),
        ("sliding", (100, 112), {(90, 100): 1, (101, 111): 0, (102, 112): 1}),
        ("sliding", (104, 100), {(94, 104): 2, (90, 100): 1, (101, 111): 1}),
        ("sliding", (110, 100), {(100, 110): 2, (101, 111): 1}),  # that until 100 has closed
        ("sliding", (111, 100), {(101, 111): 1}),
        ("sliding", (100, -105, 100), {(90, 100): 2}),
        ("sliding", (100, -106, 100), {(90, 100): 1}),  # that has closed
        ("sliding", (100, -118, 103, 110), {(90, 100): 1, (104, 114): 1}),
        ("sliding", (100, -119, 103, 110), {(90, 100): 1}),  # that of 103 is too late to count at all
    ],
)
def test_a_record_counts_in_the_windows_that_are_open(kind, times, windows):
    assert due(kind, *times) == {window: count for window, count in windows.items() if count}


@pytest.mark.parametrize(
    ("kind", "last", "windows"),
    [
        ("tumbling", -114, {}),
        ("tumbling", -115, {(100, 110): 1}),
        ("session", -119, {}),
        ("session", -120, {(105, 105): 1}),
        ("sliding", -110, {}),
        ("sliding", -111, {(95, 105): 1}),
    ],
)
def test_of_windows_that_wait_only_what_has_closed_is_due(kind, last, windows):
    assert due(kind, 105, last, suppressed=True) == windows
