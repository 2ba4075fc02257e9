"""The Java that brokers and instances run on."""

import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from onceproof.installation import Installation
from onceproof.lab.class_data import QUIET, ClassData
from onceproof.model.cell import MARK, Trial
from onceproof.model.errors import UsageError
from onceproof.scenarios import scenario
from onceproof.scenarios.base import JAVA

LOG4J = Path(__file__).with_name("log4j.properties")

# Short-lived JVMs on few cores: starting fast matters more than peak throughput.
FAST_START = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


def no_java(java: str) -> UsageError:
    """The sentence for a `java` command that could not be run."""
    return UsageError(
        f"No Java: {java!r} could not be run; install a JDK 17 or later (on Debian `apt install "
        "openjdk-17-jdk-headless`, else from https://adoptium.net), or set ONCEPROOF_JAVA to one."
    )


@cache
def java_version(java: str) -> int:
    """Feature version (17 for 17.0.15) of a `java` command.

    Raises:
        UsageError: there is no such command, or it does not report its version.
    """
    try:
        shown = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False).stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        raise no_java(java) from error
    match = re.search(r'version "(?:1\.)?(\d+)', shown)
    if match is None:
        raise UsageError(f"{java!r} did not report its version; set ONCEPROOF_JAVA to the java of a JDK 17 or later.")
    return int(match[1])


def require_java(java: str, oldest: int, needed_by: str) -> None:
    """Check that the Java is new enough for what it is `needed_by`.

    Raises:
        UsageError: it is missing or too old.
    """
    version = java_version(java)
    if version < oldest:
        raise UsageError(
            f"Java {version} is too old: {needed_by} needs Java {oldest}; install a JDK {oldest} or set ONCEPROOF_JAVA."
        )


def java_of(installation: Installation, version: int) -> str:
    """The `java` command of a feature version: the installation's own for 0, else that of a JDK found here.

    Raises:
        UsageError: there is none.
    """
    if version == 0:
        return installation.java
    there = {java_version(str(java)): str(java) for java in sorted(installation.jvms.glob("*/bin/java"))}
    if version not in there:
        raise UsageError(
            f"No Java {version}: {installation.jvms} has {', '.join(map(str, sorted(there))) or 'none'}; install a JDK "
            f"{version} there, or set ONCEPROOF_JVMS to the folder of yours."
        )
    return there[version]


def require_javas(installation: Installation, trials: Iterable[Trial]) -> None:
    """Check that there is a Java for the brokers of trials, and the one on which their instances are to run.

    Raises:
        UsageError: it is missing or too old.
    """
    wanted = [(trial.cell.broker, scenario(trial.cell.scenario).values(trial).get(JAVA, 0)) for trial in trials]
    for broker in sorted({broker for broker, _ in wanted if not broker.is_claimed}):
        require_java(installation.java, broker.oldest_java, f"a broker of Kafka {broker}")
    for version in sorted({version for _, version in wanted}):
        java_of(installation, version)


@dataclass(frozen=True)
class Jvm:
    """How our JVMs with one class path are run: the java, the jars, and their archive.

    Without an archive they neither use nor record one.
    """

    java: str
    jars: Sequence[Path]
    data: ClassData | None = None

    @classmethod
    def of(cls, installation: Installation, jars: Sequence[Path]) -> "Jvm":
        """With this class path, and its archive."""
        return cls(installation.java, jars, ClassData.of(installation, jars))

    def beside(self, jars: Sequence[Path]) -> "Jvm":
        """With further jars after those of the archive."""
        return replace(self, jars=[*self.jars, *jars])

    def command(self, main: Sequence[str], marked: Path, *options: str, records: bool = False) -> list[str]:
        """The command line of one.

        Args:
            main: the main class and its arguments.
            marked: the folder whose name it carries as our mark.
            options: further options, the heap first.
            records: whether it will end cleanly, so that it may record the archive if there is none.
        """
        data = self.data
        return [
            self.java,
            *FAST_START,
            *(data.flags if data is not None and (records or not data.records) else QUIET),
            *options,
            f"-Dlog4j.configuration={LOG4J.as_uri()}",
            f"-D{MARK}.mark={marked}",
            "-cp",
            ":".join(str(jar) for jar in self.jars),
            *main,
        ]
