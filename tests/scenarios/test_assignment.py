"""Who must have a task at rest, on assignments as instances report them."""

from collections.abc import Mapping
from typing import Any

import pytest

from onceproof.model.anomaly import Comparison
from onceproof.scenarios.assignment import compare_assignment


def thread(active: str, standby: str = "", state: str = "RUNNING") -> dict[str, Any]:
    return {"thread": "t", "state": state, "active": active.split(), "standby": standby.split()}


def compared(
    instances: Mapping[str, list[dict[str, Any]]], *, standbys: int = 1, before: str = ""
) -> dict[str, Comparison]:
    """What is said of each task, if somebody had the standbys `before`."""
    before_rest = {"t": 1, "source": "one", "event": "assignment", "threads": [thread("", before)]}
    rest = {"t": 2, "event": "at-rest", "instances": instances, "partitions": 2, "standbys": standbys}
    return {c.place: c for c in compare_assignment([before_rest, rest])}


RIGHT = {"one": [thread("0_0 1_0", "0_1")], "two": [thread("0_1", "0_0"), thread("1_1")]}


def test_tasks_are_compared_and_stateless_ones_without_standbys():
    found = compared(RIGHT, before="0_0")
    assert sorted(found) == ["0_0", "0_1", "1_0", "1_1"]
    assert not [c for c in found.values() if c.anomaly]
    assert found["0_1"].observed == "active on two, standby on one"
    assert (found["1_1"].expected, found["1_1"].partition) == (
        "active on one instance, standby on 0 or more others",
        1,
    )


@pytest.mark.parametrize(
    ("instances", "observed"),
    [
        ({"one": [thread("0_0", "0_1")], "two": [thread("", "0_0")]}, {"0_1": "active on none, standby on one"}),
        (
            {"one": [thread("0_0", "0_1")], "two": [thread("0_1 0_0", "")], "three": [thread("", "0_0")]},
            {"0_0": "active on one and two, standby on three"},
        ),
        (
            {"one": [thread("0_0", ""), thread("", "0_0")], "two": [thread("0_1")], "three": [thread("", "0_1")]},
            {"0_0": "active on one, standby on one"},
        ),
        ({"one": [thread("0_0", "0_1")], "two": [thread("0_1")]}, {"0_0": "active on one, standby on none"}),
        (
            {"one": [thread("0_0", "0_1")], "two": [thread("0_1", "0_0", "DEAD")]},
            {"0_1": "active on none, standby on one"},
        ),
    ],
    ids=["no owner", "two owners", "standby beside its active", "too few standbys", "of a dead thread"],
)
def test_only_a_misplaced_task_is_found(instances, observed):
    wrong = {task: c.observed for task, c in compared(instances, before="0_0").items() if c.anomaly}
    assert wrong == observed
    assert {c.anomaly for c in compared(instances, before="0_0").values() if c.anomaly} == {"wrong-assignment"}


def test_if_nobody_ever_had_a_standby_each_task_lacks_one():
    bare = {"one": [thread("0_0")], "two": [thread("0_1")]}
    assert [c.anomaly for c in compared(bare).values()] == ["wrong-assignment"] * 2
    assert [c.anomaly for c in compared(bare, standbys=0).values()] == [None] * 2


def test_one_instance_needs_no_standbys_and_two_need_at_most_one():
    assert [c.anomaly for c in compared({"one": [thread("0_0 0_1")]}).values()] == [None] * 2
    right = {"one": [thread("0_0", "0_1")], "two": [thread("0_1", "0_0")]}
    assert [c.anomaly for c in compared(right, standbys=2).values()] == [None] * 2


def test_a_warmup_beside_the_standbys_is_right():
    more = {**RIGHT, "three": [thread("", "0_0")]}
    assert not [c for c in compared(more, before="0_0").values() if c.anomaly]


def test_nothing_is_said_if_the_drive_failed_before():
    assert not list(compare_assignment([]))


def test_an_application_without_any_task_is_found():
    found = compared({"one": [thread("")]}, before="0_0")
    assert {place: c.anomaly for place, c in found.items()} == {"the application": "wrong-assignment"}
