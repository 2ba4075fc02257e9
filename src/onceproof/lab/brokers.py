"""The brokers of a trial, as a fault sees and kills them (`faults.base.Brokers`)."""

from collections.abc import Callable, Mapping

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from onceproof.faults.base import Replicas
from onceproof.lab.cluster import Cluster

ANSWERED_WITHIN = 2.0  # seconds


class Brokers:
    """Brokers that are killed and started again; what is done is told in the timeline."""

    def __init__(self, cluster: Cluster, note: Callable[..., None]) -> None:
        """Nobody is asked yet; `note` records an event."""
        self._cluster, self._note = cluster, note
        self._admin: AdminClient | None = None

    @property
    def nodes(self) -> int:
        """How many there are; 0 if they are not ours."""
        return len(self._cluster.nodes)

    def replicas(self) -> Mapping[tuple[str, int], Replicas]:
        """Who serves each partition of each topic; nothing while no broker answers."""
        self._admin = self._admin or AdminClient(self._cluster.client())
        try:
            topics = self._admin.list_topics(timeout=ANSWERED_WITHIN).topics
        except KafkaException:
            return {}
        return {
            (name, number): Replicas(None if of.leader < 0 else of.leader, frozenset(of.isrs))
            for name, topic in topics.items()
            for number, of in topic.partitions.items()
        }

    def kill(self, node: int, *, orderly: bool) -> None:
        """End a broker: by SIGKILL, or by a controlled shutdown (SIGTERM)."""
        self._note("broker", node=node, action="shut down" if orderly else "killed")
        self._cluster.kill_node(node, orderly=orderly)

    def start(self, node: int) -> None:
        """Start a broker that was killed, and wait until it listens.

        Raises:
            HarnessError: it did not start.
        """
        self._cluster.start_node(node)
        self._note("broker", node=node, action="started")
