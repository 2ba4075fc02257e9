"""Builds of Kafka that nobody released, made of published jars, in separate Maven repositories."""

import re
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path

from onceproof.lab.artifacts import STREAMS, broker_class_path, dumper_class_path, streams_class_path
from onceproof.model.release import Release
from tests.conftest import HERE

VERSIONS = "kafka/kafka-streams-version.properties"
CLIENTS = "kafka-clients"
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>org.apache.kafka</groupId><artifactId>{artifact}</artifactId><version>{version}</version>
<dependencies>{dependencies}</dependencies></project>
"""


def place(repository: Path, artifact: str, version: str, extension: str = "jar") -> Path:
    """Where a Maven repository keeps a file."""
    return repository / "org/apache/kafka" / artifact / version / f"{artifact}-{version}.{extension}"


def write_jar(file: Path, entries: Mapping[str, str | bytes]) -> None:
    """A jar with these entries."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(file, "w") as jar:
        for name, content in entries.items():
            jar.writestr(name, content)


def write_build(repository: Path, version: str, commit: str | None, classes: str = "x", needs: str = "") -> None:
    """A build that cannot be run: Kafka Streams and the clients that it needs, with next to nothing in them."""
    named = {} if commit is None else {VERSIONS: f"commitId={commit}\nversion={version}\n"}
    write_jar(place(repository, STREAMS, version), {"A.class": classes, **named})
    write_jar(place(repository, CLIENTS, version), {"B.class": "y"})
    own = f"<groupId>org.apache.kafka</groupId><artifactId>{CLIENTS}</artifactId><version>{version}</version>"
    of_streams = f"<dependency>{own}</dependency>{needs}"
    for artifact, dependencies in ((STREAMS, of_streams), (CLIENTS, "")):
        pom = POM.format(artifact=artifact, version=version, dependencies=dependencies)
        place(repository, artifact, version, "pom").write_text(pom)


def patch(repository: Path, release: str, commit: str, other: str = "", classes: Collection[str] = ()) -> None:
    """A build that can be run: a published release under another commit, some of its classes as `other` has them."""
    jars = {jar.name: jar for jar in streams_class_path(HERE, Release.parse(release))}
    for artifact in (STREAMS, CLIENTS):
        jar = jars[f"{artifact}-{release}.jar"]
        for file in (jar, jar.with_suffix(".pom")):
            target = place(repository, artifact, release, file.suffix[1:])
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.read_bytes())
    with zipfile.ZipFile(jars[f"{STREAMS}-{release}.jar"]) as archive:
        entries = {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
    if other:
        old = next(
            jar for jar in streams_class_path(HERE, Release.parse(other)) if jar.name == f"{STREAMS}-{other}.jar"
        )
        with zipfile.ZipFile(old) as archive:
            brought = [
                name for name in archive.namelist() if re.match(rf"(.*/)?({'|'.join(classes)})(\$.*)?\.class$", name)
            ]
            assert brought, f"{other} has none of {', '.join(classes)}"
            entries |= {name: archive.read(name) for name in brought}
    entries[VERSIONS] = f"commitId={commit}\nversion={release}\n".encode()
    write_jar(place(repository, STREAMS, release), entries)


def patch_brokers(repository: Path, release: str, commit: str, name: str, old: bytes, new: bytes) -> None:
    """A build of brokers, and of what is beside them: those of a release under another commit, one text of a class new.

    The class is in the file format as it was: the new text must be as long as the old one.
    """
    assert len(old) == len(new)
    asked = Release.parse(release)
    jars = {
        jar for of in (broker_class_path, dumper_class_path) for jar in of(HERE, asked) if f"/{release}/" in str(jar)
    }
    patched = 0
    for jar in sorted(jars):
        artifact = jar.parents[1].name
        pom = place(repository, artifact, release, "pom")
        pom.parent.mkdir(parents=True, exist_ok=True)
        pom.write_bytes(jar.with_suffix(".pom").read_bytes())
        with zipfile.ZipFile(jar) as archive:
            entries = {entry: archive.read(entry) for entry in archive.namelist() if not entry.endswith("/")}
        for entry, content in entries.items():
            if re.search(rf"/{name}(\$.*)?\.class$", entry):
                patched += content.count(old)
                entries[entry] = content.replace(old, new)
        if artifact == CLIENTS:
            entries["kafka/kafka-version.properties"] = f"commitId={commit}\nversion={release}\n".encode()
        write_jar(place(repository, artifact, release), entries)
    assert patched, f"no class {name} of {release} has {old!r}"
