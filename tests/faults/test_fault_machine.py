"""Each fault in a fake world, again and again, of which the driver dies anywhere: it is undone whatever happens."""

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from onceproof.faults import FAULTS, fault
from onceproof.faults.base import run_fault
from onceproof.scenarios import SCENARIOS
from tests.conftest import a_trial
from tests.fakes.group import Nature
from tests.fakes.world import fake_driver

UNDOES = {"started": ("killed", "shut down"), "thawed": ("frozen",)}
# `held-rebalance` strikes user applications alone: tests/faults/test_outside.py.
STRIKING = sorted(name for name in FAULTS if any(fault(name) in what.faults for what in SCENARIOS.values()))
PARTS = ("instances", "brokers", "links")  # of the world, on which a fault acts


class DiedError(Exception):
    """The driver of a trial dies."""


class Dying:
    """A part of the world, with which the driver dies after so many calls: before it acts, or when it has acted."""

    def __init__(self, part: Any, left: list[int], *, acts: bool) -> None:
        self._part, self._left, self._acts = part, left, acts

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._part, name)
        if name in PARTS:
            return Dying(value, self._left, acts=self._acts)
        return self._dying(value) if callable(value) else value

    def _dying(self, act: Callable[..., Any]) -> Callable[..., Any]:
        def until_dead(*words: Any, **named: Any) -> Any:
            self._left[0] -= 1
            dies = self._left[0] == 0
            if dies and not self._acts:
                raise DiedError
            done = act(*words, **named)
            if dies:
                raise DiedError
            return done

        return until_dead


def trial_with(name: str) -> Any:
    """A trial of the first scenario that the fault can strike."""
    if name == "rolling-bounce":
        return a_trial("4.2.1", "ROLLING", restart_on="4.3.1")
    where = next(scenario for scenario, what in SCENARIOS.items() if fault(name) in what.faults)
    several: dict[str, Any] = {"nodes": 3} if fault(name).nodes > 1 else {}
    return a_trial("4.3.1", scenario=where, fault=name, **several)


class Struck(RuleBasedStateMachine):
    """A group of two instances that works, and is struck by one fault after the other of one kind."""

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp(prefix="struck-"))
        self.driver: Any = None

    @initialize(name=st.sampled_from(STRIKING))
    def begin(self, name: str) -> None:
        self.fault = fault(name)
        self.driver = fake_driver(trial_with(name), self.place, Nature())
        self.lab = self.driver.lab
        for number in (1, 2):
            self.lab.instances.start(f"instance-{number}")
        self.lab.holds_within(30.0, lambda: any(i.tasks("active") for i in self.lab.instances.running.values()))
        self.bulk = self.lab.produce("flow", self.lab.workload.second, 1_500.0)

    def strike(self, lab: Any) -> None:
        run_fault(self.fault, lab, lambda: self.bulk.make_last(self.fault.lasts))

    @rule()
    def strike_and_live(self) -> None:
        self.strike(self.lab)

    @rule(calls=st.integers(1, 40), acts=st.booleans())
    def strike_and_die(self, calls: int, acts: bool) -> None:
        try:
            self.strike(Dying(self.lab, [calls], acts=acts))
        except DiedError:
            return

    @rule(seconds=st.floats(0.1, 5.0))
    def wait(self, seconds: float) -> None:
        self.lab.holds_within(seconds, lambda: False)

    @invariant()
    def everything_is_as_it_was(self) -> None:
        if self.driver is None:
            return
        assert [name for name, of in self.lab.instances.running.items() if of._frozen or of._disk_is_full] == []
        assert (self.lab.links.how, self.lab.links.late, self.lab.links.loses) == (None, 0.0, None)
        away: Counter[tuple[str, Any]] = Counter()
        led = [event["leaders"] for event in self.driver.context.events if event["event"] == "leaders"]
        for event in self.driver.context.events:
            if event["event"] == "broker":
                for undoing, undone in UNDOES.items():  # to undo what was not done is harmless
                    place = undoing, event["node"]
                    away[place] = max(0, away[place] + (event["action"] in undone) - (event["action"] == undoing))
        assert {place for place, times in away.items() if times} == set()
        assert [leaders for leaders in led[-1:] if set(leaders) != {1}] == []
        for folder in (folder for folder in self.driver.context.folder.state.rglob("*") if folder.is_dir()):
            (folder / "probe").touch()  # raises where the folder was left read-only
            (folder / "probe").unlink()

    def teardown(self) -> None:
        if self.driver is not None:
            self.driver.stop()
        shutil.rmtree(self.place)


TestStruck = Struck.TestCase
TestStruck.settings = settings(
    max_examples=16, stateful_step_count=3, deadline=None, suppress_health_check=list(HealthCheck)
)
