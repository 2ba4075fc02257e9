"""The resolver that takes Maven's place where there is no `mvn`: it must resolve what Maven resolves."""

import shutil

import pytest

from onceproof.lab import releases
from onceproof.lab.artifacts import STREAMS, UnknownReleaseError, resolve
from onceproof.lab.maven import dependency
from onceproof.model.errors import HarnessError, UsageError
from onceproof.settings import Settings
from tests.conftest import HERE

pytestmark = pytest.mark.broker
KAFKA = "org.apache.kafka"


@pytest.fixture
def without_maven(tmp_path, monkeypatch):
    """An installation on a machine without Maven: its PATH has Java alone."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\nexec {shutil.which(HERE.java)} "$@"\n')
    java.chmod(0o755)
    monkeypatch.setenv("PATH", str(java.parent))
    return Settings(home=tmp_path / "home").installation


@pytest.mark.parametrize(("artifact", "version"), [(STREAMS, "3.4.1"), ("kafka_2.13", "3.9.1")])
def test_it_resolves_the_class_path_that_maven_resolves(without_maven, tmp_path, artifact, version):
    wanted = (KAFKA, artifact, version)
    found = resolve(without_maven, wanted, [dependency(wanted)])
    assert "onceproof-resolver.jar" in (tmp_path / "calls").read_text()
    assert found == resolve(HERE, wanted, [dependency(wanted)])


def test_a_release_that_is_not_published_is_named(without_maven):
    wanted = (KAFKA, STREAMS, "9.9.9")
    with pytest.raises(UnknownReleaseError, match=r"Kafka 9\.9\.9 is not published"):
        resolve(without_maven, wanted, [dependency(wanted)])


def test_it_lists_the_releases(without_maven):
    assert {"3.0.0", "3.4.1", "4.3.1"} <= set(map(str, releases.list_published(without_maven)))


def test_mirrors_and_credentials_of_the_settings_are_taken(without_maven, tmp_path, monkeypatch):
    """The only mirror does not answer, so nothing that is not there already can be had."""
    home = tmp_path / "user"
    (home / ".m2").mkdir(parents=True)
    (home / ".m2" / "settings.xml").write_text(
        "<settings><mirrors><mirror><id>own</id><mirrorOf>*</mirrorOf><url>http://127.0.0.1:9/all</url></mirror>"
        "</mirrors></settings>"
    )
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Duser.home={home}")
    wanted = (KAFKA, STREAMS, "3.4.1")
    with pytest.raises(HarnessError, match=r"could not resolve kafka-streams 3\.4\.1: .*own"):
        resolve(without_maven, wanted, [dependency(wanted)])


def test_without_java_either_there_is_one_sentence(without_maven, monkeypatch):
    monkeypatch.setenv("PATH", "")
    wanted = (KAFKA, STREAMS, "3.4.1")
    with pytest.raises(UsageError, match="No Java: 'java' could not be run; install a JDK 17 or later"):
        resolve(without_maven, wanted, [dependency(wanted)])
