"""The changes between two shapes of a topology, and what that does to its state and to a rolling deployment.

Two releases make shapes of one topology, or one release makes them of two versions of it. A change is described by its
effects; one that has none is listed for completeness.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from onceproof.model.errors import ExitCode
from onceproof.model.shape import Shape, Store, Subtopology, is_generated, strip_numbers

OF_STREAMS, OF_SERDES, READER = "org.apache.kafka.streams.", "org.apache.kafka.common.serialization.", "Deserializer"
RAW = {f"{OF_SERDES}{name}{READER}" for name in ("ByteArray", "Bytes", "ByteBuffer")}  # read what each other wrote
SHOWN = 100  # characters of an error or a record
SCHEMA = 2  # of the JSON of a comparison; it changes when a field is removed or changes its meaning


class ChangeEffect(StrEnum):
    """The effects of a change."""

    REFUSES = "does not build"
    LOSES = "state is lost"
    DRAINS = "records on their way are lost or counted otherwise, unless everything is processed before"
    SPLITS = "instances of both cannot be in one group"
    RESETS = "an application reset is due"
    DIFFERS = "results differ"


@dataclass(frozen=True)
class TopologyChange:
    """A change: its kind (`build`, `sub-topology`, `store`, `serde`, `repartition`, `topic`, `processors`, `records`).

    `of` are the stores or topics that it is of: their names before and after.
    """

    kind: str
    summary: str
    effects: tuple[ChangeEffect, ...] = ()
    of: tuple[str, ...] = ()


@dataclass(frozen=True)
class TopologyComparison:
    """The changes of a topology."""

    name: str
    changes: tuple[TopologyChange, ...]

    def has(self, effect: ChangeEffect) -> bool:
        """Whether a change has this effect."""
        return any(effect in change.effects for change in self.changes)

    @property
    def grave(self) -> tuple[TopologyChange, ...]:
        """The changes that have effects."""
        return tuple(change for change in self.changes if change.effects)

    @property
    def alike(self) -> tuple[tuple[str, tuple[ChangeEffect, ...]], ...]:
        """The signature of topologies that change in the same way: the kinds of the changes and their effects."""
        return tuple(sorted({(change.kind, change.effects) for change in self.grave}))

    @property
    def loses_state(self) -> bool:
        """Whether state would be lost."""
        return self.has(ChangeEffect.LOSES)

    @property
    def rolls(self) -> bool:
        """Whether instances can be replaced one by one."""
        return not any(self.has(effect) for effect in (ChangeEffect.REFUSES, ChangeEffect.SPLITS, ChangeEffect.RESETS))

    @property
    def advice(self) -> str:
        """How to deploy the second one."""
        if self.has(ChangeEffect.REFUSES):
            return "It cannot be deployed."
        if self.has(ChangeEffect.RESETS) or self.loses_state:
            if {change.kind for change in self.changes if ChangeEffect.LOSES in change.effects} == {"serde"}:
                return (
                    "A rolling deployment cannot keep the state. Read what the stores hold by the classes that wrote "
                    "it, or stop all instances and reset the application, if its input is still there."
                )
            return (
                "A rolling deployment cannot keep the state. Give the stores and repartition topics the names that "
                "they had (Materialized.as, Grouped.as, Repartitioned.as), or stop all instances and reset the "
                "application, if its input is still there."
            )
        if self.has(ChangeEffect.DRAINS):
            return (
                "A rolling deployment cannot work. Stop the input, let everything be processed, stop all instances, "
                "and start the new ones."
            )
        if not self.rolls:
            return "A rolling deployment cannot work. Stop all instances, and start the new ones."
        return "A rolling deployment can work."

    @property
    def of_release(self) -> ExitCode:
        """The exit code where two releases are compared: any effect counts."""
        return ExitCode.ANOMALY if self.grave else ExitCode.OK

    @property
    def of_versions(self) -> ExitCode:
        """The exit code where two versions of an application are compared: lost state counts, other results do not."""
        lost = self.loses_state or self.has(ChangeEffect.REFUSES)
        return ExitCode.ANOMALY if lost else ExitCode.OK


@dataclass(frozen=True)
class ComparedTopology:
    """A topology that changes, and what follows: as `release compare --json` has it."""

    name: str
    changes: tuple[TopologyChange, ...]
    loses_state: bool
    rolls: bool
    advice: str

    @classmethod
    def of(cls, comparison: TopologyComparison) -> "ComparedTopology":
        """The answer about one comparison."""
        return cls(comparison.name, comparison.changes, comparison.loses_state, comparison.rolls, comparison.advice)


@dataclass(frozen=True)
class CompareAnswer:
    """The changes between two releases, or two versions on a release: the form of `release compare --json`."""

    schema: int
    before: str  # a release, or a folder or file
    after: str
    streams: str | None  # the release on which two versions were compared
    compared: int  # topologies
    differing: int  # of them, those with a change that has effects
    changed: tuple[ComparedTopology, ...]

    @classmethod
    def of(
        cls, comparisons: Collection[TopologyComparison], before: str, after: str, streams: str | None = None
    ) -> "CompareAnswer":
        """The answer about all comparisons."""
        changed = tuple(ComparedTopology.of(comparison) for comparison in comparisons if comparison.changes)
        differing = sum(bool(comparison.grave) for comparison in comparisons)
        return cls(SCHEMA, before, after, streams, len(comparisons), differing, changed)


def compare(before: Shape, after: Shape, *, steady: bool = True) -> TopologyComparison:
    """The changes from one shape to another.

    Args:
        before: the shape that is deployed.
        after: the one that is to be.
        steady: whether it makes the same of the same records each time; else they are not compared.
    """
    if before.error or after.error:
        return TopologyComparison(after.name, tuple(_of_build(before, after)))
    changes = [
        *_of_parts(before, after),
        *_of_stores(before, after),
        *_of_repartitions(before, after),
        *_of_configs(before, after),
    ]
    if (
        steady
        and before.tried
        and after.tried
        and not any(change.effects for change in changes if change.kind in ("store", "serde"))
    ):
        changes += _of_records(before, after)
    return TopologyComparison(after.name, tuple(changes or _of_processors(before, after)))


def report_unbuilt(name: str, error: str) -> TopologyComparison:
    """The answer about one topology that builds on neither side, so that nothing is known to be the same."""
    return TopologyComparison(
        name, (TopologyChange("build", f"it builds on neither: {first_words(error)}", (ChangeEffect.REFUSES,)),)
    )


def first_words(error: str) -> str:
    """An error without what differs from process to process, and not longer than a line."""
    text = re.sub(r"@[0-9a-f]+", "", error).partition("{")[0].strip()
    return text if len(text) <= 2 * SHOWN else f"{text[: 2 * SHOWN]}…"


def _of_build(before: Shape, after: Shape) -> Iterator[TopologyChange]:
    if after.error and not before.error:
        yield TopologyChange("build", f"it does not build: {first_words(after.error)}", (ChangeEffect.REFUSES,))
    elif before.error and not after.error:
        yield TopologyChange("build", f"it builds, and did not: {first_words(before.error)}")


# --- sub-topologies --------------------------------------------------------------------------------------------------


def _of_parts(before: Shape, after: Shape) -> Iterator[TopologyChange]:
    for number in sorted(before.parts.keys() | after.parts.keys(), key=int):
        old, new = before.parts.get(number), after.parts.get(number)
        if old and new:
            if old.sources != new.sources:
                message = f"sub-topology {number} {_reads(new)}; it read {_join_names(old.sources)}"
                yield TopologyChange("sub-topology", message, (ChangeEffect.SPLITS,))
        elif old:
            yield TopologyChange(
                "sub-topology", f"sub-topology {number} disappears, which {_reads(old)}", (ChangeEffect.SPLITS,)
            )
        elif new:
            yield TopologyChange(
                "sub-topology", f"sub-topology {number} is new, and {_reads(new)}", (ChangeEffect.SPLITS,)
            )


def _reads(part: Subtopology) -> str:
    return f"reads {_join_names(part.sources)}"


def _of_processors(before: Shape, after: Shape) -> Iterator[TopologyChange]:
    """Other processors where neither state nor topics change: no task is another one for that."""
    old, new = _nodes(before), _nodes(after)
    if old != new:
        what = (
            "processors change, and neither stores nor topics"
            if _plain(old) != _plain(new)
            else "processors are renumbered"
        )
        yield TopologyChange("processors", what)


def _nodes(shape: Shape) -> list[tuple[str, str]]:
    return sorted((number, name) for number, part in shape.parts.items() for name in part.nodes)


def _plain(nodes: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return sorted((number, strip_numbers(name)) for number, name in nodes)


# --- stores ----------------------------------------------------------------------------------------------------------


def _of_stores(before: Shape, after: Shape) -> Iterator[TopologyChange]:
    gone, new = before.stores.keys() - after.stores.keys(), after.stores.keys() - before.stores.keys()
    renamed = match(gone, new, lambda name: _like(before, name), lambda name: _like(after, name))
    for name in sorted(gone):
        yield _report_gone(before, name, renamed.get(name))
    for name in sorted(new - set(renamed.values())):
        yield TopologyChange("store", f"store {name} is new, and begins empty", of=(name,))
    for name in sorted(before.stores.keys() & after.stores.keys()):
        yield from _compare_kept_store(before, after, name)


def _like(shape: Shape, name: str) -> tuple[str, frozenset[str]]:
    """By what a store is known if it is called otherwise: what it holds, and of what input."""
    return shape.stores[name].variety, shape.feeding(name)


def _report_gone(before: Shape, name: str, called: str | None) -> TopologyChange:
    now = f"store {name} is called {called} now, which begins empty" if called else f"store {name} is gone"
    store = before.stores[name]
    left, lost = _describe_left(before, store)
    shifts = " (a generated name that shifts)" if called and is_generated(name) else ""
    effects = (ChangeEffect.LOSES, ChangeEffect.RESETS, ChangeEffect.SPLITS) if called else (ChangeEffect.LOSES,)
    of = (name, called) if called else (name,)
    return TopologyChange("store", f"{now}{shifts}: {left}", effects if lost else (ChangeEffect.SPLITS,), of)


def _describe_left(shape: Shape, store: Store) -> tuple[str, bool]:
    """The fate of the state of a store that is not used any more, and whether that is a loss."""
    if store.changelog is None:
        lost = store.is_persistent
        return ("its state is lost, as it has no changelog" if lost else "it has none that outlives its process"), lost
    if store.changelog in shape.changelogs:
        return f"its state is left behind in {store.changelog}", True
    return f"its state is still in the topic {store.changelog}", False


def _compare_kept_store(before: Shape, after: Shape, name: str) -> Iterator[TopologyChange]:
    old, new = before.stores[name], after.stores[name]
    if old.variety != new.variety:
        message = f"store {name} is a {new.variety} store and was a {old.variety} store: it cannot read {old.changelog}"
        yield TopologyChange("store", message, (ChangeEffect.LOSES, ChangeEffect.SPLITS, ChangeEffect.RESETS), (name,))
        return
    yield from _of_serdes(name, old, new)
    if before.feeding(name) != after.feeding(name):
        message = (
            f"store {name} is fed by {_join_names(after.feeding(name))}, and was by {_join_names(before.feeding(name))}"
        )
        if is_generated(name):  # another operation has got the name
            message += ": a generated name that shifts, so it takes over the state of another operation"
            yield TopologyChange(
                "store", message, (ChangeEffect.LOSES, ChangeEffect.SPLITS, ChangeEffect.RESETS), (name,)
            )
            return
        yield TopologyChange("store", message, of=(name,))
    if old.changelog != new.changelog:
        yield _other_changelog(after, name, old, new)
    was, becomes = before.part_of.get(name), after.part_of.get(name)
    if was != becomes:
        lost = new.changelog is None and old.is_persistent
        message = f"store {name} moves from sub-topology {was} to {becomes}"
        message += ": it is lost, as it has no changelog" if lost else ", where it is restored"
        yield TopologyChange("store", message, (*((ChangeEffect.LOSES,) if lost else ()), ChangeEffect.SPLITS), (name,))
    if old.is_persistent != new.is_persistent:
        where = "on disk" if new.is_persistent else "in memory"
        yield TopologyChange("store", f"store {name} is {where} now, and is restored", of=(name,))


def _other_changelog(after: Shape, name: str, old: Store, new: Store) -> TopologyChange:
    message = f"store {name} is restored from {new.changelog or 'nothing'}, and was from {old.changelog or 'nothing'}"
    if new.changelog is None or new.changelog in after.changelogs:
        effects: tuple[ChangeEffect, ...] = (ChangeEffect.LOSES, ChangeEffect.SPLITS, ChangeEffect.RESETS)
        lost = effects if old.changelog else (ChangeEffect.SPLITS,)
        return TopologyChange("store", f"{message}: what it holds is not there", lost, (name,))
    return TopologyChange("store", f"{message}, which has what it holds", (ChangeEffect.SPLITS,), (name,))


def _of_serdes(name: str, old: Store, new: Store) -> Iterator[TopologyChange]:
    """Other classes that read what is kept. Kafka's own read nothing that another one wrote; of yours it is not known.

    Those of Kafka Streams are left out, as a release may call them otherwise.
    """
    for what, was, becomes in zip(("keys", "values"), old.serdes, new.serdes, strict=False):
        if was is None or becomes is None or was == becomes or {was, becomes} <= RAW:
            continue
        if not (was.startswith(OF_STREAMS) or becomes.startswith(OF_STREAMS)):
            message = f"store {name} reads its {what} as {_type(becomes)}, and they were written as {_type(was)}"
            is_garbled = was.startswith(OF_SERDES) and becomes.startswith(OF_SERDES)
            effects = (ChangeEffect.LOSES, ChangeEffect.SPLITS, ChangeEffect.RESETS) if is_garbled else ()
            yield TopologyChange("serde", message, effects, (name,))


def _type(reader: str) -> str:
    """The type that a class reads, for people."""
    return reader.removeprefix(OF_SERDES).removesuffix(READER)


# --- topics ----------------------------------------------------------------------------------------------------------


def _of_repartitions(before: Shape, after: Shape) -> Iterator[TopologyChange]:
    old, new = before.repartitions.keys(), after.repartitions.keys()
    renamed = match(old - new, new - old, before.writers, after.writers)
    for topic in sorted(old - new):
        now = f"is called {renamed[topic]} now" if topic in renamed else "is gone"
        message = f"repartition topic {topic} {now}: what is in it and not processed is left behind"
        of = (topic, renamed[topic]) if topic in renamed else (topic,)
        yield TopologyChange("repartition", message, (ChangeEffect.DRAINS, ChangeEffect.SPLITS), of)
    for topic in sorted(new - old - set(renamed.values())):
        yield TopologyChange("repartition", f"repartition topic {topic} is new", (ChangeEffect.SPLITS,), (topic,))
    for topic in sorted(old & new):
        yield from _compare_kept_repartition(before, after, topic)


def _compare_kept_repartition(before: Shape, after: Shape, topic: str) -> Iterator[TopologyChange]:
    if before.writers(topic) != after.writers(topic) and is_generated(topic):
        message = (
            f"repartition topic {topic} is fed by {_join_names(after.writers(topic))}, and was by "
            f"{_join_names(before.writers(topic))}: a generated name that shifts, so it passes on what another "
            "operation wrote"
        )
        yield TopologyChange(
            "repartition", message, (ChangeEffect.DRAINS, ChangeEffect.SPLITS, ChangeEffect.RESETS), (topic,)
        )
    elif (fed := before.readers(topic)) != (feeds := after.readers(topic)):
        message = f"repartition topic {topic} feeds {_join_names(feeds)}, and fed {_join_names(fed)}"
        yield TopologyChange(
            "repartition",
            message,
            (ChangeEffect.DRAINS, ChangeEffect.SPLITS) if _is_known(before, feeds) else (),
            (topic,),
        )


def _is_known(before: Shape, stores: Collection[str]) -> bool:
    """Whether these stores were there before, so that what is on its way counts in those that it did not count in."""
    return any(store in before.stores for store in stores)


def _of_configs(before: Shape, after: Shape) -> Iterator[TopologyChange]:
    for old, new in ((before.repartitions, after.repartitions), (before.changelogs, after.changelogs)):
        for topic in sorted(old.keys() & new.keys()):
            for name in sorted(old[topic].keys() | new[topic].keys()):
                was, becomes = old[topic].get(name, "not set"), new[topic].get(name, "not set")
                if was != becomes:
                    effects = (ChangeEffect.SPLITS,) if name == "partitions" else ()
                    yield TopologyChange("topic", f"{name} of {topic} is {becomes}, and was {was}", effects, (topic,))


# --- records ---------------------------------------------------------------------------------------------------------


def _of_records(before: Shape, after: Shape) -> Iterator[TopologyChange]:
    """The results of the same records; of internal topics only where both have them."""
    if before.failed or after.failed:
        if first_words(before.failed or "") != first_words(after.failed or ""):
            now = f"fails: {first_words(after.failed)}" if after.failed else "does not fail"
            yield TopologyChange("records", f"with the same records it {now}", (ChangeEffect.DIFFERS,))
        return
    for topic in sorted(before.outputs.keys() | after.outputs.keys()):
        if not (topic in before.outputs and topic in after.outputs) and _is_internal(topic, before, after):
            continue
        if difference := _first_difference(before.outputs.get(topic, ()), after.outputs.get(topic, ())):
            yield TopologyChange("records", f"the records of {topic} differ: {difference}", (ChangeEffect.DIFFERS,))
    for name in sorted(before.kept.keys() & after.kept.keys()):
        if difference := _first_difference(before.kept[name], after.kept[name]):
            yield TopologyChange(
                "records", f"the entries of store {name} differ: {difference}", (ChangeEffect.DIFFERS,)
            )


def _is_internal(topic: str, *shapes: Shape) -> bool:
    return any(shape.is_internal(topic) for shape in shapes) or topic.endswith(("-topic", "-changelog", "-repartition"))


def _first_difference(old: tuple[object, ...], new: tuple[object, ...]) -> str:
    if old == new:
        return ""
    for number, (was, becomes) in enumerate(zip(old, new, strict=False), 1):
        if was != becomes:
            return f"number {number} is {_show(becomes)}, and was {_show(was)}"
    return f"there are {len(new)}, and were {len(old)}"


def _show(value: object) -> str:
    text = str(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


# --- names -----------------------------------------------------------------------------------------------------------


def match(
    gone: Collection[str],
    new: Collection[str],
    like_gone: Callable[[str], object],
    like_new: Callable[[str], object],
) -> dict[str, str]:
    """The new names of what is gone: pairs of what is alike, in the order of their names; those of one form first."""
    found: dict[str, str] = {}
    for form in (strip_numbers, lambda _: ""):
        ahead: Mapping[object, list[str]] = defaultdict(list)
        for name in sorted(set(new) - set(found.values())):
            ahead[form(name), like_new(name)].append(name)
        for name in sorted(set(gone) - found.keys()):
            if candidates := ahead[form(name), like_gone(name)]:
                found[name] = candidates.pop(0)
    return found


def _join_names(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"
