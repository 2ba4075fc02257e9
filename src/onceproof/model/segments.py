"""The log segments of a trial's transactions: the third witness, which no consumer has read."""

from dataclasses import asdict, dataclass

OFFSETS, COORDINATOR = "__consumer_offsets", "__transaction_state"
DATA, COMMIT, ABORT, POSITION = "data", "COMMIT", "ABORT", "position"
CLASSIC, STREAMS = "classic", "streams"  # protocols, and what their groups keep of themselves in `__consumer_offsets`
PREPARE_COMMIT, PREPARE_ABORT = "PrepareCommit", "PrepareAbort"


@dataclass(frozen=True)
class LogEntry:
    """One thing that a log holds, as Kafka's `DumpLogSegments` prints it.

    `role` and `partition` say in which log: a role of the trial, or the name of one of Kafka's own topics; `first` and
    `last` are its offsets there, `producer` and `epoch` those of its batch (-1 without any). `kind` is

    - `data`: a batch of records. `sequence` and `last_sequence` are those of its first and last record, `transactional`
      says whether it belongs to a transaction.
    - `COMMIT`, `ABORT`: the marker that ends a transaction of the producer in this log.
    - `position`: a record of `__consumer_offsets` by which the application commits that it has processed the partition
      `of_partition` of the role `of_role` up to the offset `position`; `timestamp` is when its broker wrote it.
    - `PrepareCommit`, `PrepareAbort`: what the transaction coordinator decided about a transaction, a record of
      `__transaction_state`. One entry for each log that it belongs to, which is `of_role` and `of_partition`.
    """

    kind: str
    role: str
    partition: int
    first: int
    last: int
    producer: int
    epoch: int
    sequence: int = -1
    last_sequence: int = -1
    transactional: bool = True
    of_role: str | None = None
    of_partition: int | None = None
    position: int | None = None
    timestamp: int | None = None  # epoch milliseconds

    def to_dict(self) -> dict[str, object]:
        """The row of the table, one column per field."""
        return asdict(self)


def partition_of_name(name: str, partitions: int) -> int:
    """The partition of a log of Kafka's own that holds the records of a group or of a transactional id.

    It follows from Java's hash code of the name; the leader of the partition is the coordinator of the group, or of the
    transactions.
    """
    number = 0
    for character in name.encode("ascii"):
        number = (31 * number + character) & 0xFFFFFFFF
    return min(number, 2**32 - number) % partitions  # the absolute value of the signed number
