"""Specimens of the topology `as-of-join`: a handful of records each, and exactly what must be found in them.

Input and changelog `(partition, offset, key, value, timestamp)`; output `(partition, offset, key, value, version,
timestamp)`. All are bent from `HEALTHY`, whose table keeps 50 ms of its history: key 1 has a version from 100 on, one
from 120 on that comes after that of 140, and is deleted at 150; then key 3 is put at 200, so that all before 150 is too
old: a version of 149, which is dropped, and who asks for one of 145. Key 5 has one version, which never ends.
"""

import random
from dataclasses import dataclass, field, replace

from onceproof.model.anomaly import Witness

Record = tuple[int, int, int, int | None, int]
Joined = tuple[int, int, int, int, int, int]
RETENTION = 50


@dataclass(frozen=True)
class Specimen:
    """The records of one trial and the witnesses that a reader must find, no more and no less."""

    name: str
    input: list[Record]
    output: list[Joined]
    changelog: list[Record]
    retention: int = RETENTION
    witnesses: list[Witness] = field(default_factory=list)

    @property
    def topics(self) -> dict[str, list[Record]]:
        """The records by role."""
        output: list[Record] = [(p, o, key, value << 32 | of, time) for p, o, key, value, of, time in self.output]
        return {"input": self.input, "output": output, "versions-changelog": self.changelog}

    @property
    def facts(self) -> dict[str, int]:
        """What the check must know besides the records."""
        return {"partitions": 2, "exactly_once": 1, "cached": 0, "retention": self.retention}


def made(input_: list[Record], versions: list[int]) -> tuple[list[Joined], list[Record]]:
    """The output, if those who ask get these versions, and the changelog."""
    given = iter(versions)
    output = [
        (p, offset, key, value, next(given), time) if value else (p, offset, key, 0, number, time)
        for p, offset, key, value, number, time in (
            (p, offset, key, max(value or 0, 0), -(value or 0), time) for p, offset, key, value, time in input_
        )
    ]
    changes = [(p, o, key, -value if value else None, time) for p, o, key, value, time in input_ if (value or 0) <= 0]
    return output, changes


INPUT: list[Record] = [
    *((0, 0, 1, -10, 100), (0, 1, 5, -50, 105), (0, 2, 1, -40, 140), (0, 3, 1, -20, 120), (0, 4, 1, 0, 150)),
    *((0, 5, 1, 1, 99), (0, 6, 1, 2, 100), (0, 7, 1, 3, 130), (0, 8, 1, 4, 149), (0, 9, 1, 5, 150)),
    *((0, 10, 3, -30, 200), (0, 11, 1, -60, 149), (0, 12, 1, 6, 145), (0, 13, 5, 7, 145), (0, 14, 5, 8, 104)),
    *((1, 0, 2, 9, 500), (1, 1, 2, -70, 300), (1, 2, 2, 10, 299), (1, 3, 2, 11, 300)),
]
VERSIONS = [0, 10, 20, 40, 0, 0, 50, 0, 0, 0, 70]  # of values 1 to 11
HEALTHY = Specimen("healthy", INPUT, *made(INPUT, VERSIONS))
# Each gets what was put last, and nothing is too old.
UNVERSIONED = Specimen(
    "a table without versions", INPUT, *made(INPUT, [0, 0, 0, 0, 0, 60, 50, 50, 0, 70, 70]), retention=0
)


def given(changes: dict[int, int], of: Specimen = HEALTHY) -> list[Joined]:
    """The output of a specimen, but these values come out with these versions."""
    return [(p, o, key, value, changes.get(value, found), time) for p, o, key, value, found, time in of.output]


def wrong(value: int, key: int, place: str, expected: int, observed: int, partition: int = 0) -> Witness:
    """A witness that a record came out with another version."""
    texts = [str(value << 32 | version) for version in (expected, observed)]
    return Witness("wrong-value", partition, key, (), (place,), *texts)


