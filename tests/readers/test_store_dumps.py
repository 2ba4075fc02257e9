"""What stores held at the end is judged by the independent reader."""

import pytest

from onceproof.readers.stores import compare_stores
from tests.specimens import stores


@pytest.mark.parametrize("specimen", stores.SPECIMENS, ids=lambda specimen: specimen.name)
def test_a_store_equals_its_changelog_up_to_its_claimed_offset(specimen, tmp_path):
    found = list(compare_stores(specimen.write(tmp_path / "dumps"), {"seen-changelog": stores.CHANGELOG}))
    wrong = [(c.anomaly, c.key, c.place, c.expected, c.observed.partition(": ")[0]) for c in found if c.anomaly]
    assert sorted(wrong) == specimen.wrong
    differing = {c.observed.partition(": ")[2] for c in found if c.anomaly}
    assert len(found) - len(wrong) == len(specimen.dumps) - len(differing), "one for each store that is well"


def test_what_a_healthy_store_is_told_of(tmp_path):
    [well] = compare_stores(
        stores.Specimen("", [stores.OTHER]).write(tmp_path / "d"), {"seen-changelog": stores.CHANGELOG}
    )
    assert (well.promise, well.partition, well.key) == ("stores", 1, None)
    assert (well.place, well.expected) == ("active store seen of one, partition 1, at offset 2", "1 entries")
