"""Faults of an instance's state directory in a fake world: each bites, or says why it did not, and is undone."""

import math
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from onceproof.faults import directory, fault, instance_kill, read_only, state_lost
from onceproof.faults.base import run_fault
from onceproof.faults.directory import describe_content
from onceproof.faults.read_only import Seal
from onceproof.lab.driver import Driver
from onceproof.model.errors import NotUnderstoodError
from onceproof.model.files import FaultOutcome, Outcome
from onceproof.scenarios.liveness import compare_liveness
from tests.conftest import a_trial
from tests.fakes.group import Nature
from tests.fakes.instance import FakeInstance
from tests.fakes.world import fake_driver
from tests.users import bound_by_permissions

LEFT = {
    True: "what came after the last commit was on its disk",
    False: "no uncommitted change is known to have reached its disk",
}


@pytest.fixture
def sealable(tmp_path: Path) -> Iterator[None]:
    """Be somebody who can be kept from writing: root, whom permissions do not bind, may lack the right to seal."""
    seal, is_bound = Seal(tmp_path), True
    try:
        seal.close()
    except OSError:
        is_bound = False
    finally:
        seal.open()
    with nullcontext() if is_bound else bound_by_permissions(tmp_path):
        yield


def driven(path: Path, name: str, nature: Nature | None = None, **parameters: Any) -> tuple[Driver, Outcome]:
    """A trial in which the fault strikes, to its end."""
    driver = fake_driver(a_trial("4.3.1", fault=name, **parameters), path, nature)
    outcome = driver.outcome(driver.drive())
    driver.stop()
    return driver, outcome


def proof_of(outcome: Outcome) -> dict[str, Any]:
    """What was observed about a fault that bit."""
    assert outcome.fault is not None
    assert (outcome.fault.bit, outcome.exercised, outcome.void) == (True, True, None), outcome.fault.summary
    return dict(outcome.fault.observed)


def anomalies(driver: Driver) -> list[str]:
    return [comparison.anomaly for comparison in compare_liveness(driver.context.events) if comparison.anomaly]


@pytest.mark.usefixtures("sealable")
@pytest.mark.parametrize(
    ("name", "refused"),
    [("disk-full", {"File too large"}), ("read-only", {"Permission denied", "Operation not permitted"})],
)
def test_who_dies_of_its_disk_breaks_no_promise_and_works_again(tmp_path: Path, name: str, refused: set[str]) -> None:
    driver, outcome = driven(tmp_path, name)
    proof = proof_of(outcome)
    assert proof["refused"] in refused
    assert proof["died_of"].startswith("org.apache.kafka.streams.errors.ProcessorStateException: org.rocksdb.")
    assert proof["wiped"]
    assert proof["processed_afterwards"] >= 200
    assert anomalies(driver) == []
    assert [
        c.observed for c in compare_liveness(driver.context.events) if c.observed.endswith("which the fault explains")
    ]
    victim = driver.lab.instances.running[proof["instance"]]
    victim._touch(driver.lab.instances.state_directory(victim.name) / "anew", "")  # type: ignore[attr-defined]


def test_an_instance_that_survives_a_full_disk_is_restarted(tmp_path: Path) -> None:
    _, outcome = driven(tmp_path, "disk-full", Nature(dies_of_disk=False))
    assert proof_of(outcome)["died_of"] is None
    assert "and it ran on; started again it wiped" in outcome.reason


@pytest.mark.parametrize("when", [0, 6_000])
def test_an_exception_before_the_full_disk_is_an_anomaly(tmp_path: Path, when: int) -> None:
    driver, outcome = driven(tmp_path, "disk-full", Nature(throws_after=when, dies_of_disk=False))
    assert set(anomalies(driver)) == {"thread-died"}
    assert outcome.fault == FaultOutcome("disk-full", bit=False, summary="The drive ended before that.", observed={})
    assert not any(instance._disk_is_full for instance in driver._instances._started)  # type: ignore[attr-defined]


def death(source: str, message: str, *causes: str) -> dict[str, Any]:
    return {
        "t": 1,
        "source": source,
        "event": "uncaught",
        "thread": "a-StreamThread-1",
        "exception": "E",
        "message": message,
        "causes": causes,
        "frame": None,
    }


