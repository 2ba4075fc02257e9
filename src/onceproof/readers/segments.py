"""The promises `atomicity`, `isolation`, `fencing` and `ownership`: transactions, from the log itself.

Sources: KIP-98 (transactions, epochs and sequences), KIP-447 (one producer a thread), KIP-890 (an epoch a transaction).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, zip_longest

from onceproof.model.anomaly import Comparison
from onceproof.model.place import Place
from onceproof.model.record import Facts, Record, Topics
from onceproof.model.segments import (
    ABORT,
    COMMIT,
    COORDINATOR,
    DATA,
    OFFSETS,
    POSITION,
    PREPARE_COMMIT,
    LogEntry,
)
from onceproof.readers.answers import DELETE
from onceproof.readers.comparisons import as_number, records_text
from onceproof.readers.contents import Values, as_it_is, put_or_delete, version
from onceproof.readers.ownership import compare_ownership

Log = tuple[str, int]  # role and partition
QUEUE = "dead-letters"  # a role of trials with the fact `queue`
OF_CLIENTS = ("input", "answers")  # roles of topics to which no task writes
LAST_SEQUENCE = 2**31 - 1  # then 0 follows


@dataclass(frozen=True)
class Effect:
    """The effects that an input record makes a topology write into its partition: a record, or an entry of a store.

    Attributes:
        role: of the topic that it is written to.
        when: for `each` input record, for the `first` of its key, for one that asks to `delete`, for a `version` of a
            table, for one that is `taken`, or for one that is `skipped` as poison.
        once: whether only the last record of a key is looked at: a cached store writes once for several inputs, and
            has the last value of each key written when the transaction commits.
        key: the input's own, if not said.
        value: what the input's value makes of the entry; None if another promise judges it.
    """

    role: str
    when: str = "each"
    once: bool = True
    key: int | None = None
    value: Values | None = None


# What each topology writes (`streams_app`); transactions of any other are judged by their markers only.
EFFECTS = {
    "enumerator": (
        Effect("output", once=False),
        Effect("ids-changelog", "first"),
        Effect("counter-changelog", "first", key=0),
    ),
    "copy": (Effect("output", once=False),),
    "counting": (Effect("output", once=False), Effect("last-changelog", value=as_it_is)),
    "dead-letters": (Effect("output", "taken", once=False), Effect("dead-letters", "skipped", once=False)),
    "dedup": (Effect("output", "first", once=False), Effect("seen-changelog", "first", value=as_it_is)),
    "deleter": (Effect("output", "delete", once=False), Effect("records-changelog", value=put_or_delete)),
    "as-of-join": (Effect("output", once=False), Effect("versions-changelog", "version", value=version)),
    "global-join": (Effect("output", once=False),),
    "scans": (Effect("output", "delete", once=False), Effect("records-changelog", value=put_or_delete)),
    "interactive-queries": (Effect("output", once=False), Effect("last-changelog", value=as_it_is)),
    "values": (Effect("values-changelog", value=as_it_is),),
}


@dataclass
class TransactionPart:
    """The part of a transaction in one log: its batches (in `__consumer_offsets`, positions) and its marker."""

    log: Log
    batches: list[LogEntry] = field(default_factory=list)
    marker: LogEntry | None = None
    decision: LogEntry | None = None

    @property
    def first(self) -> LogEntry:
        """Its first entry, or, if the log holds nothing of it, the decision."""
        return next(entry for entry in (*self.batches, self.marker, self.decision) if entry is not None)

    @property
    def outcome(self) -> str:
        """How it ended here."""
        return _outcome(self.marker)

    @property
    def decided(self) -> str:
        """How it ended by the coordinator's decision."""
        return _outcome(self.decision or self.marker)

    @property
    def offsets(self) -> set[int]:
        """Where its records are."""
        return {offset for batch in self.batches for offset in range(batch.first, batch.last + 1)}

    @property
    def size(self) -> int:
        """How many records it has."""
        return len(self.offsets)


