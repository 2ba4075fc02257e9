"""Transactions in the log are judged exactly as the independent reader does, every specimen at once."""

from collections import defaultdict

from onceproof.model.anomaly import Comparison
from onceproof.readers.segments import compare_segments
from spark_jobs import tables
from spark_jobs.checks import state_trial
from spark_jobs.questions import insert_rows, open_database, run_script, state_trials
from tests.specimens.segments import SPECIMENS


def test_both_readers_compare_alike_and_the_table_has_every_part() -> None:
    entries = [{"trial": n, **entry.to_dict()} for n, s in enumerate(SPECIMENS) for entry in s.entries]
    records = [
        {
            "trial": n,
            "role": role,
            "partition": r.partition,
            "offset": r.offset,
            "timestamp": r.timestamp,
            "key": r.key,
            "value": r.value,
        }
        for n, specimen in enumerate(SPECIMENS)
        for role, topic in specimen.topics.items()
        for r in topic
    ]
    trials = [
        state_trial(specimen.name, n, "counting", 2, specimen.facts, committed=("input", "output"))
        for n, specimen in enumerate(SPECIMENS)
    ]
    with open_database() as database:
        state_trials(database, trials)
        insert_rows(database, "entries", entries)
        insert_rows(database, "seen", records)
        insert_rows(database, "records", records)
        run_script(database, "inputs")
        run_script(database, "segments")
        database.execute("insert into results.comparisons by name from segment_comparisons")
        database.execute("insert into results.transactions by name from transactions")
        reported: dict[int, list[Comparison]] = defaultdict(list)
        for trial, *comparison in database.table("results.comparisons").fetchall():
            reported[trial].append(Comparison(*comparison))
        of_first = database.table("results.transactions").filter("trial = 0").to_arrow_table().to_pylist()
    for n, specimen in enumerate(SPECIMENS):
        ours = compare_segments(specimen.entries, specimen.topics, "counting", specimen.facts)
        assert sorted(reported[n], key=str) == sorted(ours, key=str), specimen.name
    assert list(of_first[0]) == tables.columns_of("transactions")
    assert {
        (p["role"], p["records"], p["due"], p["written"], p["missing"]) for p in of_first if p["role"] == "output"
    } == {
        ("output", 2, 3, 2, 1),
        ("output", 2, 2, 2, 0),
    }
