"""The jars that Spark and the Data Docs need are there as a whole, or as they were."""

import hashlib
import re
from dataclasses import replace
from pathlib import Path

import pytest

from onceproof.lab.jars import install_jars
from onceproof.model.errors import HarnessError
from tests.conftest import HERE

FETCHES = """#!/bin/sh
for word in "$@"; do case $word in -DoutputDirectory=*) folder=${word#*=};; esac; done
mkdir -p "$folder" && : > "$folder/half.txt" && test -z "$FAILS" || exit 1
"""
SENDS = """#!/bin/sh
for word in "$@"; do case $word in -DoutputDirectory=*) folder=${word#*=};; esac; done
mkdir -p "$folder" && cp "$SENT"/*.jar "$folder"
"""


def test_only_the_releases_own_jars_are_taken_from_a_mirror(tmp_path, monkeypatch):
    (tmp_path / "mvn").write_text(SENDS)
    (tmp_path / "mvn").chmod(0o755)
    here = replace(HERE, maven=str(tmp_path / "mvn"), artifacts=tmp_path / "artifacts")
    sent = tmp_path / "sent"
    sent.mkdir()
    monkeypatch.setenv("SENT", str(sent))
    good = {"a-1.jar": b"a", "b-1.jar": b"b"}
    for name in ("spark_jobs/connector", "expectations/vendor"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / f"{name}.pom.xml").write_text("one")
        sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {jar}\n" for jar, content in good.items())
        (tmp_path / f"{name}.sha256").write_text(sums)
    for wrong, named in (
        ({**good, "b-1.jar": b"evil"}, "b-1.jar"),
        ({"a-1.jar": b"a"}, "b-1.jar"),
        ({**good, "c-1.jar": b"c"}, "c-1.jar"),
    ):
        for jar in sent.iterdir():
            jar.unlink()
        for jar_name, content in wrong.items():
            (sent / jar_name).write_bytes(content)
        with pytest.raises(HarnessError, match=f"{named} is not what this Onceproof was released with"):
            install_jars(here, tmp_path)
        assert not (here.artifacts / "spark-connector").exists()


@pytest.mark.parametrize("pom", ["spark_jobs/connector.pom.xml", "expectations/vendor.pom.xml"])
def test_each_artifact_of_a_pom_has_a_sum(project: Path, pom: str):
    """After a change of versions: sha256sum of the jars that `mvn dependency:copy-dependencies` copies."""
    text = (project / pom).read_text()
    versions = dict(re.findall(r"<([a-z-]+)>([0-9.]+)</", text))
    artifacts = re.findall(
        r"<artifactId>([^<*]+)</artifactId>\s*<version>([^<]+)</version>\s*<exclusions|"
        r"<artifactId>(commons-pool2)</artifactId>\s*<version>([^<]+)</version>",
        text,
    )
    jars = {
        f"{one or other}-{re.sub(r'[$][{](.+)[}]', lambda found: versions[found[1]], version or its)}.jar"
        for one, version, other, its in artifacts
    }
    sums = (project / pom.replace(".pom.xml", ".sha256")).read_text()
    assert {line.split()[1] for line in sums.splitlines()} == jars


@pytest.mark.broker
def test_what_maven_fetches_is_what_was_released(project: Path, tmp_path: Path):
    here = replace(HERE, artifacts=tmp_path / "artifacts")
    install_jars(here, project)
    assert len(list((here.artifacts / "spark-connector").glob("*.jar"))) == 4
    assert (here.artifacts / "data-docs-vendor" / "META-INF").is_dir()


def test_jars_of_an_earlier_pom_stay_until_the_new_ones_arrive(tmp_path, monkeypatch):
    (tmp_path / "mvn").write_text(FETCHES)
    (tmp_path / "mvn").chmod(0o755)
    here = replace(HERE, maven=str(tmp_path / "mvn"), artifacts=tmp_path / "artifacts")
    for name in ("spark_jobs/connector", "expectations/vendor"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / f"{name}.pom.xml").write_text("one")
        (tmp_path / f"{name}.sha256").touch()
    install_jars(here, tmp_path)
    connector = here.artifacts / "spark-connector"
    (connector / "old.jar").touch()
    (tmp_path / "spark_jobs/connector.pom.xml").write_text("two")
    monkeypatch.setenv("FAILS", "1")
    with pytest.raises(HarnessError, match="could not fetch"):
        install_jars(here, tmp_path)
    assert ((connector / "pom.xml").read_text(), (connector / "old.jar").exists()) == ("one", True)
    monkeypatch.delenv("FAILS")
    install_jars(here, tmp_path)
    assert sorted(path.name for path in connector.iterdir()) == ["half.txt", "jars.sha256", "pom.xml"]
    assert (connector / "pom.xml").read_text() == "two"
    assert not list(here.artifacts.glob("*.new"))
