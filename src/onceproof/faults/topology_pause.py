"""An application pauses the processing of one of its instances, and resumes it (`KafkaStreams.pause`, KIP-834).

A paused instance stays in its group, with all its tasks; it polls, but processes nothing, and its standbys and tasks
that are being restored stand still, too. When it is resumed it continues where it was.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from onceproof.faults.base import WORKS, Fault, FaultContext, FaultRun, Instance, draw_busy, is_at_rest
from onceproof.model.parameter import BaseParameters, name_parameters
from onceproof.model.release import Release

NAME = "topology-pause"


class Parameters(BaseParameters):
    """For how long an instance is paused."""

    model_config = name_parameters(NAME)
    seconds: float = Field(
        2.0, ge=1, examples=[8.0], description=f"seconds for which an instance under `{NAME}` processes nothing"
    )


class TopologyPause(FaultRun):
    """An instance that holds an active task is paused."""

    def __init__(self, lab: FaultContext) -> None:
        super().__init__(lab)
        self._seconds = Parameters.of(lab.parameters).seconds
        self.patience = self._seconds + 20.0
        self._instance: Instance | None = None
        self._active: list[str] = []  # tasks that it had
        self._standby: list[str] = []
        self._before = 0  # records that it had processed when they were last seen to become more
        self._since = self._until = 0.0  # seconds of the epoch: from when it processed nothing, and when it was resumed

    def is_ripe(self) -> bool:
        """Whether the group is at rest, so that standbys are where they stay."""
        return is_at_rest(self.lab)

    def apply(self) -> str:
        """Pause an instance drawn from those that hold active tasks."""
        instance = self._instance = draw_busy(self.lab)
        self._active, self._standby = instance.tasks("active"), instance.tasks("standby")
        self.lab.instances.step("pause", instance.name)
        self._before, self._since = instance.processed, self.lab.now()
        return instance.name

    def has_taken_effect(self) -> bool:
        """Whether it has processed nothing for long enough; what it had begun it may finish."""
        if self._instance is not None and self._instance.processed > self._before:
            self._before, self._since = self._instance.processed, self.lab.now()
        return self.lab.now() - self._since >= self._seconds

    def heal(self) -> None:
        """Resume it, if it is still there."""
        if self._instance is not None and self._instance.state in ("RUNNING", "REBALANCING"):
            self._until = self.lab.now()
            self.lab.note("resumed", instance=self._instance.name)
            self.lab.instances.step("resume", self._instance.name)

    def has_recovered(self) -> bool:
        """Whether it works again."""
        return self._afterwards >= WORKS

    @property
    def _afterwards(self) -> int:
        return 0 if self._instance is None else self._instance.processed - self._before

    def report_observed(self) -> tuple[Mapping[str, Any], Sequence[str], str]:
        """The instance with its tasks, for how long it processed nothing, and what it processed afterwards."""
        name = "" if self._instance is None else self._instance.name
        quiet = self._until - self._since
        proof = {
            "instance": name,
            "tasks": self._active,
            "standbys": self._standby,
            "processed_nothing_ms": round(quiet * 1_000),
            "processed_afterwards": self._afterwards,
        }
        missing = []
        if quiet < self._seconds:
            missing.append(f"{name} continued processing while it was paused")
        if self._afterwards < WORKS:
            missing.append(f"{name} processed fewer than {WORKS} records when it was resumed")
        description = (
            f"{name}, with {len(self._active)} active and {len(self._standby)} standby tasks, was paused and processed "
            f"nothing for {round(quiet * 1_000):,} ms; when it was resumed it processed {self._afterwards:,} records."
        )
        return proof, missing, description


FAULT = Fault(
    name=NAME,
    effect="An instance pauses its processing (KafkaStreams.pause).",
    undone="It resumes.",
    needs="it takes an application that processes records before and after",
    new_run=TopologyPause,
    parameters=Parameters,
    since=Release(3, 3, 0),
)
