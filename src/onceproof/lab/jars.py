"""Jars that Spark and the Data Docs need, fetched by Maven once."""

import shutil
import zipfile
from pathlib import Path

from onceproof.installation import Installation
from onceproof.lab.maven import resolve_pom
from onceproof.model.errors import HarnessError


def install_jars(installation: Installation, project: Path) -> None:
    """Fetch Spark's Kafka connector and the scripts of the Data Docs, unless they are there.

    Raises:
        UsageError: there is no Maven.
        HarnessError: Maven could not fetch them.
    """
    connector, vendor = project / "spark_jobs" / "connector.pom.xml", project / "expectations" / "vendor.pom.xml"
    _copy(installation, connector, installation.artifacts / "spark-connector")
    _copy(installation, vendor, installation.artifacts / "data-docs-vendor", unpack=True)


def _copy(installation: Installation, pom: Path, target: Path, unpack: bool = False) -> None:
    """Copy the dependencies of a pom, unless they are there for exactly this pom.

    Those of an earlier pom stay until all of them are there.
    """
    stamp = target / "pom.xml"
    if stamp.exists() and stamp.read_bytes() == pom.read_bytes():
        return
    fetched = target.with_name(f"{target.name}.new")
    shutil.rmtree(fetched, ignore_errors=True)
    options = (f"-DoutputDirectory={fetched}", "-DincludeScope=runtime")
    answer = resolve_pom(installation, pom, "copy-dependencies", *options, to=f"fetch the jars of {pom}")
    if not answer.succeeded:
        raise HarnessError(f"Maven could not fetch the jars of {pom}: {answer.reason}")
    for jar in fetched.glob("*.jar") if unpack else ():
        with zipfile.ZipFile(jar) as archive:
            archive.extractall(fetched)
    (fetched / stamp.name).write_bytes(pom.read_bytes())
    shutil.rmtree(target, ignore_errors=True)
    fetched.rename(target)
