"""Reproduction 001: the independent reader's judgement on the specimens, and the programs that are run."""

import random
from collections import Counter, defaultdict
from operator import attrgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onceproof.model.cell import Cell, Trial
from onceproof.model.errors import UsageError
from onceproof.model.release import Release
from onceproof.model.timeline import Return
from onceproof.readers.checks import check_counting as check
from onceproof.scenarios import SCENARIOS
from onceproof.scenarios.base import partition_of_key
from onceproof.scenarios.multirunner import (
    STEPS,
    TOGETHER,
    VARIANTS,
    config,
    describe_assertions,
    draw_program,
    keys_read_again,
    program_of,
    refuse_program,
    workload,
)
from tests.cases import check_each

SCENARIO = SCENARIOS["multirunner"]


def trial(variant="DEFAULT_CONFIG", seed=7, parameters=None):
    restart_on = Release.parse("4.3.1") if variant.startswith("ROLLING") else None
    releases = ("4.3.1", "4.3.1") if variant == "STREAMS_PROTOCOL" else ("3.3.1", "3.9.1")
    streams, broker = map(Release.parse, releases)
    cell = Cell("multirunner", variant, streams, broker, restart_on)
    return Trial("20260101T000000-abcd", cell, 1, seed, parameters or {})


def test_who_leaves_no_group_is_missed_soon():
    def session(release, variant="DEFAULT_CONFIG"):
        cell = Cell("multirunner", variant, Release.parse(release), Release.parse("3.9.1"))
        return config(Trial("20260101T000000-abcd", cell, 1, 7)).get("main.consumer.session.timeout.ms")

    assert session("4.1.2") == session("3.3.1", "STAYING_IN_GROUP") == "4000"
    assert session("3.3.1") is session("4.2.0") is None


# --- check ---------------------------------------------------------------------------------------------------


class Application:
    """A correct application: it finds in its store what was put last."""

    def __init__(self):
        self.last: dict[int, int] = defaultdict(int)
        self.ends = Counter[int]()
        self.output: list[tuple[int, int, int, int]] = []
        self.changelog: list[tuple[int, int, int, int]] = []

    def process(self, record, gap=1):
        p, _, key, number = record
        self.output.append((p, self.ends[p], key, number << 32 | self.last[key]))
        self.changelog.append((p, self.ends[p], key, number))
        self.ends[p] += gap
        self.last[key] = number


@st.composite
def inputs(draw):
    partitions = draw(st.integers(1, 4))
    ends, numbers, records = Counter[int](), Counter[int](), []
    for key in draw(st.lists(st.integers(0, 8), min_size=1, max_size=40)):
        p = partition_of_key(key, partitions)
        numbers[key] += 1
        records.append((p, ends[p], key, numbers[key]))
        ends[p] += draw(st.integers(1, 3))
    return records


@given(inputs(), st.data())
def test_a_correct_application_is_never_accused(records, data):
    application = Application()
    for record in records:
        application.process(record, data.draw(st.integers(1, 3)))
    made = {"input": records, "output": application.output, "last-changelog": records}
    assert check(made, {"exactly_once": 1, "cached": 0}).anomalies == {}


@given(inputs(), st.data())
def test_processing_again_is_red_only_under_exactly_once(records, data):
    died = data.draw(st.integers(1, len(records)))
    committed = data.draw(st.integers(0, died - 1))
    application = Application()
    for record in [*records[:died], *records[committed:]]:
        application.process(record)
    made = {"input": records, "output": application.output, "last-changelog": application.changelog}
    assert check(made, {"exactly_once": 0, "cached": 0}).anomalies == {}
    assert "duplicate-output" in check(made, {"exactly_once": 1}).anomalies


@given(inputs(), st.sampled_from(["lost-record", "duplicate-output", "dirty-read", "stale-read"]), st.data())
def test_one_fault_is_found_and_nothing_else(records, fault, data):
    application = Application()
    for record in records:
        application.process(record)
    output = application.output
    at = data.draw(st.integers(0, len(output) - 1))
    p, offset, key, pair = output[at]
    found = pair % 2**32
    if fault == "stale-read" and not found:
        return
    replaced = {
        "lost-record": [],
        "duplicate-output": [output[at], (p, application.ends[p], key, pair)],
        "dirty-read": [(p, offset, key, pair + data.draw(st.integers(1, 50)))],
        "stale-read": [(p, offset, key, pair - data.draw(st.integers(1, max(found, 1))))],
    }[fault]
    made = {"input": records, "output": [*output[:at], *replaced, *output[at + 1 :]], "last-changelog": records}
    assert check(made, {"exactly_once": 1}).anomalies == {fault: 1}


# --- programs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "program"), [("1 2 3", [1, 2, 3]), (" 3  3\t1 ", [3, 3, 1]), ("02", [2])])
def test_a_program_names_instances(text, program):
    assert program_of(trial(parameters={"program": text})) == program


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("  ", "is empty"),
        ("1 4", "'4'.*from 1 to 3"),
        ("0", "'0'"),
        ("1 -2", "'-2'"),
        ("1,2", "'1,2'"),
        ("1 two", "'two'"),
        ("1.0", "'1.0'"),
        ("²", "'²'"),
        ("٣", "'٣'"),
    ],
)
def test_a_program_that_cannot_be_run_is_refused(text, said):
    with pytest.raises(UsageError, match=f"cannot be run: the program .*{said}"):
        SCENARIO.validate(trial(parameters={"program": text}))


