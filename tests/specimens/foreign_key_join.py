"""Specimens of the topology `foreign-key-join`: a handful of records each, and exactly what must be found in them.

Input `(partition, offset, key, value)`; output `(partition, offset, key, left, right)`, both 0 where there is no
result. All are bent from `HEALTHY`: keys 0 and 1 are in the right table; of the left table, keys 10 and 14 have a
foreign key, that of key 11 came from null, that of key 12 became null, and key 13 asks for one that does not exist.
Those of a left join are bent from `LEFT`, without null keys: where `right` is 0, there is nothing on that side.
In `RACING` rows have a second attribute, by millions, and 999,999 deletes one: of key 10 the attribute changed, key 11
then asked for another key, too, key 12 asks for none with another attribute, key 13 was deleted, key 14 came back.
"""

from dataclasses import dataclass, field, replace

from onceproof.model.anomaly import Witness

Record = tuple[int, int, int, int]
Result = tuple[int, int, int, int, int]


@dataclass(frozen=True)
class Specimen:
    """The records of one trial and the witnesses that a reader must find, no more and no less."""

    name: str
    input: list[Record]
    output: list[Result]
    witnesses: list[Witness] = field(default_factory=list)
    join: int = 0

    @property
    def topics(self) -> dict[str, list[Record]]:
        """The records by role."""
        output = [(p, offset, key, left << 32 | right) for p, offset, key, left, right in self.output]
        return {"input": self.input, "output": output}

    @property
    def facts(self) -> dict[str, int]:
        """What the check must know besides the records."""
        return {"partitions": 1, "exactly_once": 1, "cached": 0, "join": self.join}


HEALTHY = Specimen(
    name="healthy",
    input=[
        *((0, 0, 0, -50), (0, 1, 1, -60)),
        *((0, 2, 10, 1), (0, 3, 11, 0), (0, 4, 12, 2), (0, 5, 11, 1), (0, 6, 12, 0), (0, 7, 13, 3)),
        *((0, 8, 1, -70), (0, 9, 14, 2)),
    ],
    output=[(0, 0, 10, 1, 50), (0, 1, 12, 2, 60), (0, 3, 11, 1, 50), (0, 4, 12, 0, 0), (0, 6, 14, 2, 70)],
)


LEFT = Specimen(
    name="healthy, to the left",
    input=[
        *((0, 0, 0, -50), (0, 1, 1, -60)),
        *((0, 2, 10, 1), (0, 3, 11, 3), (0, 4, 12, 1), (0, 5, 12, 2)),
    ],
    output=[(0, 0, 10, 1, 50), (0, 1, 11, 3, 0), (0, 2, 12, 1, 50), (0, 3, 12, 2, 60)],
    join=1,
)


RACING = Specimen(
    name="rows change, and not their foreign keys",
    input=[
        *((0, 0, 0, -50), (0, 1, 1, -60)),
        *((0, 2, 10, 1), (0, 3, 11, 1), (0, 4, 12, 1), (0, 5, 13, 2), (0, 6, 14, 2), (0, 7, 15, 1)),
        *((0, 8, 10, 3_000_001), (0, 9, 11, 2), (0, 10, 11, 1_000_002), (0, 11, 12, 0), (0, 12, 12, 7_000_000)),
        *((0, 13, 13, 999_999), (0, 14, 14, 999_999), (0, 15, 14, 1_000_001), (0, 16, 15, 5), (0, 17, 15, 1_000_005)),
    ],
    output=[
        *((0, 0, 10, 1, 50), (0, 1, 12, 1, 50), (0, 2, 13, 2, 60), (0, 3, 14, 2, 60), (0, 4, 15, 1, 50)),
        *((0, 5, 10, 3_000_001, 50), (0, 6, 11, 1_000_002, 60), (0, 7, 12, 0, 0), (0, 8, 13, 0, 0)),
        *((0, 9, 14, 1_000_001, 50), (0, 10, 15, 0, 0)),
    ],
)
RACING_LEFT = replace(
    RACING,
    name="rows change, and not their foreign keys, to the left",
    output=[*RACING.output, (0, 11, 12, 7_000_000, 0), (0, 12, 15, 1_000_005, 0)],
    join=1,
)


def results(changes: dict[int, Result | None]) -> list[Result]:
    """The healthy output with other results at these offsets; None takes them away."""
    changed = (changes.get(record[1], record) for record in HEALTHY.output)
    return [record for record in changed if record is not None]


def found(anomaly: str, key: int, place: str, expected: str, observed: str) -> Witness:
    """A witness of a result."""
    return Witness(anomaly, 0, key, (), (place,), expected, observed)


def lost(key: int, place: str) -> Witness:
    """A witness of a result that is not there."""
    return found("lost-record", key, place, "1 record in output", "0 records")


def pair(left: int, right: int) -> str:
    """A result, in the words of witnesses."""
    return str(left << 32 | right)


