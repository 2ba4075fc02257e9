"""Collecting and checking many trials in Spark, beside a plain single-threaded consumer with a dict.

    .venv/bin/python benchmarks/check_tables.py [TRIALS [RECORDS]]

Both read the same topics of one broker. The records are those of the enumerator, written straight into the topics;
every ninth trial has duplicate IDs. Prints seconds and CPU seconds, in all and per trial.
"""

import resource
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.dataset as ds
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console
from rich.table import Table

from onceproof.lab.cluster import Cluster, EmbeddedCluster
from onceproof.model.cell import Cell, Trial
from onceproof.model.json_file import write_json
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.pipeline.spark import collect_and_check
from onceproof.settings import get_settings
from tests.specimens.files import a_plan, an_outcome

BROKER = Release.parse("3.9.1")
PARTITIONS = 2
ROLES = ("input", "output", "counter-changelog", "ids-changelog")
COMMIT = 5_000  # keys of a transaction; with caching on, the counter reaches its changelog once in each
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
            table = Table("what", "seconds", "CPU s", "s a trial", title=f"{trials} trials of {records:,} records")
            spark = ("Spark: collect and check", *measured(collect_and_check, run))
            assert duplicates_in_spark(run) == red, "Spark did not find the trials with duplicate IDs"
            peer = ("consumer and dict", *measured(lambda: consume(run, cluster, red)))
            for name, seconds, cpu in (spark, peer):
                table.add_row(name, f"{seconds:.1f}", f"{cpu:.1f}", f"{seconds / trials:.2f}")
            Console().print(table)
        finally:
            cluster.stop()


def measured(work: Callable[..., None], *arguments: object) -> tuple[float, float]:
    """Seconds, and CPU seconds of this process and of those it waited for."""

    def cpu() -> float:
        usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(usage.ru_utime + usage.ru_stime for usage in usages)

    begin, begin_cpu = time.monotonic(), cpu()
    work(*arguments)
    return time.monotonic() - begin, cpu() - begin_cpu


def write_run(run: RunFolder, cluster: Cluster, count: int, records: int) -> set[str]:
    """Make the run folder and the topics; returns the keys of the trials that have duplicate IDs."""
    cell = Cell("enumerator", "DEFAULT_CONFIG", Release.parse("3.3.1"), BROKER)
    trials = [Trial(run.run_id, cell, number, seed=number) for number in range(1, count + 1)]
    write_json(run.run_file, {"trials": [trial.to_dict() for trial in trials]})
    write_json(run.cluster_file(str(BROKER)), {"bootstrap_servers": cluster.bootstrap_servers})
    topics = [NewTopic(trial.topic(role), PARTITIONS, 1) for trial in trials for role in ROLES]
    admin = AdminClient(cluster.client())
    for future in admin.create_topics(topics).values():
        future.result(60)
    producer = Producer({**cluster.client(), "transactional.id": "benchmark", "linger.ms": 20})
    producer.init_transactions()
    for trial in trials:
        enumerate_keys(producer, trial, records, bug=trial.number % 9 == 1)
        a_plan(trial, partitions=PARTITIONS).write(run.trial(trial).trial_file)
        an_outcome(trial).write(run.trial(trial).outcome_file)
    return {trial.key for trial in trials if trial.number % 9 == 1}


def enumerate_keys(producer: Producer, trial: Trial, records: int, *, bug: bool) -> None:
    """Write what the enumerator would; with the bug, its counters fall back by 100 in the middle."""
    counters = [0] * PARTITIONS
    sent = 0

    def send(role: str, key: int, value: int, partition: int) -> None:
        # Each record has the timestamp of the input record that caused it; for the counter, the last of the
        # transaction.
        producer.produce(trial.topic(role), INTEGER.pack(value), INTEGER.pack(key), partition, timestamp=MADE + sent)

    for begin in range(0, records, COMMIT):
        producer.begin_transaction()
        for key in range(begin, min(begin + COMMIT, records)):
            sent = key
            partition = (key + 1) % PARTITIONS
            if bug and key == records // 2:
                counters = [max(0, counter - 100) for counter in counters]
            number = counters[partition] * PARTITIONS + partition
            counters[partition] += 1
            send("input", key, key, partition)
            send("output", key, number, partition)
            send("ids-changelog", key, number, partition)
        for partition in range(PARTITIONS):
            send("counter-changelog", 0, counters[partition] - 1, partition)
        producer.poll(0)
        producer.commit_transaction()


def duplicates_in_spark(run: RunFolder) -> set[str]:
    """The trials that have a duplicate ID in Spark's findings."""
    findings = ds.dataset(run.table("findings"), format="parquet", partitioning="hive")
    found = findings.to_table(columns=["trial"], filter=ds.field("anomaly") == "duplicate-id")
    return set(found["trial"].to_pylist())


def consume(run: RunFolder, cluster: Cluster, red: set[str]) -> None:
    """The peer: reads every topic and keeps a dict from ID to key of the output.

    It answers one of the seven questions that `check` answers, and leaves no table.
    """
    settings = {"isolation.level": "read_committed", "enable.partition.eof": True, "fetch.wait.max.ms": 20}
    consumer = Consumer({**cluster.client(), **settings, "group.id": "peer", "enable.auto.commit": False})
    places = {trial.topic(role): (trial.key, role) for trial in run.driven_trials() for role in ROLES}
    # All topics at once: after each assignment a consumer idles for about a second.
    consumer.assign([TopicPartition(topic, partition, 0) for topic in places for partition in range(PARTITIONS)])
    keys: dict[str, dict[int, int]] = {trial: {} for trial, _ in places.values()}
    found, open_partitions = set(), len(places) * PARTITIONS
    while open_partitions:
        for message in consumer.consume(10_000, timeout=0.05):
            if message.error() is None:
                trial, role = places[message.topic()]
                key, value = INTEGER.unpack(message.key())[0], INTEGER.unpack(message.value())[0]
                if role == "output" and keys[trial].setdefault(value, key) != key:
                    found.add(trial)
            elif message.error().code() == KafkaError._PARTITION_EOF:
                open_partitions -= 1
            else:
                raise KafkaException(message.error())
    consumer.close()
    assert found == red, "the peer did not find the trials with duplicate IDs"


if __name__ == "__main__":
    main()
