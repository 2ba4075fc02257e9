"""Anomalies planted into the records of a clean trial, and exactly what must be found there.

Each mutation changes a handful of records at random places, and derives the resulting witnesses by reasoning about
the records that it touched. Nothing here is shared with the two readers, whose soundness it shows.
"""

import itertools
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from onceproof.model.anomaly import Witness
from onceproof.model.place import Place
from onceproof.model.record import Record

COUNTER_KEY = 0
FALSE, TRUE, DELETE = 0, 1, 0  # values of the output and of the input of `deleter`
VERSIONS = "versions-changelog"
WINDOW_BITS = 22  # of the sum in the output of `windows`
FIRST_TOTAL = 1_000_000  # the key of the first total in the output of `table-join`
ANSWERING = ("deleter", "scans")  # whose output answers requests to delete


@dataclass(frozen=True)
class Clean:
    """A trial in which nothing is wrong: its name, its check, its facts, and its records by role, by place."""

    name: str
    check: str
    facts: Mapping[str, int]
    topics: Mapping[str, Sequence[Record]]

    @cached_property
    def by_key(self) -> dict[str, dict[int | None, list[Record]]]:
        """The records of each role, by key."""
        found: dict[str, dict[int | None, list[Record]]] = {}
        for role, records in self.topics.items():
            found[role] = defaultdict(list)
            for record in records:
                found[role][record[2]].append(record)
        return found

    @cached_property
    def by_partition(self) -> dict[str, dict[int, list[Record]]]:
        """The records of each role, by partition."""
        found: dict[str, dict[int, list[Record]]] = {}
        for role, records in self.topics.items():
            found[role] = defaultdict(list)
            for record in records:
                found[role][record[0]].append(record)
        return found

    @cached_property
    def caused(self) -> dict[str, list[tuple[Record, Record]]]:
        """The records of each role, with those of the input that made the trial write them."""
        of_keys: dict[int | None, list[Record]] = defaultdict(list)
        new_keys: dict[int, list[Record]] = defaultdict(list)  # by partition
        for record in self.topics["input"]:
            if not of_keys[record.key]:
                new_keys[record.partition].append(record)
            of_keys[record.key].append(record)
        return {role: list(self._caused(role, of_keys, new_keys)) for role in self.topics}

    def result_of(self, key: int | None) -> tuple[Record, Record | None]:
        """For a key of the left table of `foreign-key-join`: its last record, and the right one that it asks for."""
        left = self.by_key["input"][key or 0][-1]
        right = self.by_key["input"].get(left.value - 1) if left.value else None
        return left, right[-1] if right else None

    def versions_of(self, key: int | None) -> list[Record]:
        """The records of the input of `as-of-join` that change a key of its table."""
        return [cause for cause in self.by_key["input"][key or 0] if (cause.value or 0) <= 0]

    def closed_by(self, result: Record) -> Record:
        """The record of the input by which a tumbling window of `windows` closed."""
        end = ((result.value or 0) >> WINDOW_BITS) + self.facts["size"] + self.facts["grace"]
        return next(record for record in self.by_partition["input"][result.partition] if record.timestamp >= end)

    def window_of(self, result: Record) -> tuple[str, list[Record]]:
        """The window that a result of `windows` is of, in the words of witnesses, and the records that count in it."""
        start, size = (result.value or 0) >> WINDOW_BITS, self.facts["size"]
        closed = self.closed_by(result).offset
        came = self.by_key["input"][result.key or 0]
        inside = [r for r in came if start <= r.timestamp < start + size and r.offset < closed]
        return f"the window from {start} to {start + size}", inside

    def last_of(self, key: int) -> Record:
        """For a key of the output of `table-join`, or one of its totals: the last record of the input."""
        own = self.by_key["input"].get(key) or [
            r for r in self.topics["input"] if (r.key or 0) % 10 == key - FIRST_TOTAL
        ]
        return own[-1]

    def _caused(
        self, role: str, of_keys: Mapping[int | None, list[Record]], new_keys: Mapping[int, list[Record]]
    ) -> Iterator[tuple[Record, Record]]:
        seen: Counter[int | None] = Counter()
        for record in self.topics[role]:
            if role == "counter-changelog":
                cause = new_keys[record.partition][record.value or 0]
            elif role == "last-changelog":
                cause = of_keys[record.key][(record.value or 0) - 1]
            elif self.check in ANSWERING and role == "output":  # only the deletion, which comes last, is answered
                cause = of_keys[record.key][-1]
            elif (self.check, role) == ("foreign-key-join", "output"):
                cause = max(filter(None, self.result_of(record.key)), key=lambda changed: changed.offset)
            elif role == VERSIONS:
                cause = self.versions_of(record.key)[seen[record.key]]
            elif (self.check, role) == ("table-join", "output"):
                cause = self.last_of(record.key or 0)
            elif self.check == "grouped-table" and role in ("output", "sums-changelog"):
                of_group = [cause for cause in self.topics["input"] if (cause.key or 0) % 100 == record.key]
                cause = of_group[seen[record.key]]
            elif (self.check, role) == ("windows", "output"):
                cause = self.closed_by(record)
            elif (self.check, role) == ("two-topics", "output"):
                cause = next(cause for cause in of_keys[record.key] if cause.value == (record.value or 0) >> 32)
            elif (self.check, role) == ("stream-join", "output"):
                numbers = divmod(record.value or 0, 2**32)
                cause = max(cause for cause in of_keys[record.key] if abs(cause.value or 0) in numbers)
            else:
                cause = of_keys[record.key][min(seen[record.key], len(of_keys[record.key]) - 1)]
            seen[record.key] += 1
            yield record, cause


@dataclass
class Mutation:
    """What was changed in a clean trial, and what must be found: these witnesses and no others."""

    kind: str
    clean: Clean
    removed: dict[str, list[Record]] = field(default_factory=lambda: defaultdict(list))
    added: dict[str, list[Record]] = field(default_factory=lambda: defaultdict(list))
    witnesses: list[Witness] = field(default_factory=list)
    # Key and value of records that cannot be decoded, by their role and a record that stands for their place.
    litter: dict[tuple[str, Record], tuple[bytes | None, bytes | None]] = field(default_factory=dict)
    # Entries of stores at the end, by store, partition and role (active or standby); None: the key is not there.
    held: dict[tuple[str, int, str], Mapping[int, int | None]] = field(default_factory=dict)
    # Of the timeline: fields of events, by their names, and additional events.
    changed: dict[str, dict[str, Any]] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def topics(self) -> dict[str, list[Record]]:
        """The records by role, with the change."""
        roles = {*self.clean.topics, *self.added}
        return {role: self._changed(role, self.clean.topics.get(role, ())) for role in roles}

    def partition(self, role: str, partition: int) -> list[Record]:
        """The records of one partition, with the change."""
        return self._changed(role, self.clean.by_partition[role][partition], partition)

    def written(self, role: str, partition: int) -> list[Record]:
        """The records of one partition, with what stands for those that cannot be decoded."""
        litter = [record for name, record in self.litter if (name, record.partition) == (role, partition)]
        return sorted([*self.partition(role, partition), *litter], key=lambda record: record.offset)

    def _changed(self, role: str, records: Sequence[Record], partition: int | None = None) -> list[Record]:
        added = [record for record in self.added[role] if partition in (None, record[0])]
        if not added and not self.removed[role]:
            return list(records)
        gone = set(self.removed[role])
        return sorted([*(record for record in records if record not in gone), *added])

    def replace(self, role: str, old: Record, value: int | None) -> Record:
        """Give a record another value."""
        return self.put_in_place(role, old, old._replace(value=value))

    def put_in_place(self, role: str, old: Record, new: Record) -> Record:
        """Put another record where one is."""
        self.removed[role].append(old)
        self.added[role].append(new)
        return new

    def remove(self, role: str, *records: Record) -> None:
        """Take records away."""
        self.removed[role] += records

    def add(self, role: str, partition: int, offset: int, key: int | None, value: int | None, *rest: Any) -> Record:
        """Put a record at a place where none is."""
        record = Record(partition, offset, key, value, *rest)
        self.added[role].append(record)
        return record

    def found(
        self,
        anomaly: str,
        partition: int,
        key: int | None,
        places: Sequence[str],
        expected: object,
        observed: object,
        ids: tuple[int, ...] = (),
    ) -> None:
        """One more witness that must be found."""
        self.witnesses.append(Witness(anomaly, partition, key, ids, tuple(places), str(expected), str(observed)))


def at(role: str, record: Record) -> str:
    """The place of a record."""
    return str(Place(role, record[0], record[1]))


def records(count: int) -> str:
    """A number of records, in the words of witnesses."""
    return "1 record" if count == 1 else f"{count} records"


def behind(mutation: Mutation, role: str, partition: int) -> int:
    """An offset after the last record of a partition, and after the marker of its transaction."""
    return max((r[1] for r in mutation.partition(role, partition)), default=-2) + 2


