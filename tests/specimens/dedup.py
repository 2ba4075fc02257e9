"""Specimens of the topology `dedup`: a handful of records each, and exactly what must be found in them.

`(partition, offset, key, value)`; of the contents of the store, the offset is the number of the entry. All are bent
from `HEALTHY`: keys 1 and 2 were committed before the process was killed; what it wrote of keys 3 and 4 at the offsets
3 and 4 of the changelog was aborted, and written again after the restart.
"""

from dataclasses import dataclass, field, replace

from onceproof.model.anomaly import Witness

Record = tuple[int, int, int, int]
Change = tuple[int, int, int, int | None]  # a changelog's record; None is a tombstone


@dataclass(frozen=True)
class Specimen:
    """The records of one trial and the witnesses that a reader must find, no more and no less."""

    name: str
    input: list[Record]
    output: list[Record]
    changelog: list[Change]
    contents: list[Record]
    seen_end: int
    cached: bool = False
    punctuated: bool = False
    witnesses: list[Witness] = field(default_factory=list)

    @property
    def topics(self) -> dict[str, list[Change]]:
        """The records by role."""
        return {
            "input": [*self.input],
            "output": [*self.output],
            "seen-changelog": self.changelog,
            "seen-contents": [*self.contents],
        }

    @property
    def kind(self) -> dict[str, int]:
        """What the check must know about the store."""
        return {"cached": int(self.cached), "punctuated": int(self.punctuated)}

    @property
    def facts(self) -> dict[str, int]:
        """What the check must know besides the records."""
        return {"partitions": 1, "exactly_once": 1, "seen_end": self.seen_end, **self.kind}


HEALTHY = Specimen(
    name="healthy",
    input=[(0, 0, 1, 1), (0, 1, 2, 2), (0, 2, 3, 3), (0, 3, 4, 4)],
    output=[(0, 0, 1, 1), (0, 1, 2, 2), (0, 6, 3, 3), (0, 7, 4, 4)],
    changelog=[(0, 0, 1, 1), (0, 1, 2, 2), (0, 6, 3, 3), (0, 7, 4, 4)],
    contents=[(0, 0, 1, 1), (0, 1, 2, 2)],
    seen_end=5,
)


def again(key: int, offset: int, there: int = 2) -> Witness:
    """A witness that the changelog has a key, which is stored once, several times."""
    return witness("duplicate-output", key, f"seen-changelog/0@{offset}", "1 record", f"{there} records")


def witness(anomaly: str, key: int, place: str, expected: str, observed: str) -> Witness:
    """A witness of one key at one place."""
    return Witness(anomaly, 0, key, (), (place,), expected, observed)


