"""Search of schedules for failures that no known issue explains."""
