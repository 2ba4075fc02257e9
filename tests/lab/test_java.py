from dataclasses import replace

import pytest

from onceproof.lab.java import java_of, java_version, require_java, require_javas
from onceproof.model.errors import UsageError
from tests.conftest import a_trial
from tests.fakes.world import FakeCluster


def java(tmp_path, says):
    command = tmp_path / "java"
    command.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    command.chmod(0o755)
    return str(command)


@pytest.mark.parametrize(
    ("says", "version"),
    [('openjdk version "17.0.15" 2025-04-15', 17), ('java version "1.8.0_402"', 8), ('openjdk version "25" 2025', 25)],
)
def test_the_feature_version_is_read(tmp_path, says, version):
    assert java_version(java(tmp_path, says)) == version


def test_too_old_a_java_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"Java 8 is too old: a broker of Kafka 4\.0\.0 needs Java 17"):
        require_java(java(tmp_path, 'java version "1.8.0_402"'), 17, "a broker of Kafka 4.0.0")


def test_no_java_is_refused(tmp_path):
    with pytest.raises(UsageError, match="No Java"):
        require_java(str(tmp_path / "nowhere"), 17, "x")


def test_something_else_called_java_is_refused(tmp_path):
    with pytest.raises(UsageError, match="did not report its version"):
        require_java(java(tmp_path, "hello"), 17, "x")


@pytest.fixture
def installation(tmp_path):
    for version in (17, 25):
        folder = tmp_path / "jvms" / f"jdk-{version}" / "bin"
        folder.mkdir(parents=True)
        java(folder, f'openjdk version "{version}.0.3"')
    return replace(FakeCluster.installation, java="own", jvms=tmp_path / "jvms")


def test_a_java_is_found_by_its_feature_version(installation):
    assert java_of(installation, 0) == "own"
    assert java_of(installation, 25) == str(installation.jvms / "jdk-25" / "bin" / "java")


def test_a_java_that_is_not_there_is_named_with_those_that_are(installation):
    with pytest.raises(UsageError, match=r"No Java 21: .*jvms has 17, 25; install a JDK 21 there, or set ONCEPROOF_"):
        java_of(installation, 21)
    with pytest.raises(UsageError, match="has none"):
        java_of(replace(installation, jvms=installation.jvms / "nowhere"), 21)


def test_the_java_of_instances_is_checked_before_any_start(installation, tmp_path):
    own = replace(installation, java=java(tmp_path, 'openjdk version "17.0.15"'))
    require_javas(own, [a_trial("4.3.1"), a_trial("4.3.1", "JAVA_25"), a_trial("4.3.1", java=25)])
    with pytest.raises(UsageError, match="No Java 21"):
        require_javas(own, [a_trial("4.3.1"), a_trial("4.3.1", "JAVA_21")])
