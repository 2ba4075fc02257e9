"""Fixtures of the pipeline's tests."""

import pytest

from onceproof.settings import Settings
from tests.pipeline.cardboard import home, lab

__all__ = ["home", "lab"]


@pytest.fixture
def own_settings(home) -> Settings:
    return Settings()
