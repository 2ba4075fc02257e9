"""Unreleased builds of Kafka: taken from Maven repositories, and kept by version and commit.

Kafka's own jars are copied, since the next build overwrites them; Maven resolves what else they need, as for a release.
The commit is the one that the jars name, so it is the one that really loads.
"""

import hashlib
import http.client
import io
import re
import urllib.error
import urllib.request
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import unquote, urlsplit

from filelock import FileLock

from onceproof.installation import Installation
from onceproof.lab.artifacts import (
    BROKER,
    GROUP,
    LOGGING,
    STREAMS,
    class_path_file,
    dumper_of,
    read_remembered,
    resolve,
)
from onceproof.model.errors import UsageError
from onceproof.model.json_file import replacing
from onceproof.model.release import Release

LOCAL = Path.home() / ".m2" / "repository"
ANSWERED_WITHIN = 60.0  # seconds
LARGEST = 256 << 20  # bytes of a file; the largest jar of Kafka has 10 MB
ARTIFACT = re.compile(r"[A-Za-z0-9_\-]+(?:\.[A-Za-z0-9_\-]+)*")
UNPUBLISHED = "-SNAPSHOT"
PLACE = re.compile(r"\.{0,2}/|(?:file|https?):")  # how a folder or a URL begins, and no version does
# The jar of each artifact that names its commit, and where.
NAMED_IN = {
    STREAMS: (STREAMS, "kafka/kafka-streams-version.properties"),
    BROKER: ("kafka-clients", "kafka/kafka-version.properties"),
}


def name_release(
    installation: Installation, text: str, repositories: Sequence[str] = (), artifact: str = STREAMS
) -> str:
    """The name of what a text asks for: a release stays as it is, a build is taken in.

    Args:
        installation: keeps what is taken in.
        text: a version, which is a build if one of the repositories has it or if it is a snapshot, then out of the
            local Maven repository; or the folder of a Maven repository that has one version.
        repositories: Maven repositories, as URLs or folders.
        artifact: what will be run, STREAMS or BROKER.

    Raises:
        UsageError: there is no such repository, it does not answer or has no such version, a part of it is missing, or
            its jars name no commit, or one that other jars have.
        HarnessError: Maven failed, or the artifacts cannot be written.
    """
    if PLACE.match(text) or Path(text).is_dir():
        repository = MavenRepository.of(text)
        return str(_take_in(installation, repository, repository.only_version(artifact), artifact))
    for repository in map(MavenRepository.of, repositories):
        if repository.has(artifact, text):
            return str(_take_in(installation, repository, text, artifact))
    if not text.endswith(UNPUBLISHED):
        return text
    local = None if repositories or not LOCAL.is_dir() else MavenRepository.of(str(LOCAL))
    if local is None or not local.has(artifact, text):
        where = " or ".join(repositories) or "the local Maven repository"
        raise UsageError(
            f"{where} has no {artifact} {text}: `./gradlew publishToMavenLocal` in Kafka's sources puts it into the "
            "local one; --maven-repo names another one."
        )
    return str(_take_in(installation, local, text, artifact))


