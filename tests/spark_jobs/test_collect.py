"""From topics on a real broker to tables: transactions, broken trials, missing topics, silent clusters."""

import secrets
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from onceproof.model.cell import Trial
from onceproof.model.files import Outcome, TopicPlan, TrialPlan
from onceproof.model.run_folder import RunFolder
from onceproof.results.spark_tables import rows_of, rows_of_trial, witnesses_in
from spark_jobs import collect as job
from spark_jobs import tables
from spark_jobs.check import check
from spark_jobs.parts import complete, excerpt
from tests.specimens.enumerator import ANOMALOUS, HEALTHY, LOOK_ALIKES, Specimen
from tests.specimens.files import ROLES
from tests.specimens.folders import run_folder_of

TOMBSTONES = next(specimen for specimen in LOOK_ALIKES if "a tombstone, then" in specimen.name)
EMPTY = next(specimen for specimen in LOOK_ALIKES if specimen.name == "empty topics")


def integer(number: int | None) -> bytes | None:
    return None if number is None else struct.pack(">i", number)


def records_of(specimen: Specimen) -> dict[str, list[tuple[int, int, int, int | None]]]:
    return {
        "input": [(*record, record[-1]) for record in specimen.input],
        "output": [*specimen.output],
        "counter-changelog": [*specimen.counter],
        "ids-changelog": [*specimen.ids],
    }


MADE = 1_795_000_000_000  # ms: what is said of a record has its timestamp


