"""Spark judges what stores held at the end as the independent reader does."""

from collections import Counter
from dataclasses import asdict
from pathlib import Path

from onceproof.readers.stores import compare_stores
from spark_jobs.checks import state_trial
from spark_jobs.questions import ask, insert_rows, open_database, state_trials
from tests.specimens.stores import CHANGELOG, SPECIMENS

COLUMNS = ("trial", "role", "partition", "offset", "key", "value")


def test_spark_judges_every_specimen_as_the_reader(tmp_path: Path) -> None:
    records, stated = [], []
    expected: Counter[tuple[object, ...]] = Counter()
    for trial, specimen in enumerate(SPECIMENS):
        dumps = specimen.write(tmp_path / str(trial))
        stated.append(state_trial(f"trial {trial}", trial, "dedup", 2, {}, dumps))
        records += [(trial, "seen-changelog", *record[:4]) for record in CHANGELOG]
        records += [
            (trial, "seen-dump", dump.partition, number, key, value)
            for number, dump in enumerate(dumps)
            for key, value in dump.entries().items()
        ]
        topics = {"seen-changelog": CHANGELOG}
        expected.update((trial, *asdict(c).values()) for c in compare_stores(dumps, topics))
    with open_database() as database:
        state_trials(database, stated)
        insert_rows(database, "records", [dict(zip(COLUMNS, record, strict=True)) for record in records])
        ask(database, "stores", "comparisons")
        assert Counter(database.table("results.comparisons").fetchall()) == expected
