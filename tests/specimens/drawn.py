"""Trials of every topology that are drawn: specimens to which anything may have happened."""

import random
from collections.abc import Callable
from dataclasses import dataclass
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

OF_CHECK = {
    "as-of-join": as_of_join,
    "copy": copy,
    "counting": counting,
    "dead-letters": dead_letters,
    "dedup": dedup,
    "deleter": deleter,
    "foreign-key-join": foreign_key_join,
    "global-join": global_join,
    "grouped-table": grouped_table,
    "interactive-queries": interactive_queries,
    "outbox": outbox,
    "scans": scans,
    "stream-join": stream_join,
    "table-join": table_join,
    "two-topics": two_topics,
    "values": values,
    "windows": windows,
}
MOST = 3  # things that happen to one of them
Topic = list[tuple[Any, ...]]  # records: partition, offset, key, value, and time, headers, raw if they are known
Happens = Callable[[random.Random, str, Topic], Topic]


def placed(record: tuple[Any, ...], offset: int) -> tuple[Any, ...]:
    """The record at another offset of its partition."""
    return (record[0], offset, *record[2:])


def lost(rng: random.Random, _: str, topic: Topic) -> Topic:
    gone = rng.choice(topic)
    return [record for record in topic if record is not gone]


def cut_short(rng: random.Random, _: str, topic: Topic) -> Topic:
    partition, offset = rng.choice(topic)[:2]
    return [record for record in topic if record[0] != partition or record[1] < offset]


def written_again(rng: random.Random, _: str, topic: Topic) -> Topic:
    again = rng.choice(topic)
    return [*topic, placed(again, max(record[1] for record in topic) + rng.randint(1, 3))]


def swapped(rng: random.Random, _: str, topic: Topic) -> Topic:
    one = rng.choice(topic)
    other = rng.choice([record for record in topic if record[0] == one[0]])
    changed = {one: placed(one, other[1]), other: placed(other, one[1])}
    return [changed.get(record, record) for record in topic]


def of_another_key(rng: random.Random, _: str, topic: Topic) -> Topic:
    old, key = rng.choice(topic), rng.choice(topic)[2]
    return [(*old[:2], key, *old[3:]) if record is old else record for record in topic]


def of_another_value(rng: random.Random, role: str, topic: Topic) -> Topic:
    old = rng.choice(topic)
    values = [rng.choice(topic)[3], (old[3] or 0) + 1, max(0, (old[3] or 0) - 1)]
    value = rng.choice([*values, None] if role.endswith("-changelog") else values)
    return [(*old[:3], value, *old[4:]) if record is old else record for record in topic]


def of_another_time(rng: random.Random, _: str, topic: Topic) -> Topic:
    old = rng.choice(topic)
    if len(old) < 5 or old[4] is None:
        return topic
    time = old[4] + rng.choice([-1_000, -1, 1, 1_000])
    return [(*old[:4], time, *old[5:]) if record is old else record for record in topic]


HAPPENS: tuple[Happens, ...] = (
    lost,
    cut_short,
    written_again,
    swapped,
    of_another_key,
    of_another_value,
    of_another_time,
)


@dataclass(frozen=True)
class Drawn:
    """A specimen, and what became of the topics that the application writes."""

    name: str
    topics: dict[str, Topic]
    facts: dict[str, int]


def drawn(check: str, number: int) -> Drawn:
    """A trial of a topology; the number says which."""
    rng = random.Random(f"{check} {number}")
    specimen = rng.choice(OF_CHECK[check].SPECIMENS)
    topics: dict[str, Topic] = {role: [tuple(record) for record in topic] for role, topic in specimen.topics.items()}
    happened = []
    for happens in rng.choices(HAPPENS, k=rng.randint(0, MOST)):
        written = sorted(role for role, topic in topics.items() if topic and not role.startswith(("input", "entries")))
        if written:
            role = rng.choice(written)
            topics[role] = sorted(happens(rng, role, topics[role]))
            happened.append(f"{happens.__name__} in {role}")
    return Drawn(f"{check}: {specimen.name}; then {', '.join(happened) or 'nothing'}", topics, specimen.facts)
