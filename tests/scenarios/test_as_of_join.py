"""The join as of a time: the independent reader's judgement on the specimens, and what is generated."""

import pytest

from onceproof.scenarios.as_of_join import DELETION, SCENARIO, facts, generate, values, workload
from tests.conftest import a_trial


def an_as_of_trial(variant="DEFAULT_CONFIG", streams="4.3.1", **parameters):
    return a_trial(streams, variant, scenario="as-of-join", **parameters)


@pytest.mark.parametrize(("variant", "late"), [("DEFAULT_CONFIG", 0), ("LATE", 0.9)])
def test_too_old_records_are_generated_in_one_variant_only(variant, late):
    trial = an_as_of_trial(variant, retention=1_000, first=6_000, records=6_000)
    made, kept = generate(trial), SCENARIO.values(trial)["retention"]
    ages = [now - record.at for now, record in enumerate(made)]
    assert all(age <= kept or kept * 1.25 <= age <= 2 * kept for age in ages)
    assert all(record.at >= 0 for record in made)
    first, flow = ages[2 * kept : 6_000], ages[6_000:]
    assert 0.05 < sum(age > kept for age in first) / len(first) < 0.15
    assert late - 0.05 < sum(age > kept for age in flow) / len(flow) < late + 0.05 if late else max(flow) <= kept


def test_a_version_has_its_own_number_and_some_keys_are_deleted():
    made = generate(an_as_of_trial(first=1_000, records=1_000))
    versions = [record.value for record in made if record.value < 0]
    deletions = sum(record.value == DELETION for record in made)
    assert len(versions) == len(set(versions))
    assert 400 < len(versions) < 700
    assert 30 < deletions < 100
    assert workload(an_as_of_trial(first=1_000, records=1_000)).second == [(r.key, r.value) for r in made]


@pytest.mark.parametrize(("variant", "some"), [("DEFAULT_CONFIG", False), ("REVIVED", True)])
def test_versions_behind_a_deletion_come_in_one_variant_only(variant, some):
    made = generate(an_as_of_trial(variant, keys=20))
    deleted: dict[int, int] = {}
    ended = 0
    for now, record in enumerate(made):
        if record.value == DELETION:
            deleted[record.key] = max(record.at, deleted.get(record.key, record.at))
        elif record.value < 0 and record.at > now - 6_000:
            ended += record.at <= deleted.get(record.key, -1)
    assert (ended > 100) is some
    assert ended == 0 or some


def test_the_topology_is_told_what_the_checks_are_told():
    for variant in SCENARIO.variants:
        reported, known = SCENARIO.app(an_as_of_trial(variant)), facts(values(an_as_of_trial(variant)))
        assert known["retention"] == (reported["retention.ms"] if reported["stores"] == "versioned" else 0)


@pytest.mark.parametrize(
    ("streams", "variant", "parameters", "reason"),
    [
        ("4.3.1", "DEFAULT_CONFIG", {}, None),
        ("3.4.1", "UNVERSIONED", {}, None),
        ("3.4.1", "DEFAULT_CONFIG", {}, "Kafka Streams 3.4.1 has no versioned stores (KIP-889); take 3.5.0 or later"),
        ("4.3.1", "LATE", {"late": 1.5}, "late is 1.5, but must be from 0 to 1: share of"),
        ("4.3.1", "REVIVED", {"deletions": 2}, "deletions is 2, but must be from 0 to 1: share of"),
        ("4.3.1", "IN_MEMORY", {"fault": "state-lost"}, "the fault state-lost is of stores on disk"),
        ("4.3.1", "ROLLING", {}, "a rolling bounce takes a second release"),
    ],
)
def test_what_cannot_be_run_is_refused(streams, variant, parameters, reason):
    trial = an_as_of_trial(variant, streams, **parameters)
    refusal = SCENARIO.refuse_trial(trial)
    assert (refusal or "").startswith(reason or "")
    assert (refusal is None) == (reason is None)


def test_a_waiting_record_asks_once_for_a_key_with_a_version():
    trial = an_as_of_trial("GRACE", first=500, records=400)
    made, parameters = generate(trial), values(trial)
    changes, asking, closing = made[:500], made[500:900], made[900:]
    assert [record.at for record in made[:900]] == list(range(900))
    assert all(record.value < 0 for record in changes)
    assert {record.key for record in asking} <= {record.key for record in changes}
    assert len({record.key for record in asking}) == 400
    assert len(closing) == parameters.partitions
    assert all(record.at > 899 + parameters.grace for record in closing)
    assert facts(parameters) == {"retention": 120_000, "waits": 1}
    assert facts(values(an_as_of_trial())) == {"retention": 6_000}


@pytest.mark.parametrize(
    ("streams", "parameters", "reason"),
    [
        ("3.6.0", {}, None),
        ("3.5.2", {}, "joins of Kafka Streams 3.5.2 do not wait (KIP-923); take 3.6.0 or later, or grace=0."),
        ("4.3.1", {"stores": "rocksdb"}, "only a join with a versioned table waits (KIP-923)"),
        ("4.3.1", {"ended": 0.5}, "with a grace period all records come in order"),
        ("4.3.1", {"records": 20_001}, "with a grace period each key is asked for once, within the history"),
        ("4.3.1", {"retention": 41_000}, "with a grace period each key is asked for once, within the history"),
    ],
)
def test_a_wait_that_cannot_be_is_refused(streams, parameters, reason):
    trial = an_as_of_trial("GRACE", streams, **parameters)
    refusal = SCENARIO.refuse_trial(trial)
    assert (refusal or "").startswith(reason or "")
    assert (refusal is None) == (reason is None)
