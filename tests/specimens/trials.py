"""Real clean trials: small ones that are kept beside this file, and those of a run; and runs made of them.

Those below `real/` were run against real brokers on Kafka Streams 4.3.1, with small bulks, and are kept as the
independent reader read them: one Parquet file a trial (role STRING, partition INT, offset LONG, key INT, value LONG),
its check, facts and what was produced as metadata.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from onceproof.model.anomaly import Findings, Witness
from onceproof.model.cell import Cell, Trial
from onceproof.model.files import Outcome, Produced, Reading, TrialPlan
from onceproof.model.json_file import write_json
from onceproof.model.promise import Least, least_of
from onceproof.model.record import Record
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.scenarios import enumerator, multirunner
from onceproof.scenarios.base import System
from spark_jobs import tables
from tests.specimens.files import a_plan, an_outcome
from tests.specimens.mutations import Clean, Mutation


def without_stores(system: System) -> list[str]:
    """The promises of a topology that are judged without dumps of its stores."""
    return [promise for promise in system.promises if promise != "stores"]


REAL = Path(__file__).parent / "real"
# Of each check, the promises of suites that look at records, and the rows that they must see at least: of what timelines
# show there are none, and no stores were dumped.
PROMISES: dict[str, dict[str, Least]] = {
    "enumerator": least_of(without_stores(enumerator.SYSTEM)),
    "counting": {**least_of(without_stores(multirunner.SYSTEM)), "assertions": 0},
    "dedup": {**least_of(("deliveries", "output-order", "changelog")), "wipe": 0, "state": 1},
    "deleter": least_of(("answers", "published", "output-order", "changelog")),
    "values": {"throttle": 0, **least_of(("transactions", "deliveries", "changelog"))},
}
COLUMNS = ["partition", "offset", "key", "value"]
REST = ["timestamp", "headers"]  # not of the trials that are kept
# As `spark_jobs.tables.RECORDS`, without the role, which is a folder's name.
SCHEMA = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("key", pa.int32()),
        ("value", pa.int64()),
        ("headers", pa.string()),
        ("trial", pa.string()),
    ]
)


def kept_trials() -> list[Clean]:
    """The trials below `real/`."""
    kept = []
    for file in sorted(REAL.glob("*.parquet")):
        read = pq.read_table(file)
        stated = json.loads(read.schema.metadata[b"trial"])
        topics = topics_of(read)
        kept.append(Clean(file.stem, stated["check"], stated["facts"], {r: topics[r] for r in stated["roles"]}))
    return kept


def clean_trials(run: RunFolder) -> Iterator[Clean]:
    """The trials of a run in which the independent reader found nothing."""
    records = ds.dataset(run.table("records"), format="parquet", partitioning="hive")
    unreadable = tables.read_errors(run)
    for trial in run.driven_trials():
        if trial.key in unreadable or Reading.read(run.trial(trial).reader_file).anomalies:
            continue
        topics = topics_of(records.to_table(columns=[*COLUMNS, *REST, "role"], filter=ds.field("trial") == trial.key))
        plan = TrialPlan.read(run.trial(trial).trial_file)
        yield Clean(trial.cell.key, plan.check, Outcome.read(run.trial(trial).outcome_file).facts, topics)


def topics_of(read: pa.Table) -> dict[str, list[Record]]:
    """The records of a table by role, in the order of their places."""
    topics: dict[str, list[Record]] = defaultdict(list)
    if "timestamp" in read.column_names:
        stamps = pc.divide(read["timestamp"].cast(pa.int64()), 1_000)
        read = read.set_column(read.column_names.index("timestamp"), "timestamp", stamps)
    columns = [read[name].to_pylist() for name in ("role", *COLUMNS, *REST) if name in read.column_names]
    for role, *record in zip(*columns, strict=True):
        topics[role].append(Record(*record))
    for records in topics.values():
        records.sort(key=lambda record: record[:2])
    return dict(topics)


def run_of(folder: Path, mutations: Sequence[Mutation]) -> tuple[RunFolder, dict[str, Mutation]]:
    """A run folder with the table `records` of mutated trials; which mutation each trial key stands for."""
    run = RunFolder(folder)
    trials = {}
    written: dict[str, list[pa.Table]] = defaultdict(list)
    for number, mutation in enumerate(mutations, 1):
        clean = mutation.clean
        cell = Cell("mutations", clean.check, Release(4, 3, 1), Release(3, 9, 1))
        trial = Trial(run.run_id, cell, number, seed=number)
        trials[trial] = mutation
        stated = {"check": clean.check, "promises": PROMISES[clean.check], "partitions": clean.facts["partitions"]}
        a_plan(trial, **stated).write(run.trial(trial).trial_file)
        produced = Produced(len(clean.topics["input"]), len(clean.by_key["input"]))
        an_outcome(trial, facts=clean.facts, produced=produced).write(run.trial(trial).outcome_file)
        for role, records in mutation.topics.items():
            written[role].append(table_of(records, trial))
    for role, parts in written.items():
        place = run.table("records") / f"role={role}"
        place.mkdir(parents=True)
        pq.write_table(pa.concat_tables(parts), place / "part-0.parquet")
    write_json(run.run_file, {"trials": [trial.to_dict() for trial in trials]})
    tables.write_errors(run, {})
    return run, {trial.key: mutation for trial, mutation in trials.items()}


def table_of(records: Sequence[Record], trial: Trial) -> pa.Table:
    """Records of one role of a trial, as `collect` would have read them."""
    partitions, offsets, keys, values, stamps, headers = zip(*records, strict=True) if records else [()] * 6
    times = [stamp * 1_000 for stamp in stamps]
    columns: list[Sequence[Any]] = [partitions, offsets, times, keys, values, headers, [trial.key] * len(records)]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def findings_of(run: RunFolder) -> dict[str, Findings]:
    """What Spark counted and found, by trial key."""
    counts = {row.pop("trial"): row for row in ds.dataset(run.table("counts")).to_table().to_pylist()}
    found: dict[str, list[Witness]] = defaultdict(list)
    for row in ds.dataset(run.table("findings")).to_table().to_pylist():
        lists = {name: tuple(row[name]) for name in ("ids", "offsets")}
        found[row.pop("trial")].append(Witness(**{**row, **lists}))
    return {trial: Findings(**counted, witnesses=found[trial]) for trial, counted in counts.items()}
