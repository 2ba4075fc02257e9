"""Trials on real brokers: the bug where it is, nothing where it is not, and one sentence for whatever can fail."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from itertools import product

import psutil
import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from jsonschema import validate
from rich.console import Console

from onceproof.demo import Act, play
from onceproof.lab import trial_lab
from onceproof.lab.cluster import EmbeddedCluster
from onceproof.lab.external_brokers import ExternalCluster
from onceproof.lab.limits import LabLimits
from onceproof.lab.ticker import MISSED
from onceproof.lab.trial import _explain_errors, drive, preload, provision, run_trial
from onceproof.model.errors import HarnessError
from onceproof.model.files import Outcome, Reading
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder, TrialFolder
from onceproof.page.report import write_trials
from onceproof.processes.waiting import await_condition
from onceproof.scenarios import SCENARIOS, enumerator
from onceproof.scenarios.prepared import PreparedTrial
from tests.conftest import HERE, a_trial, undisturbed
from tests.homes import ask_living, has_ended
from tests.present import present
from tests.published import NEWEST
from tests.specimens.brokers import external_cluster

pytestmark = pytest.mark.broker
STANDSTILL = MISSED + 1.0  # seconds


def running() -> set[psutil.Process]:
    states = ask_living(lambda p: (p, p.status()), psutil.Process().children(recursive=True))
    return {process for process, state in states if state != psutil.STATUS_ZOMBIE}


def test_the_affected_release_is_caught(tmp_path, cluster):
    def attempt() -> tuple[RunFolder, Act]:
        trial = a_trial("3.4.0")
        run = RunFolder(tmp_path / trial.run)
        return run, play(trial, run, cluster, lambda _: None)

    run, act = undisturbed(attempt, lambda result: result[1].outcome.void)
    found = act.reading
    assert act.outcome.exercised, act.outcome.reason
    assert found.anomalies["duplicate-id"] > 100
    assert not found.unexplained  # all of it is KAFKA-14172
    assert found.ids + found.anomalies["duplicate-id"] == found.records == 63_000
    assert not act.folder.state.exists()
    console = Console(record=True, width=80)
    console.print(*act.show())
    assert re.search(r"ID [\d,]+ was given to \d+ keys", " ".join(console.export_text().split()))  # wherever it wraps
    write_trials(run, "A trial", [act.trial], tmp_path / "page.html")
    assert "was active here, then standby, then active again" in (tmp_path / "page.html").read_text()


def test_the_fixed_release_is_green_on_an_external_cluster(tmp_path, cluster):
    external = external_cluster(cluster.bootstrap_servers)
    outcome = undisturbed(lambda: run_trial(a_trial("4.3.1"), TrialFolder(tmp_path), cluster=external))
    assert outcome.exercised, outcome.reason
    assert Reading.read(tmp_path / "reader.json").anomalies == {}
    dumps = [(dump.store, dump.partition, dump.task_type) for dump in TrialFolder(tmp_path).dumps()]
    assert sorted(dumps) == sorted(product(("counter", "ids"), (0, 1), ("active", "standby")))
    attested = outcome.attested["instance-1"]
    assert attested["streams_version"] == attested["clients_version"] == "4.3.1"
    assert attested["clients_commit"]


@pytest.mark.night
def test_where_no_lag_is_acceptable_no_task_comes_back(tmp_path, cluster):
    folder = TrialFolder(tmp_path)
    outcome = undisturbed(lambda: run_trial(a_trial("3.3.1", "NO_LAG_ACCEPTABLE"), folder, cluster=cluster))
    assert not outcome.exercised
    assert outcome.all_steps_tried
    assert Reading.read(tmp_path / "reader.json").anomalies == {}


def test_a_broker_that_dies_mid_trial_ends_it_with_a_sentence(tmp_path):
    before = running()
    own = EmbeddedCluster.start(HERE, Release.parse("3.9.1"), tmp_path / "cluster")
    reached = threading.Event()

    def report(phase: str) -> None:
        if phase == "rebalance":
            reached.set()
            own.nodes[0].kill()

    try:
        with pytest.raises(HarnessError, match=r"A broker of Kafka 3\.9\.1 ended"):
            run_trial(a_trial("3.4.1"), TrialFolder(tmp_path / "t"), report, cluster=own)
    finally:
        own.stop()
    assert reached.is_set()
    assert "ended" in present(Outcome.read(tmp_path / "t" / "outcome.json").error)
    assert not (tmp_path / "t" / "reader.json").exists()
    assert running() <= before


def test_a_broker_that_loses_connections_before_it_dies_is_named():
    class Dying(ExternalCluster):
        looks = 0

        def check_alive(self):
            Dying.looks += 1
            if Dying.looks == 3:
                raise HarnessError("A broker ended.")

    cluster = Dying(HERE, Release.parse("3.9.1"), external_cluster().properties)
    with pytest.raises(HarnessError, match="A broker ended"), _explain_errors(cluster):
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))


def test_an_instance_that_throws_in_its_topology_is_an_error(tmp_path, cluster, monkeypatch):
    def broken(trial):
        return {**enumerator.app(trial), "partitions": 0}

    throwing = replace(enumerator.SCENARIO, app=broken)
    monkeypatch.setitem(SCENARIOS._declared, "enumerator", (throwing, enumerator.__name__))
    with pytest.raises(HarnessError, match=r"instance-1 \(Kafka Streams 3\.4\.1\) failed"):
        run_trial(a_trial("3.4.1"), TrialFolder(tmp_path), cluster=cluster)
    assert Outcome.read(tmp_path / "outcome.json").error


def run_with_corrupt_record(trial, role, folder, cluster):
    prepared = PreparedTrial(trial)
    plan = provision(prepared, cluster, folder)
    preload(prepared, plan, cluster, folder)
    producer = Producer(cluster.client())
    producer.produce(trial.topic(role), partition=0, key=b"seven b", value=b"....")
    assert producer.flush(10) == 0
    return drive(prepared, plan, cluster, folder)


def witnesses(folder):
    return {w.anomaly: w for w in Reading.read(folder.reader_file).witnesses}


def test_an_undecodable_record_is_a_witness(tmp_path, cluster):
    folder = TrialFolder(tmp_path)
    outcome = undisturbed(
        lambda: run_with_corrupt_record(a_trial("4.3.1", "CACHING_DISABLED"), "output", folder, cluster)
    )
    assert outcome.failed is None
    # It was sent outside of any transaction, which is true as well.
    assert Reading.read(folder.reader_file).anomalies == {"corrupt-record": 1, "torn-transaction": 1}
    assert witnesses(folder)["torn-transaction"].offsets == ("output/0@0",)
    found = witnesses(folder)["corrupt-record"]
    assert found.offsets == ("output/0@0",)
    assert found.observed == "the key has 7 bytes, a 4-byte integer was expected"


def test_a_dead_thread_is_a_witness_and_committed_data_is_judged(tmp_path, cluster):
    folder = TrialFolder(tmp_path)
    outcome = undisturbed(lambda: run_with_corrupt_record(a_trial("4.3.1"), "input", folder, cluster))
    found = Reading.read(folder.reader_file)
    assert present(outcome.failed).startswith("thread-died: instance-1: ")
    assert (outcome.error, outcome.exercised) == (None, False)
    assert found.anomalies == {"corrupt-record": 1, "thread-died": 1}
    # The input is judged as far as it was committed, and nothing is wrong up to there.
    assert (
        found.records
        == found.outputs
        == sum(end for fact, end in outcome.facts.items() if fact.startswith("input_end/"))
    )
    assert "IntegerDeserializer" in witnesses(folder)["thread-died"].observed
    assert folder.state.exists()  # evidence


def test_a_drain_without_progress_is_stuck_with_thread_dumps(tmp_path, monkeypatch):
    monkeypatch.setattr(trial_lab, "PATIENCE", 5.0)
    monkeypatch.setattr(LabLimits, "alter_topic", never_healed)
    own = EmbeddedCluster.start(HERE, Release.parse("3.9.1"), tmp_path / "cluster")
    folder = TrialFolder(tmp_path / "t")
    try:
        outcome = undisturbed(lambda: run_trial(a_trial("4.3.1", scenario="at-least-once"), folder, cluster=own))
    finally:
        own.stop()
    stuck = witnesses(folder)["stuck"]
    assert present(outcome.failed).startswith("stuck: instance-1: Waited 5 s for more than ")
    assert "to be committed" in stuck.expected
    [dump] = folder.threads.iterdir()
    assert "StreamThread-1" in dump.read_text()
    assert "lost-record" not in Reading.read(folder.reader_file).anomalies  # what was not committed is not missed


def never_healed(self, role, **config):
    if config["min_insync_replicas"] == "2":
        self._context.topics.alter(self._context.trial.topic(role), {"min.insync.replicas": "2"})


def test_an_instance_that_was_given_no_time_voids_the_trial(tmp_path, cluster):
    def report(phase):
        if phase == "rebalance":
            commands = ask_living(lambda p: (p.pid, p.name(), p.cmdline()), running())
            pid = next(pid for pid, name, words in commands if "java" in name and "onceproof.streams.Main" in words)
            os.kill(pid, signal.SIGSTOP)
            threading.Timer(STANDSTILL, os.kill, (pid, signal.SIGCONT)).start()

    folder = TrialFolder(tmp_path)
    outcome = run_trial(a_trial("4.3.1"), folder, report, cluster=cluster)
    assert present(outcome.void).startswith("The machine stood still for ")
    assert (outcome.exercised, outcome.error) == (False, None)
    assert Reading.read(folder.reader_file).anomalies == {}


def test_releases_run_side_by_side_on_clusters_of_several_nodes(tmp_path):
    oldest = EmbeddedCluster.start(HERE, Release.parse("3.0.0"), tmp_path / "old")
    newest = EmbeddedCluster.start(HERE, NEWEST, tmp_path / "new", nodes=2)
    again = EmbeddedCluster.from_dict(HERE, json.loads(json.dumps(newest.to_dict())))
    try:
        again.check_alive()
        assert len(again.bootstrap_servers.split(",")) == 2
    finally:
        oldest.stop()
        again.stop()
    assert not any(node.alive() for node in (*oldest.nodes, *again.nodes))
    assert list(tmp_path.glob("*/data-*")) == []


def test_a_driver_that_was_given_no_time_says_so(tmp_path, project):
    environment = {**os.environ, "ONCEPROOF_HOME": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    (tmp_path / "artifacts").symlink_to(project / ".onceproof" / "artifacts")
    driver = subprocess.Popen(
        [sys.executable, "-m", "onceproof.cli", "trial", "enumerator", "--streams", "3.4.1", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert next((line for line in present(driver.stderr) if "sync" in line), None)
    driver.send_signal(signal.SIGSTOP)
    threading.Timer(STANDSTILL, driver.send_signal, (signal.SIGCONT,)).start()
    said, _ = driver.communicate(timeout=120)
    assert driver.returncode == 3
    validate(json.loads(said), json.loads((project / "docs" / "schemas" / "trial-2.json").read_text()))
    assert "The machine stood still for " in json.loads(said)["reason"]
    assert "(driver)" in json.loads(said)["reason"]


def test_sigkill_of_the_driver_leaves_no_process(tmp_path, project):
    environment = {**os.environ, "ONCEPROOF_HOME": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    # The resolved class paths are shared, so that nothing is resolved here.
    (tmp_path / "artifacts").symlink_to(project / ".onceproof" / "artifacts")
    driver = subprocess.Popen(
        [sys.executable, "-m", "onceproof.cli", "trial", "enumerator", "--streams", "3.4.1"],
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    seen = next((line for line in present(driver.stderr) if "sync" in line), None)
    assert seen
    started = psutil.Process(driver.pid).children(recursive=True)
    assert sum("java" in name for name in ask_living(psutil.Process.name, started)) >= 2
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    await_condition(
        "all processes to be gone",
        lambda: all(map(has_ended, started)),
        timeout=10,
    )
