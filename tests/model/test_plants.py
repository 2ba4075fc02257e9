from dataclasses import replace

import pytest

from onceproof.model.capability import Capability
from onceproof.model.cell import Cell, Trial
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.plants import parse_plants, plant, plants
from onceproof.model.promise import PROMISES
from onceproof.model.release import Release
from onceproof.scenarios import SCENARIOS
from tests.present import present

ROW = """
[[plant]]
name = "p"
effect = "w"
bug = "b"
first = "3.4.1"
last = "4.2.1"
[[plant.claim]]
scenario = "crash"
variants = ["DEFAULT_CONFIG", "STATE_UPDATER_DISABLED"]
promises = ["state"]
"""
BROKER = Release.parse("3.9.1")


def test_a_bug_is_injected_on_its_releases_and_refused_on_others():
    [found] = parse_plants(ROW).values()
    applies = [v for v in ("3.4.0", "3.4.1", "4.2.1", "4.3.0") if found.applies(Release.parse(v))]
    assert applies == ["3.4.1", "4.2.1"]
    assert "cannot be planted into 4.3.0, only into 3.4.1 to 4.2" in (found.refuse(Release.parse("4.3.0")) or "")
    assert found.refuse(Release.parse("4.2.1")) is None


def test_it_is_tried_where_no_known_issue_hides_it():
    [claim] = parse_plants(ROW).pop("p").claims
    assert claim.cell(Release.parse("3.6.2"), BROKER).variant == "DEFAULT_CONFIG"
    assert claim.cell(Release.parse("3.9.1"), BROKER).variant == "STATE_UPDATER_DISABLED"
    cached = present(plant("put-lost").claim("enumerator"))
    with pytest.raises(UsageError, match=r"On 3\.3\.1 KAFKA-14172 shows in enumerator itself"):
        cached.cell(Release.parse("3.3.1"), BROKER)


def test_a_bug_is_not_injected_where_a_known_issue_explains_it():
    """KAFKA-20685 explains each wrong value of as-of-join after a kill, where the table is in RocksDB."""
    as_of_join = present(plant("restore-ends-early").claim("as-of-join"))
    assert as_of_join.cell(Release.parse("3.7.2"), BROKER).variant == "DEFAULT_CONFIG"
    assert as_of_join.cell(Release.parse("3.9.1"), BROKER).variant == "IN_MEMORY"
    assert as_of_join.cell(Release.parse("4.3.1"), BROKER).variant == "DEFAULT_CONFIG"
    with pytest.raises(UsageError, match=r"On 3\.9\.1 KAFKA-20685 shows in as-of-join itself"):
        replace(as_of_join, variants=("DEFAULT_CONFIG",)).cell(Release.parse("3.9.1"), BROKER)
    told_by_witness = present(plant("record-twice").claim("enumerator"))  # from KAFKA-18943
    assert told_by_witness.cell(Release.parse("3.9.0"), BROKER).variant == "DEFAULT_CONFIG"


def test_only_breaches_of_the_promises_that_must_show_it_count():
    [claim] = parse_plants(ROW).pop("p").claims
    assert claim.breaches({"lost-state": 2, "duplicate-id": 1}) == ["lost-state"]


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (ROW.replace('effect = "w"', ""), "p cannot be read: effect is missing"),
        (ROW.replace('["state"]', '["stat"]'), "there is no promise 'stat'"),
        (ROW.replace("bug", "bugs"), "there is no field 'bugs'"),
        (ROW.partition("[[plant.claim]]")[0], "no scenario must find it"),
        (ROW + '[plant.equivalent]\ncrash = "r"\n', "it must be found in crash, and yet cannot show there"),
        (ROW + ROW, "p is there twice; make the two rows one"),
        ("[[plant", "the file cannot be read"),
    ],
)
def test_a_damaged_catalogue_is_refused_by_plant(broken, said):
    with pytest.raises(HarnessError, match=said):
        parse_plants(broken)


def test_the_catalogue_names_what_there_is():
    of_the_log = {name for name, promise in PROMISES.items() if promise.needs is Capability.READ_SEGMENTS}
    for one in plants().values():
        assert set(one.equivalent) <= SCENARIOS.keys()
        for claim in one.claims:
            what = SCENARIOS[claim.scenario]
            assert set(claim.parameters) <= what.settable.keys()
            for variant in claim.variants:
                cell = Cell(claim.scenario, variant, max(one.first, Release.parse("3.9.1")), BROKER)
                looked_at = what.system(Trial("r", cell, 1, 1, claim.parameters)).all_promises
                assert what.variant(variant)
                assert set(claim.promises) & {*looked_at, *of_the_log}, (
                    f"{one.name}: nothing of it is looked at in {variant}."
                )


def test_an_unknown_plant_is_refused_with_those_there_are():
    with pytest.raises(UsageError, match=r"There is no plant 'x'; choose from stale-cache, "):
        plant("x")
