"""What all calls of Maven have in common."""

import pytest

from onceproof.lab import maven as module
from onceproof.lab.maven import MavenOutput, run_maven
from onceproof.model.errors import HarnessError, UsageError


@pytest.fixture
def command(tmp_path):
    """Stands in for Maven."""

    def does(script):
        (tmp_path / "mvn").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "mvn").chmod(0o755)

    return does


def ask(tmp_path):
    return run_maven(str(tmp_path / "mvn"), tmp_path / "pom.xml", "some:goal", "-Dsome=option", to="do it")


def test_it_is_asked_in_batch_mode_and_its_exit_code_is_told(command, tmp_path):
    command('echo "$@"; exit 3')
    answer = ask(tmp_path)
    assert not answer.succeeded
    assert answer.output.split() == [
        *(
            "-q",
            "-B",
            "-ntp",
            "-C",
            "-U",
            "-Dstyle.color=never",
            "-f",
            str(tmp_path / "pom.xml"),
            "some:goal",
            "-Dsome=option",
        )
    ]


def test_one_that_cannot_be_run_is_a_usage_error(command, tmp_path):
    with pytest.raises(UsageError, match=r"No Maven: '.*/mvn' is not on the PATH; install Maven 3\.8 or later\."):
        ask(tmp_path)


def test_one_that_does_not_end_is_ended(command, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "TIMEOUT", 0.2)
    command("exec sleep 60")
    with pytest.raises(HarnessError, match="Maven did not do it within"):
        ask(tmp_path)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("[INFO] x\n[ERROR] one\n[ERROR] two", "[ERROR] one"),
        ("nothing", "no reason given"),
        (
            "[ERROR] from mirror (https://user:word@maven.example:8443/all): Connect to maven.example:8443 "
            "[maven.example/10.1.2.3] failed",
            "[ERROR] from mirror (the registry): Connect to the registry [the registry] failed",
        ),
        ("[ERROR] https://maven.example/x: maven.example: unknown", "[ERROR] the registry the registry: unknown"),
        (
            "[ERROR] Could not find artifact org.example:maven.examples:jar:1 in https://maven.example",
            "[ERROR] Could not find artifact org.example:maven.examples:jar:1 in the registry",
        ),
    ],
)
def test_the_reason_is_mavens_first_error_without_registry_hosts(said, reason):
    assert MavenOutput(False, said).reason == reason
