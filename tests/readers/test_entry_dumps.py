"""The entries of stores as bytes are judged by the independent reader."""

import pytest

from onceproof.readers.entries import compare_entries
from onceproof.readers.kafka import byte_record
from tests.specimens import entries


@pytest.mark.parametrize("specimen", entries.SPECIMENS, ids=lambda specimen: specimen.name)
def test_a_store_is_its_changelog_entry_by_entry(specimen, tmp_path):
    topics, stores = {"sums-changelog": specimen.changelog}, {"sums-changelog": specimen.store}
    found = list(compare_entries(specimen.write(tmp_path / "dumps"), topics, stores))
    wrong = [(c.anomaly, c.key, c.place, c.expected, c.observed.partition(": ")[0]) for c in found if c.anomaly]
    assert sorted(wrong) == sorted(specimen.wrong)
    differing = {c.observed.partition(": ")[2] for c in found if c.anomaly}
    assert len(found) - len(wrong) == len(specimen.dumps) - len(differing), "one for each store that is well"


def test_a_record_is_read_as_bytes():
    put, deleted = (byte_record(0, 3, b"\xff\xff\xff\xfeabc", value, 5) for value in (b"", None))
    assert (put.key, put.value, put.entry, deleted.entry) == (-2, None, "fffffffe616263,", "fffffffe616263")


@pytest.mark.parametrize("key", [None, b"abc"])
def test_a_key_begins_with_an_integer(key):
    with pytest.raises(ValueError, match="the key is no integer with something behind it"):
        byte_record(0, 3, key, b"")
