"""Punctuators: the independent reader's judgement on the specimens, and what is generated."""

from itertools import accumulate, pairwise

import pytest

from onceproof.readers.checks import check_outbox as check
from onceproof.scenarios.base import find_restored_anew, partition_of_key
from onceproof.scenarios.punctuators import SCENARIO, conclude_released, generate, workload
from tests.conftest import a_trial


def test_a_drive_that_failed_at_once_accuses_no_punctuator():
    assert not check({"input": [], "output": [], "buffer-changelog": []}, {"partitions": 2, "exactly_once": 1}).promises


def a_punctuators_trial(variant="DEFAULT_CONFIG", **parameters):
    return a_trial("4.3.1", variant, scenario="punctuators", **parameters)


@pytest.mark.parametrize("partitions", [1, 3, 4])
def test_last_records_are_due_at_once_and_behind_all_others(partitions):
    trial = a_punctuators_trial(partitions=partitions, first=300, records=300)
    made, parameters = generate(trial), SCENARIO.values(trial)
    others, last = made[:-partitions], made[-partitions:]
    assert {partition_of_key(record.key, partitions) for record in last} == set(range(partitions))
    assert {record.wait for record in last} == {0}
    assert all(one.at > max(record.at + record.wait for record in others) for one in last)
    assert min(one.at for one in last) - max(record.at for record in others) > parameters["interval"]
    assert workload(trial).second == [(record.key, record.wait) for record in made]
    assert not workload(trial).first


def test_few_of_the_first_records_are_due_when_all_are_there():
    trial = a_punctuators_trial()
    parameters, made = SCENARIO.values(trial), generate(trial)
    due = list(accumulate((record.at + record.wait for record in made), max))
    first = due[: parameters["first"]]
    assert sum(at < parameters["first"] for at in first) < parameters["first"] / 50
    assert (
        sum(parameters["first"] <= at < parameters["first"] + parameters["records"] for at in first)
        > 0.98 * parameters["first"]
    )
    assert any(one.at > other.at for one, other in pairwise(made))
    assert [record.key for record in made] == list(range(len(made)))


@pytest.mark.parametrize(
    ("variant", "parameters", "reason"),
    [
        ("DEFAULT_CONFIG", {}, None),
        ("KILLED", {}, None),
        ("KILLED_IN_MEMORY", {"fault": "state-lost"}, "the fault state-lost is of stores on disk"),
        ("ROLLING", {}, "a rolling bounce takes a second release"),
    ],
)
def test_what_cannot_be_run_is_refused(variant, parameters, reason):
    trial = a_punctuators_trial(variant, **parameters)
    refusal = SCENARIO.refuse_trial(trial)
    assert (refusal or "").startswith(reason or "")
    assert (refusal is None) == (reason is None)


def test_the_topology_is_told_what_the_checks_are_told():
    fields = {name: SCENARIO.app(a_punctuators_trial(name)) for name in SCENARIO.variants}
    by_the_wall_clock = {name for name, app in fields.items() if app["clock"] == "wall-clock"}
    assert by_the_wall_clock == {"WALL_CLOCK", "KILLED_WALL_CLOCK"}
    assert {app["punctuate.ms"] for app in fields.values()} == {20}


@pytest.mark.parametrize("variant", SCENARIO.variants)
def test_a_second_instance_gets_a_task_however_long_it_restores(variant):
    trial = a_punctuators_trial(variant)
    parameters = SCENARIO.values(trial)
    at_most = 2 * (
        parameters["first"] + parameters["records"]
    )  # a buffer's changelog has a deletion for each record, too
    assert int(SCENARIO.config(trial)["acceptable.recovery.lag"]) > at_most


def test_a_store_that_opens_as_it_was_left_is_not_restored_again():
    def restore(store, partition, begin, end):
        return {"event": "restore", "store": store, "partition": partition, "from": begin, "end": end}

    as_left = [restore("buffer", 0, 6_074, 6_075), restore("buffer", 1, 0, 0), {"event": "restored", "records": 0}]
    assert find_restored_anew(as_left) == []
    anew = [restore("buffer", 1, 0, 6_041), restore("buffer", 0, 0, 6_075), restore("buffer", 1, 0, 6_041)]
    assert find_restored_anew([*as_left, *anew]) == ["buffer-0", "buffer-1"]


@pytest.mark.parametrize(
    ("anew", "held", "exercised"), [(["buffer-0"], 7, True), (["buffer-0"], 0, False), ([], 7, False)]
)
def test_what_is_restored_must_hold_something_back(anew, held, exercised):
    reported = conclude_released({"instance-1": ["0_0", "0_1"], "instance-2": []}, anew, held)
    assert reported.exercised is exercised
    assert reported.reason.startswith(f"instance-1 (0_0, 0_1) and instance-2 (no task) released {held} records")
