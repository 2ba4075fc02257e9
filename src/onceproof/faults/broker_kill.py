"""The broker that leads a partition dies, and comes back over its data.

It is killed (SIGKILL) while records flow, and started again when another one leads the partition and the application
has made progress. Two of three replicas had each record. So nothing that was acknowledged may be lost, and each
transaction must be committed or aborted as a whole.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from onceproof.faults.base import Fault, FaultContext
from onceproof.faults.leader import NODES, LeaderFaultRun, LeaderParameters
from onceproof.model.capability import Capability
from onceproof.model.parameter import name_parameters

NAME = "broker-kill"


class Parameters(LeaderParameters):
    """The partition that the broker leads, and how it ends."""

    model_config = name_parameters(NAME)
    orderly: bool = Field(False, description=f"whether `{NAME}` asks the broker to shut down cleanly (SIGTERM) instead")


class BrokerKill(LeaderFaultRun):
    """The leader of a partition dies."""

    parameters = Parameters

    def __init__(self, lab: FaultContext) -> None:
        super().__init__(lab)
        self._orderly = Parameters.of(lab.parameters).orderly

    def inject(self, node: int) -> None:
        """Kill it."""
        self.lab.brokers.kill(node, orderly=self._orderly)

    def undo(self, node: int) -> None:
        """Start it again."""
        self.lab.brokers.start(node)

    def proof(self, back_ms: int | None) -> Mapping[str, Any]:
        """Whether it was out of sync, when it was in sync again, and how it ended."""
        return {**super().proof(back_ms), "orderly": self._orderly}

    def description(self) -> str:
        """How it ended."""
        return "was shut down" if self._orderly else "was killed"

    def back_text(self, back_ms: int | None) -> str:
        """When it was in sync."""
        return f"was in sync {back_ms} ms after its start."


FAULT = Fault(
    name=NAME,
    effect="The broker that leads a partition is killed (SIGKILL, or SIGTERM for an orderly shutdown).",
    undone="It is started again over its data.",
    needs="it takes three brokers, and topics that two of them may serve",
    new_run=BrokerKill,
    parameters=Parameters,
    nodes=NODES,
    seen_outside=True,
    requires=frozenset({Capability.KILL_NODE}),
)