@given(st.integers(), st.integers(2, 5))
def test_a_drawn_program_never_stops_the_last_instance_that_runs(seed, instances):
    program = draw_program(random.Random(seed), instances)
    running: set[int] = set()
    most = 0
    for number in program:
        running ^= {number}
        assert running
        most = max(most, len(running))
    assert most == min(TOGETHER, instances)
    assert len(program) <= STEPS
    assert refuse_program(" ".join(map(str, program)), instances) is None


def test_a_single_instance_is_started_and_stopped_in_turn():
    assert set(draw_program(random.Random(1), 1)) == {1}


def test_the_same_seed_gives_the_same_program():
    programs = [program_of(trial(seed=seed)) for seed in range(20)]
    assert programs == [program_of(trial(seed=seed)) for seed in range(20)]
    assert len({tuple(program) for program in programs}) > 1


def test_the_program_of_the_trial_replaces_that_of_the_variant():
    assert program_of(trial("SEED_PROGRAM")) == [1, 2, 3]
    assert program_of(trial("STAYING_IN_GROUP")) == [1, 2, 3, 2, 2]
    assert program_of(trial("STAYING_IN_GROUP", parameters={"program": "2 1"})) == [2, 1]


def test_a_program_with_too_many_instances_is_refused_at_once():
    with pytest.raises(UsageError, match="raise the parameter `instances`"):
        SCENARIO.validate(trial("SEED_PROGRAM", parameters={"instances": 2}))


# --- what the application saw --------------------------------------------------------------------------------


def stale_read(source="instance-2"):
    place = {"partition": 4, "offset": 17, "key": 3, "expected": 9, "found": 5}
    return {"t": 2, "source": source, "event": "stale-read", **place}


def step(action):
    return {"t": 1, "source": "driver", "event": "step", "action": action, "instance": "instance-2"}


def test_stale_reads_are_counted_and_the_first_is_shown():
    events = [step("[0] start"), step("[1] start"), stale_read(), step("[2] stop"), stale_read("instance-1")]
    assert list(describe_assertions(events)) == [
        "The application saw 2 stale reads itself, the first at step [1] in instance-2: expected 9 but found 5, "
        "partition 4, input offset 17, key 3."
    ]


def test_nothing_is_told_of_an_application_that_saw_nothing():
    assert list(describe_assertions([step("[0] start"), {"t": 2, "source": "instance-1", "event": "progress"}])) == []


# --- workload and variants -----------------------------------------------------------------------------------


def test_the_nth_record_of_a_key_has_the_value_n():
    work = workload(trial())
    numbers = defaultdict(list)
    for key, number in work.second:
        numbers[key].append(number)
    assert work.first == []
    assert (len(work.second), set(numbers)) == (30_000, set(range(100)))
    assert all(of_key == list(range(1, len(of_key) + 1)) for of_key in numbers.values())


def test_the_same_seed_gives_the_same_records():
    assert workload(trial()) == workload(trial())
    assert workload(trial()) != workload(trial(seed=8))


def test_the_keys_are_spread_over_all_partitions():
    assert {partition_of_key(key, 12) for key, _ in workload(trial()).second} == set(range(12))


def test_the_configuration_follows_the_variant():
    assert config(trial("AT_LEAST_ONCE"))["processing.guarantee"] == "at_least_once"
    assert config(trial("NO_STANDBY"))["num.standby.replicas"] == "0"


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
        ("speed=1", "'speed=1' sets no parameter of multirunner"),
        ("keys", "keys has no value: write keys=VALUE. It is distinct keys."),
        ("keys=many", "a whole number"),
        ("keys=1.5", "a whole number"),
        ("keys=0", "at least 1"),
        ("standbys=-1", "at least 0"),
        ("rate=fast", "a number"),
        ("caching=perhaps", "true or false"),
        ("stores=paper", "one of rocksdb, in-memory"),
        ("guarantee=exactly_once", "one of exactly_once_v2, at_least_once"),
    ],
)
def test_a_parameter_that_makes_no_sense_is_refused(setting, said):
    with pytest.raises(UsageError, match=said):
        SCENARIO.parse([setting])


@pytest.mark.parametrize(
    ("done", "before", "elsewhere", "after", "keys"),
    [
        pytest.param(4, 4, 4, 4, {0, 1, 2, 3}, id="all of them"),
        pytest.param(4, 4, 2, 4, {0, 1}, id="two were advanced elsewhere"),
        pytest.param(4, 1, 4, 4, {3}, id="one was cached"),
        pytest.param(4, 4, 4, 1, {0}, id="one was read again"),
        pytest.param(4, 4, 0, 4, set(), id="nothing was advanced elsewhere"),
        pytest.param(4, 4, 4, 0, set(), id="nothing was read again"),
    ],
)
def test_only_a_cached_key_advanced_elsewhere_can_be_stale(done, before, elsewhere, after, keys):
    records = [(key, number) for number in range(1, 9) for key in range(4)]
    proof = Return("0_0", "a-instance-1-StreamThread-1", 1, 2, done, before, elsewhere, after)
    assert keys_read_again(records, 1, proof) == keys
