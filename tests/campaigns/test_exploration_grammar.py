"""What a search may draw from the existing scenarios."""

import random

import pytest

from onceproof.campaigns.search.grammar import quick, story
from onceproof.campaigns.search.schedules import Grammar
from onceproof.faults import FAULTS
from onceproof.model.cell import Cell, Trial
from onceproof.model.errors import UsageError
from onceproof.model.release import Release
from onceproof.scenarios import SCENARIOS, scenario
from tests.present import present
from tests.published import NEWEST

BROKER = Release.parse("3.9.1")


@pytest.mark.parametrize("name", sorted(SCENARIOS.keys() - {"grouped-table"}))
def test_each_schedule_is_a_trial_that_can_be_run(name):
    broker = NEWEST if name == "migration" else BROKER
    grammar, rng = Grammar({name: story(name, NEWEST, broker)}), random.Random(1)
    drawn = [grammar.draw(name, rng) for _ in range(30)]
    for schedule in [*drawn, *grammar.simpler(drawn[0])]:
        trial = Trial("", Cell(name, schedule.variant, NEWEST, broker), 1, schedule.seed, dict(schedule.parameters))
        scenario(name).validate(trial)
        assert trial.cell.restart_on is None
        fault_name = scenario(name).values(trial).get("fault", "none")
        of_others = {p for fault in FAULTS.values() if fault.name != fault_name for p in fault.parameters.describe()}
        assert not of_others & dict(schedule.parameters).keys()


def test_a_scenario_of_two_releases_is_not_searched_on_one():
    with pytest.raises(UsageError, match=rf"cannot be searched on {NEWEST}: a rolling bounce takes a second release"):
        story("grouped-table", NEWEST, BROKER)


def test_every_available_fault_of_one_release_is_drawn():
    faults = story("enumerator", NEWEST, BROKER, ["partition"]).domains["fault"]
    assert {*faults, "partition", "rolling-bounce"} == {*scenario("enumerator").settable["fault"].choices}
    assert not {"partition", "rolling-bounce"} & {*faults}


def test_values_are_the_declared_ones_and_those_of_variants():
    domains = story("crash", NEWEST, BROKER).domains
    assert domains["stores"] == tuple(scenario("crash").settable["stores"].choices)
    assert domains["commit.interval.ms"] == (30_000, 500, 9_000)
    assert domains["static.membership"] == (True, False)
    assert "java" not in domains
    assert story("enumerator", NEWEST, BROKER).domains["pause.transaction.timeout.ms"] == (4_000, 60_000, 10_000)


def test_a_broker_fault_adds_its_nodes_and_removes_them_again():
    enumerator = story("enumerator", NEWEST, BROKER)
    kill = present(enumerator.schedule({"fault": "broker-kill"}, 1))
    assert kill.summary == "enumerator DEFAULT_CONFIG fault=broker-kill nodes=3"
    assert [one.summary for one in Grammar({"enumerator": enumerator}).simpler(kill)] == ["enumerator DEFAULT_CONFIG"]
    assert present(enumerator.schedule({"fault": "pause"}, 1)).summary == "enumerator PAUSED"


def test_what_the_releases_refuse_is_not_drawn():
    assert story("enumerator", Release.parse("3.4.0"), BROKER).schedule({"group.protocol": "streams"}, 1) is None
    with pytest.raises(UsageError, match=r"global-join cannot be searched on 3\.4\.0: .*3\.7\.0 or later"):
        story("global-join", Release.parse("3.4.0"), BROKER)
    with pytest.raises(UsageError, match="There is no scenario 'x'"):
        story("x", NEWEST, BROKER)


@pytest.mark.parametrize(("release", "static"), [(Release.parse("4.3.1"), False), (NEWEST, True)], ids=str)
def test_a_fixed_value_is_in_each_schedule_or_is_refused(release, static):
    streams = ["group.protocol=streams"]
    grammar, rng = Grammar({"windows": story("windows", release, release, settings=streams)}), random.Random(1)
    windows = grammar.stories["windows"]
    assert windows.plain(1).summary == "windows DEFAULT_CONFIG group.protocol=streams"
    drawn = [grammar.draw("windows", rng) for _ in range(100)]
    for schedule in [*drawn, *grammar.simpler(drawn[0])]:
        assert windows.settings(schedule)["group.protocol"] == "streams"
    assert any(windows.settings(schedule).get("static.membership") for schedule in drawn) == static
    assert len({windows.settings(schedule).get("fault") for schedule in drawn}) > 3
    with pytest.raises(UsageError, match=r"sets no parameter of scan"):
        story("scan", release, release, settings=streams)
    with pytest.raises(UsageError, match=rf"windows cannot be searched on {release}: a broker of Kafka 3\.9\.1 lacks"):
        story("windows", release, BROKER, settings=streams)


def test_what_is_set_is_told_by_the_variant_that_says_it():
    enumerator = story("enumerator", NEWEST, NEWEST, settings=["group.protocol=streams"])
    assert enumerator.plain(1).summary == "enumerator STREAMS_PROTOCOL"
    classic = story("enumerator", NEWEST, NEWEST, settings=["group.protocol=classic", "caching=false"])
    assert classic.plain(1).summary == "enumerator CACHING_DISABLED"
    assert "STREAMS_PROTOCOL" not in classic.variants


def test_a_fixed_fault_brings_its_nodes_and_drawn_parameters():
    enumerator = story("enumerator", NEWEST, BROKER, settings=["fault=broker-kill"])
    assert enumerator.plain(1).summary == "enumerator DEFAULT_CONFIG fault=broker-kill nodes=3"
    grammar, rng = Grammar({"enumerator": enumerator}), random.Random(1)
    drawn = [dict(grammar.draw("enumerator", rng).parameters) for _ in range(60)]
    assert {one.get("broker-kill.orderly", False) for one in drawn} == {True, False}
    assert not any(name.startswith("pause.") for one in drawn for name in one)


def test_an_unnamed_search_skips_waiting_and_broker_scenarios():
    assert {*SCENARIOS} - {*quick()} == {"quota", "migration"}
