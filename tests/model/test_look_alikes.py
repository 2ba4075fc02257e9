"""Each row of the registry explains what its case shows, and nothing that differs from it in one thing."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onceproof.campaigns.fuzz.known import CAUSES
from onceproof.model.application_issues import application_issues
from onceproof.model.explaining import Explanation
from onceproof.model.history import Input
from onceproof.model.known_issues import KnownIssue, registry
from onceproof.model.promise import ANOMALIES
from onceproof.model.timeline import Event
from tests.specimens.look_alikes import CASES, Case

ROWS = {row.key: row for row in registry().issues}
UNGUARDED = {"most"}  # of witnesses together: tests/model/test_explaining.py
NOISE = st.lists(
    st.sampled_from(
        [
            {"t": 9, "source": "driver", "event": "phase", "name": "drain"},
            {"t": 9, "source": "driver", "event": "exercised"},
            {"t": 9, "source": "i", "event": "restore", "store": "s", "partition": 77, "from": 0, "end": 9},
            {"t": 9, "source": "driver", "event": "fault", "name": "pause", "action": "healed"},
        ]
    ),
    max_size=3,
)


def explaining(
    case: Case, partition: int = 0, key: int = 9, events: Sequence[Event] = (), noise: Sequence[Input] = ()
) -> list[Explanation]:
    """The explanations of the case's issue that explain each of its witnesses."""
    scene, where = case.scene(partition, key, events, noise), case.where
    seen = case.witnesses(partition, key)
    return [e for e in ROWS[case.issue].explains if e.holds_in(*where) and all(e.explains(w, scene) for w in seen)]


def of_case(case: Case) -> Explanation:
    """The first explanation of its issue that explains it."""
    found = explaining(case)
    assert found, case
    return found[0]


def is_explained(
    case: Case,
    explanation: Explanation,
    partition: int = 0,
    key: int = 9,
    events: Sequence[Event] = (),
    noise: Sequence[Input] = (),
) -> bool:
    """Whether an explanation explains any of the witnesses."""
    scene = case.scene(partition, key, events, noise)
    seen = case.witnesses(partition, key)
    return explanation.holds_in(*case.where) and any(explanation.explains(w, scene) for w in seen)


def weakened(explanation: Explanation) -> Iterator[tuple[str, Explanation]]:
    """The explanation without one of its conditions each time."""
    bare = Explanation(explanation.anomalies)
    implied = {"after"} if explanation.version or explanation.instance else set()  # say what of that event counts
    for name in sorted(explanation.conditions - {"given", *UNGUARDED, *implied}):
        yield name, replace(explanation, **{name: getattr(bare, name)})
    for parameter in explanation.given:
        yield parameter, replace(explanation, given=tuple(p for p in explanation.given if p != parameter))
    for name in ("variants", "scenarios"):
        anywhere: dict[str, Any] = {name: None}
        if getattr(explanation, name) is not None:
            yield name, replace(explanation, **anywhere)


def test_explanations_have_a_case_and_their_issues_a_look_alike() -> None:
    assert {case.issue for case in CASES} == {row.key for row in ROWS.values() if row.explains}
    assert all(any(case.look_alikes()) for case in CASES)
    for row in ROWS.values():
        cases = [case for case in CASES if case.issue == row.key]
        shown = [of_case(case) for case in cases]
        assert [e.summary for e in row.explains if e not in shown] == []


def test_a_row_that_explains_no_trial_is_of_applications_or_fuzz() -> None:
    """Their look-alikes are in test_application_issues.py and in tests/campaigns/test_fuzz_known.py."""
    of_fuzz = {key for cause in CAUSES for key in cause.shows.values()}
    silent = {row.key for row in ROWS.values() if row.shown and not row.explains}
    assert silent <= of_fuzz | {row.issue for row in application_issues()}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_row_explains_its_case_and_no_other_anomaly(case: Case) -> None:
    explanation = of_case(case)
    assert set(explanation.anomalies) == set(case.anomalies.split())
    others = ANOMALIES.keys() - set(case.anomalies.split())
    assert not any(is_explained(replace(case, anomaly=name), explanation) for name in others)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@settings(max_examples=5)
@given(
    partition=st.integers(0, 9),
    key=st.integers(1 - 2**31, 2**31 - 2),
    events=NOISE,
    others=st.lists(st.integers(-9, 9)),
)
def test_a_row_explains_its_case_and_no_look_alike(
    case: Case, partition: int, key: int, events: list[Event], others: list[int]
) -> None:
    explanation = of_case(case)
    noise = [(partition + 20, offset, key - 1, value, 0) for offset, value in enumerate(others)]
    assert explanation in explaining(case, partition, key, events, noise)
    for look_alike in case.look_alikes():
        explained = is_explained(look_alike, explanation, partition, key, events, noise)
        assert not explained, {name: value for name, value in vars(look_alike).items() if value != vars(case)[name]}


@pytest.mark.parametrize("row", [row for row in ROWS.values() if row.explains], ids=lambda row: row.key)
def test_a_row_without_one_condition_would_explain_a_look_alike(row: KnownIssue) -> None:
    look_alikes = [(of_case(case), one) for case in CASES if case.issue == row.key for one in case.look_alikes()]
    unguarded = [
        (explanation.summary, name)
        for explanation in row.explains
        for name, weaker in weakened(explanation)
        if not any(is_explained(one, weaker) for of, one in look_alikes if of == explanation)
    ]
    assert unguarded == []