EXCUSED = {"t": 0, "source": "driver", "event": "excused", "instance": "a", "of": "File too large"}
STARTED = {"t": 0, "source": "driver", "event": "instance", "name": "a", "action": "started", "release": "4.3.1"}


@pytest.mark.parametrize(
    ("events", "anomaly"),
    [
        ([EXCUSED, death("a", "x", "y: File too large")], None),
        ([EXCUSED, death("a", "x: File too large")], None),
        ([death("a", "x", "y: File too large")], "thread-died"),
        ([EXCUSED, death("a", "x", "y: no such key")], "thread-died"),
        ([EXCUSED, death("b", "x", "y: File too large")], "thread-died"),
        ([EXCUSED, STARTED, death("a", "x", "y: File too large")], "thread-died"),
        ([{**EXCUSED, "starts": 1}, STARTED, death("a", "x", "y: File too large")], None),
        ([{**EXCUSED, "starts": 1}, STARTED, STARTED, death("a", "x", "y: File too large")], "thread-died"),
    ],
)
def test_a_full_disk_excuses_its_instance_until_a_restart(events: list[dict[str, Any]], anomaly: str | None) -> None:
    assert list(compare_liveness(events))[-1].anomaly == anomaly


def test_an_old_snapshot_is_restored_and_its_active_task_wiped(tmp_path: Path) -> None:
    driver, outcome = driven(tmp_path, "state-restored")
    proof = proof_of(outcome)
    assert proof["committed_after_snapshot"] >= 5_000
    assert proof["held"]["process"] == proof["lost"]["process"] == proof["process"]
    assert proof["wiped"]
    assert all(restored["from"] == 0 for restored in proof["restored"])
    assert [e["action"] for e in driver.context.events if e["event"] == "instance" and e["name"] == proof["instance"]][
        :4
    ] == [
        "started",
        "frozen",
        "thawed",
        "killed",
    ]
    assert not list(tmp_path.rglob("copied"))


def test_a_killed_instance_wipes_its_state_and_works_again(tmp_path: Path) -> None:
    driver, outcome = driven(tmp_path, "instance-kill")
    proof = proof_of(outcome)
    assert len(proof["tasks"]) == 1
    assert outcome.reason.startswith(f"{proof['instance']} was killed with {proof['tasks'][0]}: ")
    assert f"{LEFT[proof['uncommitted_on_disk']]}; started again it wiped" in outcome.reason
    reported = [
        e["action"] for e in driver.context.events if e["event"] == "instance" and e["name"] == proof["instance"]
    ]
    assert reported[:3] == ["started", "killed", "started"]


def test_a_kill_waits_for_uncommitted_data_on_disk(tmp_path: Path) -> None:
    _, outcome = driven(tmp_path, "instance-kill")
    assert proof_of(outcome)["uncommitted_on_disk"]


def test_a_kill_without_uncommitted_data_on_disk_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fakes.instance.RECORDS_A_FILE", 1_000_000)
    _, outcome = driven(tmp_path, "instance-kill")
    assert proof_of(outcome)["uncommitted_on_disk"] is False


@pytest.fixture
def at_work(tmp_path: Path) -> Iterator[Driver]:
    """An instance works, and a fault may strike."""
    driver = fake_driver(a_trial("4.3.1", fault="instance-kill"), tmp_path)
    driver.lab.instances.start("instance-1")
    driver.lab.await_("it to work", lambda: driver.lab.instances.running["instance-1"].tasks("active"))
    yield driver
    driver.stop()


