"""Faults in a fake world (`tests/fakes`): each bites, or says why it did not, and is undone whatever happens."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from onceproof.faults import (
    FAULTS,
    OF_BROKERS,
    bounce,
    held_rebalance,
    lost_answer,
    pause,
    rolling_bounce,
    takeover,
    thread_removed,
    topology_pause,
)
from onceproof.faults.base import Fault, FaultRun, LostAnswer, at_work, run_fault
from onceproof.lab.driver import Driver
from onceproof.lab.instance import InstanceProcess as RunningInstance
from onceproof.model.errors import KafkaFailedError, UsageError
from onceproof.model.files import FaultOutcome
from onceproof.scenarios import SCENARIOS, app, check_fault
from tests.conftest import a_trial
from tests.fakes.group import Nature
from tests.fakes.instance import FakeInstance
from tests.fakes.world import FakeLinks, fake_driver


@pytest.fixture
def driver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Driver]:
    """The driver of a trial in which an instance is paused; the nature of Kafka is the parameter."""
    driver = fake_driver(a_trial("4.3.1", "PAUSED"), tmp_path, getattr(request, "param", Nature()))
    yield driver
    driver.stop()


def done(driver: Driver) -> list[str]:
    return [event["action"] for event in driver.context.events if event["event"] == "fault"]


def test_a_fault_is_applied_healed_observed_and_recorded(driver: Driver) -> None:
    outcome = driver.outcome(driver.drive())
    fault_outcome = outcome.fault
    assert fault_outcome is not None
    assert (fault_outcome.name, fault_outcome.bit, outcome.exercised, outcome.void) == ("pause", True, True, None)
    assert done(driver) == ["applied", "healed", "observed"]
    assert fault_outcome.summary == outcome.reason
    proof = fault_outcome.observed
    assert proof["stood_still_ms"] >= 7_000
    assert proof["taken_over"].keys() == set(proof["tasks"])
    assert "fenced" in proof["fenced"]
    assert proof["rejoined"]
    assert driver.context.plan.streams_config["main.consumer.session.timeout.ms"] == "4000"
    assert "--set fault=pause" not in outcome.trial.command  # the variant says it


@pytest.mark.parametrize("driver", [Nature(throws_after=9_000)], indirect=True)
def test_a_fault_is_undone_if_the_drive_fails_in_the_middle(driver: Driver) -> None:
    outcome = driver.outcome(driver.drive())
    reported = [
        e["action"] for e in driver.context.events if e["event"] == "instance" and e["action"] in ("frozen", "thawed")
    ]
    assert reported == ["frozen", "thawed"]
    assert done(driver) == ["applied"]
    assert outcome.fault == FaultOutcome("pause", bit=False, summary="The drive ended before that.", observed={})
    assert not outcome.exercised


def test_nobody_is_paused_in_the_middle_of_a_rebalance(driver: Driver) -> None:
    driver.drive()
    events = driver.context.events
    frozen = next(e["t"] for e in events if e["event"] == "instance" and e["action"] == "frozen")
    changed = [e["t"] for e in events if e["event"] == "state" and e["t"] <= frozen]
    assert changed
    assert max(changed) <= frozen - 1_000


def test_a_fault_without_a_target_does_not_bite(driver: Driver) -> None:
    fault_outcome = run_fault(pause.FAULT, driver.lab, lambda: None)
    assert not fault_outcome.bit
    assert fault_outcome.summary.startswith(
        "The fault pause did not take effect: it takes an instance with an active task"
    )


@pytest.mark.parametrize(("seconds", "missed"), [(3.0, False), (4.5, True)])
def test_a_pause_within_the_session_timeout_need_not_be_missed(tmp_path: Path, seconds: float, missed: bool) -> None:
    driver = fake_driver(a_trial("4.3.1", "PAUSED", pause_seconds=seconds), tmp_path)
    fault_outcome = driver.outcome(driver.drive()).fault
    driver.stop()
    assert fault_outcome is not None
    assert fault_outcome.bit, fault_outcome.summary
    proof = fault_outcome.observed
    assert proof["stood_still_ms"] >= seconds * 1_000
    assert ("works_again" in proof, proof["rejoined"], bool(proof["taken_over"])) == (not missed, missed, missed)


def test_who_stands_still_within_its_session_must_work_again(tmp_path: Path) -> None:
    driver = fake_driver(a_trial("4.3.1", "PAUSED_IN_SESSION"), tmp_path, Nature(halts_after=6_000))
    for name in ("instance-1", "instance-2"):
        driver.lab.instances.start(name, config=pause.config(driver.lab.parameters))
    driver.lab.produce("second", [(key, key) for key in range(60_000)], 1_000.0)
    driver.lab.await_("them to work", lambda: all(one.tasks("active") for one in driver.lab.instances.running.values()))
    fault_outcome = run_fault(pause.FAULT, driver.lab, lambda: None)
    driver.stop()
    assert not fault_outcome.bit
    assert fault_outcome.summary.endswith(f"{fault_outcome.observed['instance']} did not work again.")


KILL: dict[str, Any] = {"fault": "broker-kill", "nodes": 3}


def killing(path: Path, nature: Nature) -> Driver:
    return fake_driver(a_trial("4.3.1", **KILL), path, nature)


def test_the_broker_that_is_killed_comes_back_and_both_are_told(tmp_path: Path) -> None:
    driver = killing(tmp_path, Nature())
    outcome = driver.outcome(driver.drive())
    assert outcome.fault is not None
    proof = outcome.fault.observed
    assert (outcome.exercised, proof["node"], proof["leads"]) == (True, 1, "transaction-coordinator")
    assert (proof["leader_after"], proof["went_on"]) == (2, True)
    assert [e["action"] for e in driver.context.events if e["event"] == "broker"] == ["killed", "started"]
    driver.stop()


@pytest.mark.parametrize(
    ("fault", "event", "report"),
    [
        ("partition", "link", [{"action": "cut"}, {"action": "cleared"}]),
        ("broker-kill", "broker", [{"action": "killed"}, {"action": "started"}]),
        ("broker-pause", "broker", [{"action": "frozen"}, {"action": "thawed"}]),
        ("leader-election", "leaders", [{"leaders": {2: 12}}, {"leaders": {1: 12}}]),
    ],
)
def test_faults_of_brokers_are_undone_if_the_drive_fails(
    tmp_path: Path, fault: str, event: str, report: list[dict[str, object]]
) -> None:
    trial = a_trial("4.3.1", fault=fault, nodes=3)
    driver = fake_driver(trial, tmp_path, Nature(throws_after=6_000, elects=False))
    assert not driver.drive().exercised
    seen = [e for e in driver.context.events if e["event"] == event]
    assert [{key: e[key] for key in one} for e, one in zip(seen, report, strict=True)] == report
    driver.stop()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Driver]:
    """The driver of a trial that goes from 4.2.1 to 4.3.1; two instances run, and only the first records exist."""
    driver = fake_driver(a_trial("4.2.1", "ROLLING", restart_on="4.3.1"), tmp_path)
    for name in ("instance-1", "instance-2"):
        driver.lab.instances.start(name)
        driver.lab.await_("it to run", lambda: driver.lab.instances.running["instance-1"].tasks("active"))
    yield driver
    driver.stop()


def test_both_releases_share_a_group_and_each_bounce_is_reported(tmp_path: Path) -> None:
    driver = fake_driver(a_trial("3.4.1", "ROLLING", restart_on="3.9.1"), tmp_path)
    fault_outcome = driver.outcome(driver.drive()).fault
    driver.stop()
    assert fault_outcome is not None
    assert fault_outcome.bit
    proof = fault_outcome.observed
    assert [(b["instance"], b["release"], b["upgrade_from"]) for b in proof["bounces"]] == [
        ("instance-1", "3.9.1", "3.4"),
        ("instance-2", "3.9.1", "3.4"),
        ("instance-1", "3.9.1", None),
        ("instance-2", "3.9.1", None),
    ]
    [mixed] = proof["together"]
    assert mixed["members"] == {"instance-1": "3.9.1", "instance-2": "3.4.1"}
    assert sorted(task for tasks in mixed["tasks"].values() for task in tasks) == ["0_0", "0_1"]
    assert min(mixed["processed"].values()) > 0
    assert proof["members"] == {"instance-1": "3.9.1", "instance-2": "3.9.1"}


def test_transactional_stores_are_switched_with_the_release(tmp_path: Path) -> None:
    switched: dict[str, Any] = {rolling_bounce.SWITCHED: True}
    trial = a_trial("4.3.1", "ROLLING_BACK", restart_on="4.4.0", **switched)
    driver = fake_driver(trial, tmp_path)
    started: list[tuple[str, str | None]] = []
    start = FakeInstance.start

    def noted(instance: FakeInstance, topology: str, app: dict[str, Any], config: dict[str, str]) -> None:
        started.append((str(instance.release), config.get("enable.transactional.statestores")))
        start(instance, topology, app, config)

    with pytest.MonkeyPatch.context() as meanwhile:
        meanwhile.setattr(FakeInstance, "start", noted)
        fault_outcome = driver.outcome(driver.drive()).fault
    driver.stop()
    assert fault_outcome is not None
    assert [bool(b["switched"]) for b in fault_outcome.observed["bounces"]] == [True, True, False, False]
    assert set(started) == {("4.3.1", None), ("4.4.0", "true")}
    assert (
        "in 4 bounces, with enable.transactional.statestores=true on the other release; for " in fault_outcome.summary
    )


def test_a_roll_needs_a_release_with_transactional_stores() -> None:
    trial = a_trial("4.2.1", "ROLLING_TRANSACTIONAL", restart_on="4.3.1", scenario="table-join")
    assert SCENARIOS["table-join"].refuse_trial(trial) == (
        "Kafka Streams 4.3.1 has no transactional stores (KIP-892); roll to 4.4.0 or later."
    )


@pytest.mark.parametrize(
    ("restart_on", "parameters", "why"),
    [
        ("4.2.2", {}, "Kafka Streams 4.2.2 keeps no headers in stores (KIP-1271); roll to 4.3.0 or later."),
        (
            "4.4.0",
            {rolling_bounce.BACK: True},
            "Kafka Streams opens no store that has kept headers as one that keeps none: leave out the way back.",
        ),
    ],
)
def test_stores_with_headers_need_a_newer_release(restart_on: str, parameters: dict[str, Any], why: str) -> None:
    trial = a_trial("4.1.2", "ROLLING_HEADERS", restart_on=restart_on, scenario="table-join", **parameters)
    assert SCENARIOS["table-join"].refuse_trial(trial) == why


def test_a_roll_in_which_no_record_is_processed_proves_nothing(pair: Driver) -> None:
    fault_outcome = run_fault(rolling_bounce.FAULT, pair.lab, lambda: None)
    assert [sum(one["processed"].values()) for one in fault_outcome.observed["together"]] == [0]
    assert fault_outcome.summary == (
        "The fault rolling-bounce did not take effect: both releases were at no time members of one group that processed "
        "records."
    )


def test_a_roll_that_is_not_over_says_who_runs_what(pair: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rolling_bounce.RollingBounce, "patience", 2.0)
    reported = run_fault(rolling_bounce.FAULT, pair.lab, lambda: None).summary
    assert "instance-2 runs 4.2.1, and not 4.3.1; " in reported
    assert reported.endswith("it was not over after 300 s.")


def test_a_group_of_two_releases_that_never_settles_is_stuck(pair: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rolling_bounce.RollingBounce, "_is_at_rest", lambda _: False)
    with pytest.raises(KafkaFailedError, match=r"^stuck: instance-1, instance-2: Waited 60 s .*\(4\.2\.1\) RUNNING"):
        run_fault(rolling_bounce.FAULT, pair.lab, lambda: None)


@pytest.mark.parametrize("report", [{"instance-1": ["0_0", "0_1"], "instance-2": ["0_1"]}, {"instance-1": ["0_0"]}])
def test_a_roll_may_begin_while_a_task_has_two_owners_or_none(
    pair: Driver, monkeypatch: pytest.MonkeyPatch, report: dict[str, list[str]]
) -> None:
    apply = rolling_bounce.RollingBounce.apply

    def in_a_rebalance(fault_run: rolling_bounce.RollingBounce) -> str:
        with monkeypatch.context() as meanwhile:
            meanwhile.setattr(RunningInstance, "tasks", lambda instance, _: report.get(instance.name, []))
            return apply(fault_run)

    monkeypatch.setattr(rolling_bounce.RollingBounce, "apply", in_a_rebalance)
    bounces = run_fault(rolling_bounce.FAULT, pair.lab, lambda: None).observed["bounces"]
    assert [one["instance"] for one in bounces] == ["instance-1", "instance-2"]


def away(path: Path, fault: str, nature: Nature) -> FaultOutcome:
    driver = fake_driver(a_trial("4.3.1", fault=fault), path, nature)
    fault_outcome = driver.outcome(driver.drive()).fault
    driver.stop()
    assert fault_outcome is not None
    return fault_outcome


def test_a_bounced_instance_returns_over_its_own_state(tmp_path: Path) -> None:
    fault_outcome = away(tmp_path, "bounce", Nature())
    proof = fault_outcome.observed
    assert fault_outcome.bit, fault_outcome.summary
    assert proof["taken_over"].keys() == set(proof["tasks"])
    assert proof["processed_afterwards"] >= 200
    assert fault_outcome.summary.startswith(f"{proof['instance']} was closed in ")


def test_an_instance_without_threads_gets_others_and_they_work(tmp_path: Path) -> None:
    fault_outcome = away(tmp_path, "thread-removed", Nature())
    proof = fault_outcome.observed
    assert fault_outcome.bit, fault_outcome.summary
    assert (proof["threads"], proof["taken_over"].keys()) == (1, set(proof["tasks"]))
    assert proof["tasks_afterwards"]
    assert proof["processed_afterwards"] >= 200


def test_a_paused_instance_stays_in_its_group_and_continues(tmp_path: Path) -> None:
    fault_outcome = away(tmp_path, "topology-pause", Nature())
    proof = fault_outcome.observed
    assert fault_outcome.bit, fault_outcome.summary
    assert (proof["tasks"], proof["standbys"]) == (["0_0"], ["0_1"])
    assert proof["processed_nothing_ms"] >= 2_000
    assert proof["processed_afterwards"] >= 200


@pytest.mark.parametrize(
    ("nature", "missing"),
    [
        (Nature(pauses=False), "instance-1 continued processing while it was paused"),
        (Nature(resumes=False), "instance-1 processed fewer than 200 records when it was resumed"),
    ],
)
def test_an_instance_that_does_not_pause_is_not_exercised(tmp_path: Path, nature: Nature, missing: str) -> None:
    driver = fake_driver(a_trial("4.3.1", fault="topology-pause"), tmp_path, nature)
    for name in ("instance-1", "instance-2"):
        driver.lab.instances.start(name)
    driver.lab.produce("second", [(key, key) for key in range(60_000)], 1_000.0)
    driver.lab.await_("them to work", lambda: driver.lab.instances.running["instance-1"].processed > 0)
    fault_outcome = run_fault(topology_pause.FAULT, driver.lab, lambda: None)
    driver.stop()
    assert not fault_outcome.bit
    assert missing in fault_outcome.summary.replace("instance-2", "instance-1")


def held(path: Path, nature: Nature) -> FaultOutcome:
    """The fault in a group of two that works, and gets more to do."""
    driver = fake_driver(a_trial("4.3.1", "PAUSED"), path, nature)
    driver.lab.parameters = {**driver.lab.parameters, "held-rebalance.seconds": 10.0}
    for name in ("instance-1", "instance-2"):
        driver.lab.instances.start(name, config=held_rebalance.config({}))
    driver.lab.produce("second", [(key, key) for key in range(60_000)], 1_000.0)
    driver.lab.await_("them to work", lambda: all(one.tasks("active") for one in driver.lab.instances.running.values()))
    fault_outcome = run_fault(held_rebalance.FAULT, driver.lab, lambda: None)
    steps = [e["action"] for e in driver.lab.events if e["event"] == "instance" and e["action"] in ("frozen", "thawed")]
    driver.stop()
    assert steps == ["frozen", "thawed"]
    return fault_outcome


def test_a_rebalance_waits_for_a_stalled_member(tmp_path: Path) -> None:
    fault_outcome = held(tmp_path, Nature(waits=True))
    proof = fault_outcome.observed
    assert fault_outcome.bit, fault_outcome.summary
    assert {proof["instance"], *proof["fenced"]} == {"instance-1", "instance-2"}
    assert (proof["joined"], proof["processed"] >= 200) == ("instance-3", True)
    assert proof["held_ms"] >= 10_000


@pytest.mark.parametrize(
    ("nature", "missing"),
    [
        (Nature(), "instance-3 was RUNNING while instance-1 stood still"),
        (Nature(waits=True, fences=False), "none of the others was fenced, so no transaction was aborted"),
        (Nature(waits=True, halts_after=2_000), "others processed fewer than 200 records since instance-3 joined"),
    ],
)
def test_a_rebalance_that_is_not_held_up_was_not_exercised(tmp_path: Path, nature: Nature, missing: str) -> None:
    fault_outcome = held(tmp_path, nature)
    assert not fault_outcome.bit
    assert missing in fault_outcome.summary.replace("instance-2 stood", "instance-1 stood").replace(
        "instance-2 went", "instance-1 went"
    )


def test_an_unfinished_rebalance_names_members_that_did_not_join(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_rebalance, "PATIENCE", -10.0)
    assert "instance-3 did not join after instance-" in held(tmp_path, Nature(waits=True)).summary


def two_at_once(path: Path, names: tuple[str, ...], beside: Fault) -> tuple[FaultOutcome, FaultOutcome | None]:
    """An instance stands still, and meanwhile the other fault strikes; as it is returned, and as the trial reports it."""
    driver = fake_driver(a_trial("4.3.1", "PAUSED"), path)
    for name in names:
        driver.lab.instances.start(name, config={**pause.FAULT.config(driver.lab.parameters)})
    driver.lab.produce("second", [(key, key) for key in range(60_000)], 1_000.0)
    driver.lab.await_("them to work", lambda: any(one.tasks("active") for one in driver.lab.instances.running.values()))
    fault_outcome = run_fault(pause.FAULT, driver.lab, lambda: None, beside)
    reported = driver.outcome().fault
    driver.stop()
    assert [e["action"] for e in driver.lab.events if e["event"] == "fault"][-2:] == ["healed", "observed"]
    return fault_outcome, reported


def test_two_faults_at_once_affect_two_instances(tmp_path: Path) -> None:
    found, reported = two_at_once(tmp_path, ("instance-1", "instance-2", "instance-3"), thread_removed.FAULT)
    assert reported == found
    assert (found.name, found.bit) == ("pause and thread-removed", True), found.summary
    struck = {found.observed[name]["instance"] for name in ("pause", "thread-removed")}
    assert len(struck) == 2
    assert "it was fenced when it woke, and joined again. " in found.summary


def test_a_second_fault_without_its_own_instance_has_no_effect(tmp_path: Path) -> None:
    found, _ = two_at_once(tmp_path, ("instance-1", "instance-2"), pause.FAULT)
    assert not found.bit
    assert (
        "The fault pause did not take effect: it takes an instance with an active task and another one besides it"
        in found.summary
    )


def test_a_release_that_cannot_be_paused_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"the fault topology-pause needs Kafka Streams 3\.3\.0 or later, and not 3\.2\.3"
    ):
        SCENARIOS["enumerator"].validate(a_trial("3.2.3", fault="topology-pause"))


def test_the_request_whose_answer_was_lost_is_named(tmp_path: Path) -> None:
    driver = fake_driver(a_trial("4.3.1", fault="lost-answer"), tmp_path)
    proof = driver.outcome(driver.drive()).fault
    [seen] = [event for event in driver.context.events if event["event"] == "answer"]
    driver.stop()
    assert proof is not None
    reported = {"node": 1, "version": 4, "correlation": 77, "client": "a", "at": seen["at"]}
    assert {**reported, "instance": "instance-1", "api": 12}.items() <= seen.items()
    assert proof.observed["request"] == {**reported, "api": "Heartbeat"}
    assert (proof.observed["started_again"], proof.observed["gave_up_ms"]) == (True, 3_000)


@pytest.mark.parametrize(
    ("became", "continues", "missing"),
    [
        ({"ended_ms": 900}, True, "instance-1 had given the request up before its answer was due"),
        ({"passed_ms": 2_000}, False, "instance-1 did not process records again after it was over"),
    ],
)
def test_an_answer_that_is_not_late_is_not_exercised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, became: dict[str, int], continues: bool, missing: str
) -> None:
    monkeypatch.setattr(FakeLinks, "report_lost_answer", lambda _: LostAnswer(1, 12, 4, 77, None, 0, **became))
    monkeypatch.setattr(lost_answer, "continues", lambda *_: continues)
    parameters: dict[str, Any] = {"fault": "lost-answer", "lost-answer_kind": "delay"}
    driver = fake_driver(a_trial("4.3.1", **parameters), tmp_path)
    fault_outcome = driver.outcome(driver.drive()).fault
    driver.stop()
    assert fault_outcome is not None
    assert not fault_outcome.bit
    assert fault_outcome.summary == f"The fault lost-answer did not take effect: {missing}."


@pytest.mark.parametrize(
    ("fault", "missing"),
    [
        ("bounce", "instance-1 processed fewer than 200 records after it was started again"),
        ("thread-removed", "the threads that were added to instance-1 processed fewer than 200 records"),
    ],
)
def test_who_gets_no_task_when_it_is_back_was_not_exercised(tmp_path: Path, fault: str, missing: str) -> None:
    fault_outcome = away(tmp_path, fault, Nature(moves=False))
    assert not fault_outcome.bit
    assert missing in fault_outcome.summary


@pytest.mark.parametrize(("fault", "done_to_it"), [("bounce", "was away"), ("thread-removed", "had no thread")])
def test_a_task_with_which_nobody_goes_on_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, done_to_it: str
) -> None:
    monkeypatch.setattr(takeover, "_count_processed", lambda *_: 0)
    fault_outcome = away(tmp_path, fault, Nature())
    assert not fault_outcome.bit
    assert f"no instance took over 0_0 while instance-1 {done_to_it}" in fault_outcome.summary


def test_a_takeover_without_task_counts_is_seen_by_more_records(tmp_path: Path) -> None:
    def instance(name: str, tasks: list[str], records: int) -> SimpleNamespace:
        rows = [{"task": "all", "thread": "StreamThread-1", "count": records}]
        return SimpleNamespace(name=name, tasks=lambda _: tasks, last={"progress": {"processed": rows}})

    gone, other = instance("instance-1", ["0_0"], 50), instance("instance-2", ["0_1"], 70)
    lab: Any = SimpleNamespace(instances=SimpleNamespace(running={"instance-1": gone, "instance-2": other}))
    taken = takeover.Takeover(lab, gone)
    assert not taken.is_complete()
    other.tasks = lambda _: ["0_0", "0_1"]
    assert not taken.is_complete()  # it has the task, and has not processed anything since
    other.last["progress"]["processed"][0]["count"] = 75
    assert taken.is_complete()
    assert taken.by == {"0_0": {"by": "instance-2", "records": 5}}


def test_a_bounce_of_the_only_instance_needs_no_heir(tmp_path: Path) -> None:
    driver = fake_driver(a_trial("4.3.1", fault="bounce"), tmp_path)
    driver.lab.instances.start("instance-1")
    driver.lab.produce("second", [(key, key) for key in range(20_000)], 2_000.0)
    driver.lab.await_("it to work", lambda: driver.lab.instances.running["instance-1"].processed > 0)
    fault_outcome = run_fault(bounce.FAULT, driver.lab, lambda: None)
    driver.stop()
    assert fault_outcome.bit, fault_outcome.summary
    assert fault_outcome.observed["taken_over"] == {}


def test_one_instance_cannot_roll(tmp_path: Path) -> None:
    driver = fake_driver(a_trial("4.2.1", "ROLLING", restart_on="4.3.1"), tmp_path)
    driver.lab.instances.start("instance-1")
    fault_outcome = run_fault(rolling_bounce.FAULT, driver.lab, lambda: None)
    assert (
        "did not take effect: it takes another release to go to, and two instances with a task" in fault_outcome.summary
    )
    driver.stop()


@pytest.mark.parametrize(
    ("scenario", "way", "parameters", "why"),
    [
        ("enumerator", ("4.3.1", "4.2.1"), {}, "4.3.1 keeps the offsets of its stores in a column family"),
        ("crash", ("4.0.2", "3.9.1"), {}, "writes files in a format"),
        ("enumerator", ("3.4.1", "3.5.0"), {}, "it takes upgrade.from=3.4 .KIP-904., which 3.5.0 does not know"),
        ("multirunner", ("3.5.1", "3.4.0"), {}, "which 3.5.1 does not know"),
        ("enumerator", ("4.2.1", "4.3.1"), {"rolling_bounce_back": True}, "4.3.1 keeps the offsets"),
        ("enumerator", ("4.2.1", "4.2.1"), {}, "4.2.1 is the release that it runs on"),
        ("enumerator", ("4.2.1", None), {}, "a rolling bounce takes a second release; name it with --roll-to"),
        ("multirunner", ("4.3.1", "3.9.1"), {"stores": "rocksdb"}, "4.3.1 keeps the offsets"),
        ("crash", ("4.2.1", "4.3.1"), {"kills": 2}, "a rolling bounce goes with .* one kill"),
    ],
)
def test_where_kafka_allows_no_rolling_bounce_it_is_refused(
    scenario: str, way: tuple[str, str | None], parameters: dict[str, Any], why: str
) -> None:
    named = {name.replace("rolling_", "rolling-"): value for name, value in parameters.items()}
    with pytest.raises(UsageError, match=why):
        SCENARIOS[scenario].validate(a_trial(way[0], "ROLLING", scenario=scenario, restart_on=way[1], **named))


def test_stores_in_memory_can_go_back_whatever_the_format(tmp_path: Path) -> None:
    SCENARIOS["multirunner"].validate(a_trial("3.9.1", "ROLLING_BACK", scenario="multirunner", restart_on="4.3.1"))


@pytest.mark.parametrize("fault", OF_BROKERS, ids=lambda fault: fault.name)
def test_too_few_brokers_are_refused_before_and_in_a_trial(tmp_path: Path, fault: Fault) -> None:
    trial = a_trial("4.3.1", fault=fault.name)
    with pytest.raises(UsageError, match=rf": the fault {fault.name} needs 3 brokers, and not 1: add --nodes 3\.$"):
        SCENARIOS["enumerator"].validate(trial)
    SCENARIOS["enumerator"].validate(a_trial("4.3.1", fault=fault.name, nodes=3))
    driver = fake_driver(trial, tmp_path)
    driver.lab.brokers.nodes = 1  # type: ignore[misc]
    fault_outcome = run_fault(fault, driver.lab, lambda: None)
    assert (
        fault_outcome.summary
        == f"The fault {fault.name} did not take effect: it takes 3 brokers of ours, but there are 1."
    )
    driver.stop()


def test_a_fault_that_would_make_a_promise_untrue_is_refused() -> None:
    trial = a_trial("4.3.1", "AT_LEAST_ONCE", scenario="multirunner", fault="pause")
    with pytest.raises(
        UsageError, match=r"cannot be run: the fault pause does not go with guarantee=at_least_once.*leave out one"
    ):
        SCENARIOS["multirunner"].validate(trial)


def test_what_a_trial_is_repeated_by_names_its_fault() -> None:
    assert a_trial("4.3.1", **KILL).command.endswith("--set fault=broker-kill --set nodes=3")


class _Broken(FaultRun):
    """Fails half-way."""

    healed = 0

    def apply(self) -> str:
        raise OSError("half done")

    def has_taken_effect(self) -> bool:
        return True

    def has_recovered(self) -> bool:
        return True

    def heal(self) -> None:
        _Broken.healed += 1

    def report_observed(self) -> tuple[dict[str, object], list[str], str]:
        return {}, [], ""


def test_a_fault_that_fails_half_way_is_undone(driver: Driver) -> None:
    broken = Fault("broken", "It breaks.", "It is mended.", "nothing", _Broken)
    with pytest.raises(OSError, match="half done"), at_work(broken, broken.new_run(driver.lab)):
        pass
    assert (_Broken.healed, done(driver)) == (1, [])


def test_a_fault_of_no_scenario_is_refused_with_the_remedy() -> None:
    with pytest.raises(UsageError, match=r"^There is no fault 'flood'; choose from pause"):
        check_fault("enumerator", "flood")
    with pytest.raises(
        UsageError,
        match=r"^The fault pause cannot be injected into crash: it takes .*\. Take enumerator or multirunner",
    ):
        check_fault("crash", "pause")
    check_fault("enumerator", "pause")


ALL = {**SCENARIOS, app.NAME: app.SCENARIO}


def test_every_fault_is_allowed_somewhere_and_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "faults.md").read_text()
    for fault in FAULTS.values():
        described = fault.parameters.describe()
        where = [name for name, what in ALL.items() if fault in what.faults]
        assert where
        assert all(described.items() <= ALL[name].settable.items() for name in where)
        assert [line for line in page.splitlines() if line.startswith(f"| `{fault.name}` |")]
        assert all(f"`{parameter}`" in page for parameter in described)
