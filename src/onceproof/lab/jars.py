"""Jars that Spark and the Data Docs need, fetched by Maven once."""

import re
import shutil
import subprocess
import zipfile
from pathlib import Path

from onceproof.model.errors import HarnessError, UsageError
from onceproof.settings import get_settings

COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"


def install_jars() -> None:
    """Fetch Spark's Kafka connector and the scripts of the Data Docs, unless they are there.

    Raises:
        UsageError: there is no Maven.
        HarnessError: Maven could not fetch them.
    """
    settings = get_settings()
    _copy(settings.project / "spark_jobs" / "connector.pom.xml", settings.artifacts / "spark-connector")
    _copy(settings.project / "expectations" / "vendor.pom.xml", settings.artifacts / "data-docs-vendor", unpack=True)


def _copy(pom: Path, target: Path, unpack: bool = False) -> None:
    """Copy the dependencies of a pom, unless they are there for this very pom; its stamp comes last."""
    stamp = target / "pom.xml"
    if stamp.exists() and stamp.read_bytes() == pom.read_bytes():
        return
    shutil.rmtree(target, ignore_errors=True)
    command = [get_settings().maven, "-q", "-B", "-ntp", "-f", str(pom), COPY, f"-DoutputDirectory={target}"]
    try:
        done = subprocess.run(
            [*command, "-DincludeScope=runtime"], capture_output=True, text=True, timeout=600, check=False
        )
    except OSError as error:
        raise UsageError(f"No Maven: {command[0]!r} could not be run; install Maven 3.8 or later.") from error
    except subprocess.TimeoutExpired as error:
        raise HarnessError(f"Maven did not fetch the jars of {pom} within 10 minutes; try again.") from error
    if done.returncode:
        said = next((line for line in done.stdout.splitlines() if "ERROR" in line), "no reason given")
        said = re.sub(r"https?://\S+", "the registry", said)
        raise HarnessError(f"Maven could not fetch the jars of {pom}: {said}")
    for jar in target.glob("*.jar") if unpack else ():
        with zipfile.ZipFile(jar) as archive:
            archive.extractall(target)
    stamp.write_bytes(pom.read_bytes())