def a_gap(mutation: Mutation, rng: random.Random, role: str, partition: int) -> int:
    """An offset at which the log holds no committed record: that of a marker, or of an aborted record, or the end."""
    offsets = [r[1] for r in mutation.partition(role, partition)]
    gaps = [before + 1 for before, after in itertools.pairwise(offsets) if after > before + 1]
    return rng.choice([*gaps, offsets[-1] + 2])


def lost(mutation: Mutation, key: int | None, *, once: bool = False) -> None:
    """A key has fewer records in the output than it should."""
    went_in = sorted(mutation.clean.by_key["input"][key])
    left = len(mutation.clean.by_key[out(mutation.clean)][key]) - 1
    expected = 1 if once else len(went_in)
    mutation.found("lost-record", went_in[0][0], key, [at("input", went_in[0])], records(expected), records(left))


def surplus(mutation: Mutation, key: int | None, *, once: bool = False) -> None:
    """A key has more records in the output than it should; one was added."""
    role = out(mutation.clean)
    came_out = sorted([*mutation.clean.by_key[role][key], *mutation.added[role]])
    expected = 1 if once else len(mutation.clean.by_key["input"][key])
    mutation.found(
        "duplicate-output", came_out[-1][0], key, [at(role, came_out[-1])], records(expected), records(len(came_out))
    )


def out(clean: Clean) -> str:
    """The role in which records come out."""
    return "values-changelog" if clean.check == "values" else "output"


# --- enumerator ----------------------------------------------------------------------------------------------


def an_id(clean: Clean, key: int) -> int:
    """The ID of a key."""
    identity = clean.by_key["output"][key][0][3]
    assert identity is not None
    return identity


def two_keys(clean: Clean, rng: random.Random) -> tuple[int, int]:
    """Two keys of the output."""
    first, second = rng.sample(sorted(filter(None, clean.by_key["output"])), 2)
    return first, second


def a_fresh_id(clean: Clean, partition: int) -> int:
    """An ID that nobody has, and that belongs to the partition."""
    partitions = clean.facts["partitions"]
    return (len(clean.by_key["output"]) + 1_000) * partitions + partition


def give(mutation: Mutation, key: int, identity: int, *, stored: bool) -> list[Record]:
    """Give all output records of a key another ID; `stored`: the changelog of the store says the same."""
    given = [mutation.replace("output", old, identity) for old in mutation.clean.by_key["output"][key]]
    if stored:
        for old in mutation.clean.by_key["ids-changelog"][key]:
            mutation.replace("ids-changelog", old, identity)
    else:
        store_differs(mutation, key, identity, given[-1])
    return given


def store_differs(mutation: Mutation, key: int, shown: int, place: Record) -> None:
    """The changelog of the store ids holds the key's old ID, and the output shows another at the place."""
    kept = mutation.clean.by_key["ids-changelog"][key][-1]
    places = [at("ids-changelog", kept), at("output", place)]
    mutation.found("changelog-output-mismatch", kept[0], key, places, shown, kept[3], ids=(kept[3] or 0, shown))


def counters_differ(mutation: Mutation, *partitions: int) -> None:
    """Where a partition's counter did not end with what its IDs imply, that must be found, too."""
    number = mutation.clean.facts["partitions"]
    for p in sorted(set(partitions)):
        shown = mutation.partition("output", p)
        kept = mutation.partition("counter-changelog", p)[-1]
        implied = max((r[3] or 0) - p for r in shown) // number
        if implied != kept[3]:
            places = [at("counter-changelog", kept), at("output", shown[-1])]
            mutation.found("changelog-output-mismatch", p, COUNTER_KEY, places, implied, kept[3])


def duplicate(mutation: Mutation, first: int, second: int, identity: int, given: list[Record]) -> None:
    """Two keys have one ID."""
    uses = sorted([(mutation.clean.by_key["output"][first][0], first), (given[0], second)])
    mutation.found(
        "duplicate-id",
        uses[0][0][0],
        None,
        [at("output", place) for place, _ in uses],
        "one key",
        f"2 keys: {uses[0][1]}, {uses[1][1]}",
        ids=(identity,),
    )


def duplicate_id(clean: Clean, rng: random.Random, *, stored: bool = False) -> Mutation:
    """One key comes out with the ID of another."""
    mutation = Mutation("one duplicate ID" + (", in the store, too" if stored else ""), clean)
    first, second = two_keys(clean, rng)
    given = give(mutation, second, an_id(clean, first), stored=stored)
    duplicate(mutation, first, second, an_id(clean, first), given)
    counters_differ(mutation, given[0][0])
    return mutation


def stored_duplicate_id(clean: Clean, rng: random.Random) -> Mutation:
    """One key has the ID of another, in the output and in the store."""
    return duplicate_id(clean, rng, stored=True)


def wrong(mutation: Mutation, key: int, given: Record) -> None:
    """A key's ID is its own, and not the one that the input determines."""
    expected = an_id(mutation.clean, key)
    mutation.found("wrong-id", given[0], key, [at("output", given)], expected, given[3], ids=(given[3] or 0,))


def swapped_ids(clean: Clean, rng: random.Random, *, stored: bool = False) -> Mutation:
    """Two keys come out with each other's IDs."""
    mutation = Mutation("two swapped IDs" + (", in the store, too" if stored else ""), clean)
    first, second = two_keys(clean, rng)
    of_first = give(mutation, first, an_id(clean, second), stored=stored)
    of_second = give(mutation, second, an_id(clean, first), stored=stored)
    wrong(mutation, first, of_first[0])
    wrong(mutation, second, of_second[0])
    counters_differ(mutation, of_first[0][0], of_second[0][0])
    return mutation


def stored_swapped_ids(clean: Clean, rng: random.Random) -> Mutation:
    """Two keys have each other's IDs, in the output and in the store."""
    return swapped_ids(clean, rng, stored=True)


def skipped_id(clean: Clean, rng: random.Random) -> Mutation:
    """A key has an ID that comes much later, in the output and in the store."""
    mutation = Mutation("an ID that skips numbers", clean)
    key, _ = two_keys(clean, rng)
    partition = clean.by_key["output"][key][0][0]
    given = give(mutation, key, a_fresh_id(clean, partition), stored=True)
    wrong(mutation, key, given[0])
    counters_differ(mutation, partition)
    return mutation


def lost_tail(clean: Clean, rng: random.Random) -> Mutation:
    """The last output record of a partition is missing."""
    partition = rng.choice(sorted(clean.by_partition["output"]))
    return lost_output(clean, "a lost tail record", clean.by_partition["output"][partition][-1])


def lost_anywhere(clean: Clean, rng: random.Random) -> Mutation:
    """An output record is missing."""
    return lost_output(clean, "a lost record", rng.choice(clean.topics["output"]))


def lost_output(clean: Clean, kind: str, gone: Record) -> Mutation:
    """An output record of the enumerator is missing."""
    mutation = Mutation(kind, clean)
    mutation.remove("output", gone)
    lost(mutation, gone[2])
    if len(clean.by_key["output"][gone[2]]) == 1:  # else the output still shows the key's ID
        kept = clean.by_key["ids-changelog"][gone[2]][-1]
        mutation.found(
            "changelog-output-mismatch",
            kept[0],
            gone[2],
            [at("ids-changelog", kept)],
            "nothing",
            kept[3],
            ids=(kept[3] or 0,),
        )
    counters_differ(mutation, gone[0])
    return mutation


def ids_off_by_one(clean: Clean, rng: random.Random) -> Mutation:
    """The last value of a key in the changelog of the store ids is off by one."""
    mutation = Mutation("an ids changelog value off by one", clean)
    key, _ = two_keys(clean, rng)
    kept, shown = clean.by_key["ids-changelog"][key][-1], clean.by_key["output"][key][-1]
    identity = an_id(clean, key)
    changed = mutation.replace("ids-changelog", kept, identity + rng.choice((-1, 1)))
    places = [at("ids-changelog", changed), at("output", shown)]
    mutation.found(
        "changelog-output-mismatch", kept[0], key, places, identity, changed[3], ids=(changed[3] or 0, identity)
    )
    return mutation


def lost_id(clean: Clean, rng: random.Random) -> Mutation:
    """A key is not in the changelog of the store ids."""
    mutation = Mutation("a key missing in the ids changelog", clean)
    key, _ = two_keys(clean, rng)
    mutation.remove("ids-changelog", *clean.by_key["ids-changelog"][key])
    shown = clean.by_key["output"][key][-1]
    identity = an_id(clean, key)
    mutation.found(
        "changelog-output-mismatch", shown[0], key, [at("output", shown)], identity, "nothing", ids=(identity,)
    )
    return mutation


