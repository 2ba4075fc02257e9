"""Trials on somebody else's brokers: TLS, a user with few rights, no credential anywhere, and nothing left behind."""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from confluent_kafka.admin import NewTopic
from typer.testing import CliRunner

from onceproof import cli
from onceproof.lab import external_brokers
from onceproof.lab.external_brokers import ExternalCluster, check_access, lend
from onceproof.lab.permissions import GROUP, NEEDED, TOPIC, TRANSACTION, Permission, check_permissions
from onceproof.lab.quota import clients_with_quota, set_producer_quota
from onceproof.lab.sweep import find_left_on
from onceproof.lab.trial import run_trial
from onceproof.model.cell import MARK
from onceproof.model.client_properties import ClientProperties
from onceproof.model.errors import UsageError
from onceproof.model.files import Outcome, Reading, TrialPlan
from onceproof.model.json_file import write_json
from onceproof.model.run_folder import RunFolder
from onceproof.processes.waiting import await_condition
from onceproof.settings import Settings
from spark_jobs.collect import collect
from tests.conftest import HERE, a_trial, stood_still, undisturbed
from tests.specimens.secured import (
    PASSWORD,
    RELEASE,
    USER,
    Authority,
    Secured,
    secured_broker,
    seen_in_ps,
    written_to,
)

pytestmark = pytest.mark.broker
ENUMERATOR = ("trial", "enumerator", "--streams")


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    """The broker, whose user may do what a trial does."""
    with secured_broker(tmp_path_factory.mktemp("secured")) as started:
        started.allow(USER)
        yield started


def onceproof(properties: str, home: Path, project: Path, *words: str) -> tuple[int, dict[str, Any], set[str]]:
    """Exit code and answer of a command that runs trials, and where the password was seen meanwhile."""
    home.mkdir(exist_ok=True)
    if not (home / "artifacts").exists():
        (home / "artifacts").symlink_to(project / ".onceproof" / "artifacts")
    file = home.parent / "client.properties"
    file.write_text(properties)
    process = subprocess.Popen(
        [sys.executable, "-m", "onceproof.cli", *words, "--brokers", str(file), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "ONCEPROOF_HOME": str(home)},
    )
    with seen_in_ps(PASSWORD) as in_ps:
        out, err = process.communicate(timeout=180)
    assert any((home / "runs").rglob("instance-1.log")), err
    seen = in_ps | ({"output"} if PASSWORD in out + err else set())
    seen |= {path.name for path in written_to(home / "runs", PASSWORD)}
    return process.returncode, json.loads(out), seen


def void(report: tuple[int, dict[str, Any], set[str]]) -> str | None:
    return stood_still([report[1].get("reason", "")])


def test_a_bad_release_is_red_over_scram_and_hides_the_password(tmp_path, broker: Secured, project):
    broker.allow(USER)
    code, answer, seen = undisturbed(
        lambda: onceproof(broker.scram_properties(), tmp_path / "home", project, *ENUMERATOR, "3.3.1"), void
    )
    assert (code, seen) == (1, set()), answer
    assert answer["anomalies"]["duplicate-id"] > 0
    assert answer["broker_is_claimed"]
    assert set(answer["not_looked_at"]) == {"atomicity", "isolation", "fencing", "internal-topics"}
    broker.await_left()


@pytest.mark.night
def test_an_application_uses_own_topics_and_hides_the_password(tmp_path, broker: Secured, project):
    """Its topics are called as one that is somebody else's, which stays as it is."""
    broker.allow(USER)
    folder = shutil.copytree(project / "examples" / "orders", tmp_path / "orders")
    declared = (folder / "onceproof.toml").read_text()
    (folder / "onceproof.toml").write_text(re.sub(r"records = (\d+)00", r"records = \1", declared))
    broker.admin.create_topics([NewTopic("orders", 1)])["orders"].result(10)
    try:
        words = ("app", "run", str(folder), "--streams", "4.3.1", "--fault", "none")
        code, answer, seen = onceproof(broker.plain_properties(), tmp_path / "home", project, *words)
        assert (code, seen) == (0, set()), answer
        [green] = answer["releases"]
        assert set(green["not_looked_at"]) == {"atomicity", "isolation", "fencing", "internal-topics"}
        assert answer["broker"] == "3.9.1-claimed"
        for folder in green["folders"]:
            assert TrialPlan.read(Path(folder) / "trial.json").broker_hosts
        broker.await_left("orders")
    finally:
        broker.admin.delete_topics(["orders"])["orders"].result(10)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("login", "streams", "prefix"),
    [
        ("mutual", "3.4.1", "onceproof.team-a"),
        pytest.param("plain", "4.3.1", MARK, marks=pytest.mark.night),
        pytest.param("oauth", "4.3.1", MARK, marks=pytest.mark.night),
        pytest.param("scram-256", "4.3.1", MARK, marks=pytest.mark.night),
    ],
)
def test_one_file_serves_the_application_our_clients_and_spark(
    tmp_path, broker: Secured, spark, login, streams, prefix
):
    """A team that may use names of its own prefix alone needs no others."""
    broker.allow("CN=member" if login == "mutual" else USER, prefix=prefix)
    properties = {
        "mutual": lambda: broker.mutual_properties(broker.authority.signs("member")),
        "plain": broker.plain_properties,
        "oauth": broker.oauth_properties,
        "scram-256": broker.scram_256_properties,
    }[login]()
    cluster = replace(external_cluster(broker, properties, prefix), release=RELEASE.claimed)

    def attempt() -> Outcome:
        trial = a_trial(streams, scenario="scan")
        trial = replace(trial, cell=replace(trial.cell, broker=cluster.release), prefix=prefix)
        run = RunFolder(tmp_path / trial.run)
        write_json(run.run_file, {"trials": [trial.to_dict()]})
        with lend(cluster, trial.run):
            outcome = run_trial(trial, run.trial(trial), cluster=cluster)
            if not outcome.void:
                assert collect(spark, run, cluster.properties) == {}
                assert records_in(run, "input") == Reading.read(run.trial(trial).reader_file).records > 0
        return outcome

    assert undisturbed(attempt).error is None
    broker.await_left()


