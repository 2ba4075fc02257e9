"""From what Kafka holds to integers, and what cannot be read as such."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f


def decoded(messages: DataFrame, topics: DataFrame) -> DataFrame:
    """Messages of the run's topics with their keys and values as integers.

    In: messages (topic STRING, partition INT, offset LONG, timestamp TIMESTAMP, key BINARY, value BINARY,
    headers ARRAY<STRUCT<key STRING, value BINARY>>);
    topics (topic STRING, trial STRING, role STRING, value_bytes INT: how long values are).
    Out: trial, role, topic, partition, offset, timestamp, key INT, value LONG, headers STRING, fault STRING: what is
    wrong with the message, null where nothing is. Only a changelog, in whatever role, may hold a null value: it is a
    tombstone.
    """
    tombstone = f.col("value").isNull() & f.col("topic").endswith("-changelog")
    key_fault = fault_of("key", f.lit(4))
    value_fault = f.when(~tombstone, fault_of("value", f.col("value_bytes")))
    return messages.join(f.broadcast(topics), "topic").select(
        "trial",
        "role",
        "topic",
        "partition",
        "offset",
        "timestamp",
        integer(f.col("key")).cast("int").alias("key"),
        f.when(f.col("value_bytes") == 8, long(f.col("value")))
        .otherwise(integer(f.substring("value", 1, 4)))
        .alias("value"),
        headers_text(f.col("headers")).alias("headers"),
        f.coalesce(key_fault, value_fault).alias("fault"),
    )


def headers_text(headers: Column) -> Column:
    """Headers as `name=hex`, one after the other; of one without a value, its name."""
    told = f.transform(
        headers, lambda h: f.concat(h["key"], f.coalesce(f.concat(f.lit("="), f.lower(f.hex(h["value"]))), f.lit("")))
    )
    return f.coalesce(f.array_join(told, " "), f.lit(""))


def integer(binary: Column) -> Column:
    """The number, as LONG, that Java's IntegerSerializer wrote in four bytes; null when there are not four."""
    return f.when(f.octet_length(binary) == 4, f.shiftright(f.shiftleft(_number(binary), 32), 32))  # with its sign


def long(binary: Column) -> Column:
    """The number, as LONG, that Java's LongSerializer wrote in eight bytes; null when there are not eight."""
    return f.when(f.octet_length(binary) == 8, _number(binary))


def _number(binary: Column) -> Column:
    """The number in up to eight bytes, the eighth with the sign. Named once by who uses it: each time, it is made."""
    return f.conv(f.hex(binary), 16, -10).cast("long")


def fault_of(column: str, bytes_: Column) -> Column:
    """What is wrong with the key or value, and what was expected; null where it has as many bytes."""
    size = f.octet_length(f.col(column))
    expected = (
        f.when(bytes_ == 4, f.lit("a 4-byte integer"))
        .when(bytes_ == 8, f.lit("an 8-byte integer"))
        .otherwise(f.format_string("a 4-byte integer padded to %d bytes", bytes_))
    )
    found = (
        f.when(size.isNull(), f.lit(f"the {column} is missing"))
        .when(size == 1, f.lit(f"the {column} has 1 byte"))
        .otherwise(f.format_string(f"the {column} has %d bytes", size))
    )
    return f.when(size.isNull() | (size != bytes_), f.concat(found, f.lit(", "), expected, f.lit(" was expected")))


def faults(messages: DataFrame) -> DataFrame:
    """The messages that cannot be decoded.

    In: what `decoded` gives. Out: trial, role, partition, offset, fault STRING: what is wrong.
    """
    places = ("trial", "role", "partition", "offset")
    return messages.where(f.col("fault").isNotNull()).select(*places, "fault").orderBy(*places)
