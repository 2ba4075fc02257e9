"""The verbs of the DAG's tasks, in a cardboard lab."""

import os
import shutil
import signal
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from onceproof.atlas.file import read_atlas
from onceproof.model.cell import is_run_id
from onceproof.model.client_properties import ClientProperties
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.files import Outcome, VerdictRow
from onceproof.model.json_file import read_json, write_json
from onceproof.model.matrix import Request
from onceproof.model.run_folder import RunFolder
from onceproof.pipeline import steps
from onceproof.processes.process import spawn
from onceproof.settings import get_settings
from onceproof.spark import connector_jars
from tests.conftest import a_trial
from tests.pipeline.cardboard import BROKEN, FakeLab
from tests.published import keep_list
from tests.specimens.files import a_verdict

RUN = "20261121T084500-3f2a"
CELL = "enumerator-DEFAULT_CONFIG-s3.3.1-b3.9.2"
REQUEST = Request(
    "seed",
    ("3.3.1", "3.4.1"),
    scenarios=("enumerator",),
    variants=("DEFAULT_CONFIG", "CACHING_DISABLED"),
    trials=2,
    budget=6,
)


@pytest.fixture
def run(lab: FakeLab) -> RunFolder:
    return steps.plan(RUN, REQUEST)


@pytest.fixture
def up(run: RunFolder) -> RunFolder:
    """A run whose brokers serve."""
    steps.start_cluster(run, "3.9.2")
    return run


# --- plan


def test_a_plan_holds_every_trial_of_every_cell(run):
    planned = read_json(run.run_file)
    assert len(planned["cells"]) == 4
    assert len(list(run.trials())) == 8
    assert steps.brokers(run) == [{"key": "3.9.2", "title": "broker 3.9.2"}]
    assert steps.cells(run)[0] == {"key": CELL, "title": "3.3.1 × DEFAULT_CONFIG (enumerator, broker 3.9.2)"}


def test_one_run_draws_the_same_seeds_and_another_run_others(run, lab):
    seeds = [trial.seed for trial in run.trials()]
    assert len(set(seeds)) == 8
    assert [trial.seed for trial in steps.plan(RUN, REQUEST).trials()] == seeds
    assert [trial.seed for trial in steps.plan(RUN[:-1] + "b", REQUEST).trials()] != seeds


def test_a_plan_has_exact_releases_that_a_resumed_run_keeps(lab, home, capsys):
    request = Request("first-look", ("newest", "3.4"), scenarios=("enumerator",), variants=("DEFAULT_CONFIG",))
    run = steps.plan(RUN, request)
    assert "newest is 4.4.0, as Maven listed the releases at " in capsys.readouterr().out
    planned = read_json(run.run_file)
    assert [cell["streams"] for cell in planned["cells"]][:2] == ["3.4.1", "4.4.0"]
    assert planned["published"]["releases"][-1] == "4.4.0"
    keep_list(home / "artifacts", "4.5.0", "3.4.2")
    assert steps.plan(RUN, request).path == run.path
    assert read_json(run.run_file) == planned
    assert {
        str(cell.streams) for cell in steps.check_request(request, lambda: steps.read_published_for(run)).cells
    } == {cell["streams"] for cell in planned["cells"]}
    other = read_json(steps.plan(RUN[:-1] + "b", request).run_file)
    assert [cell["streams"] for cell in other["cells"]][:2] == ["3.4.2", "4.5.0"]


def test_a_plan_without_words_does_not_ask_what_is_published(lab, home, monkeypatch):
    monkeypatch.setenv("ONCEPROOF_MAVEN", "no-such-maven")
    (home / "artifacts" / "releases" / "published.json").unlink()
    get_settings.cache_clear()
    assert read_json(steps.plan(RUN, REQUEST).run_file)["published"] is None
    with pytest.raises(UsageError, match="No Maven"):
        steps.plan(RUN[:-1] + "b", replace(REQUEST, streams=("newest",)))


