"""Is it safe to go from one release to another? The answer from the registry and from what was measured."""
