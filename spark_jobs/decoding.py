"""Columns of bytes that Kafka holds as integers, and what cannot be read as such."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from onceproof.model.files import WITH_INTEGERS


def decode_messages(messages: DataFrame, topics: DataFrame) -> DataFrame:
    """Messages of the run's topics with their keys and values as integers.

    In: messages (topic STRING, partition INT, offset LONG, timestamp TIMESTAMP, key BINARY, value BINARY,
    headers ARRAY<STRUCT<key STRING, value BINARY>>);
    topics (topic STRING, trial STRING, role STRING, value_bytes INT: how long values are, keys STRING: what keys are,
    form STRING: of the store, if it is a changelog that is compared as bytes).
    Out: trial, role, topic, partition, offset, timestamp, key INT, value LONG, headers STRING, raw STRING: as bytes,
    null where numbers are compared, fault STRING: what is wrong with the message, null where nothing is. Only a
    changelog, in whatever role, may hold a null value: it is a tombstone. Of a store in the forms `keys` and
    `versions` numbers are compared, too; of another one the key begins with an integer.
    """
    only_bytes = f.coalesce(~f.col("form").isin(*WITH_INTEGERS), f.lit(False))
    tombstone = f.col("value").isNull() & f.col("topic").endswith("-changelog")
    value_fault = f.when(~tombstone, fault_of("value", f.col("value_bytes")))
    return messages.join(f.broadcast(topics), "topic").select(
        "trial",
        "role",
        "topic",
        "partition",
        "offset",
        "timestamp",
        integer(f.substring("key", 1, 4)).cast("int").alias("key"),
        f.when(only_bytes, None)
        .when(f.col("value_bytes") == 8, long(f.col("value")))
        .otherwise(integer(f.substring("value", 1, 4)))
        .alias("value"),
        headers_text(f.col("headers")).alias("headers"),
        f.when(f.col("form").isNotNull(), entry()).alias("raw"),
        f.when(only_bytes, entry_fault()).otherwise(f.coalesce(key_fault(), value_fault)).alias("fault"),
    )


def entry() -> Column:
    """The message as bytes: key and value, or the key alone of a tombstone, in hexadecimal digits."""
    return f.concat_ws(",", f.lower(f.hex("key")), f.lower(f.hex("value")))


def entry_fault() -> Column:
    """The error in the key of what is compared as bytes; null if there is none."""
    short = f.octet_length("key").isNull() | (f.octet_length("key") < 4)
    return f.when(short, "the key is no integer with something behind it")


def key_fault() -> Column:
    """The error in the key, whose integer may be followed by the time of the record; null if there is none."""
    windows, sessions = f.col("keys") == "windows", f.col("keys") == "sessions"
    time = f.lpad(f.lower(f.hex(f.unix_millis("timestamp"))), 16, "0")
    # A window's begin and a sequence number; a session's end and begin.
    due = f.when(windows, f.concat(time, f.lit("0" * 8))).when(sessions, f.concat(time, time)).otherwise("")
    suffix = f.when(windows, " with its window").when(sessions, " with its session").otherwise("")
    ends = f.lower(f.substring(f.hex("key"), 9, 2 * (8 + 8)))
    other = f.format_string("the key ends with %s, which is not of the record's time, %s", ends, due)
    return f.coalesce(
        fault_of("key", f.lit(4), (f.length(due) / 2).cast("int"), suffix),
        f.when((windows | sessions) & (ends != due), other),
    )


def headers_text(headers: Column) -> Column:
    """A column of headers as the other reader writes them: `name=hex`, or the name alone."""
    texts = f.transform(
        headers, lambda h: f.concat(h["key"], f.coalesce(f.concat(f.lit("="), f.lower(f.hex(h["value"]))), f.lit("")))
    )
    return f.coalesce(f.array_join(texts, " "), f.lit(""))


def integer(binary: Column) -> Column:
    """The number, as LONG, that Java's IntegerSerializer wrote in four bytes; null when there are not four."""
    return f.when(f.octet_length(binary) == 4, f.shiftright(f.shiftleft(_number(binary), 32), 32))  # with its sign


def long(binary: Column) -> Column:
    """The number, as LONG, that Java's LongSerializer wrote in eight bytes; null when there are not eight."""
    return f.when(f.octet_length(binary) == 8, _number(binary))


def _number(binary: Column) -> Column:
    """The number in up to eight bytes, the eighth with the sign. To be used once: it is computed at each use."""
    return f.conv(f.hex(binary), 16, -10).cast("long")


def fault_of(column: str, bytes_: Column, behind: Column | None = None, suffix: Column | None = None) -> Column:
    """The error in the key or value, and the expected form; null where it has as many bytes.

    There may be so many more `behind` them, which `suffix` names.
    """
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
    sentence = f.concat(found, f.lit(", "), expected, f.lit("") if suffix is None else suffix, f.lit(" was expected"))
    return f.when(size.isNull() | (size != (bytes_ if behind is None else bytes_ + behind)), sentence)


def faults(messages: DataFrame) -> DataFrame:
    """The messages that cannot be decoded.

    In: as `decode_messages` returns them. Out: trial, role, partition, offset, fault STRING: what is wrong.
    """
    places = ("trial", "role", "partition", "offset")
    return messages.where(f.col("fault").isNotNull()).select(*places, "fault").orderBy(*places)
