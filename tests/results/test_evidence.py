"""The archive of a cell: it has what a reader of a JIRA needs, and nothing that gives the machine away."""

import errno
import getpass
import json
import os
import resource
import shlex
import shutil
import socket
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from markdown_it import MarkdownIt

from onceproof.model.anomaly import Comparison, Witness
from onceproof.model.cell import Cell, Trial
from onceproof.model.decoding import decode
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.files import Outcome, TrialPlan, VerdictRow, write_observations
from onceproof.model.json_file import write_json
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.results.evidence.archive import write_evidence
from onceproof.results.evidence.case import find_run
from onceproof.results.redaction import Redaction
from onceproof.settings import get_settings
from tests.commands import parse_command
from tests.specimens.files import a_plan, a_reading, a_verdict, an_outcome

RUN = "20261121T123358-117b"
RED = Cell("crash", "DEFAULT_CONFIG", Release(4, 1, 2), Release(3, 9, 1), Release(4, 3, 1))
GREEN = Cell("crash", "NO_STATE_UPDATER", Release(4, 1, 2), Release(3, 9, 1))
T0 = 1795264571108  # 2026-11-21T12:36:11.108Z
LOST = {
    "anomaly": "lost-record",
    "partition": 0,
    "key": 7,
    "ids": [],
    "offsets": ["input/0@50"],
    "expected": "1 record",
    "observed": "0 records | none",
}
WITHOUT_KEY = {
    **LOST,
    "anomaly": "aborted-by-throttle",
    "key": None,
    "offsets": ["output/0@20", "task 0_0, store seen"],
}


def stamp(seconds):
    return f"[2026-11-21T12:36:{seconds:06.3f}+0000]"


LOG = f"""\
{stamp(12)} INFO too early (org.apache.kafka.streams.KafkaStreams)
\tof the early one
{stamp(20)} INFO within
\tat org.apache.kafka.streams.KafkaStreams.start(KafkaStreams.java:1)
{stamp(59)} INFO too late
"""


def make_run(runs, run_id=RUN, log=LOG, streams_config=None, cluster_folder=None, verdicts=True):
    """A judged run of two cells: a red one with two trials, the first of which is green, and a green one."""
    run = RunFolder(runs / run_id)
    trials = [
        Trial(run_id, RED, 1, 11),
        Trial(run_id, RED, 2, 12, {"rate": 5, "program": "1 2 3"}),
        Trial(run_id, GREEN, 1, 13),
    ]
    write_json(run.run_file, {"matrix": "seed", "created": "now", "trials": [trial.to_dict() for trial in trials]})
    write_json(
        run.cluster_file("3.9.1"),
        {"bootstrap_servers": "127.0.0.1:5000", "folder": str(cluster_folder or run.path / "clusters" / "3.9.1")},
    )
    for trial in trials:
        folder = run.trial(trial)
        red = trial == trials[1]
        config = {"processing.guarantee": "exactly_once_v2", **(streams_config or {})}
        a_plan(trial, streams_config=config).write(folder.trial_file)
        reported = {
            "streams_version": "4.1.2",
            "streams_commit": "c82fd9b934b4c1e6",
            "clients_version": "4.1.2",
            "java": "17.0.15",
        }
        attested = {"instance-1": reported} if red else {}
        an_outcome(trial, attested=attested).write(folder.outcome_file)
        found = tuple(decode(Witness, data) for data in (LOST, WITHOUT_KEY)) if red else ()
        counts = {"lost-record": 1, "aborted-by-throttle": 1} if red else {}
        a_reading(records=100, keys=100, anomalies=counts, witnesses=found).write(folder.reader_file)
        wiped = Comparison("wipe", None, 0, None, "task 0_0", "wiped", "all is well")
        write_observations(folder.observations_file, [wiped])
        events: list[tuple[int, str, str, dict[str, object]]] = [
            (0, "driver", "phase", {"name": "commit"}),
            (1, "driver", "instance", {"name": "instance-1", "action": "started", "release": "4.1.2"}),
            (2, "instance-1", "state", {"from": "CREATED", "to": "RUNNING"}),
            (3, "instance-1", "restore", {"store": "seen", "partition": 0, "from": 0, "end": 4}),
            (3, "instance-1", "restore", {"store": "seen", "partition": 1, "from": 2, "end": 4}),
            (4, "instance-1", "progress", {"processed": []}),
            (12, "driver", "crash", {"during": "running"}),
            (14, "driver", "drained", {"committed": 100}),
        ]
        lines = [json.dumps({"t": T0 + 1000 * s, "source": by, "event": what, **rest}) for s, by, what, rest in events]
        folder.timeline.write_text("\n".join([*lines, '{"t": 17952645']))
        folder.instances.mkdir()
        (folder.instances / "instance-1.log").write_text(log)
        folder.contents.mkdir()
        (folder.contents / "0_0.csv").write_text("seen,0,0,7,7\n")
    if verdicts:
        rows = [judged(RED, "known", trials[:2], 1), judged(GREEN, "clean", trials[2:], 0)]
        VerdictRow.write_all(run.verdicts_file, rows)
    records = [
        {
            "role": role,
            "partition": 0,
            "offset": offset,
            "timestamp": None,
            "key": offset % 30,
            "value": offset,
            "trial": trial.key,
        }
        for trial in trials
        for role in ("input", "output")
        for offset in range(100)
    ]
    parts = ds.partitioning(pa.schema([("role", pa.string())]), flavor="hive")
    schema = pa.schema(
        {
            "role": pa.string(),
            "partition": pa.int32(),
            "offset": pa.int64(),
            "timestamp": pa.timestamp("ns"),
            "key": pa.int32(),
            "value": pa.int64(),
            "trial": pa.string(),
        }
    )
    ds.write_dataset(pa.Table.from_pylist(records, schema), run.table("records"), format="parquet", partitioning=parts)
    findings = [{**witness, "trial": trials[1].key} for witness in ({**LOST, "offsets": ["input/0@100"]}, LOST)]
    ds.write_dataset(pa.Table.from_pylist(findings), run.table("findings"), format="parquet")
    return run, trials


