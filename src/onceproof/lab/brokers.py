"""The brokers of a trial, as a fault sees and changes them (`faults.base.Brokers`)."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, PartitionMetadata

from onceproof.faults.base import Replicas
from onceproof.lab.cluster import Cluster
from onceproof.lab.programs import run_program
from onceproof.model.client_properties import java_options
from onceproof.model.release import Release

ANSWERED_WITHIN = 2.0  # seconds


class LabBrokers:
    """Brokers that are killed and started again; the timeline records what is done."""

    def __init__(self, cluster: Cluster, release: Release, log: Path, note: Callable[..., None]) -> None:
        """No broker is asked yet.

        Args:
            cluster: the brokers.
            release: of the Java clients that ask for what confluent-kafka cannot.
            log: takes what those log.
            note: records an event.
        """
        self._cluster, self._release, self._log, self._note = cluster, release, log, note
        self._admin: AdminClient | None = None

    @property
    def nodes(self) -> int:
        """How many there are; 0 if they are not ours."""
        return len(self._cluster.nodes)

    def replicas(self) -> Mapping[tuple[str, int], Replicas]:
        """The replicas of each partition of each topic; nothing while no broker answers."""
        try:
            return {
                place: Replicas(None if of.leader < 0 else of.leader, frozenset(of.isrs))
                for place, of in self._describe().items()
            }
        except KafkaException:
            return {}

    def _describe(self) -> dict[tuple[str, int], PartitionMetadata]:
        self._admin = self._admin or AdminClient(self._cluster.client())
        topics = self._admin.list_topics(timeout=ANSWERED_WITHIN).topics
        return {(name, number): of for name, topic in topics.items() for number, of in topic.partitions.items()}

    def log(self, node: int) -> Path:
        """The log file of a broker; nodes are counted from 1."""
        return self._cluster.nodes[node - 1].log

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

    def freeze(self, node: int) -> None:
        """Freeze a broker (SIGSTOP)."""
        self._note("broker", node=node, action="frozen")
        self._cluster.nodes[node - 1].freeze()

    def thaw(self, node: int) -> None:
        """Thaw a broker."""
        self._cluster.nodes[node - 1].thaw()
        self._note("broker", node=node, action="thawed")

    def lead(self, leaders: Mapping[tuple[str, int], int]) -> None:
        """Have these nodes elected as leaders, as the first of their partitions' replicas, which are preferred.

        Through Java's Admin API: confluent-kafka cannot change the order of replicas.

        Raises:
            HarnessError: the brokers refused.
        """
        described = self._describe()
        replicas = [
            {"topic": topic, "partition": partition, "nodes": sorted(described[place].replicas, key=leader.__ne__)}
            for place, leader in leaders.items()
            for topic, partition in [place]
        ]
        config = self._cluster.java_client(self._release)
        asked = json.dumps({"config": config, "replicas": replicas})
        main, what = ("onceproof.streams.Leaders",), f"leaders of {len(leaders)} partitions to be elected"
        cluster, options = self._cluster, java_options(config)
        run_program(cluster.installation, self._release, main, self._log, what, asked, cluster.check_alive, options)
        self._note("leaders", leaders=dict(Counter(leaders.values())))
