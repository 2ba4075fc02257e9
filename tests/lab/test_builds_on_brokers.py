"""Builds on real brokers: 3.4.1 with the classes of 3.4.0 that bring KAFKA-14172 back, as commits that nobody released."""

import json
import os
import shlex
import subprocess
import sys

import pytest

from onceproof.settings import get_settings
from tests.specimens.builds import patch

pytestmark = [pytest.mark.broker, pytest.mark.night]

BUGGY = ("ProcessorStateManager", "StandbyTaskCreator", "ActiveTaskCreator")
COMMITS = {"a1": False, "a2": False, "b3": True, "b4": True, "b5": True}  # the third brings the bug back
ONCEPROOF = (sys.executable, "-m", "onceproof.cli")


@pytest.fixture
def builds(tmp_path):
    """A Maven repository for each commit."""
    for commit, has_bug in COMMITS.items():
        patch(tmp_path / commit, "3.4.1", f"{commit}00000000", "3.4.0" if has_bug else "", BUGGY)
    return tmp_path


@pytest.fixture
def run(tmp_path):
    """Runs a command, with its own runs and what is already resolved."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "artifacts").symlink_to(get_settings().artifacts)

    def called(*command, folder=tmp_path):
        environment = {**os.environ, "ONCEPROOF_HOME": str(tmp_path / "home")}
        return subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
        )

    return called


def test_git_finds_the_commit_that_brought_the_bug(builds, run):
    sources = builds / "sources"
    sources.mkdir()

    def git(*words):
        done = run("git", "-c", "user.name=a", "-c", "user.email=a@b.c", *words, folder=sources)
        assert done.returncode == 0, done.stderr
        return done.stdout

    git("init", "-q")
    for commit in COMMITS:
        (sources / "build").write_text(str(builds / commit))
        git("add", "build")
        git("commit", "-q", "-m", commit)
    git("bisect", "start", "HEAD", "HEAD~4")
    trial = f'{shlex.join(ONCEPROOF)} trial enumerator --streams "$(cat build)" --anomaly duplicate-id --git-bisect'
    said = git("bisect", "run", "sh", "-c", trial)
    assert "is the first bad commit" in said
    assert git("show", "-s", "--format=%s", "refs/bisect/bad").strip() == "b3", said
    seen = {json.loads(file.read_text())["trial"]["cell"]["streams"] for file in builds.rglob("trial.json")}
    assert seen == {"3.4.1@b300000", "3.4.1@a200000"}  # of one version, each by its own jars


def test_a_fix_is_proven(builds, run):
    words = ("--before", str(builds / "b3"), "--build", str(builds / "a1"), "--seed", "1", "--markdown", "fix.md")
    done = run(*ONCEPROOF, "issue", "verify-fix", "KAFKA-14172", *words, "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["before"], answer["build"], answer["proof"]) == ("3.4.1@b300000", "3.4.1@a100000", "proven")
    [scenario] = answer["scenarios"]
    assert scenario["before"]["red"] > 0
    assert scenario["after"]["red"] == 0
    assert scenario["after"]["counted"] >= scenario["needed"]
    assert "KAFKA-14172: proven" in (builds / "fix.md").read_text()
