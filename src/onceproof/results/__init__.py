"""The kept results of a run: its verdicts, the results database, the tables people read."""
