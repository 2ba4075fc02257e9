"""Verification of a fix: the scenarios that show an issue, on the builds before and after."""
