"""KAFKA-19208: the independent reader's judgement on the specimens, and what is generated and refused."""

import pytest

from onceproof.cli.asking import cell_of
from onceproof.model.errors import UsageError
from onceproof.model.record import Record
from onceproof.scenarios.global_join import NO_KEY, SCENARIO, workload
from tests.conftest import a_trial


def of_records(specimen):
    topics = {role: [Record(*record) for record in records] for role, records in specimen.topics.items()}
    return topics, specimen.facts


def test_entries_come_first_and_other_records_have_own_keys():
    made = workload(a_trial("4.3.1", scenario="global-join", keys=50, records=400))
    assert all(value < 0 for _, value in made.first)
    assert {key for key, _ in made.first} <= set(range(50))
    assert [key for key, _ in made.second] == list(range(50, 450))
    assert {value for _, value in made.second} == {NO_KEY, *range(1, 51)}
    assert made == workload(a_trial("4.3.1", scenario="global-join", keys=50, records=400))


def test_nobody_asks_for_no_key_in_the_control():
    made = workload(a_trial("4.3.1", "NO_NULL_KEY", scenario="global-join"))
    assert NO_KEY not in {value for _, value in made.second}


def test_a_share_of_more_than_all_is_refused():
    with pytest.raises(UsageError, match=r"no\.key is 1\.5, but must be from 0 to 1: share of"):
        SCENARIO.validate(a_trial("4.3.1", scenario="global-join", no_key=1.5))


def test_a_table_has_no_processor_that_adds():
    with pytest.raises(UsageError, match=r"added=5 is what a global store's processor adds; set table=global-store"):
        SCENARIO.validate(a_trial("4.3.1", scenario="global-join", added=5))
    SCENARIO.validate(a_trial("4.3.1", scenario="global-join", added=5, table="global-store"))


@pytest.mark.parametrize(("streams", "refused"), [("3.6.2", True), ("3.7.0", False), ("4.3.1", False)])
def test_releases_that_drop_such_records_by_contract_are_refused(streams, refused):
    refusal = SCENARIO.refuse(a_trial(streams, scenario="global-join").cell)
    assert bool(refusal) is refused
    assert refusal is None or "drops records that ask for no key by contract (KIP-962); choose 3.7.0" in refusal


def test_a_global_store_promises_its_entries_on_all_releases():
    assert SCENARIO.refuse(a_trial("3.0.0", "GLOBAL_STORE", scenario="global-join").cell) is None


def test_a_command_goes_by_what_is_set_and_not_by_the_variant(monkeypatch):
    for what in ("artifacts.check_published", "artifacts.streams_class_path", "java.require_java"):
        monkeypatch.setattr(f"onceproof.lab.{what}", lambda *_: None)
    asked = ("3.6.2", "3.9.1", None)
    assert cell_of("global-join", "DEFAULT_CONFIG", *asked, ["table=global-store"])[1] == {"table": "global-store"}
    with pytest.raises(UsageError, match="drops records that ask for no key"):
        cell_of("global-join", "GLOBAL_STORE", *asked, ["table=global-table"])
    assert cell_of("global-join", "GLOBAL_STORE", *asked, ["table=global-store"])[1] == {}  # it is so anyway


def test_promises_of_a_global_store_follow_the_trials_own_table():
    SCENARIO.validate(a_trial("3.0.0", scenario="global-join", table="global-store"))
    with pytest.raises(UsageError, match=r"cannot be run: Kafka Streams 3\.0\.0 drops records that ask for no key"):
        SCENARIO.validate(a_trial("3.0.0", "GLOBAL_STORE", scenario="global-join", table="global-table"))


def test_its_application_is_not_restarted_on_another_release():
    refusal = SCENARIO.refuse(a_trial("4.3.1", scenario="global-join", restart_on="4.2.0").cell)
    assert refusal == "the application of global-join is not restarted; leave out the release 4.2.0 to restart on."
