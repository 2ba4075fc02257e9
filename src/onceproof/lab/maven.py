"""Maven, in batch mode: the mirrors, proxies and credentials in its settings are honoured."""

import re
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from onceproof.model.errors import HarnessError, UsageError

REGISTRY = "the registry"  # replaces every host in what Maven says
TIMEOUT = 600  # seconds
DEPENDENCY_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>onceproof</groupId><artifactId>class-path</artifactId><version>1</version>
  <dependencies>{}</dependencies>
</project>
"""
DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
Coordinates = tuple[str, str, str]  # group, artifact, version


@dataclass(frozen=True)
class Answer:
    """What Maven said, and whether it succeeded."""

    succeeded: bool
    output: str

    @property
    def reason(self) -> str:
        """The first line that tells of an error, without hosts of registries."""
        line = next((line for line in self.output.splitlines() if "ERROR" in line), "no reason given")
        return _without_hosts(line.strip(), set(re.findall(r"https?://(?:[^\s/@]*@)?([\w.\-]+)", self.output)))


def maven(command: str, pom: Path, goal: str, *options: str, to: str) -> Answer:
    """Run a goal of Maven; what was missing before is looked for again.

    Args:
        command: Maven itself.
        pom: the project.
        goal: of a plugin, with its coordinates.
        options: `-D...`.
        to: what it is asked to do, for the error: "resolve ...".

    Raises:
        UsageError: there is no Maven.
        HarnessError: it did not end within 10 minutes.
    """
    try:
        done = subprocess.run(
            [command, "-q", "-B", "-ntp", "-U", "-Dstyle.color=never", "-f", str(pom), goal, *options],
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
    except OSError as error:
        raise UsageError(f"No Maven: {command!r} is not on the PATH; install Maven 3.8 or later.") from error
    except subprocess.TimeoutExpired as error:
        raise HarnessError(f"Maven did not {to} within {TIMEOUT // 60} minutes; try again.") from error
    return Answer(done.returncode == 0, done.stdout + done.stderr)


def dependency(coordinates: Coordinates) -> str:
    """A dependency, as a pom has it."""
    return DEPENDENCY.format(*map(escape, coordinates))


def build_class_path(command: str, dependencies: Iterable[str], *options: str, to: str) -> Answer:
    """Ask Maven for the class path of the dependencies; arguments and errors are those of `maven`."""
    with tempfile.TemporaryDirectory() as folder:
        pom = Path(folder, "pom.xml")
        pom.write_text(POM.format("".join(dependencies)))
        return maven(command, pom, f"{DEPENDENCY_PLUGIN}:build-classpath", "-DincludeScope=runtime", *options, to=to)


def _without_hosts(line: str, hosts: set[str]) -> str:
    line = re.sub(r"https?://[^\s)]+", REGISTRY, line)
    for host in hosts:
        line = re.sub(rf"(?<![\w.\-]){re.escape(host)}(?::\d+)?(?:/[\d.]+(?::\d+)?)?(?![\w\-])", REGISTRY, line)
    return line
