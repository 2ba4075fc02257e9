"""Collecting and checking ever more records of the enumerator, compared with other ways to read them.

    .venv/bin/python benchmarks/scale.py [--records N ...]

N is the number of records in the topics of one trial, a third of them in each of input, output and changelog; by
default a million and ten million. One key is emitted twice, another one never, and every reader must find both. Ours
answers all questions that `check` answers, and so does a consumer with the lists and dicts of a trial's independent
reader, as far as memory goes. The other peers answer this one only: which keys are emitted more or less often than they
went in. The plain consumer reads the topics, but no changelog; DuckDB and Polars read the Parquet that `collect` has
written. A row has the whole process tree of its reader, but no broker.
Exit 1 if a reader finds anything else.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
from rich.console import Console
from rich.table import Table

from benchmarks.check_tables import (
    BROKER,
    INTEGER,
    PARTITIONS,
    consume_committed,
    enumerate_keys,
    prepare,
    transactional,
)
from benchmarks.check_tables import ROLES as TOPICS
from benchmarks.measuring import Measured, measure
from onceproof.lab.cluster import Cluster, EmbeddedCluster
from onceproof.model.cell import Trial
from onceproof.model.record import Record
from onceproof.model.run_folder import RunFolder
from onceproof.readers.checks import check_enumerator
from onceproof.readers.kafka import decode_record
from onceproof.settings import get_settings
from onceproof.spark import collect_and_check

RECORDS = (10**6, 10**7)
ROLES = 3  # that have a record of each key
OURS, EQUAL, PEER = "collect and check", "consumer, all questions", "consumer and dict"
IN_MEMORY = 10**7  # records that a reader may hold as Python's objects
LINEAR = 1.25  # so many times the growth of the records is still called linear
MEMORY = 8 * 2**30  # bytes: what ours may take at most, whatever the number of records
TIMEOUT = 3 * 3600.0  # seconds
FASTER_FROM = 10**6  # records from which ours should be faster than the plain consumer

SIGNS = {"duplicate-output": 1, "lost-record": -1}

Balance = Mapping[int, int]  # by key: how much more often it is emitted than it goes in, where that is not 0


@dataclass(frozen=True)
class Filled:
    """Topics that hold the records of a trial, and the run folder that knows them."""

    run: RunFolder
    client: Mapping[str, Any]
    trial: Trial
    records: int
    planted: Balance


Readers = Mapping[str, Callable[[Filled], Balance]]


def main() -> None:
    """Measure each size on brokers of its own; print the table and what it means."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--records", type=int, nargs="+", default=RECORDS)
    figures = {}
    for records in sorted(parser.parse_args().records):
        with tempfile.TemporaryDirectory() as folder:
            cluster = EmbeddedCluster.start(get_settings().installation, BROKER, Path(folder, "cluster"))
            try:
                figures[records] = readings(fill(Path(folder, "20260101T000000-0000"), cluster, records), READERS)
            finally:
                cluster.stop()
    Console(width=120).print(table_of(figures))
    for sentence in judge_figures(figures):
        print(sentence)


def fill(folder: Path, cluster: Cluster, records: int) -> Filled:
    """Write the topics, each partition by a process of its own."""
    keys, run = records // ROLES, RunFolder(folder)
    twice, never = keys // 3, 2 * keys // 3
    [trial] = prepare(run, cluster, 1, keys)
    write = partial(fill_partition, cluster.client(), trial, keys, {twice: 2, never: 0})
    with ProcessPoolExecutor(PARTITIONS, get_context("spawn")) as pool:
        list(pool.map(write, range(PARTITIONS)))
    return Filled(run, cluster.client(), trial, records, {twice: 1, never: -1})


def fill_partition(
    client: Mapping[str, Any], trial: Trial, keys: int, outputs: Mapping[int, int], partition: int
) -> None:
    """Write one partition of each topic."""
    enumerate_keys(transactional(client, f"fill-{partition}"), trial, partition, keys, outputs=outputs)


def readings(filled: Filled, readers: Readers) -> dict[str, Measured[Balance]]:
    """What each reader took to find exactly what was planted."""
    taken = {}
    for name, reader in readers.items():
        if name == EQUAL and filled.records > IN_MEMORY:
            continue
        taken[name] = took = measure(reader, filled)
        text = f"{took.seconds:.1f} s, {took.cpu:.1f} s of CPU, {took.memory / 2**30:.2f} GiB"
        print(f"{name}: {text}", file=sys.stderr)
        if took.result != filled.planted:
            sys.exit(f"{name} found {dict(took.result)}, and {dict(filled.planted)} was planted.")
    return taken