def test_which_brokers_a_run_takes_is_said_with_the_reason(lab, home):
    fields = {
        name: steps.why_brokers(Request(name), steps.expand_request(Request(name)))
        for name in ("first-look", "nightly")
    }
    assert fields["first-look"].startswith(
        "brokers 3.9.2, of the matrix first-look: they serve every release of Kafka Streams"
    )
    assert fields["nightly"].startswith("brokers 4.2.0, 4.2.1, 4.4.0, of the matrix nightly: people run them")
    asked = Request(brokers=("4.0",))
    assert steps.why_brokers(asked, steps.expand_request(asked)) == "brokers 4.0.2, as asked for"


@pytest.mark.parametrize(
    "request_",
    [
        Request("everything"),
        Request(streams=("3.3.x",)),
        Request(streams=("3.12",)),
        Request(streams=("3.3.1; rm -rf /",)),
        Request(scenarios=("elevator",)),
        Request(variants=("NONE",)),
        Request(trials=0),
    ],
)
def test_what_does_not_exist_is_not_planned(lab, home, request_):
    with pytest.raises(UsageError):
        steps.plan(RUN, request_)
    assert not (home / "runs").exists()


def test_nothing_is_planned_on_a_disk_that_is_nearly_full(lab, home, monkeypatch):
    free = shutil.disk_usage(home).free / 2**30
    for least, is_planned in ((f"{free + 100}", False), ("0", True)):
        monkeypatch.setenv("ONCEPROOF_LEAST_FREE", least)
        get_settings.cache_clear()
        if is_planned:
            assert steps.plan(RUN, REQUEST).run_file.exists()
        else:
            with pytest.raises(UsageError, match=r"GiB are free, .* set ONCEPROOF_LEAST_FREE"):
                steps.plan(RUN, REQUEST)
            assert not (home / "runs").exists()


def test_a_release_that_is_not_published_is_not_planned(lab, home):
    lab.failing["published", "9.9.9"] = UsageError("Kafka 9.9.9 is not published.")
    with pytest.raises(UsageError, match="not published"):
        steps.plan(RUN, Request(streams=("9.9.9",)))
    assert not (home / "runs").exists()


def test_a_plan_stops_what_an_earlier_run_has_left(up, lab):
    steps.plan(RUN[:-1] + "b", REQUEST)
    assert lab.stopped == ["3.9.2"]


def test_run_ids_tell_the_time_and_are_repeatable():
    noon = datetime(2026, 11, 21, 13, 0, tzinfo=UTC).astimezone()
    made = steps.new_run_id(noon, "scheduled__x")
    assert is_run_id(made)
    assert made.startswith("20261121T130000-")
    assert made == steps.new_run_id(noon, "scheduled__x") != steps.new_run_id(noon, "scheduled__y")


def test_only_slots_before_airflow_came_up_were_missed(monkeypatch):
    now = datetime.now(UTC)
    assert not steps.was_missed(now - timedelta(days=1))  # an Airflow other than ours
    monkeypatch.setenv(steps.UP_SINCE_VARIABLE, now.isoformat())
    assert steps.was_missed(now - timedelta(minutes=1))
    assert not steps.was_missed(now + timedelta(minutes=1))


# --- clusters


def test_brokers_belong_to_the_supervisor(run, lab, monkeypatch):
    monkeypatch.setenv(steps.OWNER_VARIABLE, "4711")
    steps.start_cluster(run, "3.9.2")
    assert ("start", "3.9.2 for 4711") in lab.done


def test_a_cluster_that_does_not_start_is_its_trials_outcome(run, lab):
    lab.failing["start", "3.9.2"] = BROKEN
    steps.start_cluster(run, "3.9.2")
    steps.prepare(run)
    with pytest.raises(HarnessError, match=r"2 of 2 trials failed: The broker died\."):
        steps.drive(run, CELL)
    assert [run.outcome(t).error for t in run.trials() if t.cell.key == CELL] == ["The broker died."] * 2
    steps.stop_clusters(run)
    assert lab.stopped == []


def test_clusters_are_stopped_once(up, lab):
    steps.stop_clusters(up)
    steps.stop_clusters(up)
    assert lab.stopped == ["3.9.2"]