def records_in(run: RunFolder, role: str) -> int:
    """How many records a table has of a role."""
    return int(ds.dataset(run.table("records"), partitioning="hive").count_rows(filter=ds.field("role") == role))


def external_cluster(broker: Secured, properties: str, prefix: str = MARK) -> ExternalCluster:
    file = broker.folder / "client.properties"
    file.write_text(properties)
    return ExternalCluster(replace(HERE, prefix=prefix), RELEASE, ClientProperties.read(file))


def refusal(broker: Secured, properties: str) -> str:
    with pytest.raises(UsageError) as refused:
        external_cluster(broker, properties).check_reached()
    assert PASSWORD not in str(refused.value)
    return str(refused.value)


def test_who_is_not_let_in_is_told_why_in_a_sentence(broker: Secured, tmp_path, monkeypatch):
    monkeypatch.setattr(external_brokers, "REACHED_WITHIN", 3.0)
    stranger = Authority(tmp_path, "stranger")
    assert "check sasl.jaas.config" in refusal(broker, broker.scram_properties("wrong"))
    assert "check sasl.jaas.config" in refusal(broker, broker.plain_properties("wrong"))
    assert "cannot be reached" in refusal(broker, broker.oauth_properties("wrong"))
    assert "check the PEM files" in refusal(broker, broker.scram_properties(ca=stranger.file))
    assert "cannot be reached" in refusal(broker, broker.scram_properties(servers="127.0.0.1:1"))
    assert "cannot be reached" in refusal(broker, broker.scram_properties(servers="nowhere.invalid:9092"))
    assert "certificate" in refusal(broker, broker.mutual_properties(stranger.signs("member")))
    assert "certificate" in refusal(broker, broker.mutual_properties(broker.authority.signs("member", days=-1)))
    assert "cannot be reached" in refusal(broker, f"bootstrap.servers={broker.scram}")  # without TLS


@pytest.mark.parametrize("missing", NEEDED, ids=str)
def test_a_missing_permission_is_named_as_a_command(broker: Secured, missing: Permission):
    broker.allow(USER, missing)
    cluster = external_cluster(broker, broker.scram_properties())
    with pytest.raises(UsageError) as refused:
        check_permissions(cluster, USER)
    assert f"--add --allow-principal User:{USER} --operation {missing.operation}" in str(refused.value)
    assert f"{missing.resource} onceproof. --resource-pattern-type prefixed" in str(refused.value)
    assert {kind for kind in (TOPIC, GROUP, TRANSACTION) if f" {kind} " in str(refused.value)} == {missing.resource}
    if missing == Permission(TOPIC, "Delete"):  # this shows only when the topic is there
        [topic] = broker.left()[0]
        assert f"the topic {topic} was created and cannot be deleted" in str(refused.value)
        broker.admin.delete_topics([topic])[topic].result(10)
    broker.await_left()


@pytest.mark.parametrize("login", ["plain", "oauth"])
def test_a_forbidden_quota_is_reported_before_a_trial_needs_it(broker: Secured, login):
    """Asked by clients of librdkafka and of Java, with the logins with which no trial is run here."""
    broker.allow(USER)
    properties = {"plain": broker.plain_properties, "oauth": broker.oauth_properties}[login]()
    cluster, trial = external_cluster(broker, properties), a_trial("3.4.1", scenario="quota")
    with pytest.raises(UsageError) as refused:
        check_access(cluster, trial)
    assert "--operation AlterConfigs --operation DescribeConfigs --cluster" in str(refused.value)
    broker.allow_quotas(USER)
    check_access(cluster, trial)
    broker.await_left()


