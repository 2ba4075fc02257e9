"""Planted anomalies and their look-alikes as plain data, for every reader of the topics."""