def test_a_file_written_before_the_commit_does_not_count(at_work: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    fault_run, now = instance_kill.FAULT.new_run(at_work.lab), at_work.lab.now()
    monkeypatch.setattr(instance_kill, "_newest", lambda _: now + instance_kill.LATE - 0.1)
    assert not fault_run.is_ripe()
    monkeypatch.setattr(instance_kill, "_newest", lambda _: now + instance_kill.LATE + 0.1)
    assert fault_run.is_ripe()


@pytest.mark.parametrize("committed_meanwhile", [0, 1])
def test_a_commit_just_before_the_kill_leaves_the_disk_unknown(
    at_work: Driver, monkeypatch: pytest.MonkeyPatch, committed_meanwhile: int
) -> None:
    fault_run = instance_kill.FAULT.new_run(at_work.lab)
    monkeypatch.setattr(instance_kill, "_newest", lambda _: math.inf)
    assert fault_run.is_ripe()
    committed = at_work.lab.count_committed() + committed_meanwhile
    monkeypatch.setattr(at_work.lab, "count_committed", lambda: committed)
    fault_run.apply()
    assert fault_run.report_observed()[0]["uncommitted_on_disk"] is not bool(committed_meanwhile)


def test_a_file_that_is_being_written_is_not_on_disk_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch = FakeInstance._touch
    monkeypatch.setattr(
        FakeInstance, "_touch", lambda one, file, text: touch(one, file, "" if file.suffix == ".sst" else text)
    )
    _, outcome = driven(tmp_path, "instance-kill")
    assert proof_of(outcome)["uncommitted_on_disk"] is False


def test_a_victim_that_has_lost_its_tasks_meanwhile_is_spared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = fake_driver(a_trial("4.3.1", fault="instance-kill"), tmp_path)
    for name in ("instance-1", "instance-2"):
        driver.lab.instances.start(name)
    driver.lab.await_("both to work", lambda: all(one.tasks("active") for one in driver.lab.instances.running.values()))
    fault_run = instance_kill.FAULT.new_run(driver.lab)
    fault_run.is_ripe()
    victim = fault_run.report_observed()[0]["instance"]
    monkeypatch.setattr(driver.lab.instances.running[victim], "tasks", lambda _: [])
    [killed] = {"instance-1", "instance-2"} - {victim}
    assert fault_run.apply() == killed
    assert fault_run.report_observed()[0]["tasks"]
    driver.stop()


def test_stores_that_are_in_memory_may_be_killed_too(tmp_path: Path) -> None:
    driver = fake_driver(a_trial("4.3.1", "SEED_PROGRAM", scenario="multirunner", fault="instance-kill"), tmp_path)
    outcome = driver.outcome(driver.drive())
    driver.stop()
    assert proof_of(outcome)["uncommitted_on_disk"] is None
    assert "it had no store on disk" in outcome.reason


def test_an_instance_that_lost_its_state_restores_all_of_it(tmp_path: Path) -> None:
    _, outcome = driven(tmp_path, "state-lost")
    proof = proof_of(outcome)
    assert proof["lost"]["tasks"]
    assert (proof["held"], proof["wiped"], proof["trusted"]) == ({"process": None, "tasks": {}}, [], {})
    assert len(proof["from_the_beginning"]) == 4


def test_the_state_of_another_instance_is_reported_by_process_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.fakes.instance.RECORDS_A_FILE", 64)
    driver, outcome = driven(tmp_path, "state-copied")
    proof = proof_of(outcome)
    assert proof["process"] == f"process-of-{proof['of']}" != proof["lost"]["process"]
    assert [held["checkpoint"] for held in proof["held"]["tasks"].values()] == [None]
    assert proof["wiped"]
    assert proof["fenced"] == {proof["of"]: 1}
    last = driver.lab.instances.running[proof["instance"]].log.read_text()
    assert "Reading UUID" not in last  # it got its own id


def test_the_state_of_a_cleanly_closed_instance_is_trusted(tmp_path: Path) -> None:
    _, outcome = driven(tmp_path, "state-copied", None, **{"state-copied_source": "closed"})
    proof = proof_of(outcome)
    [checkpoint] = [held["checkpoint"] for held in proof["held"]["tasks"].values() if held["checkpoint"]]
    assert set(checkpoint.values()) <= set(proof["trusted"].values())
    assert not proof["wiped"]


@pytest.mark.parametrize(
    ("name", "nature", "parameters", "why"),
    [
        ("disk-full", Nature(flushes=False), {}, "reported no write that was refused"),
        ("disk-full", Nature(moves=False), {}, "processed fewer than 200 records after it was started again"),
        ("state-restored", Nature(moves=False), {}, "processed fewer than 200 records"),
        ("state-restored", None, {"state-restored_records": 10**6}, "committed after the snapshot, and not 1,000,000"),
        ("state-copied", Nature(flushes=False), {}, "did not report whether it trusted what it found"),
        ("state-copied", Nature(moves=False), {}, "processed fewer than 200 records"),
        ("instance-kill", Nature(moves=False), {}, "processed fewer than 200 records"),
        ("state-lost", Nature(moves=False), {}, "processed fewer than 200 records"),
        ("state-copied", Nature(fences=False), {}, "reported that it was fenced by the other"),
    ],
)
def test_a_proof_that_is_missing_is_told(
    tmp_path: Path, name: str, nature: Nature | None, parameters: dict[str, object], why: str
) -> None:
    driver, outcome = driven(tmp_path, name, nature, **parameters)
    assert outcome.reason.startswith(f"The fault {name} did not take effect: ")
    assert why in outcome.reason
    assert not outcome.exercised
    assert anomalies(driver) == []


@pytest.mark.parametrize(
    ("name", "phrase", "why"),
    [
        ("state-copied", "PROCESS", "did not report that it has the id of instance-2, and so its directory"),
        ("disk-full", "REFUSED", "reported no write that was refused"),
    ],
)
def test_what_no_log_tells_is_no_proof(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, phrase: str, why: str
) -> None:
    monkeypatch.setattr("tests.fakes.instance.RECORDS_A_FILE", 64)
    monkeypatch.setattr(directory, phrase, replace(getattr(directory, phrase), text="in other words"))
    _, outcome = driven(tmp_path, name, Nature(dies_of_disk=False))
    assert outcome.reason.startswith(f"The fault {name} did not take effect: ")
    assert why in outcome.reason


@pytest.mark.parametrize("name", ["state-copied", "state-lost", "state-restored"])
def test_a_log_without_store_initialisation_is_a_harness_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for phrase in ("TRUSTED", "WIPED", "ANEW"):
        monkeypatch.setattr(directory, phrase, replace(getattr(directory, phrase), text="in other words"))
    with pytest.raises(NotUnderstoodError, match="does not say how its stores were initialised"):
        driven(tmp_path, name)


def test_a_state_that_was_none_cannot_be_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_lost, "describe_content", lambda _: {"process": None, "tasks": {}})
    _, outcome = driven(tmp_path, "state-lost")
    assert outcome.reason == "The fault state-lost did not take effect: the directory of instance-1 held no task."