def with_spark(filled: Filled) -> Balance:
    """Ours: collect, check, and what the table of findings says about the number of records."""
    collect_and_check(filled.run, timeout=TIMEOUT)
    findings = ds.dataset(filled.run.table("findings"), format="parquet")
    rows = findings.to_table(columns=["key", "anomaly"], filter=ds.field("anomaly").isin(list(SIGNS)))
    return {row["key"]: SIGNS[row["anomaly"]] for row in rows.to_pylist()}


def with_lists(filled: Filled) -> Balance:
    """One pass over all topics, and the checks of the independent reader."""
    roles = {filled.trial.topic(role): role for role in TOPICS}
    records: dict[str, list[Record]] = {role: [] for role in TOPICS}
    for message in consume_committed(filled.client, roles):
        place, sent = (message.partition(), message.offset()), message.timestamp()[1]
        records[roles[message.topic()]].append(decode_record(*place, message.key(), message.value(), timestamp=sent))
    witnesses = check_enumerator(records, {"partitions": PARTITIONS}).witnesses
    signs = {witness.key: SIGNS[witness.anomaly] for witness in witnesses if witness.anomaly in SIGNS}
    return {key: sign for key, sign in signs.items() if key is not None}


def with_a_dict(filled: Filled) -> Balance:
    """One pass over input and output, and a dict that counts by key."""
    balance: dict[int, int] = {}
    signs = {filled.trial.topic("output"): 1, filled.trial.topic("input"): -1}
    for message in consume_committed(filled.client, signs):
        [key] = INTEGER.unpack(message.key())
        balance[key] = balance.get(key, 0) + signs[message.topic()]
    return {key: number for key, number in balance.items() if number}


def with_duckdb(filled: Filled) -> Balance:
    """The same by one query over the Parquet, with DuckDB's own settings."""
    import duckdb  # as in `with_polars`: no other reader has it in its memory

    files = filled.run.table("records") / "role=*" / "*.parquet"
    return dict(
        duckdb.execute(
            "SELECT key, sum(if(role = 'output', 1, -1))::INT AS balance FROM read_parquet(?, hive_partitioning = true)"
            " WHERE role IN ('input', 'output') GROUP BY key HAVING balance != 0",
            [str(files)],
        ).fetchall()
    )


def with_polars(filled: Filled) -> Balance:
    """The same by one query over the Parquet, with Polars' streaming engine."""
    import polars as pl

    records = pl.scan_parquet(filled.run.table("records") / "role=*" / "*.parquet", hive_partitioning=True)
    balance = pl.when(pl.col("role") == "output").then(1).otherwise(-1).sum().alias("balance")
    return dict(
        records.filter(pl.col("role").is_in(["input", "output"]))
        .group_by("key")
        .agg(balance)
        .filter(pl.col("balance") != 0)
        .collect(engine="streaming")
        .iter_rows()
    )


READERS: Readers = {
    OURS: with_spark,
    EQUAL: with_lists,
    PEER: with_a_dict,
    "DuckDB on our Parquet": with_duckdb,
    "Polars on our Parquet": with_polars,
}

Figures = Mapping[int, Mapping[str, Measured[Balance]]]  # by the number of records and the reader


def table_of(figures: Figures) -> Table:
    """A row for each number of records and reader; `grew`: how many times the seconds of the number before."""
    table = Table("records", "what", "seconds", "CPU s", "GiB", "grew", title="One trial of the enumerator")
    before: Mapping[str, Measured[Balance]] = {}
    for records, taken in figures.items():
        for name, took in taken.items():
            grew = f"{took.seconds / before[name].seconds:.1f}" if name in before else ""
            row = (f"{took.seconds:.1f}", f"{took.cpu:.1f}", f"{took.memory / 2**30:.2f}", grew)
            table.add_row(f"{records:,}", name, *row)
        table.add_section()
        before = taken
    return table


def judge_figures(figures: Figures) -> Iterator[str]:
    """Sentences about the figures of ours."""
    for (less, before), (more, after) in pairwise(figures.items()):
        grew, times = after[OURS].seconds / before[OURS].seconds, more / less
        verdict = "linear" if grew <= LINEAR * times else "MORE THAN LINEAR"
        yield f"{less:,} to {more:,} records, {times:g} times as many: {grew:.1f} times as long, {verdict}."
    most = max(taken[OURS].memory for taken in figures.values())
    yield f"Memory: {most / 2**30:.2f} GiB at most, {'within' if most <= MEMORY else 'MORE THAN'} {MEMORY >> 30} GiB."
    for records, taken in figures.items():
        for peer in [peer for peer in (EQUAL, PEER) if peer in taken and records >= FASTER_FROM]:
            share = taken[OURS].seconds / taken[peer].seconds
            verdict = "faster" if share < 1 else "NOT FASTER"
            yield f"{records:,} records: {share:.1f} times as long as {peer}, {verdict}."


if __name__ == "__main__":
    main()
