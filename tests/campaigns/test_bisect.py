"""The search for boundaries, with releases that are declared bad."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onceproof.campaigns.bisection.boundaries import Bisected, Bisection, Boundary, Probe, lines_of
from onceproof.model.release import Release
from onceproof.model.sensitivity import Tally
from tests.present import present


def release(text):
    return Release.parse(text)


PUBLISHED = [
    f"{line}.{patch}"
    for line, patches in {
        "3.0": 3, "3.1": 3, "3.2": 4, "3.3": 3, "3.4": 2, "3.5": 3, "3.6": 3, "3.7": 3, "3.8": 2, "3.9": 3,
        "4.0": 3, "4.1": 3, "4.2": 2, "4.3": 2,
    }.items()
    for patch in range(patches)
]  # fmt: skip


def search(bad, rate=1.0, seed=1, **options):
    draw = random.Random(seed)

    def probe(tried):
        red = str(tried) in bad and draw.random() < rate
        return Probe(red, not red)

    bisection = Bisection(lines_of(map(release, PUBLISHED)), probe, **options)
    return bisection, bisection.run()


def summary(boundary):
    data = boundary.to_dict()
    return [data[name] for name in ("line", "last_good", "first_bad", "last_bad", "first_good")]


def test_the_enumerators_boundaries_take_forty_trials_at_most():
    bad = [text for text in PUBLISHED if release(text) < release("3.4.1")]
    bisection, found = search(bad)
    assert [summary(boundary) for boundary in found] == [
        ["3.0", None, "3.0.0", "3.0.2", None],
        ["3.1", None, "3.1.0", "3.1.2", None],
        ["3.2", None, "3.2.0", "3.2.3", None],
        ["3.3", None, "3.3.0", "3.3.2", None],
        ["3.4", None, "3.4.0", "3.4.0", "3.4.1"],
    ]
    assert bisection.trials <= 40
    assert [boundary.missed for boundary in found[:4]] == [None] * 4  # a line without a good release claims nothing
    assert found[4].missed == pytest.approx(0.0491, abs=1e-4)
    assert bisection.controls == {release("3.4.0"): Tally(7, 7)}  # the bad release nearest to all good ones
    assert bisection.is_sure


def test_a_bad_region_in_the_middle_is_found():
    bad = [text for text in PUBLISHED if release("3.6.2") <= release(text) < release("3.9.1")]
    _, found = search(bad)
    assert [summary(boundary) for boundary in found] == [
        ["3.6", "3.6.1", "3.6.2", "3.6.2", None],
        ["3.7", None, "3.7.0", "3.7.2", None],
        ["3.8", None, "3.8.0", "3.8.1", None],
        ["3.9", None, "3.9.0", "3.9.0", "3.9.1"],
    ]


def test_where_nothing_is_bad_there_is_no_boundary():
    bisection, found = search([])
    assert found == []
    assert bisection.trials == 28


def test_a_budget_that_ends_early_is_told():
    bisection, [hasty] = search(["3.4.0"], budget=32)
    assert hasty.missed > 0.05
    assert not bisection.is_sure


def test_only_a_release_that_cannot_be_tried_is_unknown():
    lines = lines_of(map(release, ["3.4.0", "3.4.1", "3.5.0"]))
    idle = Probe(False, False, "not exercised")

    def probe(tried):
        return idle if tried == release("3.4.1") else Probe(tried < release("3.5.0"), True)

    bisection = Bisection(lines, probe)
    [found] = bisection.run()
    assert (found.line, found.first_good) == ("3.4", None)
    assert bisection.unknown == {release("3.4.1"): "not exercised"}


def test_what_the_trials_did_not_suffice_for_is_unknown():
    bad = [text for text in PUBLISHED if release("3.8.0") <= release(text) < release("4.3.0")]
    bisection, found = search(bad, budget=4)
    assert found == []
    assert {str(r) for r in bisection.unknown} >= {"3.2.0", "3.8.0", "4.3.0"}
    assert set(bisection.unknown.values()) == {"Trials or time were used up before it was tried."}


def test_if_nothing_is_red_nobody_knows_what_the_greens_say():
    bisection, found = search([])
    assert (found, bisection.missed, bisection.is_sure, bisection.unknown) == ([], None, False, {})


def test_the_first_red_of_a_bad_release_is_not_in_its_rate():
    bisection, [found] = search(["3.4.0"])
    assert bisection.reds == {release("3.4.0"): 1 + 7}
    assert bisection.controls == {release("3.4.0"): Tally(7, 7)}
    assert set(bisection.greens.values()) == {1}
    assert found.missed == bisection.missed <= 0.05


def test_with_few_releases_the_greens_are_repeated():
    lines = lines_of(map(release, ["3.4.0", "3.4.1"]))
    bisection = Bisection(lines, lambda r: Probe(r == release("3.4.0"), r > release("3.4.0")))
    bisection.run()
    assert bisection.trials == 2 + 2 + 2  # two more reds, and two greens
    assert bisection.is_sure


def test_rates_of_bad_releases_are_not_averaged_over_lines():
    lines = lines_of(map(release, ["3.3.1", "3.3.2", "3.9.0", "3.9.1"]))
    seldom = {"3.9.0": [True] + [False] * 99}

    def probe(tried):
        bad = seldom[str(tried)].pop(0) if str(tried) in seldom else str(tried) == "3.3.1"
        return Probe(bad, not bad)

    bisection = Bisection(lines, probe)
    one, other = bisection.run()
    assert (one.line, other.line) == ("3.3", "3.9")
    assert present(one.missed) <= 0.05 < present(other.missed)  # 3.9.0 was hardly ever red again
    assert not bisection.is_sure


def test_a_green_that_turns_red_moves_the_boundary():
    lines = lines_of(map(release, [f"3.9.{patch}" for patch in range(9)]))
    missed = {"3.9.4": 1}  # bad from 3.9.2 on, but its first trial is green

    def probe(tried):
        missed[str(tried)] = missed.get(str(tried), 0) - 1
        red = tried >= release("3.9.2") and missed[str(tried)] < 0
        return Probe(red, not red)

    [found] = Bisection(lines, probe).run()
    assert summary(found)[1:3] == ["3.9.1", "3.9.2"]


@given(st.data())
def test_every_line_with_one_change_is_searched_exactly(data):
    bad, expected = set(), []
    for line, releases in lines_of(map(release, PUBLISHED)).items():
        change = data.draw(st.integers(0, len(releases)))
        begins = data.draw(st.booleans())
        broken = releases[:change] if begins else releases[change:]
        bad |= {str(r) for r in broken}
        if broken:
            before = None if begins or change == 0 else releases[change - 1]
            after = releases[change] if begins and change < len(releases) else None
            expected.append(Boundary(line, before, broken[0], broken[-1], after, None))
    _, found = search(bad)
    assert [summary(boundary) for boundary in found] == [summary(boundary) for boundary in expected]


@given(st.integers(0, 2**32))
def test_a_trial_that_misses_now_and_then_rarely_misleads(seed):
    bad = [text for text in PUBLISHED if release(text) < release("3.4.1")]
    bisection, found = search(bad, rate=0.9, seed=seed)
    for boundary in found:
        assert str(boundary.first_bad) in bad
        assert str(boundary.last_bad) in bad
    assert bisection.missed is not None


@pytest.mark.parametrize(
    ("bad", "good", "sure", "said"),
    [
        ((), ("4.0.0",), False, "Nothing was red."),
        (("4.0.0", "4.0.1"), (), True, "It is in every release that was tried: 4.0.0, 4.0.1."),
        (
            ("3.3.2", "3.4.0"),
            ("3.4.1",),
            True,
            "The first bad release is 3.3.2, none before it is good; "
            "the last bad one is 3.4.0, the first good one after it 3.4.1.",
        ),
        (
            ("4.1.0",),
            ("4.0.0", "4.0.1"),
            False,
            "The first bad release is 4.1.0, the last good one before it 4.0.1; "
            "the last bad one is 4.1.0, none after it is good. Not all of this is sure.",
        ),
    ],
)
def test_what_it_came_to_is_told_in_a_sentence(bad, good, sure, said):
    found = Bisected(
        boundaries=(), trials=1, sure=sure, missed=None, bad=bad, good=good, controls={}, unknown={"3.0.0": "why"}
    )
    assert found.summary == said
    assert found.why_unknown == {"why": ["3.0.0"]}