def test_nothing_to_stop_is_no_error(tmp_path):
    steps.stop_clusters(RunFolder(tmp_path / "never"))


# --- brokers of your own

ON_EXTERNAL = replace(REQUEST, brokers=("3.9.2-claimed",))


def external() -> ClientProperties:
    return ClientProperties.of({"bootstrap.servers": "127.0.0.1:1"}, "a test")


@pytest.fixture
def external_run(lab, monkeypatch) -> RunFolder:
    """A run on brokers that allow all that it does."""
    monkeypatch.setattr(
        "onceproof.lab.external_brokers.check_access",
        lambda external, *_: lab.done.append(("asked", str(external.release))),
    )
    monkeypatch.setattr(
        "onceproof.lab.sweep.remove_run",
        lambda external, run: lab.stopped.append(f"{run} on {external.bootstrap_servers}"),
    )
    run = steps.plan(RUN, ON_EXTERNAL, external=external)
    steps.start_cluster(run, "3.9.2-claimed", external)
    return run


def test_external_brokers_are_checked_first_and_not_started(external_run, lab):
    assert lab.done == [("asked", "3.9.2-claimed")]
    assert read_json(external_run.run_file)["connection"] == "onceproof_brokers"
    [holder], written = lab.held, read_json(external_run.cluster_file("3.9.2-claimed"))
    assert (written["release"], written["bootstrap_servers"]) == ("3.9.2-claimed", "127.0.0.1:1")
    assert (written["alive"]["pid"], holder.alive()) == (holder.pid, True)
    holder.terminate()


def test_a_run_that_cannot_say_that_it_is_alive_does_not_begin(external_run, lab, monkeypatch):
    def refused(*_: object, **__: object) -> None:
        raise BROKEN

    steps.stop_clusters(external_run)
    monkeypatch.setattr("onceproof.lab.alive.hold", refused)
    steps.start_cluster(external_run, "3.9.2-claimed", external)
    assert read_json(external_run.cluster_file("3.9.2-claimed"))["error"] == str(BROKEN)


def test_trials_run_on_external_brokers_with_one_cleanup_per_run(external_run, lab):
    [cell, *_] = (cell["key"] for cell in steps.cells(external_run))
    steps.prepare(external_run, external)
    steps.drive(external_run, cell, external)
    assert len(external_run.list_driven()) == 2
    steps.stop_clusters(external_run)  # as another run does that finds it
    assert (lab.stopped, [holder.alive() for holder in lab.held]) == ([], [False])
    steps.stop_clusters(external_run, external)
    steps.stop_clusters(external_run, external)
    assert lab.stopped == [f"{RUN} on 127.0.0.1:1"]


def test_a_run_on_them_cannot_be_resumed_once_it_has_begun(external_run, lab):
    with pytest.raises(UsageError, match=rf"^Run {RUN} cannot be resumed: .* brokers of your own \(3\.9\.2-claimed\)"):
        steps.plan(RUN, ON_EXTERNAL, external=external)
    external_run.cluster_file("3.9.2-claimed").unlink()
    assert steps.plan(RUN, ON_EXTERNAL, external=external).path == external_run.path  # nothing was there to be removed


def test_a_claimed_release_without_brokers_is_refused(lab):
    with pytest.raises(UsageError, match="name them with --brokers"):
        steps.plan(RUN, ON_EXTERNAL)
    assert lab.done == []


# --- brokers of a trial's own

OWN = Request(
    "known", scenarios=("migration",), streams=("4.3.1",), brokers=("4.2.1",), variants=("NOT_COMPACTED",), trials=2
)
APART, CONTROL = "migration-NOT_COMPACTED-s4.3.1-b4.2.1", "migration-DEFAULT_CONFIG-s4.3.1-b4.2.0"


@pytest.fixture
def apart(lab) -> RunFolder:
    """A run each of whose trials has brokers of its own."""
    return steps.plan(RUN, OWN)


