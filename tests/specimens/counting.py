"""Specimens of the topology `counting`: a handful of records each, and exactly what must be found in them.

Input `(partition, offset, key, number)`; output `(partition, offset, key, number, found)`. Offsets have gaps where
transaction markers or aborted records are. Most are bent from `HEALTHY`: keys 1 and 3 take turns in partition 0, key 0
is in partition 1.
"""

from dataclasses import dataclass, field, replace

from onceproof.model.anomaly import Witness

Record = tuple[int, int, int, int]
Read = tuple[int, int, int, int, int]


@dataclass(frozen=True)
class Specimen:
    """The records of one trial and the witnesses that a reader must find, no more and no less."""

    name: str
    input: list[Record]
    output: list[Read]
    exactly_once: bool = True
    cached: bool = False
    changelog: list[Record] | None = None  # that of the input, if not given
    witnesses: list[Witness] = field(default_factory=list)

    @property
    def topics(self) -> dict[str, list[Record]]:
        """The records by role."""
        output = [(p, offset, key, number << 32 | found) for p, offset, key, number, found in self.output]
        changelog = self.input if self.changelog is None else self.changelog
        return {"input": self.input, "output": output, "last-changelog": changelog}

    @property
    def facts(self) -> dict[str, int]:
        """What the check must know besides the records."""
        return {"partitions": 2, "exactly_once": int(self.exactly_once), "cached": int(self.cached)}


HEALTHY = Specimen(
    name="healthy",
    input=[(0, 0, 1, 1), (0, 1, 3, 1), (0, 3, 1, 2), (0, 4, 3, 2), (0, 7, 1, 3), (1, 0, 0, 1), (1, 2, 0, 2)],
    output=[
        (0, 0, 1, 1, 0),
        (0, 1, 3, 1, 0),
        (0, 3, 1, 2, 1),
        (0, 4, 3, 2, 1),
        (0, 6, 1, 3, 2),
        (1, 0, 0, 1, 0),
        (1, 2, 0, 2, 1),
    ],
)


def without(offset: int, partition: int = 0) -> list[Read]:
    """The healthy output without the record at a place."""
    return [read for read in HEALTHY.output if read[:2] != (partition, offset)]


def stale(key: int, place: str, expected: str, observed: str, partition: int = 0) -> Witness:
    """A witness of stale-read."""
    return Witness("stale-read", partition, key, (), (place,), expected, observed)


def dirty(key: int, place: str, expected: str, observed: str) -> Witness:
    """A witness of dirty-read in partition 0."""
    return Witness("dirty-read", 0, key, (), (place,), expected, observed)


def contents(anomaly: str, key: int, place: str, expected: str, observed: str) -> Witness:
    """A witness that a topic's partition 0 is not what the input gives."""
    return Witness(anomaly, 0, key, (), (place,), expected, observed)


ANOMALOUS = [
    replace(
        HEALTHY,
        name="stale-read: the store gave key 1 the value before the last",
        output=[*without(6), (0, 6, 1, 3, 1)],
        witnesses=[stale(1, "output/0@6", "2", "1")],
    ),
    replace(
        HEALTHY,
        name="stale-read: keys of both partitions were forgotten",
        output=[*without(4)[:-1], (0, 4, 3, 2, 0), (1, 2, 0, 2, 0)],
        witnesses=[stale(3, "output/0@4", "1", "0"), stale(0, "output/1@2", "1", "0", partition=1)],
    ),
    replace(
        HEALTHY,
        name="stale-read under at-least-once: processing again explains newer values only",
        exactly_once=False,
        output=[*without(6), (0, 6, 1, 3, 1)],
        witnesses=[stale(1, "output/0@6", "2", "1")],
    ),
    Specimen(
        name="stale-read: the number before the last is too old, also where the input left one out",
        input=[(0, 0, 1, 1), (0, 1, 1, 2), (0, 2, 1, 4)],
        output=[(0, 0, 1, 1, 0), (0, 1, 1, 2, 1), (0, 2, 1, 4, 1)],
        witnesses=[stale(1, "output/0@2", "2", "1")],
    ),
    replace(
        HEALTHY,
        name="dirty-read: the store gave key 1 a number that came later",
        output=[*without(3), (0, 3, 1, 2, 3)],
        witnesses=[dirty(1, "output/0@3", "1", "3")],
    ),
    replace(
        HEALTHY,
        name="dirty-read and duplicate-output: a record was processed twice under exactly-once",
        output=[*HEALTHY.output, (0, 8, 1, 3, 3)],
        witnesses=[
            dirty(1, "output/0@8", "2", "3"),
            Witness("duplicate-output", 0, 1, (), ("output/0@8",), "3 records", "4 records"),
        ],
    ),
    replace(
        HEALTHY,
        name="lost-record: one of two of key 3",
        output=without(4),
        witnesses=[Witness("lost-record", 0, 3, (), ("input/0@1",), "2 records", "1 record")],
    ),
    replace(
        HEALTHY,
        name="lost-record under at-least-once: nothing of key 0 came out",
        exactly_once=False,
        output=HEALTHY.output[:-2],
        witnesses=[Witness("lost-record", 1, 0, (), ("input/1@0",), "2 records", "0 records")],
    ),
    replace(
        HEALTHY,
        name="duplicate-output: the same record came out twice",
        output=[*HEALTHY.output, (1, 4, 0, 2, 1)],
        witnesses=[Witness("duplicate-output", 1, 0, (), ("output/1@4",), "2 records", "3 records")],
    ),
    replace(
        HEALTHY,
        name="unexpected-record: a key that never went in; its number tells what it had to find",
        output=[*HEALTHY.output, (1, 4, 2, 5, 3)],
        witnesses=[
            stale(2, "output/1@4", "4", "3", partition=1),
            Witness("unexpected-record", 1, 2, (), ("output/1@4",), "0 records", "1 record"),
        ],
    ),
]

