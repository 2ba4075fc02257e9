"""Reproduction 002: the independent reader's judgement on the specimens, and what is read off logs and checkpoints."""

import time
from dataclasses import replace
from operator import attrgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onceproof.faults.directory import parse_checkpoint
from onceproof.model.anomaly import Comparison
from onceproof.model.cell import Cell, Trial
from onceproof.model.errors import NotUnderstoodError, UsageError
from onceproof.model.record import Record
from onceproof.model.release import Release
from onceproof.readers.checks import check_dedup, check_enumerator
from onceproof.readers.state import compare_state
from onceproof.scenarios import SCENARIOS
from onceproof.scenarios.base import TRANSACTIONAL
from onceproof.scenarios.crash import (
    VARIANTS,
    StateWatch,
    _count_uncommitted,
    config,
    databases,
    describe_initialisation,
    observe,
    workload,
)
from tests.cases import check_each
from tests.present import present

SCENARIO = SCENARIOS["crash"]


def cell(variant="DEFAULT_CONFIG", streams="3.9.1", restart_on=None):
    restart = Release.parse(restart_on) if restart_on else None
    return Cell("crash", variant, Release.parse(streams), Release.parse("3.9.1"), restart)


def trial(variant="DEFAULT_CONFIG", seed=7, streams="3.9.1"):
    restart_on = "4.3.1" if variant == "ROLLING" else None
    return Trial("20260101T000000-abcd", cell(variant, streams, restart_on), 1, seed)


# --- check ---------------------------------------------------------------------------------------------------


@st.composite
def crashed(draw):
    """What a correct application leaves behind if it was killed with some of its records committed."""
    keys = draw(st.lists(st.integers(-10, 10), min_size=1, max_size=30))
    first = dict.fromkeys(keys)
    committed = list(first)[: draw(st.integers(0, len(first)))]
    aborted = draw(st.integers(0, 5))
    seen = [(0, n + (n >= len(committed)) * (aborted + 1), key, key) for n, key in enumerate(first)]
    contents = draw(st.permutations(committed))
    return {
        "input": [(0, n, key, key) for n, key in enumerate(keys)],
        "output": seen,
        "seen-changelog": seen,
        "seen-contents": [(0, line, key, key) for line, key in enumerate(contents)],
    }, {"exactly_once": 1, "seen_end": len(committed) + aborted}


@given(crashed())
def test_a_correct_application_is_never_accused(made):
    assert check_dedup(*made).anomalies == {}


@given(crashed(), st.sampled_from(["lost-record", "duplicate-output"]), st.data())
def test_one_record_too_few_or_too_many_is_found_alone(made, fault, data):
    topics, facts = made
    p, offset, key, value = data.draw(st.sampled_from(topics["output"]))
    output = [record for record in topics["output"] if record[2] != key]
    if fault == "duplicate-output":
        output = [*topics["output"], (p, offset + 1_000, key, value)]
    assert check_dedup({**topics, "output": output}, facts).anomalies == {fault: 1}


@given(crashed(), st.integers(-12, 12), st.integers(-12, 12))
def test_an_entry_that_the_store_holds_is_found_unless_committed(made, key, value):
    topics, facts = made
    committed = {key for _, _, key, _ in topics["seen-contents"]}
    contents = [*(record for record in topics["seen-contents"] if record[2] != key), (0, 1_000, key, value)]
    explained = key in committed and value == key
    found = check_dedup({**topics, "seen-contents": contents}, facts)
    assert found.anomalies == ({} if explained else {"uncommitted-state": 1})


@given(crashed(), st.data())
def test_every_entry_that_the_store_lacks_is_found(made, data):
    topics, facts = made
    contents = topics["seen-contents"]
    kept = contents[: data.draw(st.integers(0, len(contents)))]
    lost = len(contents) - len(kept)
    assert check_dedup({**topics, "seen-contents": kept}, facts).anomalies == ({"lost-state": lost} if lost else {})