def test_brokers_of_a_trial_are_started_when_it_is_driven(apart, lab):
    assert [item["key"] for item in steps.brokers(apart)] == [APART, CONTROL]
    steps.start_cluster(apart, APART)
    steps.prepare(apart)
    assert lab.done == []
    steps.drive(apart, APART)
    each = ["start", "provision", "preload", "drive"]
    assert [name for name, _ in lab.done] == each * 2
    assert [apart.cluster_of(trial) for trial in apart.list_driven()] == [f"{APART}-t1", f"{APART}-t2"]
    steps.stop_clusters(apart)
    assert lab.stopped == ["4.2.1"] * 2


def test_a_resumed_run_restores_brokers_of_a_trial_with_topics(apart, lab):
    lab.failing["drive", f"{APART}-t2"] = BROKEN
    with pytest.raises(HarnessError):
        steps.drive(apart, APART)
    lab.failing.clear()
    steps.plan(RUN, OWN)
    lab.done.clear()
    steps.start_cluster(apart, APART)
    steps.drive(apart, APART)
    assert [name for name, _ in lab.done] == ["start", "start", "provision", "preload", "drive"]
    assert [trial.key for trial in apart.list_driven()] == [f"{APART}-t1", f"{APART}-t2"]


def test_brokers_of_a_trial_that_do_not_start_are_its_outcome(apart, lab):
    lab.failing["start", "4.2.1"] = BROKEN
    with pytest.raises(HarnessError, match="2 of 2 trials failed: The broker died"):
        steps.drive(apart, APART)
    steps.drive(apart, CONTROL)
    assert [trial.cell.key for trial in apart.list_driven()] == [CONTROL] * 2


# --- cells


def test_all_cells_are_prepared_before_one_is_driven(up, lab):
    steps.prepare(up)
    steps.drive(up, CELL)
    trials = list(up.trials())
    assert [name for name, _ in lab.done[1:]] == ["provision", "preload"] * len(trials) + ["drive"] * 2
    assert {key for name, key in lab.done if name == "preload"} == {trial.key for trial in trials}
    assert {trial.cell.key for trial in up.list_driven()} == {CELL}


def test_a_failed_trial_is_written_down_and_the_others_go_on(up, lab):
    lab.failing["preload", f"{CELL}-t1"] = BROKEN
    steps.prepare(up)
    with pytest.raises(HarnessError, match=r"1 of 2 trials failed: The broker died\."):
        steps.drive(up, CELL)
    assert [trial.key for trial in up.list_driven()] == [f"{CELL}-t2"]
    assert ("drive", f"{CELL}-t1") not in lab.done


def test_an_error_that_nobody_foresaw_is_an_outcome_too(up, lab):
    steps.prepare(up)
    lab.failing["drive", f"{CELL}-t1"] = ValueError("no such thing")
    with pytest.raises(HarnessError, match="1 of 2 trials failed: ValueError: no such thing"):
        steps.drive(up, CELL)
    assert [trial.key for trial in up.list_driven()] == [f"{CELL}-t2"]


def test_a_trial_that_has_an_outcome_is_not_repeated(up, lab):
    steps.prepare(up)
    steps.drive(up, CELL)
    steps.drive(up, CELL)
    assert [name for name, _ in lab.done].count("drive") == 2


def test_an_interrupted_run_goes_on_where_it_was(up, lab):
    lab.failing["drive", f"{CELL}-t2"] = BROKEN
    steps.prepare(up)
    with pytest.raises(HarnessError):
        steps.drive(up, CELL)
    steps.end_trials(up)
    lab.failing.clear()
    lab.done.clear()
    assert steps.plan(RUN, REQUEST).path == up.path  # as a task of the next Airflow run does
    assert not up.trials_over.exists(), "or Spark would begin at once"
    steps.start_cluster(up, "3.9.2")
    steps.prepare(up)
    steps.drive(up, CELL)
    assert [done for done in lab.done if done[0] != "start" and done[1].startswith(CELL)] == [
        ("provision", f"{CELL}-t2"),
        ("preload", f"{CELL}-t2"),
        ("drive", f"{CELL}-t2"),
    ]
    assert len(up.list_driven()) == 2
    aside = up.path / f"trials/{CELL}-t2.attempt-1"
    assert Outcome.read(aside / "outcome.json").error == str(BROKEN)


