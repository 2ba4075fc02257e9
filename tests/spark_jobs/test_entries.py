"""Spark judges the entries of stores as the independent reader does."""

from collections import Counter
from dataclasses import asdict
from pathlib import Path

from onceproof.readers.entries import compare_entries
from spark_jobs.checks import state_trial
from spark_jobs.questions import ask, insert_rows, open_database, state_trials
from tests.specimens.entries import SPECIMENS

COLUMNS = ("trial", "role", "partition", "offset", "timestamp", "key", "raw", "headers")


def test_spark_judges_every_specimen_as_the_reader(tmp_path: Path) -> None:
    records: list[tuple[object, ...]] = []
    stated = []
    expected: Counter[tuple[object, ...]] = Counter()
    for trial, specimen in enumerate(SPECIMENS):
        dumps = specimen.write(tmp_path / str(trial))
        name, of = f"trial {trial}", {"sums": specimen.store}
        stated.append(state_trial(name, trial, "windows", 2, {}, entry_dumps=dumps, entry_stores=of))
        records += [
            (trial, "sums-changelog", 0, r.offset, r.timestamp, r.key, r.entry, r.headers) for r in specimen.changelog
        ]
        records += [
            (trial, "sums-entries", 0, number, timestamp, None, f"{key},{value}", headers)
            for number, dump in enumerate(dumps)
            for key, value, timestamp, headers in dump.byte_entries()
        ]
        topics, stores = {"sums-changelog": specimen.changelog}, {"sums-changelog": specimen.store}
        expected.update((trial, *asdict(c).values()) for c in compare_entries(dumps, topics, stores))
    with open_database() as database:
        state_trials(database, stated)
        insert_rows(database, "records", [dict(zip(COLUMNS, record, strict=True)) for record in records])
        ask(database, "entries", "comparisons")
        assert Counter(database.table("results.comparisons").fetchall()) == expected
