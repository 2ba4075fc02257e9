"""Client quotas, through Java's Admin API: confluent-kafka has none."""

import json
from pathlib import Path

from onceproof.lab.artifacts import streams_class_path
from onceproof.lab.class_data import ClassData
from onceproof.lab.cluster import Cluster
from onceproof.lab.java import java_command
from onceproof.lab.processes import await_condition, open_pipes, spawn
from onceproof.model.errors import HarnessError
from onceproof.model.release import Release
from onceproof.settings import get_settings

TIMEOUT = 60.0


def set_producer_quota(
    cluster: Cluster, release: Release, client_id: str, bytes_per_second: int | None, log: Path
) -> None:
    """Limit what a producer may send, or lift the limit (None); returns when the brokers tell of it.

    Args:
        cluster: the brokers.
        release: of the Kafka clients that ask for it.
        client_id: of the producer.
        bytes_per_second: `producer_byte_rate`.
        log: takes what the asking process logs.

    Raises:
        HarnessError: the brokers refused, or did not answer.
    """
    jars = [get_settings().application_jar, *streams_class_path(release)]
    main = ("onceproof.streams.ProducerQuota",)
    process = spawn(java_command(jars, main, log.parent, ClassData.of(jars), "-Xmx128m"), log=log, piped=True)
    stdin, stdout = open_pipes(process)
    asked = {"config": cluster.java_client(), "client_id": client_id, "producer_byte_rate": bytes_per_second}
    try:
        stdin.write(json.dumps(asked) + "\n")
        stdin.flush()
        await_condition("the quota to be set", lambda: not process.alive(), timeout=TIMEOUT, check=cluster.check_alive)
    finally:
        process.kill()
    said = stdout.readline()
    if process.poll():
        reason = json.loads(said)["message"] if said.startswith("{") else f"see {log}"
        raise HarnessError(f"The quota of {client_id} could not be set: {reason}.")