def log(anomaly: str, key: int, place: str, expected: object, observed: object, partition: int = 0) -> Witness:
    """A witness of the changelog."""
    return Witness(anomaly, partition, key, (), (place,), str(expected), str(observed))


def without(record: Joined | Record, records: list) -> list:  # type: ignore[type-arg]
    """The records but this one."""
    return [other for other in records if other != record]


ANOMALOUS = [
    replace(
        HEALTHY,
        name="wrong-value: the last version, which began later",
        output=given({3: 40}),
        witnesses=[wrong(3, 1, "output/0@7", 20, 40)],
    ),
    replace(
        HEALTHY,
        name="wrong-value: a version that came out of order is not there",
        output=given({3: 10}),
        witnesses=[wrong(3, 1, "output/0@7", 20, 10)],
    ),
    replace(
        HEALTHY,
        name="wrong-value: none, as older versions are lost",
        output=given({2: 0, 3: 0, 4: 0}),
        witnesses=[
            wrong(2, 1, "output/0@6", 10, 0),
            wrong(3, 1, "output/0@7", 20, 0),
            wrong(4, 1, "output/0@8", 40, 0),
        ],
    ),
    replace(
        HEALTHY,
        name="wrong-value: a deletion is not there",
        output=given({5: 40}),
        witnesses=[wrong(5, 1, "output/0@9", 0, 40)],
    ),
    replace(
        HEALTHY,
        name="wrong-value: a version before any began",
        output=given({1: 10}),
        witnesses=[wrong(1, 1, "output/0@5", 0, 10)],
    ),
    replace(
        HEALTHY,
        name="wrong-value: too old, and yet what was valid then",
        output=given({6: 40}),
        witnesses=[wrong(6, 1, "output/0@12", 0, 40)],
    ),
    replace(
        HEALTHY,
        name="wrong-value: too old, and not given the last version, which never ends",
        output=given({7: 0}),
        witnesses=[wrong(7, 5, "output/0@13", 50, 0)],
    ),
    replace(
        HEALTHY,
        name="wrong-value: a version of a table that keeps no other",
        output=given({10: 70}),
        witnesses=[wrong(10, 2, "output/1@2", 0, 70, partition=1)],
    ),
    replace(
        UNVERSIONED,
        name="wrong-value: without versions, one by time",
        output=given({6: 40}, UNVERSIONED),
        witnesses=[wrong(6, 1, "output/0@12", 60, 40)],
    ),
    replace(
        HEALTHY,
        name="lost-record: who finds none does not come out",
        output=without((1, 0, 2, 9, 0, 500), HEALTHY.output),
        witnesses=[log("lost-record", 2, "input/1@0", "4 records", "3 records", partition=1)],
    ),
    replace(
        HEALTHY,
        name="duplicate-output: who asked comes out twice",
        output=[*HEALTHY.output, (0, 15, 5, 8, 0, 104)],
        witnesses=[log("duplicate-output", 5, "output/0@15", "3 records", "4 records")],
    ),
    replace(
        HEALTHY,
        name="unexpected-record: a key that nobody sent",
        output=[*HEALTHY.output, (0, 15, 7, 9, 0, 150)],
        witnesses=[log("unexpected-record", 7, "output/0@15", "0 records", "1 record")],
    ),
    replace(
        HEALTHY,
        name="wrong-timestamp: a result is as old as the version",
        output=[(*r[:5], 120) if r[3] == 3 else r for r in HEALTHY.output],
        witnesses=[log("wrong-timestamp", 1, "output/0@7", 130, 120)],
    ),
    replace(
        HEALTHY,
        name="wrong-timestamp: a version in the changelog is as old as the one before",
        changelog=[(*r[:4], 140) if r[3] == 20 else r for r in HEALTHY.changelog],
        witnesses=[log("wrong-timestamp", 1, "versions-changelog/0@3", 120, 140)],
    ),
    replace(
        HEALTHY,
        name="wrong-value: a deletion is a version in the changelog",
        changelog=[(0, 4, 1, 40, 150) if r[:2] == (0, 4) else r for r in HEALTHY.changelog],
        witnesses=[log("wrong-value", 1, "versions-changelog/0@4", "nothing", 40)],
    ),
    replace(
        HEALTHY,
        name="lost-record: a version is not in the changelog",
        changelog=without((0, 10, 3, 30, 200), HEALTHY.changelog),
        witnesses=[log("lost-record", 3, "input/0@10", "1 record in versions-changelog", "0 records")],
    ),
    replace(
        HEALTHY,
        name="duplicate-output: a version is in the changelog twice",
        changelog=[*HEALTHY.changelog, (1, 5, 2, 70, 300)],
        witnesses=[log("duplicate-output", 2, "versions-changelog/1@5", "1 record", "2 records", partition=1)],
    ),
    replace(
        HEALTHY,
        name="wrong-order: a version stands behind one that came later in the changelog",
        changelog=[(0, 0, 5, 50, 105), (0, 1, 1, 10, 100), *HEALTHY.changelog[2:]],
        witnesses=[log("wrong-order", 1, "versions-changelog/0@1", "of a record behind input/0@1", "of input/0@0")],
    ),
    replace(
        HEALTHY,
        name="wrong-order: a result stands behind that of a later record",
        output=[*HEALTHY.output[:9], (0, 9, 3, 0, 30, 200), (0, 10, 1, 5, 0, 150), *HEALTHY.output[11:]],
        witnesses=[log("wrong-order", 1, "output/0@10", "of a record behind input/0@10", "of input/0@9")],
    ),
]

