"""Specimens of the topology `two-topics`: a handful of records each, and exactly what must be found in them.

Stream and table `(partition, offset, key, value, timestamp)`; output `(partition, offset, key, value, entry, timestamp)`,
0 for no entry. All are bent from `HEALTHY`: in partition 0, key 1 has the entries 70 at 101 and 71 at 107, key 3 has 72
at 105; in partition 1, key 2 has 73 at 100, and nobody asks for the entry of key 4.
"""

from dataclasses import dataclass, field, replace

from onceproof.model.anomaly import Witness

Record = tuple[int, int, int, int, int]
Result = tuple[int, int, int, int, int, int]


@dataclass(frozen=True)
class Specimen:
    """The records of one trial and the witnesses that a reader must find, no more and no less."""

    name: str
    input: list[Record]
    entries: list[Record]
    output: list[Result]
    exactly_once: bool = True
    witnesses: list[Witness] = field(default_factory=list)

    @property
    def topics(self) -> dict[str, list[Record]]:
        """The records by role."""
        output = [(p, offset, key, value << 32 | entry, made) for p, offset, key, value, entry, made in self.output]
        return {"input": self.input, "entries": self.entries, "output": output}

    @property
    def facts(self) -> dict[str, int]:
        """What the check must know besides the records."""
        return {"partitions": 2, "exactly_once": int(self.exactly_once)}


HEALTHY = Specimen(
    name="healthy",
    input=[
        *((0, 0, 1, 1, 100), (0, 1, 1, 2, 102), (0, 2, 3, 3, 106), (0, 3, 1, 4, 108), (0, 4, 5, 5, 110)),
        *((1, 0, 2, 6, 99), (1, 1, 2, 7, 103)),
    ],
    entries=[
        *((0, 0, 1, 70, 101), (0, 1, 3, 72, 105), (0, 2, 1, 71, 107)),
        *((1, 0, 2, 73, 100), (1, 1, 4, 74, 104)),
    ],
    output=[
        *((0, 0, 1, 1, 0, 100), (0, 1, 1, 2, 70, 102), (0, 3, 3, 3, 72, 106), (0, 4, 1, 4, 71, 108)),
        *((0, 6, 5, 5, 0, 110), (1, 0, 2, 6, 0, 99), (1, 1, 2, 7, 73, 103)),
    ],
)


def results(changes: dict[tuple[int, int], Result | None]) -> list[Result]:
    """The healthy output with other results at these places; None takes them away."""
    changed = (changes.get(record[:2], record) for record in HEALTHY.output)
    return [record for record in changed if record is not None]


def found(anomaly: str, key: int, place: str, expected: str, observed: str, partition: int = 0) -> Witness:
    """A witness of a result."""
    return Witness(anomaly, partition, key, (), (place,), expected, observed)


def bent(name: str, output: list[Result], *witnesses: Witness) -> Specimen:
    """The healthy trial with another output."""
    return replace(HEALTHY, name=name, output=output, witnesses=list(witnesses))


ANOMALOUS = [
    bent(
        "wrong-time: the entry was not there yet",
        results({(0, 1): (0, 1, 1, 2, 0, 102)}),
        found("wrong-time", 1, "output/0@1", "2 with 70", "2 with nothing"),
    ),
    bent(
        "wrong-time: an entry that is older",
        results({(0, 4): (0, 4, 1, 4, 70, 108)}),
        found("wrong-time", 1, "output/0@4", "4 with 71", "4 with 70"),
    ),
    bent(
        "wrong-time: an entry that is younger",
        results({(1, 0): (1, 0, 2, 6, 73, 99)}),
        found("wrong-time", 2, "output/1@0", "6 with nothing", "6 with 73", partition=1),
    ),
    bent(
        "wrong-value: an entry of another key",
        results({(0, 3): (0, 3, 3, 3, 70, 106)}),
        found("wrong-value", 3, "output/0@3", "3 with 72", "3 with 70"),
    ),
    bent(
        "wrong-value: an entry of a key that has none",
        results({(0, 6): (0, 6, 5, 5, 9, 110)}),
        found("wrong-value", 5, "output/0@6", "5 with nothing", "5 with 9"),
    ),
    bent(
        "lost-record: nothing came out of a record",
        results({(0, 3): None}),
        found("lost-record", 3, "input/0@2", "3 with 72", "nothing"),
    ),
    bent(
        "duplicate-output: a result came again",
        [*HEALTHY.output, (0, 7, 3, 3, 72, 106)],
        found("duplicate-output", 3, "output/0@7", "1 record", "2 records"),
    ),
    bent(
        "unexpected-record: nobody sent it",
        [*HEALTHY.output, (1, 3, 2, 9, 73, 103)],
        found("unexpected-record", 2, "output/1@3", "nothing", "9 with 73", partition=1),
    ),
    bent(
        "wrong-order: two results have changed places",
        results({(0, 3): (0, 4, 3, 3, 72, 106), (0, 4): (0, 3, 1, 4, 71, 108)}),
        found("wrong-order", 1, "output/0@3", "behind output/0@4", "at output/0@3"),
    ),
    bent(
        "wrong-timestamp: the one of the entry",
        results({(0, 1): (0, 1, 1, 2, 70, 101)}),
        found("wrong-timestamp", 1, "output/0@1", "102", "101"),
    ),
    bent(
        "wrong-partition: a result strayed",
        results({(1, 1): (0, 8, 2, 7, 73, 103)}),
        found("wrong-partition", 2, "output/0@8", "partition 1", "partition 0"),
    ),
]

LOOK_ALIKES = [
    HEALTHY,
    replace(
        HEALTHY,
        name="without transactions a result comes again",
        output=[*HEALTHY.output, (0, 7, 3, 3, 72, 106)],
        exactly_once=False,
    ),
    bent(
        "partitions come out in any order, with gaps",
        sorted((p, 10 * offset, key, value, entry, made) for p, offset, key, value, entry, made in HEALTHY.output)[
            ::-1
        ],
    ),
    replace(HEALTHY, name="an entry is put again", entries=[*HEALTHY.entries, (1, 2, 2, 73, 102)]),
    Specimen(name="empty topics", input=[], entries=[], output=[]),
    Specimen(name="no table", input=HEALTHY.input[:1], entries=[], output=HEALTHY.output[:1]),
]

SPECIMENS = [*ANOMALOUS, *LOOK_ALIKES]
