"""Specimens of the topology `copy`: a handful of records each, and exactly what must be found in them.

Records are `(partition, offset, key, value)`. All are bent from `HEALTHY`, in which each record of the input comes out.
"""

from dataclasses import dataclass, field, replace

from onceproof.model.anomaly import Witness

Record = tuple[int, int, int, int]


@dataclass(frozen=True)
class Specimen:
    """The records of one trial and the witnesses that a reader must find, no more and no less."""

    name: str
    input: list[Record]
    output: list[Record]
    exactly_once: bool = False
    witnesses: list[Witness] = field(default_factory=list)

    @property
    def topics(self) -> dict[str, list[Record]]:
        """The records by role."""
        return {"input": self.input, "output": self.output}

    @property
    def facts(self) -> dict[str, int]:
        """What the check must know besides the records."""
        return {"partitions": 1, "exactly_once": int(self.exactly_once), "cached": 0}


RECORDS: list[Record] = [(0, 0, 1, 10), (0, 1, 2, 20), (0, 2, 3, 30), (0, 3, 1, 11)]
HEALTHY = Specimen(name="healthy", input=RECORDS, output=RECORDS)


def lost(key: int, place: str, expected: str = "1 record", observed: str = "0 records") -> Witness:
    """A witness that a key did not come out as often as it went in."""
    return Witness("lost-record", 0, key, (), (place,), expected, observed)


ANOMALOUS = [
    replace(
        HEALTHY,
        name="lost-record: the batch that was split and never sent again",
        output=RECORDS[:1],
        witnesses=[lost(1, "input/0@0", "2 records", "1 record"), lost(2, "input/0@1"), lost(3, "input/0@2")],
    ),
    replace(
        HEALTHY,
        name="lost-record: a part of the batch, and what came before it comes again",
        output=[*RECORDS[:1], (0, 1, 1, 10), (0, 2, 2, 20), (0, 3, 1, 11)],
        witnesses=[lost(3, "input/0@2")],
    ),
    replace(
        HEALTHY,
        name="duplicate-output: a suffix comes again in transactions",
        output=[*RECORDS, (0, 5, 3, 30)],
        exactly_once=True,
        witnesses=[Witness("duplicate-output", 0, 3, (), ("output/0@5",), "1 record", "2 records")],
    ),
    replace(
        HEALTHY,
        name="unexpected-record: a key that nobody sent",
        output=[*RECORDS, (0, 4, 9, 90)],
        witnesses=[Witness("unexpected-record", 0, 9, (), ("output/0@4",), "0 records", "1 record")],
    ),
    replace(
        HEALTHY,
        name="wrong-value: another one than was sent",
        output=[RECORDS[0], (0, 1, 2, 21), *RECORDS[2:]],
        witnesses=[Witness("wrong-value", 0, 2, (), ("output/0@1",), "20", "21")],
    ),
]

LOOK_ALIKES = [
    HEALTHY,
    replace(
        HEALTHY,
        name="what was published and not committed comes again",
        output=[*RECORDS[:3], (0, 3, 2, 20), (0, 4, 3, 30), (0, 5, 1, 11)],
    ),
    replace(
        HEALTHY, name="in transactions, with a marker between", output=[*RECORDS[:3], (0, 4, 1, 11)], exactly_once=True
    ),
    Specimen(name="empty topics", input=[], output=[]),
]

SPECIMENS = [*ANOMALOUS, *LOOK_ALIKES]
