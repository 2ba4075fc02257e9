"""What the matrices have, given a fixed list of published releases.

The small ones are frozen, which shows a reviewer what a change does to them; after a change on purpose
`python -m tests.model.test_frozen_matrices` writes their lists again. Of the large ones, what they promise is tested
here, that each issue of `known` has its releases in `test_matrix.py`, and what `brokers` covers in
`tests/scenarios/test_cover.py`.
"""

from collections import defaultdict
from itertools import groupby, pairwise
from pathlib import Path

import pytest

from onceproof.model.known_issues import registry
from onceproof.model.matrices import MATRICES
from onceproof.model.matrix import Request
from onceproof.scenarios import CATALOGUE
from tests.published import NEWEST, PUBLISHED, expanded, with_release

LISTS = Path(__file__).parents[1] / "specimens" / "matrices"
FROZEN = ("first-look", "faults", "nightly")


def lines(name):
    """The cells of a matrix, and those that were left out."""
    expansion = expanded(Request(name))
    return [*(cell.key for cell in expansion.cells), *(f"refused {cell.key}" for cell in expansion.refused)]


@pytest.mark.parametrize("name", FROZEN)
def test_a_matrix_has_what_is_frozen(name):
    assert lines(name) == (LISTS / f"{name}.txt").read_text().splitlines()


def test_there_is_no_list_of_a_matrix_that_is_not_frozen():
    assert {file.stem for file in LISTS.glob("*.txt")} == {*FROZEN}


def test_a_week_has_nights_and_known_issues_and_explains_gaps():
    night, known, week = (expanded(Request(name)) for name in ("nightly", "known", "weekly"))
    assert {*night.cells, *known.cells} <= {*week.cells}
    assert {**night.refused, **known.refused}.items() <= week.refused.items()
    assert {cell.scenario for cell in week.cells} == {*CATALOGUE}
    newest = {(cell.scenario, cell.variant) for cell in week.cells if NEWEST in (cell.running, cell.broker)}
    # No release since 4.3.0 has that switch.
    left = {("at-least-once", "TIMED_OUT_STATE_UPDATER_DISABLED")}
    assert {(cell.scenario, cell.variant) for cell in week.cells} - newest == left


def test_the_atlas_has_every_release_everywhere_or_says_why_not():
    atlas = expanded(Request("atlas"))
    releases, pairs = defaultdict(set), defaultdict(set)
    for cell in (*atlas.cells, *atlas.refused):
        if cell.restart_on is None:
            releases[cell.scenario, cell.variant].add(cell.streams)
        else:
            pairs[cell.scenario].add((cell.streams, cell.restart_on))
    of_brokers = releases.pop(("migration", "DEFAULT_CONFIG"))  # whose releases are those of brokers
    assert of_brokers == {NEWEST}
    assert {name: every for name, every in releases.items() if every != {*PUBLISHED.releases}} == {}
    newest_of_line = [max(line) for _, line in groupby(PUBLISHED.releases, key=lambda release: release.line)]
    to_next = [*pairwise(newest_of_line)]
    wanted = {*to_next, *((later, one) for one, later in to_next), *((line, NEWEST) for line in newest_of_line[:-1])}
    assert {name: every for name, every in pairs.items() if every != wanted} == {}
    assert {name for name, _ in releases} | pairs.keys() == {*CATALOGUE} - {"migration"}


def test_each_known_issue_shows_in_the_atlas():
    there = {(cell.scenario, cell.variant) for cell in expanded(Request("atlas")).cells}
    provoked = {
        issue.key: {(scenario, variant) for scenario, variants in issue.provoked.items() for variant in variants}
        for issue in registry().issues
        if issue.provoked
    }
    assert [key for key, shown in provoked.items() if not shown & there] == []


def test_the_broker_matrix_has_each_cell_once_and_none_of_a_week():
    week, more = (expanded(Request(name)).cells for name in ("weekly", "brokers"))
    assert len({*week, *more}) == len(week) + len(more)


@pytest.mark.parametrize("name", MATRICES)
def test_a_release_that_appears_is_in_each_matrix_that_night(name):
    before, after = expanded(Request(name)).cells, expanded(Request(name), with_release("4.5.0")).cells
    # `known` has a release that mends an issue, and the newest where an issue is open.
    mended = {scenario for issue in registry().issues if NEWEST in issue.fixed for scenario in issue.provoked}
    entered = {cell.scenario for cell in after if str(cell.running) == "4.5.0"}
    if not MATRICES[name].covers:  # else a pair may be met on the release before, too
        assert {cell.scenario for cell in before if cell.running == NEWEST} - entered <= (
            mended if name == "known" else set()
        )
    on = {str(cell.broker) for cell in after} - {str(cell.broker) for cell in before}
    assert on == (set() if name in ("first-look", "faults") else {"4.5.0"})


def test_a_candidate_that_appears_changes_nothing():
    assert expanded(Request("nightly"), with_release("4.5.0-rc1")).cells == expanded(Request("nightly")).cells


def test_the_release_before_is_still_there_beside_a_new_one():
    cells = expanded(Request("nightly"), with_release("4.5.0")).cells
    assert {(str(cell.streams), str(cell.restart_on)) for cell in cells} >= {("4.4.0", "4.5.0"), ("4.4.0", "None")}


if __name__ == "__main__":
    for matrix in FROZEN:
        (LISTS / f"{matrix}.txt").write_text("".join(f"{line}\n" for line in lines(matrix)))
