"""Read every topic of a run's trials into the table `records`.

One batch read per cluster, read_committed, so that aborted records are absent; a second one for topics where they are
wanted. Of trials that are judged again, what their independent reader kept of these topics is read instead. What stores
held, as written by the instances, is added. Records that are anything but integers are listed in `corrupt.json`. A
trial whose topics are missing is left out and gets its sentence in `errors.json`, unless Kafka ended its drive before
the application created them; so do the trials of a cluster that does not answer. Running it again replaces the table.
"""

import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from pyarrow import csv
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as f

from onceproof.model.cell import Trial
from onceproof.model.client_properties import SERVERS, ClientProperties
from onceproof.model.files import Outcome, TrialPlan
from onceproof.model.json_file import read_json
from onceproof.model.run_folder import RunFolder, StoreDump, read_contents
from spark_jobs import tables
from spark_jobs.decoding import decode_messages, faults

ANSWER_SECONDS = 15
# What the independent reader kept of topics (`onceproof.lab.messages`); `timestamp` in ms, `headers` as JSON.
KEPT = "topic string, partition int, offset long, timestamp long, key binary, value binary, headers string"
# What stores held: `tables.RECORDS` without the role, which is the name of the folder.
HELD = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("key", pa.int32()),
        ("value", pa.int64()),
        ("headers", pa.string()),
        ("raw", pa.string()),
        ("trial", pa.string()),
    ]
)


@dataclass(frozen=True)
class Topic:
    """A topic of a trial, how it is read (`TopicPlan`), and the role that it plays there."""

    name: str
    trial: str
    role: str
    value_bytes: int
    committed: bool
    keys: str
    form: str | None  # of the store, if it is a changelog that is compared as bytes


def collect(
    spark: SparkSession, run_folder: RunFolder, external: ClientProperties | None = None, *, kept: bool = False
) -> dict[str, str]:
    """Write `records` and `errors.json`; returns the latter's content.

    Args:
        spark: the session.
        run_folder: the run.
        external: how to reach the brokers whose release is claimed, if the run has such brokers.
        kept: whether to read what was kept of the topics, not brokers.
    """
    tables.drop(run_folder, "records", *tables.CHECKED)
    draft = tables.draft(run_folder, "records")
    empty_table(spark, draft)
    if kept:
        errors, corrupt = copy_kept(spark, run_folder, draft)
    else:
        errors, corrupt = copy_clusters(spark, run_folder, external, draft)
    copy_contents(run_folder, draft)
    copy_dumps(run_folder, draft)
    tables.write_errors(run_folder, errors)
    tables.write_corrupt(run_folder, corrupt)
    if errors:
        whole = spark.read.schema(tables.RECORDS).parquet(str(draft))
        readable = tables.draft(run_folder, "records", ".readable")
        whole.where(~f.col("trial").isin(list(errors))).write.partitionBy("role").parquet(str(readable))
        shutil.rmtree(draft)
        draft = readable
    tables.publish(run_folder, "records", draft)
    return errors


def copy_clusters(
    spark: SparkSession, run_folder: RunFolder, external: ClientProperties | None, draft: Path
) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Append the records of all trials to the draft.

    Returns a sentence for each unreadable trial, and the records that cannot be decoded.
    """
    errors: dict[str, str] = {}
    corrupt: list[dict[str, Any]] = []
    clusters: dict[str, list[Trial]] = {}
    for trial in run_folder.list_driven():
        clusters.setdefault(run_folder.cluster_of(trial), []).append(trial)
    for name, on_broker in clusters.items():
        file = run_folder.cluster_file(name)
        if on_broker[0].cell.broker.is_claimed and external is not None:
            brokers = external
        else:
            brokers = ClientProperties.of({SERVERS: str(read_json(file)["bootstrap_servers"])}, str(file))
        errors |= collect_cluster(spark, run_folder, brokers, on_broker, draft, corrupt)
    return errors, corrupt


def copy_kept(spark: SparkSession, run_folder: RunFolder, draft: Path) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Append to the draft what was kept of the topics of all trials.

    Returns a sentence for each trial that kept nothing, and the records that cannot be decoded.
    """
    errors: dict[str, str] = {}
    corrupt: list[dict[str, Any]] = []
    trials = [(trial, run_folder.trial(trial)) for trial in run_folder.list_driven()]
    for committed in (True, False):
        wanted: list[Topic] = []
        files: list[Path] = []
        for trial, folder in trials:
            topics = topics_of(trial, TrialPlan.read(folder.trial_file))
            file = folder.messages_file(committed=committed)
            if of_trial := [topic for topic in topics if topic.committed == committed]:
                if file.exists():
                    wanted += of_trial
                    files.append(file)
                else:
                    errors[trial.key] = "the messages of its topics were not kept"
        if wanted:
            corrupt += copy_topics(spark, partial(read_kept, spark, files), wanted, draft)
    return errors, corrupt