def test_a_published_run_is_added_to_the_atlas_of_the_settings(up, tmp_path, monkeypatch):
    monkeypatch.setenv("ONCEPROOF_ATLAS", str(tmp_path / "nightly.sqlite"))
    get_settings.cache_clear()
    VerdictRow.write_all(up.verdicts_file, [verdict("clean")])
    steps.extend_atlas(up)
    assert [one.run for one in read_atlas(tmp_path / "nightly.sqlite")] == [RUN]


def test_a_run_whose_checks_failed_can_be_gone_on_with(up, lab):
    steps.prepare(up)
    steps.drive(up, CELL)
    for other in ("error", "clean"):
        VerdictRow.write_all(up.verdicts_file, [verdict("clean"), verdict(other, 1)])
        if other == "error":
            steps.publish(up)
        steps.plan(RUN, REQUEST)  # something failed; or it was killed before its verdicts were stored
        assert not up.verdicts_file.exists()
        assert len(up.list_driven()) == 2
    VerdictRow.write_all(up.verdicts_file, [verdict("clean")])
    steps.publish(up)
    with pytest.raises(UsageError, match="has its verdicts"):
        steps.plan(RUN, REQUEST)


def test_a_run_whose_topics_are_gone_begins_anew(up, lab):
    steps.prepare(up)
    steps.drive(up, CELL)
    steps.discard_data(up)
    steps.plan(RUN, REQUEST)
    steps.start_cluster(up, "3.9.2")
    assert up.list_driven() == []


def test_an_interrupted_run_goes_on_with_its_own_request_only(run):
    with pytest.raises(UsageError, match="resume it with what it was asked for"):
        steps.plan(RUN, Request(trials=3))


def test_only_the_last_run_can_be_gone_on_with(up, lab):
    assert list(up.path.glob("clusters/*/data-1"))
    steps.plan(RUN[:-1] + "b", REQUEST)
    assert not list(up.path.glob("clusters/*/data-1"))


@pytest.mark.parametrize("other", ["", "/opt/airflow"], ids=["crashed", "of another Airflow"])
def test_a_run_that_another_airflow_drives_keeps_its_brokers(up, lab, tmp_path, monkeypatch, capsys, other):
    broker = spawn(["sleep", "600"], log=tmp_path / "log")
    try:
        node = {"pid": broker.pid, "started": broker.started, "boot": broker.boot, "log": str(broker.log)}
        write_json(file := up.cluster_file("3.9.2"), read_json(file) | {"nodes": [node]})
        if other:
            monkeypatch.setenv("AIRFLOW_HOME", other)
        steps.plan(RUN[:-1] + "b", REQUEST)
        assert bool(list(up.path.glob("clusters/*/data-1"))) == bool(other)
        assert lab.stopped == ([] if other else ["3.9.2"])
        said = f"Run {RUN} is under way in another Airflow: its brokers are left alone."
        assert (said in capsys.readouterr().out) == bool(other)
        broker.terminate()  # then it is no longer under way
        steps.plan(RUN[:-1] + "c", REQUEST)
        assert not list(up.path.glob("clusters/*/data-1"))
    finally:
        broker.terminate()


# --- further trials


def test_cells_get_further_trials_until_their_claims_stand(up, lab, monkeypatch):
    def run_trial(trial, folder, report, cluster):
        lab.done.append(("further", trial.key))
        lab.end(trial, folder, **({"duplicate-id": 1} if trial.number == 3 else {}))

    monkeypatch.setattr("onceproof.lab.trial.run_trial", run_trial)
    for trial in up.trials():
        lab.end(trial, up.trial(trial))
    steps.add_trials(up)
    # The control was green twice. Once it had been red, the other cells' greens were enough.
    assert [key for name, key in lab.done if name == "further"] == [f"{CELL}-t3"]
    assert len({trial.seed for trial in up.trials()}) == 9


