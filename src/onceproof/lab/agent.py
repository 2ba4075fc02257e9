"""The agent that plants bugs (streams_agent): what it can alter in a release."""

import subprocess

from onceproof.installation import Installation
from onceproof.lab.artifacts import streams_class_path
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.plants import Plant
from onceproof.model.release import Release

TIMEOUT = 60  # seconds
LACKING = "!"  # before a method that the release lacks


def alterations(installation: Installation, release: Release, plant: str | None = None) -> dict[str, list[str]]:
    """The methods that each plant (or this one) alters in a release, as `Class.method(Types)`; nothing if the release
    lacks the methods.

    The altered classes are loaded and verified.

    Raises:
        HarnessError: an altered class does not load, or the agent is not built.
    """
    methods_of = _check(installation, release, plant)
    return {
        name: [method for method in methods if not method.startswith(LACKING)] for name, methods in methods_of.items()
    }


def lacking(installation: Installation, release: Release) -> dict[str, list[str]]:
    """The methods that a release lacks of those that plants alter, as `Class.method`, by plant.

    Raises:
        HarnessError: as `alterations`.
    """
    methods_of = _check(installation, release)
    found = {
        name: [method[1:] for method in methods if method.startswith(LACKING)] for name, methods in methods_of.items()
    }
    return {name: methods for name, methods in found.items() if methods}


def _check(installation: Installation, release: Release, plant: str | None = None) -> dict[str, list[str]]:
    """The output of the agent about each plant, or this one.

    Raises:
        HarnessError: an altered class does not load, or the agent is not built.
    """
    if not installation.agent_jar.is_file():
        raise HarnessError(f"{installation.agent_jar} is missing: type `make setup`.")
    jars = [installation.agent_jar, *streams_class_path(installation, release)]
    command = [installation.java, "-XX:TieredStopAtLevel=1", "-cp", ":".join(map(str, jars)), "onceproof.agent.Check"]
    try:
        ended = subprocess.run(
            [*command, *([plant] if plant else [])], capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HarnessError(f"It is not known which methods the agent alters in {release}: {error}.") from error
    if ended.returncode:
        raise HarnessError(f"On {release} the agent failed: {ended.stderr.strip()}")
    lines = [line.split("\t") for line in ended.stdout.splitlines()]
    return {name: altered for name, *altered in lines}


def check_plantable(installation: Installation, plant: Plant, release: Release) -> None:
    """Check, before anything is started, that a bug can be planted into a release.

    Raises:
        UsageError: the release lacks what it alters, or has the bug itself.
    """
    reason = plant.refuse(release)
    if reason is None and not alterations(installation, release, plant.name)[plant.name]:
        reason = f"{plant.name} cannot be planted into {release}: it lacks the methods that the plant alters."
    if reason:
        raise UsageError(reason)
