"""What packages of others add: by name, and with a sentence where that cannot be."""

import sys
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from types import ModuleType

import pytest

from onceproof.model.entry_points import Registry
from onceproof.model.errors import UsageError

GROUP = "onceproof.toys"


@dataclass(frozen=True)
class Toy:
    name: str


def module(name, **attributes):
    made = ModuleType(name)
    vars(made).update(attributes)
    return made


OURS = [module("ours.ball", TOY=Toy("ball")), module("ours.kite", TOY=Toy("kite"))]


@pytest.fixture
def registry(monkeypatch):
    """A registry of toys, and of modules that a package names."""

    def make(*loaded):
        for one in loaded:
            monkeypatch.setitem(sys.modules, one.__name__, one)
        points = [EntryPoint("a-name", one.__name__, GROUP) for one in loaded]
        return Registry(GROUP, "TOY", Toy, OURS, lambda group: points if group == GROUP else [])

    return make


def test_ours_come_first_and_each_with_its_module(registry):
    toys = registry(module("theirs.doll", TOY=Toy("doll")))
    assert [*toys] == ["ball", "kite", "doll"]
    assert toys["doll"] == Toy("doll")
    assert toys.added == (Toy("doll"),)
    assert toys.modules == {"ball": "ours.ball", "kite": "ours.kite", "doll": "theirs.doll"}
    assert "train" not in toys


def test_nothing_is_looked_at_before_something_is_asked_for(registry):
    toys = registry(late := module("theirs.late"))
    late.TOY = Toy("late")  # as a module that imports ours has nothing to show yet
    assert "late" in toys


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"TOY": Toy("kite")}, "declares 'kite', which ours.kite declares, too: rename it, or uninstall"),
        ({"TOY": "a kite"}, "has no TOY that is a Toy: name a module that has one"),
        ({}, "has no TOY that is a Toy"),
    ],
)
def test_what_cannot_be_taken_is_said_with_the_entry_point(registry, declared, said):
    toys = registry(module("theirs.odd", **declared))
    with pytest.raises(UsageError, match=rf"^The entry point a-name = theirs.odd in {GROUP} {said}"):
        len(toys)


def test_a_failed_import_of_a_module_is_reported_with_its_reason():
    point = EntryPoint("a-name", "theirs.nowhere", GROUP)
    toys = Registry(GROUP, "TOY", Toy, OURS, lambda _: [point])
    with pytest.raises(UsageError, match=r"cannot be loaded \(ModuleNotFoundError: No module named 'theirs'\): fix"):
        toys["ball"]
