"""Specimens of the topology `table-join`: a handful of records each, and exactly what must be found in them.

Input `(partition, offset, key, value)`; output `(partition, offset, key, left, right)`, both 0 where there is no
result, and only `right` for a total. All are bent from `HEALTHY`, an inner join: keys 5 and 15 have a result, that of
key 8 was deleted, keys 6 and 7 are in one table only. So the total of 5 has two results, and that of 8 has none left.
"""

from dataclasses import replace

from onceproof.model.anomaly import Witness
from tests.specimens.foreign_key_join import Result, Specimen

FIVE, SIX, SEVEN, EIGHT = 1_000_005, 1_000_006, 1_000_007, 1_000_008

HEALTHY = Specimen(
    name="healthy",
    input=[
        *((0, 0, 5, 4), (0, 1, 5, -3), (0, 2, 15, 8), (0, 3, 15, -7), (0, 4, 6, 2), (0, 5, 7, -9)),
        *((0, 6, 8, 5), (0, 7, 8, -6), (0, 8, 8, -1), (0, 9, 5, 10)),
    ],
    output=[
        *((0, 0, 5, 4, 3), (0, 1, 15, 8, 7), (0, 2, FIVE, 0, 22), (0, 3, 8, 5, 6), (0, 4, EIGHT, 0, 11)),
        *((0, 5, 8, 0, 0), (0, 6, EIGHT, 0, 0), (0, 7, 5, 10, 3), (0, 8, FIVE, 0, 28)),
    ],
)
LEFT = replace(
    HEALTHY,
    name="healthy, to the left",
    output=[*HEALTHY.output, (0, 9, 6, 2, 0), (0, 10, SIX, 0, 2), (0, 11, 8, 5, 0), (0, 12, EIGHT, 0, 5)],
    join=1,
)
OUTER = replace(LEFT, name="healthy, outer", output=[*LEFT.output, (0, 13, 7, 0, 9), (0, 14, SEVEN, 0, 9)], join=2)


def found(anomaly: str, key: int, place: str, expected: str, observed: str) -> Witness:
    """A witness of a result or a total."""
    return Witness(anomaly, 0, key, (), (place,), expected, observed)


def lost(key: int, place: str) -> Witness:
    """A witness of a result that is not there."""
    return found("lost-record", key, place, "1 record in output", "0 records")


def pair(left: int, right: int) -> str:
    """A result, in the words of witnesses."""
    return str(left << 32 | right)


def without(specimen: Specimen, *keys: int) -> list[Result]:
    """The output without these keys."""
    return [record for record in specimen.output if record[2] not in keys]


ANOMALOUS = [
    replace(
        HEALTHY,
        name="wrong-value: the sum of a group has a change twice, though what was added to the total is right",
        input=[(0, 0, 5, 300), (0, 1, 5, -400), (0, 2, 15, 8), (0, 3, 15, -7)],
        output=[(0, 0, 5, 300, 400), (0, 1, 15, 8, 7), (0, 2, FIVE, 0, 415)],  # 1,400 is 700 twice
        witnesses=[found("wrong-value", FIVE, "output/0@2", "715", "415")],
    ),
    replace(
        HEALTHY,
        name="wrong-value: a change was not subtracted",
        output=[*HEALTHY.output[:-1], (0, 8, FIVE, 0, 35)],
        witnesses=[found("wrong-value", FIVE, "output/0@8", "28", "35")],
    ),
    replace(
        HEALTHY,
        name="wrong-value: a change was added twice",
        output=[*HEALTHY.output, (0, 9, FIVE, 0, 41)],
        witnesses=[found("wrong-value", FIVE, "output/0@9", "28", "41")],
    ),
    replace(
        HEALTHY,
        name="wrong-value: the join saw an older record of the other table",
        output=[*HEALTHY.output, (0, 9, 15, 8, 6)],
        witnesses=[found("wrong-value", 15, "output/0@9", pair(8, 7), pair(8, 6))],
    ),
    replace(
        HEALTHY,
        name="lost-record: a result, and nothing else",
        output=without(HEALTHY, 15),
        witnesses=[lost(15, "input/0@3")],
    ),
    replace(
        HEALTHY,
        name="lost-record: a total",
        output=without(HEALTHY, FIVE),
        witnesses=[lost(FIVE, "input/0@9")],
    ),
    replace(
        HEALTHY,
        name="unexpected-record: a result stayed that was deleted, and so did its total",
        output=[record for record in HEALTHY.output if record[1] not in (5, 6)],
        witnesses=[
            found("unexpected-record", 8, "output/0@3", "nothing", pair(5, 6)),
            found("unexpected-record", EIGHT, "output/0@4", "nothing", "11"),
        ],
    ),
    replace(
        HEALTHY,
        name="unexpected-record: an inner join gave a record that is alone",
        output=[*HEALTHY.output, (0, 9, 6, 2, 0)],
        witnesses=[found("unexpected-record", 6, "output/0@9", "nothing", pair(2, 0))],
    ),
    replace(
        OUTER,
        name="lost-record: an outer join gave no record that is alone on the right",
        output=without(OUTER, 7, SEVEN),
        witnesses=[lost(7, "input/0@5"), lost(SEVEN, "input/0@5")],
    ),
    replace(
        LEFT,
        name="unexpected-record: a join to the left gave one that is alone on the right",
        output=OUTER.output,
        witnesses=[
            found("unexpected-record", 7, "output/0@13", "nothing", pair(0, 9)),
            found("unexpected-record", SEVEN, "output/0@14", "nothing", "9"),
        ],
    ),
]

LOOK_ALIKES = [
    HEALTHY,
    Specimen(
        name="of the sum of a group, 5 and 5,005, the last three digits count in the total",
        input=[(0, 0, 5, 300), (0, 1, 5, -400), (0, 2, 5005, 400), (0, 3, 5005, -500), (0, 4, 15, 8), (0, 5, 15, -7)],
        output=[(0, 0, 5, 300, 400), (0, 1, 5005, 400, 500), (0, 2, 15, 8, 7), (0, 3, FIVE, 0, 615)],
    ),
    LEFT,
    OUTER,
    replace(
        HEALTHY,
        name="results on the way in another number, and a total that was wrong and put right",
        output=[(0, 0, FIVE, 0, 99), (0, 1, 5, 10, 3), (0, 2, FIVE, 0, 28), (0, 3, 15, 8, 7)],
    ),
    replace(HEALTHY, name="no result is told of keys that never had one", output=[*HEALTHY.output, (0, 9, 6, 0, 0)]),
    Specimen(name="empty topics", input=[], output=[]),
]

SPECIMENS = [*ANOMALOUS, *LOOK_ALIKES]