ANOMALOUS = [
    replace(
        HEALTHY,
        name="lost-record and uncommitted-state: the store remembers the aborted key 3, whose record is dropped",
        output=[(0, 0, 1, 1), (0, 1, 2, 2), (0, 6, 4, 4)],
        changelog=[(0, 0, 1, 1), (0, 1, 2, 2), (0, 6, 4, 4)],
        contents=[*HEALTHY.contents, (0, 2, 3, 3)],
        witnesses=[
            witness("lost-record", 3, "input/0@2", "1 record", "0 records"),
            witness("uncommitted-state", 3, "seen-contents/0@2", "nothing", "3"),
        ],
    ),
    replace(
        HEALTHY,
        name="lost-record: key 3 was committed to the store and never came out",
        output=[(0, 0, 1, 1), (0, 1, 2, 2), (0, 7, 4, 4)],
        witnesses=[witness("lost-record", 3, "input/0@2", "1 record", "0 records")],
    ),
    replace(
        HEALTHY,
        name="lost-record: of a repeated key, the first record is named",
        input=[*HEALTHY.input, (0, 4, 3, 3)],
        output=[(0, 0, 1, 1), (0, 1, 2, 2), (0, 7, 4, 4)],
        witnesses=[witness("lost-record", 3, "input/0@2", "1 record", "0 records")],
    ),
    replace(
        HEALTHY,
        name="duplicate-output: key 2 went in once and came out twice",
        output=[*HEALTHY.output, (0, 9, 2, 2)],
        witnesses=[witness("duplicate-output", 2, "output/0@9", "1 record", "2 records")],
    ),
    replace(
        HEALTHY,
        name="duplicate-output: key 2 went in twice and came out twice",
        input=[*HEALTHY.input, (0, 4, 2, 2)],
        output=[*HEALTHY.output, (0, 9, 2, 2)],
        witnesses=[witness("duplicate-output", 2, "output/0@9", "1 record", "2 records")],
    ),
    replace(
        HEALTHY,
        name="unexpected-record: key 5 never went in",
        output=[*HEALTHY.output, (0, 9, 5, 5)],
        witnesses=[witness("unexpected-record", 5, "output/0@9", "0 records", "1 record")],
    ),
    replace(
        HEALTHY,
        name="uncommitted-state: key 3 was committed only after the kill, which does not explain it",
        contents=[*HEALTHY.contents, (0, 2, 3, 3)],
        witnesses=[witness("uncommitted-state", 3, "seen-contents/0@2", "nothing", "3")],
    ),
    replace(
        HEALTHY,
        name="uncommitted-state: the changelog's record at the end itself was not there at the kill",
        seen_end=6,
        contents=[*HEALTHY.contents, (0, 2, 3, 3)],
        witnesses=[witness("uncommitted-state", 3, "seen-contents/0@2", "nothing", "3")],
    ),
    replace(
        HEALTHY,
        name="uncommitted-state: key 2 has another value than was committed",
        contents=[(0, 0, 1, 1), (0, 1, 2, 9)],
        witnesses=[witness("uncommitted-state", 2, "seen-changelog/0@1", "2", "9")],
    ),
    replace(
        HEALTHY,
        name="uncommitted-state: key 2 has the value before the last",
        changelog=[*HEALTHY.changelog, (0, 3, 2, 5)],
        witnesses=[witness("uncommitted-state", 2, "seen-changelog/0@3", "5", "2"), again(2, 3)],
    ),
    replace(
        HEALTHY,
        name="uncommitted-state: key 2 was deleted, and the store holds it",
        changelog=[*HEALTHY.changelog, (0, 3, 2, None)],
        witnesses=[witness("uncommitted-state", 2, "seen-changelog/0@3", "nothing", "2"), again(2, 3)],
    ),
    replace(
        HEALTHY,
        name="lost-state: the store lacks key 1",
        contents=[(0, 0, 2, 2)],
        witnesses=[witness("lost-state", 1, "seen-changelog/0@0", "1", "nothing")],
    ),
    replace(
        HEALTHY,
        name="lost-state: the store is empty",
        contents=[],
        witnesses=[
            witness("lost-state", 1, "seen-changelog/0@0", "1", "nothing"),
            witness("lost-state", 2, "seen-changelog/0@1", "2", "nothing"),
        ],
    ),
    replace(
        HEALTHY,
        name="lost-state: a deletion after the kill does not explain that key 1 is absent",
        changelog=[*HEALTHY.changelog, (0, 9, 1, None)],
        contents=[(0, 0, 2, 2)],
        witnesses=[witness("lost-state", 1, "seen-changelog/0@0", "1", "nothing"), again(1, 9)],
    ),
]

LOOK_ALIKES = [
    HEALTHY,
    replace(
        HEALTHY,
        name="a key that was deleted is absent from the store; only that it was deleted is wrong",
        changelog=[*HEALTHY.changelog, (0, 3, 1, None)],
        contents=[(0, 0, 2, 2)],
        witnesses=[again(1, 3)],
    ),
    replace(
        HEALTHY,
        name="a key that was deleted and put again is in the store; only that it was is wrong",
        changelog=[*HEALTHY.changelog, (0, 3, 1, None), (0, 4, 1, 8)],
        contents=[(0, 0, 1, 8), (0, 1, 2, 2)],
        witnesses=[again(1, 4, 3)],
    ),
    replace(
        HEALTHY,
        name="a key that was repeated comes out once",
        input=[*HEALTHY.input, (0, 4, 1, 1), (0, 5, 3, 3), (0, 6, 3, 3)],
    ),
    replace(
        HEALTHY,
        name="records after the kill change what the store holds now, not what it had to hold",
        changelog=[*HEALTHY.changelog, (0, 9, 1, 7), (0, 10, 2, None)],
        witnesses=[again(1, 9), again(2, 10)],
    ),
    replace(
        HEALTHY,
        name="a punctuator writes keys of its own, which no input explains",
        punctuated=True,
        changelog=[*HEALTHY.changelog, (0, 9, -5, 7), (0, 10, -5, 8)],
    ),
    replace(
        HEALTHY,
        name="the entries of a store have no order",
        contents=[(0, 0, 2, 2), (0, 1, 1, 1)],
    ),
    replace(
        HEALTHY,
        name="nothing was committed at the kill, and the store is empty",
        seen_end=0,
        contents=[],
    ),
    Specimen(
        name="negative keys, and the value 0, which is not nothing",
        input=[(0, 0, -1, 0), (0, 1, -(2**31), 0)],
        output=[(0, 0, -1, 0), (0, 1, -(2**31), 0)],
        changelog=[(0, 0, -1, 0), (0, 1, -(2**31), 0)],
        contents=[(0, 0, -1, 0), (0, 1, -(2**31), 0)],
        seen_end=2,
    ),
    Specimen(name="empty topics", input=[], output=[], changelog=[], contents=[], seen_end=0),
]

SPECIMENS = [*ANOMALOUS, *LOOK_ALIKES]
