"""The language of Onceproof: releases, cells, timelines, anomalies, verdicts. Standard library only."""