def judged(cell, verdict, trials, red):
    anomalies = {"lost-record": 1} if red else {}
    sentence = "1 lost-record: expected." if red else "No anomaly."
    fields = {"sentence": sentence, "red": red, "counted": len(trials), "trials": len(trials)}
    return a_verdict(cell, verdict, anomalies=anomalies, **fields)


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path / "runs")[0]


def contents(path):
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name).decode() for name in archive.namelist()}


def test_the_archive_tells_the_red_trial_whole(tmp_path, run):
    members = contents(write_evidence(run, RED.key, tmp_path / "evidence.zip"))
    other = f"other-trials/{RED.key}-t1"
    assert list(members) == [
        "logs/whole/instance-1.log",
        "logs/window/instance-1.log",
        f"{other}/outcome.json",
        f"{other}/reader.json",
        f"{other}/trial.json",
        "tables/findings.csv",
        "tables/records-around-witnesses.csv",
        "trial/contents/0_0.csv",
        "trial/observations.json",
        "trial/outcome.json",
        "trial/reader.json",
        "trial/timeline.jsonl",
        "trial/trial.json",
        "verdict.json",
        "README.md",
    ]
    assert json.loads(members["trial/trial.json"])["trial"]["number"] == 2
    page = members["README.md"]
    for part in (
        "4.1.2 → 4.3.1 × DEFAULT_CONFIG (crash, broker 3.9.1): ✘ known",
        "1 lost-record: expected.",
        "Red/counted: **1/2**",
        "| instance-1 | 4.1.2 | c82fd9b934b4c1e6 | 4.1.2 |  | 17.0.15 |",
        "processing.guarantee=exactly_once_v2",
        "| 1 | lost-record | 0 | 7 |  | 1 record | 0 records \\| none | input/0@50 |",
        "| wipe | task 0\\_0 | wiped | all is well | as expected |",
        "  12.000  driver      crash       during=running",
        "   3.000  instance-1  restore     2 partitions of seen: 6 offsets to replay",
        "| 1 | 11 | yes | none |",
    ):
        assert part in page
    assert "progress" not in page
    assert members["trial/timeline.jsonl"].endswith('"{\\"t\\": 17952645"\n')  # a line that was cut off is kept