@pytest.mark.parametrize(("name", "beside"), [("disk-full", ""), ("state-copied", " and another one besides it")])
def test_a_fault_without_an_instance_to_strike_says_so(tmp_path: Path, name: str, beside: str) -> None:
    driver = fake_driver(a_trial("4.3.1", fault=name), tmp_path)
    reported = run_fault(fault(name), driver.lab, lambda: None).summary
    assert reported.startswith(
        f"The fault {name} did not take effect: it takes an instance with an active task{beside}, but 0 ran"
    )
    driver.stop()


def test_a_directory_that_cannot_be_sealed_against_root_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Seal, "_lets_create", lambda _: True)
    monkeypatch.setattr(read_only, "_set_immutable", lambda _path, immutable: None)
    _, outcome = driven(tmp_path, "read-only")
    assert "cannot be made read-only (neither permissions nor the immutable flag bind this user): run as" in (
        outcome.reason
    )


@pytest.mark.usefixtures("sealable")
def test_a_sealed_directory_refuses_changes_until_it_is_opened(tmp_path: Path) -> None:
    below = tmp_path / "0_0"
    below.mkdir(mode=0o750)
    file = below / "file"
    file.touch()
    seal = Seal(tmp_path)
    seal.close()
    for attempt in (file.unlink, below.rmdir, (below / "other").touch, lambda: file.rename(below / "other")):
        with pytest.raises(PermissionError):
            attempt()
    seal.open()
    assert below.stat().st_mode & 0o777 == 0o750
    file.unlink()
    below.rmdir()


def test_permissions_bind_a_user(tmp_path: Path) -> None:
    directory = tmp_path / "state"
    directory.mkdir()
    with bound_by_permissions(directory):
        seal = Seal(directory)
        assert seal.close() == "permissions"
        seal.open()
        (directory / "file").touch()


def test_a_directory_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert describe_content(tmp_path / "none") == {"process": None, "tasks": {}}
