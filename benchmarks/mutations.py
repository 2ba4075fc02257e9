"""Anomalies planted into real clean trials on a real broker: how many of them are found, and as what.

    .venv/bin/python benchmarks/mutations.py [MUTATIONS [UNTOUCHED [SEED]]]

Writes clean trials, which are kept in `tests/specimens/real`, again into topics, in real transactions, with an anomaly
of each kind in turn planted at a random place: into a topic, into the RocksDB of a store, or into the timeline. The
independent reader, Spark and the suites must find exactly what was planted, in the topics, in the stores and in the
brokers' log segments, and count the same. Exit 1 if they do not. Runs of the seeds 1, 2, ... each continue in the list
of kinds where the previous one ended.
"""

import itertools
import os
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from onceproof.lab.cluster import EmbeddedCluster
from onceproof.model.release import Release
from onceproof.settings import get_settings
from tests.specimens.catalogue import kinds
from tests.specimens.judging import Judged, judge
from tests.specimens.mutations import Mutation, untouched
from tests.specimens.planting import delete_topics
from tests.specimens.trials import kept_trials

BATCH = 60  # trials that stand on the broker at once


@dataclass
class Tally:
    """What became of the mutations of one kind: in how many trials each of these holds."""

    planted: int = 0
    found: int = 0  # by both readers, and a suite
    missed: int = 0
    extra: int = 0  # something was found that was not planted
    agreed: int = 0  # the readers found and counted the same, and the suites agree

    def add(self, judged: Judged) -> None:
        """Count one trial."""
        amiss = judged.amiss()
        self.planted += 1
        self.missed += (missed := any(what.startswith(("missed", "suites")) for what in amiss))
        self.found += not missed
        self.extra += any(what.startswith("extra") for what in amiss)
        self.agreed += not amiss
        if amiss:
            print(f"{judged.planted.mutation.clean.name}, {judged.planted.mutation.kind}: {amiss}", file=sys.stderr)


def main() -> None:
    """Plant, let all witnesses look, print the table."""
    mutations, healthy, seed = (int(x) for x in (*sys.argv[1:], *("500", "100", "1")[len(sys.argv) - 1 :]))
    trials = kept_trials()
    print(f"{mutations} mutations of {len(trials)} clean trials, {healthy} untouched; seed {seed}")
    tallies: dict[str, Tally] = defaultdict(Tally)
    planted = [
        *itertools.islice(draw_mutations(random.Random(seed)), (seed - 1) * mutations, seed * mutations),
        *itertools.islice(map(untouched, itertools.cycle(trials)), healthy),
    ]
    vendor = get_settings().artifacts / "data-docs-vendor"
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        cluster = EmbeddedCluster.start(get_settings().installation, Release(3, 9, 1), Path(folder, "cluster"))
        spark = session()
        try:
            for number, batch in enumerate(batches(planted), 1):
                judged = judge(spark, cluster, Path(folder, f"20260101T000000-{number:04}"), batch, vendor)
                for trial in judged:
                    tallies[f"{trial.planted.check}: {trial.planted.mutation.kind}"].add(trial)
                delete_topics(cluster, [trial.planted for trial in judged])
                text = f"batch {number}: {sum(tally.planted for tally in tallies.values())} trials"
                print(f"{text}, {time.monotonic() - begin:.0f} s", file=sys.stderr)
        finally:
            spark.stop()
            cluster.stop()
    Console(width=120).print(table_of(tallies))
    sys.exit(any(tally.agreed < tally.planted for tally in tallies.values()))


def draw_mutations(rng: random.Random) -> Iterator[Mutation]:
    """Mutations without end: all kinds in turn."""
    turns = [partial(kind, clean) for clean in kept_trials() for kind in kinds(clean)]
    for mutate in itertools.cycle(turns):
        yield mutate(rng)


def batches(mutations: Sequence[Mutation]) -> Iterator[Sequence[Mutation]]:
    """As many trials at once as a broker can handle."""
    for first in range(0, len(mutations), BATCH):
        yield mutations[first : first + BATCH]


def session() -> SparkSession:
    """Spark with the settings of our applications, and the connector to Kafka."""
    conf = get_settings().project / "spark_jobs" / "spark.conf"
    jars = ",".join(map(str, sorted((get_settings().artifacts / "spark-connector").glob("*.jar"))))
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--master local[*] --properties-file {conf} --jars {jars} pyspark-shell"
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return SparkSession.builder.appName("mutations").getOrCreate()


def table_of(tallies: dict[str, Tally]) -> Table:
    """A row for each kind, and one for all that was planted."""
    table = Table("kind", "trials", "found", "missed", "extra", "all agree")
    untouched_, planted = Tally(), Tally()
    for kind, tally in tallies.items():
        row = untouched_ if kind.endswith(": untouched") else planted
        for name, number in vars(tally).items():
            setattr(row, name, getattr(row, name) + number)
        table.add_row(kind, *map(str, vars(tally).values()))
    table.add_section()
    number = sum(not kind.endswith(": untouched") for kind in tallies)
    table.add_row(f"all mutations, {number} kinds", *map(str, vars(planted).values()))
    table.add_row("all untouched", *map(str, vars(untouched_).values()))
    return table


if __name__ == "__main__":
    main()
