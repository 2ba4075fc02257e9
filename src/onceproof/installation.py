"""The installation that the lab finds on this machine; its starter says so once, and brokers carry it from there."""

from dataclasses import dataclass
from pathlib import Path

INSTALLED = Path(__file__).with_name("_project")  # in a wheel: what is next to the package in a checkout
PROJECT = INSTALLED if INSTALLED.is_dir() else Path(__file__).parents[2]
MAVEN = "mvn"  # where it is missing, our resolver takes its place


@dataclass(frozen=True)
class Installation:
    """The commands that are run, and where things are kept that are made once."""

    java: str
    jvms: Path  # where JDKs lie, each in a folder of its own
    maven: str
    toxiproxy: str
    artifacts: Path  # what was resolved from Maven
    application_jar: Path  # the application under test
    agent_jar: Path  # the Java agent that plants bugs
    resolver_jar: Path  # resolves artifacts where there is no Maven
    prefix: str  # with a dot behind it, of all names on brokers that are not ours
    host: str = "127.0.0.1"  # where brokers listen; by this name others of the deployment reach them