ANOMALOUS = [
    replace(
        HEALTHY,
        name="lost-record: a foreign key that came from null was ignored",
        output=results({3: None}),
        witnesses=[lost(11, "input/0@5")],
    ),
    replace(
        HEALTHY,
        name="lost-record: a result was withdrawn",
        output=[*HEALTHY.output, (0, 7, 10, 0, 0)],
        witnesses=[lost(10, "input/0@2")],
    ),
    replace(
        HEALTHY,
        name="unexpected-record: a foreign key that became null was ignored",
        output=results({4: None}),
        witnesses=[found("unexpected-record", 12, "output/0@1", "nothing", pair(2, 60))],
    ),
    replace(
        HEALTHY,
        name="unexpected-record: a result with a key that is not there",
        output=[*HEALTHY.output, (0, 7, 13, 3, 70)],
        witnesses=[found("unexpected-record", 13, "output/0@7", "nothing", pair(3, 70))],
    ),
    replace(
        HEALTHY,
        name="unexpected-record: a result of nobody",
        output=[*HEALTHY.output, (0, 7, 15, 1, 50)],
        witnesses=[found("unexpected-record", 15, "output/0@7", "nothing", pair(1, 50))],
    ),
    replace(
        HEALTHY,
        name="wrong-value: the right value before the last",
        output=results({6: (0, 6, 14, 2, 60)}),
        witnesses=[found("wrong-value", 14, "output/0@6", pair(2, 70), pair(2, 60))],
    ),
    replace(
        HEALTHY,
        name="wrong-value: the result of an older foreign key, before it was null",
        input=[*HEALTHY.input, (0, 10, 10, 0), (0, 11, 10, 2)],
        witnesses=[found("wrong-value", 10, "output/0@0", pair(2, 70), pair(1, 50))],
    ),
    replace(
        LEFT,
        name="wrong-value: to the left, the older foreign key answered last",
        output=[*LEFT.output, (0, 4, 12, 2, 0)],
        witnesses=[found("wrong-value", 12, "output/0@4", pair(2, 60), pair(2, 0))],
    ),
    replace(
        LEFT,
        name="lost-record: to the left, a record did not come out",
        output=[LEFT.output[0], *LEFT.output[2:]],
        witnesses=[lost(11, "input/0@3")],
    ),
    replace(
        LEFT,
        name="unexpected-record: an inner join gave nothing as a right side",
        join=0,
        witnesses=[found("unexpected-record", 11, "output/0@1", "nothing", pair(3, 0))],
    ),
]

ANOMALOUS += [
    replace(
        RACING,
        name="unexpected-record: the row changed again, so the answer that its key is not there was dropped",
        output=RACING.output[:-1],
        witnesses=[found("unexpected-record", 15, "output/0@4", "nothing", pair(1, 50))],
    ),
    replace(
        RACING,
        name="unexpected-record: the row was deleted, and its result stays",
        output=[*RACING.output[:8], *RACING.output[9:]],
        witnesses=[found("unexpected-record", 13, "output/0@2", "nothing", pair(2, 60))],
    ),
    replace(
        RACING,
        name="unexpected-record: no foreign key, but another attribute",
        output=[*RACING.output[:7], *RACING.output[8:]],
        witnesses=[found("unexpected-record", 12, "output/0@1", "nothing", pair(1, 50))],
    ),
    replace(
        RACING,
        name="wrong-value: the attribute before the last",
        output=[*RACING.output, (0, 11, 11, 2, 60)],
        witnesses=[found("wrong-value", 11, "output/0@11", pair(1_000_002, 60), pair(2, 60))],
    ),
    replace(
        RACING_LEFT,
        name="unexpected-record: to the left, a row that was deleted",
        output=[*RACING_LEFT.output, (0, 13, 13, 999_999, 0)],
        witnesses=[found("unexpected-record", 13, "output/0@13", "nothing", pair(999_999, 0))],
    ),
    replace(
        RACING_LEFT,
        name="wrong-value: to the left, the result with the key before stays",
        output=RACING_LEFT.output[:10] + RACING_LEFT.output[11:12],
        witnesses=[found("wrong-value", 15, "output/0@4", pair(1_000_005, 0), pair(1, 50))],
    ),
]

LOOK_ALIKES = [
    HEALTHY,
    RACING,
    RACING_LEFT,
    replace(
        HEALTHY,
        name="results in another order, and more of them on the way",
        output=[
            (0, 0, 12, 2, 70),
            (0, 1, 14, 2, 60),
            (0, 2, 14, 2, 70),
            (0, 3, 12, 0, 0),
            (0, 4, 11, 1, 50),
            (0, 7, 10, 1, 50),
        ],
    ),
    replace(
        HEALTHY, name="told that there is none, though there never was one", output=[*HEALTHY.output, (0, 7, 13, 0, 0)]
    ),
    replace(
        HEALTHY,
        name="no result was ever told of a key that has none",
        input=HEALTHY.input[:-2],
        output=results({6: None}),
    ),
    LEFT,
    replace(
        LEFT,
        name="to the left, the older foreign key answered first",
        output=[*LEFT.output[:3], (0, 3, 12, 2, 0), (0, 4, 12, 2, 60)],
    ),
    Specimen(name="empty topics", input=[], output=[]),
]

SPECIMENS = [*ANOMALOUS, *LOOK_ALIKES]
