"""The promise `ownership`: a partition with records is processed, also when its owner is gone.

What is measured. Nothing records when a record was processed: an output has the timestamp of its input, not that of its
writing. What is recorded is when its position was committed: the batch of `__consumer_offsets` has the time of the
broker that wrote it. So a partition is idle from the last commit that moved its position, or from when the first record
behind that arrived if this was later, until the next commit that moves it. Only transactions that were committed count:
work that was aborted has to be done again. The interval between two commits (100 ms) is in the measure.

The time before the first commit does not count: it is that of the application's start. An input record's time is that
of its sending, by the clock of the same machine as the brokers'.

The fact `idle` says for how many ms a partition may be idle (`scenarios.ownership`); without it nothing is judged.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from onceproof.model.anomaly import Comparison
from onceproof.model.place import Place
from onceproof.model.record import Facts, Record
from onceproof.model.segments import LogEntry
from onceproof.readers.comparisons import as_number

PROMISE = "ownership"


@dataclass(frozen=True)
class Idle:
    """A time, in epoch ms, for which a record waited, and no other one of its partition was committed either."""

    partition: int
    offset: int
    begin: int
    end: int

    @property
    def ms(self) -> int:
        """How long that is."""
        return self.end - self.begin


def longest_idle(positions: Iterable[LogEntry], inputs: Iterable[Record]) -> dict[int, Idle]:
    """The longest such time of each partition; of several the first.

    Args:
        positions: that were committed, in their order.
        inputs: the records of the input.
    """
    sent = {(record.partition, record.offset): record.timestamp for record in inputs}
    reached: dict[int, LogEntry] = {}
    longest: dict[int, Idle] = {}
    for entry in positions:
        partition, before = as_number(entry.of_partition), reached.get(as_number(entry.of_partition))
        if before is not None and as_number(entry.position) <= as_number(before.position):
            continue
        reached[partition] = entry
        waiting = None if before is None else sent.get((partition, as_number(before.position)))
        if before is None or waiting is None:
            continue
        begin = max(as_number(before.timestamp), waiting)
        idle = Idle(partition, as_number(before.position), begin, as_number(entry.timestamp))
        if partition not in longest or idle.ms > longest[partition].ms:
            longest[partition] = idle
    return longest


def compare_ownership(positions: Sequence[LogEntry], inputs: Iterable[Record], facts: Facts) -> Iterator[Comparison]:
    """One comparison for each partition of the input; see `longest_idle`."""
    if (allowed := facts.get("idle")) is None:
        return
    longest = longest_idle(positions, inputs)
    for partition in range(facts["partitions"]):
        yield _compare(partition, longest, allowed)


def _compare(partition: int, longest: Mapping[int, Idle], allowed: int) -> Comparison:
    expected = f"records wait for {allowed:,} ms at most"
    if (idle := longest.get(partition)) is None:
        return Comparison(PROMISE, None, partition, None, str(Place("input", partition, 0)), expected, "none waited")
    anomaly = "idle-partition" if idle.ms > allowed else None
    place = str(Place("input", partition, idle.offset))
    return Comparison(PROMISE, anomaly, partition, None, place, expected, f"they waited for {idle.ms:,} ms")
