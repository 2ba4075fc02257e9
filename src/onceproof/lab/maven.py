"""Maven, in batch mode, or where there is none its resolver, which Onceproof brings (`resolver/`).

The mirrors, proxies and credentials in Maven's settings are honoured by both.
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from onceproof.installation import MAVEN, Installation
from onceproof.lab.java import FAST_START, no_java
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
class MavenOutput:
    """The output of Maven, and whether it succeeded."""

    succeeded: bool
    output: str

    @property
    def reason(self) -> str:
        """The first line that is about an error, without hosts of registries."""
        line = next((line for line in self.output.splitlines() if "ERROR" in line), "no reason given")
        return _without_hosts(line.strip(), set(re.findall(r"https?://(?:[^\s/@]*@)?([\w.\-]+)", self.output)))


def run_maven(command: str, pom: Path, goal: str, *options: str, to: str) -> MavenOutput:
    """Run a goal of Maven; what was missing before is looked for again. A wrong checksum fails it (`-C`).

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
        return _answer(
            [command, "-q", "-B", "-ntp", "-C", "-U", "-Dstyle.color=never", "-f", str(pom), goal, *options], to
        )
    except OSError as error:
        raise UsageError(f"No Maven: {command!r} is not on the PATH; install Maven 3.8 or later.") from error


def resolve_pom(installation: Installation, pom: Path, goal: str, *options: str, to: str) -> MavenOutput:
    """Have the dependencies of a pom resolved, by Maven, or where there is no `mvn` by our resolver.

    Args:
        installation: its Maven, or else its Java and the resolver.
        pom: the project.
        goal: `build-classpath` or `copy-dependencies`.
        options: `-D...`.
        to: what it is asked to do, for the error: "resolve ...".

    Raises:
        UsageError: there is neither Maven nor Java.
        HarnessError: it did not end within 10 minutes.
    """
    jar = installation.resolver_jar
    if installation.maven != MAVEN or shutil.which(MAVEN) is not None or not jar.is_file():
        return run_maven(installation.maven, pom, f"{DEPENDENCY_PLUGIN}:{goal}", *options, to=to)
    try:
        return _answer([installation.java, *FAST_START, "-jar", str(jar), "-f", str(pom), goal, *options], to)
    except OSError as error:
        raise no_java(installation.java) from error


def _answer(command: Sequence[str], to: str) -> MavenOutput:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    except subprocess.TimeoutExpired as error:
        raise HarnessError(f"Maven did not {to} within {TIMEOUT // 60} minutes; try again.") from error
    return MavenOutput(done.returncode == 0, done.stdout + done.stderr)


def dependency(coordinates: Coordinates) -> str:
    """A dependency, as a pom has it."""
    return DEPENDENCY.format(*map(escape, coordinates))


def build_class_path(installation: Installation, dependencies: Iterable[str], *options: str, to: str) -> MavenOutput:
    """Ask for the class path of the dependencies; arguments and errors are those of `resolve_pom`."""
    with tempfile.TemporaryDirectory() as folder:
        pom = Path(folder, "pom.xml")
        pom.write_text(POM.format("".join(dependencies)))
        return resolve_pom(installation, pom, "build-classpath", "-DincludeScope=runtime", *options, to=to)


def _without_hosts(line: str, hosts: set[str]) -> str:
    line = re.sub(r"https?://[^\s)]+", REGISTRY, line)
    for host in hosts:
        line = re.sub(rf"(?<![\w.\-]){re.escape(host)}(?::\d+)?(?:/[\d.]+(?::\d+)?)?(?![\w\-])", REGISTRY, line)
    return line
