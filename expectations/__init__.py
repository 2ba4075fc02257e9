"""The expectations of Great Expectations about the Spark tables: suites as code, checkpoints, the Data Docs."""