def changed_counter(clean: Clean, kind: str, partition: int, place: int, value: int) -> Mutation:
    """A record of the counter's changelog has another value; its neighbours decide what that gives."""
    mutation = Mutation(kind, clean)
    mutation.replace("counter-changelog", clean.by_partition["counter-changelog"][partition][place], value)
    log = mutation.partition("counter-changelog", partition)
    around = log[max(0, place - 1) : place + 2]
    for before, after in itertools.pairwise(around):
        if (after[3] or 0) <= (before[3] or 0):
            places = [at("counter-changelog", before), at("counter-changelog", after)]
            mutation.found("counter-regression", partition, COUNTER_KEY, places, f"more than {before[3]}", after[3])
    counters_differ(mutation, partition)
    return mutation


def counter_off_by_one(clean: Clean, rng: random.Random) -> Mutation:
    """The last value in the counter's changelog of a partition is off by one."""
    partition = rng.choice(sorted(clean.by_partition["counter-changelog"]))
    log = clean.by_partition["counter-changelog"][partition]
    value = (log[-1][3] or 0) + rng.choice((-1, 1))
    return changed_counter(clean, "a counter changelog value off by one", partition, len(log) - 1, value)


def counter_falls_back(clean: Clean, rng: random.Random) -> Mutation:
    """The counter's changelog falls to a value that it had before."""
    partition = rng.choice(sorted(clean.by_partition["counter-changelog"]))
    log = clean.by_partition["counter-changelog"][partition]
    place = rng.randrange(1, len(log))
    value = rng.randint(0, log[place - 1][3] or 0)
    return changed_counter(clean, "a counter that falls back", partition, place, value)


def leaked_output(clean: Clean, rng: random.Random) -> Mutation:
    """A record of an aborted attempt is in the output, at an offset where the log holds a marker or what was aborted."""
    mutation = Mutation("an aborted record that leaks", clean)
    original = rng.choice(clean.topics["output"])
    offset = a_gap(mutation, rng, "output", original[0])
    mutation.add("output", original[0], offset, original[2], original[3])
    surplus(mutation, original[2])
    return mutation


def repeated_output(clean: Clean, rng: random.Random) -> Mutation:
    """An output record comes a second time, at the end."""
    mutation = Mutation("a duplicated output record", clean)
    original = rng.choice(clean.topics["output"])
    mutation.add("output", original[0], behind(mutation, "output", original[0]), original[2], original[3])
    surplus(mutation, original[2])
    return mutation


def unexpected_output(clean: Clean, rng: random.Random) -> Mutation:
    """A key that nobody sent comes out, with its own ID, which the store does not know."""
    mutation = Mutation("an unexpected record in output", clean)
    partition = rng.choice(sorted(clean.by_partition["output"]))
    identity = a_fresh_id(clean, partition)
    new = mutation.add("output", partition, behind(mutation, "output", partition), LAST_KEY, identity)
    place = at("output", new)
    mutation.found("unexpected-record", partition, LAST_KEY, [place], "0 records", "1 record")
    mutation.found("changelog-output-mismatch", partition, LAST_KEY, [place], identity, "nothing", ids=(identity,))
    counters_differ(mutation, partition)
    return mutation


def unstable_id(clean: Clean, rng: random.Random) -> Mutation:
    """A key that is sent again gets a second ID."""
    mutation = Mutation("an unstable ID", clean)
    key, _ = two_keys(clean, rng)
    first, sent = clean.by_key["output"][key][0], clean.by_key["input"][key][-1]
    identity, fresh = an_id(clean, key), a_fresh_id(clean, first[0])
    mutation.add("input", sent[0], behind(mutation, "input", sent[0]), key, sent[3])
    second = mutation.add("output", first[0], behind(mutation, "output", first[0]), key, fresh)
    mutation.found(
        "unstable-id",
        first[0],
        key,
        [at("output", first), at("output", second)],
        "one ID",
        f"2 IDs: {identity}, {fresh}",
        ids=(identity, fresh),
    )
    store_differs(mutation, key, fresh, second)
    counters_differ(mutation, first[0])
    return mutation


# --- counting ------------------------------------------------------------------------------------------------


def an_effect(clean: Clean, rng: random.Random, least: int = 0) -> tuple[Record, int, int]:
    """An output record whose store gave at least this much, with its number and what it found."""
    while True:
        record = rng.choice(clean.topics["output"])
        number, found = divmod(record[3] or 0, 2**32)
        if found >= least:
            return record, number, found


def stale_read(clean: Clean, rng: random.Random) -> Mutation:
    """A store gave an older number than the one that was put last."""
    mutation = Mutation("a stale read", clean)
    record, number, found = an_effect(clean, rng, least=1)
    older = rng.randrange(found)
    changed = mutation.replace("output", record, number << 32 | older)
    mutation.found("stale-read", record[0], record[2], [at("output", changed)], found, older)
    return mutation


def dirty_read(clean: Clean, rng: random.Random) -> Mutation:
    """A store gave a number that had not been put yet."""
    mutation = Mutation("a dirty read", clean)
    record, number, found = an_effect(clean, rng)
    newer = found + rng.randint(1, 5)
    changed = mutation.replace("output", record, number << 32 | newer)
    mutation.found("dirty-read", record[0], record[2], [at("output", changed)], found, newer)
    return mutation


def lost_read(clean: Clean, rng: random.Random) -> Mutation:
    """An output record is missing."""
    mutation = Mutation("a lost record", clean)
    gone = rng.choice(clean.topics["output"])
    mutation.remove("output", gone)
    lost(mutation, gone[2])
    return mutation


# --- interactive-queries -------------------------------------------------------------------------------------

ANSWERS, UNLIMITED = "answers", 2**63 - 1


def limit_of(answer: Record, name: str) -> int:
    """An offset that an answer states."""
    return int(answer.headers.partition(f"{name}=")[2].partition(" ")[0], 16)


def least_of(clean: Clean, answer: Record) -> int:
    """The number that an answer must have at least, by the changelog and the input."""
    key = answer.key or 0
    known = [r for r in clean.by_key["last-changelog"][key] if r.offset < limit_of(answer, "floor")]
    read = [r for r in clean.by_key["input"][key] if r.offset < limit_of(answer, "read")]
    return max((r.value or 0 for r in [*known, *read]), default=0)


def told_by(answer: Record) -> str:
    """The number of an answer, and who gave it."""
    return f"{answer.value}, {bytes.fromhex(answer.headers.partition('how=')[2]).decode()}"


def stale_answer(clean: Clean, rng: random.Random) -> Mutation:
    """A client is answered with an older number than it must be."""
    mutation = Mutation("a stale answer", clean)
    old = rng.choice([answer for answer in clean.topics[ANSWERS] if least_of(clean, answer) > 1])
    least = least_of(clean, old)
    new = mutation.replace(ANSWERS, old, rng.randrange(least))
    mutation.found("stale-answer", old.partition, old.key, [at(ANSWERS, new)], f"{least} or later", told_by(new))
    return mutation


def early_answer(clean: Clean, rng: random.Random) -> Mutation:
    """A client is answered with a number that was committed later."""
    mutation = Mutation("an early answer", clean)
    old = rng.choice([answer for answer in clean.topics[ANSWERS] if (answer.value or 0) > least_of(clean, answer)])
    [put] = [r for r in clean.by_key["last-changelog"][old.key or 0] if r.value == old.value]
    ceiling = f"ceiling={limit_of(old, 'ceiling'):016x}"
    new = mutation.put_in_place(
        ANSWERS, old, old._replace(headers=old.headers.replace(ceiling, f"ceiling={put.offset:016x}"))
    )
    expected = f"{(old.value or 0) - 1} or earlier"
    mutation.found("early-answer", old.partition, old.key, [at(ANSWERS, new)], expected, told_by(new))
    return mutation


def unexplained_answer(clean: Clean, rng: random.Random) -> Mutation:
    """A client is answered with a number that its key never had."""
    mutation = Mutation("an unexplained answer", clean)
    old = rng.choice(clean.topics[ANSWERS])
    new = mutation.replace(ANSWERS, old, 1_000_000)
    mutation.found("unexplained-answer", old.partition, old.key, [at(ANSWERS, new)], "a value of the key", told_by(new))
    return mutation


# --- dedup ---------------------------------------------------------------------------------------------------


def lost_key(clean: Clean, rng: random.Random) -> Mutation:
    """A key does not come out."""
    mutation = Mutation("a lost record", clean)
    gone = rng.choice(clean.topics["output"])
    mutation.remove("output", gone)
    lost(mutation, gone[2], once=True)
    return mutation


def repeated_key(clean: Clean, rng: random.Random) -> Mutation:
    """A key comes out a second time."""
    mutation = Mutation("an aborted record that leaks", clean)
    original = rng.choice(clean.topics["output"])
    offset = a_gap(mutation, rng, "output", original[0])
    mutation.add("output", original[0], offset, original[2], original[3])
    surplus(mutation, original[2], once=True)
    return mutation


