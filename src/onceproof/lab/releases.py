"""Which Kafka releases are published, as Maven sees it: its mirrors, proxies and credentials are honoured.

Maven has no goal that lists the versions of an artifact. But asked for a version out of a range it fetches the
artifact's metadata, which lists all, into its repository; a range in which nothing can be keeps it from resolving any.
"""

import re
import subprocess
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

from onceproof.lab.artifacts import DEPENDENCY_PLUGIN, POM
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.release import Release
from onceproof.model.run_folder import unwritable
from onceproof.settings import get_settings

RANGE = "[9999,)"
TIMEOUT = 300
ASKED = (
    "<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka-streams</artifactId>"
    f"<version>{RANGE}</version></dependency>"
)


def published_releases() -> list[Release]:
    """Every published release of Kafka Streams that the lab can run, in order; no pre-releases.

    Raises:
        UsageError: there is no Maven.
        HarnessError: Maven could not reach its registry, and has not before.
    """
    settings = get_settings()
    repository = settings.artifacts / "releases"  # of its own, so that what was fetched is found again
    with tempfile.TemporaryDirectory() as folder:
        pom = Path(folder, "pom.xml")
        pom.write_text(POM.format(dependencies=ASKED))
        command = [settings.maven, "-q", "-B", "-ntp", "-U", "-f", str(pom), f"-Dmaven.repo.local={repository}"]
        try:
            repository.mkdir(parents=True, exist_ok=True)
            done = subprocess.run(
                [*command, f"{DEPENDENCY_PLUGIN}:build-classpath"],
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
                check=False,
            )
        except FileNotFoundError as error:
            raise UsageError(f"No Maven: {settings.maven!r} is not on the PATH; install Maven 3.8 or later.") from error
        except subprocess.TimeoutExpired as error:
            raise HarnessError(f"Maven did not list the releases within {TIMEOUT} s; try again.") from error
        except OSError as error:
            raise unwritable(error, repository) from error
    files = sorted(repository.glob("org/apache/kafka/kafka-streams/maven-metadata-*.xml"))
    releases = {release for file in files for release in releases_of(file.read_text())}
    if not releases:
        reason = next((line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line), "no reason given")
        raise HarnessError(
            f"Maven does not tell which releases exist: {re.sub(r'https?://[^ ]+', 'the registry', reason)}"
        )
    return sorted(releases)


def releases_of(metadata: str) -> list[Release]:
    """The releases that Maven's metadata of an artifact lists; what the lab cannot run is left out."""
    releases = []
    for version in ET.fromstring(metadata).iterfind("versioning/versions/version"):  # noqa: S314 - Maven checked it
        try:
            releases.append(Release.parse(version.text or ""))
        except UsageError:  # pre-releases, and what is older than the lab
            continue
    return sorted(releases)