def test_where_only_trials_are_named_no_verdict_gets_more(lab):
    run = steps.plan(RUN, replace(REQUEST, budget=None))
    planned = len(list(run.trials()))
    for trial in run.trials():
        lab.end(trial, run.trial(trial))
    steps.add_trials(run)
    assert len(list(run.trials())) == planned


def test_a_trial_of_a_killed_process_is_void_and_gets_replaced(up, lab, monkeypatch):
    driven = []

    def run_trial(trial, folder, report, cluster):
        driven.append(trial.key)
        lab.end(trial, folder)

    monkeypatch.setattr("onceproof.lab.trial.run_trial", run_trial)
    monkeypatch.setattr("onceproof.results.sequential._wants_more", lambda *_: False)
    lost, *others = up.trials()
    of_cell = [trial for trial in others if trial.cell == lost.cell]
    for trial in others:
        lab.end(trial, up.trial(trial))
    up.trial(lost).path.mkdir(parents=True)
    up.trial(lost).timeline.write_text("{}\n")
    steps.add_trials(up)
    assert driven == [f"{lost.cell.key}-t{len(of_cell) + 2}"]
    assert up.outcome(lost).void == steps.CUT_OFF
    assert driven[0] in up.list_planned_keys()  # it says as much as the one that was planned
    steps.add_trials(up)
    assert len(driven) == 1


def test_sigterm_lets_finally_clauses_run_and_leaves_no_outcome(up, lab, monkeypatch):
    ended = []

    def drive(*_: object) -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            ended.append(True)

    steps.prepare(up)
    monkeypatch.setattr("onceproof.lab.trial.drive", drive)
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        steps.drive(up, CELL)
    assert ended == [True]
    assert up.outcome(next(up.trials())) is None
    assert signal.getsignal(signal.SIGTERM) == before


# --- gate


def verdict(word: str, number: int = 0) -> VerdictRow:
    return a_verdict(a_trial("3.4.1").cell, word, cell=f"cell-{number}", sentence=f"why {number}\nand a log")


@pytest.mark.parametrize("word", ["clean", "known", "avoided", "inconclusive"])
def test_the_gate_lets_pass_what_is_no_news(run, word):
    VerdictRow.write_all(run.verdicts_file, [verdict(word)])
    steps.gate(run)


@pytest.mark.parametrize("word", ["regression", "error"])
def test_the_gate_stops_a_run_and_says_where_everything_lies(run, word):
    VerdictRow.write_all(run.verdicts_file, [verdict("clean"), verdict(word, 1)])
    with pytest.raises(steps.GateError) as stopped:
        steps.gate(run)
    assert str(stopped.value).splitlines() == [
        f"1 of the run's cells regressed, failed, or are controls that were not red; everything is published in {run.path}",
        f"{word}: cell-1: why 1",
    ]


def test_the_gate_stops_a_run_whose_control_was_not_red(run):
    silent = replace(verdict("inconclusive"), issues=("KAFKA-14172",))
    VerdictRow.write_all(run.verdicts_file, [verdict("inconclusive", 1), silent])
    with pytest.raises(steps.GateError, match="inconclusive: cell-0: why 0"):
        steps.gate(run)


def test_the_gate_is_brief(run):
    VerdictRow.write_all(run.verdicts_file, [verdict("regression", n) for n in range(50)])
    with pytest.raises(steps.GateError) as stopped:
        steps.gate(run)
    lines = str(stopped.value).splitlines()
    assert len(lines) == steps.GATE_LINES
    assert lines[-1] == f"and 42 more in {run.verdicts_file}"


# --- Spark


def test_the_connectors_jars_are_found(home):
    folder = home / "artifacts" / "spark-connector"
    folder.mkdir(parents=True)
    for name in ("b.jar", "a.jar", "pom.xml"):
        (folder / name).touch()
    assert connector_jars() == f"{folder / 'a.jar'},{folder / 'b.jar'}"


def test_a_missing_connector_says_what_to_do(home):
    with pytest.raises(UsageError, match="run `onceproof system setup`"):
        connector_jars()
