"""Faults of the broker that leads a partition: which partition that is, and what happens to it.

What the broker leads is a parameter of each such fault: the coordinator of a group, or of transactions, is the leader
of a partition of Kafka's own logs. A black box reports no transactional id, so it is its group's coordinator that is
hit. There are three brokers, three replicas of each partition, and two of them must have a record before it counts.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import Field

from onceproof.faults.base import FaultContext, FaultRun, NoTargetError, Replicas, count_processed
from onceproof.model.parameter import BaseParameters
from onceproof.model.phrases import TRANSACTIONAL_ID
from onceproof.model.segments import COORDINATOR, OFFSETS, partition_of_name

NODES = 3
PATIENCE = 45.0  # seconds that the brokers have to elect another leader, and then to catch up
Led = Literal["transaction-coordinator", "group-coordinator", "input", "changelog"]
TRANSACTIONS: Led = "transaction-coordinator"
GROUP: Led = "group-coordinator"
Partition = tuple[str, int]


class LeaderParameters(BaseParameters):
    """The partition that the broker leads."""

    leads: Led = Field(TRANSACTIONS, description="the partition whose leader the fault hits")


def partition_led(led: Led, lab: FaultContext) -> Partition:
    """The partition whose leader a fault hits; drawn if there are several.

    Raises:
        NoTargetError: there is none.
    """
    replicas, application_id = lab.brokers.replicas(), lab.trial.application_id
    if led == GROUP:
        return OFFSETS, partition_of_name(application_id, _partitions(OFFSETS, replicas))
    if led == TRANSACTIONS:
        ids = sorted(_transactional_ids(lab))
        if not ids:
            raise NoTargetError("no instance reported its transactional id")
        return COORDINATOR, partition_of_name(lab.rng.choice(ids), _partitions(COORDINATOR, replicas))
    of_trial = [place for place in sorted(replicas) if place[0].startswith(f"{application_id}-")]
    wanted = [(topic, partition) for topic, partition in of_trial if topic.endswith(f"-{led}")]
    if not wanted:
        raise NoTargetError(f"there is no partition of the {led}")
    return lab.rng.choice(wanted)


def _transactional_ids(lab: FaultContext) -> set[str]:
    logs = (instance.log.read_text(errors="replace") for instance in lab.instances.running.values())
    return {found for log in logs for found in TRANSACTIONAL_ID.pattern.findall(log)}


def _partitions(topic: str, replicas: Mapping[Partition, Replicas]) -> int:
    return max(1, sum(name == topic for name, _ in replicas))


class LeaderFaultRun(FaultRun):
    """A fault of the broker that leads a partition, so that another one leads it."""

    parameters: ClassVar[type[LeaderParameters]]  # of the fault
    patience = PATIENCE

    def __init__(self, lab: FaultContext) -> None:
        super().__init__(lab)
        self.leads = self.parameters.of(lab.parameters).leads
        self.partition: Partition = ("", 0)
        self.node: int | None = None
        self.led: list[Partition] = []  # by the node
        self.injected_at = self.undone = 0.0  # epoch seconds
        self.moved: tuple[int, float] | None = None  # to which node, when
        self.out_of_sync = False  # the node, when it was seen to have moved
        self._processed: int | None = None  # by then
        self._went_on = False
        self._back_at: float | None = None

    def apply(self) -> str:
        """Do it to the leader of the partition."""
        nodes = self.lab.brokers.nodes
        if nodes < NODES:
            raise NoTargetError(f"it takes {NODES} brokers of ours, but there are {nodes}")
        if self.leads == TRANSACTIONS and not any(instance.reports for instance in self.lab.instances.running.values()):
            self.leads = GROUP  # a black box reports no transactional ids
        self.partition = partition_led(self.leads, self.lab)
        replicas = self.lab.brokers.replicas()
        node = replicas[self.partition].leader if self.partition in replicas else None
        if node is None:
            raise NoTargetError(f"no broker led {self.place}")
        self.led = [partition for partition, of in replicas.items() if of.leader == node]
        self.injected_at = self.lab.now()
        self.node = node
        self.inject(node)
        return f"node {node}, {self.leads}"

    @abstractmethod
    def inject(self, node: int) -> None:
        """Inject the fault into this node."""

    @abstractmethod
    def undo(self, node: int) -> None:
        """Give the node back what the fault took from it."""

    @property
    def place(self) -> str:
        """The partition, as Kafka writes it."""
        topic, partition = self.partition
        return f"{topic}-{partition}"

    def has_taken_effect(self) -> bool:
        """Whether another node leads the partition, and the application continued after that."""
        return self.has_moved() and self.has_continued()

    def has_moved(self) -> bool:
        """Whether another node has come to lead the partition."""
        replicas = self.lab.brokers.replicas().get(self.partition, Replicas(None, frozenset()))
        if self.moved is None and replicas.leader not in (None, self.node):
            self.moved = (int(replicas.leader or 0), self.lab.now())
            self.out_of_sync = self.node not in replicas.in_sync
            self._processed = count_processed(self.lab)
        return self.moved is not None

    def has_continued(self) -> bool:
        """Whether records were processed after that."""
        self._went_on = self._went_on or (self._processed is not None and count_processed(self.lab) > self._processed)
        return self._went_on

    def heal(self) -> None:
        """Undo it, if it was done."""
        if self.node is not None:
            self.undo(self.node)
            self.undone = self.lab.now()

    def has_recovered(self) -> bool:
        """Whether the node is back in all partitions that it led, and the application continues."""
        replicas = self.lab.brokers.replicas()
        if self._back_at is None and replicas and all(p not in replicas or self.is_back(replicas[p]) for p in self.led):
            self._back_at = self.lab.now()
        return self.has_continued() and self._back_at is not None

    def is_back(self, replicas: Replicas) -> bool:
        """Whether the node has every record of a partition that it led."""
        return self.node in replicas.in_sync

    def report_observed(self) -> tuple[Mapping[str, Any], Sequence[str], str]:
        """The node, what it led, who led that then and since when, and when the node was back."""
        moved_ms = None if self.moved is None else round((self.moved[1] - self.injected_at) * 1_000)
        back_ms = None if self._back_at is None else round((self._back_at - self.undone) * 1_000)
        proof = {
            "node": self.node,
            "leads": self.leads,
            "partition": self.place,
            "partitions_led": len(self.led),
            "leader_after": None if self.moved is None else self.moved[0],
            "moved_after_ms": moved_ms,
            "went_on": self._went_on,
            **self.proof(back_ms),
        }
        missing = [] if self.moved else [f"no other broker led {self.place} within {PATIENCE:g} s"]
        missing += [] if self._went_on else [f"no record was processed after {self.place} had moved"]
        summary = (
            f"Node {self.node}, which led {self.place} ({self.leads}) and {len(self.led) - 1} other partitions, "
            f"{self.description()}; node {proof['leader_after']} led it after {moved_ms} ms, and node {self.node} "
        )
        return proof, [*missing, *self.lacks(back_ms)], summary + self.back_text(back_ms)

    def proof(self, back_ms: int | None) -> Mapping[str, Any]:
        """Further proof; the node was back after `back_ms`, if it was."""
        return {"out_of_sync": self.out_of_sync, "in_sync_after_ms": back_ms}

    def lacks(self, back_ms: int | None) -> Iterator[str]:
        """The missing part of that."""
        if not self.out_of_sync:
            yield f"node {self.node} still counted as in sync"
        if back_ms is None:
            yield f"node {self.node} was not in sync again within {PATIENCE:g} s"

    @abstractmethod
    def description(self) -> str:
        """The event at the node, for a sentence that begins with it."""

    @abstractmethod
    def back_text(self, back_ms: int | None) -> str:
        """When the node was back, to end the sentence."""
