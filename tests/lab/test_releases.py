"""What is published, from Maven's metadata, and what Maven cannot tell."""

import stat

import pytest

from onceproof.lab.releases import published_releases, releases_of
from onceproof.model.errors import HarnessError, UsageError
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
    assert " ".join(map(str, published_releases(installation, pre_releases))) == found


def test_a_maven_that_reaches_nothing_is_one_sentence_without_the_registrys_host(maven):
    installation = maven(
        "echo '[ERROR] Could not transfer metadata from https://registry.example/maven: refused'; exit 1"
    )
    with pytest.raises(HarnessError, match=r"which releases exist: .*the registry") as raised:
        published_releases(installation)
    assert "example" not in str(raised.value)


def test_without_maven_there_is_one_sentence(tmp_path):
    installation = Settings(home=tmp_path, maven="no-such-maven").installation
    with pytest.raises(UsageError, match="No Maven: 'no-such-maven'"):
        published_releases(installation)


@pytest.mark.broker
def test_the_real_maven_lists_the_releases_that_everybody_knows():
    assert {"3.0.0", "3.4.1", "4.3.1"} <= set(map(str, published_releases(HERE)))