# The producer and the place of the coordinator's decision, None if there is none. Parts are in the order of logs.
Transaction = tuple[int, tuple[int, int] | None]
Transactions = Mapping[Transaction, Sequence[TransactionPart]]


def _outcome(entry: LogEntry | None) -> str:
    if entry is None:
        return "open"
    return "committed" if entry.kind in (COMMIT, PREPARE_COMMIT) else "aborted"


def compare_segments(entries: Sequence[LogEntry], topics: Topics, topology: str, facts: Facts) -> Iterator[Comparison]:
    """Compare what the brokers' log segments hold with what was committed, and with what read_committed readers saw.

    Args:
        entries: of the trial's logs, each log in its order.
        topics: what the readers saw of each topic that is in the logs, by role, each partition in offset order. A
            record that they could not decode has no key.
        topology: which says what input records make it write.
        facts: `ended` is 0 if the drive failed, so that transactions may be open; `punctuated` is 1 if a punctuator
            writes as well, under keys below 0, which no input explains; `queue` is 1 if there is a dead letter queue;
            `waits` is 1 if output is emitted after its input was committed; `idle`: see `ownership`.
    """
    transactions = _transactions(entries)
    seen: dict[Log, dict[int, Record]] = defaultdict(dict)
    for role, records in topics.items():
        for record in records:
            seen[role, record.partition][record.offset] = record
    lacking = {role for role, lacks in (("output", facts.get("waits")), (QUEUE, not facts.get("queue"))) if lacks}
    effects = [effect for effect in EFFECTS.get(topology, ()) if effect.role not in lacking]
    yield from _atomicity(entries, transactions, seen, effects, facts)
    yield from _isolation(entries, transactions, seen)
    yield from _fencing(entries)
    yield from _falling(transactions)
    yield from compare_ownership(_of_input(transactions), topics.get("input", ()), facts)


def select_committed(entries: Iterable[LogEntry]) -> list[LogEntry]:
    """The positions in the input that were committed, in their order."""
    return _of_input(_transactions(entries))


def _transactions(entries: Iterable[LogEntry]) -> Transactions:
    """The parts of each transaction.

    In each of its logs a producer's transactions follow each other, each ended by a marker; so the coordinator's
    decisions about transactions in a log belong to them one by one.
    """
    parts: dict[tuple[Log, int], list[TransactionPart]] = defaultdict(list)
    decisions: dict[tuple[Log, int], list[LogEntry]] = defaultdict(list)
    for entry in entries:
        if entry.role == COORDINATOR:
            if entry.of_role is not None and entry.of_partition is not None:
                decisions[(entry.of_role, entry.of_partition), entry.producer].append(entry)
        elif entry.transactional and entry.producer >= 0:
            # A producer has one transaction at a time (KIP-98), so a marker is the only border: behind it the next
            # begins.
            log = (entry.role, entry.partition)
            of_producer = parts[log, entry.producer]
            if not of_producer or of_producer[-1].marker:
                of_producer.append(TransactionPart(log))
            if entry.kind in (COMMIT, ABORT):
                of_producer[-1].marker = entry
            else:
                of_producer[-1].batches.append(entry)
    found: dict[Transaction, list[TransactionPart]] = defaultdict(list)
    for log, producer in sorted(parts.keys() | decisions.keys()):
        of_log, decided = parts[log, producer], decisions[log, producer]
        # A decision without a part is of a log that holds nothing of its transaction, not even the marker. A part
        # without a decision is of a transaction that is still open.
        of_log += [TransactionPart(log) for _ in decided[len(of_log) :]]
        for part, decision in zip_longest(of_log, decided):
            part.decision = decision
            # The decision is one record for all logs of a transaction, so its place is what they have in common.
            found[producer, None if decision is None else (decision.partition, decision.first)].append(part)
    return found


# --- atomicity -----------------------------------------------------------------------------------------------

Written = tuple[int | None, int | None]  # a key and a value, 0 where the value is not judged
Effects = Counter[Written]


