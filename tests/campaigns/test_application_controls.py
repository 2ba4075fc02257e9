"""Which promises of an application a planted bug breaks, and which are vacuous."""

import pytest

from onceproof.campaigns.application.controls import list_broken, vacuous
from onceproof.model.judged import PlantedControl

MADE = {"out": {"differential": False, "unique": False}, "sums": {"differential": False}}


def control(plant: str, **broken: tuple[str, ...]) -> PlantedControl:
    return PlantedControl(plant, 1, broken, "folder")


def test_what_is_broken_is_told_by_topic():
    assert list_broken({"out": {"unique": True, "differential": True}, "sums": {"differential": False}}) == {
        "out": ("differential", "unique")
    }


@pytest.mark.parametrize(
    ("controls", "left"),
    [
        ([PlantedControl("never-fired", 0, {}, "a")], {}),
        ([PlantedControl("ended-it", 1, {}, "a", "thread-died")], {}),
        ([], {"out": ("differential", "unique"), "sums": ("differential",)}),
        ([control("batch-lost", out=("differential",))], {"out": ("unique",), "sums": ("differential",)}),
        ([control("a", out=("differential", "unique")), control("b", sums=("differential",))], {}),
    ],
)
def test_a_promise_that_no_control_breaks_is_vacuous(controls, left):
    assert vacuous(MADE, controls) == left
