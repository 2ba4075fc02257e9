"""Runs of an application of yours on releases, with and without a fault."""
