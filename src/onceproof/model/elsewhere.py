"""Known failures of Kafka that no scenario shows: where they can be seen instead, or why they cannot."""

import tomllib
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

from onceproof.model.errors import HarnessError

FILE = Path(__file__).with_name("elsewhere.toml")
SEEN = ("app run", "compare", "nowhere yet")


@dataclass(frozen=True)
class Failure:
    """A row: its key and title as in JIRA, releases in words, where it is seen, since which day it was looked for, and
    what was seen or what it would take.
    """

    key: str
    title: str
    affected: str
    seen: str
    since: str
    note: str


def parse_failures(text: str, known: frozenset[str]) -> tuple[Failure, ...]:
    """Read the rows.

    Args:
        text: of the file.
        known: keys of the registry, which no row may have.

    Raises:
        HarnessError: a row has other fields, a key that the registry has, or is seen where nothing is.
    """
    names = {field.name for field in fields(Failure)}
    rows = []
    for entry in tomllib.loads(text)["failure"]:
        if wrong := sorted(entry.keys() ^ names):
            raise HarnessError(f"{FILE.name}: {entry.get('key')} has or lacks the field {wrong[0]!r}.")
        row = Failure(**entry)
        if row.key in known:
            raise HarnessError(f"{FILE.name}: {row.key} is in the registry, too; take it out here.")
        if row.seen not in SEEN:
            raise HarnessError(f"{FILE.name}: {row.key} is seen in {row.seen!r}; write one of {', '.join(SEEN)}.")
        rows.append(row)
    return tuple(rows)


@cache
def failures(known: frozenset[str]) -> tuple[Failure, ...]:
    """The rows of this installation; raises as `parse_failures`."""
    return parse_failures(FILE.read_text(encoding="utf-8"), known)
