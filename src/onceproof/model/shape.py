"""The shape that a release of Kafka Streams makes of a topology, without brokers, as `onceproof.streams.Shapes` prints
it.

Topics that Kafka Streams creates are named without the application's id. What is generated in a name is the number at
its end, which shifts when an operation comes before it or goes.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

NUMBER = re.compile(r"-\d{10}(?=-|$)")  # that the DSL puts into a name
VARIETIES = (  # of stores, by a layer's class: the first that fits
    ("Versioned", "versioned"),
    ("TimeOrderedKeyValue", "buffer"),
    ("Session", "session"),
    ("Window", "window"),
    ("List", "list"),
    ("Timestamped", "timestamped key-value"),
)
Row = tuple[int | None, str | None, str | None]  # timestamp, if it has one, and key and value in Base64


@dataclass(frozen=True)
class Node:
    """A node of a topology: its kind is `source`, `sink` or `processor`, and its class that of its processor."""

    kind: str
    processor: str | None
    stores: tuple[str, ...]
    topics: tuple[str, ...]
    next: tuple[str, ...]


@dataclass(frozen=True)
class Subtopology:
    """A sub-topology, of which each partition of its sources is a task."""

    sources: tuple[str, ...]
    sinks: tuple[str, ...]
    nodes: Mapping[str, Node]

    @cached_property
    def stores(self) -> tuple[str, ...]:
        """The names of its stores."""
        return tuple(sorted({store for node in self.nodes.values() for store in node.stores}))

    def walk_down(self, names: Iterable[str]) -> Iterator[Node]:
        """Nodes and all that are downstream of them, each once."""
        return self._walk(names, lambda name: self.nodes[name].next)

    def walk_up(self, names: Iterable[str]) -> Iterator[Node]:
        """Nodes and all that are upstream of them, each once."""
        return self._walk(names, lambda name: [before for before, node in self.nodes.items() if name in node.next])

    def _walk(self, names: Iterable[str], step: Callable[[str], Iterable[str]]) -> Iterator[Node]:
        ahead, seen = list(names), set[str]()
        while ahead:
            name = ahead.pop()
            if name not in seen:
                seen.add(name)
                ahead.extend(step(name))
                yield self.nodes[name]

    def select(self, kind: str, topic: str) -> list[str]:
        """The names of its sources or its sinks of a topic."""
        return [name for name, node in self.nodes.items() if node.kind == kind and topic in node.topics]


@dataclass(frozen=True)
class Store:
    """A store: its class and those that it wraps, `persistent` or `in memory`, and the topic that restores it.

    Of the classes that read its keys and its values each is None where it is not known.
    """

    layers: tuple[str, ...]
    changelog: str | None
    serdes: tuple[str | None, ...] = ()

    @property
    def variety(self) -> str:
        """The content, in words: its changelog can only be read into a store that holds the same."""
        found = (label for name, label in VARIETIES if any(name in layer for layer in self.layers))
        return next(found, "key-value")

    @property
    def is_persistent(self) -> bool:
        """Whether it outlives its process."""
        return "persistent" in self.layers


@dataclass(frozen=True)
class Shape:
    """The shape of a topology on a release, and what TopologyTestDriver makes of some records.

    Attributes:
        name: of the topology.
        error: why it cannot be built; then it has nothing else.
        parts: its sub-topologies by number.
        global_stores: the topic that each of them is read from.
        stores: all of them.
        repartitions: the configuration of each repartition topic.
        changelogs: the same of the changelogs that Kafka Streams creates.
        tried: whether it was given records.
        failed: why the records could not be processed; then there are no outputs.
        outputs: what is written to each topic.
        kept: the entries of stores that can be listed, as texts.
    """

    name: str
    error: str | None = None
    parts: Mapping[str, Subtopology] = field(default_factory=dict)
    global_stores: Mapping[str, str] = field(default_factory=dict)
    stores: Mapping[str, Store] = field(default_factory=dict)
    repartitions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    changelogs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    tried: bool = False
    failed: str | None = None
    outputs: Mapping[str, tuple[Row, ...]] = field(default_factory=dict)
    kept: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)

    @cached_property
    def part_of(self) -> Mapping[str, str]:
        """The number of the sub-topology that has each store; none of a global store."""
        return {store: number for number, part in self.parts.items() for store in part.stores}

    def is_internal(self, topic: str) -> bool:
        """Whether Kafka Streams creates a topic."""
        return topic in self.repartitions or topic in self.changelogs

    def feeding(self, store: str) -> frozenset[str]:
        """The topics of others from which records come to a store, through repartition topics or not."""
        if store in self.global_stores:
            return frozenset({self.global_stores[store]})
        number = self.part_of.get(store)
        if number is None:
            return frozenset()
        processors = [name for name, node in self.parts[number].nodes.items() if store in node.stores]
        return frozenset(self._origins(number, processors, frozenset()))

    def find_fed_by_store(self, store: str) -> frozenset[str]:
        """The topics of others that records reach from a store, through repartition topics or not."""
        number = self.part_of.get(store)
        if number is None:
            return frozenset()
        processors = [name for name, node in self.parts[number].nodes.items() if store in node.stores]
        return frozenset(self._find_outputs(number, processors, frozenset()))

    def find_fed_by_topic(self, topic: str) -> frozenset[str]:
        """The topics of others that records reach from a repartition topic."""
        return frozenset(self._find_outputs_of_topic(topic, frozenset()))

    def writers(self, topic: str) -> frozenset[str]:
        """The topics of others from which records come to a repartition topic."""
        return frozenset(self._origins_of_topic(topic, frozenset()))

    def readers(self, topic: str) -> frozenset[str]:
        """The stores that records of a repartition topic reach within the sub-topology that reads it."""
        return frozenset(
            store
            for part in self.parts.values()
            for node in part.walk_down(part.select("source", topic))
            for store in node.stores
        )

    def _origins(self, number: str, names: list[str], passed: frozenset[str]) -> Iterator[str]:
        """The topics of others that are upstream of nodes of a sub-topology."""
        for node in self.parts[number].walk_up(names):
            for topic in node.topics if node.kind == "source" else ():
                yield from self._origins_of_topic(topic, passed)

    def _find_outputs(self, number: str, names: list[str], passed: frozenset[str]) -> Iterator[str]:
        """The topics of others that are downstream of nodes of a sub-topology."""
        for node in self.parts[number].walk_down(names):
            for topic in node.topics if node.kind == "sink" else ():
                yield from self._find_outputs_of_topic(topic, passed) if self.is_internal(topic) else (topic,)

    def _find_outputs_of_topic(self, topic: str, passed: frozenset[str]) -> Iterator[str]:
        if topic in passed:
            return
        for number, part in self.parts.items():
            yield from self._find_outputs(number, part.select("source", topic), passed | {topic})

    def _origins_of_topic(self, topic: str, passed: frozenset[str]) -> Iterator[str]:
        if not self.is_internal(topic):
            yield topic
        elif topic not in passed:
            for number, part in self.parts.items():
                yield from self._origins(number, part.select("sink", topic), passed | {topic})


def strip_numbers(name: str) -> str:
    """A name without what is generated in it."""
    return NUMBER.sub("", name)


def is_generated(name: str) -> bool:
    """Whether the DSL made a name up, so that it may shift."""
    return NUMBER.search(name) is not None
