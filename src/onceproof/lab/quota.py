"""Client quotas, through Java's Admin API: confluent-kafka has none."""

import json
from pathlib import Path

from onceproof.lab.cluster import Cluster
from onceproof.lab.programs import run_program
from onceproof.model.client_properties import java_options
from onceproof.model.release import Release


def set_producer_quota(
    cluster: Cluster, release: Release, client_id: str, bytes_per_second: int | None, log: Path
) -> None:
    """Limit what a producer may send, or lift the limit (None); returns when the brokers confirm it.

    Args:
        cluster: the brokers.
        release: of the Kafka clients that ask for it.
        client_id: of the producer.
        bytes_per_second: `producer_byte_rate`.
        log: takes what the asking process logs.

    Raises:
        HarnessError: the brokers refused, or did not answer.
    """
    config = cluster.java_client(release)
    asked = {"config": config, "client_id": client_id, "producer_byte_rate": bytes_per_second}
    main = ("onceproof.streams.ProducerQuota",)
    what = f"the quota of {client_id} to be set"
    told, options = json.dumps(asked), java_options(config)
    run_program(cluster.installation, release, main, log, what, told, cluster.check_alive, options)
