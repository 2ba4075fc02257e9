"""Specimens of the topology `scans`: a handful of records each, and exactly what must be found in them.

Input and changelog `(partition, offset, key, value)`; output `(partition, offset, key, number, sum)`. A range reaches 2
keys, and the whole store is scanned for every 10th key. All are bent from `HEALTHY`: keys 1, 3, 5 are in partition
0, keys 2 and 10 in partition 1; all but key 5 are deleted.
"""

from dataclasses import dataclass, field, replace

from onceproof.model.anomaly import Witness
from onceproof.scenarios.scan import DELETE, PUT

Record = tuple[int, int, int, int]
Change = tuple[int, int, int, int | None]  # None is a tombstone
Scan = tuple[int, int, int, int, int]


@dataclass(frozen=True)
class Specimen:
    """The records of one trial and the witnesses that a reader must find, no more and no less."""

    name: str
    input: list[Record]
    output: list[Scan]
    changelog: list[Change]
    exactly_once: bool = True
    witnesses: list[Witness] = field(default_factory=list)

    @property
    def topics(self) -> dict[str, list[Change]]:
        """The records by role."""
        output = [(p, offset, key, number << 32 | total) for p, offset, key, number, total in self.output]
        return {"input": [*self.input], "output": [*output], "records-changelog": self.changelog}

    @property
    def facts(self) -> dict[str, int]:
        """What the check must know besides the records."""
        return {"partitions": 2, "exactly_once": int(self.exactly_once), "cached": 1, "reach": 2, "all_every": 10}


PUTS = [(0, 0, 1, PUT), (0, 1, 3, PUT), (0, 2, 5, PUT), (1, 0, 2, PUT), (1, 1, 10, PUT)]
HEALTHY = Specimen(
    name="healthy",
    input=[*PUTS, (0, 3, 3, DELETE), (0, 4, 1, DELETE), (1, 2, 10, DELETE), (1, 3, 2, DELETE)],
    output=[(0, 0, 3, 2, 6), (0, 1, 1, 0, 0), (1, 0, 10, 1, 2), (1, 2, 2, 0, 0)],
    changelog=[*PUTS, (0, 4, 3, None), (0, 5, 1, None), (1, 3, 10, None), (1, 5, 2, None)],
)


def answers(changes: dict[int, Scan | None]) -> list[Scan]:
    """The healthy output with other answers for these keys; None takes them away."""
    changed = (changes.get(record[2], record) for record in HEALTHY.output)
    return [record for record in changed if record is not None]


def scanned(anomaly: str, key: int, place: str, expected: str, observed: str, partition: int = 0) -> Witness:
    """A witness of what a scan found."""
    return Witness(anomaly, partition, key, (), (place,), expected, observed)


ANOMALOUS = [
    replace(
        HEALTHY,
        name="ghost-key: the scan of a range finds the key that was just deleted",
        output=answers({3: (0, 0, 3, 3, 9)}),
        witnesses=[scanned("ghost-key", 3, "output/0@0", "2 keys with the sum 6", "3 keys with the sum 9")],
    ),
    replace(
        HEALTHY,
        name="ghost-key: the scan of the store finds the key that was just deleted",
        output=answers({10: (1, 0, 10, 2, 12)}),
        witnesses=[
            scanned("ghost-key", 10, "output/1@0", "1 key with the sum 2", "2 keys with the sum 12", partition=1)
        ],
    ),
    replace(
        HEALTHY,
        name="ghost-key: a key that was deleted before",
        output=answers({1: (0, 1, 1, 1, 3)}),
        witnesses=[scanned("ghost-key", 1, "output/0@1", "0 keys with the sum 0", "1 key with the sum 3")],
    ),
    replace(
        HEALTHY,
        name="ghost-key: as many keys, but others",
        output=answers({3: (0, 0, 3, 2, 8)}),
        witnesses=[scanned("ghost-key", 3, "output/0@0", "2 keys with the sum 6", "2 keys with the sum 8")],
    ),
    replace(
        HEALTHY,
        name="missing-key: a key that is there is not found",
        output=answers({3: (0, 0, 3, 1, 1)}),
        witnesses=[scanned("missing-key", 3, "output/0@0", "2 keys with the sum 6", "1 key with the sum 1")],
    ),
    replace(
        HEALTHY,
        name="lost-record: no answer",
        output=answers({10: None}),
        witnesses=[scanned("lost-record", 10, "input/1@2", "1 key with the sum 2", "no answer", partition=1)],
    ),
    replace(
        HEALTHY,
        name="duplicate-output: two answers",
        output=[*HEALTHY.output, (0, 3, 1, 0, 0)],
        witnesses=[scanned("duplicate-output", 1, "output/0@3", "0 keys with the sum 0", "2 answers")],
    ),
    replace(
        HEALTHY,
        name="ghost-key: of two answers the first is judged",
        output=[*answers({3: (0, 0, 3, 3, 9)}), (0, 3, 3, 2, 6)],
        exactly_once=False,
        witnesses=[scanned("ghost-key", 3, "output/0@0", "2 keys with the sum 6", "3 keys with the sum 9")],
    ),
    replace(
        HEALTHY,
        name="unexpected-record: an answer that nobody asked for",
        output=[*HEALTHY.output, (0, 3, 5, 1, 5)],
        witnesses=[scanned("unexpected-record", 5, "output/0@3", "nothing", "1 key with the sum 5")],
    ),
    replace(
        HEALTHY,
        name="unexpected-record: a deletion that did not reach the changelog",
        changelog=[record for record in HEALTHY.changelog if record[2:] != (3, None)],
        witnesses=[scanned("unexpected-record", 3, "records-changelog/0@1", "nothing", "1")],
    ),
]

LOOK_ALIKES = [
    HEALTHY,
    replace(
        HEALTHY,
        name="keys that are too far away, in another partition, or put later are not to be found",
        input=[*HEALTHY.input, (0, 5, 9, PUT), (0, 6, 7, DELETE), (1, 4, 4, PUT)],
        output=[*HEALTHY.output, (0, 3, 7, 2, 14)],
        changelog=[*HEALTHY.changelog, (0, 6, 9, PUT), (1, 6, 4, PUT)],
    ),
    replace(
        HEALTHY,
        name="at least once, a request is answered again when others were deleted since",
        output=[*HEALTHY.output, (0, 3, 3, 1, 5)],
        exactly_once=False,
    ),
    Specimen(name="empty topics", input=[], output=[], changelog=[]),
]

SPECIMENS = [*ANOMALOUS, *LOOK_ALIKES]
