"""Which Kafka releases are published, according to Maven: its mirrors, proxies and credentials are honoured.

Maven has no goal that lists the versions of an artifact. But when asked for a version in a range it fetches the
artifact's metadata, which lists all, into its repository; an empty range keeps it from resolving any.
"""

import xml.etree.ElementTree as ET

from onceproof.installation import Installation
from onceproof.lab.maven import build_class_path, dependency
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.json_file import unwritable
from onceproof.model.release import Release

RANGE = "[9999,)"


def published_releases(installation: Installation, pre_releases: bool = False) -> list[Release]:
    """Every published release of Kafka Streams that the lab can run, in order.

    Args:
        installation: whose Maven is asked; what that fetches is kept.
        pre_releases: also candidates of releases, such as 4.4.0-rc1.

    Raises:
        UsageError: there is no Maven.
        HarnessError: Maven could not reach its registry, and never has.
    """
    repository = installation.artifacts / "releases"  # of its own, so that what was fetched is found again
    try:
        repository.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(error, repository) from error
    asked = [dependency(("org.apache.kafka", "kafka-streams", RANGE))]
    answer = build_class_path(installation.maven, asked, f"-Dmaven.repo.local={repository}", to="list the releases")
    files = sorted(repository.glob("org/apache/kafka/kafka-streams/maven-metadata-*.xml"))
    releases = {release for file in files for release in releases_of(file.read_text())}
    if not releases:
        raise HarnessError(f"Maven did not say which releases exist: {answer.reason}")
    return sorted(release for release in releases if pre_releases or not release.is_candidate)


def releases_of(metadata: str) -> list[Release]:
    """The releases and candidates that Maven's metadata of an artifact lists; what the lab cannot run is left out."""
    releases = []
    for version in ET.fromstring(metadata).iterfind("versioning/versions/version"):  # noqa: S314 - Maven checked it
        try:
            releases.append(Release.parse(version.text or ""))
        except UsageError:  # other pre-releases, and what is older than the lab
            continue
    return sorted(releases)
