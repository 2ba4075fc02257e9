"""Where instances send the clients of a store, and which has its keys: what `QueryClient` reports."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from onceproof.faults import bounce, instance_kill, rolling_bounce, state_lost, thread_removed
from onceproof.model.anomaly import Comparison

PROMISE = "routing"
ROUTED_WITHIN = 30.0  # seconds without a rebalance after which each instance must know where each key is
NOBODY = "nobody"
# The faults of which each instance learns. Under others it may not notice that another one has its tasks.
NOTICED = (instance_kill.FAULT, bounce.FAULT, thread_removed.FAULT, state_lost.FAULT, rolling_bounce.FAULT)
# By instance the partitions of which it is the owner, and where it sends clients, by partition.
Owners = Mapping[str, Sequence[int]]
Routes = Mapping[str, Mapping[str, str]]
Row = tuple[str, int, str, str | None]  # by whom, partition, its owner, to whom


def wrong_routes(owners: Owners, routes: Routes) -> list[Row]:
    """By whom for which partition clients are sent to whom, and not to its only owner: (by, partition, owner, to)."""
    return [row for row in all_routes(owners, routes) if row[2] != row[3]]


def all_routes(owners: Owners, routes: Routes) -> Iterator[Row]:
    """The same of all partitions that have an owner, or to whose owner clients are sent."""
    has: dict[int, list[str]] = defaultdict(list)
    for name, partitions in owners.items():
        for partition in partitions:
            has[partition].append(name)
    for partition in sorted({*has, *(int(number) for known in routes.values() for number in known)}):
        for name, known in sorted(routes.items()):
            yield name, partition, " and ".join(sorted(has[partition])) or NOBODY, known.get(str(partition))


def compare_routes(rows: Iterator[Row], store: str = "") -> Iterator[Comparison]:
    """The promise `routing`; of a store that is named, if there are several."""
    of = f", store {store}" if store else ""
    for by, partition, owner, to in rows:
        anomaly = None if to == owner else "wrong-route"
        yield Comparison(PROMISE, anomaly, partition, None, f"{by}{of}", owner, to or NOBODY)
