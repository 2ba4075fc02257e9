"""Specimens of brokers' log segments: two transactions of the topology `counting`, and exactly what must be found.

All are bent from `HEALTHY`: the keys 1, 2, 1 and then 3, 2 go in; each transaction writes to the output and to a cached
store's changelog, and commits its position in the input. A marker takes up an offset.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from onceproof.model.anomaly import Witness
from onceproof.model.record import Record
from onceproof.model.segments import LogEntry

OUTPUT, CHANGELOG, OFFSETS, COORDINATOR = "output", "last-changelog", "__consumer_offsets", "__transaction_state"
PRODUCER = 7


def data(role: str, first: int, last: int, sequence: int, *, epoch: int = 0, producer: int = PRODUCER) -> LogEntry:
    """A batch of a transaction."""
    return LogEntry("data", role, 0, first, last, producer, epoch, sequence, sequence + last - first)


def outside(role: str, first: int, last: int) -> LogEntry:
    """A batch of no transaction."""
    return LogEntry("data", role, 0, first, last, -1, -1, transactional=False)


def marker(role: str, offset: int, kind: str = "COMMIT", *, epoch: int = 0, producer: int = PRODUCER) -> LogEntry:
    """The end of a transaction in a log."""
    return LogEntry(kind, role, 0, offset, offset, producer, epoch)


def position(offset: int, reached: int, *, epoch: int = 0, producer: int = PRODUCER, at: int = 0) -> LogEntry:
    """A position in the input that is committed."""
    return LogEntry(
        "position", OFFSETS, 0, offset, offset, producer, epoch, of_role="input", of_partition=0, position=reached,
        timestamp=at,
    )  # fmt: skip


def decisions(
    offset: int, kind: str = "PrepareCommit", roles: Sequence[str] = (OUTPUT, CHANGELOG, OFFSETS), epoch: int = 0
) -> list[LogEntry]:
    """What the coordinator decided about a transaction in these logs."""
    return [
        LogEntry(kind, COORDINATOR, 0, offset, offset, PRODUCER, epoch, of_role=role, of_partition=0) for role in roles
    ]


def records(keys: Mapping[int, int | None]) -> list[Record]:
    """Records with these keys by their offsets; one without a key could not be decoded."""
    return [Record(0, offset, key, 0) for offset, key in keys.items()]


def valued(entries: Mapping[int, tuple[int, int | None]]) -> list[Record]:
    """Records with these keys and values by their offsets."""
    return [Record(0, offset, *entry) for offset, entry in entries.items()]


@dataclass(frozen=True)
class Specimen:
    """The log of one trial, what readers saw of it, and the witnesses that must be found, no more and no less."""

    name: str
    entries: list[LogEntry]
    topics: dict[str, list[Record]]
    ended: int = 1
    punctuated: int = 0
    waits: int = 0
    idle: int | None = None
    witnesses: tuple[Witness, ...] = ()

    @property
    def facts(self) -> dict[str, int]:
        """What the check must know besides the log."""
        facts = {"ended": self.ended, "punctuated": self.punctuated, "waits": self.waits, "partitions": 1}
        return facts if self.idle is None else {**facts, "idle": self.idle}

    def without(self, *gone: LogEntry) -> list[LogEntry]:
        """Its entries without some."""
        return [entry for entry in self.entries if entry not in gone]

    def changed(self, old: LogEntry, **fields: Any) -> list[LogEntry]:
        """Its entries, one of them with other fields."""
        return [replace(entry, **fields) if entry == old else entry for entry in self.entries]

    def timed(self, *commits: int, sent: Mapping[int, int]) -> dict[str, Any]:
        """Its entries and topics, its positions committed and the input sent at these times, the latter by offset."""
        times = iter(commits)
        entries = [
            replace(entry, timestamp=next(times)) if entry.kind == "position" else entry for entry in self.entries
        ]
        inputs = [record._replace(timestamp=sent.get(record.offset, 0)) for record in self.topics["input"]]
        return {"entries": entries, "topics": {**self.topics, "input": inputs}}

    def seen(self, role: str, keys: Mapping[int, int | None]) -> dict[str, list[Record]]:
        """What was seen, with other records in one role."""
        return {**self.topics, role: records(keys)}


HEALTHY = Specimen(
    "healthy: two committed transactions",
    [
        outside("input", 0, 4),
        data(OUTPUT, 0, 1, 0),
        data(OUTPUT, 2, 2, 2),
        marker(OUTPUT, 3),
        data(OUTPUT, 4, 5, 3),
        marker(OUTPUT, 6),
        data(CHANGELOG, 0, 1, 0),
        marker(CHANGELOG, 2),
        data(CHANGELOG, 3, 4, 2),
        marker(CHANGELOG, 5),
        position(0, 3),
        marker(OFFSETS, 1),
        position(2, 5),
        marker(OFFSETS, 3),
        *decisions(3),
        *decisions(8),
    ],
    {
        "input": records({0: 1, 1: 2, 2: 1, 3: 3, 4: 2}),
        OUTPUT: records({0: 1, 1: 2, 2: 1, 4: 3, 5: 2}),
        CHANGELOG: records({0: 1, 1: 2, 3: 3, 4: 2}),
    },
)
# According to KIP-890: each transaction has its own epoch, its marker the next one, and sequences begin anew.
EPOCH_A_TRANSACTION = replace(
    HEALTHY,
    name="an epoch for each transaction",
    entries=[
        outside("input", 0, 4),
        data(OUTPUT, 0, 2, 0),
        marker(OUTPUT, 3, epoch=1),
        data(OUTPUT, 4, 5, 0, epoch=1),
        marker(OUTPUT, 6, epoch=2),
        data(CHANGELOG, 0, 1, 0),
        marker(CHANGELOG, 2, epoch=1),
        data(CHANGELOG, 3, 4, 0, epoch=1),
        marker(CHANGELOG, 5, epoch=2),
        position(0, 3),
        marker(OFFSETS, 1, epoch=1),
        position(2, 5, epoch=1),
        marker(OFFSETS, 3, epoch=2),
        *decisions(3, epoch=1),
        *decisions(8, epoch=2),
    ],
)


def found(anomaly: str, place: str, expected: str, observed: str, key: int | None = None) -> Witness:
    """A witness."""
    return Witness(anomaly, 0, key, (), (place,), expected, observed)


def other_value(key: int) -> Witness:
    """Of the first transaction: another value of the key than the one that is due."""
    texts = "committed, 2 effects", "committed, 2 effects, 1 missing, 1 foreign"
    return found("torn-transaction", "last-changelog/0@0", *texts, key)


ANOMALOUS = [
    replace(
        HEALTHY,
        name="torn: an output record of a committed transaction is missing",
        entries=[
            *(e for e in HEALTHY.entries if e.role != OUTPUT),
            data(OUTPUT, 0, 1, 0),
            marker(OUTPUT, 2),
            data(OUTPUT, 4, 5, 2),
            marker(OUTPUT, 6),
        ],
        topics=HEALTHY.seen(OUTPUT, {0: 1, 1: 2, 4: 3, 5: 2}),
        witnesses=(
            found("torn-transaction", "output/0@0", "committed, 3 effects", "committed, 2 effects, 1 missing", 1),
        ),
    ),
    replace(
        HEALTHY,
        name="torn: a transaction put out what belongs to an input that the next one commits",
        entries=HEALTHY.changed(position(0, 3), position=2),
        witnesses=(
            found("torn-transaction", "output/0@0", "committed, 2 effects", "committed, 3 effects, 1 foreign", 1),
            found(
                "torn-transaction", "last-changelog/0@3", "committed, 3 effects", "committed, 2 effects, 1 missing", 1
            ),
        ),
    ),
    replace(
        HEALTHY,
        name="torn: a transaction leaves an older value of a key, which the next one replaces",
        topics={
            **HEALTHY.topics,
            "input": valued({0: (1, 10), 1: (2, 20), 2: (1, 11), 3: (3, 30), 4: (2, 21)}),
            CHANGELOG: valued({0: (1, 10), 1: (2, 20), 3: (3, 30), 4: (2, 21)}),
        },
        witnesses=(other_value(1),),
    ),
    replace(
        HEALTHY,
        name="torn: a transaction leaves a tombstone of a key that nothing deleted",
        topics={
            **HEALTHY.topics,
            CHANGELOG: valued({0: (1, 0), 1: (2, None), 3: (3, 0), 4: (2, 0)}),
        },
        witnesses=(other_value(2),),
    ),
    replace(
        HEALTHY,
        name="torn: nothing was written to the changelog",
        entries=[
            *(e for e in HEALTHY.without(*decisions(8)) if e.role != CHANGELOG or e.first < 3),
            *decisions(8, roles=(OUTPUT, OFFSETS)),
        ],
        topics=HEALTHY.seen(CHANGELOG, {0: 1, 1: 2}),
        witnesses=(found("torn-transaction", "__consumer_offsets/0@2", "committed, 2 effects", "nothing", 2),),
    ),
    replace(
        HEALTHY,
        name="torn: one log has an abort, and its readers saw nothing",
        entries=HEALTHY.changed(marker(OUTPUT, 6), kind="ABORT"),
        topics=HEALTHY.seen(OUTPUT, {0: 1, 1: 2, 2: 1}),
        witnesses=(found("torn-transaction", "output/0@4", "committed", "aborted"),),
    ),
    replace(
        HEALTHY,
        name="torn, and isolation: one log has an abort, and its readers saw the records all the same",
        entries=HEALTHY.changed(marker(OUTPUT, 6), kind="ABORT"),
        witnesses=(
            found("torn-transaction", "output/0@4", "committed", "aborted"),
            found("isolation-breach", "output/0@4", "0 records visible", "2 records visible"),
        ),
    ),
    replace(
        HEALTHY,
        name="torn: a record that belongs to no transaction",
        entries=[*HEALTHY.entries, outside(OUTPUT, 7, 7)],
        topics=HEALTHY.seen(OUTPUT, {0: 1, 1: 2, 2: 1, 4: 3, 5: 2, 7: 9}),
        witnesses=(found("torn-transaction", "output/0@7", "in a transaction", "outside"),),
    ),
    replace(
        HEALTHY,
        name="hanging: the last marker of the output is missing, and nobody saw what is behind it",
        entries=HEALTHY.without(marker(OUTPUT, 6)),
        topics=HEALTHY.seen(OUTPUT, {0: 1, 1: 2, 2: 1}),
        witnesses=(found("hanging-transaction", "output/0@4", "committed", "open, 2 records"),),
    ),
    replace(
        HEALTHY,
        name="hanging: a record after the last marker, about which nothing was decided",
        entries=[*HEALTHY.entries, data(OUTPUT, 7, 7, 5)],
        witnesses=(found("hanging-transaction", "output/0@7", "committed or aborted", "open, 1 record"),),
    ),
    replace(
        HEALTHY,
        name="hanging: a log to which nothing was written has no marker either",
        entries=[*HEALTHY.entries, *decisions(12, "PrepareAbort", (CHANGELOG,))],
        witnesses=(found("hanging-transaction", "__transaction_state/0@12", "aborted", "open, 0 records"),),
    ),
    replace(
        HEALTHY,
        name="isolation: a reader did not see a committed record",
        topics=HEALTHY.seen(OUTPUT, {0: 1, 1: 2, 4: 3, 5: 2}),
        witnesses=(found("isolation-breach", "output/0@0", "3 records visible", "2 records visible"),),
    ),
    replace(
        HEALTHY,
        name="isolation: a reader saw what no log holds",
        topics=HEALTHY.seen(OUTPUT, {0: 1, 1: 2, 2: 1, 4: 3, 5: 2, 7: 8, 8: 9}),
        witnesses=(found("isolation-breach", "output/0@7", "0 records visible", "2 records visible"),),
    ),
    replace(
        HEALTHY,
        name="fencing: a sequence twice",
        entries=HEALTHY.changed(data(OUTPUT, 2, 2, 2), sequence=1, last_sequence=1),
        witnesses=(found("fencing-breach", "output/0@2", "sequence 2", "sequence 1"),),
    ),
    replace(
        EPOCH_A_TRANSACTION,
        name="fencing: the epoch of the transaction before, after its marker",
        entries=EPOCH_A_TRANSACTION.changed(data(OUTPUT, 4, 5, 0, epoch=1), epoch=0, sequence=3, last_sequence=4),
        witnesses=(found("fencing-breach", "output/0@4", "epoch 1 or more", "epoch 0"),),
    ),
    replace(
        EPOCH_A_TRANSACTION,
        name="fencing: a new epoch does not begin with sequence 0",
        entries=EPOCH_A_TRANSACTION.changed(data(OUTPUT, 4, 5, 0, epoch=1), sequence=3, last_sequence=4),
        witnesses=(found("fencing-breach", "output/0@4", "sequence 0", "sequence 3"),),
    ),
    replace(
        HEALTHY,
        name="fencing: a producer commits a position again that another one is past",
        entries=[
            *HEALTHY.entries,
            position(4, 3, producer=8),
            marker(OFFSETS, 5, producer=8),
            *(replace(entry, producer=8) for entry in decisions(12, roles=(OFFSETS,))),
        ],
        witnesses=(found("fencing-breach", "__consumer_offsets/0@4", "position 5 or more", "position 3"),),
    ),
    replace(
        HEALTHY,
        name="idle: a record waited behind a commit, and none followed for too long",
        **HEALTHY.timed(20_000, 65_210, sent={3: 19_000, 4: 60_000}),
        idle=6_000,
        witnesses=(
            found("idle-partition", "input/0@3", "records wait for 6,000 ms at most", "they waited for 45,210 ms"),
        ),
    ),
    replace(
        HEALTHY,
        name="idle: a commit that moves nothing, and one that is aborted, end no wait",
        entries=[
            *(e for e in HEALTHY.without(*decisions(8)) if e.role != OFFSETS),
            position(0, 3, at=20_000),
            marker(OFFSETS, 1),
            position(2, 3, at=25_000),
            marker(OFFSETS, 3),
            position(4, 5, at=30_000),
            marker(OFFSETS, 5, "ABORT"),
            position(6, 5, at=36_001),
            marker(OFFSETS, 7),
            *decisions(6, roles=(OFFSETS,)),
            *decisions(7, "PrepareAbort", roles=(OFFSETS,)),
            *decisions(8),
        ],
        topics={**HEALTHY.topics, "input": [r._replace(timestamp=30_000) for r in HEALTHY.topics["input"]]},
        idle=6_000,
        witnesses=(
            found("idle-partition", "input/0@3", "records wait for 6,000 ms at most", "they waited for 6,001 ms"),
        ),
    ),
]

LOOK_ALIKES = [
    HEALTHY,
    EPOCH_A_TRANSACTION,
    replace(
        HEALTHY,
        name="a transaction that is aborted as a whole, with a position that does not count, and done again",
        entries=[
            outside("input", 0, 4),
            data(OUTPUT, 0, 2, 0),
            marker(OUTPUT, 3, "ABORT"),
            data(OUTPUT, 4, 8, 3),
            marker(OUTPUT, 9),
            data(CHANGELOG, 0, 0, 0),
            marker(CHANGELOG, 1, "ABORT"),
            data(CHANGELOG, 2, 4, 1),
            marker(CHANGELOG, 5),
            position(0, 3),
            marker(OFFSETS, 1, "ABORT"),
            position(2, 5),
            marker(OFFSETS, 3),
            *decisions(3, "PrepareAbort"),
            *decisions(8),
        ],
        topics={
            "input": HEALTHY.topics["input"],
            OUTPUT: records({4: 1, 5: 2, 6: 1, 7: 3, 8: 2}),
            CHANGELOG: records({2: 1, 3: 2, 4: 3}),
        },
    ),
    replace(
        HEALTHY,
        name="two producers, whose transactions lie within each other and end in another order",
        entries=[
            outside("input", 0, 4),
            data(OUTPUT, 0, 2, 0),
            data(OUTPUT, 3, 4, 0, producer=8),
            marker(OUTPUT, 5, producer=8),
            marker(OUTPUT, 6),
            data(CHANGELOG, 0, 1, 0, producer=8),
            data(CHANGELOG, 2, 3, 0),
            marker(CHANGELOG, 4),
            marker(CHANGELOG, 5, producer=8),
            position(0, 3),
            position(1, 5, producer=8),
            marker(OFFSETS, 2, producer=8),
            marker(OFFSETS, 3),
            *decisions(3),
            *(replace(entry, producer=8) for entry in decisions(4)),
        ],
        topics={
            "input": HEALTHY.topics["input"],
            OUTPUT: records({0: 1, 1: 2, 2: 1, 3: 3, 4: 2}),
            CHANGELOG: records({0: 2, 1: 3, 2: 1, 3: 2}),
        },
    ),
    replace(
        HEALTHY,
        name="a store that is not cached is written once for each input",
        entries=[
            *(e for e in HEALTHY.entries if e.role != CHANGELOG),
            data(CHANGELOG, 0, 2, 0),
            marker(CHANGELOG, 3),
            data(CHANGELOG, 4, 5, 3),
            marker(CHANGELOG, 6),
        ],
        topics=HEALTHY.seen(CHANGELOG, {0: 1, 1: 2, 2: 1, 4: 3, 5: 2}),
    ),
    replace(
        HEALTHY,
        name="an entry falls out of the cache, and comes again with the last value of the transaction",
        entries=[
            *(e for e in HEALTHY.entries if e.role != CHANGELOG),
            data(CHANGELOG, 0, 2, 0),
            marker(CHANGELOG, 3),
            data(CHANGELOG, 4, 5, 3),
            marker(CHANGELOG, 6),
        ],
        topics={
            **HEALTHY.topics,
            "input": valued({0: (1, 10), 1: (2, 20), 2: (1, 11), 3: (3, 30), 4: (2, 21)}),
            CHANGELOG: valued({0: (1, 10), 1: (2, 20), 2: (1, 11), 4: (2, 21), 5: (3, 30)}),
        },
    ),
    replace(
        HEALTHY,
        name="a log that belongs to a transaction, and got nothing but the marker",
        entries=[*HEALTHY.entries, marker(CHANGELOG, 6, "ABORT"), *decisions(12, "PrepareAbort", (CHANGELOG,))],
    ),
    replace(
        HEALTHY,
        name="a position that falls and is aborted, and one that is committed twice",
        entries=[
            *HEALTHY.entries,
            position(4, 3, producer=8),
            marker(OFFSETS, 5, "ABORT", producer=8),
            position(6, 5, producer=8),
            marker(OFFSETS, 7, producer=8),
            *(replace(entry, producer=8) for entry in decisions(12, "PrepareAbort", roles=(OFFSETS,))),
            *(replace(entry, producer=8) for entry in decisions(13, roles=(OFFSETS,))),
        ],
    ),
    replace(
        HEALTHY,
        name="a transaction is open because the drive failed",
        entries=[*HEALTHY.entries, data(OUTPUT, 7, 7, 5)],
        ended=0,
    ),
    replace(
        HEALTHY,
        name="a punctuator writes as well",
        entries=[
            *(e for e in HEALTHY.entries if e.role != CHANGELOG or e.first < 3),
            data(CHANGELOG, 3, 5, 2),
            marker(CHANGELOG, 6),
        ],
        topics=HEALTHY.seen(CHANGELOG, {0: 1, 1: 2, 3: 3, 4: 2, 5: -1}),
        punctuated=1,
    ),
    replace(
        HEALTHY,
        name="a record waits, and comes out later than its input is committed",
        entries=[
            *(e for e in HEALTHY.entries if e.role != OUTPUT),
            *(data(OUTPUT, 0, 1, 0), marker(OUTPUT, 2), data(OUTPUT, 3, 5, 2), marker(OUTPUT, 6)),
        ],
        topics=HEALTHY.seen(OUTPUT, {0: 1, 1: 2, 3: 1, 4: 3, 5: 2}),
        waits=1,
    ),
    replace(
        HEALTHY,
        name="what readers saw and could not decode, in the input and behind it",
        topics={
            **HEALTHY.seen("input", {0: None, 1: 2, 2: 1, 3: 3, 4: 2}),
            OUTPUT: records({0: 1, 1: None, 2: 1, 4: 3, 5: 2}),
            CHANGELOG: records({0: 1, 1: 2, 3: None, 4: 2}),
        },
    ),
    replace(
        HEALTHY,
        name="an input that had no record waiting: nothing was committed for long, as nothing was sent",
        **HEALTHY.timed(20_000, 65_210, sent={3: 65_000, 4: 65_100}),
        idle=6_000,
    ),
    replace(
        HEALTHY,
        name="a partition was idle for as long as a session, which the fault allows",
        **HEALTHY.timed(20_000, 65_210, sent={3: 19_000, 4: 60_000}),
        idle=45_210,
    ),
    replace(
        HEALTHY,
        name="the time until the first commit is that of the start",
        **HEALTHY.timed(65_210, 65_310, sent={3: 65_000, 4: 65_100}),
        idle=6_000,
    ),
    replace(
        HEALTHY,
        name="a partition was idle in a trial whose drive failed before anything was allowed",
        **HEALTHY.timed(20_000, 65_210, sent={3: 19_000, 4: 60_000}),
        ended=0,
    ),
    replace(HEALTHY, name="an empty log", idle=6_000, entries=[], topics={role: [] for role in HEALTHY.topics}),
]
WRAPPED = replace(
    HEALTHY,
    name="after the greatest sequence comes 0",
    entries=[
        replace(e, sequence=2**31 - 1, last_sequence=2**31 - 1) if e == data(OUTPUT, 2, 2, 2) else
        replace(e, sequence=0, last_sequence=2**31 - 2) if e == data(OUTPUT, 0, 1, 0) else
        replace(e, sequence=0, last_sequence=1) if e == data(OUTPUT, 4, 5, 3) else e
        for e in HEALTHY.entries
    ],
)  # fmt: skip
LOOK_ALIKES.append(WRAPPED)
SPECIMENS = [*ANOMALOUS, *LOOK_ALIKES]
