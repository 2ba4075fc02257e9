"""What is promised of an application whatever happens to it is judged in its runs without a fault, too."""

import json
from dataclasses import replace

import pytest

from onceproof.campaigns.application.promises import find_excuse, is_changed_by_restart, judge_without_fault
from onceproof.model.files import Declared, Reading, TopicPlan
from onceproof.model.oracle import Oracle, Outputs
from onceproof.model.record import Record
from onceproof.model.run_folder import RunFolder
from onceproof.readers.application import as_replayed, oracle_of
from onceproof.readers.kafka import token
from tests.conftest import a_run_id, a_trial
from tests.model.test_application_issues import DEDUP, JOIN, topology_of
from tests.model.test_topology import OWN, ROCKSDB, WITH_TABLE
from tests.specimens.files import a_plan, a_reading, an_outcome

CACHED = topology_of(OWN, kinds={"seen": ("MeteredKeyValueStore", "CachingKeyValueStore", *ROCKSDB[1:])})
CLEAN = [("a", "1"), ("b", "2")]
STALE = [("a", "1"), ("b", "2"), ("c", "9")]
OUT = Declared("out", "output", "string", "string", ("replay",), compare="final")


def outputs(pairs):
    return Outputs.of(
        {
            "out": [
                Record(0, 3 + n, token(k.encode(), "string"), token(v.encode(), "string"))
                for n, (k, v) in enumerate(pairs)
            ]
        }
    )


@pytest.fixture
def judged(tmp_path):
    """What is found in two runs without a fault that put this out, where this is replayed."""

    def judge(first, second, *restarted, replayed=CLEAN, out=OUT, topology=JOIN, exactly=1):
        run = RunFolder(tmp_path / a_run_id())
        put_outs = (first, second, *restarted)
        trials = [replace(a_trial("4.4.0", scenario="app"), run=run.run_id, number=n + 1) for n in range(len(put_outs))]
        trials = [
            replace(one, cell=replace(one.cell, variant="DEFAULT_CONFIG"), parameters={"application": FOLDER})
            for one in trials
        ]
        for trial, put_out in zip(trials, put_outs, strict=True):
            folder = run.trial(trial)
            folder.path.mkdir(parents=True)
            a_plan(trial, roles={"out": TopicPlan("out", 4, declared=out)}).write(folder.trial_file)
            an_outcome(trial, facts={"exactly_once": exactly}).write(folder.outcome_file)
            outputs(put_out).write(folder.outputs_file)
            a_reading().write(folder.reader_file)
            folder.timeline.write_text(json.dumps({"source": "instance-1", **topology}) + "\n")
        oracle = oracle_of(outputs(first), outputs(second), {"out": out})
        oracle = replace(oracle, replayed=outputs(replayed), as_replayed=as_replayed(oracle, {"out": out}))
        vars(judge)["changed"] = is_changed_by_restart(run.trial(trials[0]), oracle)
        found = judge_without_fault(run, trials, oracle)
        assert [Reading.read(run.trial(trial).reader_file) for trial in trials] == found  # it is written down, too
        return found, find_excuse(run.trial(trials[0]), oracle)

    return judge


FOLDER = "examples/foreign-key-join"


@pytest.fixture(autouse=True)
def _at_the_project(project, monkeypatch):
    monkeypatch.chdir(project)


def test_a_replay_broken_in_every_run_is_red_though_runs_agree(judged):
    (first, second), _ = judged(STALE, STALE)
    assert first.anomalies == second.anomalies == {"unexpected-record": 1}
    assert first.promises["replay"] == 3
    assert first.witnesses[0].offsets == ("out/0@5",)
    assert not first.unexplained  # a foreign-key join of 4.4.0 keeps such results


def test_and_though_they_agree_on_nothing(judged):
    (first, second), _ = judged([*STALE, ("d", "1")], STALE)
    assert first.anomalies == {"unexpected-record": 2}
    assert second.anomalies == {"unexpected-record": 1, "unstable-final": 1}


def test_what_is_as_replayed_in_both_runs_is_well(judged):
    (first, second), excuse = judged(CLEAN, CLEAN[::-1])
    assert (first.anomalies, second.anomalies, excuse) == ({}, {}, None)
    assert first.promises["replay"] == second.promises["replay"] == 2