ENUMERATED: dict[str, list[Record]] = {
    "input": [Record(0, 0, 7, 7), Record(0, 1, 4, 4)],
    "output": [Record(0, 0, 7, 0), Record(0, 3, 4, 1)],
    "counter-changelog": [Record(0, 0, 0, 0), Record(0, 3, 0, 1)],
    "ids-changelog": [Record(0, 0, 7, 0), Record(0, 3, 4, 1)],
    "counter-contents": [Record(0, 0, 0, 0)],
    "ids-contents": [Record(0, 0, 7, 0)],
}
ENDS = {"partitions": 1, "exactly_once": 1, "counter_end": 2, "ids_end": 2}


def test_both_stores_of_the_enumerator_are_compared():
    assert check_enumerator(ENUMERATED, ENDS).anomalies == {}
    ahead = {
        **ENUMERATED,
        "counter-contents": [Record(0, 0, 0, 1)],
        "ids-contents": [Record(0, 0, 7, 0), Record(0, 1, 4, 1)],
    }
    assert {(w.anomaly, w.offsets) for w in check_enumerator(ahead, ENDS).witnesses} == {
        ("uncommitted-state", ("counter-changelog/0@0",)),
        ("uncommitted-state", ("ids-contents/0@1",)),
    }


def test_the_enumerators_own_promises_are_kept_in_sight():
    twice = [Record(0, 0, 7, 0), Record(0, 3, 4, 0)]
    counted_back = {**ENUMERATED, "output": twice, "ids-changelog": twice}
    assert check_enumerator(counted_back, ENDS).anomalies == {"changelog-output-mismatch": 1, "duplicate-id": 1}


def test_what_is_well_is_compared_too():
    assert list(compare_state("ids", ENUMERATED, ENDS)) == [
        Comparison("state", None, 0, 7, "ids-changelog/0@0", "0", "0")
    ]


def test_a_store_of_which_nothing_was_told_was_lost():
    other_roles = {role: records for role, records in ENUMERATED.items() if role != "ids-contents"}
    assert [c.anomaly for c in compare_state("ids", other_roles, ENDS)] == ["lost-state"]


# --- forensics -----------------------------------------------------------------------------------------------

TRUSTED = (
    "[2026-11-21T08:45:00.123+0000] INFO [a-StreamThread-1] stream-thread [a] task [0_0] State store seen initialized "
    "from checkpoint with offset 3000 at changelog onceproof.a-t1-seen-changelog-0 (o.a.k.ProcessorStateManager)\n"
)
NOT_EMPTY = (
    "[2026-11-21T08:45:00.123+0000] WARN [a-StreamThread-1] stream-thread [a] task [0_0] State store seen did not find "
    "checkpoint offsets while stores are not empty, since under EOS it has the risk of getting uncommitted data in "
    "stores we have to treat it as a task corruption error and wipe out the local state of task 0_0 before "
    "re-bootstrapping (o.a.k.ProcessorStateManager)\n"
)
CORRUPTED = (
    "[2026-11-21T08:45:00.123+0000] WARN [a-StreamThread-1] Detected the states of tasks [0_0] are corrupted. Will "
    "close the task as dirty and re-create and bootstrap from scratch. (o.a.k.StreamThread)\n"
    "org.apache.kafka.streams.errors.TaskCorruptedException: Tasks [0_0] are corrupted and hence need to be "
    "re-initialized\n\tat org.apache.kafka.streams.processor.internals.TaskManager.handle(TaskManager.java:1)\n"
)
CRASH = {"event": "crash", "on_disk": {"seen": 17}, "databases": {"seen": ["segment"]}}
FRESH = (
    "[2026-11-21T08:45:00.123+0000] INFO [a-StreamThread-1] stream-thread [a] task [0_0] State store seen did not find "
    "checkpoint offset, hence would default to the starting offset at changelog onceproof.a-t1-seen-changelog-0\n"
)


def restoration(start, end, records, store="seen"):
    return [
        {"t": 1, "source": "instance-1", "event": "restore", "store": store, "partition": 0, "from": start, "end": end},
        {"t": 2, "source": "instance-1", "event": "restored", "store": store, "partition": 0, "records": records},
    ]


