"""The grammar and the corpus of a search, with made-up scenarios."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onceproof.campaigns.search.corpus import CHANGES, Corpus, Grammar, Pick, Schedule, Signature, Story
from onceproof.model.decoding import decoded
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


SHOP = Story(
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
PLAIN = Story("plain", {})
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
    assert decoded(Schedule, drawn.to_dict()) == drawn


@given(SCENARIOS, SEEDS)
def test_what_is_varied_differs_a_little_and_can_be_run(scenario, seed):
    rng = random.Random(seed)
    before = GRAMMAR.draw(scenario, rng)
    varied = GRAMMAR.vary(before, rng)
    assert is_whole(varied)
    assert varied.scenario == before.scenario
    if varied.scenario == "shop":
        one, two = SHOP.settings(before).items(), SHOP.settings(varied).items()
        changed = {name for name, _ in one ^ two} - {"nodes"}
        assert 1 <= len(changed) <= CHANGES + 1  # the fault takes its parameter with it
    else:
        assert varied.is_like(before)
        assert varied.seed != before.seed


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


def test_a_scenario_of_which_nothing_else_can_be_run_is_drawn_as_it_is():
    only = Story("shop", SHOP.domains, refuse=lambda _, settings: "no" if settings else None)
    assert Grammar({"shop": only}).draw("shop", random.Random(1)).summary == "shop DEFAULT_CONFIG"


def test_it_gets_simpler_by_the_fault_then_by_each_parameter_then_by_size():
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


# --- the corpus ----------------------------------------------------------------------------------------------


def reach(schedule):
    """What a schedule is decreed to reach."""
    return frozenset({"begun", *(f"{name}={value}" for name, value in SHOP.settings(schedule).items())})


def search(trials, seed=1, *, uniform=False, ended=()):
    """The picks of a search that is first told the trials of an earlier one."""
    corpus, picks = Corpus(GRAMMAR, seed, uniform=uniform), list(ended)
    for pick in picks:
        corpus.learn(pick, reach(pick.schedule))
    while len(picks) < trials:
        picks.append(corpus.next())
        corpus.learn(picks[-1], reach(picks[-1].schedule))
    return picks


@given(SEEDS, st.integers(0, 20), st.booleans())
def test_a_search_that_goes_on_is_the_one_that_was_not_interrupted(seed, at, uniform):
    whole = search(20, seed, uniform=uniform)
    assert search(20, seed, uniform=uniform, ended=whole[:at]) == whole


@given(SEEDS)
def test_a_uniform_search_heeds_nothing_that_was_reached(seed):
    deaf = Corpus(GRAMMAR, seed, uniform=True)
    picks = []
    for _ in range(10):
        picks.append(deaf.next())
        deaf.learn(picks[-1], frozenset())
    assert picks == search(10, seed, uniform=True)
    assert all(pick.parent is None for pick in picks)


def test_what_reaches_something_new_is_varied_and_what_does_not_is_not():
    corpus, new = Corpus(GRAMMAR, 1), []
    for number in range(1, 101):
        pick = corpus.next()
        assert pick.parent is None or pick.parent in new
        if corpus.learn(pick, reach(pick.schedule)):
            new.append(number)
    assert 3 <= len(new) < 12


def test_each_scenario_begins_as_it_is_by_default():
    picks = search(20)
    assert sorted(pick.schedule.summary for pick in picks[:2]) == ["plain DEFAULT_CONFIG", "shop DEFAULT_CONFIG"]
    assert {pick.schedule.scenario for pick in search(20, uniform=True)[:6]} == {"plain", "shop"}


SMALL = Story("small", {"caching": (True, False)})
LARGE = Story("large", dict.fromkeys("abcdefgh", (True, False)))


@pytest.mark.parametrize("seed", range(5))
def test_a_scenario_with_little_to_vary_makes_room_for_one_with_much(seed):
    corpus, tried = Corpus(Grammar({"small": SMALL, "large": LARGE}), seed), []
    for _ in range(100):
        tried.append(corpus.next().schedule)
        corpus.learn(Pick(tried[-1]), frozenset({"begun"}))
    schedules = [schedule.summary for schedule in tried]
    assert {"small DEFAULT_CONFIG", "small DEFAULT_CONFIG caching=False"} < set(schedules)
    small = [schedule for schedule in drawn_uniformly(seed) if schedule.scenario == "small"]
    assert 2 < sum(schedule.scenario == "small" for schedule in tried) < 30 < len(small)


def drawn_uniformly(seed):
    corpus = Corpus(Grammar({"small": SMALL, "large": LARGE}), seed, uniform=True)
    for _ in range(100):
        pick = corpus.next()
        corpus.learn(pick, frozenset())
        yield pick.schedule


@pytest.mark.parametrize("seed", range(5))
def test_what_has_all_been_tried_is_tried_again_with_other_seeds(seed):
    corpus, tried = Corpus(Grammar({"small": SMALL}), seed), []
    for _ in range(8):
        tried.append(corpus.next().schedule)
        corpus.learn(Pick(tried[-1]), frozenset({"begun"}))
    assert len({schedule.summary for schedule in tried}) == 2
    assert len({schedule.seed for schedule in tried}) == 8


def test_what_scenarios_reach_is_told_apart():
    corpus = Corpus(GRAMMAR, 1)
    assert corpus.learn(Pick(Schedule("shop", "UNCACHED", (), 1)), frozenset({"a", "b"})) == {"shop: a", "shop: b"}
    assert corpus.learn(Pick(Schedule("shop", "UNCACHED", (), 2)), frozenset({"a"})) == frozenset()
    assert corpus.learn(Pick(Schedule("plain", "DEFAULT_CONFIG", (), 3)), frozenset({"a"})) == {"plain: a"}
    assert corpus.coverage == 3


def parents(signature=None, repeated=0, rare="rare", *, exercised=True):
    """How often each of two schedules is varied, the first of which reached something rare or showed a signature."""
    corpus = Corpus(Grammar({"shop": SHOP}), 1)
    first, second = (Pick(Schedule("shop", name, (), 1)) for name in ("UNCACHED", "DEFAULT_CONFIG"))
    corpus.learn(first, frozenset({"a", rare}), signature, exercised=exercised)
    corpus.learn(second, frozenset({"a", "b"}))
    for _ in range(20):
        corpus.learn(Pick(Schedule("shop", "DEFAULT_CONFIG", (), 1)), frozenset({"a", "b"}))
    for _ in range(repeated):
        corpus.learn(Pick(Schedule("shop", "UNCACHED", (), 1)), frozenset({"a", rare}), signature)
    counts = {1: 0, 2: 0}
    for _ in range(200):
        pick = corpus.next()
        corpus.learn(pick, frozenset())
        if pick.parent:
            counts[pick.parent] += 1
    return counts


def test_what_few_trials_reach_is_varied_more_often():
    counts = parents()
    assert counts[1] > 2 * counts[2]


def test_what_was_not_exercised_is_varied_less_often():
    assert parents(exercised=False)[1] < parents()[1]


def test_the_search_goes_round_what_is_known_to_show():
    signature = Signature("shop", ("lost-record",))
    assert parents(signature, 3)[1] < parents(None, 3)[1] / 2


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
