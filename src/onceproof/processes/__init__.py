"""Processes: what starts, ends, locks and finds those of ours, so that none outlives its owner."""
