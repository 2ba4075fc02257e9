"""Reproduction 004: the independent reader's judgement on the specimens, and what the scenario may be run with."""

from dataclasses import replace
from operator import attrgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onceproof.model.cell import Cell, Trial
from onceproof.model.errors import UsageError
from onceproof.model.release import Release
from onceproof.readers.answers import FALSE, TRUE
from onceproof.readers.checks import check_deleter as check
from onceproof.scenarios import SCENARIOS
from onceproof.scenarios.at_least_once import DELETE, PUT, VARIANTS, config, workload
from tests.cases import check_each
from tests.present import present
from tests.published import NEWEST

SCENARIO = SCENARIOS["at-least-once"]


def trial(variant="DEFAULT_CONFIG", seed=7, parameters=None):
    cell = Cell("at-least-once", variant, Release.parse("3.9.1"), Release.parse("3.9.1"))
    return Trial("20260101T000000-abcd", cell, 1, seed, parameters or {})


# --- check ---------------------------------------------------------------------------------------------------


KEYS = st.lists(st.integers(-20, 20), unique=True, min_size=1, max_size=15)


def crashed(keys, committed, deletions, answers):
    """Topics and facts of a trial that was killed with this many requests committed, deletions and answers published.

    What was published and not committed is done again: a key that is gone is answered with false.
    """
    puts = [(0, n, key, PUT) for n, key in enumerate(keys)]
    requests = [(0, len(keys) + n, key, DELETE) for n, key in enumerate(keys)]
    deleted = [*keys[:deletions], *keys[committed:]]
    reported = [
        *((key, TRUE) for key in keys[:answers]),
        *((key, FALSE if key in keys[:deletions] else TRUE) for key in keys[committed:]),
    ]
    topics = {
        "input": [*puts, *requests],
        "output": [(0, n, key, value) for n, (key, value) in enumerate(reported)],
        "records-changelog": [*puts, *((0, len(keys) + n, key, None) for n, key in enumerate(deleted))],
    }
    facts = {"downstream": 0, "exactly_once": 0, "changelog_end": len(keys) + deletions, "output_end": answers}
    return topics, facts


@given(KEYS, st.data())
def test_a_correct_application_is_never_accused(keys, data):
    committed = data.draw(st.integers(0, len(keys)))
    assert check(*crashed(keys, committed, committed, committed)).anomalies == {}


@given(KEYS, st.data())
def test_every_answer_that_was_lost_is_found(keys, data):
    committed = data.draw(st.integers(0, len(keys)))
    deletions = data.draw(st.integers(committed, len(keys)))
    lost = {
        name: deletions - committed
        for name in ("changelog-output-mismatch", "false-after-true")
        if deletions > committed
    }
    assert check(*crashed(keys, committed, deletions, committed)).anomalies == lost


@given(KEYS, st.data())
def test_every_deletion_that_was_lost_is_found(keys, data):
    committed = data.draw(st.integers(0, len(keys)))
    answers = data.draw(st.integers(committed, len(keys)))
    lost = {
        name: answers - committed for name in ("changelog-output-mismatch", "duplicate-output") if answers > committed
    }
    assert check(*crashed(keys, committed, committed, answers)).anomalies == lost


@given(KEYS, st.sampled_from(["lost-record", "false-after-true", "duplicate-output"]), st.data())
def test_one_fault_is_found_and_nothing_else(keys, fault, data):
    topics, _ = crashed(keys, len(keys), len(keys), len(keys))
    facts = {"downstream": 0, "changelog_end": len(keys), "output_end": 0}
    at = data.draw(st.integers(0, len(keys) - 1))
    output = topics["output"]
    p, offset, key, _ = output[at]
    replaced = {
        "lost-record": [],
        "false-after-true": [(p, offset, key, FALSE)],
        "duplicate-output": [output[at], (p, len(output), key, TRUE)],
    }[fault]
    made = {**topics, "output": [*output[:at], *replaced, *output[at + 1 :]]}
    assert check(made, facts).anomalies == {fault: 1}


# --- workload and variants -----------------------------------------------------------------------------------


def test_each_key_is_put_once_and_deleted_once_in_another_order():
    work = workload(trial())
    assert sorted(work.first) == [(key, PUT) for key in range(3_000)]
    assert sorted(work.second) == [(key, DELETE) for key in range(3_000)]
    assert [key for key, _ in work.first] != [key for key, _ in work.second]


