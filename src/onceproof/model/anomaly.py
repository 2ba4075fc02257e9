"""Comparisons, and the witnesses of anomalies, whose names are those of `model.promise`."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from onceproof.model.place import Place


@dataclass(frozen=True)
class Witness:
    """One proof of an anomaly.

    `offsets` are places in the topic the anomaly is seen in, as `role/partition@offset`;
    `expected` and `observed` are short texts for people.
    """

    anomaly: str
    partition: int
    key: int | None
    ids: tuple[int, ...]
    offsets: tuple[str, ...]
    expected: str
    observed: str

    @property
    def places(self) -> list[Place]:
        """Its places that are in topics."""
        return [place for text in self.offsets if (place := Place.parse(text))]


@dataclass(frozen=True)
class Comparison:
    """The value that a promise expects at one place, and the observed one; `anomaly` is null if all is well.

    `place` says where: `role/partition@offset` in a topic, or in words. `expected` and `observed` are short texts for
    people. One may stand for many: `comparisons` says for how many places, 0 if another one covers it, too.
    """

    promise: str
    anomaly: str | None
    partition: int
    key: int | None
    place: str
    expected: str
    observed: str
    comparisons: int = 1


def count_comparisons(comparisons: Iterable[Comparison]) -> dict[str, int]:
    """How many comparisons each promise had."""
    counts: Counter[str] = Counter()
    for comparison in comparisons:
        counts[comparison.promise] += comparison.comparisons
    return dict(counts)


def witnesses_of(comparisons: Iterable[Comparison]) -> list[Witness]:
    """A witness for each comparison that shows an anomaly."""
    return [
        Witness(c.anomaly, c.partition, c.key, (), (c.place,), c.expected, c.observed)
        for c in comparisons
        if c.anomaly is not None
    ]


def corrupt_record(role: str, partition: int, offset: int, fault: str) -> Comparison:
    """A record that is not a pair of integers, and why."""
    place = Place(role, partition, offset)
    return Comparison("liveness", "corrupt-record", partition, None, str(place), "integers", fault)


@dataclass
class Findings:
    """The findings of a reader in the topics of one trial.

    `records` counts committed input records, `outputs` committed output records, `keys` distinct keys of the input,
    `ids` distinct IDs of the output (0 where the output has none). One witness per anomaly and key (or ID, or changelog
    record, or place). `promises` gives the number of comparisons for each promise that was checked.
    """

    records: int
    outputs: int
    keys: int
    ids: int
    witnesses: list[Witness] = field(default_factory=list)
    promises: dict[str, int] = field(default_factory=dict)

    def add(self, comparisons: Sequence[Comparison]) -> None:
        """Add further comparisons."""
        self.witnesses += witnesses_of(comparisons)
        for promise, number in count_comparisons(comparisons).items():
            self.promises[promise] = self.promises.get(promise, 0) + number

    @property
    def anomalies(self) -> dict[str, int]:
        """Witnesses per anomaly; an anomaly that was not seen is absent."""
        return dict(sorted(Counter(witness.anomaly for witness in self.witnesses).items()))


def first_of_each(witnesses: Iterable[Witness], limit: int) -> list[Witness]:
    """The first `limit` witnesses of every anomaly, in the given order."""
    seen: Counter[str] = Counter()
    chosen = []
    for witness in witnesses:
        seen[witness.anomaly] += 1
        if seen[witness.anomaly] <= limit:
            chosen.append(witness)
    return chosen
