"""A scenario and a fault for Onceproof."""
