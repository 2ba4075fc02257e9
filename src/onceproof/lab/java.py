"""The Java that brokers and instances run on."""

import re
import subprocess
from functools import cache

from onceproof.model.errors import UsageError

# Short-lived JVMs on few cores: starting fast matters more than peak throughput.
FAST_START = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


@cache
def java_version(java: str) -> int:
    """Feature version (17 for 17.0.15) of a `java` command.

    Raises:
        UsageError: there is no such command, or it does not tell its version.
    """
    try:
        shown = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False).stderr
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(
            f"No Java: {java!r} could not be run; install a JDK 17 or later, or set ONCEPROOF_JAVA to one."
        ) from error
    match = re.search(r'version "(?:1\.)?(\d+)', shown)
    if match is None:
        raise UsageError(f"{java!r} did not tell its version; set ONCEPROOF_JAVA to the java of a JDK 17 or later.")
    return int(match[1])


def require_java(java: str, oldest: int, what: str) -> None:
    """Check that the Java is new enough for `what`.

    Raises:
        UsageError: it is missing or too old.
    """
    version = java_version(java)
    if version < oldest:
        raise UsageError(
            f"Java {version} is too old: {what} needs Java {oldest}; install a JDK {oldest} or set ONCEPROOF_JAVA."
        )
