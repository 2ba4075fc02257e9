"""What is kept of a run: its judgement, the results database, the tables people read."""
