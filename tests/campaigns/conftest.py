"""Fixtures of the campaigns' tests."""

from tests.pipeline.cardboard import home, lab

__all__ = ["home", "lab"]
