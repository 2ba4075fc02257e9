"""Specimens of the topology `deleter`: a handful of records each, and exactly what must be found in them.

`(partition, offset, key, value)`. All are bent from `HEALTHY`: keys 1, 2 and 3 are put, then deleted; when the process
was killed, the deletion and the answer of key 1 were published, and nothing of the others.
"""

from dataclasses import dataclass, field, replace

from onceproof.model.anomaly import Witness
from onceproof.readers.answers import DELETE, FALSE, TRUE
from onceproof.scenarios.at_least_once import PUT

Record = tuple[int, int, int, int]
Change = tuple[int, int, int, int | None]  # a changelog's record; None is a tombstone


@dataclass(frozen=True)
class Specimen:
    """The records of one trial and the witnesses that a reader must find, no more and no less."""

    name: str
    input: list[Record]
    output: list[Record]
    changelog: list[Change]
    output_end: int
    changelog_end: int
    witnesses: list[Witness] = field(default_factory=list)

    @property
    def topics(self) -> dict[str, list[Change]]:
        """The records by role."""
        return {"input": [*self.input], "output": [*self.output], "records-changelog": self.changelog}

    @property
    def facts(self) -> dict[str, int]:
        """What the check must know besides the records."""
        ends = {"downstream": 0, "changelog_end": self.changelog_end, "output_end": self.output_end}
        return {"partitions": 1, "exactly_once": 0, "cached": 0, **ends}


PUTS = [(0, 0, 1, PUT), (0, 1, 2, PUT), (0, 2, 3, PUT)]
DELETIONS = [(0, 3, 1, None), (0, 4, 2, None), (0, 5, 3, None)]
HEALTHY = Specimen(
    name="healthy",
    input=[*PUTS, (0, 4, 1, DELETE), (0, 5, 2, DELETE), (0, 6, 3, DELETE)],
    output=[(0, 0, 1, TRUE), (0, 1, 2, TRUE), (0, 2, 3, TRUE)],
    changelog=[*PUTS, *DELETIONS],
    output_end=1,
    changelog_end=4,
)


def answered(anomaly: str, key: int, place: str, observed: str) -> Witness:
    """A witness of the answers to the request of a key."""
    return Witness(anomaly, 0, key, (), (place,), "true", observed)


def undeleted(key: int, place: str) -> Witness:
    """A witness that the deletion of a key never reached the changelog."""
    return Witness("lost-record", 0, key, (), (place,), "1 record in records-changelog", "0 records")


def disordered(key: int, place: str, behind: str, observed: str) -> Witness:
    """A witness that an answer comes before one that it must follow."""
    return Witness("wrong-order", 0, key, (), (place,), behind, observed)


def parted(key: int, place: str, observed: str) -> Witness:
    """A witness that only one of a deletion and its answer was published."""
    return Witness("changelog-output-mismatch", 0, key, (), (place,), "both or neither", observed)


