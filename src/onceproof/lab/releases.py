"""Which Kafka releases are published, according to Maven: its mirrors, proxies and credentials are honoured.

Maven has no goal that lists the versions of an artifact. But when asked for a version in a range it fetches the
artifact's metadata, which lists all, into its repository; an empty range keeps it from resolving any.
"""

import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from filelock import FileLock

from onceproof.installation import Installation
from onceproof.lab.artifacts import STREAMS, read_remembered
from onceproof.lab.maven import build_class_path, dependency
from onceproof.model.errors import HarnessError, OnceproofError, UsageError
from onceproof.model.json_file import read_json, unwritable, write_json
from onceproof.model.published import Published, is_word
from onceproof.model.release import Release

RANGE = "[9999,)"
HOLDS = timedelta(hours=3)  # how long a list of Maven's answers for words
TRIED_AGAIN = timedelta(minutes=10)  # after Maven could not be reached
UNREACHED = "Maven could not be reached"


@dataclass(frozen=True)
class _Kept:
    """The last list that Maven gave, when that was, and when it was last asked."""

    releases: tuple[Release, ...] = ()
    listed: datetime | None = None
    tried: datetime | None = None

    @property
    def listed_at(self) -> str:
        return "" if self.listed is None else f"{self.listed:%Y-%m-%d %H:%M} UTC"

    @classmethod
    def read(cls, repository: Path) -> "_Kept":
        file = _file(repository)
        if not file.exists():
            return cls()
        data = read_json(file)
        listed, tried = (None if data[at] is None else datetime.fromisoformat(data[at]) for at in ("listed", "tried"))
        return cls(tuple(map(Release.parse, data["releases"])), listed, tried)

    def write(self, repository: Path) -> None:
        listed, tried = (None if at is None else at.isoformat(timespec="seconds") for at in (self.listed, self.tried))
        write_json(_file(repository), {"releases": list(map(str, self.releases)), "listed": listed, "tried": tried})


def list_published(installation: Installation, pre_releases: bool = False) -> list[Release]:
    """Every published release of Kafka Streams that the lab can run, in order.

    Args:
        installation: whose Maven is asked; what that fetches is kept.
        pre_releases: also candidates of releases, such as 4.4.0-rc1.

    Raises:
        UsageError: there is no Maven.
        HarnessError: Maven could not reach its registry, and never has.
    """
    releases = _ask(installation).releases
    return sorted(release for release in releases if pre_releases or not release.is_candidate)


def read_published(installation: Installation) -> Published:
    """The published releases, for words such as `newest`: Maven's list of the last hours, or what it says now.

    Where Maven cannot be asked it is the last list that it gave, or else what was resolved here before; the source says
    which.

    Raises:
        UsageError: there is no Maven, and nothing was resolved before.
        HarnessError: Maven could not reach its registry, and nothing was resolved before.
    """
    now, kept = datetime.now(UTC), _Kept.read(_repository(installation))
    if not _within(kept.listed, now, HOLDS) and not _within(kept.tried, now, TRIED_AGAIN):
        try:
            kept = _ask(installation)
        except OnceproofError:
            if (found := read_remembered_releases(installation, UNREACHED)) is None:
                raise
            return found
    if _within(kept.listed, now, HOLDS):
        return Published.of(kept.releases, f"as Maven listed the releases at {kept.listed_at}")
    found = read_remembered_releases(installation, UNREACHED)
    return found or Published.of(_ask(installation).releases, "as Maven listed the releases just now")


def read_remembered_releases(installation: Installation, why: str = "Maven was not asked") -> Published | None:
    """The releases known to be published without asking Maven: its last list, or what was resolved here; None if
    nothing.

    Args:
        installation: whose artifacts are looked at.
        why: nothing newer is known, for the source.
    """
    kept = _Kept.read(_repository(installation))
    if kept.releases:
        return Published.of(kept.releases, f"by what Maven listed at {kept.listed_at}: {why}")
    files = sorted(installation.artifacts.glob(f"{STREAMS}-[0-9]*.classpath"))
    names = [file.stem.removeprefix(f"{STREAMS}-") for file in files if read_remembered(file)]
    releases = [release for name in names for release in _parse(name)]
    return Published.of(releases, f"by what was resolved here before: {why}") if releases else None


def exact(installation: Installation, texts: Iterable[str], say: Callable[[str], object] = print) -> tuple[str, ...]:
    """The texts with the releases that words among them stand for in their place; without doubles.

    Args:
        installation: whose Maven is asked, if there is a word.
        texts: releases, builds, folders, and words.
        say: takes a sentence for each word.

    Raises:
        UsageError: a word means nothing, or there is no Maven.
        HarnessError: Maven could not reach its registry, and nothing was resolved before.
    """
    named = list(dict.fromkeys(texts))
    for word in filter(is_word, named):
        say(f"{read_published(installation).meaning(word)}.")
    return tuple(dict.fromkeys(str(read_published(installation).resolve(t)) if is_word(t) else t for t in named))


def releases_of(metadata: str) -> list[Release]:
    """The releases and candidates that Maven's metadata of an artifact lists; what the lab cannot run is left out."""
    versions = ET.fromstring(metadata).iterfind("versioning/versions/version")  # noqa: S314 - Maven checked it
    return sorted(release for version in versions for release in _parse(version.text or ""))


def _parse(version: str) -> list[Release]:
    try:
        return [Release.parse(version)]
    except UsageError:  # other pre-releases, and what is older than the lab
        return []


def _ask(installation: Installation) -> _Kept:
    """Ask Maven; if it cannot reach its registry, it is the last list that it gave.

    Raises:
        UsageError: there is no Maven.
        HarnessError: Maven could not reach its registry, and never has.
    """
    repository = _repository(installation)
    try:
        repository.mkdir(parents=True, exist_ok=True)
        lock = FileLock(repository / "asked.lock").acquire()
    except OSError as error:
        raise unwritable(error, repository) from error
    with lock:
        before, now = _Kept.read(repository), datetime.now(UTC).replace(microsecond=0)
        metadata = repository.joinpath(*["org", "apache", "kafka"], STREAMS)
        for file in metadata.glob("maven-metadata-*.xml"):
            file.unlink()  # so that one that is there afterwards was fetched now
        asked = [dependency(("org.apache.kafka", STREAMS, RANGE))]
        answer = build_class_path(installation, asked, f"-Dmaven.repo.local={repository}", to="list the releases")
        files = sorted(metadata.glob("maven-metadata-*.xml"))
        releases = sorted({release for file in files for release in releases_of(file.read_text())})
        kept = _Kept(tuple(releases), now, now) if releases else _Kept(before.releases, before.listed, now)
        kept.write(repository)
    if not kept.releases:
        raise HarnessError(f"Maven did not say which releases exist: {answer.reason}")
    return kept


def _repository(installation: Installation) -> Path:
    return installation.artifacts / "releases"  # of its own, so that what was fetched is found again


def _file(repository: Path) -> Path:
    return repository / "published.json"


def _within(at: datetime | None, now: datetime, time: timedelta) -> bool:
    return at is not None and now - time <= at <= now + time
