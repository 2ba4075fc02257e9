"""The command as a person meets it: help, lists, and one sentence for what cannot be done."""

import json
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from onceproof.cli import for_git_bisect, trials
from onceproof.cli.groups import FIRST, GROUPS, OLD_NAMES, OLD_UNTIL, PANEL
from onceproof.cli.terminal import CLOSED
from onceproof.harness import harness_version
from onceproof.lab.replay import SCRATCH
from onceproof.model.errors import ExitCode
from onceproof.settings import get_settings
from tests import commands
from tests.conftest import a_trial
from tests.specimens.files import a_reading, an_outcome


def onceproof(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "onceproof.cli", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=120,
        check=False,
    )


def shown(*arguments: str) -> str:
    """The output of a command that ends well; of one that does not, the test shows how it ended."""
    ended = onceproof(*arguments)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout[-500:]
    return ended.stdout


def test_help_and_list_show_what_there_is():
    assert "trial" in shown("--help")
    listed = shown("scenario", "list")
    for word in ("enumerator", "NO_LAG_ACCEPTABLE", "first-look (default)", "nightly"):
        assert word in listed


def panels(text: str) -> dict[str, list[str]]:
    """By heading of a help the names under it."""
    _, *parts = re.split(r"^╭─ (.+?) ─+╮$", text, flags=re.MULTILINE)
    names = (re.findall(r"^│ ([a-z-]+)  ", part, re.MULTILINE) for part in parts[1::2])
    return dict(zip(parts[::2], names, strict=True))


def test_the_help_shows_eight_commands_and_then_the_groups():
    shown_first = ["demo", "run", "advise", "app", "trial", "bisect", "fuzz", "page"]
    found = panels(shown("--help"))
    assert list(found) == ["Options", "Commands", PANEL]
    assert found["Commands"] == shown_first
    assert found[PANEL] == list(GROUPS)


@pytest.mark.parametrize("group", GROUPS)
def test_the_help_of_a_group_shows_its_commands(group, tmp_path):
    done = commands.onceproof(tmp_path, group, "--help")
    assert (panels(done.stdout)["Commands"], done.returncode) == (list(GROUPS[group]), 0)


def test_every_command_of_the_last_release_is_found():
    text = """advise app atlas badge bisect compare cover demo down evidence explore fuzz history list page plants
        preflight prune qualify releases report run schema sensitivity setup shrink sweep trial up verify-fix"""
    before = set(text.split())
    assert before - OLD_NAMES.keys() <= {*FIRST, *GROUPS}
    assert OLD_NAMES.keys() <= before
    assert {old for old, new in OLD_NAMES.items() if new.split()[1] != old} == {"releases"}


@pytest.mark.parametrize("old", OLD_NAMES)
@pytest.mark.parametrize(("option", "code"), [("--help", 0), ("--no-such-option", 2)])
def test_an_old_name_does_the_same_and_names_the_new_one(old, option, code, tmp_path):
    new = commands.onceproof(tmp_path, *OLD_NAMES[old].split(), option)
    done = commands.onceproof(tmp_path, old, option)
    hint = f"`onceproof {old}` is now `onceproof {OLD_NAMES[old]}`; the old name works until {OLD_UNTIL}.\n"
    assert (done.returncode, done.stdout, done.stderr) == (code, new.stdout, hint + new.stderr)
    assert new.returncode == code


def test_old_names_are_gone_with_the_version_that_is_named():
    ours, end = (tuple(map(int, text.split(".")[:2])) for text in (version("onceproof"), OLD_UNTIL))
    assert ours < end


