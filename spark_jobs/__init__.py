"""The Spark application: `collect` reads the topics of a run into tables, `check` finds the anomalies in them.

These two only read and write. The statements in `sql` decide what is right and wrong; `questions` asks them, and
`checks` says which promises are checked in which topology. The tables are described in `tables`.
"""