@pytest.mark.parametrize("name", ["preload.jsonl", "seed.jsonl"])  # the latter in runs from before it was renamed
def test_the_first_records_are_in_the_archive(tmp_path, run, name):
    (run.trial(f"{RED.key}-t2").path / name).write_text('{"t": 1}\n')
    assert f"trial/{name}" in contents(write_evidence(run, RED.key, tmp_path / "evidence.zip"))


def test_nothing_of_others_is_markdown_in_the_first_page(tmp_path, run):
    script, path = "<script>alert(1)</script>", "/srv/their_own/secret_place"
    folder = run.trial(f"{RED.key}-t2")
    witness = replace(decode(Witness, LOST), expected=f"[x](http://y) {script}", observed=f"in {path} | `a`")
    a_reading(records=100, keys=100, anomalies={"lost-record": 1}, witnesses=(witness,)).write(folder.reader_file)
    an_outcome(Trial(RUN, RED, 2, 12), reason=f"*bold* {script} in {path}").write(folder.outcome_file)
    a_plan(Trial(RUN, RED, 2, 12), streams_config={"a": "```", "b": "````"}).write(folder.trial_file)
    thrown = {"t": T0, "source": "instance-1", "event": "exception", "message": f"no\n```\n# {script}"}
    folder.timeline.write_text(json.dumps(thrown) + "\n")
    page = contents(write_evidence(run, RED.key, tmp_path / "evidence.zip"))["README.md"]
    html = MarkdownIt("commonmark").enable("table").render(page)
    assert "<script" not in html
    assert not any(tag in html for tag in ("<a ", "<em>", "<h1>&lt;"))
    assert "in [path] | `a`</td>" in html
    assert "What happened: *bold* &lt;script&gt;alert(1)&lt;/script&gt; in [path]</p>" in html
    assert "message=no ``` # &lt;script&gt;" in html
    assert "b=````\n</code>" in html
    assert "secret" not in page.replace("Values of secrets", "")


def test_the_command_repeats_the_trial_that_is_shown(tmp_path, run):
    page = contents(write_evidence(run, RED.key, tmp_path / "evidence.zip"))["README.md"]
    command = page.partition("```\nonceproof ")[2].partition("\n")[0]
    assert command == (
        "trial crash --streams 4.1.2 --restart-on 4.3.1 --broker 3.9.1 --variant DEFAULT_CONFIG --seed 12 "
        "--set 'program=1 2 3' --set rate=5"
    )
    parse_command(*shlex.split(command))
    assert "--restart-on" not in Trial(RUN, GREEN, 1, 13).command


def test_records_around_a_witness_share_its_key_or_place(tmp_path, run):
    members = contents(write_evidence(run, RED.key, tmp_path / "evidence.zip"))
    header, *lines = members["tables/records-around-witnesses.csv"].splitlines()
    assert header == "role,partition,offset,timestamp,key,value,witnesses"
    rows = {tuple(line.split(",")[:3]): line.split(",")[4:] for line in lines}
    of_input = {int(offset): row for (role, _, offset), row in rows.items() if role == "input"}
    # The first witness has key 7 and its place at 50; the second has no key, so it gets that of its place, 20.
    assert {offset for offset, row in of_input.items() if row[2] == "1:key"} == {7, 37, 67, 97}
    assert {offset for offset, row in of_input.items() if row[2] == "1:near"} == {
        45,
        46,
        47,
        48,
        49,
        51,
        52,
        53,
        54,
        55,
    }
    assert of_input[50] == ["20", "50", "1:place 2:key"]
    assert rows["output", "0", "20"] == ["20", "20", "2:place"]
    assert rows["output", "0", "15"] == ["15", "15", "2:near"]
    findings = members["tables/findings.csv"].splitlines()
    assert [line.split(",")[4] for line in findings] == ["offsets", "input/0@50", "input/0@100"]


def test_the_window_is_cut_around_the_fault(tmp_path, run):
    members = contents(write_evidence(run, RED.key, tmp_path / "evidence.zip"))
    assert members["logs/whole/instance-1.log"] == LOG
    assert members["logs/window/instance-1.log"] == "".join(LOG.splitlines(keepends=True)[2:4])


