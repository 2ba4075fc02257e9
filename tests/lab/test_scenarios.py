"""Scenarios on real brokers: each fault and each proof of its own; that known issues are red and their controls green,
`onceproof run --matrix known` proves in the night, for all of them and by both readers.
"""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from onceproof.lab.external_brokers import own_cluster
from onceproof.lab.instances import LabInstances
from onceproof.lab.trial import run_alone, run_trial
from onceproof.model.files import FaultOutcome, Outcome, Reading
from onceproof.model.release import Release
from onceproof.model.run_folder import TrialFolder
from onceproof.model.timeline import read_timeline
from onceproof.settings import get_settings
from tests.conftest import a_run_id, a_trial, undisturbed
from tests.present import present
from tests.specimens.directories import STRANGER, alter

pytestmark = pytest.mark.broker
EXERCISED = 3  # trials until one exercised what it is for


def run_once(trial, path, cluster):
    """Run the trial; again as another one, with its own topics, if the machine stood still during it.

    Without a cluster, on its own brokers.
    """

    def attempt():
        again, folder = replace(trial, run=a_run_id()), TrialFolder(path)
        if cluster is None:
            return run_alone(again, folder, own_cluster(get_settings().installation, again, folder))
        return run_trial(again, folder, cluster=cluster)

    return undisturbed(attempt)


def has_to_forget(outcome):
    """Whether something that was not committed is known to have been on the disk of an instance that was killed.

    Where nothing was, a release that trusts what it finds there does nothing wrong. True if none was killed.
    """
    return outcome.fault is None or outcome.fault.observed.get("uncommitted_on_disk") is not False


def fault_of(path: Path) -> FaultOutcome:
    """The outcome of the fault of a trial in a folder."""
    return present(Outcome.read(TrialFolder(path).outcome_file).fault)


def run(trial, path, cluster=None, met=lambda _: True):
    """The anomalies and the reason of a trial that exercised what it is for, and met what it needs besides.

    One that did not says nothing, so another one is made, as in a run. What it would have shown is not looked at.
    """
    for _ in range(EXERCISED):
        outcome = run_once(trial, path, cluster)
        if outcome.exercised and met(outcome):
            return Reading.read(TrialFolder(path).reader_file).anomalies, outcome.reason
    pytest.fail(f"Not exercised in {EXERCISED} trials. The last one: {outcome.reason}")


@pytest.mark.night
def test_multirunner_reads_old_values_on_an_affected_release(tmp_path, cluster):
    anomalies, reason = run(a_trial("3.3.1", "SEED_PROGRAM", scenario="multirunner"), tmp_path, cluster)
    assert {"stale-read"} <= anomalies.keys() <= {"stale-read", "wrong-store", "wrong-standby"}
    assert f"The application saw {anomalies['stale-read'] - 1:,} stale reads itself" in reason
    assert {log.name for log in (tmp_path / "instances").iterdir()} == {
        "0.instance-1.log",
        "1.instance-2.log",
        "2.instance-3.log",
    }


def test_altered_stores_are_found_in_active_and_standby_tasks(tmp_path, cluster, monkeypatch):
    start = LabInstances.start
    parameters: dict[str, Any] = {"program": "1 2 2 2", "leave.group": False, "standbys": 1, "stores": "rocksdb"}
    trial = a_trial("3.9.1", scenario="multirunner", **parameters)

    def start_on_altered_stores(instances, name, *arguments, **named):
        stores = instances.state_directory(name).glob("0_*/rocksdb/last")
        alter(trial.cell.streams, {store: {STRANGER: 7} for store in stores})
        return start(instances, name, *arguments, **named)

    monkeypatch.setattr(LabInstances, "start", start_on_altered_stores)
    folder = TrialFolder(tmp_path)
    run_once(trial, tmp_path, cluster)
    steps = [e["action"] for e in read_timeline(folder.timeline) if e["event"] == "step"]
    assert steps == ["[0] start", "[1] start", "[2] stop", "[3] start"]
    found = Reading.read(folder.reader_file)
    altered = [dump for dump in folder.dumps() if STRANGER in dump.entries()]
    assert {dump.instance for dump in altered} == {"instance-2"}
    assert found.anomalies == {
        "wrong-standby": sum(dump.task_type == "standby" for dump in altered),
        "wrong-store": sum(dump.task_type == "active" for dump in altered),
    }
    assert {(w.key, w.expected) for w in found.witnesses} == {(STRANGER, "nothing")}


