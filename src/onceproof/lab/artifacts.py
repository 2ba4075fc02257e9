"""Class paths of Kafka releases, resolved by Maven and remembered.

Maven does the resolving, so the mirrors, proxies and credentials in its settings are honoured. What was resolved once
is read from a file afterwards: no Maven, no network.
"""

import hashlib
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path

from filelock import FileLock

from onceproof.installation import Installation
from onceproof.lab.maven import Coordinates, MavenOutput, build_class_path, dependency
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.json_file import unwritable
from onceproof.model.release import Release

# kafka-clients and the brokers bring slf4j-api without a binding.
LOGGING = ("org.slf4j", "slf4j-reload4j", "1.7.36")
GROUP = "org.apache.kafka"
STREAMS, TEST_UTILS, BROKER, TOOLS = "kafka-streams", "kafka-streams-test-utils", "kafka_2.13", "kafka-tools"


class UnknownReleaseError(UsageError):
    """The release is not published, or the build is not kept."""


def streams_class_path(installation: Installation, release: Release) -> list[Path]:
    """Jars of kafka-streams and kafka-clients of the release, with logging.

    Raises:
        UnknownReleaseError: the release is not published, or the build is not kept.
        UsageError: a build of the same version is in its place.
        HarnessError: its artifacts are incomplete, or Maven failed.
    """
    return _class_path(installation, STREAMS, release)


def replay_class_path(installation: Installation, release: Release) -> list[Path]:
    """Jars with Kafka's `TopologyTestDriver` of the release; raises as `streams_class_path` does."""
    return _class_path(installation, TEST_UTILS, release)


def broker_class_path(installation: Installation, release: Release) -> list[Path]:
    """Jars of a broker of the release, with logging; raises as `streams_class_path` does."""
    return _class_path(installation, BROKER, release)


def dumper_class_path(installation: Installation, release: Release) -> list[Path]:
    """Jars with Kafka's `DumpLogSegments` of the release, with logging; raises as `streams_class_path` does."""
    return _class_path(installation, dumper_of(release), release)


def dumper_of(release: Release) -> str:
    """The artifact that brings `DumpLogSegments`."""
    return TOOLS if release.since(Release(4, 3, 0)) else BROKER


def check_published(installation: Installation, releases: Iterable[Release]) -> None:
    """Check that each release exists; one with incomplete artifacts does.

    Raises:
        UnknownReleaseError: a release is not published, or no part of a build is kept.
        UsageError: a build is in the place of a release.
    """
    for release in releases:
        if release.commit and class_path_file(installation, BROKER, release).exists():
            continue
        try:
            streams_class_path(installation, release)
        except UsageError:
            raise
        except HarnessError:  # its cells will say so
            continue


def class_path_file(installation: Installation, artifact: str, release: Release) -> Path:
    """Where the class path of an artifact is remembered."""
    return installation.artifacts / f"{artifact}-{release}.classpath"


def _class_path(installation: Installation, artifact: str, release: Release) -> list[Path]:
    file = class_path_file(installation, artifact, release)
    jars = read_remembered(file)
    if not jars and release.commit:
        raise UnknownReleaseError(
            f"{artifact} of the build {release} is not kept here: name the Maven repository that it is in, and it is "
            "taken in again."
        )
    if not jars:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{file}.lock"):
                if not read_remembered(file):
                    wanted = (GROUP, artifact, release.version)
                    file.write_text(resolve(installation, wanted, [dependency(wanted)]))
        except OSError as error:
            raise unwritable(error, file.parent) from error
        jars = read_remembered(file)
    if not release.commit and (built := next((jar for jar in jars if not _is_as_published(jar)), None)):
        raise UsageError(
            f"{built} was not downloaded but built here, so it is not what is published as Kafka {release}: delete its "
            f"folder to have that fetched, or name the build: --maven-repo {_repository_of(built)}."
        )
    return jars


def read_remembered(file: Path) -> list[Path]:
    """The jars of a class path file; none if it is missing or one of its jars is."""
    if not file.exists():
        return []
    jars = [Path(jar) for jar in file.read_text().strip().split(":") if jar]
    return jars if all(jar.is_file() for jar in jars) else []


def _repository_of(jar: Path) -> Path:
    """The Maven repository that a jar of Kafka is in: GROUP/ARTIFACT/VERSION/JAR."""
    return jar.parents[3 + GROUP.count(".")]


def _is_as_published(jar: Path) -> bool:
    """Whether a jar of Kafka in the local Maven repository is the registry's: `publishToMavenLocal` puts another one in
    its place, and leaves the checksum that Maven downloaded.
    """
    if not jar.match(f"{GROUP.replace('.', '/')}/*/*/*.jar"):
        return True
    checksum, origin = jar.with_name(f"{jar.name}.sha1"), jar.with_name("_remote.repositories")
    if checksum.is_file():
        return hashlib.sha1(jar.read_bytes(), usedforsecurity=False).hexdigest() in checksum.read_text().lower()
    return origin.is_file() and re.search(rf"^{re.escape(jar.name)}>.*[^>=\s]=", origin.read_text(), re.M) is not None


def resolve(installation: Installation, wanted: Coordinates, dependencies: Iterable[str]) -> str:
    """The class path of dependencies, with logging, as `:`-separated absolute paths; `wanted` is what they are for.

    Raises:
        UnknownReleaseError: what is wanted is not published.
        HarnessError: something that it needs is not, or Maven failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "class-path")
        listed = [*dependencies, dependency(LOGGING)]
        answer = build_class_path(installation, listed, f"-Dmdep.outputFile={out}", to=f"resolve {wanted[1]}")
        if not answer.succeeded:
            raise _explain(wanted, answer)
        return out.read_text()


def _explain(wanted: Coordinates, answer: MavenOutput) -> UsageError | HarnessError:
    """One sentence for what Maven could not do."""
    group, artifact, version = wanted
    output = answer.output
    missing = re.findall(r"(?:Could not find artifact|Failure to find) ([\w.\-]+:[\w.\-]+:\S+)", output)
    missing += re.findall(r"([\w.\-]+:[\w.\-]+:\S+) was not found in", output)
    missing += re.findall(r"^\s*([\w.\-]+:[\w.\-]+:jar:\S+) \(absent\)", output, re.MULTILINE)
    if any(re.match(rf"{group}:{re.escape(artifact)}:\w+:{re.escape(version)}$", name) for name in missing):
        return UnknownReleaseError(
            f"Kafka {version} is not published: Maven does not find {group}:{artifact}:{version}; "
            "choose a published release."
        )
    if missing:
        return HarnessError(
            f"Kafka {version} is incomplete: {artifact} needs {missing[0]}, which Maven does not find; "
            "try again later or choose another release."
        )
    return HarnessError(f"Maven could not resolve {artifact} {version}: {answer.reason}")