@pytest.mark.parametrize(
    ("log", "start", "how", "offset"),
    [
        pytest.param(TRUSTED, 3_000, "trusted", 3_000, id="from a checkpoint"),
        pytest.param("", 3_000, "trusted", 3_000, id="from an offset in RocksDB, which the log does not tell"),
        pytest.param(NOT_EMPTY, 0, "wiped", None, id="not empty, and no checkpoint"),
        pytest.param(CORRUPTED, 0, "wiped", None, id="corrupted, as 4.3 says"),
        pytest.param(FRESH, 0, "kept", None, id="neither"),
        pytest.param(TRUSTED.replace("store seen", "store other"), 0, "kept", None, id="another store's checkpoint"),
        pytest.param(CORRUPTED.replace("[0_0]", "[0_1]"), 0, "kept", None, id="another task's corruption"),
    ],
)
def test_how_a_store_was_initialised(log, start, how, offset):
    events = [*restoration(1, 2, 3), *restoration(start, 3_500, 400), *restoration(9, 10, 11, store="other")]
    replayed = 3_500 - start
    fields = {"store": "seen", "how": how, "offset": offset, "replayed": replayed, "records": 400}
    assert describe_initialisation("seen", log, [CRASH, *events], ["segment", "another"]) == {**fields, "on_disk": 17}


@pytest.mark.parametrize("log", [FRESH, CORRUPTED.replace("are corrupted", "are damaged")])
def test_a_store_that_was_made_anew_is_not_told_to_be_kept(log):
    with pytest.raises(NotUnderstoodError, match="does not say that the store was wiped"):
        describe_initialisation("seen", log, [CRASH, *restoration(0, 3_500, 400)], ["new"])


def test_a_store_without_open_data_may_be_created_again():
    nothing = CRASH | {"on_disk": {"seen": 0}}
    assert describe_initialisation("seen", FRESH, [nothing, *restoration(0, 3_500, 400)], ["new"])["how"] == "kept"


def test_a_database_is_known_by_its_identity(tmp_path):
    for place, text in {"seen/seen.0": "a\n", "seen/seen.60": "b", "rocksdb/seen": "c", "rocksdb/seen-2": "d"}.items():
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "IDENTITY").write_text(text)
    assert databases(tmp_path, "seen") == ["c", "a", "b"]
    assert databases(tmp_path / "rocksdb" / "elsewhere", "seen") == []


@pytest.mark.parametrize("log", ["", FRESH, TRUSTED.replace("initialized", "initialised"), TRUSTED[:150]])
def test_a_log_that_words_it_in_another_way_is_an_error_of_ours(log):
    with pytest.raises(NotUnderstoodError, match="does not say that the store seen was trusted or wiped"):
        describe_initialisation("seen", log, [CRASH], ["segment"])


def test_a_trusted_store_that_had_it_all_replayed_nothing():
    started = {"t": 3, "source": "driver", "event": "instance", "name": "instance-1", "action": "started"}
    reported = describe_initialisation("seen", TRUSTED, [*restoration(2_990, 3_000, 9), started], ["segment"])
    assert (reported["how"], reported["replayed"], reported["records"]) == ("trusted", 0, 0)


@pytest.mark.parametrize(
    ("text", "offsets"),
    [
        pytest.param("0\n0\n", {}, id="empty"),
        pytest.param(
            "0\n2\nonceproof.20260101T000000-abcd.crash-ENUMERATOR-s3.9.1-b3.9.1-t1-counter-changelog 0 12\n"
            "onceproof.20260101T000000-abcd.crash-ENUMERATOR-s3.9.1-b3.9.1-t1-ids-changelog 0 34\n",
            {"counter-changelog": 12, "ids-changelog": 34},
            id="two stores",
        ),
        pytest.param("0\n1\nelsewhere 0 5\n", {"elsewhere": 5}, id="a topic that is not a trial's"),
    ],
)
def test_a_checkpoint_file_is_read(text, offsets):
    assert parse_checkpoint(text) == offsets


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0\n",
        "1\n1\na-t1-seen-changelog 0 5\n",
        "0\n2\na-t1-seen-changelog 0 5\n",
        "0\n2\na-t1-seen-changelog 0 5\na-t1-ot",
        "0\n1\na-t1-seen-changelog 0 five\n",
        "0\n1\na-t1-seen-changelog 0 5 clean\n",
        "0\n1\na-t1-seen-changelog-0 5\n",
    ],
)
def test_a_checkpoint_file_of_another_form_is_an_error(text):
    with pytest.raises(NotUnderstoodError, match="form that Onceproof does not understand"):
        parse_checkpoint(text)