def test_a_zombie_is_fenced_and_what_it_did_leaves_no_trace(tmp_path, cluster):
    assert run(a_trial("4.3.1", "PAUSED"), tmp_path, cluster)[0] == {}
    fault_outcome = fault_of(tmp_path)
    assert (fault_outcome.name, fault_outcome.bit) == ("pause", True)
    assert fault_outcome.observed["stopped_ms"] >= 7_000
    assert fault_outcome.observed["stood_still_ms"] >= 4_000  # by its own account, beyond its session
    assert fault_outcome.observed["taken_over"].keys() == set(fault_outcome.observed["tasks"])


@pytest.mark.night
def test_an_affected_release_loses_a_thread_on_resuming_standbys(tmp_path, cluster):
    outcome = run_once(a_trial("4.3.1", "TOPOLOGY_PAUSED"), tmp_path / "bad", cluster)
    assert "The changelog reader is not restoring active tasks (is STANDBY_UPDATING)" in outcome.failed
    assert Reading.read(TrialFolder(tmp_path / "bad").reader_file).anomalies == {"thread-died": 1}
    assert run(a_trial("3.7.2", "TOPOLOGY_PAUSED"), tmp_path / "good", cluster)[0] == {}
    proof = fault_of(tmp_path / "good").observed
    assert len(proof["standbys"]) == 1


@pytest.mark.parametrize("fault", ["disk-full", pytest.param("state-restored", marks=pytest.mark.night)])
def test_a_fault_of_the_disk_of_an_instance_leaves_no_trace(tmp_path, cluster, fault):
    assert run(a_trial("4.3.1", fault=fault), tmp_path, cluster)[0] == {}
    fault_outcome = fault_of(tmp_path)
    assert (fault_outcome.name, fault_outcome.bit) == (fault, True), fault_outcome.summary
    assert fault_outcome.observed["wiped"]
    assert fault_outcome.observed["processed_afterwards"] >= 200


def test_a_restarted_transaction_coordinator_loses_nothing(tmp_path):
    trial = a_trial("4.3.1", fault="broker-kill", nodes=3)
    assert run(trial, tmp_path)[0] == {}
    proof = fault_of(tmp_path).observed
    assert proof["partition"].startswith("__transaction_state-")
    assert proof["leader_after"] not in (None, proof["node"])
    assert proof["in_sync_after_ms"] > 0
    configs = [file.read_text() for file in sorted((tmp_path / "cluster").glob("node-?.properties"))]
    assert len(configs) == 3
    assert all("\nmin.insync.replicas=2\n" in config for config in configs)


@pytest.mark.toxiproxy
def test_an_instance_cut_off_from_its_coordinator_returns(tmp_path):
    assert run(a_trial("4.3.1", fault="partition"), tmp_path)[0] == {}
    proof = fault_of(tmp_path).observed
    assert proof["toxics"] == ["timeout-downstream", "timeout-upstream"]
    assert proof["answered_after_ms"] is None
    assert proof["swallowed_bytes"] > 0
    assert "timeout" in proof["logged"]
    assert proof["taken_over"] == proof["tasks"]


def test_a_lost_end_of_a_transaction_duplicates_nothing(tmp_path):
    to: dict[str, Any] = {"lost-answer.to": "EndTxn"}
    trial = a_trial("4.3.1", fault="lost-answer", **to)
    assert run(trial, tmp_path)[0] == {}
    proof = fault_of(tmp_path).observed
    [lost] = [event for event in read_timeline(tmp_path / "timeline.jsonl") if event["event"] == "answer"]
    assert (proof["request"]["api"], lost["api"], lost["instance"]) == ("EndTxn", 26, proof["instance"])
    assert f"{trial.key}-{proof['instance']}-" in proof["request"]["client"]  # each attempt has a run of its own
    assert proof["gave_up_ms"] > 0
    assert proof["passed_ms"] is None


@pytest.mark.night
def test_a_zombie_broker_stands_down_and_its_writes_do_not_count(tmp_path):
    leads: dict[str, Any] = {"broker-pause_leads": "changelog"}
    trial = a_trial("4.3.1", fault="broker-pause", nodes=3, **leads)
    assert run(trial, tmp_path)[0] == {}
    proof = fault_of(tmp_path).observed
    assert proof["partition"].partition("-changelog-")[1]
    assert proof["out_of_sync"]
    assert proof["stood_down_after_ms"] > 0


