"""The specimens of each check, for both readers: one of them reads the records in Python, the other in Spark."""

from types import ModuleType
from typing import Any

from tests.specimens import (
    as_of_join,
    copy,
    counting,
    dead_letters,
    dedup,
    deleter,
    foreign_key_join,
    global_join,
    grouped_table,
    interactive_queries,
    outbox,
    scans,
    stream_join,
    table_join,
    two_topics,
    values,
    windows,
)

OF_CHECK: dict[str, ModuleType] = {
    "as-of-join": as_of_join,
    "copy": copy,
    "counting": counting,
    "dead-letters": dead_letters,
    "dedup": dedup,
    "deleter": deleter,
    "foreign-key-join": foreign_key_join,
    "interactive-queries": interactive_queries,
    "global-join": global_join,
    "grouped-table": grouped_table,
    "outbox": outbox,
    "scans": scans,
    "stream-join": stream_join,
    "table-join": table_join,
    "two-topics": two_topics,
    "values": values,
    "windows": windows,
}


def counts_of(check: str, specimen: Any) -> dict[str, int]:
    """What a reader counts in the topics of a specimen."""
    inputs, outputs = (
        specimen.topics[role] for role in ("input", "values-changelog" if check == "values" else "output")
    )
    return {"records": len(inputs), "outputs": len(outputs), "keys": len({record[2] for record in inputs}), "ids": 0}


def called(specimen: Any) -> str:
    """The name of a specimen, in a failure."""
    return f"{specimen.kind} {specimen.name}" if hasattr(specimen, "kind") else specimen.name
