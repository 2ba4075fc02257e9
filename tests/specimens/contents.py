"""Tables that lack entries or have too many, and records that nobody can read, planted into each role of each topology.

More `mutations`, of the same form: each says by its own reasoning what must be found.
"""

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from onceproof.model.record import Record
from onceproof.scenarios import table_join
from tests.specimens.mutations import ALL, CHANGELOG, Clean, Mutation, at, behind, records

STRANGER = 9_000_000  # a key that no input has
LONG = (
    "as-of-join",
    "counting",
    "foreign-key-join",
    "global-join",
    "interactive-queries",
    "outbox",
    "scans",
    "stream-join",
    "table-join",
    "two-topics",
    "windows",
)  # checks whose output has values of 8 bytes


def aliases(role: str) -> tuple[str, ...]:
    """The roles in which a record of the role is seen."""
    return (CHANGELOG, ALL) if role == CHANGELOG else (role,)


def change(mutation: Mutation, role: str, old: Record, new: Record) -> Record:
    """Put another record where one is, or elsewhere."""
    for name in aliases(role):
        mutation.put_in_place(name, old, new)
    return new


def take(mutation: Mutation, role: str, *gone: Record) -> None:
    """Take records away."""
    for name in aliases(role):
        mutation.remove(name, *gone)


def append(mutation: Mutation, role: str, like: Record, key: int, value: int | None) -> Record:
    """Put a record after the others, with the timestamp of another one."""
    end = behind(mutation, aliases(role)[-1], like.partition)
    for name in aliases(role):
        added = mutation.add(name, like.partition, end, key, value, like.timestamp)
    return added


def is_table(clean: Clean, role: str) -> bool:
    """Whether only the table that a changelog makes is looked at: that of a cached store."""
    return role.endswith("-changelog") and bool(clean.facts["cached"])


def shown(clean: Clean, role: str) -> Sequence[Record]:
    """The records that are looked at: for a table, the last one of each key."""
    if is_table(clean, role):
        return [of_key[-1] for of_key in clean.by_key[role].values() if of_key]
    return clean.topics[role]


def after_kill(clean: Clean, role: str) -> Sequence[Record]:
    """Those that are looked at and were not in the store when the process was killed, if it was."""
    end = {"seen-changelog": "seen_end", "records-changelog": "changelog_end"}.get(role)
    return [record for record in shown(clean, role) if end is None or record.offset >= clean.facts[end]]


# --- tables, and records that are too few or too many --------------------------------------------------------


def wrong_number(clean: Clean, rng: random.Random, role: str) -> Mutation:
    """A number comes out that was not sent, with what it would rightly find in the store."""
    mutation = Mutation(f"{role}: a wrong value", clean)
    old = rng.choice(clean.topics[role])
    expected = (old.value or 0) >> 32
    new = change(mutation, role, old, old._replace(value=(expected + 1_000_000) << 32 | expected + 999_999))
    mutation.found("wrong-value", old.partition, old.key, [at(role, new)], expected, expected + 1_000_000)
    return mutation


def lacks(mutation: Mutation, role: str, last: Record, expected: int) -> None:
    """A changelog has one record of a key fewer than it should have; of a table, the only one."""
    causes = mutation.clean.by_key["input"][last.key]
    place = causes[-1] if is_table(mutation.clean, role) else causes[0]
    texts = f"{records(expected)} in {role}", records(expected - 1)
    mutation.found("lost-record", place.partition, last.key, [at("input", place)], *texts)


def tombstone(clean: Clean, rng: random.Random, role: str) -> Mutation:
    """A changelog deletes what nothing deleted."""
    mutation = Mutation(f"{role}: a stray tombstone", clean)
    puts = [r for r in (shown if role == "records-changelog" else after_kill)(clean, role) if r.value is not None]
    old = rng.choice(puts)
    new = change(mutation, role, old, old._replace(value=None))
    if is_table(clean, role):
        lacks(mutation, role, old, 1)
    else:
        mutation.found("wrong-value", old.partition, old.key, [at(role, new)], old.value, "nothing")
    if role == "records-changelog":  # before the kill, it is a deletion that was published without its answer
        texts = "both or neither", f"deletion {at(role, new)}"
        asked = clean.by_key["input"][old.key][-1]
        mutation.found("changelog-output-mismatch", asked.partition, old.key, [at("input", asked)], *texts)
    return mutation


def unexpected_entry(clean: Clean, rng: random.Random, role: str) -> Mutation:
    """A topic has a record of a key that is not in the input."""
    mutation = Mutation(f"{role}: an unexpected record", clean)
    like = rng.choice(after_kill(clean, role))
    new = append(mutation, role, like, STRANGER, like.value)
    mutation.found("unexpected-record", new.partition, STRANGER, [at(role, new)], "0 records", "1 record")
    return mutation