@dataclass(frozen=True)
class MavenRepository:
    """A Maven repository at a URL."""

    url: str

    @classmethod
    def of(cls, text: str) -> "MavenRepository":
        """The repository at a URL or in a folder.

        Raises:
            UsageError: it is neither.
        """
        parts = urlsplit(text)
        if parts.scheme in ("http", "https") and parts.hostname:
            if parts.username is not None:
                raise UsageError(
                    f"The Maven repository at {parts.hostname} is named with a user, which would be seen by all: copy "
                    "what is needed into a folder (mvn dependency:get), and name that."
                )
            if parts.scheme == "http" and not _is_loopback(parts.hostname):
                raise UsageError(
                    f"The Maven repository {text} is asked by http:, so anybody on the way could change what is run: "
                    "name it by https:, or copy what is needed into a folder (mvn dependency:get), and name that."
                )
            return cls(text.rstrip("/"))
        folder = Path(unquote(parts.path) if parts.scheme == "file" else text)
        if not folder.is_dir():
            raise UsageError(f"{text} is neither a folder nor the URL (file:, http:, https:) of a Maven repository.")
        return cls(folder.resolve().as_uri())

    @property
    def folder(self) -> Path:
        """Where a local one lies."""
        return Path(unquote(urlsplit(self.url).path))

    def only_version(self, artifact: str) -> str:
        """The version of an artifact in a local repository that has one.

        Raises:
            UsageError: it has none or several, or is not local.
        """
        if not self.url.startswith("file:"):
            raise UsageError(f"{self.url} is not a folder: name a version, and --maven-repo {self.url}.")
        path = f"{GROUP.replace('.', '/')}/{artifact}"
        versions = sorted(pom.parent.name for pom in (self.folder / path).glob("*/*.pom"))
        if not versions:
            raise UsageError(
                f"{self.folder} holds no {artifact}: `./gradlew publishToMavenLocal -Dmaven.repo.local={self.folder}` "
                f"in Kafka's sources puts it into {path}/VERSION."
            )
        if len(set(versions)) > 1:
            raise UsageError(
                f"{self.folder} holds {artifact} {', '.join(versions)}: name one of them, and --maven-repo "
                f"{self.folder}."
            )
        return versions[0]

    def has(self, artifact: str, version: str) -> bool:
        """Whether it has a version of an artifact.

        Raises:
            UsageError: it does not answer.
        """
        return self._read(self._place(artifact, version, "pom")) is not None

    def fetch(self, artifact: str, version: str, extension: str) -> bytes:
        """A file of an artifact, which has the checksum next to it, if there is one.

        Raises:
            UsageError: it has none, or one of another checksum, or does not answer.
        """
        place = self._place(artifact, version, extension)
        content = self._read(place)
        if content is None:
            raise UsageError(
                f"{self.url} lacks the {extension} of {artifact} {version}: publish all parts of the build "
                "(./gradlew publishToMavenLocal)."
            )
        stated = (self._read(f"{place}.sha1") or b"").decode(errors="replace").split()
        if stated and stated[0].lower() != hashlib.sha1(content, usedforsecurity=False).hexdigest():
            raise UsageError(
                f"The {extension} of {artifact} {version} in {self.url} has not the checksum next to it: "
                "publish the build again."
            )
        return content

    def _place(self, artifact: str, version: str, extension: str) -> str:
        """The path of a file; a snapshot that was uploaded has its time in its name."""
        folder = f"{GROUP.replace('.', '/')}/{artifact}/{version}"
        metadata = self._read(f"{folder}/maven-metadata.xml") if version.endswith(UNPUBLISHED) else None
        uploaded = _parse(metadata).iterfind("versioning/snapshotVersions/snapshotVersion") if metadata else ()
        named = (
            snapshot.findtext("value")
            for snapshot in uploaded
            if snapshot.findtext("extension") == extension and not snapshot.findtext("classifier")
        )
        return f"{folder}/{artifact}-{next(named, version)}.{extension}"

    def _read(self, path: str) -> bytes | None:
        """The content of a file; None if there is none.

        Raises:
            UsageError: the repository does not answer.
        """
        try:
            # The scheme is one of three: see `of`.
            with urllib.request.urlopen(f"{self.url}/{path}", timeout=ANSWERED_WITHIN) as answer:  # noqa: S310
                if answer.url.startswith("http:") and not self.url.startswith("http:"):
                    raise self._silent("it sends us on to http:")
                content: bytes = answer.read(LARGEST + 1)
                if len(content) > LARGEST:
                    raise self._silent(f"{path} is larger than {LARGEST >> 20} MiB")
                return content
        except urllib.error.HTTPError as error:
            if error.code == http.client.NOT_FOUND:
                return None
            raise self._silent(f"{error.code} {error.reason}") from error
        except urllib.error.URLError as error:
            if isinstance(error.reason, FileNotFoundError):
                return None
            raise self._silent(str(error.reason)) from error
        except (OSError, http.client.HTTPException) as error:
            raise self._silent(str(error) or type(error).__name__) from error

    def _silent(self, reason: str) -> UsageError:
        return UsageError(
            f"The Maven repository {self.url} does not answer ({reason}): try again, or name another one."
        )


