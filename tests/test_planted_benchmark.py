"""The benchmark of planted bugs: what is done next, and what counts as found."""

from dataclasses import replace

import pytest

from benchmarks.kafka_tests import Ended, Feed, read_feed
from benchmarks.planted import (
    CLASSES,
    TESTS,
    TRIALS,
    Done,
    Job,
    is_found,
    next_jobs,
    outcome,
    read_results,
    rows,
    totals,
    write,
)

TRIAL, SECOND = (Job("4.3.1", TRIALS, scenario, "batch-lost") for scenario in ("crash", "enumerator"))


def done(job: Job, *, found: bool = False, fired: int = 5) -> Done:
    return Done(job, found, "failed: one" if found else "passed", 10.0, fired, "0.1.0")


def of_class(number: int, plant: str | None = None) -> Job:
    return Job("4.3.1", TESTS, CLASSES[number], plant)


def next_of(*known: Done) -> list[Job]:
    return next_jobs(["4.3.1"], ["batch-lost"], known)


def test_the_feed_names_the_first_test_that_failed():
    lines = [
        "JUnit Jupiter > EosIntegrationTest > one() :: STARTED",
        "JUnit Jupiter > EosIntegrationTest > one() :: SUCCESSFUL",
    ]
    assert read_feed(lines) == Feed(1, None)
    failed = "JUnit Jupiter > EosIntegrationTest > two(String) > [1] a :: b :: FAILED"
    assert read_feed([*lines, "noise", failed, "\tjava.lang.AssertionError: lost", *lines]) == Feed(
        1, "two(String) > [1] a :: b: java.lang.AssertionError: lost"
    )
    assert read_feed([failed]) == Feed(0, "two(String) > [1] a :: b: ")
    assert read_feed([]) == Feed(0, None)


def test_trials_come_first_until_one_finds_the_plant():
    assert next_of() == [TRIAL]
    assert next_of(done(TRIAL)) == [SECOND]
    assert next_of(done(TRIAL, found=True)) == next_of(done(TRIAL), done(SECOND)) == [of_class(0)]


def test_a_class_runs_without_a_plant_before_it_runs_with_one():
    tried = [done(TRIAL, found=True), done(of_class(0))]
    assert next_of(*tried) == [of_class(0, "batch-lost")]
    assert next_of(*tried, done(of_class(0, "batch-lost"))) == [of_class(1)]


def test_a_class_that_is_red_without_a_plant_is_left_out():
    assert next_of(done(TRIAL, found=True), done(of_class(0), found=True)) == [of_class(1)]


def test_what_a_class_has_found_is_not_looked_for_by_the_next():
    tried = [done(TRIAL, found=True), *(done(of_class(number)) for number in range(len(CLASSES)))]
    assert next_of(*tried, done(of_class(0, "batch-lost"), found=True)) == []
    assert next_of(*tried, done(of_class(0, "batch-lost"))) == [of_class(1, "batch-lost")]


def test_classes_of_several_bugs_may_run_at_once_and_trials_not():
    trials = [Job("4.3.1", TRIALS, "enumerator", name) for name in ("put-lost", "stale-cache")]

    def possible(*known: Done) -> list[Job]:
        return next_jobs(["4.3.1"], ["put-lost", "stale-cache"], known)

    found = [done(trial, found=True) for trial in trials]
    assert possible() == trials[:1]
    assert possible(found[0]) == trials[1:]
    assert possible(*found) == [of_class(0)], "without a plant it runs once"
    both = [of_class(0, "put-lost"), of_class(0, "stale-cache")]
    assert possible(*found, done(of_class(0))) == both
    assert possible(*found, done(of_class(0)), done(both[0], found=True)) == both[1:]


def test_a_plant_that_does_not_apply_is_not_tried():
    assert next_jobs(["4.3.1"], ["checkpoint-stays"], []) == []


@pytest.mark.parametrize(
    ("how", "plant", "fired", "found"),
    [
        ("passed", "batch-lost", 5, False),
        ("failed", "batch-lost", 5, True),
        ("hung", "batch-lost", 5, True),
        ("failed", "batch-lost", 0, False),
        ("failed", None, 0, True),
    ],
)
def test_a_class_finds_a_plant_only_if_that_fired(how, plant, fired, found):
    assert is_found(Job("4.3.1", TESTS, "EosIntegrationTest", plant), Ended(how, 1.0, None, fired)) is found


def test_the_table_tells_what_found_a_plant_and_all_seconds():
    known = [
        done(of_class(0)),
        done(of_class(1), found=True),
        done(TRIAL),
        done(SECOND, found=True),
        done(of_class(0, "batch-lost"), fired=0),
    ]
    assert list(rows(["4.3.1"], ["batch-lost", "put-lost"], known)) == [
        (
            "4.3.1",
            "batch-lost",
            "enumerator: failed: one",
            "20",
            f"never fired in 1 of {len(CLASSES) - 1} classes",
            "10",
        )
    ]
    assert outcome([], "classes") == ("not tried", "")
    assert outcome(known[2:3], "claims") == ("not found in 1 claims", "10")
    failed = [replace(known[2], found=None, how="No broker.")]
    assert outcome(failed, "claims") == ("error: No broker.", "10")
    assert totals("4.3.1", known) == "4.3.1: trials found 1 of 1 in 20 s, Kafka's tests found 0 of 1 in 10 s"


def test_results_add_up_over_portions(tmp_path):
    file = tmp_path / "results.jsonl"
    assert read_results(file) == read_results(None) == []
    known = [done(TRIAL), done(of_class(0))]
    for one in known:
        write(file, one)
    assert read_results(file) == known