def test_unexplained_differences_of_final_values_are_red(judged):
    out = replace(OUT, promises=("differential",))
    (first, second), excuse = judged(CLEAN, [("a", "1"), ("b", "3")], out=out, topology=DEDUP)
    assert (first.anomalies, second.anomalies, excuse) == ({}, {"unstable-final": 1}, None)
    assert second.unexplained == {"unstable-final": 1}
    assert (second.witnesses[0].expected, second.witnesses[0].observed) == ("'b': '2'", "'b': '3'")


def test_and_told_where_a_join_may_have_done_it(judged):
    out = replace(OUT, promises=("differential",))
    by_order = topology_of(WITH_TABLE, sources=("orders", "rates"))
    (_, second), excuse = judged(CLEAN, [("a", "1"), ("b", "3")], out=out, topology=by_order)
    assert second.anomalies == {}
    assert excuse.startswith("Final values of out differ without a fault, which may come of a stream-table join")


def test_final_values_may_differ_if_unknown_or_not_transactional(judged, tmp_path):
    out = replace(OUT, promises=("differential",))
    (_, second), excuse = judged(CLEAN, [("a", "1"), ("b", "3")], out=out, topology={"t": 1, "event": "state"})
    assert second.anomalies == {}
    assert "is not known" in excuse


def test_under_at_least_once_final_values_may_differ(judged):
    out = replace(OUT, promises=("differential",))
    (_, second), _ = judged(CLEAN, [("a", "1"), ("b", "3")], out=out, topology=DEDUP, exactly=0)
    assert second.anomalies == {}


def test_an_oracle_is_written_with_how_far_it_is_replayed(tmp_path):
    file = tmp_path / "oracle.json"
    oracle = Oracle(outputs(CLEAN), {"out": "keys"}, as_replayed={"out": "final"})
    oracle.write(file)
    assert Oracle.read(file) == oracle


RECORDS = replace(OUT, promises=("differential",), compare="records")
TWICE = [("a", "0"), *CLEAN]


def test_damage_of_a_clean_restart_shows_against_two_plain_runs(judged):
    found, _ = judged(CLEAN, CLEAN, STALE, out=RECORDS, topology=DEDUP)
    assert [one.anomalies for one in found] == [{}, {}, {"unexpected-record": 1}]
    assert found[2].promises["differential"] == 3
    (_, _, same), _ = judged(CLEAN, CLEAN, CLEAN, out=RECORDS, topology=DEDUP)
    assert (same.anomalies, same.promises["differential"]) == ({}, 2)


def test_damage_that_restart_and_replay_both_show_is_one_witness(judged):
    both = replace(OUT, promises=("differential", "replay"))
    (_, _, restarted), _ = judged(CLEAN, CLEAN, [("a", "1"), ("b", "7")], out=both, topology=DEDUP)
    assert restarted.anomalies == {"wrong-value": 1}
    assert (restarted.promises["differential"], restarted.promises["replay"]) == (2, 2)
    (_, _, restarted), _ = judged(CLEAN, CLEAN, [("a", "1")], out=both, replayed=CLEAN[:1], topology=DEDUP)
    assert restarted.anomalies == {"lost-record": 1}
    (_, _, restarted), _ = judged(CLEAN, CLEAN, [("a", "1"), ("b", "2")], out=both, replayed=STALE, topology=DEDUP)
    assert restarted.anomalies == {"lost-record": 1}  # of `c`, which only the replay has


def test_what_differs_each_time_is_not_held_against_a_restart(judged):
    (_, _, restarted), _ = judged(
        CLEAN, [("a", "1"), ("b", "3")], [("a", "1"), ("b", "9")], out=RECORDS, topology=DEDUP
    )
    assert restarted.anomalies == {}  # only the keys are the same each time
    (_, _, restarted), _ = judged(CLEAN, [("a", "1"), ("b", "3")], [("a", "1")], out=RECORDS, topology=DEDUP)
    assert restarted.anomalies == {"lost-record": 1}


@pytest.mark.parametrize(
    ("out", "topology", "second", "changed"),
    [
        (RECORDS, DEDUP, CLEAN, False),
        (RECORDS, DEDUP, TWICE, True),
        (RECORDS, CACHED, TWICE, False),  # a cache that is closed puts out what it held back
        (RECORDS, CACHED, STALE, True),
        (replace(RECORDS, compare="final"), DEDUP, TWICE, False),
        (replace(RECORDS, compare="keys"), DEDUP, STALE, True),
        (OUT, DEDUP, STALE, False),  # nothing is said about other runs
    ],
)
def test_a_difference_by_the_restart_shows_where_none_is_allowed(judged, out, topology, second, changed):
    judged(CLEAN, second, out=out, topology=topology)
    assert judged.changed is changed
