"""A trial's plan is read from its file as it was planned, in every variant: the trial is driven and judged by it."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from onceproof.cli import trials
from onceproof.lab.cluster import EmbeddedCluster
from onceproof.lab.context import progress_of
from onceproof.lab.plan import ATOMICITY, check_capabilities, plan_of, reads_segments
from onceproof.model.capability import Capability
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.files import TrialPlan, TrialProgress
from onceproof.model.json_file import encode, write_json
from onceproof.model.release import Release
from onceproof.model.run_folder import TrialFolder
from onceproof.scenarios import CATALOGUE
from onceproof.scenarios.prepared import PreparedTrial
from tests.cases import check_each
from tests.conftest import HERE, a_trial
from tests.specimens.brokers import external_cluster

EXAMPLES = Path(__file__).parents[2] / "examples"
OURS = EmbeddedCluster(HERE, Release(3, 9, 1), "127.0.0.1:1", Path("brokers"))
VARIANTS = [(name, variant) for name, what in CATALOGUE.items() for variant in what.variants]


def test_hosts_are_those_that_external_brokers_advertise(monkeypatch):
    class Admin:
        def __init__(self, config):
            self.asked = config["bootstrap.servers"]

        def list_topics(self, timeout):
            assert timeout
            assert self.asked == "SSL://asked-for:9092,b:1"
            return SimpleNamespace(brokers={1: SimpleNamespace(host="advertised-7"), 2: SimpleNamespace(host="b")})

    monkeypatch.setattr("onceproof.lab.external_brokers.AdminClient", Admin)
    assert external_cluster("SSL://asked-for:9092,b:1").hosts() == ("advertised-7", "asked-for", "b")
    assert OURS.hosts() == ()


@check_each("scenario, variant", VARIANTS)
def test_a_plan_is_read_as_it_was_written(tmp_path, scenario, variant):
    plan = plan_of(PreparedTrial(a_trial("4.3.1", variant, scenario=scenario)), OURS)
    plan.write(tmp_path / "trial.json")
    assert TrialPlan.read(tmp_path / "trial.json") == plan


def test_group_settings_of_the_streams_protocol_go_to_brokers():
    plan = plan_of(PreparedTrial(a_trial("4.3.1", "STREAMS_PROTOCOL")), OURS)
    assert plan.group_config == {"streams.num.standby.replicas": "1", "streams.heartbeat.interval.ms": "200"}
    assert plan.streams_config["group.protocol"] == "streams"
    assert not {"num.standby.replicas", "main.consumer.heartbeat.interval.ms"} & plan.streams_config.keys()
    assert plan_of(PreparedTrial(a_trial("4.3.1")), OURS).group_config == {}


def test_what_is_not_looked_at_is_told_with_its_reason():
    trial = a_trial("4.3.1")
    ours, external = plan_of(PreparedTrial(trial), OURS), plan_of(PreparedTrial(trial), external_cluster())
    assert (reads_segments(ours), ours.not_looked_at) == (True, {})
    assert not reads_segments(external)
    assert external.not_looked_at.keys() == {*ATOMICITY, "internal-topics"}


def test_a_promise_beyond_these_brokers_says_what_it_needs():
    reported = plan_of(PreparedTrial(a_trial("4.3.1")), external_cluster()).not_looked_at
    assert set(reported.values()) == {
        "it needs to read the brokers' log segments, which these brokers do not allow",
        "it needs to read the configuration of topics, which these brokers do not allow",
    }
    at_least_once = plan_of(PreparedTrial(a_trial("4.3.1", scenario="at-least-once")), OURS).not_looked_at
    assert set(at_least_once.values()) == {"under at_least_once there are no transactions"}


@pytest.mark.parametrize(
    ("trial", "needed"),
    [
        (a_trial("4.3.1", scenario="at-least-once"), "to let a topic refuse records"),
        (a_trial("4.3.1", fault="partition"), "to disturb the link between an instance and a broker"),
        (a_trial("4.3.1", fault="broker-kill", nodes=3), "to kill or stop a broker"),
        (a_trial("4.3.1", fault="broker-pause", nodes=3), "to kill or stop a broker"),
        (a_trial("4.3.1", fault="leader-election", nodes=3), "to have other replicas elected as leaders"),
        (a_trial("4.3.1", "STREAMS_PROTOCOL"), "to set the configuration of a group"),
    ],
)
def test_given_brokers_refuse_what_our_own_ones_allow(trial, needed):
    check_capabilities(trial, OURS)
    with pytest.raises(UsageError, match=rf"needs {needed}.*127\.0\.0\.1:1 do not allow: leave out --brokers"):
        check_capabilities(trial, external_cluster())


@pytest.mark.parametrize("scenario", ["enumerator", "multirunner", "crash", "quota", "global-join", "scan"])
def test_the_other_scenarios_can_be_driven_on_given_brokers(scenario):
    check_capabilities(a_trial("4.3.1", scenario=scenario), external_cluster())


def test_no_session_is_shorter_than_the_brokers_take():
    trial = a_trial("4.3.1", scenario="crash")
    sessions = [
        plan_of(PreparedTrial(trial), cluster).streams_config["main.consumer.session.timeout.ms"]
        for cluster in (OURS, external_cluster())
    ]
    assert sessions == ["4000", "6000"]
    assert (
        plan_of(PreparedTrial(a_trial("4.3.1")), external_cluster()).streams_config["main.consumer.session.timeout.ms"]
        == "6000"
    )
    assert "main.consumer.session.timeout.ms" not in plan_of(PreparedTrial(a_trial("4.3.1")), OURS).streams_config


@pytest.mark.parametrize(
    "act",
    [lambda b: b.kill_node(1), lambda b: b.start_node(1), lambda b: b.dead_broker(), lambda b: b.segments_folder()],
)
def test_what_brokers_do_not_allow_is_never_done(act):
    assert OURS.capabilities == set(Capability)
    with pytest.raises(HarnessError, match="do not allow"):
        act(external_cluster())


def test_a_topic_of_theirs_is_left_alone():
    """An application whose topics do not bear the trial's id: those of that name would be deleted."""
    trial = a_trial("4.3.1", scenario="app", application=str(EXAMPLES / "orders"))
    assert plan_of(PreparedTrial(trial), OURS).topic("orders") == "orders"
    with pytest.raises(HarnessError, match=r"^orders may be in use at 127\.0\.0\.1:1: it is left alone"):
        plan_of(PreparedTrial(trial), external_cluster())
    on_external = replace(trial, cell=replace(trial.cell, broker=trial.cell.broker.claimed))
    assert plan_of(PreparedTrial(on_external), external_cluster()).topic("orders") == on_external.topic("orders")


