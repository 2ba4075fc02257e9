"""Joined tables and sums of them: the independent reader's judgement on the specimens, and what is generated."""

from itertools import groupby

import pytest

from onceproof.model.record import Record
from onceproof.readers.checks import check_table_join as check
from onceproof.scenarios.base import partition_of_key
from onceproof.scenarios.table_join import DELETED, FIRST_TOTAL, GROUPS, SCENARIO, TOTALS, workload
from tests.conftest import a_trial
from tests.specimens.table_join import FIVE, HEALTHY, found

COMPACTED = {"COMPACTED", "COMPACTED_KEPT", "COMPACTED_AGED"}


def judged(topics, facts):
    return check({role: [Record(*record) for record in records] for role, records in topics.items()}, facts)


def test_a_total_is_as_old_as_the_last_change_of_a_result():
    inputs = [(0, 0, 5, 4, 101), (0, 1, 5, -3, 102), (0, 2, 15, 9, 103)]
    output = [(0, 0, 5, 4 << 32 | 3, 102), (0, 1, FIVE, 7, 102)]
    assert judged({"input": inputs, "output": output}, HEALTHY.facts).witnesses == []
    younger = [*output, (0, 2, FIVE, 7, 103)]
    judgement = judged({"input": inputs, "output": younger}, HEALTHY.facts).witnesses
    assert judgement == [found("wrong-timestamp", FIVE, "output/0@2", "102", "103")]


def test_only_what_is_there_is_deleted():
    made = workload(a_trial("4.3.1", scenario="table-join", keys=50, records=2_000))
    assert made == workload(a_trial("4.3.1", scenario="table-join", keys=50, records=2_000))
    assert len(made.second) == 2_000
    there: set[tuple[int, bool]] = set()
    deleted = 0
    for key, value in (*made.first, *made.second):
        side = value > 0
        if abs(value) == DELETED:
            there.remove((key, side))
            deleted += 1
        there |= {(key, side)} if abs(value) != DELETED else set()
    assert deleted > 100
    assert there == {(key, side) for key, side in there if key < 50}


def test_no_group_changes_again_before_all_others_have_changed():
    made = workload(a_trial("4.3.1", scenario="table-join", keys=2 * GROUPS, records=8 * GROUPS))
    of_group = [key % GROUPS for key, _ in made.second]
    for wave in (of_group[: 4 * GROUPS], of_group[4 * GROUPS :]):
        assert [group for group, _ in groupby(wave)] == list(dict.fromkeys(wave))
        assert sorted(wave) == sorted(4 * list(range(GROUPS)))
    sides = {(key, value > 0) for key, value in made.second[: 4 * GROUPS]}
    assert len(sides) == 4 * GROUPS


def test_a_key_is_where_its_total_is():
    for partitions in (1, 2, 5, 10):
        total = {(key % GROUPS % TOTALS, partition_of_key(key, partitions)) for key in range(1_000)}
        assert len(total) == TOTALS
        assert total == {(t, partition_of_key(FIRST_TOTAL + t, partitions)) for t in range(TOTALS)}


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({}, None),
        ({"fault": "none"}, None),
        ({"partitions": 4}, "a sum must be in one partition, so partitions must divide 10, and 4 does not."),
        ({"stores": "in-memory"}, None),
        ({"stores": "in-memory", "fault": "state-lost"}, "the fault state-lost is of stores on disk"),
        ({"fault": "rolling-bounce"}, "a rolling bounce takes a second release"),
        ({"compacted": "state kept", "fault": "none"}, None),
        ({"compacted": "state lost", "fault": "bounce"}, "where changelogs are compacted no fault can be injected"),
        ({"compacted": "state aged", "fault": "none"}, None),
    ],
)
def test_what_cannot_be_run_is_refused(parameters, reason):
    trial = a_trial("4.3.1", scenario="table-join", **parameters)
    judgement = SCENARIO.refuse_trial(trial)
    assert (judgement or "").startswith(reason or "")
    assert (judgement is None) == (reason is None)


def test_old_state_is_removed_only_by_releases_that_know_how():
    trial = a_trial("4.2.2", "COMPACTED_AGED", scenario="table-join")
    assert SCENARIO.refuse_trial(trial) == (
        "Kafka Streams 4.2.2 does not remove old state (KIP-1259); take 4.3.0 or later."
    )
    removing = {
        name
        for name in SCENARIO.variants
        if "state.cleanup.dir.max.age.ms" in SCENARIO.config(a_trial("4.4.0", name, scenario="table-join"))
    }
    assert removing == {"COMPACTED_AGED"}


def test_transactions_with_compacted_records_are_not_judged():
    lacking = {
        name: set(SCENARIO.system(a_trial("4.4.0", name, scenario="table-join")).not_looked_at)
        for name in SCENARIO.variants
    }
    assert {name for name, promises in lacking.items() if promises} == COMPACTED
    assert lacking["COMPACTED"] == {"atomicity", "isolation", "fencing"}


def test_repartition_topics_are_purged_early_in_one_variant():
    purged = {
        name
        for name in SCENARIO.variants
        if "repartition.purge.interval.ms" in SCENARIO.config(a_trial("4.3.1", name, scenario="table-join"))
    }
    assert purged == {"PURGED"}