def produce(bootstrap: str, trial: Trial, specimen: Specimen) -> None:
    """Commit the specimen's records, after a transaction of nonsense that is aborted."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{trial.key}-{trial.run}"})
    producer.init_transactions(30)
    producer.begin_transaction()
    for role in ROLES:
        producer.produce(trial.topic(role), key=integer(77), value=integer(77), partition=0)
    producer.flush()  # or else the abort would find nothing in the log
    producer.abort_transaction()
    producer.begin_transaction()
    for role, records in records_of(specimen).items():
        for partition, _, key, value in sorted(records, key=lambda record: record[:2]):
            place = {"key": integer(key), "partition": partition, "timestamp": MADE}
            producer.produce(trial.topic(role), value=integer(value), **place)
    producer.commit_transaction()


def create_topics(bootstrap: str, trial: Trial, roles: list[str]) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    forever = {"retention.ms": "-1"}  # as those of a trial; the time of these records is long ago
    topics = [NewTopic(trial.topic(role), 2, 1, config=forever) for role in roles]
    for future in admin.create_topics(topics).values():
        future.result(30)


def trials_in(run_folder: RunFolder, table: str) -> set[str]:
    return {row["trial"] for row in rows_of(run_folder.table(table), ["trial"]) or ()}


def found(run_folder: RunFolder, trial: Trial) -> set[tuple[str, tuple[str, ...]]]:
    return {(witness.anomaly, witness.offsets) for witness in witnesses_in(run_folder, trial) or ()}


def read(run_folder: RunFolder, trial: Trial, role: str) -> list[tuple[int, int, int | None]]:
    columns = ["partition", "offset", "key", "value"]
    rows = rows_of_trial(run_folder.table("records"), trial, columns, ds.field("role") == role) or ()
    return [(row["partition"], row["key"], row["value"]) for row in sorted(rows, key=lambda r: r["offset"])]


def contents_of(run_folder: RunFolder) -> dict[str, list[str]]:
    """The rows of all tables."""
    names = ("records", *tables.CHECKED)
    read = {name: ds.dataset(run_folder.table(name), format="parquet", partitioning="hive") for name in names}
    return {name: sorted(map(str, table.to_table().to_pylist())) for name, table in read.items()}


@pytest.mark.spark
@pytest.mark.broker
def test_topics_become_tables_and_a_broken_trial_fails_alone(spark: SparkSession, cluster: Any, tmp_path: Path) -> None:
    bootstrap = cluster.bootstrap_servers
    duplicate = ANOMALOUS[0]
    run_id = f"20261121T084500-{secrets.token_hex(2)}"
    specimens = [duplicate, TOMBSTONES, EMPTY, HEALTHY, HEALTHY, HEALTHY]
    run_folder, _ = run_folder_of(tmp_path, specimens, bootstrap, run_id)
    red, green, empty, broken, lacking, failed = run_folder.list_driven()
    for trial, specimen in ((red, duplicate), (green, TOMBSTONES), (empty, EMPTY), (broken, HEALTHY)):
        create_topics(bootstrap, trial, list(ROLES))
        produce(bootstrap, trial, specimen)
    create_topics(bootstrap, lacking, ["input"])
    create_topics(bootstrap, failed, ["input", "output"])  # Kafka died before it created its changelogs
    outcome = run_folder.trial(failed).outcome_file
    known = {"input_end/0": 1, "input_end/1": 0, "output_read/0": 0}  # what is there now was in an open transaction
    replace(Outcome.read(outcome), failed="thread-died", facts=known).write(outcome)
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(broken.topic("output"), key=integer(1), value=b"seven b", partition=1)
    for key in range(3):
        producer.produce(failed.topic("input"), key=integer(key), value=integer(key), partition=key % 2)
    producer.produce(failed.topic("output"), key=integer(0), value=integer(0), partition=0)
    assert producer.flush(30) == 0

    file = run_folder.trial(green).trial_file
    everything = TopicPlan("output", 4, committed=False)
    replace(TrialPlan.read(file), roles={**ROLES, "output-all": everything}).write(file)
    run_folder.trial(green).contents.mkdir()
    (run_folder.trial(green).contents / "0_1.csv").write_text("ids,1,0,5,50\nids,1,1,6,60\n")
    run_folder.trial(red).dumps_folder.mkdir()
    for name, entries in (("one.ids.1.active.0", "5,50\n"), ("two.ids.1.standby.0", "")):
        (run_folder.trial(red).dumps_folder / f"{name}.csv").write_text(entries)

    errors = job.collect(spark, run_folder)
    check(spark, run_folder)
    before = contents_of(run_folder)

    # In parts it comes to the same, and replaces what was written before.
    def perform(part: RunFolder) -> None:
        job.collect(spark, part)
        check(spark, part)

    made = [excerpt(run_folder, trials) for trials in ([green, broken], [empty])]
    for part in made:
        perform(part)
    complete(run_folder, made, perform)
    assert contents_of(run_folder) == before
    assert not list(run_folder.table("records").parent.glob(".*"))

    assert tables.read_errors(run_folder) == errors
    assert errors == {lacking.key: f"topic {lacking.topic('output')} does not exist"}
    [corrupt] = tables.read_corrupt(run_folder)
    assert (corrupt["trial"], corrupt["role"], corrupt["partition"]) == (broken.key, "output", 1)
    assert corrupt["fault"] == "the value has 7 bytes, a 4-byte integer was expected"
    assert trials_in(run_folder, "records") == {red.key, green.key, broken.key, failed.key}
    assert trials_in(run_folder, "counts") == {red.key, green.key, empty.key, broken.key, failed.key}
    assert trials_in(run_folder, "findings") == {red.key, green.key, broken.key, failed.key}
    assert {anomaly for anomaly, _ in found(run_folder, green)} == {"counter-regression"}  # a counter is not deleted
    assert found(run_folder, broken) == {("corrupt-record", (f"output/1@{corrupt['offset']}",))}
    # One of three records was committed, and nothing had come of it when the independent reader looked.
    assert found(run_folder, failed) == {("lost-record", ("input/0@0",))}
    for partition in (0, 1):
        assert [row for row in read(run_folder, green, "counter-changelog") if row[0] == partition] == [
            (p, key, value) for p, _, key, value in TOMBSTONES.counter if p == partition
        ]
    assert len(read(run_folder, red, "output")) == duplicate.outputs
    assert (0, 77, 77) in read(run_folder, green, "output-all")  # aborted
    assert (0, 77, 77) not in read(run_folder, green, "output")
    assert read(run_folder, green, "ids-contents") == [(1, 5, 50), (1, 6, 60)]
    assert read(run_folder, red, "ids-contents") == []
    compared = ds.dataset(run_folder.table("comparisons"), format="parquet")
    stores = compared.to_table(filter=ds.field("promise") == "stores").to_pylist()
    assert sorted((row["trial"], row["anomaly"] or "", row["key"]) for row in stores) == [
        (red.key, "", None),
        (red.key, "wrong-store", 5),
    ]


@pytest.mark.spark
def test_a_silent_cluster_is_an_error_of_its_trials(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "ANSWER_SECONDS", 1)
    run_folder, specimens = run_folder_of(tmp_path, [HEALTHY])  # nobody listens on port 1
    errors = job.collect(spark, run_folder)
    assert set(errors) == set(specimens)
    assert all(error.startswith("the brokers at 127.0.0.1:1 could not be read: ") for error in errors.values())
    check(spark, run_folder)
    assert trials_in(run_folder, "counts") == set()
