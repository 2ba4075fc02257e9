"""The Spark application: `collect` reads the topics of a run into tables, `check` finds the anomalies in them.

These two only read and write; what is right and wrong is said in `transforms`, pure functions from
DataFrame to DataFrame. The tables are described in `tables`.
"""
