"""Specimens of the topology `global-join`: a handful of records each, and exactly what must be found in them.

Input `(partition, offset, key, value)`; output `(partition, offset, key, value, entry)`. All are bent from `HEALTHY`:
keys 1 and 2 are in the table, key 1 twice; keys 11 and 12 ask for them, key 14 for one that does not exist, and keys 13
and 15 for none.
"""

from dataclasses import dataclass, field, replace

from onceproof.model.anomaly import Witness

Record = tuple[int, int, int, int]
Joined = tuple[int, int, int, int, int]


@dataclass(frozen=True)
class Specimen:
    """The records of one trial and the witnesses that a reader must find, no more and no less."""

    name: str
    input: list[Record]
    output: list[Joined]
    exactly_once: bool = True
    added: int = 0
    witnesses: list[Witness] = field(default_factory=list)

    @property
    def topics(self) -> dict[str, list[Record]]:
        """The records by role."""
        output = [(p, offset, key, value << 32 | entry) for p, offset, key, value, entry in self.output]
        return {"input": self.input, "output": output}

    @property
    def facts(self) -> dict[str, int]:
        """What the check must know besides the records."""
        return {"partitions": 2, "exactly_once": int(self.exactly_once), "cached": 0, "added": self.added}


HEALTHY = Specimen(
    name="healthy",
    input=[
        *((0, 0, 1, -50), (0, 1, 1, -70), (0, 3, 11, 2), (0, 4, 13, 0), (0, 5, 15, 0)),
        *((1, 0, 2, -60), (1, 1, 12, 3), (1, 2, 14, 9)),
    ],
    output=[
        *((0, 0, 1, 0, 50), (0, 1, 1, 0, 70), (0, 3, 11, 2, 70), (0, 4, 13, 0, 0), (0, 6, 15, 0, 0)),
        *((1, 0, 2, 0, 60), (1, 2, 12, 3, 60), (1, 3, 14, 9, 0)),
    ],
)


def given(changes: dict[int, Joined | None]) -> list[Joined]:
    """The healthy output with other records of these keys; None takes them away."""
    changed = (changes.get(record[2], record) for record in HEALTHY.output)
    return [record for record in changed if record is not None]


def lost(key: int, place: str, partition: int = 0) -> Witness:
    """A witness that a key did not come out."""
    return Witness("lost-record", partition, key, (), (place,), "1 record", "0 records")


def wrong(key: int, place: str, expected: tuple[int, int], observed: tuple[int, int], partition: int = 0) -> Witness:
    """A witness that a key came out with an entry other than the one it asks for."""
    texts = [str(value << 32 | entry) for value, entry in (expected, observed)]
    return Witness("wrong-value", partition, key, (), (place,), *texts)


STORE = replace(
    HEALTHY,
    name="a global store whose processor adds to each entry",
    added=1_000,
    output=given({11: (0, 3, 11, 2, 1_070), 12: (1, 2, 12, 3, 1_060)}),
)

ANOMALOUS = [
    replace(
        STORE,
        name="wrong-value: what was sent, without what the global store's processor adds",
        output=HEALTHY.output,
        witnesses=[wrong(11, "output/0@3", (2, 1_070), (2, 70)), wrong(12, "output/1@2", (3, 1_060), (3, 60), 1)],
    ),
    replace(
        HEALTHY,
        name="lost-record: those that ask for no key",
        output=given({13: None, 15: None}),
        witnesses=[lost(13, "input/0@4"), lost(15, "input/0@5")],
    ),
    replace(
        HEALTHY,
        name="lost-record: one that asks for a key that the table lacks",
        output=given({14: None}),
        witnesses=[lost(14, "input/1@2", partition=1)],
    ),
    replace(
        HEALTHY,
        name="lost-record: at least once, too",
        output=given({13: None}),
        exactly_once=False,
        witnesses=[lost(13, "input/0@4")],
    ),
    replace(
        HEALTHY,
        name="wrong-value: the entry before the last",
        output=given({11: (0, 3, 11, 2, 50)}),
        witnesses=[wrong(11, "output/0@3", (2, 70), (2, 50))],
    ),
    replace(
        HEALTHY,
        name="wrong-value: an entry for one that asks for no key",
        output=given({13: (0, 4, 13, 0, 70)}),
        witnesses=[wrong(13, "output/0@4", (0, 0), (0, 70))],
    ),
    replace(
        HEALTHY,
        name="wrong-value: no entry, though the table has the key in another partition",
        input=[*HEALTHY.input, (0, 6, 17, 3)],
        output=[*HEALTHY.output, (0, 7, 17, 3, 0)],
        witnesses=[wrong(17, "output/0@7", (3, 60), (3, 0))],
    ),
    replace(
        HEALTHY,
        name="duplicate-output: a record that asks for no key comes out twice",
        output=[*HEALTHY.output, (0, 7, 13, 0, 0)],
        witnesses=[Witness("duplicate-output", 0, 13, (), ("output/0@7",), "1 record", "2 records")],
    ),
    replace(
        HEALTHY,
        name="unexpected-record: a key that nobody sent",
        output=[*HEALTHY.output, (1, 4, 16, 0, 0)],
        witnesses=[Witness("unexpected-record", 1, 16, (), ("output/1@4",), "0 records", "1 record")],
    ),
    replace(
        HEALTHY,
        name="wrong-order: key 13 before key 11",
        output=given({11: (0, 4, 11, 2, 70), 13: (0, 3, 13, 0, 0)}),
        witnesses=[Witness("wrong-order", 0, 11, (), ("output/0@4",), "of a record behind input/0@4", "of input/0@3")],
    ),
]

LOOK_ALIKES = [
    HEALTHY,
    STORE,
    replace(
        HEALTHY,
        name="an entry that comes after who asks for it",
        input=[*HEALTHY.input[:5], (1, 0, 12, 3), (1, 1, 2, -60), (1, 2, 14, 9)],
        output=[*HEALTHY.output[:5], (1, 0, 12, 3, 60), (1, 2, 2, 0, 60), (1, 3, 14, 9, 0)],
    ),
    replace(
        HEALTHY,
        name="at least once, a suffix comes again",
        output=[*HEALTHY.output, (0, 8, 13, 0, 0), (0, 9, 15, 0, 0)],
        exactly_once=False,
    ),
    replace(
        HEALTHY,
        name="nobody asks for no key",
        input=[r for r in HEALTHY.input if r[3]],
        output=given({13: None, 15: None}),
    ),
    Specimen(name="empty topics", input=[], output=[]),
]

SPECIMENS = [*ANOMALOUS, *LOOK_ALIKES]
