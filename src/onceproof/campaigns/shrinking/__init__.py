"""Shrinking: the smallest program or schedule that still shows a failure."""