def test_a_cell_that_is_not_red_has_evidence_too(tmp_path, run):
    members = contents(write_evidence(run, GREEN.key, tmp_path / "evidence.zip"))
    assert "✔ clean" in members["README.md"]
    assert "no anomaly in 100 records" in members["README.md"]
    assert "tables/records-around-witnesses.csv" not in members


def test_a_trial_that_failed_leaves_its_state_and_no_tables(tmp_path):
    run, trials = make_run(tmp_path / "runs")
    folder = run.trial(trials[2])
    Outcome.of_error(Outcome.read(folder.outcome_file).trial, "It failed.").write(folder.outcome_file)
    folder.reader_file.unlink()
    folder.observations_file.write_text("{ torn")
    task = folder.state / "instance-1" / "app" / "0_0"
    task.mkdir(parents=True)
    (task / ".checkpoint").write_text("0\n1\nseen-changelog 0 3000\n")
    (task / "000009.sst").write_bytes(b"\0" * 9)
    shutil.rmtree(run.table("records"))
    shutil.rmtree(run.table("findings"))
    members = contents(write_evidence(run, GREEN.key, tmp_path / "evidence.zip"))
    assert members["trial/state/instance-1/app/0_0/.checkpoint"] == "0\n1\nseen-changelog 0 3000\n"
    assert "instance-1/app/0_0/000009.sst,9,20" in members["trial/state/files.csv"]
    assert not [name for name in members if name.startswith("tables/")]
    assert members["trial/observations.json"] == "{ torn"
    assert "did not come to read" in members["README.md"]


def test_the_same_run_gives_the_same_bytes(tmp_path, run):
    one, two = (write_evidence(run, RED.key, tmp_path / name).read_bytes() for name in ("one.zip", "two.zip"))
    assert one == two


# --- what must not be in it -------------------------------------------------------------------------------------