def _atomicity(
    entries: Sequence[LogEntry],
    transactions: Transactions,
    seen: Mapping[Log, Mapping[int, Record]],
    effects: Sequence[Effect],
    facts: Facts,
) -> Iterator[Comparison]:
    """One comparison for each transaction, of its first part that is wrong, or else of its first; and outsiders."""
    due = _due(transactions, seen, effects)
    ended, least = bool(facts["ended"]), 0 if facts.get("punctuated") else None
    judged = {effect.role: effect for effect in effects}
    for transaction, parts in transactions.items():
        # A torn transaction is one failure, however many logs lack something: the first log that is wrong is its
        # witness.
        expected = due.get(transaction, {})
        judged_parts = [
            (part.log, _compare_part(part, _pairs(part, expected, seen, judged, least), ended)) for part in parts
        ]
        absent = expected.keys() - {part.log for part in parts}
        judged_parts += [(log, _nothing(log, _position_of(parts), expected[log])) for log in absent]
        yield min(judged_parts, key=lambda item: (item[1].anomaly is None, item[0]))[1]
    # A task under exactly-once writes nothing outside of a transaction. Only what clients write may be there.
    for entry in entries:
        by_task = entry.kind == POSITION or (entry.kind == DATA and entry.role not in OF_CLIENTS)
        if by_task and not entry.transactional:
            log = (entry.role, entry.partition)
            yield _comparison(log, entry, "torn-transaction", None, "in a transaction", "outside")


def _due(
    transactions: Transactions, seen: Mapping[Log, Mapping[int, Record]], effects: Sequence[Effect]
) -> dict[Transaction, dict[Log, Effects]]:
    """The effects that each committed transaction must have for the inputs whose processing it commits."""
    # A transaction holds the positions in the input next to what was made of it (KIP-98). So the position says which
    # inputs a transaction is about, without any trust in what it wrote: those from the last position up to this one.
    due: dict[Transaction, dict[tuple[Effect, int], list[Written]]] = defaultdict(lambda: defaultdict(list))
    first = _first_offsets(seen)
    reached: dict[int, int] = defaultdict(int)  # in each partition of the input
    for entry, transaction in _positions(transactions):
        partition, position = as_number(entry.of_partition), as_number(entry.position)
        inputs = seen.get(("input", partition), {})
        records = [inputs[offset] for offset in range(reached[partition], position) if offset in inputs]
        for effect in effects:
            if written := [
                (r.key if effect.key is None else effect.key, effect.value(r.value) if effect.value else 0)
                for r in _causes(effect, records, first)
                if r.key is not None
            ]:
                due[transaction][effect, partition] += written
        # A position that falls asks for no input twice here; `fencing` reports it.
        reached[partition] = max(reached[partition], position)
    return {
        transaction: {(effect.role, of): _count(written, effect.once) for (effect, of), written in parts.items()}
        for transaction, parts in due.items()
    }


def _positions(transactions: Transactions) -> list[tuple[LogEntry, Transaction]]:
    """The positions in the input that were committed, in their order, with their transactions."""
    committed = [
        (entry, transaction)
        for transaction, parts in transactions.items()
        for part in parts
        if part.log[0] == OFFSETS and part.decided == "committed"
        for entry in part.batches
        if entry.of_role == "input"
    ]
    return sorted(committed, key=lambda item: (item[0].partition, item[0].first))


def _of_input(transactions: Transactions) -> list[LogEntry]:
    return [entry for entry, _ in _positions(transactions)]


def _position_of(parts: Iterable[TransactionPart]) -> LogEntry:
    """The first position in the input that a transaction commits; there is one if it had anything to write."""
    return next(b for part in parts if part.log[0] == OFFSETS for b in part.batches if b.of_role == "input")


def _first_offsets(seen: Mapping[Log, Mapping[int, Record]]) -> dict[tuple[int, int | None], int]:
    """Where each key first appears in its partition of the input."""
    first: dict[tuple[int, int | None], int] = {}
    for (role, partition), records in seen.items():
        if role == "input":
            for offset, record in records.items():
                first.setdefault((partition, record.key), offset)
    return first


