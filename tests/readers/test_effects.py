"""A transaction has every record that its inputs have written, of each topology: one of two alike is too few."""

import pytest

from onceproof.model.anomaly import witnesses_of
from onceproof.model.record import Record
from onceproof.readers.answers import DELETE
from onceproof.readers.segments import compare_segments
from tests.specimens.segments import OFFSETS, data, decisions, marker, outside, position

FACTS = {"ended": 1, "queue": 1}


def torn(topology, value, role, wrote):
    """The anomalies of a transaction for two inputs alike that wrote so many records of the role."""
    roles = (role, OFFSETS)
    entries = [outside("input", 0, 1), position(0, 2), marker(OFFSETS, 1), *decisions(3, roles=roles)]
    if wrote:
        entries += [data(role, 0, wrote - 1, 0)]
    entries += [marker(role, wrote)]
    seen = {"input": [Record(0, n, 5, value) for n in (0, 1)], role: [Record(0, n, 5, value) for n in range(wrote)]}
    return [(w.anomaly, w.key, w.expected) for w in witnesses_of(compare_segments(entries, seen, topology, FACTS))]


@pytest.mark.parametrize(
    ("topology", "value", "role"),
    [
        ("copy", 3, "output"),
        ("dead-letters", 0, "output"),
        ("dead-letters", -1, "dead-letters"),
        ("deleter", DELETE, "output"),
        ("scans", DELETE, "output"),
        ("global-join", 0, "output"),
    ],
)
def test_each_input_has_an_effect_of_its_own(topology, value, role):
    due = ("torn-transaction", 5, "committed, 2 effects")
    found = [[w for w in torn(topology, value, role, wrote) if w[2] == due[2]] for wrote in (2, 1, 0)]
    assert found == [[], [due], [due]]


@pytest.mark.parametrize(
    ("topology", "value", "role"),
    [
        ("counting", 0, "last-changelog"),
        ("interactive-queries", 0, "last-changelog"),
        ("values", 4, "values-changelog"),
    ],
)
def test_of_a_store_only_the_last_entry_of_a_key_is_due(topology, value, role):
    found = [[w for w in torn(topology, value, role, wrote) if w[2] == "committed, 1 effect"] for wrote in (2, 1)]
    assert found == [[], []]


@pytest.mark.parametrize(
    ("topology", "value", "role"),
    [
        ("dead-letters", 0, "dead-letters"),
        ("deleter", 3, "output"),
        ("scans", 3, "output"),
    ],
)
def test_an_input_without_effect_there_leaves_a_record_foreign(topology, value, role):
    assert ("torn-transaction", 5, "committed, 0 effects") in torn(topology, value, role, 1)
    assert not [w for w in torn(topology, value, role, 0) if w[2] == "committed, 0 effects"]


def test_the_first_of_a_key_comes_out_once():
    assert ("torn-transaction", 5, "committed, 1 effect") in torn("dedup", 0, "output", 2)
