"""What is planned of a trial is read from its file as it was planned, in every variant: it is driven and judged by that."""

from pathlib import Path

import pytest

from onceproof.lab.cluster import Cluster, EmbeddedCluster
from onceproof.lab.plan import ATOMICITY, plan_of, reads_segments
from onceproof.model.files import TrialPlan
from onceproof.model.release import Release
from onceproof.scenarios import CATALOGUE
from tests.conftest import a_trial

OURS = EmbeddedCluster(Release(3, 9, 1), "127.0.0.1:1", Path("brokers"), ())
VARIANTS = [(name, variant) for name, what in CATALOGUE.items() for variant in what.variants]


@pytest.mark.parametrize(("scenario", "variant"), VARIANTS)
def test_a_plan_is_read_as_it_was_written(tmp_path, scenario, variant):
    plan = plan_of(a_trial("4.3.1", variant, scenario=scenario), OURS)
    plan.write(tmp_path / "trial.json")
    assert TrialPlan.read(tmp_path / "trial.json") == plan


def test_what_belongs_to_the_group_under_the_streams_protocol_is_told_to_the_brokers_and_not_to_clients():
    plan = plan_of(a_trial("4.3.1", "STREAMS_PROTOCOL"), OURS)
    assert plan.group_config == {"streams.num.standby.replicas": "1", "streams.heartbeat.interval.ms": "200"}
    assert plan.streams_config["group.protocol"] == "streams"
    assert not {"num.standby.replicas", "main.consumer.heartbeat.interval.ms"} & plan.streams_config.keys()
    assert plan_of(a_trial("4.3.1"), OURS).group_config == {}


def test_what_is_not_looked_at_is_told_with_its_reason():
    trial = a_trial("4.3.1")
    ours, external = plan_of(trial, OURS), plan_of(trial, Cluster(Release(3, 9, 1), "127.0.0.1:1"))
    assert (reads_segments(ours), ours.not_looked_at) == (True, {})
    assert not reads_segments(external)
    assert external.not_looked_at.keys() == set(ATOMICITY)
