"""From what Kafka holds to integers, and what cannot be read as such."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f


def decoded(messages: DataFrame, topics: DataFrame) -> DataFrame:
    """Messages of the run's topics with their keys and values as integers.

    In: messages (topic STRING, partition INT, offset LONG, timestamp TIMESTAMP, key BINARY, value BINARY);
    topics (topic STRING, trial STRING, role STRING).
    Out: trial, role, topic, partition, offset, timestamp, key INT, value INT, fault STRING: what is wrong with
    the message, null where nothing is. Only a changelog may hold a null value: it is a tombstone.
    """
    tombstone = f.col("value").isNull() & f.col("role").endswith("-changelog")
    key_fault = fault_of("key")
    value_fault = f.when(~tombstone, fault_of("value"))
    return messages.join(f.broadcast(topics), "topic").select(
        "trial",
        "role",
        "topic",
        "partition",
        "offset",
        "timestamp",
        integer(f.col("key")).alias("key"),
        integer(f.col("value")).alias("value"),
        f.coalesce(key_fault, value_fault).alias("fault"),
    )


def integer(binary: Column) -> Column:
    """The INT that Java's IntegerSerializer wrote in four bytes; null when there are not four."""
    unsigned = f.conv(f.hex(binary), 16, 10).cast("long")
    signed = f.when(unsigned >= 2**31, unsigned - 2**32).otherwise(unsigned)
    return f.when(f.octet_length(binary) == 4, signed).cast("int")


def fault_of(column: str) -> Column:
    """What is wrong with the key or value; null where it has four bytes."""
    size = f.octet_length(f.col(column))
    return (
        f.when(size.isNull(), f.lit(f"the {column} is missing"))
        .when(size == 1, f.lit(f"the {column} has 1 byte"))
        .when(size != 4, f.format_string(f"the {column} has %d bytes", size))
    )


def first_faults(messages: DataFrame) -> DataFrame:
    """Of each trial that has faulty messages, the first one as a sentence.

    In: what `decoded` gives. Out: trial STRING, error STRING.
    """
    sentence = f.format_string(
        "topic %s partition %d offset %d: %s, a 4-byte integer was expected",
        *map(f.col, ("topic", "partition", "offset", "fault")),
    )
    place = f.struct("topic", "partition", "offset")
    return messages.where(f.col("fault").isNotNull()).groupBy("trial").agg(f.min_by(sentence, place).alias("error"))
