"""KAFKA-17299, KIP-1034: the independent reader's judgement on the specimens, and what is generated."""

from typing import Any

import pytest

from onceproof.model.release import Release
from onceproof.scenarios.base import partition_of_key
from onceproof.scenarios.dead_letters import SCENARIO, config, murmur2, workload
from tests.conftest import a_trial


def test_runs_of_good_and_poison_records_keep_their_partitions():
    parameters: dict[str, Any] = {"committed": 50, "records": 30, "good": 5, "poison": 10}
    made = workload(a_trial("4.4.0", scenario="dead-letters", **parameters))
    assert len(made.first) == 50
    assert all(value >= 0 for _, value in made.first)
    assert [value < 0 for _, value in made.second[:30]] == ([False] * 5 + [True] * 10) * 2
    assert all(value >= 0 for _, value in made.second[30:])
    keys = [key for key, _ in [*made.first, *made.second]]
    assert keys == sorted(set(keys))
    assert made == workload(a_trial("4.4.0", scenario="dead-letters", **parameters))


@pytest.mark.parametrize(
    ("data", "found"),  # of Kafka's own test of `Utils.murmur2`
    [(b"21", -973932308), (b"foobar", -790332482), (b"a-little-bit-long-string", -985981536), (b"abc", 479470107)],
)
def test_partitions_are_chosen_as_the_producer_does(data, found):
    assert murmur2(data) == found & 0x7FFFFFFF


@pytest.mark.parametrize(("release", "queue"), [("4.1.2", False), ("4.2.0", True), ("4.4.0", True)])
def test_there_is_a_queue_from_4_2_0_on(release, queue):
    trial = a_trial(release, scenario="dead-letters")
    system = SCENARIO.system(trial)
    assert ("dead-letters" in system.roles) == ("dead-letters" in system.promises) == queue
    assert (config(trial).get("errors.dead.letter.queue.topic.name") == trial.topic("dead-letters")) == queue


def test_a_group_that_rolls_to_an_old_release_has_no_queue():
    trial = a_trial("4.4.0", "ROLLING", 1, "dead-letters", "4.1.2")
    assert "dead-letters" not in SCENARIO.system(trial).roles


def test_some_records_must_be_skipped():
    refusal = SCENARIO.refuse_trial(a_trial("4.4.0", scenario="dead-letters", records=25))
    assert refusal == "none of 25 records would be skipped; raise records above good=25."


def test_only_good_records_follow_where_commits_are_requested():
    made = workload(a_trial("4.4.0", "COMMITTED_AHEAD", scenario="dead-letters"))
    assert (len(made.first), len(made.second)) == (300, 100)
    assert all(value < 0 for _, value in made.first[-40:])
    assert {partition_of_key(key, 2) for key, _ in made.first[-40:]} == {0, 1}
    assert all(value >= 0 for _, value in made.second)


@pytest.mark.parametrize(
    ("release", "parameters", "refusal"),
    [
        ("4.2.0", {}, None),
        (
            "4.1.2",
            {},
            "Kafka Streams 4.1.2 has no dead letter queue (KIP-1034); choose 4.2.0 or later, or leave out commits.",
        ),
        (
            "4.4.0",
            {"fault": "instance-kill"},
            "with commits the instance is killed at the last commit; leave out the fault, or commits.",
        ),
    ],
)
def test_commits_are_requested_for_dead_letters_without_a_fault(release, parameters, refusal):
    assert SCENARIO.refuse_trial(a_trial(release, scenario="dead-letters", commits=True, **parameters)) == refusal


def test_before_3_9_0_nothing_handles_processing_errors():
    assert SCENARIO.refuse(a_trial("3.9.0", "PROCESSING", scenario="dead-letters").cell) is None
    refusal = SCENARIO.refuse(a_trial("3.8.1", "PROCESSING", scenario="dead-letters").cell)
    assert refusal == (
        f"Kafka Streams {Release(3, 8, 1)} has no handler of exceptions in the processing (KIP-1033); choose 3.9.0 or "
        "later, or failing=deserialization."
    )
