"""Specimens of the enumerator: a handful of records each, and exactly what must be found in them.

`(partition, offset, key, value)`; offsets have gaps where transaction markers or aborted records are. All are bent
from `HEALTHY`: two partitions, keys 1, 3, 1 in partition 0 and 0, 2 in partition 1.
"""

from collections import Counter
from dataclasses import dataclass, field, replace

from onceproof.model.anomaly import Witness

Record = tuple[int, int, int, int]
Change = tuple[int, int, int, int | None]  # a changelog's record; None is a tombstone


@dataclass(frozen=True)
class Specimen:
    """The records of one trial and the witnesses that a reader must find, no more and no less."""

    name: str
    partitions: int
    input: list[tuple[int, int, int]]
    output: list[Record]
    counter: list[Change]
    ids: list[Change]
    witnesses: list[Witness] = field(default_factory=list)

    @property
    def expected(self) -> dict[str, int]:
        """Witnesses per anomaly; an anomaly that is not there is absent."""
        return dict(sorted(Counter(witness.anomaly for witness in self.witnesses).items()))

    @property
    def records(self) -> int:
        """Committed input records."""
        return len(self.input)

    @property
    def outputs(self) -> int:
        """Committed output records."""
        return len(self.output)

    @property
    def distinct_keys(self) -> int:
        """Distinct keys of the input."""
        return len({key for _, _, key in self.input})

    @property
    def distinct_ids(self) -> int:
        """Distinct IDs of the output."""
        return len({identity for _, _, _, identity in self.output})


HEALTHY = Specimen(
    name="healthy",
    partitions=2,
    input=[(0, 0, 1), (0, 1, 3), (0, 3, 1), (1, 0, 0), (1, 2, 2)],
    output=[(0, 0, 1, 0), (0, 1, 3, 2), (0, 3, 1, 0), (1, 0, 0, 1), (1, 2, 2, 3)],
    counter=[(0, 0, 0, 0), (0, 2, 0, 1), (1, 0, 0, 0), (1, 2, 0, 1)],
    ids=[(0, 0, 1, 0), (0, 2, 3, 2), (1, 0, 0, 1), (1, 2, 2, 3)],
)


def duplicate(ids: tuple[int, ...], partition: int, offsets: tuple[str, ...], observed: str) -> Witness:
    """A witness of duplicate-id."""
    return Witness("duplicate-id", partition, None, ids, offsets, "one key", observed)


