"""Of a trial whose drive Kafka ended, records count as far as the facts of the trial say."""

from spark_jobs.checks import state_trial
from spark_jobs.questions import insert_rows, open_database, run_script, state_trials

PLACE = ("trial", "role", "partition", "offset")


def test_records_count_as_far_as_facts_say() -> None:
    facts = {"output_read/1": 2, "input_end/0": 1, "output_end": 0, "ended": 0}
    places = [
        (trial, role, partition, offset)
        for trial in (0, 1)
        for role in ("input", "output", "ids-dump")
        for partition in (0, 1)
        for offset in range(3)
    ]
    with open_database() as database:
        stated = [
            state_trial("stopped", 0, "counting", 2, facts, committed=("input", "output")),
            state_trial("whole", 1, "counting", 2, {"ended": 1}, committed=("output",)),
        ]
        state_trials(database, stated)
        insert_rows(database, "records", [dict(zip(PLACE, place, strict=True)) for place in places])
        undecoded = [{"name": "whole", "role": role, "partition": 0, "offset": 9} for role in ("input", "output")]
        insert_rows(database, "undecoded", undecoded)
        run_script(database, "ends")
        columns = 'trial, role, partition, "offset"'
        records, seen = (set(database.table(table).project(columns).fetchall()) for table in ("records", "seen"))
    after_looking = {(0, "output", 1, 2)}
    never_processed = {(0, "input", 0, 1), (0, "input", 0, 2)}
    assert records == set(places) - after_looking - never_processed
    read = {place for place in places if place[1] == "output" or place[:2] == (0, "input")}
    assert seen == read - after_looking | {(1, "output", 0, 9)}