def _is_loopback(host: str) -> bool:
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"


@dataclass
class _Parts:
    """The parts of a build: Kafka's own jars by artifact, and what else they need, according to poms."""

    jars: dict[str, bytes] = field(default_factory=dict)
    needs: dict[tuple[str | None, ...], str] = field(default_factory=dict)

    def add(self, repository: MavenRepository, artifact: str, version: str) -> None:
        """Add an artifact and all of Kafka that it needs."""
        if artifact in self.jars:
            return
        if not ARTIFACT.fullmatch(artifact):  # it becomes the name of a file
            raise UsageError(f"{repository.url} names an artifact {artifact!r}, which is no name of one.")
        self.jars[artifact] = repository.fetch(artifact, version, "jar")
        for needed in _runtime_dependencies(repository.fetch(artifact, version, "pom")):
            group, name, wanted = (needed.findtext(tag) for tag in ("groupId", "artifactId", "version"))
            if name is not None and (group, wanted) == (GROUP, version):
                self.add(repository, name, version)
            elif name != LOGGING[1]:  # ours is as close, and one must give way
                self.needs.setdefault((group, name, needed.findtext("classifier")), ET.tostring(needed, "unicode"))


def _take_in(installation: Installation, repository: MavenRepository, version: str, artifact: str) -> Release:
    """Copy a build and remember its class path, unless it is kept already."""
    parts = _Parts()
    parts.add(repository, artifact, version)
    jar, file = NAMED_IN[artifact]
    release = Release.parse(f"{version}@{_commit(f'{jar}-{version}.jar', parts.jars[jar], file)[:7]}")
    roots = {artifact, dumper_of(release)} if artifact == BROKER else {artifact}
    for root in roots:
        parts.add(repository, root, version)
    home = installation.artifacts / "builds" / str(release)
    home.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{home}.lock"):
        kept = {name: home / f"{name}-{version}.jar" for name in parts.jars}
        for name, content in parts.jars.items():
            if not kept[name].exists():
                with replacing(kept[name]) as draft:
                    draft.write_bytes(content)
            elif _classes(kept[name].read_bytes()) != _classes(content):
                raise UsageError(
                    f"{name} of {repository.url} names the commit of {release}, which is kept with other classes: "
                    f"commit what you changed and build again, or delete {home}."
                )
        for root in roots:
            if not read_remembered(class_path_file(installation, root, release)):
                others = resolve(installation, (GROUP, root, version), parts.needs.values()).strip()
                class_path_file(installation, root, release).write_text(":".join([*map(str, kept.values()), others]))
    return release


def _commit(name: str, jar: bytes, file: str) -> str:
    """The commit that a jar names.

    Raises:
        UsageError: it names none.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(jar)) as archive:
            named = re.search(r"^commitId\s*=\s*([0-9a-f]{7,})\s*$", archive.read(file).decode(), re.MULTILINE)
    except (KeyError, zipfile.BadZipFile, UnicodeDecodeError):
        named = None
    if named is None:
        raise UsageError(
            f"{name} names no commit in {file}, so it could be any build: build it in a checkout of Kafka's repository."
        )
    return named[1]


def _classes(jar: bytes) -> Mapping[str, int]:
    """The content of a jar, by checksum, without what each packaging changes."""
    with zipfile.ZipFile(io.BytesIO(jar)) as archive:
        return {entry.filename: entry.CRC for entry in archive.infolist() if not entry.filename.startswith("META-INF/")}


def _runtime_dependencies(pom: bytes) -> Iterator[ET.Element]:
    for needed in _parse(pom).iterfind("dependencies/dependency"):
        if needed.findtext("scope", "compile") in ("compile", "runtime") and needed.findtext("optional") != "true":
            yield needed


def _parse(content: bytes) -> ET.Element:
    """A pom or metadata, without namespaces.

    Raises:
        UsageError: it is not XML.
    """
    try:
        root = ET.fromstring(content)  # noqa: S314 - entities do not expand in Python's parser beyond its limits
    except ET.ParseError as error:
        raise UsageError(
            f"The Maven repository holds a pom that is no XML ({error}): publish the build again."
        ) from error
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    return root
