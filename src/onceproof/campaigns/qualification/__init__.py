"""Qualification: whether the harness still sees on a release."""
