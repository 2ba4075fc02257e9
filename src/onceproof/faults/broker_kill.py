"""The broker that leads a partition dies, and comes back over its data.

It is killed (SIGKILL) while records flow, and started again when another one leads the partition and the application
has gone on. What it leads is a parameter: the coordinator of a group, or of transactions, is the leader of a partition
of Kafka's own logs. There are three brokers, three replicas of each partition, and two of them must have a record
before it counts. So nothing that was acknowledged may be lost, and each transaction must be committed or aborted as a
whole.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from onceproof.faults.base import Fault, Ground, NoTargetError, Replicas, Strike, processed
from onceproof.model.capability import Capability
from onceproof.model.parameter import Parameter
from onceproof.model.segments import COORDINATOR, OFFSETS, partition_of_name

NODES = 3
PATIENCE = 45.0  # seconds that the brokers are given to elect another leader, and then to catch up
TRANSACTIONAL_ID = re.compile(r"transactionalId=([^,\]\s]+)")

LEADS, ORDERLY = "broker-kill.leads", "broker-kill.orderly"
TRANSACTIONS, GROUP, INPUT, CHANGELOG = "transaction-coordinator", "group-coordinator", "input", "changelog"
PARAMETERS = {
    LEADS: Parameter(
        TRANSACTIONS,
        "what the broker leads that the fault `broker-kill` kills",
        choices=(TRANSACTIONS, GROUP, INPUT, CHANGELOG),
    ),
    ORDERLY: Parameter(False, "whether `broker-kill` asks the broker to shut down in good order (SIGTERM) instead"),
}
Partition = tuple[str, int]


class BrokerKill(Strike):
    """The leader of a partition dies."""

    patience = PATIENCE

    def __init__(self, ground: Ground) -> None:
        """Nothing is done yet."""
        super().__init__(ground)
        self._leads: str = ground.parameters[LEADS]
        self._partition: Partition = ("", 0)
        self._node: int | None = None
        self._led: list[Partition] = []  # by the node
        self._killed = self._started = 0.0  # epoch seconds
        self._moved: tuple[int, float] | None = None  # to which node, when
        self._processed: int | None = None  # when it was seen to have moved
        self._missed = self._went_on = False
        self._in_sync_at: float | None = None

    def apply(self) -> str:
        """Kill the leader of the partition."""
        nodes, replicas = self.ground.brokers.nodes, self.ground.brokers.replicas()
        if nodes < NODES:
            raise NoTargetError(f"it takes {NODES} brokers of ours, but there are {nodes}")
        self._partition = self._chosen(replicas)
        node = replicas[self._partition].leader
        if node is None:
            raise NoTargetError(f"nobody led {self._place}")
        self._node = node
        self._led = [partition for partition, of in replicas.items() if of.leader == node]
        self._killed = self.ground.now()
        self.ground.brokers.kill(node, orderly=self.ground.parameters[ORDERLY])
        return f"node {node}, {self._leads}"

    def _chosen(self, replicas: Mapping[Partition, Replicas]) -> Partition:
        """The partition whose leader is killed; of several one is drawn."""
        trial = self.ground.trial
        if self._leads == GROUP:
            return OFFSETS, partition_of_name(trial.application_id, _partitions(OFFSETS, replicas))
        if self._leads == TRANSACTIONS:
            ids = sorted(self._transactional_ids())
            if not ids:
                raise NoTargetError("no instance told of its transactional id")
            return COORDINATOR, partition_of_name(self.ground.rng.choice(ids), _partitions(COORDINATOR, replicas))
        of_trial = [place for place in sorted(replicas) if place[0].startswith(f"{trial.application_id}-")]
        wanted = [(t, p) for t, p in of_trial if t.endswith(f"-{self._leads}")]
        if not wanted:
            raise NoTargetError(f"there is no partition of the {self._leads}")
        return self.ground.rng.choice(wanted)

    def _transactional_ids(self) -> set[str]:
        logs = (instance.log.read_text(errors="replace") for instance in self.ground.running.values())
        return {found for log in logs for found in TRANSACTIONAL_ID.findall(log)}

    @property
    def _place(self) -> str:
        topic, partition = self._partition
        return f"{topic}-{partition}"

    def took_effect(self) -> bool:
        """Whether another node leads the partition, and the application went on after that."""
        replicas = self._now()
        if self._moved is None and replicas.leader not in (None, self._node):
            self._moved = (int(replicas.leader or 0), self.ground.now())
            self._missed = self._node not in replicas.in_sync
            self._processed = processed(self.ground)
        self._went_on = self._processed is not None and processed(self.ground) > self._processed
        return self._went_on

    def _now(self) -> Replicas:
        return self.ground.brokers.replicas().get(self._partition, Replicas(None, frozenset()))

    def heal(self) -> None:
        """Start the node again."""
        if self._node is not None:
            self.ground.brokers.start(self._node)
            self._started = self.ground.now()

    def recovered(self) -> bool:
        """Whether the node has every record of the partitions that it led."""
        replicas = self.ground.brokers.replicas()
        if replicas and all(p not in replicas or self._node in replicas[p].in_sync for p in self._led):
            self._in_sync_at = self.ground.now()
        return self._in_sync_at is not None

    def observed(self) -> tuple[Mapping[str, Any], Sequence[str], str]:
        """The node, what it led, who leads it now and since when, and when the node was in sync again."""
        moved_ms = None if self._moved is None else round((self._moved[1] - self._killed) * 1_000)
        in_sync_ms = None if self._in_sync_at is None else round((self._in_sync_at - self._started) * 1_000)
        proof = {
            "node": self._node,
            "leads": self._leads,
            "partition": self._place,
            "orderly": self.ground.parameters[ORDERLY],
            "partitions_led": len(self._led),
            "leader_after": None if self._moved is None else self._moved[0],
            "moved_after_ms": moved_ms,
            "out_of_sync": self._missed,
            "went_on": self._went_on,
            "in_sync_after_ms": in_sync_ms,
        }
        missing = [
            sentence
            for sentence, is_missing in (
                (f"nobody else led {self._place} within {PATIENCE:g} s", self._moved is None),
                (f"node {self._node} still counted as in sync", not self._missed),
                (f"no record was processed after {self._place} had moved", not self._went_on),
                (f"node {self._node} was not in sync again within {PATIENCE:g} s", in_sync_ms is None),
            )
            if is_missing
        ]
        ended = "shut down" if self.ground.parameters[ORDERLY] else "killed"
        told = (
            f"Node {self._node}, which led {self._place} ({self._leads}) and {len(self._led) - 1} other partitions, "
            f"was {ended}; node {proof['leader_after']} led it after {moved_ms} ms, and node {self._node} was in sync "
            f"{in_sync_ms} ms after its start."
        )
        return proof, missing, told


def _partitions(topic: str, replicas: Mapping[Partition, Replicas]) -> int:
    return max(1, sum(name == topic for name, _ in replicas))


FAULT = Fault(
    name="broker-kill",
    what="The broker that leads a partition is killed (SIGKILL, or SIGTERM for an orderly shutdown).",
    undone="It is started again over its data.",
    needs="it takes three brokers, and topics that two of them may serve",
    strike=BrokerKill,
    parameters=PARAMETERS,
    nodes=NODES,
    requires=frozenset({Capability.KILL_NODE}),
)