def read_kept(spark: SparkSession, files: Sequence[Path], _topics: Sequence[str]) -> DataFrame:
    """Messages that were kept, in the form of those that Spark reads from brokers (`decode_messages`)."""
    headers = f.from_json("headers", "array<struct<key string, value string>>")
    return (
        spark.read.schema(KEPT)
        .parquet(*map(str, files))
        .withColumn("timestamp", f.timestamp_millis("timestamp"))
        .withColumn(
            "headers",
            f.transform(headers, lambda of: f.struct(of["key"].alias("key"), f.unhex(of["value"]).alias("value"))),
        )
    )


def collect_cluster(
    spark: SparkSession,
    run_folder: RunFolder,
    brokers: ClientProperties,
    trials: list[Trial],
    draft: Path,
    corrupt: list[dict[str, Any]],
) -> dict[str, str]:
    """Append the records of one cluster's trials to the draft, and those that cannot be decoded to `corrupt`.

    Returns a sentence for each unreadable trial.
    """
    try:
        partitions = partitions_of(brokers)
        topics, errors = present_topics(run_folder, trials, partitions)
        for committed in (True, False):
            wanted = [topic for topic in topics if topic.committed == committed]
            if wanted:
                isolation = "read_committed" if committed else "read_uncommitted"
                corrupt += copy_topics(spark, partial(read_topics, spark, brokers, isolation), wanted, draft)
    except (KafkaException, PySparkException) as error:
        reason = str(error).strip().splitlines()[0]
        message = f"the brokers at {brokers.bootstrap_servers} could not be read: {reason}"
        return {trial.key: message for trial in trials}
    return errors


def partitions_of(brokers: ClientProperties) -> dict[str, int]:
    """The topics of the cluster with the number of their partitions.

    Raises:
        KafkaException: the brokers do not answer in time.
    """
    # librdkafka would write its own lines to stderr for a broker that is gone; the exception says it all.
    metadata = AdminClient({**brokers.librdkafka(), "log_level": 0}).list_topics(timeout=ANSWER_SECONDS)
    return {name: len(topic.partitions) for name, topic in metadata.topics.items()}


def present_topics(
    run_folder: RunFolder, trials: list[Trial], partitions: dict[str, int]
) -> tuple[list[Topic], dict[str, str]]:
    """The topics of the trials that have all of theirs, and a sentence for each trial that does not.

    For a trial whose drive Kafka ended, those of its topics that exist.
    """
    topics: list[Topic] = []
    errors: dict[str, str] = {}
    for trial in trials:
        folder = run_folder.trial(trial)
        plan = TrialPlan.read(folder.trial_file)
        of_trial = topics_of(trial, plan)
        if Outcome.read(folder.outcome_file).failed is not None:
            of_trial = [topic for topic in of_trial if topic.name in partitions]
        for topic in of_trial:
            found = partitions.get(topic.name)
            if found is None:
                errors.setdefault(trial.key, f"topic {topic.name} does not exist")
            elif found != plan.partitions:
                message = f"topic {topic.name} has {found} partitions, {plan.partitions} were expected"
                errors.setdefault(trial.key, message)
        if trial.key not in errors:
            topics += of_trial
    return topics, errors


def topics_of(trial: Trial, plan: TrialPlan) -> list[Topic]:
    """The topics of a trial, by the roles that they play."""
    return [
        Topic(
            trial.topic(planned.topic),
            trial.key,
            role,
            planned.value_bytes,
            planned.committed,
            planned.keys,
            planned.store.form if planned.store else None,
        )
        for role, planned in plan.roles.items()
    ]


def copy_topics(
    spark: SparkSession, read: Callable[[list[str]], DataFrame], topics: list[Topic], draft: Path
) -> list[dict[str, Any]]:
    """Append to the draft the records of topics that are all read in the same way, by a function of their names.

    Returns those that cannot be decoded, in the form of `corrupt.json`. The first read only notes which topics have
    any; these are read again.
    """
    named = spark.createDataFrame(
        [(x.name, x.trial, x.role, x.value_bytes, x.keys, x.form) for x in topics],
        "topic string, trial string, role string, value_bytes int, keys string, form string",
    )
    faulty = Observation("faulty")
    faulty_topics = f.collect_set(f.when(f.col("fault").isNotNull(), f.col("topic")))
    messages = decode_messages(read([topic.name for topic in topics]), named)
    records = messages.observe(faulty, faulty_topics.alias("topics")).where(f.col("fault").isNull())
    (
        tables.in_few_files(records.select(*tables.RECORDS.names))
        .write.mode("append")
        .partitionBy("role")  # each check looks at the records of one role
        .parquet(str(draft))
    )
    if not (again := faulty.get["topics"]):
        return []
    return [row.asDict() for row in faults(decode_messages(read(again), named)).collect()]