def committed(clean: Clean) -> dict[int | None, Record]:
    """For each key of the store `seen`, the last record of its changelog before the kill."""
    return {r[2]: r for r in clean.topics["seen-changelog"] if r[1] < clean.facts["seen_end"]}


def uncommitted_key(clean: Clean, rng: random.Random) -> Mutation:
    """The store holds a key that was not committed before the kill."""
    mutation = Mutation("an uncommitted key in the store", clean)
    known = committed(clean)
    sent = rng.choice([r for r in clean.topics["input"] if r[2] not in known])
    line = len(clean.topics["seen-contents"])
    entry = mutation.add("seen-contents", 0, line, sent[2], sent[3])
    mutation.found("uncommitted-state", 0, sent[2], [at("seen-contents", entry)], "nothing", sent[3])
    return mutation


def uncommitted_value(clean: Clean, rng: random.Random) -> Mutation:
    """The store holds a value of a key other than the committed one."""
    mutation = Mutation("a store's value off by one", clean)
    entry = rng.choice(clean.topics["seen-contents"])
    changed = mutation.replace("seen-contents", entry, (entry[3] or 0) + rng.choice((-1, 1)))
    place = at("seen-changelog", committed(clean)[entry[2]])
    mutation.found("uncommitted-state", 0, entry[2], [place], entry[3], changed[3])
    return mutation


def lost_state(clean: Clean, rng: random.Random) -> Mutation:
    """The store lacks a key that was committed."""
    mutation = Mutation("a key missing in the store", clean)
    entry = rng.choice(clean.topics["seen-contents"])
    mutation.remove("seen-contents", entry)
    place = at("seen-changelog", committed(clean)[entry[2]])
    mutation.found("lost-state", 0, entry[2], [place], entry[3], "nothing")
    return mutation


# --- deleter -------------------------------------------------------------------------------------------------


def request(clean: Clean, key: int | None) -> Record:
    """The request to delete a key."""
    return next(r for r in clean.by_key["input"][key] if r[3] == DELETE)


def false_answer(clean: Clean, rng: random.Random) -> Mutation:
    """A request is answered with false."""
    mutation = Mutation("a false answer", clean)
    changed = mutation.replace("output", rng.choice(clean.topics["output"]), FALSE)
    mutation.found("false-after-true", changed[0], changed[2], [at("output", changed)], "true", "false")
    return mutation


def false_again(clean: Clean, rng: random.Random) -> Mutation:
    """A request is answered with true, then with false."""
    mutation = Mutation("true, then false", clean)
    first = rng.choice(clean.topics["output"])
    second = mutation.add("output", first[0], behind(mutation, "output", first[0]), first[2], FALSE)
    mutation.found("false-after-true", first[0], first[2], [at("output", second)], "true", "true, false")
    return mutation


def true_twice(clean: Clean, rng: random.Random) -> Mutation:
    """A request is answered twice."""
    mutation = Mutation("a second answer", clean)
    first = rng.choice(clean.topics["output"])
    second = mutation.add("output", first[0], behind(mutation, "output", first[0]), first[2], TRUE)
    mutation.found("duplicate-output", first[0], first[2], [at("output", second)], "true", "true, true")
    return mutation


def no_answer(clean: Clean, rng: random.Random) -> Mutation:
    """A request that was not answered when the process was killed is never answered."""
    mutation = Mutation("a lost answer", clean)
    gone = rng.choice([r for r in clean.topics["output"] if r[1] >= clean.facts["output_end"]])
    mutation.remove("output", gone)
    asked = request(clean, gone[2])
    mutation.found("lost-record", asked[0], gone[2], [at("input", asked)], "true", "nothing")
    return mutation


def leaked_deletion(clean: Clean, rng: random.Random) -> Mutation:
    """A deletion of the aborted transaction is in the changelog, before the end that it had at the kill."""
    mutation = Mutation("an aborted deletion that leaks", clean)
    answer = rng.choice([r for r in clean.topics["output"] if r[1] >= clean.facts["output_end"]])
    taken = {r[1] for r in clean.topics["records-changelog"]}
    offset = rng.choice([o for o in range(clean.facts["changelog_end"]) if o not in taken])
    asked = request(clean, answer[2])
    leaked = mutation.add("records-changelog", asked[0], offset, asked[2], None)
    mutation.found(
        "changelog-output-mismatch",
        asked[0],
        asked[2],
        [at("input", asked)],
        "both or neither",
        f"deletion {at('records-changelog', leaked)}",
    )
    last = max([*clean.by_key["records-changelog"][asked[2]], leaked])
    place = at("records-changelog", last)
    mutation.found("duplicate-output", last[0], asked[2], [place], records(2), records(3))
    return mutation


# --- scans ---------------------------------------------------------------------------------------------------


def found(number: int, total: int) -> str:
    """What a scan found, in the words of witnesses."""
    return f"{'1 key' if number == 1 else f'{number} keys'} with the sum {total}"


def a_scan(clean: Clean, rng: random.Random) -> tuple[Record, int, int]:
    """An answer, with the number of keys that the scan found (at least some) and their sum."""
    record = rng.choice([r for r in clean.topics["output"] if (r[3] or 0) >> 32])
    return record, (record[3] or 0) >> 32, (record[3] or 0) % 2**32


def scanned(clean: Clean, rng: random.Random, anomaly: str, sign: int) -> Mutation:
    """A scan also found the deleted key, or it lacks a key."""
    mutation = Mutation(f"a {anomaly}", clean)
    record, number, total = a_scan(clean, rng)
    other = number + sign, total + (record[2] or 0) if sign > 0 else total - total // number
    changed = mutation.replace("output", record, other[0] << 32 | other[1])
    mutation.found(anomaly, record[0], record[2], [at("output", changed)], found(number, total), found(*other))
    return mutation


def ghost_key(clean: Clean, rng: random.Random) -> Mutation:
    """A scan found the key that had just been deleted."""
    return scanned(clean, rng, "ghost-key", 1)


def missing_key(clean: Clean, rng: random.Random) -> Mutation:
    """A scan did not find a key that is there."""
    return scanned(clean, rng, "missing-key", -1)


def no_scan(clean: Clean, rng: random.Random) -> Mutation:
    """A request is not answered."""
    mutation = Mutation("a lost answer", clean)
    gone, number, total = a_scan(clean, rng)
    mutation.remove("output", gone)
    asked = request(clean, gone[2])
    mutation.found("lost-record", asked[0], gone[2], [at("input", asked)], found(number, total), "no answer")
    return mutation


def scanned_twice(clean: Clean, rng: random.Random) -> Mutation:
    """A request is answered twice."""
    mutation = Mutation("a second answer", clean)
    first, number, total = a_scan(clean, rng)
    new = mutation.add("output", first[0], behind(mutation, "output", first[0]), first[2], first[3])
    mutation.found("duplicate-output", new[0], first[2], [at("output", new)], found(number, total), "2 answers")
    return mutation


def unasked_scan(clean: Clean, rng: random.Random) -> Mutation:
    """An answer that nobody asked for."""
    mutation = Mutation("an unexpected answer", clean)
    partition = rng.choice(sorted(clean.by_partition["output"]))
    new = mutation.add("output", partition, behind(mutation, "output", partition), LAST_KEY, 1 << 32 | 5)
    mutation.found("unexpected-record", partition, LAST_KEY, [at("output", new)], "nothing", found(1, 5))
    return mutation


# --- values --------------------------------------------------------------------------------------------------

CHANGELOG, ALL = "values-changelog", "values-changelog-all"


def a_transaction(clean: Clean, rng: random.Random) -> list[Record]:
    """The records of a committed transaction: those without a marker between them."""
    log = clean.by_partition[CHANGELOG][rng.choice(sorted(clean.by_partition[CHANGELOG]))]
    written = {r[1] for r in clean.by_partition[ALL][log[0][0]]}
    first = last = rng.choice(log)[1]
    while first - 1 in written:
        first -= 1
    while last + 1 in written:
        last += 1
    return [r for r in log if first <= r[1] <= last]


def abort(mutation: Mutation, transaction: list[Record]) -> None:
    """Take a transaction out of what was committed."""
    mutation.remove(CHANGELOG, *transaction)
    first = transaction[0]
    observed = f"aborted, {records(len(transaction))}"
    mutation.found("aborted-by-throttle", first[0], None, [at(CHANGELOG, first)], "committed", observed)


def aborted_transaction(clean: Clean, rng: random.Random) -> Mutation:
    """A transaction was aborted, and written again at the end."""
    mutation = Mutation("an aborted transaction, written again", clean)
    transaction = a_transaction(clean, rng)
    end = behind(mutation, ALL, transaction[0][0])
    abort(mutation, transaction)
    last = clean.by_partition[CHANGELOG][transaction[0][0]][-1]
    for n, record in enumerate(transaction):
        for role in (CHANGELOG, ALL):
            mutation.added[role].append(record._replace(offset=end + n))
    if last not in transaction:  # what followed it was written before it was written again
        first = transaction[0]
        behind_, observed = (at("input", source_of(clean, CHANGELOG, record)) for record in (last, first))
        place = at(CHANGELOG, first._replace(offset=end))
        mutation.found("wrong-order", first[0], first[2], [place], f"of a record behind {behind_}", f"of {observed}")
    return mutation


