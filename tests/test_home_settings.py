"""The settings: what is refused at the door."""

import pytest

from onceproof.model.cell import LONGEST_PREFIX, Cell, Trial
from onceproof.model.errors import UsageError
from onceproof.model.plants import plants
from onceproof.model.release import Release
from onceproof.scenarios import SCENARIOS
from onceproof.settings import get_settings
from tests.cases import check_each

LONGEST = "a" * LONGEST_PREFIX
OF_KAFKA = 249  # characters that a topic may have
OF_STREAMS = len("-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000000-topic")  # its longest name for a topic of its own


@check_each("prefix", ["onceproof", "onceproof.team-a", "payments", "a.b_c.D-1", LONGEST])
def test_a_prefix_of_a_team_is_taken(prefix, monkeypatch):
    monkeypatch.setenv("ONCEPROOF_PREFIX", prefix)
    get_settings.cache_clear()
    assert get_settings().installation.prefix == prefix
    get_settings.cache_clear()


@check_each(
    "prefix, reason",
    [
        ("onceproof.", "no dot at its end"),
        ("onceproof..a", "single dots"),
        (".onceproof", "single dots"),
        ("team a", "letters, digits"),
        ("équipe", "letters, digits"),
        ("a" * (LONGEST_PREFIX + 1), f"has {LONGEST_PREFIX + 1} characters"),
        ("a.20260101T000000-abcd1234", "looks like the id of a run"),
        ("20260101T000000-abcd", "looks like the id of a run"),
    ],
)
def test_a_prefix_that_is_no_name_or_another_teams_is_refused(prefix, reason, monkeypatch):
    monkeypatch.setenv("ONCEPROOF_PREFIX", prefix)
    get_settings.cache_clear()
    with pytest.raises(UsageError, match=reason) as refused:
        get_settings()
    assert str(refused.value).startswith(f"ONCEPROOF_PREFIX={prefix}: ")
    get_settings.cache_clear()


def test_the_longest_topic_name_has_the_longest_prefix():
    release, claimed = Release.parse("4.10.12"), Release.parse("4.10.12").claimed
    plant = max(plants(), key=len)
    cells = [
        Cell(name, variant, release, claimed, release)
        for name, scenario in SCENARIOS.items()
        for variant in scenario.variants
    ]
    longest = max(
        (Trial("20260101T000000-abcd1234", cell, 100, 1, {}, plant, LONGEST).topic("") for cell in cells), key=len
    )
    assert OF_KAFKA - 30 < len(longest) + OF_STREAMS <= OF_KAFKA
