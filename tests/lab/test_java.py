import pytest

from onceproof.lab.java import java_version, require_java
from onceproof.model.errors import UsageError


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
    with pytest.raises(UsageError, match="did not tell its version"):
        require_java(java(tmp_path, "hello"), 17, "x")