class Notes(list[dict[str, object]]):
    """It stands in for the part of a `ScenarioContext` that notes events."""

    def note(self, event, **fields):
        self.append({"event": event, **fields})


def notes() -> Any:
    """A scenario's context that keeps what is noted."""
    return Notes()


def test_a_checkpoint_that_comes_while_one_watches_is_told(tmp_path):
    watch, lab = StateWatch(tmp_path, time.time), notes()
    watch.look()
    (tmp_path / ".checkpoint").write_text("0\n1\na-t1-seen-changelog 0 5\n")
    watch.look()
    watch.look()
    watch.tell(lab)
    [reported] = lab
    expected = {"samples": 3, "present": 2, "distinct": 1, "offsets": {"seen-changelog": 5}, "in_rocksdb": False}
    assert reported.items() >= expected.items()
    [comparison] = observe(trial(), lab)
    assert comparison.anomaly == "stale-checkpoint"


def test_offsets_in_rocksdb_are_noticed(tmp_path):
    rocksdb = tmp_path / "rocksdb" / "seen"
    rocksdb.mkdir(parents=True)
    (rocksdb / "OPTIONS-000007").write_text('[CFOptions "default"]\n[CFOptions "offsets"]\n')
    watch, lab = StateWatch(tmp_path, time.time), notes()
    watch.look()
    watch.tell(lab)
    assert (lab[0]["in_rocksdb"], lab[0]["present"], lab[0]["age_ms"]) == (True, 0, None)


SAMPLED = {"event": "checkpoint", "samples": 40, "milliseconds": 2_000}
ABSENT = {**SAMPLED, "present": 0, "distinct": 0, "age_ms": None, "offsets": {}}
PRESENT = {**SAMPLED, "present": 40, "distinct": 1, "age_ms": 2_345, "offsets": {"seen-changelog": 3_000}}


@pytest.mark.parametrize(
    ("event", "anomaly", "observed"),
    [
        ({**ABSENT, "in_rocksdb": False}, None, "absent from 40 samples over 2,000 ms"),
        (
            {**ABSENT, "in_rocksdb": True},
            None,
            "absent from 40 samples over 2,000 ms; offsets are in RocksDB's column family `offsets` (KIP-1035)",
        ),
        (
            PRESENT,
            "stale-checkpoint",
            "present in 40 of 40 samples over 2,000 ms, unchanged, 2,345 ms old at the kill; seen-changelog 3,000",
        ),
        (
            {**PRESENT, "present": 3, "distinct": 2, "offsets": {}},
            "stale-checkpoint",
            "present in 3 of 40 samples over 2,000 ms, 2 versions, 2,345 ms old at the kill; no offset",
        ),
    ],
)
def test_a_checkpoint_that_stays_is_a_stale_one(event, anomaly, observed):
    [found] = observe(trial(), [{"event": "phase", "name": "burst"}, event])
    assert (found.promise, found.anomaly, found.place) == ("checkpoint", anomaly, "task 0_0, .checkpoint")
    assert found.observed == observed


@pytest.mark.parametrize(
    ("how", "on_disk", "anomaly", "observed"),
    [
        ("trusted", 9, "skipped-wipe", "trusted from offset 3000, 1,500 offsets replayed"),
        ("trusted", 0, None, "trusted from offset 3000, 1,500 offsets replayed"),
        ("wiped", 9, None, "wiped, 1,400 records restored"),
        ("kept", 9, "skipped-wipe", "not wiped, 1,400 records restored over what was there"),
        ("kept", 0, None, "not wiped, 1,400 records restored over what was there"),
    ],
)
def test_a_store_with_uncommitted_data_on_disk_must_be_wiped(how, on_disk, anomaly, observed):
    fields = {"store": "seen", "how": how, "offset": 3_000, "replayed": 1_500, "records": 1_400, "on_disk": on_disk}
    [found] = observe(trial(), [{"event": "initialised", **fields}])
    expected = "wiped and restored" if on_disk else "all that is on disk was committed"
    observed += f"; on disk were {on_disk} entries of the open transaction"
    assert found == Comparison("wipe", anomaly, 0, None, "task 0_0, store seen", expected, observed)