@pytest.mark.night
def test_leaders_move_while_records_flow_and_nothing_is_lost(tmp_path):
    trial = a_trial("4.3.1", fault="leader-election", nodes=3)
    assert run(trial, tmp_path)[0] == {}
    proof = fault_of(tmp_path).observed
    assert proof["stayed_in_sync"]
    [away, back] = [e["leaders"] for e in read_timeline(tmp_path / "timeline.jsonl") if e["event"] == "leaders"]
    assert back == {str(proof["node"]): proof["partitions_led"]}
    assert str(proof["node"]) not in away


@pytest.mark.night
@pytest.mark.parametrize(
    ("scenario", "variant", "streams", "anomalies"),
    [
        ("scan", "DEFAULT_CONFIG", "3.3.1", {"ghost-key"}),
        ("split-batch", "DEFAULT_CONFIG", "3.9.1", {"lost-record"}),
        ("corrupted-task", "DEFAULT_CONFIG", "3.6.1", {"stale-read", "wrong-store"}),
        ("as-of-join", "RESTARTED", "4.3.1", {"wrong-value"}),
        ("global-join", "DEFAULT_CONFIG", "3.9.1", {"lost-record", "torn-transaction"}),
        ("stream-join", "DEFAULT_CONFIG", "3.3.1", {"lost-alone", "early-alone"}),
        ("table-join", "DEFAULT_CONFIG", "4.1.2", {"wrong-value", "unexpected-record", "wrong-store"}),
        ("foreign-key-join", "LEFT", "3.8.1", {"wrong-value"}),
        ("foreign-key-join", "SAME_KEY", "3.9.1", {"unexpected-record"}),
        ("foreign-key-join", "SAME_KEY_CACHED", "4.4.0", {"unexpected-record"}),
        ("foreign-key-join", "REINSERTED", "3.8.1", {"unexpected-record"}),
        (
            "foreign-key-join",
            "DEFAULT_CONFIG",
            "3.3.1",
            {"lost-record", "unexpected-record", "wrong-value", "wrong-timestamp"},
        ),
    ],
)
def test_what_is_known_of_tables_shows_on_an_affected_release(tmp_path, cluster, scenario, variant, streams, anomalies):
    found, _ = run(a_trial(streams, variant, scenario=scenario), tmp_path, cluster, has_to_forget)
    assert found
    assert found.keys() <= anomalies


@pytest.mark.night
@pytest.mark.parametrize(
    ("scenario", "variant"),
    [("punctuators", "KILLED"), ("table-join", "DEFAULT_CONFIG"), ("windows", "REBALANCED")],
)
def test_a_fault_of_buffers_sums_and_windows_leaves_no_trace(tmp_path, cluster, scenario, variant):
    assert run(a_trial("4.3.1", variant, scenario=scenario), tmp_path, cluster)[0] == {}


@pytest.mark.night
@pytest.mark.parametrize("variant", ["SAME_KEY", "SAME_KEY_CACHED"])
def test_rows_that_change_twice_keep_no_result_before_the_fix(tmp_path, cluster, variant):
    anomalies, reason = run(a_trial("3.8.1", variant, scenario="foreign-key-join"), tmp_path, cluster)
    assert anomalies == {}
    assert re.search("twice; [1-9][0-9,]* answers were dropped", reason)


@pytest.mark.night
def test_a_killed_global_table_restarts_or_is_reported_dead(tmp_path, cluster):
    trial = a_trial("4.3.1", "KILLED", scenario="global-join")
    outcome = run_once(trial, tmp_path / "dead", cluster)
    assert outcome.failed.startswith("thread-died: instance-1: GlobalStreamThread died of ")
    assert "Tasks [-1_-1] are corrupted" in outcome.failed
    assert Reading.read(TrialFolder(tmp_path / "dead").reader_file).anomalies == {"thread-died": 1}
    assert run(a_trial("4.2.1", "KILLED", scenario="global-join"), tmp_path / "alive", cluster)[0] == {}


