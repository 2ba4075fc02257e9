"""The sums of the groups of a table."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from onceproof.model.record import Record
from onceproof.readers.comparisons import as_number

GROUPS = 100  # the group of a key is its remainder


def sums_of_groups(inputs: Sequence[Record]) -> Iterator[Record]:
    """For each group of the topology `grouped-table` its last record, with the sum of the last values of its keys.

    The sum is as old as the youngest record of the group.
    """
    of_group: dict[int, list[Record]] = defaultdict(list)
    for record in inputs:
        of_group[as_number(record.key) % GROUPS].append(record)
    for group, records in of_group.items():
        last = {record.key: as_number(record.value) for record in records}
        newest = max(record.timestamp for record in records)
        yield records[-1]._replace(key=group, value=sum(last.values()), timestamp=newest)
