"""Class paths of Kafka releases, resolved by Maven and remembered.

Maven does the resolving, so mirrors, proxies and credentials of its settings are honoured. What was resolved once
is read from a file afterwards: no Maven, no network.
"""

import re
import tempfile
from collections.abc import Iterable
from pathlib import Path

from filelock import FileLock

from onceproof.lab.maven import Answer, Coordinates, build_class_path
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.json_file import unwritable
from onceproof.model.release import Release
from onceproof.settings import get_settings

# kafka-clients and the brokers bring slf4j-api without a binding.
LOGGING = ("org.slf4j", "slf4j-reload4j", "1.7.36")


class UnknownReleaseError(UsageError):
    """The release is not published."""


def streams_class_path(release: Release) -> list[Path]:
    """Jars of kafka-streams and kafka-clients of the release, with logging.

    Raises:
        UnknownReleaseError: the release is not published.
        HarnessError: its artifacts are incomplete, or Maven failed.
    """
    return _class_path("kafka-streams", release)


def broker_class_path(release: Release) -> list[Path]:
    """Jars of a broker of the release, with logging; raises as `streams_class_path` does."""
    return _class_path("kafka_2.13", release)


def dumper_class_path(release: Release) -> list[Path]:
    """Jars with Kafka's `DumpLogSegments` of the release, with logging; raises as `streams_class_path` does."""
    return _class_path("kafka-tools" if release.since(Release(4, 3, 0)) else "kafka_2.13", release)


def check_published(releases: Iterable[Release]) -> None:
    """Check that each release exists; one with incomplete artifacts does.

    Raises:
        UnknownReleaseError: a release is not published.
    """
    for release in releases:
        try:
            streams_class_path(release)
        except UsageError:
            raise
        except HarnessError:  # its cells will say so
            continue


def _class_path(artifact: str, release: Release) -> list[Path]:
    settings = get_settings()
    file = settings.artifacts / f"{artifact}-{release}.classpath"
    jars = _remembered(file)
    if jars:
        return jars
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{file}.lock"):
            if not _remembered(file):
                file.write_text(_resolve([("org.apache.kafka", artifact, str(release)), LOGGING]))
    except OSError as error:
        raise unwritable(error, file.parent) from error
    return _remembered(file)


def _remembered(file: Path) -> list[Path]:
    """The jars of a class path file; none if it is missing or one of its jars is."""
    if not file.exists():
        return []
    jars = [Path(jar) for jar in file.read_text().strip().split(":") if jar]
    return jars if all(jar.is_file() for jar in jars) else []


def _resolve(dependencies: list[Coordinates]) -> str:
    """The class path of the dependencies, as `:`-separated absolute paths."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "class-path")
        answer = build_class_path(dependencies, f"-Dmdep.outputFile={out}", to=f"resolve {dependencies[0][1]}")
        if not answer.succeeded:
            raise _explained(dependencies[0], answer)
        return out.read_text()


def _explained(wanted: Coordinates, answer: Answer) -> UsageError | HarnessError:
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