@pytest.mark.night
def test_a_task_whose_producer_gave_up_keeps_its_store(tmp_path, cluster):
    anomalies, reason = run(a_trial("4.3.1", "TIMED_OUT", scenario="at-least-once"), tmp_path, cluster)
    assert anomalies == {"false-after-true": 3_000}
    assert reason.startswith("Its producer gave up when 0 records of the changelog and 0 of the output were published")
    assert not Reading.read(TrialFolder(tmp_path).reader_file).unexplained


@pytest.mark.night
def test_a_timed_out_producers_task_gets_a_new_store_first(tmp_path, cluster):
    assert run(a_trial("3.7.2", "TIMED_OUT", scenario="at-least-once"), tmp_path, cluster)[0] == {}


@pytest.mark.night
def test_a_far_future_record_makes_a_thread_punctuate_forever(tmp_path, cluster):
    outcome = run_once(a_trial("4.2.1", scenario="far-future"), tmp_path, cluster)
    assert outcome.failed.startswith("stuck: instance-1: Waited 10 s for 5,001 records to be committed")
    assert outcome.exercised
    assert Reading.read(TrialFolder(tmp_path).reader_file).anomalies == {"stuck": 1}
    [spinning] = [e for e in read_timeline(tmp_path / "timeline.jsonl") if e["event"] == "spinning"]
    assert (spinning["at"], spinning["times"] > 1) == (2**63 - 2, True)


@pytest.mark.night
@pytest.mark.parametrize("variant", ["DEFAULT_CONFIG", "EXACTLY_ONCE"])
def test_a_broker_cannot_load_a_group_that_forgot_it_was_classic(tmp_path, variant):
    trial = a_trial("4.3.1", variant, scenario="migration")
    bad, good = (replace(trial, cell=replace(trial.cell, broker=Release.parse(b))) for b in ("4.2.0", "4.2.1"))
    anomalies, reason = run(bad, tmp_path / "bad")
    assert anomalies == {"stuck": 1}
    assert reason.startswith("stuck: instance-3: Waited 15 s for 200 records to be committed after the broker has")
    [refused] = [e for e in read_timeline(tmp_path / "bad" / "timeline.jsonl") if e["event"] == "refused"]
    assert refused["said"].startswith("Group onceproof.")
    anomalies, reason = run(good, tmp_path / "good")
    assert anomalies == {}
    assert re.search(r"in the order of their first: \d+ position, \d+ streams\.$", reason)


@pytest.mark.night
@pytest.mark.parametrize(("variant", "anomalies"), [("DEFAULT_CONFIG", {"wrong-value"}), ("UPGRADE_FROM", set())])
def test_a_roll_without_upgrade_from_makes_grouped_sums_wrong(tmp_path, cluster, variant, anomalies):
    found, reason = run(a_trial("3.4.1", variant, scenario="grouped-table", restart_on="4.3.1"), tmp_path, cluster)
    assert found.keys() == anomalies
    assert "The older release kept sums of what the newer one wrote." in reason


@pytest.mark.night
@pytest.mark.parametrize("variant", ["DEFAULT_CONFIG", "WINDOW"])
def test_a_crash_loses_records_on_the_affected_release(variant, tmp_path, cluster):
    anomalies, _ = run(a_trial("4.1.2", variant, scenario="crash"), tmp_path, cluster)
    assert anomalies["stale-checkpoint"] == anomalies["skipped-wipe"] == 1
    assert anomalies["lost-record"] == anomalies["uncommitted-state"] == anomalies["wrong-store"] > 2_000


@pytest.mark.night
def test_a_store_without_uncommitted_data_may_be_trusted(tmp_path, cluster):
    folder = TrialFolder(tmp_path)
    outcome = run_once(a_trial("4.3.1", "ROCKSDB_OWN_MEMORY", scenario="crash"), tmp_path, cluster)
    [reported] = [event for event in read_timeline(folder.timeline) if event["event"] == "initialised"]
    assert (reported["on_disk"], reported["how"]) == (0, "trusted")
    assert (outcome.exercised, outcome.all_steps_tried) == (False, True)
    assert Reading.read(folder.reader_file).anomalies == {}


