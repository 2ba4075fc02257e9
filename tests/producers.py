"""Transactional producers of tests."""

from confluent_kafka import Producer

from onceproof.lab.cluster import Cluster


def transactional(cluster: Cluster, transactional_id: str) -> Producer:
    """A producer whose transactions are initialized.

    `send_offsets_to_transaction` ignores its timeout and waits until a connection changes its state
    (librdkafka, issue 5456). By default, that is when the broker closes an idle one, after 10 minutes.
    So the producer closes idle connections itself, after 5 seconds.
    """
    producer = Producer(
        {
            **cluster.client(),
            "transactional.id": transactional_id,
            "transaction.timeout.ms": 600_000,  # many are written side by side, and the machine may be busy
            "connections.max.idle.ms": 5_000,
            "linger.ms": 5,
            "acks": "all",
        }
    )
    producer.init_transactions(30)
    return producer
