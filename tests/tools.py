"""Programs that some tests need, beside what `make` sets up: without one, they fail, unless it is left out by name.

python -m tests.tools           whether those of `make test` are there: exit code 2 if not
python -m tests.tools --night   also those that only `make test-night` needs
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

from onceproof.lab.toxiproxy import MODULE
from onceproof.settings import get_settings
from tests.specimens.postgresql import INITDB

SKIP = "ONCEPROOF_TEST_SKIP"


def chromium() -> str | None:
    """The command of the machine's browser."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


@cache
def has_engine() -> bool:
    """Whether there is a container engine, and Docker's compose plugin."""
    docker = shutil.which("docker") or "docker"
    try:
        commands = ([docker, "compose", "version"], [docker, "info"])
        return all(subprocess.run(c, capture_output=True, timeout=60, check=False).returncode == 0 for c in commands)
    except (OSError, subprocess.TimeoutExpired):
        return False


@dataclass(frozen=True)
class Tool:
    """A program."""

    missing: str  # a sentence
    remedy: str
    is_there: Callable[[], bool]


# By the marker of the tests that need it.
TOOLS = {
    "postgresql": Tool(
        "There is no PostgreSQL in /usr/lib/postgresql", "apt-get install postgresql", lambda: bool(INITDB)
    ),
    "browser": Tool("There is no Chromium on the PATH", "apt-get install chromium", lambda: chromium() is not None),
    "toxiproxy": Tool(
        f"There is no {get_settings().toxiproxy} on the PATH",
        f"go install {MODULE} and rename its `server`",
        lambda: shutil.which(get_settings().toxiproxy) is not None,
    ),
    "docker": Tool(
        "There is no container engine with the compose plugin",
        "have `docker info` and `docker compose version` succeed",
        has_engine,
    ),
}


def left_out() -> set[str]:
    """The tools that the environment says to do without.

    Raises:
        ValueError: there is no such tool.
    """
    names = {name.strip() for name in os.environ.get(SKIP, "").split(",")} - {""}
    if unknown := names - TOOLS.keys():
        raise ValueError(f"{SKIP} names {', '.join(sorted(unknown))}: it may name {', '.join(TOOLS)}.")
    return names


def unavailable(name: str) -> str | None:
    """Why a test that needs this tool cannot run, left out or not; None if it can."""
    tool = TOOLS[name]
    if name in left_out():
        return f"{SKIP} leaves out what needs {name}."
    if not tool.is_there():
        return f"{tool.missing}: {tool.remedy}, or leave out the tests that need it by {SKIP}={name}."
    return None


def missing(needed: Iterable[str]) -> list[str]:
    """A sentence for each tool that is needed, not there and not left out."""
    return [sentence for name in needed if name not in left_out() and (sentence := unavailable(name))]


def main() -> int:
    """Print what is missing."""
    try:
        said = missing(TOOLS if "--night" in sys.argv else TOOLS.keys() - {"docker"})
    except ValueError as error:
        said = [str(error)]
    print(*said, sep="\n", end="\n" if said else "", file=sys.stderr)
    return 2 if said else 0


if __name__ == "__main__":
    sys.exit(main())