def _causes(effect: Effect, records: Iterable[Record], first: Mapping[tuple[int, int | None], int]) -> Iterator[Record]:
    """The input records that have the effect."""
    if effect.when == "first":
        return (record for record in records if first[record.partition, record.key] == record.offset)
    if effect.when in ("taken", "skipped"):
        return (record for record in records if (as_number(record.value) < 0) == (effect.when == "skipped"))
    if effect.when == "version":
        return (record for record in records if as_number(record.value) <= 0)
    return (record for record in records if effect.when == "each" or record.value == DELETE)


def _count(written: Sequence[Written], once: bool) -> Effects:
    """How often each was written; of entries of a store, the last of each key."""
    return Counter(dict(written).items()) if once else Counter(written)


def _pairs(
    part: TransactionPart,
    due: Mapping[Log, Effects],
    seen: Mapping[Log, Mapping[int, Record]],
    judged: Mapping[str, Effect],
    least: int | None,
) -> tuple[Effects, Effects] | None:
    """The due and the found content of a part; None if nothing is known to be due, or not everything was read.

    What was not seen or not decoded is not for this promise to judge. Keys below `least` are ignored.
    """
    records = seen.get(part.log, {})
    offsets = chain.from_iterable(range(batch.first, batch.last + 1) for batch in part.batches)
    there = [records[offset] for offset in offsets if offset in records]
    effect = judged.get(part.log[0])
    if effect is None or len(there) < part.size or any(record.key is None for record in there):
        return None
    written = [
        (record.key, record.value if effect.value else 0)
        for record in there
        if least is None or as_number(record.key) >= least
    ]
    return due.get(part.log, Counter()), _count(written, effect.once)


def _compare_part(part: TransactionPart, pairs: tuple[Effects, Effects] | None, ended: bool) -> Comparison:
    # While the application may still run, an open transaction is its right. Once all has ended and been waited for, it
    # holds up every reader behind it: a hanging transaction (KIP-664).
    if part.marker is None:
        anomaly = "hanging-transaction" if ended else None
        expected = "committed or aborted" if part.decision is None else part.decided
        return _comparison(part.log, part.first, anomaly, None, expected, f"open, {records_text(part.size)}")
    if part.outcome != part.decided:
        return _comparison(part.log, part.first, "torn-transaction", None, part.decided, part.outcome)
    if part.decided != "committed" or pairs is None:
        return _comparison(part.log, part.first, None, None, part.decided, part.decided)
    due, written = pairs
    missing, foreign = due - written, written - due
    observed = [f"committed, {_effects_text(written)}"]
    observed += [f"{missing.total()} missing"] if missing else []
    observed += [f"{foreign.total()} foreign"] if foreign else []
    anomaly = "torn-transaction" if missing or foreign else None
    return _comparison(
        part.log,
        part.first,
        anomaly,
        _least(missing | foreign),
        f"committed, {_effects_text(due)}",
        ", ".join(observed),
    )


def _nothing(log: Log, position: LogEntry, due: Effects) -> Comparison:
    """A log to which the transaction wrote nothing, though the position that it commits demands something."""
    return _comparison(log, position, "torn-transaction", _least(due), f"committed, {_effects_text(due)}", "nothing")


def _least(effects: Effects) -> int | None:
    return min((key for key, _ in effects if key is not None), default=None)


def _effects_text(effects: Effects) -> str:
    return "1 effect" if effects.total() == 1 else f"{effects.total()} effects"


def _comparison(
    log: Log, entry: LogEntry, anomaly: str | None, key: int | None, expected: str, observed: str
) -> Comparison:
    return Comparison("atomicity", anomaly, log[1], key, _place(entry), expected, observed)


def _place(entry: LogEntry) -> str:
    return str(Place(entry.role, entry.partition, entry.first))


# --- isolation -----------------------------------------------------------------------------------------------


