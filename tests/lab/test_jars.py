"""The jars that Spark and the Data Docs need are there as a whole, or as they were."""

from dataclasses import replace

import pytest

from onceproof.lab.jars import install_jars
from onceproof.model.errors import HarnessError
from tests.conftest import HERE

FETCHES = """#!/bin/sh
for word in "$@"; do case $word in -DoutputDirectory=*) folder=${word#*=};; esac; done
mkdir -p "$folder" && : > "$folder/half.txt" && test -z "$FAILS" || exit 1
"""


def test_those_of_an_earlier_pom_stay_until_the_new_ones_are_there(tmp_path, monkeypatch):
    (tmp_path / "mvn").write_text(FETCHES)
    (tmp_path / "mvn").chmod(0o755)
    here = replace(HERE, maven=str(tmp_path / "mvn"), artifacts=tmp_path / "artifacts")
    for name in ("spark_jobs/connector", "expectations/vendor"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / f"{name}.pom.xml").write_text("one")
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
    assert sorted(path.name for path in connector.iterdir()) == ["half.txt", "pom.xml"]
    assert (connector / "pom.xml").read_text() == "two"
    assert not list(here.artifacts.glob("*.new"))
