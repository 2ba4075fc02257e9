"""KAFKA-20254: what is sent, which brokers are to blame, and where it cannot be run."""

import pytest

from onceproof.campaigns.verify_fix.verbs import issue_of
from onceproof.model.cell import Cell
from onceproof.model.errors import UsageError
from onceproof.model.known_issues import registry
from onceproof.model.matrix import Request, with_controls
from onceproof.model.release import Release
from onceproof.scenarios import CATALOGUE
from onceproof.scenarios.base import partition_of_key
from onceproof.scenarios.migration import PARTITIONS, SCENARIO, config, workload
from tests.conftest import a_trial
from tests.present import present
from tests.published import expanded


def cell(broker, streams="4.3.1", variant="DEFAULT_CONFIG"):
    return Cell("migration", variant, Release.parse(streams), Release.of_brokers(broker))


def test_only_the_last_partition_has_records_during_compaction():
    trial = a_trial("4.3.1", scenario="migration", committed=20, flow=30, rest=10)
    made = workload(trial)
    keys = [key for key, _ in (*made.first, *made.second)]
    assert len(set(keys)) == len(keys) == 60
    parts = keys[:20], keys[20:50], keys[50:]
    assert [{partition_of_key(key, PARTITIONS) for key in part} for part in parts] == [{0, 1}, {1}, {0, 1}]
    assert made == workload(trial)


def test_the_group_stays_classic_where_it_does_not_migrate():
    assert config(a_trial("4.3.1", scenario="migration"))["group.protocol"] == "streams"
    assert config(a_trial("4.3.1", "NOT_MIGRATED", scenario="migration"))["group.protocol"] == "classic"


@pytest.mark.parametrize("streams", ["4.2.0", "4.3.1"])
def test_the_broker_is_to_blame_whatever_kafka_streams_runs(streams):
    affected = {broker: bool(registry().affecting(cell(broker, streams))) for broker in ("4.2.0", "4.2.1", "4.3.1")}
    assert affected == {"4.2.0": True, "4.2.1": False, "4.3.1": False}
    [issue] = [issue for issue in registry().issues if issue.key == "KAFKA-20254"]
    assert not issue.is_in(Release.parse("4.2.0"))


def test_its_control_is_on_the_broker_that_is_to_blame():
    asked = expanded(Request(scenarios=("migration",), brokers=("4.3.1",), variants=("EXACTLY_ONCE",)))
    assert {str(one.broker) for one in asked.cells} == {"4.3.1"}
    more = with_controls(asked, CATALOGUE, registry()).cells
    assert [one.key for one in more if one not in asked.cells] == ["migration-EXACTLY_ONCE-s4.3.1-b4.2.0"]


def test_the_matrix_known_has_it_on_the_brokers_at_its_boundary():
    cells = [one for one in expanded(Request("known")).cells if one.scenario == "migration"]
    assert [(str(one.streams), str(one.broker)) for one in cells] == [("4.4.0", "4.2.0"), ("4.4.0", "4.2.1")]


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (cell("3.9.1"), "a broker of Kafka 3.9.1 lacks group.protocol=streams"),
        (cell("4.3.1", "3.9.1"), "Kafka Streams 3.9.1 lacks group.protocol=streams"),
        (cell("4.3.1-claimed"), "only brokers that Onceproof starts allow"),
    ],
)
def test_where_it_cannot_be_run(one, reason):
    assert reason in present(SCENARIO.refuse(one))


def test_no_build_of_kafka_streams_can_have_its_fix():
    with pytest.raises(UsageError, match=r"KAFKA-20254 is one of brokers, .* `onceproof trial migration`"):
        issue_of("KAFKA-20254")
