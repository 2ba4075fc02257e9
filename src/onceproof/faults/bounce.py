"""An instance is closed cleanly and started again over its state directory: a bounce, as for a new configuration.

It commits, writes its checkpoints and leaves the group, which gives its tasks to the others if there are any. When it
is back it must trust what it left, catch up with what the others did meanwhile, and nothing may be done twice.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from onceproof.faults.base import Fault, FaultContext, is_at_rest
from onceproof.faults.directory import DirectoryFaultRun, config
from onceproof.faults.outside import see_outside
from onceproof.faults.takeover import Takeover


class Bounce(DirectoryFaultRun):
    """An instance that holds active tasks leaves cleanly, and comes back."""

    _takeover: Takeover  # from `apply` on

    def __init__(self, lab: FaultContext) -> None:
        super().__init__(lab)
        self._has_others = False
        self._closing = (0.0, 0.0)  # epoch seconds: from when to when

    def is_ripe(self) -> bool:
        """Whether the group is at rest, so that the instance has tasks to hand over."""
        return is_at_rest(self.lab)

    def apply(self) -> str:
        """Close an instance that holds active tasks; it leaves its group."""
        victim = self._choose()
        self._has_others = len(self.lab.instances.running) > 1
        self._takeover = Takeover(self.lab, victim)
        began = self.lab.now()
        self.lab.instances.stop(victim.name, leave_group=True)
        self._closing = (began, self.lab.now())
        return victim.name

    def has_taken_effect(self) -> bool:
        """Whether others have taken over all of its tasks, if there are others."""
        return not self._has_others or self._takeover.is_complete()

    def report_observed(self) -> tuple[Mapping[str, Any], Sequence[str], str]:
        """Which tasks it had, who took them over, what it left on disk, and what it made of that."""
        closed_ms = round((self._closing[1] - self._closing[0]) * 1_000)
        proof = {
            "instance": self._name,
            "tasks": self._takeover.tasks,
            "closed_ms": closed_ms,
            "taken_over": self._takeover.by,
            **self._afterwards(),
        }
        missing = self._missing_work()
        if self._has_others and self._takeover.left:
            missing.append(f"no instance took over {', '.join(self._takeover.left)} while {self._name} was away")
        others = f", others processed {self._takeover.records:,} records of them" if self._has_others else ""
        description = (
            f"{self._name} was closed in {closed_ms:,} ms with {', '.join(self._takeover.tasks)}{others}; "
            f"{self._afterwards_text()}"
        )
        return proof, missing, description


FAULT = Fault(
    name="bounce",
    effect="An instance is closed cleanly and leaves the group.",
    undone="It is started again over its state directory.",
    needs="nothing of the scenario may depend on when an instance is closed",
    new_run=see_outside(Bounce, orderly=True),
    seen_outside=True,
    config=config,
    lasts=12.0,
)
