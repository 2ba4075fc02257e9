from collections.abc import Callable
from pathlib import Path

import pytest

from onceproof.lab.artifacts import UnknownReleaseError, check_published, streams_class_path
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.release import Release
from onceproof.settings import Settings

MAVEN = """#!/bin/sh
echo "$@" >> {calls}
for word in "$@"; do case "$word" in -Dmdep.outputFile=*) out="${{word#*=}}";; esac; done
{does}
"""
UNKNOWN = (
    "[ERROR] Could not find artifact org.apache.kafka:kafka-streams:jar:9.9.9 in central (https://registry.example/x)"
)
AGAIN = "[ERROR] org.apache.kafka:kafka-streams:jar:9.9.9 was not found in https://registry.example/x during a previous attempt"
INCOMPLETE = "[ERROR] Could not find artifact org.rocksdb:rocksdbjni:jar:1.2.3 in central (https://registry.example/x)"
OFFLINE = "[ERROR] Could not transfer artifact a:b:pom:1 from/to central (https://registry.example/x): no route to host"


@pytest.fixture
def maven(tmp_path: Path) -> Callable[[str], Path]:
    """Stands in for Maven, to give answers that a registry rarely gives."""
    calls = tmp_path / "calls"

    def does(script: str) -> Path:
        command = tmp_path / "mvn"
        command.write_text(MAVEN.format(calls=calls, does=script))
        command.chmod(0o755)
        return calls

    return does


@pytest.fixture
def here(tmp_path):
    """An installation with that Maven, if there is one, and its own home."""
    return Settings(home=tmp_path / "home", maven=str(tmp_path / "mvn")).installation


NEXT = Release.parse("9.9.9")


def test_a_class_path_is_resolved_once(maven, tmp_path, here):
    jar = tmp_path / "a.jar"
    jar.write_text("")
    calls = maven(f'echo "{jar}" > "$out"')
    assert streams_class_path(here, NEXT) == streams_class_path(here, NEXT) == [jar]
    assert len(calls.read_text().splitlines()) == 1


def test_it_is_resolved_again_when_a_jar_was_removed(maven, tmp_path, here):
    jar = tmp_path / "a.jar"
    calls = maven(f'touch "{jar}"; echo "{jar}" > "$out"')
    streams_class_path(here, NEXT)
    jar.unlink()
    assert streams_class_path(here, NEXT) == [jar]
    assert len(calls.read_text().splitlines()) == 2


@pytest.mark.parametrize("said", [UNKNOWN, AGAIN])
def test_a_release_that_is_not_published_is_a_usage_error(maven, said, here):
    maven(f'echo "{said}"; exit 1')
    with pytest.raises(UnknownReleaseError, match=r"Kafka 9\.9\.9 is not published") as refused:
        check_published(here, [NEXT])
    assert "registry.example" not in str(refused.value)


def test_a_published_release_with_missing_parts_cannot_be_run(maven, here):
    maven(f'echo "{INCOMPLETE}"; exit 1')
    check_published(here, [NEXT])
    with pytest.raises(HarnessError, match=r"incomplete: kafka-streams needs org\.rocksdb:rocksdbjni:jar:1\.2\.3"):
        streams_class_path(here, NEXT)


def test_another_failure_of_maven_hides_the_registry_host(maven, here):
    maven(f'echo "{OFFLINE}"; exit 1')
    with pytest.raises(HarnessError, match="no route to host") as error:
        streams_class_path(here, NEXT)
    assert "https" not in str(error.value)


def test_no_maven_is_a_usage_error(here):
    with pytest.raises(UsageError, match="install Maven"):
        streams_class_path(here, NEXT)
