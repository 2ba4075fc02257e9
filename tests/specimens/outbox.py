"""Specimens of the topology `outbox`: a handful of records each, and exactly what must be found in them.

Input `(partition, offset, key, wait, timestamp)`; output `(partition, offset, key, wait, waited, timestamp)`. The
interval is 100 ms. All are bent from a healthy trial: in partition 0, the record of key 2 waits for the one before it,
and the punctuations come at 1,230 and 1,450; in partition 1 at 2,400. In each the last record is due at once.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from onceproof.model.anomaly import Witness
from onceproof.scenarios.punctuators import CLOCKS

Record = tuple[int, int, int, int | None, int]
Result = tuple[int, int, int, int, int, int]
STREAM_TIME, WALL_CLOCK = CLOCKS


@dataclass(frozen=True)
class Specimen:
    """The records of one trial and the witnesses that a reader must find, no more and no less."""

    name: str
    input: list[Record]
    output: list[Result]
    clock: str = STREAM_TIME
    ended: bool = True
    changelog: list[Record] | None = None  # what is put and deleted, if not given
    witnesses: list[Witness] = field(default_factory=list)

    @property
    def topics(self) -> dict[str, list[Record]]:
        """The records by role."""
        output = [(p, offset, key, wait << 32 | waited, made) for p, offset, key, wait, waited, made in self.output]
        changelog = put_and_deleted(self.input) if self.changelog is None else self.changelog
        return {"input": self.input, "output": [*output], "buffer-changelog": changelog}

    @property
    def facts(self) -> dict[str, int]:
        """What the check must know besides the records."""
        own = {"clock": CLOCKS.index(self.clock), "interval": 100, "ended": int(self.ended)}
        return {"partitions": 2, "exactly_once": 1, "cached": 0, **own}


def put_and_deleted(records: list[Record]) -> list[Record]:
    """The changelog of a buffer that all of them left: tombstones have the times of punctuations."""
    deleted = [(p, 100 + offset, key, None, 9_999) for p, offset, key, *_ in records]
    return sorted([*records, *deleted])


HEALTHY = Specimen(
    name="healthy",
    input=[
        *((0, 0, 1, 150, 1_000), (0, 1, 2, 20, 1_090), (0, 2, 3, 400, 1_050), (0, 3, 5, 0, 1_230)),
        (0, 4, 7, 0, 1_450),
        *((1, 0, 4, 300, 2_010), (1, 1, 6, 10, 2_000), (1, 2, 8, 0, 2_400)),
    ],
    output=[
        *((0, 0, 1, 150, 230, 1_000), (0, 1, 2, 20, 140, 1_090), (0, 3, 3, 400, 400, 1_050), (0, 4, 5, 0, 220, 1_230)),
        (0, 5, 7, 0, 0, 1_450),
        *((1, 0, 4, 300, 390, 2_010), (1, 1, 6, 10, 400, 2_000), (1, 2, 8, 0, 0, 2_400)),
    ],
)
BY_WALL_CLOCK = replace(
    HEALTHY,
    name="by the wall clock",
    clock=WALL_CLOCK,
    output=[
        *((0, 0, 1, 150, 223, 1_000), (0, 1, 2, 20, 233, 1_090), (0, 3, 3, 400, 471, 1_050), (0, 4, 5, 0, 291, 1_230)),
        (0, 5, 7, 0, 171, 1_450),
        *((1, 0, 4, 300, 311, 2_010), (1, 1, 6, 10, 321, 2_000), (1, 2, 8, 0, 33, 2_400)),
    ],
)


def results(healthy: Specimen, changes: Mapping[tuple[int, int], Result | None]) -> list[Result]:
    """The healthy output with other results at these places; None takes them away."""
    changed = (changes.get(record[:2], record) for record in healthy.output)
    return [record for record in changed if record is not None]


def changelog(change: Callable[[Record], Record | None], *more: Record) -> list[Record]:
    """The healthy changelog, with changes."""
    changed = map(change, put_and_deleted(HEALTHY.input))
    return sorted([*(record for record in changed if record is not None), *more])


def found(anomaly: str, key: int, place: str, expected: str, observed: str, partition: int = 0) -> Witness:
    """A witness of a record."""
    return Witness(anomaly, partition, key, (), (place,), expected, observed)


ANOMALOUS = [
    replace(
        HEALTHY,
        name="unreleased: a record never came out",
        output=results(HEALTHY, {(0, 1): None}),
        witnesses=[found("unreleased", 2, "input/0@1", "1 record", "0 records")],
    ),
    replace(
        HEALTHY,
        name="unreleased: the last records never came out",
        output=results(HEALTHY, {(1, 1): None, (1, 2): None}),
        witnesses=[
            found("unreleased", 6, "input/1@1", "1 record", "0 records", partition=1),
            found("unreleased", 8, "input/1@2", "1 record", "0 records", partition=1),
        ],
    ),
    replace(
        HEALTHY,
        name="unreleased: a record that came out is still in its buffer",
        changelog=changelog(lambda record: None if record[:2] == (0, 102) else record),
        witnesses=[found("unreleased", 3, "buffer-changelog/0@2", "nothing", "400")],
    ),
    replace(
        HEALTHY,
        name="unreleased and duplicate-output: a record was put again when it had left",
        changelog=changelog(lambda record: record, (0, 110, 2, 20, 1_090)),
        witnesses=[
            found("unreleased", 2, "buffer-changelog/0@110", "nothing", "20"),
            found("duplicate-output", 2, "buffer-changelog/0@110", "1 record", "2 records"),
        ],
    ),
    replace(
        HEALTHY,
        name="duplicate-output: a record was released again",
        output=[*HEALTHY.output, (0, 6, 2, 20, 360, 1_090)],
        witnesses=[found("duplicate-output", 2, "output/0@6", "1 record", "2 records")],
    ),
    replace(
        HEALTHY,
        name="duplicate-output: at once, by one punctuation",
        output=[*HEALTHY.output, (0, 2, 2, 20, 140, 1_090)],
        witnesses=[found("duplicate-output", 2, "output/0@2", "1 record", "2 records")],
    ),
    replace(
        HEALTHY,
        name="unexpected-record: of nobody",
        output=[*HEALTHY.output, (0, 9, 77, 5, 10, 1_000)],
        witnesses=[found("unexpected-record", 77, "output/0@9", "nothing", "1 record")],
    ),
    replace(
        HEALTHY,
        name="early-release: before it was due",
        output=results(HEALTHY, {(1, 0): (1, 0, 4, 300, 200, 2_010)}),
        witnesses=[found("early-release", 4, "output/1@0", "at 2310 or later", "at 2210", partition=1)],
    ),
    replace(
        HEALTHY,
        name="early-release: when it was due itself, and the one before it was not",
        output=[
            *((0, 1, 2, 20, 140, 1_090), (0, 3, 1, 150, 450, 1_000), (0, 4, 3, 400, 400, 1_050)),
            *((0, 5, 5, 0, 0, 1_230), (0, 6, 7, 0, 0, 1_450), *HEALTHY.output[5:]),
        ],
        witnesses=[
            found("late-release", 1, "output/0@3", "at 1230, as others", "at 1450"),
            found("early-release", 5, "output/0@5", "at 1450 or later", "at 1230"),
            found("wrong-order", 1, "output/0@3", "of a record behind input/0@1", "of input/0@0"),
        ],
    ),
    replace(
        HEALTHY,
        name="early-release: by a punctuation at a time that the task never had",
        output=results(HEALTHY, {(1, 2): (1, 2, 8, 0, 7, 2_400)}),
        witnesses=[found("early-release", 8, "output/1@2", "at a time of its task", "at 2407", partition=1)],
    ),
    replace(
        BY_WALL_CLOCK,
        name="early-release: by the wall clock",
        output=results(BY_WALL_CLOCK, {(1, 1): (1, 1, 6, 10, 309, 2_000)}),
        witnesses=[found("early-release", 6, "output/1@1", "at 2310 or later", "at 2309", partition=1)],
    ),
    replace(
        BY_WALL_CLOCK,
        name="unreleased: by the wall clock",
        output=results(BY_WALL_CLOCK, {(0, 5): None}),
        witnesses=[found("unreleased", 7, "input/0@4", "1 record", "0 records")],
    ),
    replace(
        HEALTHY,
        name="late-release: a punctuation left the second of two that were due",
        output=results(HEALTHY, {(0, 1): (0, 1, 2, 20, 360, 1_090)}),
        witnesses=[found("late-release", 2, "output/0@1", "at 1230, as others", "at 1450")],
    ),
    replace(
        HEALTHY,
        name="wrong-value: a wait that nobody asked for",
        output=results(HEALTHY, {(0, 0): (0, 0, 1, 151, 230, 1_000)}),
        witnesses=[found("wrong-value", 1, "output/0@0", "150", "151")],
    ),
    replace(
        HEALTHY,
        name="wrong-timestamp: that of the punctuation",
        output=results(HEALTHY, {(0, 0): (0, 0, 1, 150, 230, 1_230)}),
        witnesses=[found("wrong-timestamp", 1, "output/0@0", "1000", "1230")],
    ),
    replace(
        HEALTHY,
        name="wrong-partition: a record of another task",
        output=results(HEALTHY, {(1, 0): (0, 9, 4, 300, 390, 2_010)}),
        witnesses=[found("wrong-partition", 4, "output/0@9", "partition 1", "partition 0")],
    ),
    replace(
        HEALTHY,
        name="wrong-order: of two that one punctuation released",
        output=results(HEALTHY, {(0, 0): (0, 1, 1, 150, 230, 1_000), (0, 1): (0, 0, 2, 20, 140, 1_090)}),
        witnesses=[found("wrong-order", 1, "output/0@1", "of a record behind input/0@1", "of input/0@0")],
    ),
    replace(
        HEALTHY,
        name="lost-record: what was never put",
        changelog=changelog(lambda record: None if record[:2] == (1, 0) else record),
        witnesses=[found("lost-record", 4, "input/1@0", "1 record in buffer-changelog", "0 records", partition=1)],
    ),
    replace(
        HEALTHY,
        name="wrong-value and wrong-timestamp: of what was put",
        changelog=changelog(
            lambda record: {
                (0, 0): (0, 0, 1, 149, 1_000),
                (0, 1): (0, 1, 2, 20, 1_091),
            }.get(record[:2], record)
        ),
        witnesses=[
            found("wrong-value", 1, "buffer-changelog/0@0", "150", "149"),
            found("wrong-timestamp", 2, "buffer-changelog/0@1", "1090", "1091"),
        ],
    ),
]

LOOK_ALIKES = [
    HEALTHY,
    BY_WALL_CLOCK,
    replace(
        HEALTHY,
        name="a restart has one more punctuation",
        output=results(
            HEALTHY,
            {(0, 3): (0, 3, 3, 400, 400, 1_050), (1, 0): (1, 0, 4, 300, 390, 2_010)},
        ),
        input=[(0, 0, 1, 90, 1_000), *HEALTHY.input[1:]],
        changelog=put_and_deleted([(0, 0, 1, 90, 1_000), *HEALTHY.input[1:]]),
    ),
    replace(
        BY_WALL_CLOCK,
        name="by the wall clock one of two that were due comes out with the next: who knows when it had arrived",
        output=results(BY_WALL_CLOCK, {(0, 1): (0, 1, 2, 20, 333, 1_090)}),
    ),
    replace(
        HEALTHY,
        name="the drive failed: what is not due is in its buffer, and so is what no punctuation must have released",
        ended=False,
        input=[(0, 0, 1, 150, 1_000), (0, 1, 2, 20, 1_090), (0, 2, 3, 110, 1_230), (0, 3, 5, 0, 1_299)],
        output=[(0, 0, 1, 150, 230, 1_000), (0, 1, 2, 20, 140, 1_090)],
        changelog=[
            *((0, 0, 1, 150, 1_000), (0, 1, 2, 20, 1_090), (0, 2, 3, 110, 1_230), (0, 3, 5, 0, 1_299)),
            *((0, 4, 1, None, 1_230), (0, 5, 2, None, 1_230)),
        ],
    ),
    replace(
        BY_WALL_CLOCK,
        name="the drive failed: by the wall clock anything may be in its buffer",
        ended=False,
        output=[],
        changelog=HEALTHY.input,
    ),
    Specimen(name="empty topics", input=[], output=[]),
]
LOOK_ALIKES[2] = replace(LOOK_ALIKES[2], output=results(LOOK_ALIKES[2], {(0, 0): (0, 0, 1, 90, 90, 1_000)}))

SPECIMENS = [*ANOMALOUS, *LOOK_ALIKES]


def drawn(seed: int) -> Specimen:
    """A trial of either kind in which records come out at any time, and most near one that they should have.

    Some come out twice, never, in another partition, or are left in a buffer.
    """
    rng = random.Random(seed)
    records, output = list[Record](), list[Result]()
    offsets, ends, now = [0, 0], [0, 0], 1_000
    for key in range(rng.randint(2, 40)):
        now += rng.randint(0, 60)
        partition = rng.randrange(2)
        records.append((partition, offsets[partition], key, rng.choice((0, 10, 50, 100, 150)), now - rng.randint(0, 9)))
        offsets[partition] += 1
    times = [record[4] for record in records]
    for partition, _, key, wait, made in records:
        for _ in range(rng.choice((0, 1, 1, 1, 1, 1, 2))):
            at = rng.choice([time for time in times if time >= made] + [made + (wait or 0)])
            place = partition if rng.random() < 0.95 else 1 - partition
            output.append((place, ends[place], rng.choice((key, key, key, key, 99)), wait or 0, at - made, made))
            ends[place] += rng.randint(1, 2)
    left = {record[2] for record in records if rng.random() < 0.2}
    log = [record for record in put_and_deleted(records) if record[3] is not None or record[2] not in left]
    return Specimen(f"drawn {seed}", records, output, rng.choice(CLOCKS), rng.random() < 0.7, log)
