"""The causes of a red that lie in an application itself, so that no release is to blame: which witnesses come of them.

As a known issue does, a cause explains a witness only if its mechanism can make it: each is asked for what happened
in the trial, by its timeline, and for what it can reach in the topology.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from onceproof.model.anomaly import Witness
from onceproof.model.compared import ChangeEffect, TopologyChange, compare
from onceproof.model.explaining import Scene
from onceproof.model.shape import Shape

OF_OUTPUTS = ("wrong-value", "lost-record", "unexpected-record", "duplicate-output", "unstable-final")
LOSING = {ChangeEffect.LOSES, ChangeEffect.DRAINS, ChangeEffect.RESETS}
OF_STORES = ("wrong-store", "wrong-standby")
UNREADABLE = r"SerializationException|ClassCastException"
INVALID = "has invalid partitions"
AGAIN = 3  # times that threads go back to the same place, from which on it is a circle
# Of a producer's transactions in Kafka Streams, unless it is configured, and of polls, in ms.
TRANSACTION, TRANSACTION_TIMEOUT = "transaction.timeout.ms", 10_000
POLL, POLL_TIMEOUT = "max.poll.interval.ms", 300_000


@dataclass(frozen=True)
class Cause:
    """A sentence about what an application did, and what helps."""

    summary: str
    remedy: str


@dataclass(frozen=True)
class Move:
    """A change of the topology between two starts of an instance, and the outputs that it can reach."""

    starts: tuple[int, int]
    change: TopologyChange
    outputs: frozenset[str]

    @property
    def cause(self) -> Cause:
        """As people are to read it."""
        first, second = self.starts
        summary = f"the topology changed between start {first} and {second}: {self.change.summary}"
        if self.change.kind == "serde":
            return Cause(
                summary,
                "Give the store another name, or stop all instances and reset the application, if its input is still "
                "there; or read both forms.",
            )
        if self.change.kind == "topic":
            return Cause(
                summary,
                "Keep the number of partitions, or stop all instances, and reset the application, if its input is "
                "still there.",
            )
        if ChangeEffect.DRAINS in self.change.effects:
            return Cause(summary, "Name it (Repartitioned.as, Grouped.as), or let everything be processed before.")
        return Cause(
            summary,
            "Give the store the name that it had (Materialized.as), or reset the application, if its input is still "
            "there.",
        )


class Causes:
    """The causes that a trial of an application shows."""

    def __init__(self, scene: Scene, configs: Sequence[Mapping[str, str]]) -> None:
        """The causes are found when they are asked for.

        Args:
            scene: the trial.
            configs: of Kafka Streams, at first and from later starts on.
        """
        self._scene, self._configs = scene, configs

    def of(self, witness: Witness) -> Cause | None:
        """The cause that explains a witness, if one does."""
        found = (*self._of_moves(witness), *self._of_dropped(witness), *self._of_circles(witness))
        return next(iter(found), None)

    # --- another version of the application over the state of the one before -------------------------------------

    @cached_property
    def moves(self) -> Sequence[Move]:
        """The changes from one of these topologies to the next."""
        return [move for pair in pairwise(self._scene.shapes) for move in _moves(*pair)]

    def _of_moves(self, witness: Witness) -> Iterator[Cause]:
        for move in self.moves:
            changes_outputs = witness.anomaly in OF_OUTPUTS and move.change.kind != "topic"
            if (changes_outputs and outputs_of(witness) & move.outputs) or (
                witness.anomaly == "thread-died" and _dies_of(move.change, witness.observed)
            ):
                yield move.cause

    # --- records that were never sent -----------------------------------------------------------------------------

    @cached_property
    def _dropped(self) -> Sequence[tuple[str, str, int, int]]:
        """The stores whose changelogs lack records, with the topic, the partition, and how many."""
        stores = {store for _, shape in self._scene.shapes for store in shape.stores}
        return [
            (store, event["topic"], int(event["task"].partition("_")[2]), event["times"])
            for event in self._scene.select_logged("dropped")
            for store in stores
            if event["topic"].endswith(f"-{store}-changelog")
        ]

    def _of_dropped(self, witness: Witness) -> Iterator[Cause]:
        for store, topic, partition, times in self._dropped:
            if witness.anomaly in OF_STORES:
                of_store = outputs_of(witness) & {f"{store}-changelog"} or f" {store} of " in " ".join(witness.offsets)
                is_of_it = partition == witness.partition and bool(of_store)
            else:  # what was lost with the store is back when it is restored
                reached = {output for _, shape in self._scene.shapes for output in shape.find_fed_by_store(store)}
                is_of_it = (
                    witness.anomaly in OF_OUTPUTS
                    and partition in self._scene.restored
                    and bool(outputs_of(witness) & reached)
                )
            if is_of_it:
                yield Cause(
                    f"the production exception handler dropped records of a changelog, {times:,} of "
                    f"{topic[topic.index(f'{store}-changelog') :]}, partition {partition}: the store has what no "
                    "restoration brings back",
                    "Let the handler fail for topics that end in -changelog, or give the producer a larger "
                    "max.request.size, and the topic a larger max.message.bytes.",
                )

    # --- a record that takes longer than Kafka waits -----------------------------------------------------------------

    def _of_circles(self, witness: Witness) -> Iterator[Cause]:
        # Without transactions there is output of what is never committed.
        at_least = all(config.get("processing.guarantee") == "at_least_once" for config in self._configs)
        shown = ("stuck", "unexpected-record") if at_least else ("stuck",)
        if witness.anomaly not in shown or self._scene.faults or not self._scene.has("failure"):
            return
        for event in self._scene.select_logged("fenced"):
            name, timeout = self._timeout(late=event["late"] >= AGAIN)
            if event["times"] >= AGAIN and event["apart"] >= timeout:
                yield Cause(
                    f"threads were fenced {event['times']:,} times at the same position, offset {event['offset']:,} of "
                    f"{event['place']}, each after {event['apart'] / 1_000:.1f} s or more; {name} is {timeout}",
                    f"Have what is processed there take less time, or set a longer {name} (a producer's: "
                    f"producer.{TRANSACTION}); brokers allow transaction.max.timeout.ms."
                    if name == TRANSACTION
                    else f"Have what is processed there take less time, or set a longer {name}, or a smaller "
                    "max.poll.records.",
                )

    def _timeout(self, *, late: bool) -> tuple[str, int]:
        """The setting by which members are fenced that take too long, and its value in ms."""
        name, timeout = (POLL, POLL_TIMEOUT) if late else (TRANSACTION, TRANSACTION_TIMEOUT)
        for config in self._configs:
            for spelled in (name, f"producer.{name}", f"consumer.{name}", f"main.consumer.{name}"):
                timeout = int(config.get(spelled, timeout))
        return name, timeout


def _moves(before: tuple[int, Shape], after: tuple[int, Shape]) -> Iterator[Move]:
    """The changes between two topologies by which results differ, or threads die."""
    (_, old), (second, new) = before, after
    for change in compare(old, new, steady=False).changes:
        is_partitions = change.kind == "topic" and change.summary.startswith("partitions of ")
        if change.kind == "serde" or is_partitions or LOSING & set(change.effects):
            outputs = {
                output
                for shape in (old, new)
                for name in change.of
                for output in (
                    shape.find_fed_by_topic(name) if name in shape.repartitions else shape.find_fed_by_store(name)
                )
            }
            yield Move((second - 1, second), change, frozenset(outputs))


def outputs_of(witness: Witness) -> set[str]:
    """The outputs that a witness is of: those of its places, or the one in which something is not there."""
    return {place.role for place in witness.places} | {text.partition(", ")[0] for text in witness.offsets}


def _dies_of(change: TopologyChange, observed: str) -> bool:
    """Whether a thread can die of a change with these words."""
    if change.kind == "topic":
        return INVALID in observed and any(f"-{name} " in observed for name in change.of)
    return change.kind == "serde" and re.search(UNREADABLE, observed) is not None
