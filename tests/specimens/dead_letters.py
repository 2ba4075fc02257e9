"""Specimens of the topology `dead-letters`: a handful of records each, and exactly what must be found in them.

Records are `(partition, offset, key, value)`. All are bent from `HEALTHY`, in which keys 2 and 4 are poison: the others
come out, and those two are in the queue.
"""

from dataclasses import dataclass, field, replace

from onceproof.model.anomaly import Witness
from onceproof.model.record import Record


@dataclass(frozen=True)
class Specimen:
    """The records of one trial and the witnesses that a reader must find, no more and no less."""

    name: str
    input: list[Record]
    output: list[Record]
    queue: list[Record]
    exactly_once: bool = True
    has_queue: bool = True
    witnesses: list[Witness] = field(default_factory=list)

    @property
    def topics(self) -> dict[str, list[Record]]:
        """The records by role."""
        return {"input": self.input, "output": self.output, "dead-letters": self.queue}

    @property
    def facts(self) -> dict[str, int]:
        """What the check must know besides the records."""
        return {"partitions": 1, "exactly_once": int(self.exactly_once), "cached": 0, "queue": int(self.has_queue)}


OF_HANDLER = "__streams.errors.exception=6f __streams.errors.offset=31"


def sent(offset: int, key: int, value: int, headers: str = "") -> Record:
    """A record, the time of which follows from its key."""
    return Record(0, offset, key, value, 1_000 + key, headers)


INPUT = [sent(0, 1, 10), sent(1, 2, -2, "of=01"), sent(2, 3, 30, "of=02"), sent(3, 4, -4), sent(4, 5, 50)]
OUTPUT = [sent(0, 1, 10), sent(1, 3, 30, "of=02"), sent(3, 5, 50)]
QUEUE = [sent(0, 2, -2, f"of=01 {OF_HANDLER}"), sent(2, 4, -4, OF_HANDLER)]
HEALTHY = Specimen(name="healthy", input=INPUT, output=OUTPUT, queue=QUEUE)


def lost(role: str, key: int, place: str) -> Witness:
    """A witness that a record is not in a topic."""
    return Witness("lost-record", 0, key, (), (place,), f"1 record in {role}", "0 records")


ANOMALOUS = [
    replace(
        HEALTHY, name="lost-record: no dead letter", queue=QUEUE[:1], witnesses=[lost("dead-letters", 4, "input/0@3")]
    ),
    replace(
        HEALTHY,
        name="lost-record: a good record behind poison",
        output=[OUTPUT[0], OUTPUT[2]],
        witnesses=[lost("output", 3, "input/0@2")],
    ),
    replace(
        HEALTHY,
        name="duplicate-output: a dead letter twice",
        queue=[*QUEUE, sent(4, 4, -4, OF_HANDLER)],
        witnesses=[Witness("duplicate-output", 0, 4, (), ("dead-letters/0@4",), "1 record", "2 records")],
    ),
    replace(
        HEALTHY,
        name="unexpected-record: poison came out, and a good record is in the queue",
        output=[*OUTPUT, sent(5, 2, -2, "of=01")],
        queue=[*QUEUE, sent(4, 5, 50, OF_HANDLER)],
        witnesses=[
            Witness("unexpected-record", 0, 2, (), ("output/0@5",), "nothing", "-2"),
            Witness("unexpected-record", 0, 5, (), ("dead-letters/0@4",), "nothing", "50"),
        ],
    ),
    replace(
        HEALTHY,
        name="wrong-order: dead letters have changed places",
        queue=[sent(0, 4, -4, OF_HANDLER), sent(2, 2, -2, f"of=01 {OF_HANDLER}")],
        witnesses=[
            Witness("wrong-order", 0, 2, (), ("dead-letters/0@2",), "of a record behind input/0@3", "of input/0@1")
        ],
    ),
    replace(
        HEALTHY,
        name="wrong-value: a dead letter has another value than was read",
        queue=[sent(0, 2, -3, f"of=01 {OF_HANDLER}"), QUEUE[1]],
        witnesses=[Witness("wrong-value", 0, 2, (), ("dead-letters/0@0",), "-2", "-3")],
    ),
    replace(
        HEALTHY,
        name="wrong-timestamp: a dead letter has the time of its failure",
        queue=[QUEUE[0], QUEUE[1]._replace(timestamp=9_000)],
        witnesses=[Witness("wrong-timestamp", 0, 4, (), ("dead-letters/0@2",), "1004", "9000")],
    ),
    replace(
        HEALTHY,
        name="wrong-header: a dead letter has lost the header of its record",
        queue=[sent(0, 2, -2, OF_HANDLER), QUEUE[1]],
        witnesses=[Witness("wrong-header", 0, 2, (), ("dead-letters/0@0",), "of=01", "no header")],
    ),
]

LOOK_ALIKES = [
    HEALTHY,
    replace(
        HEALTHY,
        name="without transactions a suffix comes again",
        output=[*OUTPUT, sent(4, 3, 30, "of=02"), sent(5, 5, 50)],
        queue=[*QUEUE, sent(3, 4, -4, OF_HANDLER)],
        exactly_once=False,
    ),
    replace(HEALTHY, name="no release before 4.2.0 has a queue", queue=[], has_queue=False),
    Specimen(name="empty topics", input=[], output=[], queue=[]),
]

SPECIMENS = [*ANOMALOUS, *LOOK_ALIKES]
