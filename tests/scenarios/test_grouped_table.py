"""KIP-904: the independent reader's judgement on the specimens, what is generated, and what counts as mixed."""

from typing import Any

import pytest

from onceproof.faults.rolling_bounce import UPGRADE_FROM
from onceproof.model.files import FaultOutcome
from onceproof.model.record import Record
from onceproof.readers.checks import check_grouped_table as check
from onceproof.scenarios.grouped_table import SCENARIO, is_mixed, thirds, workload
from tests.conftest import a_trial
from tests.specimens.grouped_table import HEALTHY, found


def judged(topics, facts):
    return check({role: [Record(*record) for record in records] for role, records in topics.items()}, facts)


@pytest.mark.parametrize(
    ("timestamp", "anomalies"),
    [pytest.param(108, [], id="the youngest"), pytest.param(105, ["wrong-timestamp"], id="the last")],
)
def test_a_sum_is_as_old_as_the_youngest_record_of_its_group(timestamp, anomalies):
    inputs = [(0, 0, 1, 10, 102), (0, 1, 101, 20, 108), (0, 2, 1, 11, 105)]
    judgement = judged({"input": inputs, "output": [(0, 0, 1, 31, timestamp)]}, HEALTHY.facts)
    assert judgement.witnesses == [found("wrong-timestamp", 1, "output/0@0", "108", "105") for _ in anomalies]


def test_each_key_has_a_value_before_it_changes():
    asked: dict[str, Any] = {"keys": 300, "records": 2_000}
    made = workload(a_trial("3.4.1", scenario="grouped-table", restart_on="4.3.1", **asked))
    assert [key for key, _ in made.first] == list(range(300))
    assert {key for key, _ in made.second} <= set(range(300))
    assert len(made.second) == 2_000
    assert made == workload(a_trial("3.4.1", scenario="grouped-table", restart_on="4.3.1", **asked))


@pytest.mark.parametrize(
    ("releases", "variant", "parameters", "reason"),
    [
        (("3.4.1", "4.3.1"), "DEFAULT_CONFIG", {}, None),
        (("3.4.1", "3.5.0"), "DEFAULT_CONFIG", {}, None),
        (("3.4.1", "3.5.0"), "UPGRADE_FROM", {}, "it takes upgrade.from=3.4 (KIP-904), which 3.5.0 does not know"),
        (("3.4.1", "3.4.1"), "DEFAULT_CONFIG", {}, "3.4.1 is the release that it runs on"),
        (("3.4.1", None), "DEFAULT_CONFIG", {}, "a rolling bounce takes a second release"),
        (("4.3.1", "3.4.1"), "DEFAULT_CONFIG", {}, "4.3.1 keeps the offsets of its stores in a column family"),
        (("4.3.1", "3.4.1"), "DEFAULT_CONFIG", {"stores": "in-memory"}, None),
        (("3.4.1", "4.3.1"), "DEFAULT_CONFIG", {"partitions": 3}, "a group must be in one partition, so"),
        (("3.4.1", "4.3.1"), "DEFAULT_CONFIG", {"fault": "none"}, "its group must have instances of two releases"),
        (
            ("4.3.1", None),
            "DEFAULT_CONFIG",
            {"fault": "instance-kill"},
            "its group must have instances of two releases",
        ),
        (("4.3.1", None), "OPTIMIZED", {}, None),
        (("4.3.1", None), "OPTIMIZED", {"fault": "none"}, "its group must have instances of two releases"),
        (("4.3.1", "4.4.0"), "OPTIMIZED", {}, "the application of grouped-table is not restarted"),
        (("4.3.1", None), "PROCESSOR_ADDED", {}, None),
        (("4.3.1", "4.4.0"), "PROCESSOR_ADDED", {}, "the application of grouped-table is not restarted"),
        (("4.3.1", None), "PROCESSOR_ADDED", {"fault": "instance-kill"}, "deployed=operator takes no fault"),
        (("4.3.1", None), "SWITCHED_ON", {}, None),
        (("4.3.1", None), "SWITCHED_ON", {"optimized": True}, "deployed=optimization takes no fault, and a table that"),
        (("4.3.1", None), "SWITCHED_ON", {"group.protocol": "streams"}, "a group of the streams protocol keeps the"),
        (("3.9.1", None), "PROCESSOR_ADDED_STREAMS", {}, "Kafka Streams 3.9.1 lacks group.protocol=streams"),
    ],
)
def test_what_cannot_be_run_is_refused(releases, variant, parameters, reason):
    trial = a_trial(releases[0], variant, scenario="grouped-table", restart_on=releases[1], **parameters)
    judgement = SCENARIO.refuse_trial(trial)
    assert (judgement or "").startswith(reason or "")
    assert (judgement is None) == (reason is None)