def test_external_brokers_are_checked_once_before_the_drive(tmp_path, monkeypatch):
    done = []

    def run_alone(_trial, _folder, brokers, _report):
        done.append(("driven on", brokers.bootstrap_servers))
        raise HarnessError("It ends here.")

    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=127.0.0.1:1")
    monkeypatch.setattr("onceproof.cli.trials.cell_of", lambda *_: (a_trial("4.3.1").cell, {}))
    monkeypatch.setattr(
        "onceproof.lab.external_brokers.check_access",
        lambda external_cluster, _: done.append(("asked", external_cluster.bootstrap_servers)),
    )
    monkeypatch.setattr("onceproof.lab.external_brokers.lend", lambda external_cluster, _: external_cluster)
    monkeypatch.setattr("onceproof.lab.trial.run_alone", run_alone)
    with pytest.raises(HarnessError, match="It ends here"):
        trials.trial("enumerator", streams="4.3.1", brokers=file)
    assert done == [("asked", "127.0.0.1:1"), ("driven on", "127.0.0.1:1")]


def test_progress_of_an_older_trial_is_read_from_its_plan(tmp_path):
    folder = TrialFolder(tmp_path)
    assert progress_of(folder) == TrialProgress()
    plan = plan_of(PreparedTrial(a_trial("4.3.1")), OURS)
    write_json(folder.trial_file, {**encode(plan), "seconds": {"provision": 0.4}})
    assert progress_of(folder) == TrialProgress({"provision": 0.4})
    assert TrialPlan.read(folder.trial_file).trial == plan.trial
    progress_of(folder).and_then("preload", 1.5).write(folder.progress_file)
    assert progress_of(folder) == TrialProgress({"provision": 0.4, "preload": 1.5})
