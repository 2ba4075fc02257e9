"""Client quotas, through Java's Admin API: confluent-kafka has none."""

import json
from pathlib import Path
from typing import Any

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
    asked = {"client_id": client_id, "producer_byte_rate": bytes_per_second}
    _run(cluster, release, "ProducerQuota", asked, log, f"the quota of {client_id} to be set")


def clients_with_quota(cluster: Cluster, release: Release, log: Path) -> list[str]:
    """The client ids whose producer has a quota; none if we may not see them, and so may not have set any.

    Args:
        cluster: the brokers.
        release: of the Kafka clients that ask for it.
        log: takes what the asking process logs.

    Raises:
        HarnessError: the brokers did not answer.
    """
    client_ids: list[str] = _run(cluster, release, "ProducerQuotas", {}, log, "the quotas to be reported")["client_ids"]
    return client_ids


def _run(cluster: Cluster, release: Release, program: str, asked: dict[str, Any], log: Path, what: str) -> Any:
    config = cluster.java_client(release)
    line, options = json.dumps({"config": config, **asked}), java_options(config)
    main = (f"onceproof.streams.{program}",)
    return run_program(cluster.installation, release, main, log, what, line, cluster.check_alive, options)