ANOMALOUS += [
    replace(
        HEALTHY,
        name="wrong-order: two records of partition 0 stand in each other's place",
        output=[(0, 0, 1, 1, 0), (0, 1, 1, 2, 1), (0, 3, 3, 1, 0), *HEALTHY.output[3:]],
        witnesses=[contents("wrong-order", 3, "output/0@3", "of a record behind input/0@3", "of input/0@1")],
    ),
    replace(
        HEALTHY,
        name="wrong-order under at-least-once: a record was left out, and came later",
        exactly_once=False,
        output=[(0, 0, 1, 1, 0), (0, 1, 1, 2, 1), (0, 3, 3, 1, 0), *HEALTHY.output[3:]],
        witnesses=[contents("wrong-order", 1, "output/0@1", "of a record behind input/0@0", "of input/0@3")],
    ),
    replace(
        HEALTHY,
        name="wrong-order under at-least-once: the first record did not come first",
        exactly_once=False,
        changelog=[(0, 0, 3, 1), (0, 1, 1, 1), *HEALTHY.input[2:]],
        witnesses=[contents("wrong-order", 3, "last-changelog/0@0", "of the first record", "of input/0@1")],
    ),
    replace(
        HEALTHY,
        name="wrong-value under at-least-once: the changelog has a number that the input has not",
        exactly_once=False,
        changelog=[*HEALTHY.input[:3], (0, 4, 3, 9), *HEALTHY.input[4:]],
        witnesses=[contents("wrong-value", 3, "last-changelog/0@4", "1", "9")],
    ),
    replace(
        HEALTHY,
        name="lost-record under at-least-once: the changelog has nothing of key 3, and a key that nobody sent",
        exactly_once=False,
        changelog=[*(r for r in HEALTHY.input if r[2] != 3), (0, 9, 5, 1)],
        witnesses=[
            contents("lost-record", 3, "input/0@1", "2 records in last-changelog", "0 records"),
            contents("unexpected-record", 5, "last-changelog/0@9", "nothing", "1"),
        ],
    ),
    replace(
        HEALTHY,
        name="wrong-partition under at-least-once: the output has a record of key 1 in partition 1",
        exactly_once=False,
        output=[*HEALTHY.output[:4], *HEALTHY.output[5:], (1, 4, 1, 3, 2)],
        witnesses=[
            Witness("wrong-partition", 1, 1, (), ("output/1@4",), "partition 0", "partition 1"),
        ],
    ),
    replace(
        HEALTHY,
        name="wrong-value: the changelog of a cached store ends with an older number",
        cached=True,
        changelog=[(0, 3, 1, 2), (0, 4, 3, 2), (1, 2, 0, 2)],
        witnesses=[contents("wrong-value", 1, "last-changelog/0@3", "3", "2")],
    ),
]

LOOK_ALIKES = [
    HEALTHY,
    replace(
        HEALTHY,
        name="a cached store writes only some records of a key, in the order of its flushes",
        cached=True,
        changelog=[(0, 0, 3, 1), (0, 1, 1, 2), (0, 4, 3, 2), (0, 7, 1, 3), (1, 2, 0, 2)],
    ),
    replace(
        HEALTHY,
        name="at-least-once: two records were processed again, the first of them found what the second had put",
        exactly_once=False,
        output=[*HEALTHY.output, (0, 8, 1, 2, 3), (0, 9, 1, 3, 2)],
    ),
    Specimen(
        name="the record before in the input counts, not the number before",
        input=[(0, 0, 1, 2), (0, 5, 1, 7)],
        output=[(0, 0, 1, 2, 0), (0, 9, 1, 7, 2)],
    ),
    Specimen(
        name="the order of the input counts, not that of the numbers",
        input=[(0, 0, 1, 2), (0, 1, 1, 1), (0, 2, 1, 3)],
        output=[(0, 0, 1, 2, 0), (0, 1, 1, 1, 2), (0, 2, 1, 3, 1)],
    ),
    replace(
        HEALTHY,
        name="the partitions are read one after the other, the last one first, and so is the output",
        input=[*HEALTHY.input[5:], *HEALTHY.input[:5]],
        output=[*HEALTHY.output[5:], *HEALTHY.output[:5]],
    ),
    Specimen(
        name="the largest number, and negative keys",
        input=[(0, 0, -1, 2**31 - 2), (0, 1, -1, 2**31 - 1)],
        output=[(0, 0, -1, 2**31 - 2, 0), (0, 1, -1, 2**31 - 1, 2**31 - 2)],
    ),
    Specimen(name="empty topics", input=[], output=[]),
]

SPECIMENS = [*ANOMALOUS, *LOOK_ALIKES]
