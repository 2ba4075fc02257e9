"""What tests share: real brokers and a real Spark for those that need them."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from pyspark.sql import SparkSession

from onceproof.lab.cluster import EmbeddedCluster
from onceproof.model.cell import Cell, Trial
from onceproof.model.release import Release
from onceproof.settings import get_settings

# Tests do not assert times, and Hypothesis would by default: an example that takes 200 ms on a busy machine fails.
hypothesis.settings.register_profile("onceproof", deadline=None)
hypothesis.settings.load_profile("onceproof")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """One broker of the default release, for all tests that only need topics."""
    started = EmbeddedCluster.start(Release.parse("3.9.1"), tmp_path_factory.mktemp("cluster"))
    yield started
    started.stop()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    jars = sorted((get_settings().artifacts / "spark-connector").glob("*.jar"))
    session = (
        SparkSession.builder.appName("tests")
        .master("local[2]")  # two threads find what one would hide, and no test needs more
        .config("spark.sql.shuffle.partitions", 4)  # a handful of rows in 200 partitions takes seconds
        .config("spark.ui.enabled", "false")  # no port is opened
        .config("spark.driver.bindAddress", "127.0.0.1")  # the default is the first network interface
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.jars", ",".join(map(str, jars)))  # for those that read from brokers
        .config("spark.log.level", "ERROR")  # a failing test shows its own lines
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    yield session
    session.stop()


def a_trial(
    streams: str,
    variant: str = "DEFAULT_CONFIG",
    seed: int = 1,
    scenario: str = "enumerator",
    restart_on: str | None = None,
    **parameters: object,
) -> Trial:
    """A trial with topics of its own."""
    restart = Release.parse(restart_on) if restart_on else None
    cell = Cell(scenario, variant, Release.parse(streams), Release.parse("3.9.1"), restart)
    named = {name.replace("_", "."): value for name, value in parameters.items()}
    return Trial(f"20260101T000000-{secrets.token_hex(2)}", cell, 1, seed, named)


@pytest.fixture
def project() -> Path:
    """The project's root."""
    return Path(__file__).parents[1]