def test_an_old_name_leaves_the_json_of_its_output_alone(tmp_path):
    done = commands.onceproof(tmp_path, "plants", "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout) == json.loads(commands.onceproof(tmp_path, "check", "plants", "--json").stdout)


def test_the_version_is_that_of_the_package_and_of_the_harness():
    ended = onceproof("--version")
    assert ended.stdout == f"onceproof {version('onceproof')}, harness {harness_version()}\n"
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("onceproof re", ["results", "release"]),
        ("onceproof issue ver", ["verify-fix"]),
        ("onceproof verify-fix KAFKA-1417", ["KAFKA-14172"]),
        ("onceproof trial st", ["stream-join"]),
        (
            "onceproof trial crash --plant st",
            [
                "stale-cache",
                "standby-promoted-early",
                "standby-stands-still",
                "standbys-left-out",
                "store-lag-hidden",
                "standby-for-active",
                "state-not-cleaned",
            ],
        ),
        ("onceproof app run --fault part", ["partition"]),
        ("onceproof issue verify-fix KAFKA-1417", ["KAFKA-14172"]),
    ],
)
def test_a_shell_completes_commands_and_names(typed, completed):
    # What the script that --install-completion writes asks the command for.
    command = Path(sys.executable).with_name("onceproof")
    asked = {"COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" ")), "_ONCEPROOF_COMPLETE": "complete_bash"}
    ended = subprocess.run(
        [command], env={**os.environ, **asked}, capture_output=True, text=True, timeout=120, check=False
    )
    assert (ended.stdout.split(), ended.stderr, ended.returncode) == (completed, "", 0)


def test_a_list_of_scenarios_has_these_alone_and_each_fault_once():
    listed = shown("scenario", "list", "quota", "crash")
    assert re.findall(r"^scenario (\S+):", listed, re.MULTILINE) == ["quota", "crash"]
    assert listed.count("rolling-bounce.back") == 1
    assert "pause.seconds" not in listed  # which neither allows
    assert "nightly" not in listed
    whole = shown("scenario", "list")
    assert whole.count("pause.transaction.timeout.ms") == whole.count("state-copied.source") == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["scenario", "list", "crash", "quotas"],
            "There is no scenario 'quotas'; did you mean quota? Choose from enumerator, ",
        ),
        (["trial", "enumerator", "--streams", "3.3.x"], "'3.3.x' is not a Kafka release"),
        (["trial", "enumerator", "--streams", "3.3.1; rm -rf /"], "'3.3.1; rm -rf /' is not a Kafka release"),
        (["trial", "enumerator", "--streams", "2.8.0"], "Kafka 2.8.0 is too old"),
        (["trial", "enum", "--streams", "3.3.1"], "There is no scenario 'enum'"),
        (["trial", "enumerator", "--streams", "3.3.1", "--variant", "X"], "There is no variant 'X' of enumerator"),
        (
            ["trial", "crahs", "--streams", "3.3.1"],
            "There is no scenario 'crahs'; did you mean crash? Choose from enum",
        ),
        (
            ["trial", "enumerator", "--streams", "3.3.1", "--variant", "caching_disable"],
            "There is no variant 'caching_disable' of enumerator; did you mean CACHING_DISABLED? Choose from CACHE_SIZE",
        ),
        (["trial", "enumerator", "--streams", "3.3.1", "--broker", "3"], "'3' is not a Kafka release"),
        (["trial", "enumerator", "--streams", "4.3.1", "--plant", "x"], "There is no plant 'x'"),
        (["trial", "enumerator", "--streams", "4.3.1", "--anomaly", "x"], "There is no anomaly 'x'; choose from"),
        (["trial", "quota", "--streams", "3.8.1", "--plant", "throttle-waited-out"], "cannot be planted into 3.8.1"),
        (["trial", "enumerator", "--streams", "4.3.1", "--fault", "x"], "There is no fault 'x'; choose from pause"),
        (
            ["trial", "enumerator", "--streams", "4.3.1", "--fault", "broker-kill"],
            "needs 3 brokers, and not 1: add --n",
        ),
        (["trial", "enumerator", "--streams", "4.3.1", "--brokers", "/nowhere"], "/nowhere could not be read: No such"),
        (
            ["trial", "enumerator", "--streams", "4.3.1", "--brokers", "/nowhere", "--nodes", "3"],
            "with --brokers none is; leave out one of them",
        ),
        (["system", "preflight", "--brokers", "/nowhere"], "/nowhere could not be read: No such file"),
        (["system", "sweep", "--brokers", "/nowhere"], "/nowhere could not be read: No such file"),
        (["bisect", "enumerator", "--brokers", "/nowhere"], "/nowhere could not be read: No such file"),
        (
            ["trial", "quota", "--streams", "3.9.1", "--roll-to", "4.3.1"],
            "cannot be injected into quota: it takes two instances",
        ),
        (
            ["trial", "crash", "--streams", "4.3.1", "--roll-to", "3.9.1"],
            "4.3.1 → 3.9.1 × ROLLING (crash, broker 3.9.2) cannot be run: 4.3.1 keeps the offsets of its stores",
        ),
        (
            ["trial", "crash", "--streams", "3.9.1", "--roll-to", "4.3.1", "--variant", "TWO_KILLS"],
            "TWO_KILLS of crash goes over to no other release while it works; ROLLING does: name it",
        ),
        (
            ["trial", "crash", "--streams", "3.9.1", "--roll-to", "4.3.1", "--restart-on", "4.3.1"],
            "--roll-to 4.3.1 and --restart-on 4.3.1 exclude each other: give one of them.",
        ),
        (
            ["trial", "quota", "--streams", "4.3.1", "--nodes", "3"],
            "'nodes=3' sets no parameter of quota: enumerator, ",
        ),
        (
            ["trial", "enumerator", "--streams", "4.3.1", "--program", "1 2"],
            "'program=1 2' sets no parameter of enumerator: only multirunner has the parameter program.",
        ),
        (
            ["trial", "enumerator", "--streams", "4.3.1", "--set", "cashing=true"],
            "'cashing=true' sets no parameter of enumerator; did you mean caching? Choose from stores, caching, ",
        ),
        (
            ["trial", "quota", "--streams", "4.3.1", "--fault", "pause"],
            "The fault pause cannot be injected into quota: it takes",
        ),
        (["check", "sensitivity", "--streams", "4.3.1", "--plant", "x"], "There is no plant 'x'"),
        (["check", "sensitivity", "--streams", "4.3.1", "--scenario", "x"], "There is no scenario 'x'"),
        (["check", "sensitivity", "--streams", "4.3.1", "--plant", "checkpoint-stays"], "cannot be planted into 4.3.1"),
        (["release", "qualify", "3.x"], "'3.x' is not a Kafka release"),
        (["release", "qualify", "4.3.1", "--scenario", "x"], "There is no scenario 'x'"),
        (["release", "qualify", "/dev", "--broker", "4.3.1"], "/dev holds no kafka-streams: `./gradlew publish"),
        (["release", "qualify", "4.3.1", "--broker", "/dev"], "/dev holds no kafka_2.13"),
        (["issue", "explore"], "Name a release to search with --streams, or a search to continue with --resume."),
        (["issue", "explore", "--streams", "3.3.x"], "'3.3.x' is not a Kafka release"),
        (["issue", "explore", "--streams", "4.3.1", "--scenario", "x"], "There is no scenario 'x'"),
        (["issue", "explore", "--streams", "4.3.1", "--plant", "x"], "There is no plant 'x'"),
        (["issue", "explore", "--resume", "last"], "There is no search in "),
        (["issue", "explore", "--resume", "x"], "x is no search to continue"),
        (["issue", "explore", "--resume", "last", "--seed", "1"], "--resume last continues what was asked for then"),
        (
            ["issue", "explore", "--resume", "last", "--broker", "4.0.1"],
            "--resume last continues what was asked for then",
        ),
        (["advise", "3.9.1", "3.9.1"], "3.9.1 is both releases"),
        (["run", "--plant", "stale-cache"], "'stale-cache' cannot be planted into a run"),
        (["run", "--matrix", "hourly"], "There is no matrix 'hourly'"),
        (["run", "--matrix", "mine.toml"], "The matrix mine.toml cannot be read: No such file or directory."),
        (["scenario", "cover", "hourly", "--broker", "4.0.1"], "There is no matrix 'hourly'"),
        (["scenario", "cover", "weekly", "--broker", "latest"], "'latest' is not a Kafka release"),
        (["run", "--scenario", "enum"], "There is no scenario 'enum'"),
        (["run", "--variant", "X"], "There is no variant 'X'"),
        (["run", "--streams", "3.3.x"], "'3.3.x' is not a Kafka release"),
        (["run", "--streams", "/no/build"], "/no/build is neither a folder nor the URL"),
        (["trial", "enumerator", "--streams", "/dev"], "/dev holds no kafka-streams: `./gradlew publish"),
        (
            ["trial", "enumerator", "--streams", "9.9.9-SNAPSHOT"],
            "the local Maven repository has no kafka-streams 9.9.9-S",
        ),
        (
            ["trial", "enumerator", "--streams", "4.4.0@ab12cd3"],
            "of the build 4.4.0@ab12cd3 is not kept here: name the",
        ),
        (
            ["trial", "enumerator", "--streams", "4.4.0", "--maven-repo", "http://127.0.0.1:9"],
            "The Maven repository http://127.0.0.1:9 does not answer",
        ),
        (["check", "sensitivity", "--streams", "/dev"], "/dev holds no kafka-streams: `./gradlew publish"),
        (["check", "sensitivity", "--streams", "4.3.1", "--broker", "/dev"], "/dev holds no kafka_2.13"),
        (
            ["check", "sensitivity", "--streams", "4.4.0", "--maven-repo", "http://127.0.0.1:9"],
            "The Maven repository http://127.0.0.1:9 does not answer",
        ),
        (
            ["issue", "shrink", "multirunner", "--program", "1 2", "--streams", "/dev"],
            "/dev holds no kafka-streams: `./gradlew publish",
        ),
        (
            [
                "issue",
                "shrink",
                "multirunner",
                "--program",
                "1 2",
                "--streams",
                "4.4.0",
                "--maven-repo",
                "http://127.0.0.1:9",
            ],
            "The Maven repository http://127.0.0.1:9 does not answer",
        ),
        (["bisect", "enumerator", "--to", "/no/build"], "/no/build is neither a folder nor the URL"),
        (
            ["issue", "verify-fix", "KAFKA-1", "--build", "4.3.1"],
            "'KAFKA-1' is no known issue: choose from KAFKA-14172, ",
        ),
        (
            ["issue", "verify-fix", "KAFKA-19510", "--build", "4.3.1"],
            "KAFKA-19510 shows only incidentally, and no scenario provokes it",
        ),
        (["issue", "verify-fix", "KAFKA-14172", "--build", "/dev"], "/dev holds no kafka-streams"),
        (
            ["issue", "verify-fix", "KAFKA-14172", "--build", "3.4.1", "--markdown", "/dev"],
            "/dev is a folder: name a file",
        ),
        (
            ["issue", "verify-fix", "at_least_once (documented)", "--build", "4.3.1"],
            "No release is without at_least_once",
        ),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_code_2(arguments, said, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (home / "artifacts").symlink_to(get_settings().artifacts)  # what `make setup` resolved
    done = commands.onceproof(home, *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""
    assert not (tmp_path / "home" / "runs").exists()  # nothing was begun


@pytest.mark.parametrize(
    ("seen", "looked_for", "exercised", "code"),
    [
        ({"duplicate-id": 1}, [], True, ExitCode.ANOMALY),
        ({"torn-transaction": 1}, [], True, ExitCode.ANOMALY),
        ({"duplicate-id": 1, "stuck": 1}, ["duplicate-id"], False, ExitCode.ANOMALY),
        ({"lost-record": 1}, ["duplicate-id"], True, ExitCode.INCONCLUSIVE),
        ({"duplicate-output": 1}, ["duplicate-id"], True, ExitCode.OK),  # KAFKA-18943, by chance
        ({"stuck": 1}, ["duplicate-id"], False, ExitCode.INCONCLUSIVE),
        ({}, ["duplicate-id"], True, ExitCode.OK),
    ],
)
def test_an_unrequested_anomaly_counts_only_if_incidental(seen, looked_for, exercised, code):
    trial = a_trial("3.4.1")
    ended, found = an_outcome(trial, exercised=exercised), a_reading(anomalies=seen)
    assert trials._exit_code(trial.cell, ended, found, looked_for) is code


@pytest.mark.parametrize(
    ("code", "for_git"), [(0, 0), (1, 1), (2, 130), (3, 125), (4, 132), (130, 130), (125, 253), (255, 255)]
)
def test_git_bisect_stops_at_all_that_says_nothing_of_a_commit(code, for_git):
    assert for_git_bisect(code) == for_git


@pytest.mark.parametrize("what", [["--streams", "/dev"], ["--no-such-option"], []])
def test_a_usage_error_is_no_bad_commit(what, tmp_path):
    done = commands.onceproof(tmp_path, "trial", "enumerator", *what, "--git-bisect")
    assert done.returncode == 130
    assert done.stderr


def test_a_failure_of_the_harness_is_no_bad_commit(tmp_path):
    (tmp_path / "file").write_text("")
    words = ("trial", "enumerator", "--streams", "3.3.1", "--git-bisect")
    assert commands.onceproof(tmp_path / "file", *words).returncode in (130, 132)


def test_with_json_an_error_is_one_object_too(tmp_path):
    done = commands.onceproof(tmp_path, "trial", "enumerator", "--streams", "3.3.x", "--json")
    assert done.returncode == 2
    assert "'3.3.x'" in json.loads(done.stdout)["error"]


@pytest.mark.parametrize(
    "command",
    [
        ["scenario", "list"],
        ["--help"],
        ["system", "schema", "trial"],
        ["check", "plants"],
        ["trial", "none", "--streams", "3.3.x", "--json"],
    ],
    ids=" ".join,
)
def test_a_pipe_that_nobody_reads_is_no_anomaly(command):
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "onceproof.cli", *command],
            stdout=closed,
            stderr=subprocess.PIPE,
            timeout=120,
            check=False,
        )
    assert done.returncode == CLOSED
    assert b"Broken" not in done.stderr


