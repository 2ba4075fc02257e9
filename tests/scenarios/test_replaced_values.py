"""A value that a cached store lost is seen where somebody reads it or it is the last; else the verdict says so."""

from dataclasses import replace

import pytest

from onceproof.model.record import Record
from onceproof.readers.checks import check_counting
from onceproof.scenarios import SCENARIOS
from onceproof.scenarios.multirunner import VARIANTS
from tests.conftest import a_trial
from tests.specimens.counting import HEALTHY, Specimen


def named(specimen: Specimen) -> set[tuple[str, int | None]]:
    topics = {role: [Record(*record) for record in topic] for role, topic in specimen.topics.items()}
    return {(witness.anomaly, witness.key) for witness in check_counting(topics, specimen.facts).witnesses}


@pytest.mark.parametrize("lost", HEALTHY.input)
def test_each_value_is_missed_uncached_and_the_last_one_cached(
    lost: tuple[int, int, int, int],
) -> None:
    left = [record for record in HEALTHY.input if record != lost]
    is_last = not any(record[2] == lost[2] and record[1] > lost[1] for record in left)
    assert named(replace(HEALTHY, changelog=left)) == {("lost-record", lost[2])}
    found = named(replace(HEALTHY, changelog=left, cached=True))
    assert {key for _, key in found} == ({lost[2]} if is_last else set())


def test_what_is_not_seen_of_a_cached_store_is_said_in_the_plan() -> None:
    scenario = SCENARIOS["multirunner"]
    for variant in VARIANTS:
        trial = a_trial("4.3.1", variant, scenario="multirunner")
        unseen = scenario.system(trial).not_looked_at
        assert unseen.keys() == ({"state"} if variant != "CACHING_DISABLED" else set())
        assert all("replaced before the task moved" in reason for reason in unseen.values())
