"""Specimens of the topology `stream-join`: a handful of records each, and exactly what must be found in them.

Input `(partition, offset, key, value, timestamp)`; output `(partition, offset, key, left, right, timestamp)`, 0 where a
record came out alone. Records of a key may be 10 ms apart, and a window waits 5 ms more. All are bent from `HEALTHY`,
an outer join: in partition 0, the left record 3 is joined with the right 2, as is 1; 4, 5 and 6 are alone, and the
window of 7 does not close. In partition 1, the left 8 is alone, and 10 is joined with the right 9.

In `OUT_OF_ORDER` the right 2 and 7 come in the last millisecond of the grace, and 4, 5 and 8 come too late.
"""

from dataclasses import dataclass, field, replace

from onceproof.model.anomaly import Witness
from onceproof.scenarios.stream_join import JOINS

Record = tuple[int, int, int, int, int]
Result = tuple[int, int, int, int, int, int]


@dataclass(frozen=True)
class Specimen:
    """The records of one trial and the witnesses that a reader must find, no more and no less."""

    name: str
    input: list[Record]
    output: list[Result]
    join: str = "outer"
    exactly_once: bool = True
    ended: bool = True  # the drive
    before: int = 10  # ms that the right one may be older
    witnesses: list[Witness] = field(default_factory=list)

    @property
    def topics(self) -> dict[str, list[Record]]:
        """The records by role."""
        output = [(p, offset, key, left << 32 | right, made) for p, offset, key, left, right, made in self.output]
        return {"input": self.input, "output": output}

    @property
    def facts(self) -> dict[str, int]:
        """What the check must know besides the records."""
        own = {"window": 10, "before": self.before, "grace": 5, "join": JOINS.index(self.join)}
        return {"partitions": 2, "exactly_once": int(self.exactly_once), "ended": int(self.ended), **own}


HEALTHY = Specimen(
    name="healthy",
    input=[
        *((0, 0, 1, 1, 100), (0, 1, 1, -2, 105), (0, 2, 1, 3, 112), (0, 3, 3, -4, 120), (0, 4, 1, -5, 123)),
        *((0, 5, 3, 6, 131), (0, 6, 9, 7, 147)),
        *((1, 0, 2, 8, 100), (1, 1, 2, -9, 115), (1, 2, 2, 10, 125), (1, 3, 10, 11, 141)),
    ],
    output=[
        *((0, 0, 1, 1, 2, 105), (0, 1, 1, 3, 2, 112), (0, 3, 3, 0, 4, 120), (0, 4, 1, 0, 5, 123), (0, 6, 3, 6, 0, 131)),
        *((1, 0, 2, 8, 0, 100), (1, 1, 2, 10, 9, 125)),
    ],
)

OUT_OF_ORDER = Specimen(
    name="out of order: what came too late found its matches, or came out alone",
    input=[
        *((0, 0, 1, 1, 100), (0, 1, 1, -2, 95), (0, 2, 3, 3, 112), (0, 3, 3, -4, 106), (0, 4, 9, -5, 104)),
        *((0, 5, 11, 6, 113), (0, 6, 11, -7, 108), (0, 7, 11, -8, 105), (0, 8, 9, 9, 140)),
    ],
    output=[
        *((0, 0, 1, 1, 2, 100), (0, 1, 3, 3, 4, 112), (0, 2, 9, 0, 5, 104)),
        *((0, 3, 11, 6, 7, 113), (0, 4, 11, 6, 8, 113)),
    ],
)


def disordered(*places: int, also: tuple[Result, ...] = ()) -> list[Result]:
    """The output of `OUT_OF_ORDER` without the results at these places, and with others."""
    return [*(record for record in OUT_OF_ORDER.output if record[1] not in places), *also]


def results(changes: dict[tuple[int, int], Result | None]) -> list[Result]:
    """The healthy output with other results at these places; None takes them away."""
    changed = (changes.get(record[:2], record) for record in HEALTHY.output)
    return [record for record in changed if record is not None]


def found(anomaly: str, key: int, place: str, expected: str, observed: str, partition: int = 0) -> Witness:
    """A witness of a result."""
    return Witness(anomaly, partition, key, (), (place,), expected, observed)