def _isolation(
    entries: Sequence[LogEntry], transactions: Transactions, seen: Mapping[Log, Mapping[int, Record]]
) -> Iterator[Comparison]:
    """One comparison for each part of a transaction, one for what each log holds outside of any, and strangers."""
    known: dict[Log, set[int]] = defaultdict(set)
    outside: dict[Log, list[LogEntry]] = defaultdict(list)
    for entry in entries:
        if entry.kind == DATA and not entry.transactional:
            outside[entry.role, entry.partition].append(entry)
    written = [part for parts in transactions.values() for part in parts if part.log[0] != OFFSETS and part.batches]
    for part in [*written, *(TransactionPart(log, batches) for log, batches in outside.items())]:
        offsets = part.offsets
        known[part.log] |= offsets
        visible = len(offsets & seen.get(part.log, {}).keys())
        # By the marker of this very log, and not by the decision: a reader sees no more than the log.
        is_committed = part.outcome == "committed" or not part.batches[0].transactional
        yield _compare_isolated(part.log, part.batches[0].first, len(offsets) if is_committed else 0, visible)
    for log, records in seen.items():
        strangers = records.keys() - known[log]
        if strangers:
            yield _compare_isolated(log, min(strangers), 0, len(strangers))


def _compare_isolated(log: Log, offset: int, expected: int, visible: int) -> Comparison:
    anomaly = None if expected == visible else "isolation-breach"
    texts = (f"{records_text(expected)} visible", f"{records_text(visible)} visible")
    return Comparison("isolation", anomaly, log[1], None, str(Place(*log, offset)), *texts)


# --- fencing -------------------------------------------------------------------------------------------------


def _fencing(entries: Iterable[LogEntry]) -> Iterator[Comparison]:
    """One comparison for each producer and log."""
    writers: dict[tuple[Log, int], list[LogEntry]] = defaultdict(list)
    for entry in entries:
        if entry.role != COORDINATOR and entry.producer >= 0:
            writers[(entry.role, entry.partition), entry.producer].append(entry)
    for written in writers.values():
        breach = next(_breaches(written), None)
        entry, expected, observed = breach or (written[0], "growing", "growing")
        anomaly = "fencing-breach" if breach else None
        yield Comparison("fencing", anomaly, entry.partition, None, _place(entry), expected, observed)


def _breaches(written: Sequence[LogEntry]) -> Iterator[tuple[LogEntry, str, str]]:
    """Where the epoch falls, or the sequence does not follow the previous one or, in a new epoch, is not 0.

    The group coordinator writes positions for the producer, without its sequences.
    """
    # An epoch rises when a producer is fenced or starts again (KIP-98, KIP-360), and with each transaction of version 2
    # (KIP-890); each time sequences begin with 0. A zombie that still writes has an older epoch than what stands there.
    epoch, of_sequence, sequence = -1, -1, -1  # the highest epoch; the epoch of the last sequence, and that
    for entry in written:
        if entry.epoch < epoch:
            yield entry, f"epoch {epoch} or more", f"epoch {entry.epoch}"
        epoch = max(epoch, entry.epoch)
        if entry.kind == DATA:
            due = 0 if entry.epoch != of_sequence or sequence == LAST_SEQUENCE else sequence + 1
            if entry.sequence != due:
                yield entry, f"sequence {due}", f"sequence {entry.sequence}"
            of_sequence, sequence = entry.epoch, entry.last_sequence


def _falling(transactions: Transactions) -> Iterator[Comparison]:
    """One comparison for each partition of the input: the positions that are committed never fall."""
    of_partition: dict[int, list[LogEntry]] = defaultdict(list)
    for entry, _ in _positions(transactions):
        of_partition[as_number(entry.of_partition)].append(entry)
    for partition, committed in of_partition.items():
        reached = accumulate((as_number(entry.position) for entry in committed), max)
        pairs = zip(committed, reached, strict=True)
        fallen = next(((entry, most) for entry, most in pairs if as_number(entry.position) < most), None)
        if fallen is None:
            yield Comparison("fencing", None, partition, None, _place(committed[0]), "growing", "growing")
        else:
            entry, most = fallen
            texts = f"position {most} or more", f"position {entry.position}"
            yield Comparison("fencing", "fencing-breach", partition, None, _place(entry), *texts)
