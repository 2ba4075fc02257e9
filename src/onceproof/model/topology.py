"""The parts of the topology of a user application, as its instances describe it (the event `topology`).

From it comes what the application uses of Kafka Streams (`model.application`), and whether the last value of a key may
hang on the order in which its records are taken. Processors are known by the names of Kafka Streams' own classes, which
differ little from 3.0 to 4.4.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from onceproof.model.application import Value
from onceproof.model.timeline import Event

EVENT = "topology"
OF_KAFKA = "org.apache.kafka."
REPARTITION = "-repartition"  # what the names of such topics end with
OF_FOREIGN_KEYS = "foreignkeyjoin"  # a package
STREAM_STREAM, STREAM_TABLE = r"KStreamKStream\w*Join", "KStreamKTableJoinProcessor"
TABLE_TABLE = r"KTableKTable\w*Join"
WINDOWED = r"KStream(Window|SlidingWindow|SessionWindow)Aggregate"
WINDOW_STORE = r"(Window|Session)Store"
GROUPED = "KTableRepartitionMap"
OF_PEOPLE = "Transform"  # such a processor has user code in it
TABLE_SOURCE = "KTableSource$"
# They bring records together that no order binds, so that the last one may be another one each time.
BY_ORDER = ("stream-table", "stream-global-table", "stream-stream")
CACHE_SIZES = ("statestore.cache.max.bytes", "cache.max.bytes.buffering")  # KIP-770 renamed it


@dataclass(frozen=True)
class DescribedPart:
    """A subtopology: the topics that it reads, and its processors with the stores of each."""

    sources: tuple[str, ...]
    nodes: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Topology:
    """The parts of a topology.

    Attributes:
        parts: its subtopologies.
        internal: the repartition topics, and those of foreign-key joins.
        globals_: topics that are read into global tables or stores.
        processors: the class of each node.
        kinds: of each store its class and those that it wraps, and `persistent` or `in memory`.
    """

    parts: tuple[DescribedPart, ...]
    internal: tuple[str, ...] = ()
    globals_: tuple[str, ...] = ()
    processors: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> "Topology":
        """As the event has it."""
        parts = tuple(
            DescribedPart(tuple(part["sources"]), {node: tuple(stores) for node, stores in part["nodes"].items()})
            for part in described["parts"]
        )
        kinds = {store: tuple(layers) for store, layers in described["kinds"].items()}
        return cls(parts, tuple(described["internal"]), tuple(described["globals"]), described["processors"], kinds)

    @classmethod
    def read_described(cls, events: Iterable[Event]) -> "Topology | None":
        """As the first instance of a trial described it; None of a black box, which describes nothing."""
        return next(iter(cls.all_known(events)), None)

    @classmethod
    def all_known(cls, events: Iterable[Event]) -> "list[Topology]":
        """The same, and the other ones that later phases have; empty of a black box."""
        found: list[Topology] = []
        for event in events:
            if event["event"] == EVENT and (described := cls.of(event)) not in found:
                found.append(described)
        return found

    def uses(self, config: Mapping[str, str]) -> dict[str, tuple[Value, ...]]:
        """The features that it uses under a configuration of Kafka Streams: for each feature the values that apply.

        Nothing is said of quotas, which brokers have, of skipped records, which user code may skip, and of punctuators
        where there is user code.
        """
        is_cached = any(layer.startswith("Caching") for layers in self.kinds.values() for layer in layers)
        uses: dict[str, tuple[Value, ...]] = {
            "guarantee": (config.get("processing.guarantee", "at_least_once"),),
            "stores": self._stores(),
            "caching": (is_cached and all(config.get(name) != "0" for name in CACHE_SIZES),),
            "standbys": (config.get("num.standby.replicas", "0") != "0",),
            "static_membership": ("group.instance.id" in config,),
            "transactional_stores": (config.get("enable.transactional.statestores") == "true",),
            "state_updater": (config.get("__state.updater.enabled__") != "false",),
            "protocol": (config.get("group.protocol", "classic"),),
            "joins": self.joins,
            "global_tables": (bool(self.globals_),),
            "grouped_tables": (self._has(GROUPED),),
            "optimization": (config.get("topology.optimization", "none") != "none",),
            "windows": (self._has(WINDOWED),),
            "window_stores": (self.has_store(WINDOW_STORE),),
        }
        return uses if self.own_code else {**uses, "punctuators": (False,)}

    @property
    def own_code(self) -> tuple[str, ...]:
        """The nodes that have user code, which may do anything that the Processor API allows."""
        return tuple(
            node for node, name in self.processors.items() if not name.startswith(OF_KAFKA) or OF_PEOPLE in name
        )

    @property
    def joins(self) -> tuple[Value, ...]:
        """The kinds of its joins."""
        with_tables = [
            bool(stores)  # a global table is no store of the processor's
            for part in self.parts
            for node, stores in part.nodes.items()
            if STREAM_TABLE in self.processors.get(node, "")
        ]
        found = {
            "stream-stream": self._has(STREAM_STREAM),
            "stream-table": True in with_tables,
            "stream-global-table": False in with_tables,
            "table-table": self._has(TABLE_TABLE),
            "foreign-key": any(OF_FOREIGN_KEYS in name for name in self.processors.values()),
        }
        return tuple(kind for kind, there in found.items() if there)

    def has_store(self, kind: str, name: str | None = None) -> bool:
        """Whether a store, of this name if one is given, or one that it wraps, has a class with this pattern."""
        of_name = self.kinds.values() if name is None else [self.kinds.get(name, ())]
        return any(re.search(kind, layer) for layers in of_name for layer in layers)

    def why_final_values_may_differ(self) -> str | None:
        """Why the last value of a key may hang on the order in which records are taken; None if nothing makes it so."""
        if kinds := [str(kind) for kind in self.joins if kind in BY_ORDER]:
            return f"a {kinds[0]} join, whose results hang on the order in which its two sides are taken"
        if topics := [topic for topic in self.internal if topic.endswith(REPARTITION)]:
            return f"the topic {topics[0]}, in which records of several tasks meet in whatever order"
        for part in self.parts:
            read = [topic for topic in part.sources if topic not in self.internal]
            tables = sum(TABLE_SOURCE in self.processors.get(node, "") for node in part.nodes)
            if len(read) > max(1, tables):
                return f"tasks that read {' and '.join(read)} side by side, in whatever order"
        return None

    def _has(self, pattern: str) -> bool:
        return any(re.search(pattern, name) and OF_FOREIGN_KEYS not in name for name in self.processors.values())

    def _stores(self) -> tuple[Value, ...]:
        def has(layer: str) -> bool:
            return any(layer in layers for layers in self.kinds.values())

        found = {"rocksdb": has("persistent"), "in-memory": has("in memory"), "versioned": self.has_store("Versioned")}
        return tuple(kind for kind, there in found.items() if there)


def collect_uses(topologies: Iterable[Topology], configs: Iterable[Mapping[str, str]]) -> dict[str, tuple[Value, ...]]:
    """The features that any of these topologies uses under any of these configurations; as of `Topology.uses`.

    Nothing is said of a feature of which one of them says nothing.
    """
    all_ = [topology.uses(config) for topology, config in product(topologies, configs)]
    names = set.intersection(*(set(uses) for uses in all_)) if all_ else set()
    return {
        name: tuple(dict.fromkeys(value for uses in all_ for value in uses[name])) for name in all_[0] if name in names
    }
