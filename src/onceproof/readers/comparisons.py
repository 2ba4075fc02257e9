"""The parts that the promises share: the texts of comparisons, and the findings made from them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter

from onceproof.model.anomaly import Comparison, Findings
from onceproof.model.record import Facts, Record


def findings_of(inputs: Sequence[Record], outputs: Sequence[Record], comparisons: Iterable[Comparison]) -> Findings:
    """The findings of a check that has nothing but comparisons."""
    keys = {record[2] for record in inputs}
    findings = Findings(len(inputs), len(outputs), len(keys), 0)
    findings.add(list(comparisons))
    return findings


by_place = itemgetter(0, 1)  # orders records by partition and offset
key_of, value_of = itemgetter(2), itemgetter(3)


def by_partition(records: Iterable[Record]) -> Mapping[int, list[Record]]:
    """The records of each partition in their order."""
    of_partition: dict[int, list[Record]] = defaultdict(list)
    for record in sorted(records, key=by_place):
        of_partition[record.partition].append(record)
    return of_partition


def has_ended(facts: Facts) -> bool:
    """Whether the drive of a trial came to its end; of one that failed some things are still due."""
    return bool(facts.get("ended", 1))


def records_text(count: int) -> str:
    """A number of records as text."""
    return f"{count} record" if count == 1 else f"{count} records"


def value_text(value: int | None) -> str:
    """A store's value as text."""
    return "nothing" if value is None else str(value)


def as_number(value: int | None) -> int:
    """A key or a value as a number, 0 if it is not there."""
    return value or 0


def split_pair(pair: int | None) -> tuple[int, int]:
    """The two numbers of a value of 8 bytes, the upper one first; both 0 if it is not there."""
    return divmod(as_number(pair), 1 << 32)
