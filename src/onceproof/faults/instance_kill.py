"""An instance is killed while it works (SIGKILL), and started again over its state directory.

It does not tell the group, and leaves behind an open transaction, and stores that hold writes of it. Until it is missed
nobody has its tasks, unless it is back earlier. What it wrote in that transaction must be forgotten, and what it
committed must not be done again.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from onceproof.faults.base import Fault, Ground
from onceproof.faults.directory import DirectoryStrike, config


class InstanceKill(DirectoryStrike):
    """An instance that holds active tasks is killed."""

    def __init__(self, ground: Ground) -> None:
        """Nothing is done yet."""
        super().__init__(ground)
        self._tasks: list[str] = []

    def apply(self) -> str:
        """Kill an instance that holds active tasks."""
        victim = self._choose()
        self._tasks = victim.tasks("active")
        self.ground.kill_instance(victim.name)
        return victim.name

    def took_effect(self) -> bool:
        """It is dead at once."""
        return True

    def observed(self) -> tuple[Mapping[str, Any], Sequence[str], str]:
        """Which tasks it had, what its directory held, and what it did with that."""
        proof = {"instance": self._name, "tasks": self._tasks, **self._afterwards()}
        told = f"{self._name} was killed with {', '.join(self._tasks)}; {self._told_afterwards()}"
        return proof, self._missing_work(), told


FAULT = Fault(
    name="instance-kill",
    effect="An instance is killed (SIGKILL).",
    undone="It is started again over its state directory.",
    needs="nothing of the scenario may hang on when an instance dies",
    strike=InstanceKill,
    config=config,
    lasts=12.0,
)
