"""Specimens of the topology `values`: a handful of records each, and exactly what must be found in them.

`(partition, offset, key, value)`; partitions take turns. Each transaction of the changelog ends with a marker, which
takes up an offset. All are bent from `HEALTHY`: keys 0 to 3, committed in three transactions.
"""

from dataclasses import dataclass, field, replace

from onceproof.model.anomaly import Witness

Record = tuple[int, int, int, int]


@dataclass(frozen=True)
class Specimen:
    """The records of one trial and the witnesses that a reader must find, no more and no less."""

    name: str
    input: list[Record]
    changelog: list[Record]
    aborted: list[Record] = field(default_factory=list)
    witnesses: list[Witness] = field(default_factory=list)

    @property
    def topics(self) -> dict[str, list[Record]]:
        """The records by role."""
        return {
            "input": self.input,
            "values-changelog": self.changelog,
            "values-changelog-all": sorted([*self.changelog, *self.aborted], key=lambda record: record[1]),
        }

    @property
    def facts(self) -> dict[str, int]:
        """What the check must know besides the records."""
        return {"partitions": 1, "exactly_once": 1, "cached": 0}


HEALTHY = Specimen(
    name="healthy: three committed transactions",
    input=[(0, 0, 0, 0), (0, 1, 1, 1), (0, 2, 2, 2), (0, 3, 3, 3)],
    changelog=[(0, 0, 0, 0), (0, 1, 1, 1), (0, 3, 2, 2), (0, 5, 3, 3)],
)
TWO_PARTITIONS = replace(
    HEALTHY,
    name="two partitions: what follows in another partition is another transaction",
    input=[(0, 0, 0, 0), (0, 1, 1, 1), (1, 0, 2, 2), (1, 1, 3, 3)],
    changelog=[(0, 0, 0, 0), (0, 1, 1, 1), (1, 2, 2, 2), (1, 3, 3, 3)],
)


def aborted(place: str, observed: str, partition: int = 0) -> Witness:
    """A witness of an aborted transaction."""
    return Witness("aborted-by-throttle", partition, None, (), (place,), "committed", observed)


ANOMALOUS = [
    replace(
        HEALTHY,
        name="aborted-by-throttle: a transaction of two records, which were written again",
        changelog=[(0, 0, 0, 0), (0, 1, 1, 1), (0, 6, 2, 2), (0, 7, 3, 3)],
        aborted=[(0, 3, 2, 2), (0, 4, 3, 3)],
        witnesses=[aborted("values-changelog/0@3", "aborted, 2 records")],
    ),
    replace(
        HEALTHY,
        name="aborted-by-throttle: the first transaction, of one record",
        changelog=[(0, 2, 0, 0), (0, 3, 1, 1), (0, 4, 2, 2), (0, 5, 3, 3)],
        aborted=[(0, 0, 0, 0)],
        witnesses=[aborted("values-changelog/0@0", "aborted, 1 record")],
    ),
    replace(
        HEALTHY,
        name="aborted-by-throttle: twice in a row, told apart by the marker between them",
        changelog=[(0, 0, 0, 0), (0, 1, 1, 1), (0, 8, 2, 2), (0, 9, 3, 3)],
        aborted=[(0, 3, 2, 2), (0, 5, 2, 2), (0, 6, 3, 3)],
        witnesses=[
            aborted("values-changelog/0@3", "aborted, 1 record"),
            aborted("values-changelog/0@5", "aborted, 2 records"),
        ],
    ),
    replace(
        TWO_PARTITIONS,
        name="aborted-by-throttle in the second of two partitions, at the offset where the first goes on",
        changelog=[(0, 0, 0, 0), (0, 1, 1, 1), (1, 4, 2, 2), (1, 5, 3, 3)],
        aborted=[(1, 2, 2, 2)],
        witnesses=[aborted("values-changelog/1@2", "aborted, 1 record", partition=1)],
    ),
    replace(
        TWO_PARTITIONS,
        name="aborted-by-throttle in both partitions, at the same offsets",
        changelog=[(0, 2, 0, 0), (0, 3, 1, 1), (1, 2, 2, 2), (1, 3, 3, 3)],
        aborted=[(0, 0, 0, 0), (1, 0, 2, 2)],
        witnesses=[
            aborted("values-changelog/0@0", "aborted, 1 record"),
            aborted("values-changelog/1@0", "aborted, 1 record", partition=1),
        ],
    ),
    replace(
        HEALTHY,
        name="aborted-by-throttle and lost-record: key 3 was not written again",
        changelog=HEALTHY.changelog[:3],
        aborted=[(0, 5, 3, 3)],
        witnesses=[
            aborted("values-changelog/0@5", "aborted, 1 record"),
            Witness("lost-record", 0, 3, (), ("input/0@3",), "1 record", "0 records"),
        ],
    ),
    replace(
        HEALTHY,
        name="lost-record: key 2 was skipped",
        changelog=[(0, 0, 0, 0), (0, 1, 1, 1), (0, 3, 3, 3)],
        witnesses=[Witness("lost-record", 0, 2, (), ("input/0@2",), "1 record", "0 records")],
    ),
    replace(
        HEALTHY,
        name="duplicate-output: key 2 was committed twice",
        changelog=[*HEALTHY.changelog, (0, 6, 2, 2)],
        witnesses=[Witness("duplicate-output", 0, 2, (), ("values-changelog/0@6",), "1 record", "2 records")],
    ),
]

LOOK_ALIKES = [
    HEALTHY,
    TWO_PARTITIONS,
    replace(
        HEALTHY,
        name="one transaction",
        changelog=[(0, 0, 0, 0), (0, 1, 1, 1), (0, 2, 2, 2), (0, 3, 3, 3)],
    ),
    replace(
        HEALTHY,
        name="empty transactions leave longer gaps",
        changelog=[(0, 4, 0, 0), (0, 5, 1, 1), (0, 9, 2, 2), (0, 13, 3, 3)],
    ),
    replace(
        HEALTHY,
        name="two partitions, in which the same offsets are those of other transactions",
        input=[(0, 0, 0, 0), (1, 0, 1, 1), (1, 1, 2, 2), (0, 1, 3, 3)],
        changelog=[(0, 0, 0, 0), (1, 0, 1, 1), (1, 1, 2, 2), (0, 2, 3, 3)],
    ),
    Specimen(name="empty topics", input=[], changelog=[]),
]

SPECIMENS = [*ANOMALOUS, *LOOK_ALIKES]
