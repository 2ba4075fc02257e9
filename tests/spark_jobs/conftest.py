"""One Spark session for all tests that need one, and specimens as frames."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from onceproof.settings import get_settings


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    jars = sorted((get_settings().artifacts / "spark-connector").glob("*.jar"))
    session = (
        SparkSession.builder.appName("tests")
        .master("local[2]")  # two threads find what one would hide, and no test needs more
        .config("spark.sql.shuffle.partitions", 4)  # a handful of rows in 200 partitions takes seconds
        .config("spark.ui.enabled", "false")  # no port is opened
        .config("spark.driver.bindAddress", "127.0.0.1")  # the default is the first network interface
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.jars", ",".join(map(str, jars)))  # for those that read from brokers
        .config("spark.log.level", "ERROR")  # a failing test shows its own lines
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    yield session
    session.stop()
