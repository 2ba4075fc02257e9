"""The facts that both readers take, compared with what the instances say of what they have built.

Two readers that are given a wrong fact agree on a wrong verdict: with `cached` on a store that is not cached, both skip
what they should compare. So the facts, which come from the plan of a trial, must be those of the application that ran:
of the settings that its topology took, of the classes of its stores and processors, and of the configuration as Kafka
Streams understands it. A fact that is not is a failure of ours, and no anomaly.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onceproof.model.errors import HarnessError
from onceproof.model.timeline import Event

EVENT = "built"
CACHING = "caching"  # a setting
GUARANTEE = "processing.guarantee"
QUEUE = "errors.dead.letter.queue.topic.name"
END = re.compile(r"(?P<of>.+)_(end|read)(/(?P<partition>\d+))?")  # a fact of how far a reader came
JOINS = ("inner", "left", "outer")
WINDOWS = ("tumbling", "hopping", "session", "sliding")
CLOCKS = ("stream-time", "wall-clock")


@dataclass(frozen=True)
class Built:
    """An instance's own report of what it has built.

    Attributes:
        instance: its name.
        settings: of the topology, as it took them.
        config: of Kafka Streams, with its defaults.
        stores: of each the class and those that it wraps, and `persistent` or `in memory`.
        processors: the class of each node.
    """

    instance: str
    settings: Mapping[str, Any]
    config: Mapping[str, str]
    stores: Mapping[str, Sequence[str]]
    processors: Mapping[str, str]

    @classmethod
    def of(cls, event: Event) -> "Built":
        """As an instance reported it."""
        return cls(event["source"], event["settings"], event["config"], event["stores"], event["processors"])

    def has_layer(self, name: str) -> bool:
        """Whether the class of a store, or of one that it wraps, begins like that."""
        return any(layer.startswith(name) for layers in self.stores.values() for layer in layers)

    def first_class(self, pattern: str) -> str | None:
        """The group of a pattern in the class of a processor; None if no class has it."""
        found = filter(None, (re.search(pattern, name) for name in self.processors.values()))
        return next((match[1] for match in found), None)


Says = Callable[[Built], int | None]  # the value of a fact by something that was built; None if that says nothing of it


def _setting(name: str, default: Any = None) -> Says:
    return lambda built: built.settings.get(name, default)


def _is(name: str, value: str) -> Says:
    return lambda built: built.settings[name] == value if name in built.settings else None


def _place(name: str, choices: Sequence[str]) -> Says:
    return lambda built: choices.index(built.settings[name]) if name in built.settings else None


def _is_cached(built: Built) -> int | None:
    # Without the setting the stores are the user's own, or there are none.
    return built.has_layer("Caching") if CACHING in built.settings else None


def _history(built: Built) -> int | None:
    return int(built.settings["retention.ms"]) if built.has_layer("Versioned") else 0


def _table_join(built: Built) -> int | None:
    found = built.first_class(r"\bKTableKTable(Inner|Left|Outer)Join\$")
    return JOINS.index(found.lower()) if found else None


def _kind_of_windows(built: Built) -> int | None:
    found = built.first_class(r"\bKStream(\w*)WindowAggregate\$")
    if found is None:
        return None
    kind = built.settings["kind"]
    of_class = {"Session": ("session",), "Sliding": ("sliding",)}.get(found, ("tumbling", "hopping"))
    return WINDOWS.index(kind if kind in of_class else of_class[0])


def _only_finals(built: Built) -> int | None:
    return bool(built.settings["suppressed"] or built.settings["on.close"])


def _is_suppressed(built: Built) -> int | None:
    """Whether there is a processor that holds windows back, where nothing else does."""
    return None if built.settings["on.close"] else built.first_class(r"\bKTable(Suppress)Processor") is not None


# By fact, what says its value, and in which words.
SAYINGS: Mapping[str, Mapping[str, Says]] = {
    "exactly_once": {GUARANTEE: lambda built: built.config[GUARANTEE] == "exactly_once_v2"},
    "cached": {"the class of a store": _is_cached, CACHING: _setting(CACHING)},
    "punctuated": {"punctuate.ms": lambda built: "punctuate.ms" in built.settings},
    "clock": {"clock": _place("clock", CLOCKS)},
    "interval": {"punctuate.ms": _setting("punctuate.ms")},
    "queue": {QUEUE: lambda built: QUEUE in built.config},
    "kind": {"kind": _place("kind", WINDOWS), "the class of a processor": _kind_of_windows},
    "size": {"size.ms": _setting("size.ms")},
    "grace": {"grace.ms": _setting("grace.ms")},
    "suppressed": {"suppressed and on.close": _only_finals, "the class of a processor": _is_suppressed},
    "cogrouped": {"cogrouped": _setting("cogrouped")},
    "limit": {"limit.ms": _setting("limit.ms", 0)},
    "retention": {"the class of a store": _history},
    "waits": {"grace.ms": lambda built: "grace.ms" in built.settings},
    "window": {"window.ms": _setting("window.ms")},
    "before": {"before.ms": lambda built: built.settings.get("before.ms", built.settings["window.ms"])},
    "join": {"join": _place("join", JOINS), "the class of a processor": _table_join},
    "downstream": {"delete": _is("delete", "downstream")},
    "reach": {"reach": _setting("reach")},
    "all_every": {"all.every": _setting("all.every")},
    "added": {"added": _setting("added", 0)},
}


def check_built(facts: Mapping[str, int], events: Iterable[Event]) -> None:
    """Check that the facts are those of what each instance has built.

    Raises:
        HarnessError: one is not.
    """
    for built in (Built.of(event) for event in events if event["event"] == EVENT):
        for contradiction in contradictions(facts, built):
            raise HarnessError(contradiction)


def contradictions(facts: Mapping[str, int], built: Built) -> Iterator[str]:
    """A sentence for each fact that an instance says otherwise."""
    for fact, taken in facts.items():
        for by, says in SAYINGS.get(fact, {}).items():
            said = says(built)
            if said is not None and said != taken:
                yield (
                    f"The checks take {fact}={taken}, but of {built.instance} {by} says {fact}={int(said)}: the "
                    "plan of the trial is not what was run."
                )
    # A join of streams whose results may come without a match keeps those that wait (KAFKA-10847).
    if "join" in facts and "window.ms" in built.settings and built.has_layer("ListValue") != (facts["join"] > 0):
        yield (
            f"The checks take join={facts['join']}, {JOINS[facts['join']]}, but the stores of {built.instance} are "
            f"{'not ' if facts['join'] else ''}those of a join that waits for matches: the plan of the trial is not "
            "what was run."
        )


def check_brokers(
    facts: Mapping[str, int], sizes: Mapping[str, int], ends: Mapping[tuple[str, int], int], inputs: Iterable[str]
) -> None:
    """Check that the facts are those of the topics on the brokers.

    Args:
        facts: that both readers take.
        sizes: by role, the partitions of each topic.
        ends: by role and partition, the end of each log.
        inputs: the roles of the topics that only we write to.

    Raises:
        HarnessError: one is not.
    """
    for name in inputs:
        if name in sizes and sizes[name] != facts["partitions"]:
            raise HarnessError(
                f"The checks take partitions={facts['partitions']}, but the brokers say that the topic {name} has "
                f"{sizes[name]}: the plan of the trial is not what was run."
            )
    for fact, taken in facts.items():
        if (match := END.fullmatch(fact)) is None or (role := _log_of(match["of"], sizes)) is None:
            continue
        numbers = [int(match["partition"])] if match["partition"] else range(sizes[role])
        end = sum(ends[role, number] for number in numbers)
        if not 0 <= taken <= end:
            raise HarnessError(
                f"The checks take {fact}={taken:,}, but the brokers say that {role} ends at {end:,}: it never ended "
                "there."
            )


def _log_of(name: str, roles: Iterable[str]) -> str | None:
    """The role of the topic that a fact of an end names: by the role, by the store, or as the changelog."""
    return next((role for role in sorted(roles) if name in (role, role.removesuffix("-changelog"))), None) or next(
        (role for role in sorted(roles) if role.endswith(f"-{name}")), None
    )
