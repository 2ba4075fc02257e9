"""The broker that leads a partition is frozen until it is missed, and comes back as a zombie that does not know it.

It is stopped (SIGSTOP) while records flow, for longer than its session with the controller: others take over what it
led. When it wakes (SIGCONT) it still believes that it leads, with records and requests that it had taken, and whatever
clients sent to it meanwhile. None of that may count: it must learn that its epoch is over, stand down, and drop what
the others do not have.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import Field

from onceproof.faults.base import Fault, FaultContext, log_lines
from onceproof.faults.leader import NODES, PATIENCE, LeaderFaultRun, LeaderParameters
from onceproof.model.capability import Capability
from onceproof.model.parameter import name_parameters
from onceproof.model.phrases import FOLLOWS

NAME = "broker-pause"
SESSION = 3.0  # seconds after which the controller misses a broker of ours, see lab/cluster.py


class Parameters(LeaderParameters):
    """The partition that the broker leads, and for how long it is stopped."""

    model_config = name_parameters(NAME)
    seconds: float = Field(
        7.0,
        ge=SESSION + 1,
        examples=[14.0],
        description=f"seconds for which the fault `{NAME}` stops a broker, at least",
    )


class BrokerPause(LeaderFaultRun):
    """The leader of a partition is frozen."""

    parameters = Parameters

    def __init__(self, lab: FaultContext) -> None:
        super().__init__(lab)
        self._seconds = Parameters.of(lab.parameters).seconds
        self.patience = self._seconds + PATIENCE
        self._woken = 0.0  # epoch seconds
        self._log_end = 0

    def inject(self, node: int) -> None:
        """Freeze the node, and remember where its log ends."""
        self._log_end = self.lab.brokers.log(node).stat().st_size
        self.lab.brokers.freeze(node)

    def has_taken_effect(self) -> bool:
        """Whether another node leads the partition, and it has been frozen for long enough.

        The application may wait until it wakes, since clients wait for the answer to an open request.
        """
        self.has_continued()
        return self.has_moved() and self.lab.now() - self.injected_at >= self._seconds

    def undo(self, node: int) -> None:
        """Wake the node; from now on it must notice that it no longer leads."""
        self._woken = self.lab.now()
        self.lab.brokers.thaw(node)

    def has_recovered(self) -> bool:
        """Whether it stood down, too."""
        return super().has_recovered() and self._time_stand_down() is not None

    def _time_stand_down(self) -> int | None:
        """Milliseconds after it woke until its log says that it follows another leader; None if it does not."""
        if self.node is None:
            return None
        lines = log_lines(self.lab.brokers.log(self.node), self._log_end, FOLLOWS.pattern)
        return next((t - round(self._woken * 1_000) for t, text in lines if self._is_of_place(text)), None)

    def _is_of_place(self, text: str) -> bool:
        found = FOLLOWS.pattern.search(text)
        return found is not None and found["place"] == self.place

    def proof(self, back_ms: int | None) -> Mapping[str, Any]:
        """Also for how long it was frozen, and when it stood down."""
        stopped_ms = round((self._woken - self.injected_at) * 1_000)
        return {**super().proof(back_ms), "stopped_ms": stopped_ms, "stood_down_after_ms": self._time_stand_down()}

    def lacks(self, back_ms: int | None) -> Iterator[str]:
        """It must have stood down, too."""
        yield from super().lacks(back_ms)
        if self._time_stand_down() is None:
            yield f"node {self.node} did not report that it follows another leader of {self.place}"

    def description(self) -> str:
        """For how long it was frozen."""
        return f"stood still for {round((self._woken - self.injected_at) * 1_000):,} ms"

    def back_text(self, back_ms: int | None) -> str:
        """When it stood down, and when it was in sync."""
        return f"stood down {self._time_stand_down()} ms after it woke and was in sync after {back_ms} ms."


FAULT = Fault(
    name=NAME,
    effect="The broker that leads a partition stands still (SIGSTOP), beyond its session with the controller.",
    undone="It resumes (SIGCONT), as a zombie.",
    needs="it takes three brokers, and topics that two of them may serve",
    new_run=BrokerPause,
    parameters=Parameters,
    nodes=NODES,
    seen_outside=True,
    lasts=12.0,
    requires=frozenset({Capability.KILL_NODE}),
)
