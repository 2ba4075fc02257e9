"""Fixtures of whole runs."""

from pathlib import Path

import pytest

from onceproof.settings import get_settings


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A separate home that shares what `make setup` resolved."""
    home = tmp_path_factory.mktemp("home")
    (home / "artifacts").symlink_to(get_settings().artifacts)
    return home