def lost_transaction(clean: Clean, rng: random.Random) -> Mutation:
    """A transaction was aborted, and its records are lost."""
    mutation = Mutation("an aborted transaction, lost", clean)
    transaction = a_transaction(clean, rng)
    abort(mutation, transaction)
    for record in transaction:
        lost(mutation, record[2])
    return mutation


def lost_value(clean: Clean, rng: random.Random) -> Mutation:
    """A record was never written."""
    mutation = Mutation("a lost record", clean)
    gone = rng.choice(clean.topics[CHANGELOG])
    mutation.remove(CHANGELOG, gone)
    mutation.remove(ALL, gone)
    lost(mutation, gone[2])
    return mutation


def repeated_value(clean: Clean, rng: random.Random) -> Mutation:
    """A record was committed a second time, at the end."""
    mutation = Mutation("a duplicated record", clean)
    original = rng.choice(clean.topics[CHANGELOG])
    end = behind(mutation, ALL, original[0])
    for role in (CHANGELOG, ALL):
        mutation.add(role, original[0], end, original[2], original[3])
    surplus(mutation, original[2])
    return mutation


# --- foreign-key-join ----------------------------------------------------------------------------------------


def no_result(clean: Clean, rng: random.Random) -> Mutation:
    """The last result of a key says that there is none."""
    mutation = Mutation("a lost result", clean)
    old = rng.choice([of_key[-1] for of_key in clean.by_key["output"].values() if of_key[-1].value])
    mutation.replace("output", old, 0)
    left, _ = clean.result_of(old.key)
    texts = f"{records(1)} in output", records(0)
    mutation.found("lost-record", left.partition, old.key, [at("input", left)], *texts)
    return mutation


def stale_result(clean: Clean, rng: random.Random) -> Mutation:
    """A key that no longer has a result keeps one."""
    mutation = Mutation("a stale result", clean)
    old = rng.choice([of_key[-1] for of_key in clean.by_key["output"].values() if not of_key[-1].value])
    new = mutation.replace("output", old, 7 << 32 | 5)
    mutation.found("unexpected-record", new.partition, new.key, [at("output", new)], "nothing", new.value)
    return mutation


def stray_result(clean: Clean, rng: random.Random) -> Mutation:
    """A key that nobody sent has a result."""
    mutation = Mutation("an unexpected result", clean)
    partition = rng.choice(sorted(clean.by_partition["output"]))
    new = mutation.add("output", partition, behind(mutation, "output", partition), LAST_KEY, 7 << 32 | 5)
    mutation.found("unexpected-record", partition, LAST_KEY, [at("output", new)], "nothing", new.value)
    return mutation


# --- grouped-table -------------------------------------------------------------------------------------------


def unsubtracted(clean: Clean, rng: random.Random) -> Mutation:
    """Of the last change of a key whose group did not change later, the old value was not subtracted."""
    mutation = Mutation("a sum with an old value", clean)
    last = {(record.key or 0) % 100: record for record in clean.topics["input"]}
    changes = [clean.by_key["input"][record.key or 0][-2:] for record in last.values()]
    before, change = rng.choice([change for change in changes if len(change) > 1])
    old = clean.by_key["output"][(change.key or 0) % 100][-1]
    new = mutation.replace("output", old, (old.value or 0) + (before.value or 0))
    mutation.found("wrong-value", new.partition, new.key, [at("output", new)], old.value, new.value)
    return mutation


def no_sum(clean: Clean, rng: random.Random) -> Mutation:
    """A group has no sum."""
    mutation = Mutation("a lost sum", clean)
    group, sums = rng.choice(sorted(clean.by_key["output"].items()))
    mutation.remove("output", *sums)
    last = [record for record in clean.topics["input"] if (record.key or 0) % 100 == group][-1]
    texts = f"{records(1)} in output", records(0)
    mutation.found("lost-record", last.partition, group, [at("input", last)], *texts)
    return mutation


# --- table-join ----------------------------------------------------------------------------------------------


def no_join(clean: Clean, rng: random.Random, *, total: bool) -> Mutation:
    """The last result of a key, or of a total, says that there is none."""
    mutation = Mutation(f"a lost {'total' if total else 'result of a join'}", clean)
    there = [of_key[-1] for of_key in clean.by_key["output"].values() if of_key[-1].value]
    old = rng.choice([record for record in there if ((record.key or 0) >= FIRST_TOTAL) == total])
    mutation.replace("output", old, 0)
    last = clean.last_of(old.key or 0)
    texts = f"{records(1)} in output", records(0)
    mutation.found("lost-record", last.partition, old.key, [at("input", last)], *texts)
    return mutation


def added_twice(clean: Clean, rng: random.Random) -> Mutation:
    """A change was added to a total twice."""
    mutation = Mutation("a total with a change twice", clean)
    old = rng.choice([of_key[-1] for key, of_key in clean.by_key["output"].items() if (key or 0) >= FIRST_TOTAL])
    new = mutation.replace("output", old, (old.value or 0) + 7)
    mutation.found("wrong-value", new.partition, new.key, [at("output", new)], old.value, new.value)
    return mutation


# --- stream-join ---------------------------------------------------------------------------------------------


def a_result(clean: Clean, rng: random.Random, *, alone: bool) -> tuple[Record, str]:
    """A result, of a record that is alone or of two, and how witnesses describe it."""
    result = rng.choice([r for r in clean.topics["output"] if alone == (0 in divmod(r.value or 0, 2**32))])
    left, right = divmod(result.value or 0, 2**32)
    return result, f"{left or 'nothing'} with {right or 'nothing'}"


def lost_result(clean: Clean, rng: random.Random, *, alone: bool, anomaly: str) -> Mutation:
    """A result did not come out."""
    mutation = Mutation(f"a result that is lost: {anomaly}", clean)
    gone, numbers = a_result(clean, rng, alone=alone)
    mutation.remove("output", gone)
    source = next(cause for result, cause in clean.caused["output"] if result == gone)
    mutation.found(anomaly, source.partition, gone.key, [at("input", source)], numbers, "nothing")
    return mutation


def early_result(clean: Clean, rng: random.Random) -> Mutation:
    """The left record of a pair came out alone as well."""
    mutation = Mutation("a record that came out alone early", clean)
    pair, _ = a_result(clean, rng, alone=False)
    left = (pair.value or 0) >> 32
    end = behind(mutation, "output", pair.partition)
    new = mutation.add("output", pair.partition, end, pair.key, left << 32, pair.timestamp)
    mutation.found("early-alone", new.partition, new.key, [at("output", new)], "nothing", f"{left} with nothing")
    return mutation


def strange_result(clean: Clean, rng: random.Random) -> Mutation:
    """A pair that nobody sent came out."""
    mutation = Mutation("a pair that nobody sent", clean)
    like, _ = a_result(clean, rng, alone=False)
    end = behind(mutation, "output", like.partition)
    new = mutation.add("output", like.partition, end, LAST_KEY, 7 << 32 | 5, like.timestamp)
    mutation.found("unexpected-record", new.partition, LAST_KEY, [at("output", new)], "nothing", "7 with 5")
    return mutation


def repeated_result(clean: Clean, rng: random.Random) -> Mutation:
    """A result came out twice."""
    mutation = Mutation("a result twice", clean)
    old = rng.choice(clean.topics["output"])
    new = mutation.add("output", old.partition, behind(mutation, "output", old.partition), *old[2:])
    mutation.found("duplicate-output", new.partition, new.key, [at("output", new)], records(1), records(2))
    return mutation


# --- two-topics ----------------------------------------------------------------------------------------------


def with_entry(clean: Clean, rng: random.Random, anomaly: str) -> Mutation:
    """A record of the stream found an entry that its key had at another time, or never."""
    mutation = Mutation(f"an entry: {anomaly}", clean)
    had: dict[int | None, list[int]] = defaultdict(list)
    for entry in clean.topics["entries"]:
        had[entry.key].append(entry.value or 0)
    old = rng.choice([r for r in clean.topics["output"] if set(had[r.key]) - {(r.value or 0) % 2**32}])
    number, held = divmod(old.value or 0, 2**32)
    other_ = next(entry for entry in had[old.key] if entry != held) if anomaly == "wrong-time" else 7_000_000
    new = mutation.replace("output", old, number << 32 | other_)
    texts = f"{number} with {held or 'nothing'}", f"{number} with {other_}"
    mutation.found(anomaly, new.partition, new.key, [at("output", new)], *texts)
    return mutation


