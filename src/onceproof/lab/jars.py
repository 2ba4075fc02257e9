"""Jars that Spark and the Data Docs need, fetched by Maven once, and compared with checksums that Onceproof brings.

A registry's own checksum says that a file arrived as it was sent. Next to each pom lies a file of SHA-256 sums, which
says that it is the one with which this version was released, whatever a mirror sends and whichever Maven is here.
"""

import hashlib
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
        HarnessError: Maven could not fetch them, or fetched others.
    """
    connector, vendor = project / "spark_jobs" / "connector.pom.xml", project / "expectations" / "vendor.pom.xml"
    _copy(installation, connector, installation.artifacts / "spark-connector")
    _copy(installation, vendor, installation.artifacts / "data-docs-vendor", unpack=True)


def _copy(installation: Installation, pom: Path, target: Path, unpack: bool = False) -> None:
    """Copy the dependencies of a pom, unless they are there for exactly this pom and these sums.

    Those of an earlier pom stay until all of them are there.
    """
    sums = pom.with_name(pom.name.replace(".pom.xml", ".sha256"))
    stamps = {"pom.xml": pom.read_bytes(), "jars.sha256": sums.read_bytes()}
    if all((target / name).is_file() and (target / name).read_bytes() == text for name, text in stamps.items()):
        return
    fetched = target.with_name(f"{target.name}.new")
    shutil.rmtree(fetched, ignore_errors=True)
    options = (f"-DoutputDirectory={fetched}", "-DincludeScope=runtime")
    answer = resolve_pom(installation, pom, "copy-dependencies", *options, to=f"fetch the jars of {pom}")
    if not answer.succeeded:
        raise HarnessError(f"Maven could not fetch the jars of {pom}: {answer.reason}")
    _check(fetched, sums)
    for jar in fetched.glob("*.jar") if unpack else ():
        with zipfile.ZipFile(jar) as archive:
            archive.extractall(fetched)
    for name, text in stamps.items():
        (fetched / name).write_bytes(text)
    shutil.rmtree(target, ignore_errors=True)
    fetched.rename(target)


def _check(folder: Path, sums: Path) -> None:
    """Check that the jars of a folder are those of the sums, all of them and no others.

    Raises:
        HarnessError: they are not; names the first.
    """
    wanted = {name: digest for digest, name in (line.split() for line in sums.read_text().splitlines())}
    found = {jar.name: hashlib.sha256(jar.read_bytes()).hexdigest() for jar in folder.glob("*.jar")}
    for name in sorted(wanted.keys() | found.keys()):
        if found.get(name) != wanted.get(name):
            raise HarnessError(
                f"{name} is not what this Onceproof was released with: Maven fetched {found.get(name, 'none')}, and "
                f"{sums} has {wanted.get(name, 'none')}. Ask those who run the mirror in Maven's settings, and delete "
                "it from the local repository (~/.m2/repository)."
            )
