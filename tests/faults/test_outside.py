"""What strikes a black box, and that it is concluded from what its group commits."""

import random
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from onceproof.faults import bounce, broker_kill, instance_kill
from onceproof.faults.base import WORKS, Replicas, count_processed, run_fault
from onceproof.model.segments import COORDINATOR, OFFSETS


class BoxInstances:
    """Two black boxes, which write down what is done to them."""

    def __init__(self) -> None:
        self.running = {name: SimpleNamespace(name=name, reports=False, processed=0) for name in ("a", "b")}
        self.done: list[tuple[str, str]] = []

    def kill(self, name: str) -> None:
        self.done.append(("killed", self.running.pop(name).name))

    def stop(self, name: str, leave_group: bool) -> None:
        self.done.append(("stopped", self.running.pop(name).name))

    def start(self, name: str) -> None:
        self.done.append(("started", name))
        self.running[name] = SimpleNamespace(name=name, reports=False)


class Boxes:
    """The lab of a trial of two black boxes, whose group commits a hundred records with each look."""

    def __init__(self, goes_on: bool = True) -> None:
        self.rng = random.Random(1)
        self.parameters: dict[str, object] = {}
        self.events: list[tuple[str, dict[str, object]]] = []
        self.instances = BoxInstances()
        self.done, self._committed, self._goes_on = self.instances.done, 0, goes_on

    def count_committed(self, role: str = "input") -> int:
        if self._goes_on or len(self.done) < 2:
            self._committed += 100
        return self._committed

    def open_input(self) -> dict[str, dict[str, tuple[int, None]]]:
        return {"orders": {"0": (self._committed, None)}}

    def holds_within(self, seconds: float, condition: Callable[[], bool]) -> bool:
        return any(condition() for _ in range(100))

    def note(self, event: str, **fields: object) -> None:
        self.events.append((event, fields))


def lab(goes_on: bool = True) -> Any:
    """It stands in for the part of a `FaultContext` that these faults act on."""
    return Boxes(goes_on)


@pytest.mark.parametrize(("module", "how"), [(instance_kill, "killed"), (bounce, "stopped")])
def test_an_instance_is_restarted_and_the_group_continues(module: ModuleType, how: str) -> None:
    boxes = lab()
    fault_outcome = run_fault(module.FAULT, boxes, lambda: None)
    [(_, name), started] = boxes.done
    assert boxes.done == [(how, name), ("started", name)]
    assert fault_outcome.bit, fault_outcome.summary
    assert fault_outcome.observed["committed_afterwards"] >= WORKS
    assert started == ("started", name)


def test_a_group_that_does_not_continue_was_not_exercised() -> None:
    fault_outcome = run_fault(instance_kill.FAULT, lab(goes_on=False), lambda: None)
    assert not fault_outcome.bit
    assert f"fewer than {WORKS} records were committed" in fault_outcome.summary


def test_a_black_box_loses_the_broker_that_coordinates_its_group() -> None:
    boxes, killed = lab(), []
    boxes.parameters = {"broker-kill.leads": "transaction-coordinator", "broker-kill.orderly": False}
    boxes.trial = SimpleNamespace(application_id="app")
    led = {(OFFSETS, 0): Replicas(2, frozenset({1, 2, 3})), (COORDINATOR, 0): Replicas(1, frozenset({1, 2, 3}))}
    boxes.brokers = SimpleNamespace(nodes=3, replicas=lambda: led, kill=lambda node, orderly: killed.append(node))
    boxes.now = lambda: 0.0
    fault_run = broker_kill.FAULT.new_run(boxes)
    assert fault_run.apply() == "node 2, group-coordinator"
    assert isinstance(fault_run, broker_kill.BrokerKill)
    assert (killed, fault_run.place) == ([2], f"{OFFSETS}-0")


def test_what_black_boxes_have_processed_is_what_is_committed() -> None:
    assert count_processed(lab()) == 100
