"""Fixtures of the pipeline's tests."""

from pathlib import Path

import pytest

from onceproof.settings import Settings
from tests.pipeline.cardboard import home, lab

__all__ = ["home", "lab"]


@pytest.fixture
def own_settings(home: Path) -> Settings:
    return Settings()