@pytest.mark.parametrize(
    ("store", "held", "uncommitted"),
    [
        pytest.param("seen", {1: 1, 2: 2}, 0, id="committed"),
        pytest.param("seen", {1: 1, 3: 3, 4: 4}, 2, id="of the open transaction"),
        pytest.param("ids", {1: 0, 2: 1, 3: 2}, 1, id="an ID of the open transaction"),
        pytest.param("counter", {0: 1}, 0, id="the counter of the last committed record"),
        pytest.param("counter", {0: 0}, 0, id="an older counter"),
        pytest.param("counter", {0: 2}, 1, id="a counter of the open transaction"),
        pytest.param("counter", {}, 0, id="no counter"),
    ],
)
def test_what_a_directory_holds_of_the_open_transaction(store, held, uncommitted):
    assert _count_uncommitted(store, held, 2, {3, 4, 5}) == uncommitted


# --- workload, cells and variants ----------------------------------------------------------------------------


def test_the_keys_are_distinct():
    work = workload(trial())
    assert (len(work.first), len(work.second)) == (3_000, 20_000)
    assert sorted([*work.first, *work.second]) == [(key, key) for key in range(23_000)]


def test_the_same_seed_gives_the_same_records():
    assert workload(trial()) == workload(trial())
    assert workload(trial()) != workload(trial(seed=8))


def test_the_topology_follows_the_variant():
    systems = {name: SCENARIO.system(trial(name)).topology for name in ("DEFAULT_CONFIG", "ENUMERATOR")}
    assert systems == {"DEFAULT_CONFIG": "dedup", "ENUMERATOR": "enumerator"}


@pytest.mark.parametrize(
    ("variant", "name", "value"),
    [
        ("DEFAULT_CONFIG", "onceproof.rocksdb.write.buffer.bytes", "65536"),
        ("ROCKSDB_OWN_MEMORY", "onceproof.rocksdb.write.buffer.bytes", None),
        ("DEFAULT_CONFIG", "group.instance.id", "{instance}"),
        ("DYNAMIC_MEMBERSHIP", "group.instance.id", None),
        ("DEFAULT_CONFIG", "__state.updater.enabled__", None),
        ("STATE_UPDATER_DISABLED", "__state.updater.enabled__", "false"),
    ],
)
def test_the_configuration_follows_the_variant(variant, name, value):
    assert config(trial(variant)).get(name) == value


@pytest.mark.parametrize("streams", ["3.3.2", "4.3.1"])
def test_a_release_without_a_state_updater_switch_is_refused(streams):
    assert "has no switch" in present(SCENARIO.refuse(cell("STATE_UPDATER_DISABLED", streams)))
    assert SCENARIO.refuse(cell("DEFAULT_CONFIG", streams)) is None
    assert "has no switch" in present(SCENARIO.refuse(cell("STATE_UPDATER_DISABLED", "4.1.2", restart_on=streams)))


def test_only_a_static_member_gets_an_undecodable_assignment():
    assert "cannot decode" in present(SCENARIO.refuse(cell("DEFAULT_CONFIG", "3.6.2", restart_on="3.0.0")))
    assert SCENARIO.refuse(cell("DYNAMIC_MEMBERSHIP", "3.6.2", restart_on="3.0.0")) is None


@check_each("variant", VARIANTS.values(), named=attrgetter("name"))
def test_every_variant_says_what_it_changes_and_can_be_run(variant):
    assert variant.description.endswith(".")
    assert SCENARIO.parse(f"{name}={value}" for name, value in variant.parameters.items()) == variant.parameters
    SCENARIO.validate(trial(variant.name, streams="4.4.0" if TRANSACTIONAL in variant.parameters else "3.9.1"))