def copy_contents(run_folder: RunFolder, draft: Path) -> None:
    """Append what stores held to the draft: role `<store>-contents`, `offset` the number of the entry in its store."""
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for trial in run_folder.list_driven():
        for role, *place in read_contents(run_folder.trial(trial).contents):
            entry = dict(zip(("partition", "offset", "key", "value"), place, strict=True))
            rows[role].append({**entry, "trial": trial.key})
    for role, entries in rows.items():
        append(draft, role, [pa.Table.from_pylist(entries, HELD)])


def copy_dumps(run_folder: RunFolder, draft: Path) -> None:
    """Append what stores held at the end to the draft: role `<store>-dump`, `offset` the number of the trial's dump.

    As bytes it is in the role `<store>-entries`.
    """
    dumps: dict[str, list[tuple[str, int, StoreDump]]] = defaultdict(list)
    entries: dict[str, list[tuple[str, int, StoreDump]]] = defaultdict(list)
    for trial in run_folder.list_driven():
        folder = run_folder.trial(trial)
        for all_, of_trial in ((dumps, folder.dumps()), (entries, folder.entry_dumps())):
            for number, dump in enumerate(of_trial):
                all_[dump.store].append((trial.key, number, dump))
    for store, of_store in dumps.items():
        append(draft, f"{store}-dump", (read_dump(*dump) for dump in of_store))
    for store, of_store in entries.items():
        append(draft, f"{store}-entries", (read_entries(*dump) for dump in of_store))


def read_entries(trial: str, number: int, dump: StoreDump) -> pa.Table:
    """The entries of a dump as bytes, in the form of records."""
    same = {"partition": dump.partition, "offset": number, "key": None, "value": None, "trial": trial}
    rows = [
        {
            **same,
            "raw": f"{key},{value}",
            "timestamp": None if timestamp is None else timestamp * 1_000,
            "headers": headers,
        }
        for key, value, timestamp, headers in dump.byte_entries()
    ]
    return pa.Table.from_pylist(rows, HELD)


def read_dump(trial: str, number: int, dump: StoreDump) -> pa.Table:
    """The entries of a dump, in the form of records."""
    if not dump.file.stat().st_size:
        return HELD.empty_table()
    types = {"key": pa.int32(), "value": pa.int64()}
    entries = csv.read_csv(
        dump.file, csv.ReadOptions(column_names=list(types)), convert_options=csv.ConvertOptions(column_types=types)
    )
    same = {
        "partition": dump.partition,
        "offset": number,
        "timestamp": None,
        "headers": None,
        "raw": None,
        "trial": trial,
    }
    columns = {name: pa.repeat(pa.scalar(same[name], HELD.field(name).type), len(entries)) for name in same}
    return pa.table({**columns, "key": entries["key"], "value": entries["value"]}).select(HELD.names)


def append(draft: Path, role: str, parts: Iterable[pa.Table]) -> None:
    """Append rows to the draft without Spark, which is slow with many small files."""
    folder = draft / f"role={role}"
    folder.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(folder / "held.parquet", HELD) as file:
        for rows in filter(len, parts):  # Spark warns about each empty one
            file.write_table(rows)


def read_topics(spark: SparkSession, brokers: ClientProperties, isolation: str, topics: list[str]) -> DataFrame:
    """The records that were committed to the topics so far (with read_uncommitted: what has been written)."""
    return (
        spark.read.format("kafka")
        .options(**brokers.spark())
        .option("kafka.isolation.level", isolation)
        .option("subscribe", ",".join(topics))
        .option("includeHeaders", "true")
        .option("startingOffsets", "earliest")
        .option("endingOffsets", "latest")
        .option("groupIdPrefix", f"{topics[0]}-collect")  # what may be read under the prefix of the run's names
        # Whole partitions of a trial in one answer: Kafka's defaults (500 records, 1 MiB) are for long-lived readers.
        .option("kafka.max.poll.records", 50_000)
        .option("kafka.max.partition.fetch.bytes", 8 * 2**20)
        # How long Spark waits for an offset that never comes, for instance after the last commit; default 120 s.
        .option("kafkaConsumer.pollTimeoutMs", 5_000)
        # A consumer asks for more after the last record; the broker holds that request back for 500 ms by default,
        # and the consumer's close waits for it: half a second for each of hundreds of partitions.
        .option("kafka.fetch.max.wait.ms", 20)
        .load()
    )


def empty_table(spark: SparkSession, folder: Path) -> None:
    """Write a table without rows, so that a run without any readable trial has one."""
    nothing = cast("list[tuple[()]]", [])
    spark.createDataFrame(nothing, tables.RECORDS).write.partitionBy("role").parquet(str(folder))
