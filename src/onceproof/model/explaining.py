"""Whether a known issue explains a witness: by the name of its anomaly, and by what the issue's mechanism can do.

A row of the registry says what must hold of a witness of its anomalies, in a few words that are evaluated on the
witness, on the timeline of its trial and on its parameters (`Explanation`). What no row explains is a regression, even
on an affected release.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from functools import cached_property
from operator import itemgetter
from typing import Any

from onceproof.model.anomaly import Witness
from onceproof.model.decoding import Pattern, decode
from onceproof.model.history import History, Input, Way
from onceproof.model.shape import Shape
from onceproof.model.timeline import Event, find_stayed_beside_revoked, returns
from onceproof.model.window_history import WindowHistory, WindowWay

_WHERE = ("scenarios", "variants")  # say where an explanation holds, and nothing of a witness
_UNSAID = ("anomalies", "whole_trial", *_WHERE)  # are no conditions
_OF_TRIAL = ("after", "faults", "given")  # are the same for all witnesses of a trial


class Scene:
    """The facts about a trial besides its witnesses."""

    def __init__(
        self,
        events: Sequence[Event],
        inputs: Callable[[], Iterable[Input]],
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        """The facts of one trial.

        Args:
            events: the timeline.
            inputs: gives the records of the input; called once, and only if a witness must be found by its key.
            parameters: the value of each parameter of the trial.
        """
        self.events = events
        self.parameters = parameters or {}
        self._inputs = inputs
        self._open_keys: dict[str, frozenset[int | None]] = {}

    def has(self, name: str) -> bool:
        """Whether something happened."""
        return any(event["event"] == name for event in self.events)

    @cached_property
    def shapes(self) -> Sequence[tuple[int, Shape]]:
        """The shapes that a user application has, each with the first start of an instance that has it."""
        found: list[tuple[int, Shape]] = []
        starts: Counter[str] = Counter()
        for event in self.events:
            if event["event"] == "topology" and "shape" in event:
                starts[event["source"]] += 1
                start, shape = starts[event["source"]], decode(Shape, {**event["shape"], "name": ""})
                if all(start > known for known, _ in found) and (not found or shape != found[-1][1]):
                    found.append((start, shape))
        return found

    def select_logged(self, what: str) -> list[Event]:
        """The events `logged` of one kind: what instances did, as their logs say."""
        return [event for event in self.events if event["event"] == "logged" and event["what"] == what]

    @cached_property
    def faults(self) -> frozenset[str]:
        """The names of the faults that were injected."""
        return frozenset(e["name"] for e in self.events if e["event"] == "fault" and e["action"] == "applied")

    @cached_property
    def inputs(self) -> tuple[Input, ...]:
        """The records of the input."""
        return tuple(self._inputs())

    @cached_property
    def returned(self) -> frozenset[int]:
        """The partitions whose task came back to a thread that had left it."""
        return frozenset(int(found.task.partition("_")[2]) for found in returns(self.events))

    @cached_property
    def stayed(self) -> frozenset[int]:
        """The partitions whose task stayed on a thread from which another was taken."""
        return frozenset(int(task.partition("_")[2]) for task in find_stayed_beside_revoked(self.events))

    @cached_property
    def restored(self) -> frozenset[int]:
        """The partitions of which a store was restored, for which its changelog had records."""
        restores = (event for event in self.events if event["event"] == "restore")
        return frozenset(int(event["partition"]) for event in restores if event["end"] > event["from"])

    def find_named(self, name: str | None) -> frozenset[str]:
        """The instances that something happened to."""
        return frozenset(e.get("instance", e["source"]) for e in self.events if e["event"] == name)

    @cached_property
    def reopened(self) -> bool:
        """Whether an instance was started again after it was closed cleanly."""
        closed: set[str] = set()
        for event in self.events:
            if event["event"] == "instance" and event["action"] == "started" and event["name"] in closed:
                return True
            if event["event"] == "instance" and event["action"] == "closed":
                closed.add(event["name"])
        return False

    @cached_property
    def struck(self) -> frozenset[int]:
        """The partitions whose task was active on an instance when a fault hit it, or until that was over."""
        held: dict[str, set[str]] = {}
        found: set[str] = set()
        victim = None
        for event in self.events:
            if event["event"] == "assignment":
                active = {task for thread in event["threads"] for task in thread["active"]}
                held[event["source"]] = active or held.get(event["source"], set())  # none is between two assignments
            elif event["event"] == "fault" and event["action"] == "applied":
                victim = event.get("on")
            elif event["event"] == "fault":
                victim = None
            found |= held.get(victim or "", set())
        return frozenset(int(task.partition("_")[2]) for task in found)

    @cached_property
    def history(self) -> History:
        """That of the table with versions."""
        return History(self.inputs, self.parameters["retention"])

    @cached_property
    def windows(self) -> WindowHistory:
        """That of the windows of the input."""
        return WindowHistory(self.inputs, self.parameters)

    def find_reached(self, name: str, partition: int) -> int | None:
        """The first offset of a partition of the input that was not committed when something happened last."""
        opened = (e.get("open", {}).get("input", {}).get(str(partition)) for e in self.events if e["event"] == name)
        return max((place[0] for place in opened if place), default=None)

    def is_open(self, name: str, role: str, partition: int, offset: int) -> bool:
        """Whether a place was open when something happened: beyond what was committed then."""
        return any(
            first <= offset and (end is None or offset < end)
            for event in self.events
            if event["event"] == name
            for at, (first, end) in event.get("open", {}).get(role, {}).items()
            if int(at) == partition
        )

    def open_keys(self, name: str) -> frozenset[int | None]:
        """The keys of the input that was open when something happened."""
        if name not in self._open_keys:
            is_open = (key for p, offset, key, *_ in self.inputs if self.is_open(name, "input", p, offset))
            self._open_keys[name] = frozenset(is_open)
        return self._open_keys[name]

    @cached_property
    def sent(self) -> frozenset[tuple[int | None, int | None]]:
        """The keys of the input, each with the values that it came in with."""
        return frozenset((key, value) for _, _, key, value, _ in self.inputs)

    @cached_property
    def values(self) -> Mapping[int | None, str]:
        """For each key of the input its values in the order in which they came, with commas between."""
        came: dict[int | None, list[str]] = defaultdict(list)
        for _, _, key, value, _ in sorted(self.inputs, key=itemgetter(1)):
            came[key].append(str(value))
        return {key: ",".join(values) for key, values in came.items()}

    @cached_property
    def changed(self) -> frozenset[int | None]:
        """The keys of the input that came in with several values."""
        return frozenset(key for key, times in Counter(key for key, _ in self.sent).items() if times > 1)


@dataclass(frozen=True)
class Explanation:
    """The conditions that a witness of these anomalies must meet, all of them, for an issue to explain it.

    Attributes:
        anomalies: their names.
        says: a regular expression that is found in what was observed, such as the message of an exception.
        given: parameters of the trial that must not be 0, false or empty.
        after: an event that the timeline must have.
        faults: one of these must have been injected; empty where none has to.
        open_at: an event; a place of the witness, or the record that its key came in with, was not committed then.
        where: the role of the topic in which one of its places must be; `*` stands for anything.
        returned: its partition's task came back to a thread that had left it.
        stayed: its partition's task stayed on a thread from which another was taken.
        restored: a store of its partition was restored.
        struck: the task of its partition was active on the instance that a fault hit.
        version: a way in which a wrong version of a table may have come about (`model.history`); what was processed
            before the event `after`, or else before the fault was over, counts as there when the store was opened.
        window: a way in which a wrong number of results of a window may have come about (`model.window_history`).
        instance: the event `after` is of an instance that its place names.
        sent: a value that its key came in with.
        unsent: its key came in with no record at all.
        changed: its key came in with several values.
        values: a regular expression that is found in the values that its key came in with, in order, as in `1,20,3`.
        most: so many witnesses of a trial at most; of more it explains none.
        whole_trial: why it explains all witnesses of a trial or none, in a sentence; due where all its conditions are
            of the trial, and an anomaly may have several witnesses there.
        scenarios: in which it holds; None for all of the issue's.
        variants: in which it holds, in addition to trials that are varied; None for all of the issue's.
    """

    anomalies: tuple[str, ...]
    after: str | None = None
    open_at: str | None = None
    where: str | None = None
    returned: bool = False
    stayed: bool = False
    sent: int | None = None
    changed: bool = False
    faults: tuple[str, ...] = ()
    variants: tuple[str, ...] | None = None
    says: Pattern | None = None
    given: tuple[str, ...] = ()
    restored: bool = False
    most: int | None = None
    values: Pattern | None = None
    struck: bool = False
    version: Way | None = None
    window: WindowWay | None = None
    instance: bool = False
    unsent: bool = False
    whole_trial: str | None = None
    scenarios: tuple[str, ...] | None = None

    def holds_in(self, scenario: str, variant: str | None) -> bool:
        """Whether it holds in a variant of a scenario, or in whichever."""
        in_variant = self.variants is None or variant is None or variant in self.variants
        return in_variant and (self.scenarios is None or scenario in self.scenarios)

    @property
    def conditions(self) -> frozenset[str]:
        """The names of its conditions."""
        named = ((f.name, getattr(self, f.name)) for f in fields(self) if f.name not in _UNSAID)
        return frozenset(
            name for name, value in named if value is not False and value not in (None, ())
        )  # 0 is a value

    @property
    def is_of_trial(self) -> bool:
        """Whether all its conditions are of the trial, so that it explains all witnesses of its anomalies or none."""
        return self.conditions <= set(_OF_TRIAL)

    @property
    def summary(self) -> str:
        """Its anomalies and its conditions, in the words of the registry."""
        named = {f.name: getattr(self, f.name) for f in fields(self) if f.name in self.conditions}
        words = [name.replace("_", " ") + _value_text(value) for name, value in named.items()]
        return f"{', '.join(self.anomalies)} ({'; '.join(words)})"

    def explains(self, witness: Witness, scene: Scene) -> bool:
        """Whether it explains a witness, if there are not too many."""
        places = witness.places
        if witness.anomaly not in self.anomalies or (self.after is not None and not scene.has(self.after)):
            return False
        if self.instance and scene.find_named(self.after).isdisjoint(re.findall(r"[\w-]+", witness.offsets[0])):
            return False
        if self.says is not None and not re.search(self.says, witness.observed):
            return False
        if not all(scene.parameters.get(name) for name in self.given):
            return False
        if self.restored and witness.partition not in scene.restored:
            return False
        if self.struck and witness.partition not in scene.struck:
            return False
        if self.faults and scene.faults.isdisjoint(self.faults):
            return False
        if self.where is not None and not any(fnmatchcase(role, self.where) for role, _, _ in places):
            return False
        if self.returned and witness.partition not in scene.returned:
            return False
        if self.stayed and witness.partition not in scene.stayed:
            return False
        if self.sent is not None and (witness.key, self.sent) not in scene.sent:
            return False
        if self.unsent and witness.key in scene.values:
            return False
        if self.changed and witness.key not in scene.changed:
            return False
        if self.values is not None and not re.search(self.values, scene.values.get(witness.key, "")):
            return False
        if self.version is not None:
            reached = scene.find_reached(self.after or "fault", witness.partition)
            if not scene.history.shows(self.version, witness, reached):
                return False
        if self.window is not None and not scene.windows.shows(self.window, witness):
            return False
        if self.open_at is None or any(scene.is_open(self.open_at, *place) for place in places):
            return True
        return witness.key is not None and witness.key in scene.open_keys(self.open_at)


def _value_text(value: Any) -> str:
    if value is True:
        return ""
    return f" {', '.join(value)}" if isinstance(value, tuple) else f" {value}"


def count_unexplained(witnesses: Iterable[Witness], explanations: Sequence[Explanation], scene: Scene) -> Counter[str]:
    """For each anomaly, the witnesses that nothing explains."""
    left = list(witnesses)
    for explanation in sorted(explanations, key=lambda row: row.most is None):  # one that counts counts all
        rest = [witness for witness in left if not explanation.explains(witness, scene)]
        if explanation.most is None or len(left) - len(rest) <= explanation.most:
            left = rest
    return Counter(witness.anomaly for witness in left)