def test_no_secret_path_host_or_account_is_in_any_member(tmp_path, monkeypatch):
    elsewhere = "/srv/nightly builds/onceproof/.onceproof/runs/" + RUN  # a blank ends a path that nobody knows
    home, java = "/home/jane.doe", "/opt/jdk-17.0.15"
    monkeypatch.setenv("HOME", home)
    monkeypatch.setenv("JAVA_HOME", java)
    monkeypatch.setattr(socket, "gethostname", lambda: "buildbox7.corp.example")
    monkeypatch.setattr(getpass, "getuser", lambda: "jane.doe")
    run_path = str(tmp_path / "runs" / RUN)
    project = str(get_settings().project)
    planted = [
        run_path,
        project,
        elsewhere,
        home,
        java,
        "/var/lib/anything",
        "/tmp/librocksdbjni",  # noqa: S108
        "buildbox7",
        "corp.example",
        "jane.doe",
        "10.20.30.40",
        "kafka-1.internal.example",
        "nightly-scheduler",
        "nightly-worker-2",
        "hunter2-of-the-keystore",
        "tok-12345",
        "jaas-user",
        "jaas pass",
        "from-a-log-only",
        "url-pass",
    ]
    log = LOG + "\n".join(
        [
            f"{stamp(21)} INFO state in {run_path}/trials/x/state and {elsewhere}/clusters/3.9.1/data-1/log",
            f"{stamp(21)} INFO jar:file:{java}/lib/x.jar!/a and file:///var/lib/anything/b and {home}/my%20file",
            f"{stamp(21)} INFO loaded /tmp/librocksdbjni123.so '{project}/src' (/var/lib/anything/c)",
            f"{stamp(21)} INFO BUILDBOX7/10.20.30.40:9092, kafka-1.internal.example:9092, user_jane.doe at buildbox7.corp.example",
            f"{stamp(21)} INFO logged in with hunter2-of-the-keystore and jaas pass and tok-12345",
            '\tsasl.jaas.config = org.apache.PlainLoginModule required username="jaas-user" \\\n  password="jaas pass";',
            "\tssl.truststore.password = null",
            "\tssl.key.password = [hidden]",
            "\tsome.client.secret = from-a-log-only",
            f"{stamp(22)} INFO again from-a-log-only; postgresql://jane.doe:url-pass@kafka-1.internal.example/db",
            f"{stamp(22)} INFO nightly-worker-2 asks NIGHTLY-SCHEDULER:9092",
            f"{stamp(22)} INFO bootstrap 127.0.0.1:5000, localhost/127.0.0.1:5000 (id: 1), version 0.10.2.1, root cause",
        ]
    )
    run, trials = make_run(
        tmp_path / "runs",
        log=log,
        streams_config={
            "ssl.keystore.password": "hunter2-of-the-keystore",
            "delegation.token": "tok-12345",
            "ssl.keystore.location": f"{home}/keys.jks",
            "state.dir": f"{run_path}/trials/x/state",
            "broker.properties": f"a=1\nssl.keystore.password=hunter2-of-the-keystore\nlog.dirs={elsewhere}/data",
        },
        cluster_folder=f"{elsewhere}/clusters/3.9.1",
    )
    cluster = {
        "host": "nightly-scheduler",
        "bootstrap_servers": "kafka-1.internal.example:9092,127.0.0.1:5000",
        "folder": f"{elsewhere}/clusters/3.9.1",
    }
    write_json(run.cluster_file("3.9.1"), cluster)
    for trial in trials:
        fields = {"t": T0, "source": "driver", "event": "crash", "where": f"{run_path}/state", "password": "tok-12345"}
        run.trial(trial).timeline.write_text(json.dumps(fields) + "\n")
        an_outcome(trial, host="nightly-worker-2").write(run.trial(trial).outcome_file)
        (run.trial(trial).contents / "0_0.csv").write_text(f"seen,{home}/x,tok-12345\n")
    members = contents(write_evidence(run, RED.key, tmp_path / "evidence.zip"))
    for name, text in members.items():
        for secret in planted:
            assert secret.lower() not in f"{name}\n{text}".lower(), (name, secret)
    whole = members["logs/whole/instance-1.log"]
    for stays in (
        "state in [run]/trials/x/state and [run]/clusters/3.9.1/data-1/log",
        "'[project]/src'",
        "ssl.truststore.password = null",
        "ssl.key.password = [hidden]",
        "sasl.jaas.config = ***",
        "127.0.0.1:5000, localhost/127.0.0.1:5000 (id: 1), version 0.10.2.1, root cause",
        "at org.apache.kafka.streams.KafkaStreams.start(KafkaStreams.java:1)",
    ):
        assert stays in whole
    config = json.loads(members["trial/trial.json"])["streams_config"]
    assert config["ssl.keystore.password"] == "***"
    assert config["broker.properties"] == "a=1\nssl.keystore.password=***\nlog.dirs=[run]/data"
    assert '"password": "***"' in members["trial/timeline.jsonl"]
    assert "ssl.keystore.password=***" in members["README.md"]


def test_no_member_names_a_host_of_given_brokers(tmp_path):
    log = LOG + "\n".join(
        [
            f"{stamp(21)} INFO [Consumer] Discovered group coordinator advertised-7.corp:9093 (id: 2147 rack: null)",
            f"{stamp(21)} WARN Connection to node 4 (joined-later.corp/10.1.2.3:9093) could not be established",
            f"{stamp(21)} WARN Bootstrap broker moved.corp/<unresolved>:9093 disconnected, moved-again:9093 (id: -1)",
            f"{stamp(21)} INFO bootstrap.servers = [asked-for.corp:9092], as ADVERTISED-8",
        ]
    )
    run, trials = make_run(tmp_path / "runs", log=log)
    run.cluster_file("3.9.1").unlink()  # as of a run of an application
    for trial in trials:
        file = run.trial(trial).trial_file
        replace(TrialPlan.read(file), broker_hosts=("asked-for.corp", "advertised-8.corp")).write(file)
    members = contents(write_evidence(run, RED.key, tmp_path / "evidence.zip"))
    for name, text in members.items():
        for host in ("asked-for", "advertised", "joined-later", "moved", "corp"):
            assert host not in text.lower(), (name, host)
    whole = members["logs/whole/instance-1.log"]
    assert "Discovered group coordinator [host]:9093 (id: 2147 rack: null)" in whole
    assert "Connection to node 4 ([host]/[host]:9093) could" in whole