def test_preflight_prints_what_is_missing_or_that_nothing_is(broker: Secured):
    file = str(broker.folder / "client.properties")
    Path(file).write_text(broker.scram_properties())
    broker.allow(USER, Permission(GROUP, "Read"), Permission(TRANSACTION, "Write"))
    reported = CliRunner().invoke(cli.app, ["system", "preflight", "--brokers", file])
    assert reported.exit_code == 2, reported.output
    assert [line.split("--add ")[1] for line in reported.stdout.splitlines()[:2]] == [
        f"--allow-principal User:{USER} --operation Read --group onceproof. --resource-pattern-type prefixed",
        f"--allow-principal User:{USER} --operation Write --transactional-id onceproof. --resource-pattern-type prefixed",
    ]
    broker.allow(USER)
    reported = CliRunner().invoke(cli.app, ["system", "preflight", "--brokers", file])
    every, quotas = reported.stdout.splitlines()
    assert (reported.exit_code, every) == (0, f"The brokers at {broker.scram} allow what every trial needs.")
    assert "do not let a trial set a quota: " in quotas
    assert quotas.endswith(f"User:{USER} --operation AlterConfigs --operation DescribeConfigs --cluster")
    broker.allow_quotas(USER)
    assert CliRunner().invoke(cli.app, ["system", "preflight", "--brokers", file]).stdout == f"{every}\n"
    broker.await_left()


def test_the_rights_of_a_team_are_checked_with_its_prefix(broker: Secured, monkeypatch):
    file = str(broker.folder / "client.properties")
    Path(file).write_text(broker.scram_properties())
    broker.allow(USER, prefix="onceproof.a")
    for prefix, code in (("onceproof.a", 0), ("onceproof.ab", 2), ("onceproof", 2)):
        monkeypatch.setattr("onceproof.cli.installation.get_settings", lambda team=prefix: Settings(prefix=team))
        asked = CliRunner().invoke(cli.app, ["system", "preflight", "--brokers", file])
        assert asked.exit_code == code, asked.output
        assert (f"--topic {prefix}. --resource-pattern-type prefixed" in asked.stdout) == bool(code)
    broker.await_left()


def test_a_sweep_removes_what_an_old_run_left_and_nothing_else(tmp_path, broker: Secured):
    broker.allow(USER)
    broker.allow_quotas(USER)
    old, young, foreign = "onceproof.20260101T000000-abcd.x-input", "onceproof.29990101T000000-abcd.x-input", "orders"
    for future in broker.admin.create_topics([NewTopic(name, 1) for name in (old, young, foreign)]).values():
        future.result(10)
    cluster, log = external_cluster(broker, broker.scram_properties()), tmp_path / "quota.log"
    for client in (old, foreign):
        set_producer_quota(cluster, RELEASE, client, 1_000, log)
    broker.allow(USER)  # and to see no quotas
    file = broker.folder / "client.properties"
    file.write_text(broker.scram_properties())

    def sweep(*words: str, answer: str | None = None) -> tuple[int, str]:
        """Exit code and output of a sweep from a terminal, if there is an answer, else from a script."""
        at, of = pty.openpty()
        command = [sys.executable, "-m", "onceproof.cli", "system", "sweep", "--brokers", str(file), *words]
        os.write(at, f"{answer}\n".encode())
        stdin = subprocess.DEVNULL if answer is None else of
        env = {**os.environ, "ONCEPROOF_HOME": str(tmp_path), "ONCEPROOF_PROJECT": str(Path.cwd())}
        (tmp_path / "artifacts").unlink(missing_ok=True)
        (tmp_path / "artifacts").symlink_to(HERE.artifacts)
        done = subprocess.run(command, stdin=stdin, capture_output=True, text=True, env=env, check=False)
        os.close(at)
        os.close(of)
        return done.returncode, done.stdout + done.stderr

    try:
        assert sweep("--dry-run") == (0, f"would remove topic {old}\n")
        code, said = sweep()
        assert (code, f"left there: topic {old}" in said, "give --yes, or --dry-run" in said) == (2, True, True)
        code, said = sweep(answer="n")
        assert (code, "removed" in said) == (0, False)
        assert broker.left()[0] == {old, young, foreign}
        code, said = sweep(answer="y")
        assert (code, f"removed topic {old}" in said) == (0, True)
        await_condition("the topic to go", lambda: broker.left()[0] == {young, foreign}, timeout=30)
        broker.allow_quotas(USER)
        assert f"removed quota of {old}" in sweep("--yes")[1]
        assert not any(find_left_on(cluster))
        assert clients_with_quota(cluster, RELEASE, log) == [foreign]
    finally:
        for future in broker.admin.delete_topics([young, foreign]).values():
            future.result(10)
