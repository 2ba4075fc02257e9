"""Specimens of the topology `grouped-table`: a handful of records each, and exactly what must be found in them.

Records are `(partition, offset, key, value)`; the key of an output is a group, the remainder of the input's by 100. All
are bent from `HEALTHY`: group 1 has the keys 1, 101 and 201, group 2 the keys 2 and 102, group 3 the key 3.
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
    witnesses: list[Witness] = field(default_factory=list)

    @property
    def topics(self) -> dict[str, list[Record]]:
        """The records by role."""
        return {"input": self.input, "output": self.output}

    @property
    def facts(self) -> dict[str, int]:
        """What the check must know besides the records."""
        return {"partitions": 1, "exactly_once": 1, "cached": 0}


HEALTHY = Specimen(
    name="healthy",
    input=[
        *((0, 0, 1, 10), (0, 1, 101, 20), (0, 2, 2, 5), (0, 3, 201, 30)),
        *((0, 4, 1, 11), (0, 5, 3, 7), (0, 6, 102, 6), (0, 7, 101, 25)),
    ],
    output=[
        *((0, 0, 1, 10), (0, 1, 1, 30), (0, 2, 2, 5), (0, 3, 1, 60)),
        *((0, 4, 1, 61), (0, 5, 3, 7), (0, 6, 2, 11), (0, 7, 1, 66)),
    ],
)


def found(anomaly: str, group: int, place: str, expected: str, observed: str) -> Witness:
    """A witness of a sum."""
    return Witness(anomaly, 0, group, (), (place,), expected, observed)


ANOMALOUS = [
    replace(
        HEALTHY,
        name="wrong-value: both values of a change were taken for one, which was added",
        output=[*HEALTHY.output[:-1], (0, 7, 1, 61 + 134_217_728)],
        witnesses=[found("wrong-value", 1, "output/0@7", "66", "134217789")],
    ),
    replace(
        HEALTHY,
        name="wrong-value: the new value was added, and the old one not subtracted",
        output=[*HEALTHY.output[:-1], (0, 7, 1, 86)],
        witnesses=[found("wrong-value", 1, "output/0@7", "66", "86")],
    ),
    replace(
        HEALTHY,
        name="wrong-value: the old value was subtracted, and the new one did not come",
        output=[*HEALTHY.output, (0, 8, 1, 41)],
        witnesses=[found("wrong-value", 1, "output/0@8", "66", "41")],
    ),
    replace(
        HEALTHY,
        name="lost-record: a group without a sum",
        output=[record for record in HEALTHY.output if record[2] != 3],
        witnesses=[found("lost-record", 3, "input/0@5", "1 record in output", "0 records")],
    ),
    replace(
        HEALTHY,
        name="unexpected-record: a group that no key is in",
        output=[*HEALTHY.output, (0, 8, 4, 7)],
        witnesses=[found("unexpected-record", 4, "output/0@8", "nothing", "7")],
    ),
]

LOOK_ALIKES = [
    HEALTHY,
    replace(
        HEALTHY,
        name="two results a change, as with upgrade.from",
        output=[*HEALTHY.output[:-1], (0, 7, 1, 41), (0, 8, 1, 66)],
    ),
    replace(
        HEALTHY,
        name="groups in another order, and a cached sum that comes out once",
        output=[(0, 0, 3, 7), (0, 2, 2, 11), (0, 3, 1, 66)],
    ),
    replace(
        HEALTHY,
        name="a wrong sum that was put right",
        output=[*HEALTHY.output[:-1], (0, 7, 1, 9), (0, 8, 1, 66)],
    ),
    Specimen(name="empty topics", input=[], output=[]),
]

SPECIMENS = [*ANOMALOUS, *LOOK_ALIKES]