def test_what_this_machine_is_called_is_known(run, monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "vault-7")
    monkeypatch.setattr(getpass, "getuser", lambda: "ada")
    known = Redaction.of(run)
    for telling in ("on vault-7", f"in {Path.home()}/x", f"{run.path}/trials", "by ada"):
        assert telling not in known.text(telling)


@pytest.mark.parametrize(
    ("telling", "shown"),
    [
        ("to node 7 (kafka-7.corp/2001:db8:12:0:0:0:0:5:9092) could", "to node 7 ([host]/[host]:9092) could"),
        ("kafka-7.corp/[2001:db8:12:0:0:0:0:5]:9092", "[host]/[[host]]:9092"),
        ("at [2001:db8:12::5]:9092", "at [[host]]:9092"),
        ("fe80::42:acff:fe11:2%eth0 left", "[host] left"),
        ("/::ffff:10.1.2.3:9092", "/[host]:9092"),
        ("Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.e30.abc-_", "Authorization:***"),
        ("sent Bearer eyJhbGciOiJIUzI1NiJ9.e30.abc-_ to it", "sent Bearer *** to it"),
        ('{"Authorization": "Basic dGVhbTpwYXNz"}', '{"Authorization":***'),
        ("basic.auth.user.info=team:pass", "basic.auth.user.info=***"),
        ("ssl.keystore.key = MIIEvQIBADAN", "ssl.keystore.key =***"),
        ("passwd=hunter2", "passwd=***"),
        ("pwd=hunter2", "pwd=***"),
        ("passphrase: hunter2", "passphrase:***"),
        ("api_key=hunter2", "api_key=***"),
        ("X-Api-Key: hunter2", "X-Api-Key:***"),
        ("Set-Cookie: session=hunter2", "Set-Cookie:***"),
        ("posts to https://hooks.slack.com/services/T0/B0/hunter2 now", "posts to [webhook] now"),
        ("a\n-----BEGIN PRIVATE KEY-----\nMIIE+/=\nabc\n-----END PRIVATE KEY-----\nb", "a\n***\nb"),
        (r"is -----BEGIN EC PRIVATE KEY-----\nMIIE\n-----END EC PRIVATE KEY-----\n, so", r"is ***\n, so"),
        ("is -----BEGIN PRIVATE KEY-----\nMIIE", "is ***"),
    ],
)
def test_what_gives_away_is_taken_out(telling, shown):
    known = Redaction({}, set(), set(), set())
    assert known.text(telling) == shown
    assert known.data({"line": telling}) == {"line": shown}


@pytest.mark.parametrize("key", ["api_key", "passwd", "basic.auth.user.info", "ssl.keystore.key", "password"])
def test_a_secret_is_found_by_its_key_and_removed_elsewhere(key):
    known = Redaction({}, set(), set(), set())
    known.learn({key: "hunter2"})
    assert known.data({key: "hunter2", "x": "it is hunter2."}) == {key: "***", "x": "it is ***."}


@pytest.mark.parametrize(
    "harmless",
    [
        "at 12:36:11.108 [::1]:9092 and ::1, 0:0:0:0:0:0:0:1, [::]:9092; KafkaStreams::close, std::dec, a:b:c, 1:2:3",
        "org.apache.kafka.common.errors.TopicAuthorizationException: Not authorized to access topics: [x]",
        "the bearer of it; ssl.keystore.type = PEM, key: 7, keys=3, monkey=1, apikeys",
        "input/0@50 of records/s, and/or 3/4; https://issues.apache.org/jira/browse/KAFKA-14172",
        "/127.0.0.1:5000 (id: 1 rack: null), 0.0.0.0:9092, Kafka 4.1.2, 0.11.0.0",
        "Client token refresh is off: the secret of it, onceproof.20261121T123358-117b.crash-t1-instance-1",
    ],
)
def test_what_tells_nothing_stays(harmless):
    known = Redaction({Path("/srv/onceproof"): "[project]"}, {Path("/")}, {"vm", "localhost", ""}, {"root"})
    assert known.text(harmless) == harmless