def without_result(clean: Clean, rng: random.Random) -> Mutation:
    """Nothing came out of a record of the stream."""
    mutation = Mutation("a record of the stream that is lost", clean)
    gone, source = rng.choice(clean.caused["output"])
    mutation.remove("output", gone)
    number, held = divmod(gone.value or 0, 2**32)
    text = f"{number} with {held or 'nothing'}"
    mutation.found("lost-record", source.partition, gone.key, [at("input", source)], text, "nothing")
    return mutation


def late_result(clean: Clean, rng: random.Random) -> Mutation:
    """A result stands behind those of later records."""
    mutation = Mutation("a result behind later ones", clean)
    partition = rng.choice(sorted(clean.by_partition["output"]))
    *_, old, last = clean.by_partition["output"][partition]
    new = mutation.put_in_place("output", old, old._replace(offset=behind(mutation, "output", partition)))
    places = [at("output", new), at("output", last)]
    mutation.found("wrong-order", partition, last.key, [places[1]], f"behind {places[0]}", f"at {places[1]}")
    return mutation


# --- as-of-join ----------------------------------------------------------------------------------------------


def an_answer(clean: Clean, rng: random.Random, *, found: bool) -> Record:
    """A result of who asked for a version and found one, or none."""
    asked = [r for r in clean.topics["output"] if (r.value or 0) >> 32]
    return rng.choice([r for r in asked if bool((r.value or 0) % 2**32) == found])


def answered(mutation: Mutation, old: Record, version: int) -> Mutation:
    """Who asked got another version."""
    new = mutation.replace("output", old, (old.value or 0) >> 32 << 32 | version)
    mutation.found("wrong-value", new.partition, new.key, [at("output", new)], old.value, new.value)
    return mutation


def no_version(clean: Clean, rng: random.Random) -> Mutation:
    """Who asked got none, as the table has lost its history."""
    return answered(Mutation("a version that is not there", clean), an_answer(clean, rng, found=True), 0)


def last_version(clean: Clean, rng: random.Random) -> Mutation:
    """Who asked got the last version, and not the one of its time."""
    while True:
        old = an_answer(clean, rng, found=True)
        number = -(clean.versions_of(old.key)[-1].value or 0)
        if number and number != (old.value or 0) % 2**32:
            break
    return answered(Mutation("the last version", clean), old, number)


def dropped_version(clean: Clean, rng: random.Random) -> Mutation:
    """Who asked for what there is not got a version, say of what was too old."""
    old = an_answer(clean, rng, found=False)
    number = 7_000_000
    return answered(Mutation("a version that was dropped", clean), old, number)


# --- windows -------------------------------------------------------------------------------------------------


def sum_of(result: Record) -> str:
    """What a result of `windows` says, in the words of witnesses."""
    return f"{(result.value or 0) % 2**WINDOW_BITS} at {result.timestamp}"


def lost_window(clean: Clean, rng: random.Random) -> Mutation:
    """A window that closed did not come out."""
    mutation = Mutation("a lost window", clean)
    gone = rng.choice(clean.topics["output"])
    mutation.remove("output", gone)
    window, inside = clean.window_of(gone)
    expected, observed = (f"{records(number)} of {window}" for number in (1, 0))
    mutation.found("lost-record", gone.partition, gone.key, [at("input", inside[-1])], expected, observed)
    return mutation


def repeated_window(clean: Clean, rng: random.Random) -> Mutation:
    """A window came out twice."""
    mutation = Mutation("a window twice", clean)
    old = rng.choice(clean.topics["output"])
    new = mutation.add("output", old.partition, behind(mutation, "output", old.partition), *old[2:])
    window, _ = clean.window_of(old)
    expected, observed = f"{records(1)} of {window}", f"{records(2)} of {window}, the first one twice"
    mutation.found("duplicate-output", new.partition, new.key, [at("output", new)], expected, observed)
    return mutation


def uncounted(clean: Clean, rng: random.Random) -> Mutation:
    """A record was not counted in its window."""
    mutation = Mutation("a record that was not counted", clean)
    many = [result for result in clean.topics["output"] if len(clean.window_of(result)[1]) > 1]
    old = rng.choice(many)
    left = clean.window_of(old)[1][0]
    new = mutation.replace("output", old, (old.value or 0) - (left.value or 0))
    mutation.found("wrong-value", new.partition, new.key, [at("output", new)], sum_of(old), sum_of(new))
    return mutation


def restamped(clean: Clean, rng: random.Random) -> Mutation:
    """A window is as old as nothing in it."""
    mutation = Mutation("a window with another timestamp", clean)
    old = rng.choice(clean.topics["output"])
    new = mutation.put_in_place("output", old, old._replace(timestamp=old.timestamp + 1))
    mutation.found("wrong-timestamp", new.partition, new.key, [at("output", new)], sum_of(old), sum_of(new))
    return mutation


def open_window(clean: Clean, rng: random.Random) -> Mutation:
    """A window came out that has not closed: that of the last record of a partition."""
    mutation = Mutation("a window that is open", clean)
    last = rng.choice([of_partition[-1] for of_partition in clean.by_partition["input"].values()])
    start = last.timestamp - last.timestamp % clean.facts["size"]
    end = behind(mutation, "output", last.partition)
    value = start << WINDOW_BITS | (last.value or 0)
    new = mutation.add("output", last.partition, end, last.key, value, last.timestamp)
    texts = "nothing: it has not closed", sum_of(new)
    mutation.found("early-result", new.partition, new.key, [at("output", new)], *texts)
    return mutation


def strange_window(clean: Clean, rng: random.Random) -> Mutation:
    """A window of a key that nobody sent."""
    mutation = Mutation("a window of nobody", clean)
    like = rng.choice(clean.topics["output"])
    end = behind(mutation, "output", like.partition)
    new = mutation.add("output", like.partition, end, LAST_KEY, like.value, like.timestamp)
    mutation.found("unexpected-record", new.partition, LAST_KEY, [at("output", new)], "nothing", sum_of(new))
    return mutation


# --- outbox --------------------------------------------------------------------------------------------------

BUFFER = "buffer-changelog"


def released(clean: Clean, result: Record) -> int:
    """When a punctuation released a record of `outbox`."""
    return clean.by_key["input"][result.key or 0][0].timestamp + (result.value or 0) % 2**32


def released_at(mutation: Mutation, old: Record, time: int) -> Record:
    """Have a record be released at another time."""
    return mutation.replace("output", old, (old.value or 0) + time - released(mutation.clean, old))


def never_released(clean: Clean, rng: random.Random) -> Mutation:
    """A record never came out."""
    mutation = Mutation("a record that was not released", clean)
    gone = rng.choice(clean.topics["output"])
    mutation.remove("output", gone)
    [source] = clean.by_key["input"][gone.key or 0]
    mutation.found("unreleased", source.partition, gone.key, [at("input", source)], records(1), records(0))
    return mutation


def still_held(clean: Clean, rng: random.Random) -> Mutation:
    """A record that came out was not deleted from its buffer."""
    mutation = Mutation("a record that is still in its buffer", clean)
    put, gone = rng.choice(list(clean.by_key[BUFFER].values()))
    mutation.remove(BUFFER, gone)
    mutation.found("unreleased", put.partition, put.key, [at(BUFFER, put)], "nothing", put.value)
    return mutation


def held_again(clean: Clean, rng: random.Random) -> Mutation:
    """A record was put again, when it had left its buffer."""
    mutation = Mutation("a record that was put again", clean)
    put = rng.choice(list(clean.by_key[BUFFER].values()))[0]
    new = mutation.add(BUFFER, put.partition, behind(mutation, BUFFER, put.partition), *put[2:])
    mutation.found("unreleased", new.partition, new.key, [at(BUFFER, new)], "nothing", new.value)
    mutation.found("duplicate-output", new.partition, new.key, [at(BUFFER, new)], records(1), records(2))
    return mutation


def never_held(clean: Clean, rng: random.Random) -> Mutation:
    """A record is missing among those that were put."""
    mutation = Mutation("a record that was never put", clean)
    put = rng.choice(list(clean.by_key[BUFFER].values()))[0]
    mutation.remove(BUFFER, put)
    [source] = clean.by_key["input"][put.key or 0]
    texts = f"{records(1)} in {BUFFER}", records(0)
    mutation.found("lost-record", source.partition, put.key, [at("input", source)], *texts)
    return mutation


def released_again(clean: Clean, rng: random.Random) -> Mutation:
    """A record came out twice."""
    mutation = Mutation("a record that was released again", clean)
    old = rng.choice(clean.topics["output"])
    new = mutation.add("output", old.partition, behind(mutation, "output", old.partition), *old[2:])
    mutation.found("duplicate-output", new.partition, new.key, [at("output", new)], records(1), records(2))
    return mutation


