"""Which promises of an application a planted bug breaks, and which are vacuous."""

import pytest

from onceproof.campaigns.application.controls import broke, vacuous
from onceproof.model.judged import Control

MADE = {"out": {"differential": False, "unique": False}, "sums": {"differential": False}}


def control(plant: str, **broken: tuple[str, ...]) -> Control:
    return Control(plant, 1, broken, "folder")


def test_what_is_broken_is_told_by_topic():
    assert broke({"out": {"unique": True, "differential": True}, "sums": {"differential": False}}) == {
        "out": ("differential", "unique")
    }


@pytest.mark.parametrize(
    ("controls", "left"),
    [
        ([Control("never-fired", 0, {}, "a")], {}),
        ([Control("ended-it", 1, {}, "a", "thread-died")], {}),
        ([], {"out": ("differential", "unique"), "sums": ("differential",)}),
        ([control("batch-lost", out=("differential",))], {"out": ("unique",), "sums": ("differential",)}),
        ([control("a", out=("differential", "unique")), control("b", sums=("differential",))], {}),
    ],
)
def test_a_promise_that_no_control_breaks_is_vacuous(controls, left):
    assert vacuous(MADE, controls) == left