def test_the_same_seed_gives_the_same_records():
    assert workload(trial()) == workload(trial())
    assert workload(trial()) != workload(trial(seed=8))


@pytest.mark.parametrize(
    ("variant", "guarantee"), [("DEFAULT_CONFIG", "at_least_once"), ("EXACTLY_ONCE_OUTPUT_FIRST", "exactly_once_v2")]
)
def test_the_guarantee_follows_the_variant(variant, guarantee):
    assert config(trial(variant))["processing.guarantee"] == guarantee


def test_a_deletion_behind_its_answer_cannot_be_published_first():
    with pytest.raises(UsageError, match="delete=downstream does not go with published=changelog"):
        SCENARIO.validate(trial(parameters={"delete": "downstream"}))
    SCENARIO.validate(trial(parameters={"delete": "downstream", "published": "output"}))


@pytest.mark.parametrize(
    ("variant", "parameters", "said"),
    [
        ("DELETE_DOWNSTREAM", {"parted.by": "rebalance"}, "parted.by=rebalance does not go with delete=downstream"),
        ("DELETE_DOWNSTREAM", {"parted.by": "timeout"}, "parted.by=timeout does not go with delete=downstream"),
        ("EXACTLY_ONCE", {"parted.by": "timeout"}, "a producer that gives up in a transaction takes its thread along"),
    ],
)
def test_what_takes_the_task_must_leave_something_to_do(variant, parameters, said):
    with pytest.raises(UsageError, match=said):
        SCENARIO.validate(trial(variant, parameters=parameters))


def test_a_release_without_the_switch_keeps_its_state_updater():
    made = trial("TIMED_OUT_STATE_UPDATER_DISABLED")
    assert SCENARIO.refuse(made.cell) is None
    newest = replace(made.cell, streams=NEWEST)
    assert present(SCENARIO.refuse(newest)).startswith(f"Kafka Streams {NEWEST} has no switch for its state updater")


@check_each("variant", VARIANTS.values(), named=attrgetter("name"))
def test_every_variant_says_what_it_changes_and_can_be_run(variant):
    assert variant.description.endswith(".")
    assert SCENARIO.parse(f"{name}={value}" for name, value in variant.parameters.items()) == variant.parameters
    SCENARIO.validate(trial(variant.name))


@check_each("name", SCENARIO.settable)
def test_every_default_can_be_given(name):
    assert SCENARIO.parse([f"{name}={SCENARIO.settable[name].default}"]) == {name: SCENARIO.settable[name].default}


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("key=1", "'key=1' sets no parameter of at-least-once"),
        ("keys=", "a whole number"),
        ("keys=0", "at least 1"),
        ("published=both", "one of changelog, output"),
        ("guarantee=at_most_once", "one of exactly_once_v2, at_least_once"),
        ("delete=never", "one of at-once, downstream"),
        ("caching=1", "true or false"),
    ],
)
def test_a_parameter_that_makes_no_sense_is_refused(setting, said):
    with pytest.raises(UsageError, match=said):
        SCENARIO.parse([setting])


# --- flushes -------------------------------------------------------------------------------------------------


def flushed(**sample):
    return {"t": 1, "source": "driver", "event": "flushes", "looks": 7, "committed": 100, **sample}


@pytest.mark.parametrize(
    ("variant", "sample", "anomalies"),
    [
        ("DEFAULT_CONFIG", {"records-changelog": 100, "output": 100}, [None, None]),
        ("EXACTLY_ONCE", {"records-changelog": 101, "output": 203}, [None, None]),  # markers and aborted records count
        ("DEFAULT_CONFIG", {"records-changelog": 100, "output": 99}, [None, "early-commit"]),
        ("EXACTLY_ONCE", {"records-changelog": 0, "output": 100}, ["early-commit", None]),
        ("DELETE_DOWNSTREAM", {"records-changelog": 0, "output": 100}, [None]),  # the deletion comes later by design
    ],
)
def test_no_offset_is_committed_before_its_output_is_published(variant, sample, anomalies):
    rows = SCENARIO.observe(trial(variant), [flushed(**sample)])
    assert [row.anomaly for row in rows] == anomalies
    assert all(row.promise == "flush" for row in rows)
