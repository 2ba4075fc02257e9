"""Sensitivity: planted bugs, and whether both readers find them."""
