"""Specimens of the topology `interactive-queries`: a handful of records each, and exactly what must be found in them.

Input `(partition, offset, key, number)`; answers `(offset, key, number, floor, ceiling, read)`, of partition 0. All are
bent from `HEALTHY`: keys 1 and 3 take turns in partition 0; in the changelog there are markers of transactions at 2 and
5, and a transaction that was aborted had the third record of key 1 before.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from onceproof.model.anomaly import Witness
from onceproof.model.record import Record

UNLIMITED = 2**63 - 1
Answer = tuple[int, int, int, int, int, int]
HOW = "instance-1 store"


@dataclass(frozen=True)
class Specimen:
    """The records of one trial and the witnesses that a reader must find, no more and no less."""

    name: str
    input: list[Record]
    changelog: list[Record]
    answers: list[Answer]
    witnesses: list[Witness] = field(default_factory=list)

    @property
    def topics(self) -> dict[str, list[Record]]:
        """The records by role; the output is right."""
        last: dict[int | None, int] = {}
        output = []
        for offset, record in enumerate(self.input):
            found = last.get(record.key, 0)
            output.append(Record(0, offset, record.key, (record.value or 0) << 32 | found))
            last[record.key] = record.value or 0
        answers = [answered(*answer) for answer in self.answers]
        return {"input": self.input, "output": output, "last-changelog": self.changelog, "answers": answers}

    @property
    def facts(self) -> dict[str, int]:
        """The facts that the check needs besides the records."""
        return {"partitions": 1, "exactly_once": 1, "cached": 0}


def answered(offset: int, key: int, number: int, floor: int, ceiling: int, read: int) -> Record:
    """An answer as the client writes it."""
    limits = " ".join(f"{name}={n:016x}" for name, n in (("floor", floor), ("ceiling", ceiling), ("read", read)))
    return Record(0, offset, key, number, 0, f"{limits} how={HOW.encode().hex()}")


def records(numbers: Iterable[tuple[int, int, int]]) -> list[Record]:
    """Records of partition 0 from offset, key and number."""
    return [Record(0, *one) for one in numbers]


def witness(anomaly: str, key: int, offset: int, expected: str, observed: int) -> Witness:
    """A witness in an answer."""
    return Witness(anomaly, 0, key, (), (f"answers/0@{offset}",), expected, f"{observed}, {HOW}")


HEALTHY = Specimen(
    name="healthy: before anything was committed, afterwards, and of a store that is ahead of what is committed",
    input=records([(0, 1, 1), (1, 3, 1), (2, 1, 2), (3, 3, 2), (4, 1, 3)]),
    changelog=records([(0, 1, 1), (1, 3, 1), (3, 1, 2), (4, 3, 2), (7, 1, 3)]),
    answers=[(0, 1, 0, 0, UNLIMITED, 0), (1, 1, 1, 3, UNLIMITED, 1), (2, 1, 3, 5, UNLIMITED, 5), (3, 3, 2, 5, 6, 0)],
)

ANOMALOUS = [
    replace(
        HEALTHY,
        name="stale-answer: of a store that lacks what was committed before",
        answers=[(0, 1, 1, 4, UNLIMITED, 0)],
        witnesses=[witness("stale-answer", 1, 0, "2 or later", 1)],
    ),
    replace(
        HEALTHY,
        name="stale-answer: of a store that is empty",
        answers=[(0, 3, 0, 2, UNLIMITED, 0)],
        witnesses=[witness("stale-answer", 3, 0, "1 or later", 0)],
    ),
    replace(
        HEALTHY,
        name="stale-answer: older than the position that it has",
        answers=[(0, 1, 2, 0, UNLIMITED, 5)],
        witnesses=[witness("stale-answer", 1, 0, "3 or later", 2)],
    ),
    replace(
        HEALTHY,
        name="early-answer: with what an aborted transaction had, which came again later",
        answers=[(0, 1, 3, 3, 7, 0)],
        witnesses=[witness("early-answer", 1, 0, "2 or earlier", 3)],
    ),
    replace(
        HEALTHY,
        name="unexplained-answer: a number that the key never had, and one of another key",
        answers=[(0, 1, 9, 0, UNLIMITED, 0), (1, 3, 3, 0, UNLIMITED, 0)],
        witnesses=[
            witness("unexplained-answer", 1, 0, "a value of the key", 9),
            witness("unexplained-answer", 3, 1, "a value of the key", 3),
        ],
    ),
]
LOOK_ALIKES = [
    HEALTHY,
    replace(
        HEALTHY,
        name="another instance answers with less, as what came first was aborted",
        answers=[(0, 1, 3, 4, UNLIMITED, 0), (1, 1, 2, 5, UNLIMITED, 0)],
    ),
    replace(
        HEALTHY,
        name="a floor or position is not part of what it limits",
        answers=[(0, 1, 1, 3, 4, 2), (1, 1, 2, 7, 7, 4)],
    ),
    replace(HEALTHY, name="a key that was never sent is not there", answers=[(0, 8, 0, 9, 9, 9)]),
    replace(HEALTHY, name="no client asked", answers=[]),
    Specimen(name="empty topics", input=[], changelog=[], answers=[]),
]
SPECIMENS = [*ANOMALOUS, *LOOK_ALIKES]
