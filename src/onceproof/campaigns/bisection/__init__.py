"""Bisection: the releases between which a failure came or went."""
