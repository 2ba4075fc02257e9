"""What each matrix has, given a fixed list of published releases: shows a reviewer what a change does to it.

After a change on purpose `python -m tests.model.test_frozen_matrices` writes the lists anew.
"""

from pathlib import Path

import pytest

from onceproof.model.known_issues import registry
from onceproof.model.matrices import MATRICES
from onceproof.model.matrix import Request
from tests.published import NEWEST, expanded, with_release

FROZEN = Path(__file__).parents[1] / "specimens" / "matrices"


def lines(name):
    """The cells of a matrix, and those that were left out."""
    expansion = expanded(Request(name))
    return [*(cell.key for cell in expansion.cells), *(f"refused {cell.key}" for cell in expansion.refused)]


@pytest.mark.parametrize("name", MATRICES)
def test_a_matrix_has_what_is_frozen(name):
    assert lines(name) == (FROZEN / f"{name}.txt").read_text().splitlines()


def test_there_is_no_list_of_a_matrix_that_there_is_not():
    assert {file.stem for file in FROZEN.glob("*.txt")} == set(MATRICES)


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
    for matrix in MATRICES:
        (FROZEN / f"{matrix}.txt").write_text("".join(f"{line}\n" for line in lines(matrix)))
