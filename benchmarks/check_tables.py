"""Collecting and checking many trials in Spark, compared with a plain single-threaded consumer with a dict.

    .venv/bin/python benchmarks/check_tables.py [TRIALS [RECORDS]]

Both read the same topics of one broker. The records are those of the enumerator, written straight into the topics;
every ninth trial has duplicate IDs. Prints seconds and CPU seconds, in all and per trial, and the peak of memory.
"""

import struct
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console
from rich.table import Table

from benchmarks.measuring import measure
from onceproof.lab.cluster import Cluster, EmbeddedCluster
from onceproof.model import matrices
from onceproof.model.cell import Cell, Trial
from onceproof.model.files import Produced
from onceproof.model.json_file import write_json
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.settings import get_settings
from onceproof.spark import collect_and_check
from tests.specimens.files import a_plan, an_outcome

BROKER = Release.parse(matrices.BROKER)
PARTITIONS = 2
ROLES = ("input", "output", "counter-changelog", "ids-changelog")
COMMIT = 2_500  # keys of a transaction; with caching on, the counter reaches its changelog once in each
INTEGER = struct.Struct(">i")
MADE = 1_795_000_000_000  # ms: when the first record was made


def main() -> None:
    """Write the topics, check them in both ways, print the figures."""
    trials, records = (int(x) for x in (sys.argv[1:] + ["50", "63000"][len(sys.argv) - 1 :]))
    with tempfile.TemporaryDirectory() as folder:
        cluster = EmbeddedCluster.start(get_settings().installation, BROKER, Path(folder, "cluster"))
        try:
            run = RunFolder(Path(folder, "20260101T000000-0000"))
            red = write_run(run, cluster, trials, records)
            title = f"{trials} trials of {records:,} records"
            table = Table("what", "seconds", "CPU s", "s a trial", "GiB", title=title)
            spark = measure(collect_and_check, run)
            assert duplicates_in_spark(run) == red, "Spark did not find the trials with duplicate IDs"
            peer = measure(consume, run, cluster.client())
            assert peer.result == red, "the peer did not find the trials with duplicate IDs"
            for name, took in (("Spark: collect and check", spark), ("consumer and dict", peer)):
                figures = (f"{took.seconds:.1f}", f"{took.cpu:.1f}", f"{took.seconds / trials:.2f}")
                table.add_row(name, *figures, f"{took.memory / 2**30:.1f}")
            Console().print(table)
        finally:
            cluster.stop()


def write_run(run: RunFolder, cluster: Cluster, count: int, records: int) -> set[str]:
    """Make the run folder and the topics; returns the keys of the trials that have duplicate IDs."""
    trials = prepare(run, cluster, count, records)
    producer = transactional(cluster.client())
    red = {trial.key for trial in trials if trial.number % 9 == 1}
    for trial in trials:
        for partition in range(PARTITIONS):
            enumerate_keys(producer, trial, partition, records, bug=trial.key in red)
    return red


def prepare(run: RunFolder, cluster: Cluster, count: int, records: int) -> list[Trial]:
    """Make the folder of a run of so many trials of so many records each, and their topics, which are empty."""
    cell = Cell("enumerator", "DEFAULT_CONFIG", Release.parse("3.3.1"), BROKER)
    trials = [Trial(run.run_id, cell, number, seed=number) for number in range(1, count + 1)]
    write_json(run.run_file, {"trials": [trial.to_dict() for trial in trials]})
    write_json(run.cluster_file(str(BROKER)), {"bootstrap_servers": cluster.bootstrap_servers})
    topics = [trial.topic(role) for trial in trials for role in ROLES]
    wanted = [NewTopic(topic, PARTITIONS, 1, config={"retention.ms": "-1"}) for topic in topics]
    admin = AdminClient(cluster.client())  # must live until it has answered
    for future in admin.create_topics(wanted).values():
        future.result(60)
    for trial in trials:
        a_plan(trial, partitions=PARTITIONS).write(run.trial(trial).trial_file)
        an_outcome(trial, produced=Produced(records, records)).write(run.trial(trial).outcome_file)
    return trials