@pytest.mark.night
@pytest.mark.parametrize(
    ("streams", "variant"),
    [
        ("3.6.2", "TWO_KILLS"),
        ("4.3.1", "ENUMERATOR"),
        ("4.3.1", "VERSIONED"),
        ("4.1.2", "STATE_UPDATER_DISABLED"),
        ("4.1.2", "DURING_RESTORATION"),
    ],
)
def test_a_crash_is_forgotten(streams, variant, tmp_path, cluster):
    assert run(a_trial(streams, variant, scenario="crash"), tmp_path, cluster)[0] == {}
    wiped = [e["how"] for e in read_timeline(tmp_path / "timeline.jsonl") if e["event"] == "initialised"]
    assert set(wiped) == {"wiped"}


def test_the_damage_follows_the_killed_release_into_an_upgrade(tmp_path, cluster):
    anomalies, _ = run(a_trial("4.1.2", scenario="crash", restart_on="4.3.1"), tmp_path, cluster)
    assert anomalies["lost-record"] > 2_000
    attested = Outcome.read(tmp_path / "outcome.json").attested
    assert [a["streams_version"] for a in attested.values()] == ["4.1.2", "4.1.2", "4.3.1"]


def test_two_releases_share_a_group_and_nothing_is_lost(tmp_path, cluster):
    assert run(a_trial("3.9.1", "ROLLING", restart_on="4.3.1"), tmp_path, cluster)[0] == {}
    proof = fault_of(tmp_path).observed
    mixed = [sorted(one["members"].values()) for one in proof["together"]]
    assert mixed == [["3.9.1", "4.3.1"]]
    assert proof["members"] == {"instance-1": "4.3.1", "instance-2": "4.3.1"}


@pytest.mark.night
def test_broker_assigned_tasks_return_and_ids_stay_unique(tmp_path):
    trial = a_trial("4.3.1", "STREAMS_PROTOCOL")
    trial = replace(trial, cell=replace(trial.cell, broker=Release(4, 3, 1)))
    assert run(trial, tmp_path)[0] == {}


@pytest.mark.night
def test_the_enumerator_continues_on_another_releases_state(tmp_path, cluster):
    by_chance = {"torn-transaction"}  # KAFKA-18943, on 3.4.1
    assert run(a_trial("3.3.1", restart_on="3.4.1"), tmp_path / "up", cluster)[0].keys() <= by_chance
    assert run(a_trial("3.4.1", restart_on="3.3.1"), tmp_path / "down", cluster)[0]["duplicate-id"] > 100


@pytest.mark.night
def test_a_throttled_producer_loses_its_transaction_if_affected(tmp_path, cluster):
    trial = a_trial("3.8.1", "SHORT_REQUEST_TIMEOUT", scenario="quota")
    anomalies = run(trial, tmp_path, cluster)[0].keys()
    assert (
        {"aborted-by-throttle"} <= anomalies <= {"aborted-by-throttle", "thread-died", "runaway-lag", "long-throttle"}
    )
    transactions = [
        w
        for w in Reading.read(tmp_path / "reader.json").witnesses
        if w.offsets[0].startswith("values-changelog/0@") and w.observed.startswith("aborted")
    ]
    assert {transaction.expected for transaction in transactions} == {"committed"}


@pytest.mark.night
def test_a_throttled_producer_keeps_its_transaction_if_fixed(tmp_path, cluster):
    trial = a_trial("3.9.1", "SHORT_REQUEST_TIMEOUT", scenario="quota", seconds=24)
    assert run(trial, tmp_path, cluster)[0] == {}


@pytest.mark.night
@pytest.mark.parametrize(
    ("variant", "expected"),
    [
        ("DEFAULT_CONFIG", {"false-after-true", "changelog-output-mismatch"}),
        ("OUTPUT_FIRST", {"duplicate-output", "changelog-output-mismatch"}),
        ("REBALANCE", {"false-after-true", "changelog-output-mismatch"}),
        ("EXACTLY_ONCE", set()),
        ("EXACTLY_ONCE_OUTPUT_FIRST", set()),
    ],
)
def test_at_least_once_parts_what_exactly_once_keeps_together(variant, expected, tmp_path, cluster):
    assert run(a_trial("3.9.1", variant, scenario="at-least-once"), tmp_path, cluster)[0].keys() == expected


@pytest.mark.night
def test_the_remedy_downstream_has_its_race(tmp_path, cluster):
    trial = a_trial("3.9.1", "DELETE_DOWNSTREAM", scenario="at-least-once")
    anomalies = run(trial, tmp_path, cluster)[0]
    assert anomalies.keys() & {"duplicate-output", "false-after-true"}