ANOMALOUS = [
    replace(
        HEALTHY,
        name="lost-record: two records that match did not come out",
        output=results({(0, 1): None}),
        witnesses=[found("lost-record", 1, "input/0@2", "3 with 2", "nothing")],
    ),
    replace(
        HEALTHY,
        name="lost-alone: a right record that is alone did not come out",
        output=results({(0, 3): None}),
        witnesses=[found("lost-alone", 3, "input/0@3", "nothing with 4", "nothing")],
    ),
    replace(
        HEALTHY,
        name="lost-alone: a left record that is alone did not come out",
        output=results({(1, 0): None}),
        witnesses=[found("lost-alone", 2, "input/1@0", "8 with nothing", "nothing", partition=1)],
    ),
    replace(
        HEALTHY,
        name="lost-record: a drive that failed owes a pair all the same",
        output=results({(0, 1): None, (0, 3): None}),
        ended=False,
        witnesses=[found("lost-record", 1, "input/0@2", "3 with 2", "nothing")],
    ),
    replace(
        HEALTHY,
        name="early-alone: a record that has a match",
        output=[*HEALTHY.output, (0, 7, 1, 3, 0, 112)],
        witnesses=[found("early-alone", 1, "output/0@7", "nothing", "3 with nothing")],
    ),
    replace(
        HEALTHY,
        name="early-alone: a record whose window has not closed",
        output=[*HEALTHY.output, (0, 7, 9, 7, 0, 147)],
        witnesses=[found("early-alone", 9, "output/0@7", "nothing", "7 with nothing")],
    ),
    replace(
        HEALTHY,
        name="early-alone: a right record comes out of a join to the left",
        join="left",
        output=results({(0, 3): None}),
        witnesses=[found("early-alone", 1, "output/0@4", "nothing", "nothing with 5")],
    ),
    replace(
        HEALTHY,
        name="unexpected-record: records that are too far from one another",
        output=[*HEALTHY.output, (0, 7, 1, 3, 5, 123)],
        witnesses=[found("unexpected-record", 1, "output/0@7", "nothing", "3 with 5")],
    ),
    replace(
        HEALTHY,
        name="unexpected-record: records of different keys",
        output=[*HEALTHY.output, (0, 7, 3, 3, 4, 120)],
        witnesses=[found("unexpected-record", 3, "output/0@7", "nothing", "3 with 4")],
    ),
    replace(
        HEALTHY,
        name="duplicate-output: a result twice",
        output=[*HEALTHY.output, (0, 7, 1, 3, 2, 112)],
        witnesses=[found("duplicate-output", 1, "output/0@7", "1 record", "2 records")],
    ),
    replace(
        HEALTHY,
        name="wrong-timestamp: that of the older record",
        output=results({(0, 1): (0, 1, 1, 3, 2, 105)}),
        witnesses=[found("wrong-timestamp", 1, "output/0@1", "112", "105")],
    ),
    replace(
        HEALTHY,
        name="wrong-partition: a result of another task",
        output=results({(1, 0): (0, 7, 2, 8, 0, 100)}),
        witnesses=[found("wrong-partition", 2, "output/0@7", "partition 1", "partition 0")],
    ),
    replace(
        OUT_OF_ORDER,
        name="lost-record: a record came in the last millisecond of the grace",
        output=disordered(0, also=((0, 5, 1, 1, 0, 100), (0, 6, 1, 0, 2, 95))),
        witnesses=[
            found("lost-record", 1, "input/0@1", "1 with 2", "nothing"),
            found("early-alone", 1, "output/0@5", "nothing", "1 with nothing"),
            found("early-alone", 1, "output/0@6", "nothing", "nothing with 2"),
        ],
    ),
    replace(
        OUT_OF_ORDER,
        name="early-alone: a record did not wait for one that came within the grace",
        output=disordered(also=((0, 5, 11, 6, 0, 113),)),
        witnesses=[found("early-alone", 11, "output/0@5", "nothing", "6 with nothing")],
    ),
    replace(
        OUT_OF_ORDER,
        name="lost-alone: only what has no match at all is due, late or not",
        input=[*OUT_OF_ORDER.input[:3], *OUT_OF_ORDER.input[4:]],
        output=disordered(1),
        witnesses=[found("lost-alone", 3, "input/0@2", "3 with nothing", "nothing")],
    ),
    replace(
        OUT_OF_ORDER,
        name="wrong-timestamp: what came too late came out, but not as it must",
        output=disordered(1, also=((0, 5, 3, 3, 4, 106),)),
        witnesses=[found("wrong-timestamp", 3, "output/0@5", "112", "106")],
    ),
    replace(
        OUT_OF_ORDER,
        name="duplicate-output: what came too late came out twice",
        output=disordered(also=((0, 5, 9, 0, 5, 104),)),
        witnesses=[found("duplicate-output", 9, "output/0@5", "1 record", "2 records")],
    ),
    replace(
        OUT_OF_ORDER,
        name="unexpected-record: what came too late is no match of everything",
        output=disordered(also=((0, 5, 1, 1, 5, 104),)),
        witnesses=[found("unexpected-record", 1, "output/0@5", "nothing", "1 with 5")],
    ),
]

LOOK_ALIKES = [
    HEALTHY,
    OUT_OF_ORDER,
    replace(
        OUT_OF_ORDER,
        name="what came too late was dropped, so that its match came out alone",
        output=disordered(1, 2, 4, also=((0, 5, 3, 3, 0, 112),)),
    ),
    replace(
        OUT_OF_ORDER,
        name="what came too late came out alone, and so did its match, or not",
        output=disordered(1, 4, also=((0, 5, 3, 0, 4, 106), (0, 6, 11, 0, 8, 105))),
    ),
    replace(
        HEALTHY,
        name="no record comes out of an inner join alone",
        join="inner",
        output=results({(0, 3): None, (0, 4): None, (0, 6): None, (1, 0): None}),
    ),
    replace(
        HEALTHY,
        name="no right record comes out of a join to the left alone",
        join="left",
        output=results({(0, 3): None, (0, 4): None}),
    ),
    replace(
        HEALTHY,
        name="a drive that failed may owe records that are alone",
        output=results({(0, 3): None, (1, 0): None}),
        ended=False,
    ),
    replace(
        HEALTHY,
        name="in another order",
        output=[(p, 9 - offset, *rest) for p, offset, *rest in HEALTHY.output],  # type: ignore[misc]
    ),
    replace(
        HEALTHY,
        name="at least once, a result may come again",
        output=[*HEALTHY.output, (0, 7, 1, 3, 2, 112)],
        exactly_once=False,
    ),
    replace(
        HEALTHY,
        name="a window that closes with the next millisecond is open",
        input=[*HEALTHY.input[:6], (0, 6, 9, 7, 146), *HEALTHY.input[7:]],
        output=results({(0, 6): None}),
    ),
    replace(
        HEALTHY,
        name="a right record that is too old is no match in a window that is not symmetric",
        before=6,
        output=[
            *results({(0, 1): (0, 1, 1, 3, 0, 112), (1, 1): (1, 1, 2, 0, 9, 115)}),
            (1, 2, 2, 10, 0, 125),
        ],
    ),
    Specimen(name="empty topics", input=[], output=[]),
]

SPECIMENS = [*ANOMALOUS, *LOOK_ALIKES]