def transactional(client: Mapping[str, Any], name: str = "benchmark") -> Producer:
    """A producer that may begin transactions."""
    producer = Producer({**client, "transactional.id": name, "linger.ms": 20})
    producer.init_transactions()
    return producer


def enumerate_keys(
    producer: Producer,
    trial: Trial,
    partition: int,
    records: int,
    *,
    bug: bool = False,
    outputs: Mapping[int, int] | None = None,
) -> None:
    """Write what the enumerator would in one of the partitions, over which so many keys are spread.

    With the bug, its counter falls back by 100 in the middle. `outputs`: of some keys, how often they are emitted.
    """
    topics = {role: trial.topic(role) for role in ROLES}
    outputs = outputs or {}
    own = range((partition - 1) % PARTITIONS, records, PARTITIONS)
    counter = 0

    def send(role: str, key: int, value: int, cause: int) -> None:
        # Each record has the timestamp of the input record that caused it; for the counter, the last of the
        # transaction.
        producer.produce(topics[role], INTEGER.pack(value), INTEGER.pack(key), partition, timestamp=MADE + cause)

    for begin in range(0, len(own), COMMIT):
        producer.begin_transaction()
        for nth, key in enumerate(own[begin : begin + COMMIT], begin):
            if bug and nth == len(own) // 2:
                counter = max(0, counter - 100)
            number = counter * PARTITIONS + partition
            counter += 1
            send("input", key, key, key)
            for _ in range(outputs.get(key, 1)):
                send("output", key, number, key)
            send("ids-changelog", key, number, key)
        send("counter-changelog", 0, counter - 1, key)
        producer.poll(0)
        producer.commit_transaction()


def duplicates_in_spark(run: RunFolder) -> set[str]:
    """The trials that have a duplicate ID in Spark's findings."""
    findings = ds.dataset(run.table("findings"), format="parquet", partitioning="hive")
    found = findings.to_table(columns=["trial"], filter=ds.field("anomaly") == "duplicate-id")
    return set(found["trial"].to_pylist())


def consume(run: RunFolder, client: Mapping[str, Any]) -> set[str]:
    """The peer: reads every topic and keeps a dict from ID to key of the output; returns the trials that repeat an ID.

    It answers one of the seven questions that `check` answers, and leaves no table.
    """
    places = {trial.topic(role): (trial.key, role) for trial in run.list_driven() for role in ROLES}
    keys: dict[str, dict[int, int]] = {trial: {} for trial, _ in places.values()}
    found = set()
    for message in consume_committed(client, list(places)):
        trial, role = places[message.topic()]
        key, value = INTEGER.unpack(message.key())[0], INTEGER.unpack(message.value())[0]
        if role == "output" and keys[trial].setdefault(value, key) != key:
            found.add(trial)
    return found


def consume_committed(client: Mapping[str, Any], topics: Collection[str]) -> Iterator[Message]:
    """All committed records of these topics, by a plain consumer."""
    settings = {"isolation.level": "read_committed", "enable.partition.eof": True, "fetch.wait.max.ms": 20}
    consumer = Consumer({**client, **settings, "group.id": "peer", "enable.auto.commit": False})
    # All topics at once: after each assignment a consumer idles for about a second.
    consumer.assign([TopicPartition(topic, partition, 0) for topic in topics for partition in range(PARTITIONS)])
    open_partitions = len(topics) * PARTITIONS
    while open_partitions:
        for message in consumer.consume(10_000, timeout=0.05):
            if message.error() is None:
                yield message
            elif message.error().code() == KafkaError._PARTITION_EOF:
                open_partitions -= 1
            else:
                raise KafkaException(message.error())
    consumer.close()


if __name__ == "__main__":
    main()
