"""The broker that leads a partition dies, and comes back over its data.

It is killed (SIGKILL) while records flow, and started again when another one leads the partition and the application
has made progress. Two of three replicas had each record. So nothing that was acknowledged may be lost, and each
transaction must be committed or aborted as a whole.
"""

from collections.abc import Mapping
from typing import Any

from onceproof.faults.base import Fault
from onceproof.faults.leader import NODES, LeaderFaultRun, leads
from onceproof.model.capability import Capability
from onceproof.model.parameter import Parameter

NAME = "broker-kill"
ORDERLY = f"{NAME}.orderly"
PARAMETERS = {
    **leads(NAME),
    ORDERLY: Parameter(False, f"whether `{NAME}` asks the broker to shut down cleanly (SIGTERM) instead"),
}


class BrokerKill(LeaderFaultRun):
    """The leader of a partition dies."""

    name = NAME

    def inject(self, node: int) -> None:
        """Kill it."""
        self.lab.brokers.kill(node, orderly=self.lab.parameters[ORDERLY])

    def undo(self, node: int) -> None:
        """Start it again."""
        self.lab.brokers.start(node)

    def proof(self, back_ms: int | None) -> Mapping[str, Any]:
        """Whether it was out of sync, when it was in sync again, and how it ended."""
        return {**super().proof(back_ms), "orderly": self.lab.parameters[ORDERLY]}

    def description(self) -> str:
        """How it ended."""
        return "was shut down" if self.lab.parameters[ORDERLY] else "was killed"

    def back_text(self, back_ms: int | None) -> str:
        """When it was in sync."""
        return f"was in sync {back_ms} ms after its start."


FAULT = Fault(
    name=NAME,
    effect="The broker that leads a partition is killed (SIGKILL, or SIGTERM for an orderly shutdown).",
    undone="It is started again over its data.",
    needs="it takes three brokers, and topics that two of them may serve",
    new_run=BrokerKill,
    parameters=PARAMETERS,
    nodes=NODES,
    seen_outside=True,
    requires=frozenset({Capability.KILL_NODE}),
)