# --- what cannot be done ----------------------------------------------------------------------------------------


def test_a_part_of_a_key_is_enough_if_only_one_cell_has_it(tmp_path, run):
    assert write_evidence(run, "no_state_upd").name == f"{RUN}-{GREEN.key}.zip"
    with pytest.raises(UsageError, match=f"'crash' is part of 2 cells, name one: {RED.key}, {GREEN.key}"):
        write_evidence(run, "crash")
    with pytest.raises(UsageError, match=f"has no cell 'quota'; it has {RED.key}"):
        write_evidence(run, "quota")


def test_a_run_is_found_by_its_id_or_as_the_last_that_is_judged(tmp_path):
    runs = tmp_path / "runs"
    with pytest.raises(UsageError, match=r"no run 'last' in .*: none is judged yet"):
        find_run(runs, "last")
    make_run(runs, "20261120T000000-aaaa")
    make_run(runs)
    make_run(runs, "20261122T000000-bbbb", verdicts=False)
    assert find_run(runs, "last").run_id == RUN
    assert find_run(runs, "20261120T000000-aaaa").run_id == "20261120T000000-aaaa"
    for wanted in ("20261123T000000-cccc", "../runs", ""):
        with pytest.raises(UsageError, match=f"There is no run .*: judged are {RUN}, 20261120T000000-aaaa"):
            find_run(runs, wanted)
    with pytest.raises(UsageError, match="Run 20261122T000000-bbbb is not judged"):
        find_run(runs, "20261122T000000-bbbb")
    with pytest.raises(UsageError, match="Run 20261122T000000-bbbb is not judged"):
        write_evidence(RunFolder(runs / "20261122T000000-bbbb"), RED.key)


def test_a_target_that_is_a_folder_is_refused(tmp_path, run):
    with pytest.raises(UsageError, match="is a folder"):
        write_evidence(run, RED.key, tmp_path)


def test_a_disk_that_fills_leaves_what_was_there(tmp_path, run):
    target = tmp_path / "out" / "evidence.zip"
    target.parent.mkdir()
    target.write_text("the last one")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))  # no file may grow beyond it
    try:
        with pytest.raises(HarnessError, match=r"evidence\.zip could not be written \(.*\): make room") as refused:
            write_evidence(run, RED.key, target)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert isinstance(refused.value.__cause__, OSError)
    assert refused.value.__cause__.errno == errno.EFBIG
    assert [path.name for path in target.parent.iterdir()] == ["evidence.zip"]
    assert target.read_text() == "the last one"


def test_the_command_writes_it_and_tells_where(tmp_path):
    make_run(tmp_path / "runs")

    def evidence(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "onceproof.cli", "results", "evidence", *arguments],
            capture_output=True,
            text=True,
            env={**os.environ, "ONCEPROOF_HOME": str(tmp_path)},
            timeout=60,
            check=False,
        )

    written = tmp_path / "runs" / RUN / "evidence" / f"{RUN}-{RED.key}.zip"
    done = evidence("last", "DEFAULT_CONFIG")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(str(written))
    assert evidence(RUN, RED.key, "--output", str(tmp_path / "mine.zip")).returncode == 0
    assert (tmp_path / "mine.zip").read_bytes() == written.read_bytes()
    refused = evidence("last", "crash")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert len(refused.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("folder", "name", "text", "member"),
    [
        pytest.param("threads", "instance-1.txt", '"StreamThread-1" waiting', "logs/threads/", id="thread dumps"),
        pytest.param("dumps_folder", "instance-1.ids.0.active.7.csv", "3,4\n", "trial/dumps/", id="stores"),
    ],
)
def test_the_archive_has_what_was_dumped(tmp_path, run, folder, name, text, member):
    dumps = getattr(run.trial(f"{RED.key}-t2"), folder)
    dumps.mkdir(parents=True)
    (dumps / name).write_text(text)
    members = contents(write_evidence(run, RED.key, tmp_path / "evidence.zip"))
    assert members[member + name] == text