LOOK_ALIKES = [
    HEALTHY,
    UNVERSIONED,
    replace(
        HEALTHY,
        name="a version that is just not too old counts",
        input=[*INPUT[:11], (0, 11, 1, -60, 150), (0, 12, 1, 6, 150), *INPUT[13:]],
        output=[*HEALTHY.output[:11], (0, 11, 1, 0, 60, 150), (0, 12, 1, 6, 60, 150), *HEALTHY.output[13:]],
        changelog=[(*r[:3], 60, 150) if r[:2] == (0, 11) else r for r in HEALTHY.changelog],
    ),
    replace(
        HEALTHY,
        name="the later of two versions from one time on",
        input=[*INPUT, (1, 5, 4, -80, 600), (1, 6, 4, -90, 600), (1, 7, 4, 12, 600)],
        output=[*HEALTHY.output, (1, 5, 4, 0, 80, 600), (1, 6, 4, 0, 90, 600), (1, 7, 4, 12, 90, 600)],
        changelog=[*HEALTHY.changelog, (1, 5, 4, 80, 600), (1, 6, 4, 90, 600)],
    ),
    replace(
        HEALTHY,
        name="another partition is ahead",
        input=[*INPUT, (1, 5, 4, -80, 900)],
        output=[*HEALTHY.output, (1, 5, 4, 0, 80, 900)],
        changelog=[*HEALTHY.changelog, (1, 5, 4, 80, 900)],
    ),
    Specimen(name="empty topics", input=[], output=[], changelog=[]),
]

SPECIMENS = [*ANOMALOUS, *LOOK_ALIKES]


def drawn(seed: int) -> Specimen:
    """A trial of random records. Nothing is said about what comes out: it is for the two readers to agree on."""
    rng = random.Random(seed)
    input_: list[Record] = []
    for number in range(1, 60):
        value = number if rng.random() < 0.5 else rng.choice((0, -number, -number))
        partition = rng.randrange(2)
        key = 2 * rng.randrange(4) + partition + 1
        input_.append((partition, number, key, value, 1_000 + number - rng.randrange(40)))
    input_.sort()
    retention = rng.choice((0, 1, 10, 20))
    return Specimen(f"drawn {seed}", input_, [], [], retention)
