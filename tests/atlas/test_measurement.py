"""Which measurement of a cell stands, and what a merge keeps."""

from itertools import permutations

import pytest

from onceproof.atlas.comparing import coverage, differences, is_worse
from onceproof.atlas.measurement import merge, standing, thin_out
from onceproof.model.errors import UsageError
from tests.specimens.atlas import EARLIER, NOW, THEN, a_cell, measured_as

CELL = a_cell()


def test_a_red_is_not_replaced_by_a_later_green():
    red, green, later = measured_as("known", day=1), measured_as("clean", day=2), measured_as("clean", day=3)
    for order in permutations((red, green, later)):
        assert thin_out(order) == (red, later)
        assert standing(order, NOW) == {CELL: red}


def test_undecided_stays_only_where_nothing_decided():
    open_, open_later, green = measured_as("inconclusive"), measured_as("inconclusive", day=2), measured_as("clean")
    assert thin_out([open_, open_later]) == (open_later,)
    assert thin_out([green, open_later]) == (green,)


def test_each_harness_has_its_own_and_the_present_one_stands():
    old, now = measured_as("known", harness=EARLIER, day=2), measured_as("clean")
    assert thin_out([old, now]) == (now, old)
    assert standing([old, now], NOW)[CELL] == now
    assert standing([old, now], THEN)[CELL] == old


def test_what_decided_earlier_stands_before_what_did_not():
    old, now = measured_as("clean", harness=EARLIER), measured_as("inconclusive", day=2)
    assert standing([old, now], NOW)[CELL] == old


def test_a_merge_is_the_same_whichever_comes_first():
    one = (measured_as("known"), measured_as("clean", a_cell("3.4.1")))
    other = (measured_as("clean", day=2), measured_as("known"))
    assert merge(one, other) == merge(other, one)
    assert len(merge(one, other)) == 3


def test_one_run_cannot_have_two_verdicts_of_a_cell():
    with pytest.raises(UsageError, match=r"contradict each other about enumerator-.*known and clean"):
        merge([measured_as("known")], [measured_as("clean")])


def kinds(old, new):
    changes, gone = differences(old, new, NOW)
    return [change.kind for change in changes], len(gone), is_worse(changes)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (["clean"], ["clean"], ([], 0, False)),
        (["clean"], ["known"], (["newly red"], 0, True)),
        (["known"], ["regression"], (["newly unexplained"], 0, True)),
        (["known"], ["clean"], (["newly green"], 0, False)),
        (["clean"], ["inconclusive"], (["newly inconclusive"], 0, False)),
        (["clean"], [], ([], 1, False)),
    ],
)
def test_what_changed_between_two_atlases(old, new, expected):
    assert kinds([measured_as(one) for one in old], [measured_as(one, day=2) for one in new]) == expected


def test_a_new_cell_is_told_and_its_machine_may_be_slower():
    old = [measured_as("clean")]
    new = [measured_as("clean", day=2, seconds=900.0), measured_as("clean", a_cell("3.5.0"))]
    assert kinds(old, new) == (["new cell"], 0, False)


def test_coverage_counts_cells_of_those_that_there_could_be():
    possible = [
        a_cell("3.4.0"),
        a_cell("3.4.0", "TOPOLOGY_PAUSED"),
        a_cell("3.5.0"),
        a_cell("3.3.2 → 3.4.0", "ROLLING"),
    ]
    found = [measured_as("known"), measured_as("clean", day=2, harness=EARLIER), measured_as("clean", a_cell("3.6.0"))]
    fields = {str(one.release): (one.measured, one.possible, one.current) for one in coverage(found, possible, NOW)}
    assert fields == {"3.6.0": (1, 1, 1), "3.5.0": (0, 1, 0), "3.4.0": (1, 3, 1)}
