"""Failures that no scenario shows: the file, and what is refused of it."""

import pytest

from onceproof.model.elsewhere import failures, parse_failures
from onceproof.model.errors import HarnessError
from onceproof.model.known_issues import registry

KNOWN = frozenset(issue.key for issue in registry().issues)
ROW = """[[failure]]
key = "KAFKA-1"
title = "t"
affected = "all"
seen = "release compare"
since = "2026-11-27"
note = "It was seen."
"""


def test_each_row_has_its_own_key_and_a_note():
    rows = failures(KNOWN)

    assert len({row.key for row in rows}) == len(rows)
    assert all(row.note.endswith(".") for row in rows)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            ROW.replace("release compare", "a dream"),
            "KAFKA-1 cannot be read: seen must be 'app run', 'release compare' or 'nowhere yet'",
        ),
        (ROW.replace("KAFKA-1", "KAFKA-14172"), "KAFKA-14172 is in the registry, too"),
        (ROW.replace("title", "name"), "there is no field 'name'; choose from key, title"),
    ],
)
def test_a_row_that_cannot_be_is_refused(text, said):
    with pytest.raises(HarnessError, match=said):
        parse_failures(text, KNOWN)