def test_only_the_control_asks_for_upgrade_from():
    asked = {
        name: SCENARIO.values(a_trial("3.4.1", name, scenario="grouped-table"))[UPGRADE_FROM]
        for name in ("DEFAULT_CONFIG", "UPGRADE_FROM")  # the others do not roll
    }
    assert asked == {"DEFAULT_CONFIG": False, "UPGRADE_FROM": True}


MEMBERS = {"a": "3.4.1", "b": "4.3.1"}
BOTH = {"a": ["0_0", "1_0"], "b": ["0_1", "1_1"]}


@pytest.mark.parametrize(
    ("tasks", "processed", "expected"),
    [
        pytest.param(BOTH, {"a": 9, "b": 9}, True, id="both wrote and kept"),
        pytest.param({"a": ["1_0", "1_1"], "b": ["0_0", "0_1"]}, {"a": 0, "b": 9}, True, id="the newer one wrote"),
        pytest.param(BOTH, {"a": 9, "b": 0}, False, id="only the older one wrote"),
        pytest.param({"a": ["0_0"], "b": ["0_1", "1_0", "1_1"]}, {"a": 9, "b": 9}, False, id="only the newer one kept"),
    ],
)
def test_mixed_means_written_by_the_newer_and_kept_by_the_older(tasks, processed, expected):
    together = {"members": MEMBERS, "tasks": tasks, "processed": processed, "ms": 1_000}
    assert is_mixed(FaultOutcome("rolling-bounce", True, "", {"together": [together]})) is expected


def test_one_release_alone_is_not_mixed():
    together = {"members": {"a": "3.4.1", "b": "3.4.1"}, "tasks": BOTH, "processed": {"a": 9, "b": 9}, "ms": 1_000}
    assert not is_mixed(FaultOutcome("rolling-bounce", True, "", {"together": [together]}))
    assert not is_mixed(FaultOutcome("rolling-bounce", False, "", {}))


@pytest.mark.parametrize(
    ("variant", "read_as", "changelog"),
    [
        ("DEFAULT_CONFIG", ["stream"], "table-changelog"),
        ("OPTIMIZED", ["optimized-source"], "input"),
        ("PROCESSOR_ADDED", ["stream", "longer-stream"], "table-changelog"),
        ("SWITCHED_ON", ["source", "optimized-source"], "input"),
    ],
)
def test_a_variant_has_its_deployments_and_its_changelog(variant, read_as, changelog):
    trial = a_trial("4.3.1", variant, scenario="grouped-table")
    later = SCENARIO.later(trial)
    assert [SCENARIO.app(trial)["read.as"], *(change.app["read.as"] for change in later)] == read_as
    assert all(change.start == 2 for change in later)
    assert SCENARIO.system(trial).topics["table-changelog"].topic == changelog


@pytest.mark.parametrize("number", range(6))
def test_thirds_are_the_records_in_their_order(number):
    records = [(key, key) for key in range(number)]
    parts = thirds(records)
    assert [record for part in parts for record in part] == records
    assert len(parts) == 3
    assert all(len(part) <= -(-number // 3) for part in parts)
