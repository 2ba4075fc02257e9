"""The independent reader's judgement, on the same specimens as Spark's."""

from collections import Counter
from operator import attrgetter
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onceproof.model.cell import Cell, Trial
from onceproof.model.release import Release
from onceproof.readers.enumerator import check
from onceproof.scenarios import SCENARIOS
from onceproof.scenarios.base import partition_of_key
from onceproof.scenarios.enumerator import FIRST, SECOND, VARIANTS, config, standbys_synced, workload
from tests.cases import check_each
from tests.present import present
from tests.specimens.enumerator import SPECIMENS, Specimen


def topics(specimen: Specimen):
    return {
        "input": [(p, o, k, k) for p, o, k in specimen.input],
        "output": specimen.output,
        "counter-changelog": specimen.counter,
        "ids-changelog": specimen.ids,
    }


@pytest.mark.parametrize("specimen", SPECIMENS, ids=lambda s: s.name)
def test_specimen(specimen):
    found = check(topics(specimen), {"partitions": specimen.partitions})
    assert found.anomalies == specimen.expected
    assert Counter(found.witnesses) == Counter(specimen.witnesses)
    assert (found.records, found.outputs) == (specimen.records, specimen.outputs)
    assert (found.keys, found.ids) == (specimen.distinct_keys, specimen.distinct_ids)


@st.composite
def healthy_topics(draw):
    """What a correct application leaves behind: any input, any partitions."""
    partitions = draw(st.integers(1, 6))
    keys = draw(st.lists(st.integers(-20, 20), max_size=60))
    offsets, counters = Counter[int](), Counter[int]()
    ids: dict[int, int] = {}
    made: dict[str, list[tuple[int, int, int, int]]] = {
        role: [] for role in ("input", "output", "counter-changelog", "ids-changelog")
    }
    for key in keys:
        p = partition_of_key(key, partitions)
        place = (p, offsets[p])
        offsets[p] += draw(st.integers(1, 3))
        made["input"].append((*place, key, key))
        if key not in ids:
            ids[key] = counters[p] * partitions + p
            made["counter-changelog"].append((*place, 0, counters[p]))
            made["ids-changelog"].append((*place, key, ids[key]))
            counters[p] += 1
        made["output"].append((*place, key, ids[key]))
    return partitions, made


@given(healthy_topics())
def test_a_correct_application_is_never_accused(healthy):
    partitions, made = healthy
    assert check(made, {"partitions": partitions}).anomalies == {}


@given(healthy_topics(), st.data())
def test_a_missing_or_wrong_output_record_is_always_found(healthy, data):
    partitions, made = healthy
    if not made["output"]:
        return
    at = data.draw(st.integers(0, len(made["output"]) - 1))
    p, offset, key, number = made["output"][at]
    missing = {**made, "output": [r for i, r in enumerate(made["output"]) if i != at]}
    assert "lost-record" in check(missing, {"partitions": partitions}).anomalies
    wrong = list(made["output"])
    wrong[at] = (p, offset, key, number + data.draw(st.integers(1, 50)))
    assert check({**made, "output": wrong}, {"partitions": partitions}).anomalies.keys() & {
        "duplicate-id",
        "unstable-id",
        "wrong-id",
    }


def trial(variant="DEFAULT_CONFIG", seed=7, streams="3.3.1"):
    cell = Cell("enumerator", variant, Release.parse(streams), Release.parse("3.9.1"))
    return Trial("20260101T000000-abcd", cell, 1, seed)


def test_the_same_seed_gives_the_same_records():
    assert workload(trial()) == workload(trial())
    assert workload(trial()) != workload(trial(seed=8))


def test_the_seeds_load_has_63000_keys():
    work = workload(trial())
    assert (len(work.first), len(work.second)) == (FIRST, SECOND) == (3_000, 60_000)
    assert len({key for key, _ in [*work.first, *work.second]}) == 63_000


def test_repeated_keys_repeat_a_fifth_of_the_second_bulk():
    work = workload(trial("REPEATED_KEYS"))
    first = {key for key, _ in work.first}
    assert sum(key in first for key, _ in work.second) == SECOND // 5


def test_the_partition_rule_is_the_seeds():
    assert [partition_of_key(key, 2) for key in (0, 1, 2, -1)] == [1, 0, 1, 0]


def test_the_cache_size_has_the_name_that_the_release_knows():
    assert config(trial("CACHE_SIZE_ZERO", streams="3.3.1"))["cache.max.bytes.buffering"] == "0"
    assert config(trial("CACHE_SIZE_ZERO", streams="3.4.1"))["statestore.cache.max.bytes"] == "0"


@check_each("variant", VARIANTS.values(), named=attrgetter("name"))
def test_every_variant_says_what_it_changes(variant):
    assert variant.description.endswith(".")


@pytest.mark.parametrize(("fault", "refused"), [("disk-full", True), ("state-lost", True), ("instance-kill", False)])
def test_a_fault_of_the_disk_strikes_no_stores_in_memory(fault, refused):
    cell = Cell("enumerator", "IN_MEMORY", Release.parse("4.3.1"), Release.parse("3.9.1"))
    reason = SCENARIOS["enumerator"].refuse_trial(Trial("", cell, 1, 1, {"fault": fault}))
    assert (reason is not None and reason.startswith(f"the fault {fault} is of stores on disk")) == refused


def test_stores_in_memory_can_return_to_an_older_release():
    back = Cell("enumerator", "DEFAULT_CONFIG", Release(4, 3, 1), Release(3, 9, 1), Release(4, 2, 0))
    refuse = SCENARIOS["enumerator"].refuse_trial
    assert "cannot open them" in present(refuse(Trial("", back, 1, 1)))
    assert refuse(Trial("", back, 1, 1, {"stores": "in-memory"})) is None


def an_instance(tasks, position=None):
    lags = {} if position is None else {"lags": {"stores": [{"position": position}]}}
    return SimpleNamespace(state="RUNNING", last=lags, tasks=lambda kind: ["0_0"] if kind == tasks else [])


@pytest.mark.parametrize(
    ("first", "second", "synced"),
    [
        (an_instance("active"), an_instance("standby", 7), True),
        (an_instance("active"), an_instance("standby", 0), False),
        (an_instance("standby", 7), an_instance("active"), True),  # it has taken over all tasks, and tells no lag
        (an_instance("standby", 0), an_instance("active"), False),
        (an_instance("active", 7), an_instance("none"), False),  # its thread was just added
    ],
)
def test_whoever_holds_the_standbys_must_sync(first, second, synced):
    assert standbys_synced([first, second], second) is synced
