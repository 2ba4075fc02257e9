"""An operator puts back a snapshot of the state directory of an instance, from before the last commits.

The snapshot is taken while the instance runs, as that of a disk would be: it is frozen meanwhile (SIGSTOP), so that all
files are from the same moment. When more has been committed the instance is killed, its directory is replaced by the
snapshot, and it is started again.

Under exactly-once a task that was active then has no checkpoint in the snapshot, so its stores must be wiped and
restored from the beginning. A task that has one, such as a standby, is trusted and restored from there. What was
committed after the snapshot must come from the changelog in either case. The id of the process is its own.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from onceproof.faults.base import Fault, FaultContext
from onceproof.faults.directory import DirectoryFaultRun, config
from onceproof.model.parameter import BaseParameters, name_parameters

NAME = "state-restored"


class Parameters(BaseParameters):
    """How old the snapshot is."""

    model_config = name_parameters(NAME)
    records: int = Field(
        5_000,
        ge=1,
        examples=[100],
        description=f"records that are committed after the snapshot of `{NAME}`, at least",
    )


class StateRestored(DirectoryFaultRun):
    """An instance is started over an older snapshot of its own directory."""

    def __init__(self, lab: FaultContext) -> None:
        super().__init__(lab)
        self._records = Parameters.of(lab.parameters).records
        self._committed_before = self._committed_since = 0

    def apply(self) -> str:
        """Take the snapshot of an instance that holds active tasks."""
        victim = self._choose()
        self._committed_before = self.lab.count_committed()
        self._snapshot(victim.name)
        return victim.name

    def has_taken_effect(self) -> bool:
        """Whether the instance was started over the snapshot, which happens as soon as enough has been committed."""
        self._committed_since = self.lab.count_committed() - self._committed_before
        if self._committed_since >= self._records:
            self._kill_and_put_copy()
        return self._again is not None

    def has_recovered(self) -> bool:
        """Whether the instance works again."""
        return self._works_again()

    def report_observed(self) -> tuple[Mapping[str, Any], Sequence[str], str]:
        """The content of the directory before and after, what was committed in between, and what the instance did."""
        proof = {
            "instance": self._name,
            "committed_after_snapshot": self._committed_since,
            "lost": self._lost,
            **self._afterwards(),
        }
        if self._again is None:
            wanted = f"{self._committed_since:,} records were committed after the snapshot, and not {{:,}}"
            return proof, [wanted.format(self._records)], ""
        description = (
            f"{self._name} was killed {self._committed_since:,} committed records after a snapshot of its state, which "
            f"was put back; {self._afterwards_text()}"
        )
        return proof, [*self._missing_judgement(), *self._missing_work()], description


FAULT = Fault(
    name=NAME,
    effect="A snapshot of the state directory of an instance is put back, from before the last commits.",
    undone="Nothing is undone: the instance continues with the snapshot.",
    needs="it takes stores on disk",
    new_run=StateRestored,
    parameters=Parameters,
    config=config,
    lasts=12.0,
)