ANOMALOUS = [
    replace(
        HEALTHY,
        name="false-after-true: the deletion of key 2 was published, its answer lost",
        output=[(0, 0, 1, TRUE), (0, 1, 2, FALSE), (0, 2, 3, TRUE)],
        changelog=[*PUTS, *DELETIONS, (0, 6, 2, None)],
        changelog_end=5,
        witnesses=[
            answered("false-after-true", 2, "output/0@1", "false"),
            parted(2, "input/0@5", "deletion records-changelog/0@4"),
        ],
    ),
    replace(
        HEALTHY,
        name="false-after-true: true, then false",
        output=[(0, 0, 1, TRUE), (0, 1, 1, FALSE), (0, 2, 2, TRUE), (0, 3, 3, TRUE)],
        witnesses=[answered("false-after-true", 1, "output/0@1", "true, false")],
    ),
    replace(
        HEALTHY,
        name="false-after-true: the answers in the order of the output, whatever that of the records",
        output=[(0, 9, 1, TRUE), (0, 4, 1, TRUE), (0, 0, 1, FALSE), (0, 1, 2, TRUE), (0, 2, 3, TRUE)],
        witnesses=[answered("false-after-true", 1, "output/0@9", "false, true, true")],
    ),
    replace(
        HEALTHY,
        name="duplicate-output: the answer of key 2 was published, its deletion lost",
        output=[(0, 0, 1, TRUE), (0, 1, 2, TRUE), (0, 2, 2, TRUE), (0, 3, 3, TRUE)],
        output_end=2,
        witnesses=[
            answered("duplicate-output", 2, "output/0@2", "true, true"),
            parted(2, "input/0@5", "answer output/0@1"),
        ],
    ),
    replace(
        HEALTHY,
        name="duplicate-output: true twice, though both were published",
        output=[(0, 0, 1, TRUE), (0, 1, 1, TRUE), (0, 2, 2, TRUE), (0, 3, 3, TRUE)],
        witnesses=[answered("duplicate-output", 1, "output/0@1", "true, true")],
    ),
    replace(
        HEALTHY,
        name="lost-record: key 3 got no answer",
        output=[(0, 0, 1, TRUE), (0, 1, 2, TRUE)],
        witnesses=[answered("lost-record", 3, "input/0@6", "nothing")],
    ),
    replace(
        HEALTHY,
        name="lost-record: nobody got an answer, and nothing was deleted",
        output=[],
        changelog=[*PUTS],
        output_end=0,
        witnesses=[
            answered("lost-record", 1, "input/0@4", "nothing"),
            answered("lost-record", 2, "input/0@5", "nothing"),
            answered("lost-record", 3, "input/0@6", "nothing"),
            *(undeleted(key, f"input/0@{key + 3}") for key in (1, 2, 3)),
        ],
    ),
    replace(
        HEALTHY,
        name="changelog-output-mismatch in both directions, healed afterwards",
        output=[(0, 0, 2, TRUE), (0, 2, 1, TRUE), (0, 3, 3, TRUE)],
        witnesses=[
            parted(1, "input/0@4", "deletion records-changelog/0@3"),
            parted(2, "input/0@5", "answer output/0@0"),
            disordered(2, "output/0@0", "of the first record", "of input/0@5"),
        ],
    ),
    replace(
        HEALTHY,
        name="changelog-output-mismatch: the first of two answers is named",
        output=[(0, 0, 1, TRUE), (0, 1, 2, TRUE), (0, 2, 2, TRUE), (0, 3, 3, TRUE)],
        output_end=3,
        witnesses=[
            answered("duplicate-output", 2, "output/0@2", "true, true"),
            parted(2, "input/0@5", "answer output/0@1"),
        ],
    ),
    replace(
        HEALTHY,
        name="changelog-output-mismatch: the first of two deletions is named",
        changelog=[*PUTS, (0, 3, 1, None), (0, 4, 2, None), (0, 5, 2, None), (0, 6, 3, None)],
        changelog_end=6,
        witnesses=[parted(2, "input/0@5", "deletion records-changelog/0@4")],
    ),
]

LOOK_ALIKES = [
    HEALTHY,
    replace(HEALTHY, name="neither was published of any", output_end=0, changelog_end=3),
    replace(HEALTHY, name="both were published of all", output_end=3, changelog_end=6),
    replace(
        HEALTHY,
        name="deletions and answers stand at other offsets, published after the ends",
        output=[(0, 0, 1, TRUE), (0, 7, 2, TRUE), (0, 9, 3, TRUE)],
        changelog=[*PUTS, (0, 3, 1, None), (0, 12, 2, None), (0, 15, 3, None)],
        output_end=7,
        changelog_end=12,
    ),
    replace(
        HEALTHY,
        name="a key that nobody asked to delete needs no answer",
        input=[*HEALTHY.input, (0, 7, 9, PUT)],
        changelog=[*HEALTHY.changelog, (0, 6, 9, PUT)],
    ),
    replace(
        HEALTHY,
        name="a deletion that was written again after the restart",
        changelog=[*HEALTHY.changelog, (0, 9, 1, None)],
    ),
    replace(
        HEALTHY,
        name="a key that is in the changelog and was not deleted there yet",
        output_end=0,
        changelog=[*PUTS, (0, 3, 1, PUT), (0, 5, 1, None), (0, 6, 2, None), (0, 7, 3, None)],
    ),
    Specimen(name="empty topics", input=[], output=[], changelog=[], output_end=0, changelog_end=0),
]

SPECIMENS = [*ANOMALOUS, *LOOK_ALIKES]