def test_an_output_that_is_full_is_no_anomaly():
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "onceproof.cli", "system", "schema", "trial"],
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=120,
            check=False,
        )
    assert done.returncode == ExitCode.ERROR
    assert done.stderr.startswith(b"onceproof: The output could not be written (No space left on device)")


def test_a_missing_option_is_a_usage_error(tmp_path):
    assert commands.onceproof(tmp_path, "trial", "enumerator").returncode == 2


@pytest.mark.parametrize(
    "command",
    [
        ["trial", "enumerator", "--streams", "3.3.1"],
        ["issue", "explore", "--streams", "3.3.1"],
        ["run", "--streams", "3.3.1"],
    ],
)
def test_no_java_is_told_before_anything_starts(tmp_path, command, monkeypatch):
    monkeypatch.setenv("ONCEPROOF_JAVA", "/no/java")
    done = commands.onceproof(tmp_path, *command)
    assert done.returncode == 2
    assert "No Java" in done.stderr


def test_a_home_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    done = commands.onceproof(tmp_path / "file", "trial", "enumerator", "--streams", "3.3.1")
    assert done.returncode in (2, 4)
    assert "ONCEPROOF_HOME" in done.stderr


def test_a_sweep_of_nothing_says_nothing(tmp_path):
    done = commands.onceproof(tmp_path, "system", "sweep")
    # The scratch of killed replays is the machine's, not the home's: other tests may have left some.
    assert (done.returncode, [line for line in done.stdout.splitlines() if SCRATCH not in line]) == (0, [])


def test_a_sweep_tells_which_run_it_kept_and_how_to_let_go_of_it(tmp_path):
    run = tmp_path / "runs" / "20261126T120000-3f2a"
    topics = run / "clusters" / "3.9.1" / "data-1"
    topics.mkdir(parents=True)
    os.utime(topics, (0, 0))
    (run / "run.json").write_text("{}")
    text = f"`onceproof run --resume {run.name}` continues it, `onceproof system sweep --all` removes them"
    done = commands.onceproof(tmp_path, "system", "sweep")
    assert (done.returncode, done.stdout) == (0, f"kept the topics of run {run.name}: {text}\n")
    done = commands.onceproof(tmp_path, "system", "sweep", "--all")
    assert (done.returncode, done.stdout) == (0, f"removed {topics}\n")


@pytest.mark.broker
def test_a_release_that_is_not_published_is_refused(tmp_path):
    done = commands.onceproof(tmp_path, "trial", "enumerator", "--streams", "9.9.9")
    assert done.returncode == 2
    assert "Kafka 9.9.9 is not published" in done.stderr