ANOMALOUS = [
    replace(
        HEALTHY,
        name="duplicate-id: the counter fell back, and key 5 got the ID of key 3",
        input=[*HEALTHY.input, (0, 5, 5)],
        output=[*HEALTHY.output, (0, 5, 5, 2)],
        ids=[*HEALTHY.ids, (0, 5, 5, 2)],
        witnesses=[duplicate((2,), 0, ("output/0@1", "output/0@5"), "2 keys: 3, 5")],
    ),
    replace(
        HEALTHY,
        name="duplicate-id: the counter fell back, and ended below the IDs that had been given",
        input=[*HEALTHY.input, (0, 5, 5)],
        output=[*HEALTHY.output, (0, 5, 5, 0)],
        counter=[(0, 0, 0, 0), (0, 2, 0, 1), (0, 6, 0, 0), (1, 0, 0, 0), (1, 2, 0, 1)],
        ids=[*HEALTHY.ids, (0, 5, 5, 0)],
        witnesses=[
            duplicate((0,), 0, ("output/0@0", "output/0@5"), "2 keys: 1, 5"),
            Witness(
                "counter-regression", 0, 0, (), ("counter-changelog/0@2", "counter-changelog/0@6"), "more than 1", "0"
            ),
            Witness("changelog-output-mismatch", 0, 0, (), ("counter-changelog/0@6", "output/0@5"), "1", "0"),
        ],
    ),
    replace(
        HEALTHY,
        name="duplicate-id across partitions: key 2 of partition 1 got the ID of key 3 of partition 0",
        output=[*HEALTHY.output[:4], (1, 2, 2, 2)],
        ids=[*HEALTHY.ids[:3], (1, 2, 2, 2)],
        counter=[(0, 0, 0, 0), (0, 2, 0, 1), (1, 0, 0, 0)],
        witnesses=[duplicate((2,), 0, ("output/0@1", "output/1@2"), "2 keys: 3, 2")],
    ),
    Specimen(
        name="duplicate-id of six keys: the first five are named, in the order of the output",
        partitions=1,
        input=[(0, 0, 60), (0, 1, 50), (0, 2, 40), (0, 3, 30), (0, 4, 20), (0, 5, 10)],
        output=[(0, 0, 60, 0), (0, 1, 50, 0), (0, 2, 40, 0), (0, 3, 30, 0), (0, 4, 20, 0), (0, 5, 10, 0)],
        counter=[(0, 0, 0, 0)],
        ids=[(0, 0, 60, 0), (0, 1, 50, 0), (0, 2, 40, 0), (0, 3, 30, 0), (0, 4, 20, 0), (0, 5, 10, 0)],
        witnesses=[
            duplicate(
                (0,),
                0,
                ("output/0@0", "output/0@1", "output/0@2", "output/0@3", "output/0@4"),
                "6 keys: 60, 50, 40, 30, 20",
            )
        ],
    ),
    replace(
        HEALTHY,
        name="unstable-id: key 1 was forgotten and got a second ID",
        output=[(0, 0, 1, 0), (0, 1, 3, 2), (0, 3, 1, 4), (1, 0, 0, 1), (1, 2, 2, 3)],
        counter=[(0, 0, 0, 0), (0, 2, 0, 1), (0, 4, 0, 2), (1, 0, 0, 0), (1, 2, 0, 1)],
        ids=[*HEALTHY.ids, (0, 4, 1, 4)],
        witnesses=[Witness("unstable-id", 0, 1, (0, 4), ("output/0@0", "output/0@3"), "one ID", "2 IDs: 0, 4")],
    ),
    replace(
        HEALTHY,
        name="wrong-id: the counter skipped a number before key 3",
        output=[(0, 0, 1, 0), (0, 1, 3, 4), (0, 3, 1, 0), (1, 0, 0, 1), (1, 2, 2, 3)],
        counter=[(0, 0, 0, 0), (0, 2, 0, 2), (1, 0, 0, 0), (1, 2, 0, 1)],
        ids=[(0, 0, 1, 0), (0, 2, 3, 4), (1, 0, 0, 1), (1, 2, 2, 3)],
        witnesses=[Witness("wrong-id", 0, 3, (4,), ("output/0@1",), "2", "4")],
    ),
    replace(
        HEALTHY,
        name="lost-record: the second record of key 1 has no output",
        output=[(0, 0, 1, 0), (0, 1, 3, 2), (1, 0, 0, 1), (1, 2, 2, 3)],
        witnesses=[Witness("lost-record", 0, 1, (), ("input/0@0",), "2 records", "1 record")],
    ),
    replace(
        HEALTHY,
        name="lost-record: key 2 is in the stores, and in no output",
        output=HEALTHY.output[:4],
        witnesses=[
            Witness("lost-record", 1, 2, (), ("input/1@2",), "1 record", "0 records"),
            Witness("changelog-output-mismatch", 1, 2, (3,), ("ids-changelog/1@2",), "nothing", "3"),
            Witness("changelog-output-mismatch", 1, 0, (), ("counter-changelog/1@2", "output/1@0"), "0", "1"),
        ],
    ),
    replace(
        HEALTHY,
        name="duplicate-output: the record of key 3 was processed twice, with the same ID",
        output=[(0, 0, 1, 0), (0, 1, 3, 2), (0, 3, 1, 0), (0, 5, 3, 2), (1, 0, 0, 1), (1, 2, 2, 3)],
        witnesses=[Witness("duplicate-output", 0, 3, (), ("output/0@5",), "1 record", "2 records")],
    ),
    replace(
        HEALTHY,
        name="unexpected-record: key 9 was never sent",
        output=[*HEALTHY.output, (0, 5, 9, 4)],
        counter=[*HEALTHY.counter, (0, 5, 0, 2)],
        ids=[*HEALTHY.ids, (0, 5, 9, 4)],
        witnesses=[Witness("unexpected-record", 0, 9, (), ("output/0@5",), "0 records", "1 record")],
    ),
    replace(
        HEALTHY,
        name="counter-regression: the counter fell from 1 to 0, and rose to 1 again",
        counter=[(0, 0, 0, 0), (0, 2, 0, 1), (0, 4, 0, 0), (0, 6, 0, 1), (1, 0, 0, 0), (1, 2, 0, 1)],
        witnesses=[
            Witness(
                "counter-regression",
                0,
                0,
                (),
                ("counter-changelog/0@2", "counter-changelog/0@4"),
                "more than 1",
                "0",
            )
        ],
    ),
    replace(
        HEALTHY,
        name="counter-regression: the same value twice",
        counter=[*HEALTHY.counter, (1, 4, 0, 1)],
        witnesses=[
            Witness(
                "counter-regression",
                1,
                0,
                (),
                ("counter-changelog/1@2", "counter-changelog/1@4"),
                "more than 1",
                "1",
            )
        ],
    ),
    replace(
        HEALTHY,
        name="changelog-output-mismatch: the ids changelog ends with another ID for key 3",
        ids=[*HEALTHY.ids, (0, 4, 3, 6)],
        witnesses=[Witness("changelog-output-mismatch", 0, 3, (6, 2), ("ids-changelog/0@4", "output/0@1"), "2", "6")],
    ),
    replace(
        HEALTHY,
        name="changelog-output-mismatch: key 2 is missing from the ids changelog",
        ids=HEALTHY.ids[:3],
        witnesses=[Witness("changelog-output-mismatch", 1, 2, (3,), ("output/1@2",), "3", "nothing")],
    ),
    replace(
        HEALTHY,
        name="changelog-output-mismatch: the ID of key 2 was deleted from the store",
        ids=[*HEALTHY.ids, (1, 4, 2, None)],
        witnesses=[
            Witness("changelog-output-mismatch", 1, 2, (3,), ("ids-changelog/1@4", "output/1@2"), "3", "nothing")
        ],
    ),
    replace(
        HEALTHY,
        name="changelog-output-mismatch: the store knows key 8, the output does not",
        ids=[*HEALTHY.ids, (1, 4, 8, 5)],
        witnesses=[Witness("changelog-output-mismatch", 1, 8, (5,), ("ids-changelog/1@4",), "nothing", "5")],
    ),
    replace(
        HEALTHY,
        name="changelog-output-mismatch: the last counter of partition 1 was not written",
        counter=HEALTHY.counter[:3],
        witnesses=[Witness("changelog-output-mismatch", 1, 0, (), ("counter-changelog/1@0", "output/1@2"), "1", "0")],
    ),
    replace(
        HEALTHY,
        name="changelog-output-mismatch: no counter at all in partition 0",
        counter=HEALTHY.counter[2:],
        witnesses=[Witness("changelog-output-mismatch", 0, 0, (), ("output/0@3",), "1", "nothing")],
    ),
    replace(
        HEALTHY,
        name="nothing came out, and the stores are empty",
        output=[],
        counter=[],
        ids=[],
        witnesses=[
            Witness("lost-record", 0, 1, (), ("input/0@0",), "2 records", "0 records"),
            Witness("lost-record", 0, 3, (), ("input/0@1",), "1 record", "0 records"),
            Witness("lost-record", 1, 0, (), ("input/1@0",), "1 record", "0 records"),
            Witness("lost-record", 1, 2, (), ("input/1@2",), "1 record", "0 records"),
        ],
    ),
]