@pytest.mark.parametrize(
    ("variant", "streams", "restart_on", "why"),
    [
        ("TRANSACTIONAL", "4.3.1", None, "4.3.1 has no transactional stores"),
        ("TRANSACTIONAL", "4.4.0", "4.3.1", "4.3.1 has no transactional stores"),
        ("TRANSACTIONAL_SWITCHED_ON", "4.3.1", None, "4.3.1 has no transactional stores"),
        ("TRANSACTIONAL_SWITCHED_ON", "4.3.1", "4.4.0", None),
        ("TRANSACTIONAL_SWITCHED_OFF", "4.4.0", "4.3.1", None),
        ("TRANSACTIONAL_SWITCHED_OFF", "4.3.1", "4.4.0", "4.3.1 has no transactional stores"),
    ],
)
def test_transactional_stores_take_the_releases_that_have_them(variant, streams, restart_on, why):
    refused = SCENARIO.refuse(cell(variant, streams, restart_on=restart_on))
    assert refused is None if why is None else why in present(refused)


@check_each("name", SCENARIO.settable)
def test_every_default_can_be_given(name):
    assert SCENARIO.parse([f"{name}={SCENARIO.settable[name].default}"]) == {name: SCENARIO.settable[name].default}


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("crash=1", "'crash=1' sets no parameter of crash"),
        ("topology=counting", "one of dedup, enumerator"),
        ("committed=0", "at least 1"),
        ("burst=1000", "at least 1001"),
        ("burst=", "a whole number"),
        ("write.buffer.bytes=-1", "at least 0"),
        ("static.membership=no", "true or false"),
        ("during=startup", "one of running, restoration"),
        ("stores=global", "one of rocksdb, rocksdb-timestamped, versioned, window, session, in-memory"),
    ],
)
def test_a_parameter_that_makes_no_sense_is_refused(setting, said):
    with pytest.raises(UsageError, match=said):
        SCENARIO.parse([setting])


@pytest.mark.parametrize(
    ("streams", "settings", "said"),
    [
        ("4.3.1", {"stores": "versioned", "caching": True}, "a versioned store cannot be cached"),
        ("3.4.1", {"stores": "versioned"}, "3.4.1 has no versioned stores .KIP-889.; take 3.5.0 or later"),
        ("4.3.1", {"stores": "window", "punctuate.ms": 10}, "leave punctuate.ms out"),
        ("4.3.1", {"stores": "in-memory", "commit.interval.ms": 100, "during": "restoration"}, "take one on disk"),
        ("4.3.1", {"stores": "in-memory", "commit.interval.ms": 10_000}, "must time out, after 10,000 ms"),
        ("4.3.1", {"stores": "session", "topology": "enumerator"}, "are settings of topology=dedup"),
    ],
)
def test_a_store_kind_that_conflicts_with_the_rest_is_refused(streams, settings, said):
    with pytest.raises(UsageError, match=said):
        SCENARIO.validate(replace(trial(), cell=cell(streams=streams), parameters=settings))


@pytest.mark.parametrize(
    ("variant", "keys", "promises"),
    [
        ("DEFAULT_CONFIG", "integers", {"checkpoint", "wipe", "state"}),
        ("VERSIONED", "integers", {"checkpoint", "wipe", "state"}),
        ("WINDOW", "windows", {"checkpoint", "wipe", "state"}),
        ("SESSION", "sessions", {"checkpoint", "wipe", "state"}),
        ("IN_MEMORY", "integers", {"wipe", "state"}),
    ],
)
def test_the_store_kind_decides_the_changelog_and_the_checks(variant, keys, promises):
    system = SCENARIO.system(trial(variant))
    assert system.topics["seen-changelog"].keys == keys
    assert {"checkpoint", "wipe", "state"} & {*system.promises} == promises


def test_of_a_store_in_memory_no_checkpoint_is_looked_at():
    events = [{**PRESENT, "in_rocksdb": False}]
    assert [found.anomaly for found in observe(trial(), events)] == ["stale-checkpoint"]
    assert observe(trial("IN_MEMORY"), events) == []


def test_only_a_small_cache_lets_a_cached_store_reach_the_disk():
    assert config(trial("CACHED"))["statestore.cache.max.bytes"] == "65536"
    assert "statestore.cache.max.bytes" not in config(trial())


def test_a_transaction_that_nobody_follows_times_out():
    assert config(trial("IN_MEMORY"))["producer.transaction.timeout.ms"] == "10000"
    assert config(trial())["producer.transaction.timeout.ms"] == "120000"
