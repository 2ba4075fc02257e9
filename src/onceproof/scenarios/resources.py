"""A promise: what an application holds does not grow while it does the same again and again.

After each round of the same work the process is at rest, and the JVM collects its garbage. Then it is counted: threads,
file handles, metrics, the objects of each class of Kafka and RocksDB that can be reached, and the native objects of
RocksDB that are open. RocksDB has no finalizers, so a native object that is forgotten is memory that is lost.

A number that rises in every round is a leak: `ROUNDS` numbers that have nothing to do with one another are in this
order once in 5,040 times. One that rises now and then is none, as caches fill and files are compacted.

Sources: KAFKA-19748, KAFKA-20616, KAFKA-20688; Kafka Streams' developer guide, "Memory management".
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from onceproof.model.anomaly import Comparison
from onceproof.model.timeline import Event

PROMISE = "resources"  # and the event with what is `held`, by resource
WARM = 3  # rounds before the first one that counts: classes load, caches fill
ROUNDS = 7  # that count, at least


def compare_resources(events: Sequence[Event]) -> Iterator[Comparison]:
    """One comparison for each resource that was held after each round; nothing if there were too few rounds.

    Args:
        events: of the trial, among them `resources`: `held` has the number of each resource.

    Raises:
        KeyError: an event lacks a field of the protocol.
    """
    rounds = [event["held"] for event in events if event["event"] == PROMISE][WARM:]
    if len(rounds) < ROUNDS:
        return
    for resource in sorted({name for held in rounds for name in held}):
        numbers = [held.get(resource, 0) for held in rounds]
        rises = all(before < after for before, after in pairwise(numbers))
        observed = f"{resource}: {', '.join(f'{number:,}' for number in numbers)}"
        yield Comparison(PROMISE, "leak" if rises else None, 0, None, resource, "no rise in every round", observed)