def released_early(clean: Clean, rng: random.Random) -> Mutation:
    """A record came out a millisecond before it was due by its own wait, which is its due time if none is due later."""
    mutation = Mutation("a record that was released early", clean)
    due: dict[int | None, int] = {}
    for of_partition in clean.by_partition["input"].values():
        waits = (record.timestamp + (record.value or 0) for record in of_partition)
        due |= {r.key: time for r, time in zip(of_partition, itertools.accumulate(waits, max), strict=True)}
    old = rng.choice([r for r in clean.topics["output"] if (r.value or 0) >> 32])
    new = released_at(mutation, old, due[old.key] - 1)
    texts = f"at {due[old.key]} or later", f"at {due[old.key] - 1}"
    mutation.found("early-release", new.partition, new.key, [at("output", new)], *texts)
    return mutation


def strange_punctuation(clean: Clean, rng: random.Random) -> Mutation:
    """The last record of a partition came out at a time that its task never had."""
    mutation = Mutation("a punctuation at a strange time", clean)
    old = rng.choice([of_partition[-1] for of_partition in clean.by_partition["output"].values()])
    new = released_at(mutation, old, released(clean, old) + 1)
    texts = "at a time of its task", f"at {released(clean, old) + 1}"
    mutation.found("early-release", new.partition, new.key, [at("output", new)], *texts)
    return mutation


def released_late(clean: Clean, rng: random.Random) -> Mutation:
    """The last of several records that a punctuation released came out with the next one."""
    mutation = Mutation("a record that was released late", clean)
    log = clean.by_partition["output"][rng.choice(sorted(clean.by_partition["output"]))]
    times = [released(clean, record) for record in log]
    ends = [n for n in range(1, len(log) - 1) if times[n - 1] == times[n] < times[n + 1]]
    place = rng.choice(ends)
    new = released_at(mutation, log[place], times[place + 1])
    texts = f"at {times[place]}, as others", f"at {times[place + 1]}"
    mutation.found("late-release", new.partition, new.key, [at("output", new)], *texts)
    return mutation


Mutate = Callable[[Clean, random.Random], Mutation]

# --- contents ------------------------------------------------------------------------------------------------

LAST_KEY = 2**31 - 1  # of nobody


def in_a_changelog_after_the_kill(clean: Clean, role: str) -> list[Record]:
    """The records of a role whose change concerns no other promise than that of its contents."""
    end = {"seen-changelog": "seen_end", "records-changelog": "changelog_end", "output": "output_end"}.get(role, "")
    late = [r for r in clean.topics[role] if r[1] >= clean.facts.get(end, 0)]
    if role in ("ids-changelog", "last-changelog"):  # folded: the last of a key counts
        late = [records_[-1] for records_ in clean.by_key[role].values() if records_[-1][3] is not None]
    if role == BUFFER:  # what was put
        late = [record for record in late if record[3] is not None]
    if clean.check == "grouped-table":  # folded, too
        late = [records_[-1] for records_ in clean.by_key[role].values()]
    if clean.check in ("foreign-key-join", "table-join"):  # folded, too, and 0 is no result
        late = [records_[-1] for records_ in clean.by_key[role].values() if records_[-1][3]]
    return late


def other(mutation: Mutation, role: str, old: Record, **changed: Any) -> Record:
    """Alter a record in something other than its key."""
    mutation.removed[role].append(old)
    new = old._replace(**changed)
    mutation.added[role].append(new)
    return new


def altered(role: str, anomaly: str, expected: Any, **changed: Any) -> Mutate:
    """A record of the role is not what it was in one respect."""

    def mutate(clean: Clean, rng: random.Random) -> Mutation:
        mutation = Mutation(f"{anomaly} in {role}", clean)
        old = rng.choice(in_a_changelog_after_the_kill(clean, role))
        new = other(mutation, role, old, **{name: change(old) for name, change in changed.items()})
        mutation.found(anomaly, new[0], new[2], [at(role, new)], *expected(old, new))
        return mutation

    return mutate


def stamped(role: str) -> Mutate:
    """A record has another timestamp."""
    return altered(role, "wrong-timestamp", lambda old, new: (old[4], new[4]), timestamp=lambda old: old[4] + 1)


def headed(role: str) -> Mutate:
    """A record has a stray header."""
    return altered(role, "wrong-header", lambda _, new: ("no header", new[5]), headers=lambda _: "stray=01")


def valued(role: str) -> Mutate:
    """A record has another value."""
    return altered(
        role,
        "wrong-value",
        lambda old, new: ("nothing" if old[3] is None else old[3], new[3]),
        value=lambda old: (old[3] or 0) + 5,
    )


def source_of(clean: Clean, role: str, record: Record) -> Record:
    """The input record that gave a record, by its number among those of the key."""
    causes = clean.by_key["input"][record[2]]
    if clean.check in ANSWERING and role == "output":
        causes = [cause for cause in causes if cause[3] == DELETE]
    if role == VERSIONS:
        causes = clean.versions_of(record[2])
    return causes[clean.by_key[role][record[2]].index(record)]


def swapped(role: str) -> Mutate:
    """Two consecutive records have changed places."""

    def mutate(clean: Clean, rng: random.Random) -> Mutation:
        mutation = Mutation(f"wrong order in {role}", clean)
        late = set(in_a_changelog_after_the_kill(clean, role))
        log = clean.by_partition[role][rng.choice(sorted(clean.by_partition[role]))]
        pairs = [(a, b) for a, b in itertools.pairwise(log) if a[2] != b[2] and a in late and b in late]
        first, second = rng.choice(pairs)
        mutation.removed[role] += [first, second]
        mutation.added[role].append(second._replace(offset=first[1]))
        behind_ = first._replace(offset=second[1])
        mutation.added[role].append(behind_)
        places = [at("input", source_of(clean, role, record)) for record in (second, first)]
        mutation.found(
            "wrong-order",
            first[0],
            first[2],
            [at(role, behind_)],
            f"of a record behind {places[0]}",
            f"of {places[1]}",
        )
        return mutation

    return mutate


def moved(role: str) -> Mutate:
    """The last record of a key is in the partition after its own."""

    def mutate(clean: Clean, rng: random.Random) -> Mutation:
        mutation = Mutation(f"wrong partition in {role}", clean)
        before_last = [r for r in in_a_changelog_after_the_kill(clean, role) if r[0] + 1 in clean.by_partition[role]]
        old = clean.by_key[role][rng.choice(before_last)[2]][-1]
        new = other(mutation, role, old, partition=old[0] + 1, offset=behind(mutation, role, old[0] + 1))
        mutation.found("wrong-partition", new[0], new[2], [at(role, new)], f"partition {old[0]}", f"partition {new[0]}")
        if clean.check == "enumerator" and role == "output":
            counters_differ(mutation, old[0], new[0])
        return mutation

    return mutate


def strange(role: str, value: int) -> Mutate:
    """A record of a key that nobody sent."""

    def mutate(clean: Clean, rng: random.Random) -> Mutation:
        mutation = Mutation(f"an unexpected record in {role}", clean)
        partition = rng.choice(sorted(clean.by_partition[role]))
        new = mutation.add(role, partition, behind(mutation, role, partition), LAST_KEY, value)
        text = "true" if clean.check in ANSWERING and role == "output" else value
        mutation.found("unexpected-record", partition, LAST_KEY, [at(role, new)], "nothing", text)
        return mutation

    return mutate


def strange_entry(role: str) -> Mutate:
    """As `strange`, with a value of no meaning."""
    return strange(role, 5)


def missing(role: str) -> Mutate:
    """The last record of a key is missing in a changelog; if that is folded, all of them are."""

    def mutate(clean: Clean, rng: random.Random) -> Mutation:
        mutation = Mutation(f"a lost record in {role}", clean)
        gone = rng.choice(in_a_changelog_after_the_kill(clean, role))
        of_key, causes = clean.by_key[role][gone[2]], clean.by_key["input"][gone[2]]
        causes = clean.versions_of(gone[2]) if role == VERSIONS else causes
        folded = role == "last-changelog"
        mutation.remove(role, *(of_key if folded else of_key[-1:]))
        cause, number = (causes[-1], 1) if folded else (causes[0], len(of_key))
        mutation.found(
            "lost-record",
            cause[0],
            gone[2],
            [at("input", cause)],
            f"{records(number)} in {role}",
            records(number - 1),
        )
        return mutation

    return mutate


def written_again(role: str) -> Mutate:
    """A record is in a changelog a second time, at the end."""

    def mutate(clean: Clean, rng: random.Random) -> Mutation:
        mutation = Mutation(f"a duplicate in {role}", clean)
        old = rng.choice(in_a_changelog_after_the_kill(clean, role))
        new = mutation.add(role, old[0], behind(mutation, role, old[0]), *old[2:])
        number = len(clean.by_key[role][old[2]])
        mutation.found("duplicate-output", new[0], new[2], [at(role, new)], records(number), records(number + 1))
        return mutation

    return mutate