def empty_changelog(clean: Clean, _rng: random.Random, role: str) -> Mutation:
    """A changelog was never written."""
    mutation = Mutation(f"{role}: empty", clean)
    take(mutation, role, *clean.topics[role])
    for of_key in clean.by_key[role].values():
        lacks(mutation, role, of_key[-1], 1)
    return mutation


def undecodable(clean: Clean, rng: random.Random, role: str) -> Mutation:
    """A topic has a record that nobody can read: a key or a value that is too short, or none where one must be."""
    mutation = Mutation(f"{role}: a corrupt record", clean)
    like = rng.choice(clean.topics[role])
    padded = "a 4-byte integer padded to 1024 bytes"
    long = "an 8-byte integer"
    size = {("values", CHANGELOG): padded, **{(name, "output"): long for name in LONG}}
    whole, expected = like.key.to_bytes(4, "big"), size.get((clean.check, role), "a 4-byte integer")  # type: ignore[union-attr]
    faults: list[tuple[bytes | None, bytes | None, str]] = [
        (b"seven b", whole, "the key has 7 bytes, a 4-byte integer was expected"),
        (None, whole, "the key is missing, a 4-byte integer was expected"),
        (whole, b"?", f"the value has 1 byte, {expected} was expected"),
    ]
    if not role.endswith("-changelog"):
        faults.append((whole, None, f"the value is missing, {expected} was expected"))
    key, value, fault = rng.choice(faults)
    end = behind(mutation, aliases(role)[-1], like.partition)
    for name in aliases(role):
        place = like._replace(offset=end)
        mutation.litter[name, place] = key, value
        mutation.found("corrupt-record", like.partition, None, [at(name, place)], "integers", fault)
    return mutation


# --- the enumerator's changelogs, which are held against its output ------------------------------------------


def deleted_id(clean: Clean, rng: random.Random) -> Mutation:
    """The changelog of the store ids deletes a key."""
    role = "ids-changelog"
    mutation = Mutation(f"{role}: a stray tombstone", clean)
    old = rng.choice([of_key[-1] for of_key in clean.by_key[role].values() if of_key])
    new = change(mutation, role, old, old._replace(value=None))
    output = clean.by_key["output"][old.key][-1]
    places = [at(role, new), at("output", output)]
    ids = (output.value or 0,)
    mutation.found("changelog-output-mismatch", old.partition, old.key, places, output.value, "nothing", ids)
    return mutation


def unexpected_id(clean: Clean, rng: random.Random) -> Mutation:
    """The changelog of the store ids has a key that never came out."""
    role = "ids-changelog"
    mutation = Mutation(f"{role}: an unexpected record", clean)
    like = rng.choice(clean.topics[role])
    new = append(mutation, role, like, STRANGER, like.value)
    ids = (like.value or 0,)
    mutation.found("changelog-output-mismatch", new.partition, STRANGER, [at(role, new)], "nothing", like.value, ids)
    return mutation


Mutate = Callable[[Clean, random.Random], Mutation]


class MutateRole(Protocol):
    """A mutation of the records of one role."""

    def __call__(self, clean: Clean, rng: random.Random, /, role: str) -> Mutation:
        """The clean trial with it."""


# For each check, the roles with what can be wrong in them besides what `mutations` has.
CONTENTS: dict[str, dict[str, tuple[MutateRole, ...]]] = {
    "as-of-join": {"output": (unexpected_entry,), "versions-changelog": ()},
    "copy": {"output": (unexpected_entry,)},
    "dead-letters": {"output": (), "dead-letters": ()},
    "enumerator": {"output": (), "ids-changelog": (), "counter-changelog": ()},
    "counting": {"output": (wrong_number, unexpected_entry), "last-changelog": (tombstone, empty_changelog)},
    "dedup": {"output": (unexpected_entry,), "seen-changelog": (tombstone,)},
    "deleter": {"output": (), "records-changelog": (tombstone,)},
    "foreign-key-join": {"output": (), "left-changelog": (), "right-changelog": ()},
    "global-join": {"output": (unexpected_entry,)},
    "grouped-table": {"output": (), "table-changelog": (), "sums-changelog": ()},
    "interactive-queries": {"output": (wrong_number, unexpected_entry), "answers": ()},
    "outbox": {"output": (), "buffer-changelog": ()},
    "scans": {"output": (), "records-changelog": ()},
    "stream-join": {"output": ()},
    "table-join": dict.fromkeys(("output", *(f"{store}-changelog" for store in table_join.STORES)), ()),
    "two-topics": {"output": (), "entries": ()},
    "values": {CHANGELOG: (unexpected_entry, tombstone)},
    "windows": {"output": ()},
}


def kinds(check: str) -> list[Mutate]:
    """The mutations that there are for a check."""
    own: list[Mutate] = [
        partial(kind, role=role)
        for role, these in {"input": (), **CONTENTS[check]}.items()
        for kind in (*these, undecodable)
    ]
    return [*own, deleted_id, unexpected_id] if check == "enumerator" else own
