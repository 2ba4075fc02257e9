"""What tests share: real brokers for those that need them."""

import secrets
from pathlib import Path

import pytest

from onceproof.lab.cluster import EmbeddedCluster
from onceproof.model.cell import Cell, Trial
from onceproof.model.release import Release


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """One broker of the default release, for all tests that only need topics."""
    started = EmbeddedCluster.start(Release.parse("3.9.1"), tmp_path_factory.mktemp("cluster"))
    yield started
    started.stop()


def a_trial(streams: str, variant: str = "DEFAULT_CONFIG", seed: int = 1) -> Trial:
    """A trial with topics of its own."""
    cell = Cell("enumerator", variant, Release.parse(streams), Release.parse("3.9.1"))
    return Trial(f"20260101T000000-{secrets.token_hex(2)}", cell, 1, seed)


@pytest.fixture
def project() -> Path:
    """The project's root."""
    return Path(__file__).parents[1]