LOOK_ALIKES = [
    HEALTHY,
    replace(
        HEALTHY,
        name="the counter skips values, and the ids changelog those of overwritten keys: caching is on",
        counter=[(0, 1, 0, 1), (1, 1, 0, 1)],
        ids=[(0, 1, 1, 0), (0, 2, 3, 2), (1, 1, 0, 1), (1, 2, 2, 3)],
    ),
    replace(
        HEALTHY,
        name="the same ID is written to the changelog again",
        ids=[*HEALTHY.ids, (0, 4, 1, 0)],
    ),
    replace(
        HEALTHY,
        name="counter-regression: a tombstone, then the value again; what starts anew after it did not fall once more",
        counter=[(0, 0, 0, 0), (0, 2, 0, 1), (0, 4, 0, None), (0, 6, 0, 1), (1, 0, 0, 0), (1, 2, 0, 1)],
        ids=[(0, 0, 1, 0), (0, 2, 3, 2), (0, 4, 3, None), (0, 6, 3, 2), (1, 0, 0, 1), (1, 2, 2, 3)],
        witnesses=[
            Witness(
                "counter-regression",
                0,
                0,
                (),
                ("counter-changelog/0@2", "counter-changelog/0@4"),
                "more than 1",
                "nothing",
            )
        ],
    ),
    replace(
        HEALTHY,
        name="a tombstone for a key that the output does not know either",
        ids=[*HEALTHY.ids, (1, 4, 8, None)],
    ),
    replace(
        HEALTHY,
        name="the counters of two partitions are not compared with each other",
        counter=[(1, 0, 0, 0), (1, 2, 0, 1), (0, 4, 0, 0), (0, 6, 0, 1)],
    ),
    Specimen(
        name="negative keys, and the smallest and the largest integer",
        partitions=2,
        input=[(0, 0, -1), (0, 1, 2**31 - 1), (1, 0, -(2**31)), (1, 1, -2)],
        output=[(0, 0, -1, 0), (0, 1, 2**31 - 1, 2), (1, 0, -(2**31), 1), (1, 1, -2, 3)],
        counter=[(0, 0, 0, 1), (1, 0, 0, 1)],
        ids=[(0, 0, -1, 0), (0, 1, 2**31 - 1, 2), (1, 0, -(2**31), 1), (1, 1, -2, 3)],
    ),
    Specimen(
        name="the order within a partition decides, not the size of the key nor the order between partitions",
        partitions=3,
        input=[(2, 7, 700), (2, 9, 4), (2, 12, 700), (0, 100, 5), (1, 3, 6)],
        output=[(2, 0, 700, 2), (2, 1, 4, 5), (2, 2, 700, 2), (0, 0, 5, 0), (1, 0, 6, 1)],
        counter=[(2, 0, 0, 1), (0, 0, 0, 0), (1, 0, 0, 0)],
        ids=[(2, 0, 700, 2), (2, 1, 4, 5), (0, 0, 5, 0), (1, 0, 6, 1)],
    ),
    Specimen(name="empty topics", partitions=2, input=[], output=[], counter=[], ids=[]),
]

SPECIMENS = [*ANOMALOUS, *LOOK_ALIKES]
