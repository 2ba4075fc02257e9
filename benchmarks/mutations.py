"""Anomalies planted into real clean trials: how many of them are found, and as what.

    .venv/bin/python benchmarks/mutations.py [RUN_FOLDER [MUTATIONS [UNTOUCHED [SEED]]]]

Takes the clean trials of a run (the newest one with tables, if none is named), plants anomalies of each kind in turn at
random places, and lets the Spark application and the independent reader judge all of them: both must find exactly what
was planted, and the same number of records, keys and IDs. Exit 1 if they do not.
"""

import itertools
import os
import random
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from onceproof.model.anomaly import Findings
from onceproof.model.errors import UsageError
from onceproof.model.run_folder import RunFolder
from onceproof.readers.checks import CHECKS
from onceproof.settings import get_settings
from spark_jobs.check import check
from tests.specimens.mutations import MUTATIONS, Clean, Mutation, untouched
from tests.specimens.trials import clean_trials, findings_of, run_of

BATCH = 50  # trials that Spark checks at once


@dataclass
class Tally:
    """What became of the mutations of one kind. A witness that was found and not planted is `extra`."""

    planted: int = 0
    found: int = 0
    missed: int = 0
    misnamed: int = 0
    extra: int = 0
    agreed: int = 0  # trials in which both readers found and counted the same


def main() -> None:
    """Plant, check, print the table."""
    arguments = sys.argv[1:]
    run = RunFolder(Path(arguments[0]).absolute()) if arguments else newest()
    mutations, healthy, seed = (int(x) for x in [*arguments[1:], "500", "100", "1"][:3])
    trials = list(clean_trials(run))
    print(f"{mutations} mutations of {len(trials)} clean trials of {run.run_id}, {healthy} untouched; seed {seed}")
    tallies: dict[str, Tally] = defaultdict(Tally)
    planted = itertools.islice(mutated(trials, random.Random(seed)), mutations)
    left_alone = itertools.islice(map(untouched, itertools.cycle(trials)), healthy)
    spark = session()
    try:
        for number, batch in enumerate(batches([*planted, *left_alone]), 1):
            judge(spark, batch, tallies)
            print(f"batch {number}: {sum(tally.planted for tally in tallies.values())} trials", file=sys.stderr)
    finally:
        spark.stop()
    Console(width=120).print(table_of(tallies))
    sys.exit(any(t.found < t.planted or t.extra or t.agreed < t.planted for t in tallies.values()))


def newest() -> RunFolder:
    """The newest run with tables.

    Raises:
        UsageError: there is none.
    """
    runs = get_settings().runs
    counted = sorted(runs.glob("*/tables/counts/_SUCCESS"))
    if not counted:
        raise UsageError(f"No run in {runs} has tables: do `make run`, or name the folder of a run.")
    return RunFolder(counted[-1].parents[2])


def mutated(trials: Sequence[Clean], rng: random.Random) -> Iterator[Mutation]:
    """Mutations without end: all kinds in turn, each time in another trial of the kind's check."""
    turns = {check: itertools.cycle([t for t in trials if t.check == check]) for check in MUTATIONS}
    offered = {trial.check for trial in trials}
    while True:
        for check_name in [name for name in MUTATIONS if name in offered]:
            for mutate in MUTATIONS[check_name]:
                yield mutate(next(turns[check_name]), rng)


def batches(mutations: Sequence[Mutation]) -> Iterator[Sequence[Mutation]]:
    """As many trials at once as memory is good for."""
    for first in range(0, len(mutations), BATCH):
        yield mutations[first : first + BATCH]


def session() -> SparkSession:
    """Spark with the settings of our applications."""
    conf = get_settings().project / "spark_jobs" / "spark.conf"
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--master local[*] --properties-file {conf} pyspark-shell"
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return SparkSession.builder.appName("mutations").getOrCreate()


def judge(spark: SparkSession, mutations: Sequence[Mutation], tallies: dict[str, Tally]) -> None:
    """Let both readers judge the trials, and count what they found."""
    with tempfile.TemporaryDirectory() as folder:
        run, trials = run_of(Path(folder, "20260101T000000-0000"), mutations)
        check(spark, run)
        spoken = findings_of(run)
    for trial, mutation in trials.items():
        told = spoken[trial]
        read = CHECKS[mutation.clean.check](mutation.topics, mutation.clean.facts)
        count(tallies[f"{mutation.clean.check}: {mutation.kind}"], mutation, told, agrees=same(told, read))


def count(tally: Tally, mutation: Mutation, told: Findings, *, agrees: bool) -> None:
    """Add one trial to the tally of its kind."""
    planted, found = Counter(mutation.witnesses), Counter(told.witnesses)
    missing, surplus = planted - found, found - planted
    tally.planted += 1
    tally.found += not missing
    tally.missed += bool(missing and not surplus)
    tally.misnamed += bool(missing and surplus)
    tally.extra += 0 if missing else surplus.total()
    tally.agreed += agrees
    if missing or surplus or not agrees:
        print(
            f"{mutation.clean.name}, {mutation.kind}: not found {[*missing][:3]}, found {[*surplus][:3]}",
            file=sys.stderr,
        )


def same(told: Findings, read: Findings) -> bool:
    """Whether both readers found the same."""
    numbers = [(f.records, f.outputs, f.keys, f.ids, Counter(f.witnesses)) for f in (told, read)]
    return numbers[0] == numbers[1]


def table_of(tallies: dict[str, Tally]) -> Table:
    """A row for each kind, and one for all that was planted."""
    table = Table("kind", "trials", "found", "missed", "wrong name or witness", "extra findings", "readers agree")
    untouched_, planted = Tally(), Tally()
    for kind, tally in tallies.items():
        row = untouched_ if kind.endswith(": untouched") else planted
        for name, number in vars(tally).items():
            setattr(row, name, getattr(row, name) + number)
        table.add_row(kind, *map(str, vars(tally).values()))
    table.add_section()
    for kind, tally in (("all mutations", planted), ("all untouched", untouched_)):
        table.add_row(kind, *map(str, vars(tally).values()))
    return table


if __name__ == "__main__":
    main()
