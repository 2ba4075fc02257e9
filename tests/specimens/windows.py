"""Specimens of the topology `windows`: a handful of records each, and exactly what must be found in them.

Input `(partition, offset, key, value, timestamp)`; output `(partition, offset, key, start, sum, timestamp)`. A window
has 10 ms, a session a gap of 10 ms, and both wait 5 ms more. All are bent from three healthy trials of one input: in
partition 0, the record of 103 is out of order, that of 109 comes too late for the window of 100, and the window of 150
is open; in partition 1 that of 230 is.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from onceproof.model.anomaly import Witness
from onceproof.scenarios.windows import KINDS

Record = tuple[int, int, int, int, int]
Result = tuple[int, int, int, int, int, int]


@dataclass(frozen=True)
class Specimen:
    """The records of one trial and the witnesses that a reader must find, no more and no less."""

    name: str
    input: list[Record]
    output: list[Result]
    kind: str = "tumbling"
    suppressed: bool = True
    cogrouped: bool = False
    limit: int = 0
    witnesses: list[Witness] = field(default_factory=list)

    @property
    def topics(self) -> dict[str, list[Record]]:
        """The records by role."""
        output = [(p, offset, key, start << 22 | total, made) for p, offset, key, start, total, made in self.output]
        return {"input": self.input, "output": output}

    @property
    def facts(self) -> dict[str, int]:
        """What the check must know besides the records."""
        own = {
            "kind": KINDS.index(self.kind),
            "size": 10,
            "grace": 5,
            "suppressed": int(self.suppressed),
            "cogrouped": int(self.cogrouped),
            "limit": self.limit,
        }
        return {"partitions": 2, "exactly_once": 1, **own}


INPUT = [
    *((0, 0, 1, 1, 105), (0, 1, 1, 2, 103), (0, 2, 3, 3, 114), (0, 3, 1, 4, 108), (0, 4, 3, 5, 115), (0, 5, 1, 6, 109)),
    (0, 6, 9, 7, 150),
    *((1, 0, 2, 8, 200), (1, 1, 2, 9, 209), (1, 2, 10, 1, 230)),
]
HEALTHY = Specimen(
    name="healthy",
    input=INPUT,
    output=[(0, 0, 1, 100, 7, 108), (0, 1, 3, 110, 8, 115), (1, 0, 2, 200, 17, 209)],
)
UPDATES = Specimen(
    name="every update",
    input=INPUT,
    output=[
        *((0, 0, 1, 100, 1, 105), (0, 1, 1, 100, 3, 105), (0, 2, 3, 110, 3, 114), (0, 3, 1, 100, 7, 108)),
        *((0, 4, 3, 110, 8, 115), (0, 5, 9, 150, 7, 150)),
        *((1, 0, 2, 200, 8, 200), (1, 1, 2, 200, 17, 209), (1, 2, 10, 230, 1, 230)),
    ],
    suppressed=False,
)
HOPPING = Specimen(
    name="hopping",
    input=INPUT,
    output=[
        *((0, 0, 1, 95, 2, 103), (0, 1, 1, 100, 7, 108), (0, 2, 1, 105, 11, 109), (0, 3, 3, 105, 3, 114)),
        *((0, 4, 3, 110, 8, 115), (0, 5, 3, 115, 5, 115)),
        *((1, 0, 2, 195, 8, 200), (1, 1, 2, 200, 17, 209), (1, 2, 2, 205, 9, 209)),
    ],
    kind="hopping",
)
SESSION = Specimen(
    name="sessions",
    input=INPUT,
    output=[(0, 0, 1, 103, 13, 109), (0, 1, 3, 114, 8, 115), (1, 0, 2, 200, 17, 209)],
    kind="session",
)
SESSION_UPDATES = Specimen(
    name="every update of sessions",
    input=[(0, 0, 1, 1, 100), (0, 1, 1, 2, 111), (0, 2, 1, 4, 105), (0, 3, 1, 5, 111)],
    output=[
        *((0, 0, 1, 100, 1, 100), (0, 1, 1, 111, 2, 111), (0, 2, 1, 100, 0, 100), (0, 3, 1, 111, 0, 111)),
        *((0, 4, 1, 100, 7, 111), (0, 5, 1, 100, 0, 111), (0, 6, 1, 100, 12, 111)),
    ],
    kind="session",
    suppressed=False,
)
SLIDING = Specimen(
    name="sliding",
    input=[(0, 0, 7, 1, 100), (0, 1, 7, 2, 104), (0, 2, 7, 4, 102), (0, 3, 9, 9, 150)],
    output=[
        *((0, 0, 7, 90, 1, 100), (0, 1, 7, 92, 5, 102), (0, 2, 7, 94, 7, 104)),
        *((0, 3, 7, 101, 6, 104), (0, 4, 7, 103, 2, 104)),
    ],
    kind="sliding",
)
SLIDING_UPDATES = Specimen(
    name="every update of windows that slide",
    input=[(0, 0, 7, 1, 100), (0, 1, 7, 2, 104), (0, 2, 7, 4, 102), (0, 3, 7, 8, 104)],
    output=[
        *((0, 0, 7, 90, 1, 100), (0, 1, 7, 101, 2, 104), (0, 2, 7, 94, 3, 104), (0, 3, 7, 94, 7, 104)),
        *((0, 4, 7, 92, 5, 102), (0, 5, 7, 101, 6, 104), (0, 6, 7, 103, 2, 104)),
        *((0, 7, 7, 94, 15, 104), (0, 8, 7, 101, 14, 104), (0, 9, 7, 103, 10, 104)),
    ],
    kind="sliding",
    suppressed=False,
)
COGROUPED = Specimen(
    name="of two streams",
    input=[(0, 0, 7, 1, 105), (0, 1, 7, 2, 103), (0, 2, 9, 9, 150)],
    output=[(0, 0, 7, 100, 102, 105)],
    cogrouped=True,
)
TIME_LIMIT = Specimen(
    name="held back for 4 ms",
    input=[
        *((0, 0, 7, 1, 101), (0, 1, 7, 2, 103), (0, 2, 8, 9, 105), (0, 3, 7, 4, 105), (0, 4, 7, 8, 106)),
        (0, 5, 9, 1, 109),
    ],
    output=[(0, 0, 7, 100, 3, 103), (0, 1, 7, 100, 15, 106), (0, 2, 8, 100, 9, 105)],
    suppressed=False,
    limit=4,
)


def results(healthy: Specimen, changes: Mapping[tuple[int, int], Result | None]) -> list[Result]:
    """The healthy output with other results at these places; None takes them away."""
    changed = (changes.get(record[:2], record) for record in healthy.output)
    return [record for record in changed if record is not None]


def found(anomaly: str, key: int, place: str, expected: str, observed: str, partition: int = 0) -> Witness:
    """A witness of a window."""
    return Witness(anomaly, partition, key, (), (place,), expected, observed)


NAMED = "of the window from 100 to 110"
FIRST_TWICE: Mapping[tuple[int, int], Result | None] = {
    (0, 1): (0, 1, 1, 100, 1, 105),
    (0, 3): (0, 3, 1, 100, 3, 105),
}
ANOMALOUS = [
    replace(
        HEALTHY,
        name="lost-record: a window that closed did not come out",
        output=results(HEALTHY, {(0, 0): None}),
        witnesses=[found("lost-record", 1, "input/0@3", f"1 record {NAMED}", f"0 records {NAMED}")],
    ),
    replace(
        HEALTHY,
        name="duplicate-output: a window twice",
        output=[*HEALTHY.output, (0, 2, 1, 100, 7, 108)],
        witnesses=[
            found("duplicate-output", 1, "output/0@2", f"1 record {NAMED}", f"2 records {NAMED}, the first one twice")
        ],
    ),
    replace(
        HEALTHY,
        name="duplicate-output: a record that came too late was counted",
        output=[*HEALTHY.output, (0, 2, 1, 100, 13, 109)],
        witnesses=[found("duplicate-output", 1, "output/0@2", f"1 record {NAMED}", f"2 records {NAMED}")],
    ),
    replace(
        HEALTHY,
        name="wrong-value: without one of its records",
        output=results(HEALTHY, {(0, 0): (0, 0, 1, 100, 5, 108)}),
        witnesses=[found("wrong-value", 1, "output/0@0", "7 at 108", "5 at 108")],
    ),
    replace(
        HEALTHY,
        name="wrong-value: nothing",
        output=results(HEALTHY, {(0, 0): (0, 0, 1, 100, 0, 108)}),
        witnesses=[found("wrong-value", 1, "output/0@0", "7 at 108", "nothing at 108")],
    ),
    replace(
        HEALTHY,
        name="wrong-timestamp: that of its first record",
        output=results(HEALTHY, {(0, 0): (0, 0, 1, 100, 7, 105)}),
        witnesses=[found("wrong-timestamp", 1, "output/0@0", "7 at 108", "7 at 105")],
    ),
    replace(
        HEALTHY,
        name="early-result: a window that is open",
        output=[*HEALTHY.output, (0, 2, 9, 150, 7, 150)],
        witnesses=[found("early-result", 9, "output/0@2", "nothing: it has not closed", "7 at 150")],
    ),
    replace(
        HEALTHY,
        name="unexpected-record: a window of nobody",
        output=[*HEALTHY.output, (0, 2, 1, 140, 7, 145)],
        witnesses=[found("unexpected-record", 1, "output/0@2", "nothing", "7 at 145")],
    ),
    replace(
        HEALTHY,
        name="wrong-partition: a window of another task",
        output=results(HEALTHY, {(1, 0): (0, 9, 2, 200, 17, 209)}),
        witnesses=[found("wrong-partition", 2, "output/0@9", "partition 1", "partition 0")],
    ),
    replace(
        UPDATES,
        name="lost-record: an update",
        output=results(UPDATES, {(0, 1): None}),
        witnesses=[found("lost-record", 1, "input/0@3", f"3 records {NAMED}", f"2 records {NAMED}")],
    ),
    replace(
        UPDATES,
        name="duplicate-output: an update twice",
        output=[*UPDATES.output, (0, 9, 1, 100, 7, 108)],
        witnesses=[found("duplicate-output", 1, "output/0@9", f"3 records {NAMED}", f"4 records {NAMED}")],
    ),
    replace(
        UPDATES,
        name="duplicate-output: the first update twice",
        output=[*results(UPDATES, FIRST_TWICE), (0, 9, 1, 100, 7, 108)],
        witnesses=[
            found("duplicate-output", 1, "output/0@9", f"3 records {NAMED}", f"4 records {NAMED}, the first one twice")
        ],
    ),
    replace(
        UPDATES,
        name="duplicate-output: the first update twice, and the last one is wrong",
        output=[*results(UPDATES, FIRST_TWICE), (0, 9, 1, 100, 6, 108)],
        witnesses=[found("duplicate-output", 1, "output/0@9", f"3 records {NAMED}", f"4 records {NAMED}")],
    ),
    replace(
        UPDATES,
        name="wrong-value: updates of a window in another order",
        output=results(UPDATES, {(0, 0): (0, 0, 1, 100, 3, 105), (0, 1): (0, 1, 1, 100, 1, 105)}),
        witnesses=[found("wrong-value", 1, "output/0@0", "1 at 105", "3 at 105")],
    ),
    replace(
        UPDATES,
        name="wrong-timestamp: the last update is as old as the one before",
        output=results(UPDATES, {(0, 3): (0, 3, 1, 100, 7, 105)}),
        witnesses=[found("wrong-timestamp", 1, "output/0@3", "7 at 108", "7 at 105")],
    ),
    replace(
        HOPPING,
        name="lost-record: of two windows of a record one did not come out",
        output=results(HOPPING, {(0, 1): None}),
        witnesses=[found("lost-record", 1, "input/0@3", f"1 record {NAMED}", f"0 records {NAMED}")],
    ),
    replace(
        HOPPING,
        name="wrong-value: a record that came too late for one of its windows was counted there",
        output=results(HOPPING, {(0, 1): (0, 1, 1, 100, 13, 109)}),
        witnesses=[found("wrong-value", 1, "output/0@1", "7 at 108", "13 at 109")],
    ),
    replace(
        SLIDING,
        name="lost-record: no window begins just after a record",
        output=results(SLIDING, {(0, 3): None}),
        witnesses=[
            found(
                "lost-record",
                7,
                "input/0@2",
                "1 record of the window from 101 to 111",
                "0 records of the window from 101 to 111",
            )
        ],
    ),
    replace(
        SLIDING,
        name="wrong-value: a new window is without the record before it",
        output=results(SLIDING, {(0, 1): (0, 1, 7, 92, 4, 102)}),
        witnesses=[found("wrong-value", 7, "output/0@1", "5 at 102", "4 at 102")],
    ),
    replace(
        COGROUPED,
        name="wrong-value: both streams have the same aggregator",
        output=[(0, 0, 7, 100, 3, 105)],
        witnesses=[found("wrong-value", 7, "output/0@0", "102 at 105", "3 at 105")],
    ),
    replace(
        TIME_LIMIT,
        name="lost-record: an update begins the wait anew",
        output=results(TIME_LIMIT, {(0, 0): None}),
        witnesses=[
            found(
                "lost-record",
                7,
                "input/0@4",
                "2 records of the window from 100 to 110",
                "1 record of the window from 100 to 110",
            )
        ],
    ),
    replace(
        TIME_LIMIT,
        name="wrong-value: what was held back first comes out",
        output=results(TIME_LIMIT, {(0, 0): (0, 0, 7, 100, 1, 101)}),
        witnesses=[found("wrong-value", 7, "output/0@0", "3 at 103", "1 at 101")],
    ),
    replace(
        TIME_LIMIT,
        name="early-result: its time is not up",
        output=[*TIME_LIMIT.output, (0, 3, 9, 100, 1, 109)],
        witnesses=[found("early-result", 9, "output/0@3", "nothing: its time is not up", "1 at 109")],
    ),
    replace(
        SESSION,
        name="early-result: a session that another took in",
        output=[*SESSION.output, (0, 2, 1, 105, 1, 105)],
        witnesses=[found("early-result", 1, "output/0@2", "nothing: another took it in", "1 at 105")],
    ),
    replace(
        SESSION,
        name="lost-record: a session that ends early",
        output=results(SESSION, {(0, 0): (0, 0, 1, 103, 7, 107)}),
        witnesses=[
            found(
                "lost-record",
                1,
                "input/0@5",
                "1 record of the window from 103 to 109",
                "0 records of the window from 103 to 109",
            ),
            found("unexpected-record", 1, "output/0@0", "nothing", "7 at 107"),
        ],
    ),
    replace(
        SESSION_UPDATES,
        name="wrong-value: that a session is no more did not come out in time",
        output=results(SESSION_UPDATES, {(0, 4): (0, 4, 1, 100, 0, 111), (0, 5): (0, 5, 1, 100, 7, 111)}),
        witnesses=[found("wrong-value", 1, "output/0@4", "7 at 111", "nothing at 111")],
    ),
    replace(
        SESSION_UPDATES,
        name="lost-record: that a session is no more",
        output=results(SESSION_UPDATES, {(0, 2): None}),
        witnesses=[
            found(
                "lost-record",
                1,
                "input/0@2",
                "2 records of the window from 100 to 100",
                "1 record of the window from 100 to 100",
            )
        ],
    ),
]

LOOK_ALIKES = [
    HEALTHY,
    UPDATES,
    HOPPING,
    SESSION,
    SESSION_UPDATES,
    SLIDING,
    SLIDING_UPDATES,
    COGROUPED,
    TIME_LIMIT,
    replace(
        SLIDING,
        name="a record that is too late for each window that it slides into counts in none",
        input=[(0, 0, 7, 1, 100), (0, 1, 8, 2, 116), (0, 2, 7, 4, 100), (0, 3, 9, 9, 150)],
        output=[(0, 0, 7, 90, 1, 100), (0, 1, 8, 106, 2, 116)],
    ),
    replace(
        HEALTHY,
        name="windows of different keys in another order",
        output=[(p, 9 - offset, *rest) for p, offset, *rest in HEALTHY.output],  # type: ignore[misc]
    ),
    replace(
        HEALTHY,
        name="a window that closes with the next millisecond is open",
        input=[*INPUT[:-4], (0, 6, 9, 7, 124), *INPUT[-3:]],
        output=results(HEALTHY, {(0, 1): None}),
    ),
    replace(
        HEALTHY,
        name="a record that comes with the last millisecond of the grace counts",
        input=[(0, 0, 1, 1, 105), (0, 1, 3, 3, 114), (0, 2, 1, 6, 109), (0, 3, 9, 7, 150)],
        output=[(0, 0, 1, 100, 7, 109), (0, 1, 3, 110, 3, 114)],
    ),
    replace(
        SESSION,
        name="a session that has closed is taken in by none",
        input=[(0, 0, 1, 1, 100), (0, 1, 1, 2, 116), (0, 2, 1, 4, 108), (0, 3, 9, 7, 150)],
        output=[(0, 0, 1, 100, 1, 100), (0, 1, 1, 108, 6, 116)],
    ),
    replace(
        SESSION,
        name="a record that comes too late begins no session",
        input=[(0, 0, 3, 1, 116), (0, 1, 1, 4, 100), (0, 2, 9, 7, 150)],
        output=[(0, 0, 3, 116, 1, 116)],
    ),
    Specimen(name="empty topics", input=[], output=[]),
]

SPECIMENS = [*ANOMALOUS, *LOOK_ALIKES]


def drawn(seed: int) -> Specimen:
    """A trial of any kind in which records come in any order, and results are those of nobody's model.

    Most are near what they should be: results of a record alone, or of a few of a key, some of them moved or repeated.
    """
    rng = random.Random(seed)
    kind, suppressed = rng.choice(KINDS), rng.random() < 0.5
    cogrouped = kind == "tumbling" and rng.random() < 0.5
    limit = 4 if kind == "tumbling" and not suppressed and rng.random() < 0.5 else 0
    offsets, records, now = [0, 0], list[Record](), 1_000
    for value in range(1, rng.randint(2, 40)):
        now += rng.randint(0, 6)
        partition = rng.randrange(2)
        at = now - rng.choice((0, 0, 0, 2, 4, 6, 9, 14, 15, 16, 30))
        records.append((partition, offsets[partition], 2 * rng.randrange(2) + partition, value, at))
        offsets[partition] += 1
    output, ends = list[Result](), [0, 0]
    for partition, _, key, value, at in records:
        start = (
            at
            if kind == "session"
            else at - rng.choice((10, 10, -1))
            if kind == "sliding"
            else at - at % (5 if kind == "hopping" else 10)
        )
        for begin in (start, start - 5) if kind == "hopping" and rng.random() < 0.9 else (start,):
            place = partition if rng.random() < 0.95 else 1 - partition
            total = rng.choice((value, value, value + 1, 0))
            again = rng.choice((0, 1, 1, 1, 2))
            for _ in range(again):
                output.append((place, ends[place], key, begin, total, at - rng.choice((0, 0, 0, 1))))
                ends[place] += rng.randint(1, 2)
    return Specimen(f"drawn {seed}", records, output, kind, suppressed, cogrouped, limit)
