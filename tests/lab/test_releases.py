"""What is published, from Maven's metadata, and what Maven cannot tell."""

import re
import stat
from datetime import datetime

import pytest

from onceproof.lab.releases import HOLDS, exact, list_published, read_published, read_remembered_releases, releases_of
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.json_file import read_json, write_json
from onceproof.settings import Settings
from tests.conftest import HERE

METADATA = """<metadata><groupId>org.apache.kafka</groupId><artifactId>kafka-streams</artifactId><versioning>
<latest>4.3.1</latest><versions><version>0.10.0.0</version><version>2.8.2</version><version>3.10.0</version>
<version>3.9.1</version><version>4.0.0-rc1</version><version>4.0.0-alpha1</version><version>3.9.1</version></versions></versioning></metadata>"""


def test_releases_come_in_their_order_without_what_is_too_old():
    assert list(map(str, releases_of(METADATA))) == ["3.9.1", "3.9.1", "3.10.0", "4.0.0-rc1"]


@pytest.fixture
def maven(tmp_path):
    """An installation with its own home and a stand-in for Maven."""

    def use(script):
        file = tmp_path / "mvn"
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
        return Settings(home=tmp_path, maven=str(file)).installation

    return use


@pytest.mark.parametrize(("pre_releases", "found"), [(False, "3.9.1 3.10.0"), (True, "3.9.1 3.10.0 4.0.0-rc1")])
def test_pre_releases_are_a_choice(maven, tmp_path, pre_releases, found):
    folder = tmp_path / "artifacts/releases/org/apache/kafka/kafka-streams"
    (tmp_path / "metadata.xml").write_text(METADATA)
    installation = maven(f"mkdir -p {folder}; cp {tmp_path}/metadata.xml {folder}/maven-metadata-central.xml; exit 1")
    assert " ".join(map(str, list_published(installation, pre_releases))) == found


def test_an_unreachable_maven_is_one_sentence_without_its_host(maven):
    installation = maven(
        "echo '[ERROR] Could not transfer metadata from https://registry.example/maven: refused'; exit 1"
    )
    with pytest.raises(HarnessError, match=r"which releases exist: .*the registry") as raised:
        list_published(installation)
    assert "example" not in str(raised.value)


def test_without_maven_there_is_one_sentence(tmp_path):
    installation = Settings(home=tmp_path, maven="no-such-maven").installation
    with pytest.raises(UsageError, match="No Maven: 'no-such-maven'"):
        list_published(installation)


UNREACHABLE = "echo '[ERROR] Could not transfer metadata: refused'; exit 1"


def publishing(tmp_path, *versions):
    """What a stand-in for Maven does when it reaches its registry."""
    folder = tmp_path / "artifacts/releases/org/apache/kafka/kafka-streams"
    listed = "".join(f"<version>{version}</version>" for version in versions)
    (tmp_path / "metadata.xml").write_text(
        f"<metadata><versioning><versions>{listed}</versions></versioning></metadata>"
    )
    return (
        f"echo asked >> {tmp_path}/asked; mkdir -p {folder}; cp {tmp_path}/metadata.xml {folder}/maven-metadata-x.xml"
    )


def age(tmp_path, **ages):
    """Make the kept list older than it is."""
    file = tmp_path / "artifacts/releases/published.json"
    data = read_json(file)
    write_json(file, data | {at: str(datetime.fromisoformat(data[at]) - by) for at, by in ages.items()})


def asked(tmp_path):
    file = tmp_path / "asked"
    return len(file.read_text().splitlines()) if file.exists() else 0


def test_a_list_holds_for_some_hours_then_maven_is_asked_again(maven, tmp_path):
    installation = maven(publishing(tmp_path, "4.3.1", "4.4.0", "4.5.0-rc1"))
    assert str(read_published(installation).resolve("newest")) == "4.4.0"
    assert "as Maven listed the releases at 20" in read_published(installation).source
    maven(publishing(tmp_path, "4.3.1", "4.4.0", "4.5.0"))
    assert str(read_published(installation).resolve("newest")) == "4.4.0"
    assert asked(tmp_path) == 1
    age(tmp_path, listed=2 * HOLDS, tried=2 * HOLDS)
    assert str(read_published(installation).resolve("newest")) == "4.5.0"
    assert asked(tmp_path) == 2


def test_offline_the_last_listing_is_used_and_named(maven, tmp_path):
    read_published(maven(publishing(tmp_path, "4.3.1", "4.4.0")))
    age(tmp_path, listed=2 * HOLDS, tried=2 * HOLDS)
    reported: list[str] = []
    assert exact(maven(UNREACHABLE), ["newest", "3.4.1", "newest"], reported.append) == ("4.4.0", "3.4.1")
    [sentence] = reported
    assert re.fullmatch(r"newest is 4\.4\.0, by what Maven listed at .* UTC: Maven could not be reached\.", sentence)
    assert [str(release) for release in list_published(maven(UNREACHABLE))] == ["4.3.1", "4.4.0"]


def test_an_unreachable_registry_is_not_retried_for_some_minutes(maven, tmp_path):
    read_published(maven(publishing(tmp_path, "4.4.0")))
    age(tmp_path, listed=2 * HOLDS, tried=2 * HOLDS)
    installation = maven(f"echo asked >> {tmp_path}/asked; {UNREACHABLE}")
    assert [str(read_published(installation).resolve("newest")) for _ in range(3)] == ["4.4.0"] * 3
    assert asked(tmp_path) == 2  # once for the list, once in vain


@pytest.mark.parametrize("command", [UNREACHABLE, None])
def test_without_any_listing_locally_resolved_releases_are_used(maven, tmp_path, command):
    installation = maven(UNREACHABLE) if command else Settings(home=tmp_path, maven="no-such-maven").installation
    installation.artifacts.mkdir(parents=True)
    jar = tmp_path / "a.jar"
    jar.touch()
    for name, path in (
        ("4.2.0", jar),
        ("4.3.1", jar),
        ("4.4.0", tmp_path / "gone.jar"),
        ("4.4.0-SNAPSHOT@ab12cd3", jar),
    ):
        (installation.artifacts / f"kafka-streams-{name}.classpath").write_text(str(path))
    found = read_published(installation)
    assert list(map(str, found.releases)) == ["4.2.0", "4.3.1"]
    assert found.meaning("newest") == "newest is 4.3.1, by what was resolved here before: Maven could not be reached"


def test_where_nothing_is_known_a_word_is_one_sentence(maven):
    with pytest.raises(HarnessError, match="Maven did not say which releases exist"):
        exact(maven(UNREACHABLE), ["newest"])


def test_without_a_word_maven_is_not_asked(tmp_path):
    installation = Settings(home=tmp_path, maven="no-such-maven").installation
    assert exact(installation, ["3.4.1", "./build", "4.4.0-SNAPSHOT"]) == ("3.4.1", "./build", "4.4.0-SNAPSHOT")
    assert read_remembered_releases(installation) is None


@pytest.mark.broker
def test_the_real_maven_lists_the_releases_that_everybody_knows():
    assert {"3.0.0", "3.4.1", "4.3.1"} <= set(map(str, list_published(HERE)))
