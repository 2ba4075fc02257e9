"""The independent reader's judgement: plain Python over records, one module a promise.

Named as in `spark_jobs/sql`, with which it must agree by witness, and shares no code except the language of the
model (an import contract keeps the two apart). `docs/reading-a-verdict.md` names what both are given.
"""
