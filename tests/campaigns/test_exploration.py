"""The grammar of a search and the order of its schedules, with made-up scenarios."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onceproof.campaigns.search.schedules import DrawableParameters, Draws, Grammar, Schedule
from onceproof.model.decoding import decode
from tests.present import present


def tidy(settings):
    """The parameter of the fault `kill` matters only to it, and it needs three nodes."""
    kill = settings.get("fault") == "kill"
    own = {name: value for name, value in settings.items() if name != "nodes" and (kill or name != "kill.orderly")}
    return own | ({"nodes": 3} if kill else {})


VARIANTS: dict[str, dict[str, object]] = {
    "DEFAULT_CONFIG": {},
    "UNCACHED": {"caching": False},
    "UNCACHED_ALOS": {"caching": False, "guarantee": "alos"},
}


def refuse(variant, settings):
    whole = {**VARIANTS[variant], **settings}
    return "no" if whole.get("fault") == "pause" and whole.get("guarantee") == "alos" else None


SHOP = DrawableParameters(
    "shop",
    {
        "caching": (True, False),
        "guarantee": ("eos", "alos"),
        "fault": ("none", "pause", "kill"),
        "kill.orderly": (False, True),
        "keys": (100,),
    },
    VARIANTS,
    tidy,
    refuse,
    {"keys": 1},
)
PLAIN = DrawableParameters("plain", {})
GRAMMAR = Grammar({"shop": SHOP, "plain": PLAIN})
SEEDS = st.integers(0, 2**32)


def is_whole(schedule):
    """Whether a schedule is one that may be run: named by the fitting variant, with what its fault needs."""
    if schedule.scenario == "plain":
        return (schedule.variant, schedule.parameters) == ("DEFAULT_CONFIG", ())
    settings = SHOP.settings(schedule)
    in_domain = all(value in SHOP.domains[name] for name, value in settings.items() if name not in ("nodes", "keys"))
    return (
        in_domain
        and SHOP.schedule(settings, schedule.seed) == schedule
        and tidy(settings) == settings
        and not refuse(schedule.variant, dict(schedule.parameters))
    )


SCENARIOS = st.sampled_from(sorted(GRAMMAR.stories))


@given(SCENARIOS, SEEDS)
def test_what_is_drawn_can_be_run_and_follows_from_the_seed(scenario, seed):
    drawn = GRAMMAR.draw(scenario, random.Random(seed))
    assert is_whole(drawn)
    assert drawn.scenario == scenario
    assert drawn == GRAMMAR.draw(scenario, random.Random(seed))
    assert decode(Schedule, drawn.to_dict()) == drawn


def test_every_value_is_drawn():
    rng = random.Random(1)
    seen = {item for _ in range(300) for item in SHOP.settings(GRAMMAR.draw("shop", rng)).items()}
    assert {("caching", False), ("guarantee", "alos"), ("fault", "pause"), ("kill.orderly", True), ("nodes", 3)} <= seen


def test_a_schedule_is_named_by_the_variant_that_says_most_of_it():
    named = SHOP.schedule({"caching": False, "guarantee": "alos", "fault": "kill"}, 7)
    assert named == Schedule("shop", "UNCACHED_ALOS", (("fault", "kill"), ("nodes", 3)), 7)
    assert named.summary == "shop UNCACHED_ALOS fault=kill nodes=3"
    assert SHOP.schedule({"caching": True}, 7) == Schedule("shop", "DEFAULT_CONFIG", (), 7)
    assert SHOP.schedule({"guarantee": "alos", "fault": "pause"}, 7) is None


def test_a_scenario_with_one_possibility_is_drawn_as_it_is():
    only = DrawableParameters("shop", SHOP.domains, refuse=lambda _, settings: "no" if settings else None)
    assert Grammar({"shop": only}).draw("shop", random.Random(1)).summary == "shop DEFAULT_CONFIG"


def test_schedules_get_simpler_by_fault_then_parameter_then_size():
    schedule = present(SHOP.schedule({"caching": False, "fault": "kill", "kill.orderly": True}, 7))
    assert [simpler.summary for simpler in GRAMMAR.simpler(schedule)] == [
        "shop UNCACHED",
        "shop DEFAULT_CONFIG fault=kill kill.orderly=True nodes=3",
        "shop UNCACHED fault=kill nodes=3",
        "shop UNCACHED fault=kill keys=1 kill.orderly=True nodes=3",
        "shop UNCACHED fault=kill keys=50 kill.orderly=True nodes=3",
    ]
    assert [simpler.summary for simpler in GRAMMAR.simpler(present(SHOP.schedule({"keys": 1}, 7)))] == [
        "shop DEFAULT_CONFIG"
    ]
    assert list(GRAMMAR.simpler(Schedule("plain", "DEFAULT_CONFIG", (), 7))) == []


# --- the order -----------------------------------------------------------------------------------------------


def search(trials, seed=1, stories=GRAMMAR.stories, *, uniform=False, ended=()):
    """The schedules of a search that goes on after those of an earlier one."""
    draws, tried = Draws(Grammar(stories), seed, uniform=uniform), list(ended)
    for schedule in tried:
        draws.add(schedule)
    while len(tried) < trials:
        tried.append(draws.next())
        draws.add(tried[-1])
    return tried


@given(SEEDS, st.integers(0, 20), st.booleans())
def test_a_resumed_search_is_the_uninterrupted_one(seed, at, uniform):
    whole = search(20, seed, uniform=uniform)
    assert search(20, seed, uniform=uniform, ended=whole[:at]) == whole


def test_each_scenario_begins_as_it_is_by_default():
    tried = search(20)
    assert sorted(schedule.summary for schedule in tried[:2]) == ["plain DEFAULT_CONFIG", "shop DEFAULT_CONFIG"]
    assert {schedule.scenario for schedule in search(20, uniform=True)[:6]} == {"plain", "shop"}


SMALL = DrawableParameters("small", {"caching": (True, False)})
LARGE = DrawableParameters("large", dict.fromkeys("abcdefgh", (True, False)))


@pytest.mark.parametrize("seed", range(5))
def test_a_scenario_with_few_schedules_leaves_room_for_others(seed):
    stories = {"small": SMALL, "large": LARGE}
    tried = search(100, seed, stories)
    assert {"small DEFAULT_CONFIG", "small DEFAULT_CONFIG caching=False"} < {one.summary for one in tried}
    small, uniformly = (
        sum(one.scenario == "small" for one in ones) for ones in (tried, search(100, seed, stories, uniform=True))
    )
    assert 2 < small < 30 < uniformly


@pytest.mark.parametrize("seed", range(5))
def test_what_has_all_been_tried_is_tried_again_with_other_seeds(seed):
    tried = search(8, seed, {"small": SMALL})
    assert len({schedule.summary for schedule in tried}) == 2
    assert len({schedule.seed for schedule in tried}) == 8


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (Schedule("shop", "DEFAULT_CONFIG", (), 1), Schedule("shop", "UNCACHED", (("fault", "pause"),), 2), True),
        (Schedule("shop", "UNCACHED", (), 1), Schedule("shop", "UNCACHED_ALOS", (), 2), True),
        (Schedule("shop", "UNCACHED", (), 1), Schedule("shop", "DEFAULT_CONFIG", (("caching", False),), 2), True),
        (Schedule("shop", "UNCACHED_ALOS", (), 1), Schedule("shop", "UNCACHED", (), 2), False),
        (Schedule("shop", "DEFAULT_CONFIG", (("fault", "pause"),), 1), Schedule("shop", "UNCACHED", (), 2), False),
        (Schedule("shop", "DEFAULT_CONFIG", (("keys", 50),), 1), Schedule("shop", "UNCACHED", (), 2), True),  # a size
    ],
)
def test_a_schedule_has_what_another_one_sets(one, other, expected):
    sized = replace(SHOP, sizes={"keys": 1})
    assert sized.is_within(one, other) is expected
