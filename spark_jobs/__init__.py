"""The Spark application: `collect` reads the topics of a run into tables, `check` finds the anomalies in them.

These two only read and write; `transforms` decides what is right and wrong, in pure functions from DataFrame to
DataFrame. The tables are described in `tables`.
"""
