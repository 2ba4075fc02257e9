"""What Great Expectations expects of the Spark tables: suites as code, checkpoints, the Data Docs."""
