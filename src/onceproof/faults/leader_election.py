"""Leaders move, and no broker fails: a node gives up everything it leads, and later leads it again.

An operator balances the brokers, or drains one: by the Admin API another replica becomes the preferred one of each
partition that the node leads, and the preferred leaders are elected, while records flow. Later everything is put back.
A client that knows the old leader must find the new one, with nothing lost, repeated or out of order; a coordinator
hands over groups and transactions in the middle of their work.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from onceproof.faults.base import Fault, Replicas
from onceproof.faults.leader import NODES, PATIENCE, LeaderFaultRun, LeaderParameters
from onceproof.model.capability import Capability
from onceproof.model.parameter import name_parameters

NAME = "leader-election"


class Parameters(LeaderParameters):
    """The partition whose leader gives up all that it leads."""

    model_config = name_parameters(NAME)


class LeaderElection(LeaderFaultRun):
    """The leader of a partition gives up everything it leads."""

    parameters = Parameters

    def inject(self, node: int) -> None:
        """Have others lead everything it leads; one is drawn for each partition."""
        replicas = self.lab.brokers.replicas()
        others = {place: sorted(replicas[place].in_sync - {node}) for place in self.led if place in replicas}
        self.lab.brokers.lead({place: self.lab.rng.choice(nodes) for place, nodes in others.items() if nodes})

    def undo(self, node: int) -> None:
        """Have it lead again."""
        self.lab.brokers.lead(dict.fromkeys(self.led, node))

    def is_back(self, replicas: Replicas) -> bool:
        """Whether it leads a partition that it led before."""
        return replicas.leader == self.node

    def proof(self, back_ms: int | None) -> Mapping[str, Any]:
        """Whether it stayed in sync, and when it led again."""
        return {"stayed_in_sync": not self.out_of_sync, "led_again_after_ms": back_ms}

    def lacks(self, back_ms: int | None) -> Iterator[str]:
        """It must lead again."""
        if back_ms is None:
            yield f"node {self.node} did not lead again within {PATIENCE:g} s"

    def description(self) -> str:
        """The actions of the instance."""
        return "gave them up"

    def back_text(self, back_ms: int | None) -> str:
        """When it led again."""
        return f"led all of them again {back_ms} ms after it was elected."


FAULT = Fault(
    name=NAME,
    effect="The broker that leads a partition gives up all that it leads: others are elected (preferred leaders).",
    undone="It is elected again.",
    needs="it takes three brokers, and topics that two of them may serve",
    new_run=LeaderElection,
    parameters=Parameters,
    nodes=NODES,
    seen_outside=True,
    requires=frozenset({Capability.MOVE_LEADERS}),
)
