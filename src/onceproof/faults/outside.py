"""Faults of a black box: an instance ends, and is started again; what its group commits shows that it continued.

Its tasks are not known, nor is what it found in its state directory.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onceproof.faults.base import WORKS, FaultContext, FaultRun, NoTargetError

PATIENCE = 90.0  # seconds: a member that did not leave is missed after its session, 45 s by default


class Restart(FaultRun):
    """An instance drawn from those that run is ended and started again."""

    patience = PATIENCE

    def __init__(self, lab: FaultContext, *, orderly: bool) -> None:
        super().__init__(lab)
        self._orderly = orderly
        self._name: str | None = None
        self._committed: int | None = None  # records, when it was back

    def apply(self) -> str:
        """End it: cleanly (SIGTERM), or at once (SIGKILL)."""
        if not self.lab.instances.running:
            raise NoTargetError("no instance ran")
        self._name = self.lab.rng.choice(sorted(self.lab.instances.running))
        if self._orderly:
            self.lab.instances.stop(self._name, leave_group=True)
        else:
            self.lab.instances.kill(self._name)
        return self._name

    def has_taken_effect(self) -> bool:
        """It has ended."""
        return True

    def heal(self) -> None:
        """Nothing is undone."""

    def has_recovered(self) -> bool:
        """Whether the group continues; the first call starts the instance again, as an operator would."""
        if self._name is not None and self._committed is None:
            self.lab.instances.start(self._name)
            self._committed = self.lab.count_committed()
        return self._afterwards() >= WORKS

    def _afterwards(self) -> int:
        return 0 if self._committed is None else self.lab.count_committed() - self._committed

    def report_observed(self) -> tuple[Mapping[str, Any], Sequence[str], str]:
        """Which instance it was, and what was committed when it was back."""
        records = self._afterwards()
        proof = {"instance": self._name, "orderly": self._orderly, "committed_afterwards": records}
        missing = [f"fewer than {WORKS} records were committed after {self._name} was back"] if records < WORKS else []
        how = "was closed" if self._orderly else "was killed"
        return proof, missing, f"{self._name} {how} and started again; {records:,} records were committed after that."


def see_outside(inside: Callable[[FaultContext], FaultRun], *, orderly: bool) -> Callable[[FaultContext], FaultRun]:
    """The run of a fault whose effect is seen in instances that report, or from outside."""

    def new_run(lab: FaultContext) -> FaultRun:
        reports = all(instance.reports for instance in lab.instances.running.values())
        return inside(lab) if reports else Restart(lab, orderly=orderly)

    return new_run
