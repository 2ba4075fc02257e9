"""Known failures of Kafka that no scenario shows: where they can be seen instead, or why they cannot."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from onceproof.model.decoding import read_tables
from onceproof.model.errors import HarnessError

FILE = Path(__file__).with_name("elsewhere.toml")


@dataclass(frozen=True)
class Failure:
    """A row: its key and title as in JIRA, releases in words, where it is seen, since which day it was looked for, and
    what was seen or what it would take.
    """

    key: str
    title: str
    affected: str
    seen: Literal["app run", "release compare", "nowhere yet"]
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
    [rows] = read_tables(text, FILE.name, failure=Failure).values()
    if twice := next((row.key for row in rows if row.key in known), None):
        raise HarnessError(f"{FILE.name}: {twice} is in the registry, too; take it out here.")
    return rows


@cache
def failures(known: frozenset[str]) -> tuple[Failure, ...]:
    """The rows of this installation; raises as `parse_failures`."""
    return parse_failures(FILE.read_text(encoding="utf-8"), known)