def fallen(clean: Clean, rng: random.Random) -> Mutation:
    """A key's number in the changelog stands still from one record to the next."""
    mutation = Mutation("a number that stands still in last-changelog", clean)
    log = rng.choice([of_key for of_key in clean.by_key["last-changelog"].values() if len(of_key) > 2])
    place = rng.randrange(1, len(log) - 1)
    before = log[place - 1][3]
    new = other(mutation, "last-changelog", log[place], value=before)
    mutation.found("unexpected-record", new[0], new[2], [at("last-changelog", new)], "what the key had", before)
    return mutation


def older(clean: Clean, rng: random.Random) -> Mutation:
    """A cached store writes a value once more that it had already replaced, and then goes on."""
    mutation = Mutation("an older record in last-changelog", clean)
    log = rng.choice([of_key for of_key in clean.by_key["last-changelog"].values() if len(of_key) > 3])
    place = rng.randrange(2, len(log) - 1)
    causes = clean.by_key["input"][log[place].key]
    before, again = (next(one for one in causes if one.value == log[n].value) for n in (place - 1, place - 2))
    new = other(mutation, "last-changelog", log[place], value=again.value, timestamp=again.timestamp)
    texts = f"of a record behind {at('input', before)}", f"of {at('input', again)}"
    mutation.found("wrong-order", new[0], new[2], [at("last-changelog", new)], *texts)
    return mutation


def timed_by_another(clean: Clean, rng: random.Random) -> Mutation:
    """A cached store writes a value with the timestamp of the record that was processed when the cache was flushed."""
    mutation = Mutation("the timestamp of another record in last-changelog", clean)
    log = rng.choice([of_key for of_key in clean.by_key["last-changelog"].values() if len(of_key) > 2])
    old = log[rng.randrange(1, len(log) - 1)]
    new = other(mutation, "last-changelog", old, timestamp=old.timestamp + 3)
    texts = str(old.timestamp), str(new.timestamp)
    mutation.found("wrong-timestamp", new[0], new[2], [at("last-changelog", new)], *texts)
    return mutation


def deleted_between(clean: Clean, rng: random.Random) -> Mutation:
    """A cached store deletes a key that nothing deleted, and puts it again later."""
    mutation = Mutation("a tombstone between two records of last-changelog", clean)
    log = rng.choice([of_key for of_key in clean.by_key["last-changelog"].values() if len(of_key) > 2])
    new = other(mutation, "last-changelog", log[rng.randrange(1, len(log) - 1)], value=None)
    texts = "what the key had", "nothing"
    mutation.found("unexpected-record", new[0], new[2], [at("last-changelog", new)], *texts)
    return mutation


def deleted_counter(clean: Clean, rng: random.Random) -> Mutation:
    """A tombstone is in the counter's changelog; what follows it goes on as before."""
    mutation = Mutation("a tombstone in the counter's changelog", clean)
    log = clean.by_partition["counter-changelog"][rng.choice(sorted(clean.by_partition["counter-changelog"]))]
    places = [n for n in range(len(log) - 1) if log[n + 1][1] > log[n][1] + 1]
    before = log[rng.choice(places)]
    gone = mutation.add("counter-changelog", before[0], before[1] + 1, COUNTER_KEY, None)
    where = [at("counter-changelog", before), at("counter-changelog", gone)]
    mutation.found("counter-regression", before[0], COUNTER_KEY, where, f"more than {before[3]}", "nothing")
    return mutation


def untouched(clean: Clean) -> Mutation:
    """The trial as it is."""
    return Mutation("untouched", clean)


MUTATIONS: dict[str, tuple[Mutate, ...]] = {
    "as-of-join": (
        no_version,
        last_version,
        dropped_version,
        lost_read,
        leaked_output,
        repeated_output,
        *(plant(role) for role in ("output", VERSIONS) for plant in (stamped, headed, swapped)),
        *(plant(VERSIONS) for plant in (valued, missing, written_again)),
        moved("output"),
        strange(VERSIONS, 1),
    ),
    "copy": (
        lost_read,
        leaked_output,
        repeated_output,
        *(plant("output") for plant in (stamped, headed, valued, swapped)),
    ),
    "dead-letters": tuple(
        plant(role)
        for role in ("output", "dead-letters")
        for plant in (stamped, headed, valued, swapped, moved, missing, written_again, strange_entry)
    ),
    "enumerator": (
        duplicate_id,
        stored_duplicate_id,
        swapped_ids,
        stored_swapped_ids,
        skipped_id,
        lost_tail,
        lost_anywhere,
        ids_off_by_one,
        lost_id,
        counter_off_by_one,
        counter_falls_back,
        leaked_output,
        repeated_output,
        unexpected_output,
        unstable_id,
        deleted_counter,
        *(plant(role) for role in ("output", "ids-changelog") for plant in (stamped, headed, moved)),
        swapped("output"),
    ),
    "counting": (
        stale_read,
        dirty_read,
        lost_read,
        leaked_output,
        repeated_output,
        *(plant(role) for role in ("output", "last-changelog") for plant in (stamped, headed, moved)),
        swapped("output"),
        valued("last-changelog"),
        missing("last-changelog"),
        strange("last-changelog", 1),
        fallen,
        timed_by_another,
        older,
        deleted_between,
    ),
    "interactive-queries": (
        stale_read,
        dirty_read,
        lost_read,
        repeated_output,
        *(plant("output") for plant in (stamped, headed)),
        stale_answer,
        early_answer,
        unexplained_answer,
    ),
    "dedup": (
        lost_key,
        repeated_key,
        uncommitted_key,
        uncommitted_value,
        lost_state,
        *(plant(role) for role in ("output", "seen-changelog") for plant in (stamped, headed, valued, swapped)),
        *(plant("seen-changelog") for plant in (missing, written_again)),
        strange("seen-changelog", 1),
    ),
    "deleter": (
        false_answer,
        false_again,
        true_twice,
        no_answer,
        leaked_deletion,
        *(plant(role) for role in ("output", "records-changelog") for plant in (stamped, headed, valued, swapped)),
        *(plant("records-changelog") for plant in (missing, written_again)),
        *(strange(role, TRUE) for role in ("output", "records-changelog")),
    ),
    "foreign-key-join": (
        no_result,
        stale_result,
        stray_result,
        *(plant("output") for plant in (stamped, headed, valued)),
    ),
    "global-join": (
        lost_read,
        leaked_output,
        repeated_output,
        *(plant("output") for plant in (stamped, headed, valued, swapped, moved)),
    ),
    "grouped-table": (
        unsubtracted,
        no_sum,
        strange("output", 7),
        *(plant("output") for plant in (stamped, headed, valued)),
    ),
    "outbox": (
        never_released,
        still_held,
        held_again,
        never_held,
        released_again,
        released_early,
        strange_punctuation,
        released_late,
        *(plant("output") for plant in (stamped, headed, swapped, moved)),
        *(plant(BUFFER) for plant in (stamped, headed, valued, swapped)),
        strange(BUFFER, 1),
    ),
    "scans": (
        ghost_key,
        missing_key,
        no_scan,
        scanned_twice,
        unasked_scan,
        *(plant("output") for plant in (stamped, headed, swapped, moved)),
        strange("records-changelog", 1),
    ),
    "stream-join": (
        partial(lost_result, alone=False, anomaly="lost-record"),
        partial(lost_result, alone=True, anomaly="lost-alone"),
        early_result,
        strange_result,
        repeated_result,
        *(plant("output") for plant in (stamped, moved)),
    ),
    "table-join": (
        partial(no_join, total=False),
        partial(no_join, total=True),
        added_twice,
        stale_result,
        stray_result,
        *(plant("output") for plant in (stamped, headed, valued)),
    ),
    "windows": (
        lost_window,
        repeated_window,
        uncounted,
        restamped,
        open_window,
        strange_window,
        moved("output"),
    ),
    "two-topics": (
        partial(with_entry, anomaly="wrong-time"),
        partial(with_entry, anomaly="wrong-value"),
        without_result,
        late_result,
        repeated_result,
        strange_result,
        *(plant("output") for plant in (stamped, moved)),
    ),
    "values": (
        aborted_transaction,
        lost_transaction,
        lost_value,
        repeated_value,
        *(plant(CHANGELOG) for plant in (stamped, headed, valued, swapped)),
    ),
}
NOT_CACHED: dict[str, tuple[Mutate, ...]] = {  # where changelogs are looked at record by record
    "enumerator": (stamped("counter-changelog"), headed("counter-changelog"), swapped("ids-changelog")),
}


def of_records(clean: Clean) -> list[Mutate]:
    """The kinds that there are for the trial."""
    more = () if clean.facts["cached"] else NOT_CACHED.get(clean.check, ())
    return [*MUTATIONS[clean.check], *more]
