"""The output that a topology must have: the meaning of each operation of the DSL, over all records, in plain Python.

A stream is a list of events. A table is what it holds after each record of the input. A join is the pairs of its rows,
an aggregation is computed again from the rows of a group: no operation here knows of changes, caches, subscriptions or
the order in which internal topics are read. Tables are judged by what they hold in the end, streams by all that they
have. Whatever is not determined is not judged, with a reason (`JudgedCase.left_out`).

A count of windows counts records without a value, too, on all releases, though its Javadoc says that it ignores them.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from onceproof.campaigns.fuzz.grammar import CLOCK, EVERY, OPERATIONS, Case, InputRecord, Step, StepKind, topics_of
from onceproof.model.release import OLDEST, Release

# Since which left joins take a null foreign key for one without a match (KIP-962).
NULL_KEYS: Mapping[str, Release] = {"foreignKeyJoin": Release(3, 7, 0), "globalLookup": Release(4, 1, 0)}
SHOWN = 3  # differences that are named
Rows = Mapping[str, str]
# Of a topic: timestamp, key, value, and the place of the record whose header it carries.
Output = Sequence[tuple[int, str, str | None, int | None]]
# Operations whose results carry the header of the record that gives them.
WITH_HEADERS = (
    "stream", "filter", "mapValues", "selectKey", "rekey", "merge", "repartition", "lookup", "globalLookup", "remember",
)  # fmt: skip


@dataclass(frozen=True)
class Event:
    """One record of a stream, and the place of the record of the input that it comes from."""

    place: int
    timestamp: int
    key: str
    value: str | None


@dataclass(frozen=True)
class EventStream:
    """All events of a stream, in the order of their places."""

    events: tuple[Event, ...]


class Table:
    """The rows of a table after the record of the input at a place."""

    def __init__(self, rows: Callable[[int], Rows]) -> None:
        """A table by its rows after each place."""
        self._rows = rows
        self._known: dict[int, Rows] = {}

    def rows(self, place: int) -> Rows:
        """Its rows after a place."""
        if place not in self._known:
            self._known[place] = self._rows(place)
        return self._known[place]

    def row(self, place: int, key: str, timestamp: int) -> str | None:  # noqa: ARG002 - it has no versions
        """The row that a record of a stream finds at its place."""
        return self.rows(place).get(key)


def _select_taken(events: Sequence[Event], history: int) -> Sequence[Event]:
    taken: list[Event] = []
    for event in events:
        if event.timestamp >= max((one.timestamp for one in taken), default=0) - history:
            taken.append(event)
    return taken


class Versioned(Table):
    """A table with versions: the latest by timestamp counts, and a stream finds what was valid at its time."""

    def __init__(self, events: Sequence[Event], history: int) -> None:
        """A table of all changes, but for those that are older than its history when they come."""
        super().__init__(lambda place: self._until(place, None))
        self.history = history
        self.events = _select_taken(events, history)

    def row(self, place: int, key: str, timestamp: int) -> str | None:
        """The version that was valid at the timestamp, as far as it has come by then; a latest one never expires."""
        now = max((event.timestamp for event in self.events if event.place <= place), default=0)
        latest = max((e.timestamp for e in self.events if e.place <= place and e.key == key), default=0)
        if latest > timestamp and timestamp < now - self.history:
            return None
        return self._until(place, timestamp).get(key)

    def _until(self, place: int, timestamp: int | None) -> Rows:
        latest: dict[str, Event] = {}
        for event in self.events:
            if event.place > place or (timestamp is not None and event.timestamp > timestamp):
                continue
            if event.key not in latest or event.timestamp >= latest[event.key].timestamp:
                latest[event.key] = event
        return {key: event.value for key, event in latest.items() if event.value is not None}


# --- what is done to values ------------------------------------------------------------------------------------------


def head(value: str | None) -> str | None:
    """The foreign key of a value."""
    return value.partition("|")[0] or None if value is not None else None


def is_odd(value: str | None) -> bool:
    """Whether its last character is odd."""
    return bool(value) and ord(str(value)[-1]) % 2 == 1


def weight(value: str) -> int:
    """A number for a value."""
    return sum(map(ord, value))


def pair(one: str | None, other: str | None) -> str:
    """The value that a join makes of two."""
    return f"{'-' if one is None else one}/{'-' if other is None else other}"


# --- operations ------------------------------------------------------------------------------------------------------


class Model:
    """The streams and tables of a case, each made when it is asked for."""

    def __init__(self, case: Case) -> None:
        """The model of a case."""
        self.case = case
        self.steps = case.named
        self.last = len(case.records) - 1
        self._made: dict[str, EventStream | Table] = {}

    def stream(self, name: str) -> EventStream:
        """The stream that a step makes."""
        made = self._of(name)
        if not isinstance(made, EventStream):
            raise TypeError(name)
        return made

    def table(self, name: str) -> Table:
        """The table that a step makes."""
        made = self._of(name)
        if not isinstance(made, Table):
            raise TypeError(name)
        return made

    def _of(self, name: str) -> EventStream | Table:
        if name not in self._made:
            step = self.steps[name]
            self._made[name] = getattr(self, f"_{step.operation}")(step)
        return self._made[name]

    def changes(self, step: Step) -> tuple[Event, ...]:
        """All changes of a table that is a source, or is made of a stream."""
        return self._events(step) if step.is_source else self.stream(step.operands[0]).events

    def take(self, step: Step) -> Sequence[Event]:
        """The changes that a versioned table takes: those that are not older than its history when they come."""
        return _select_taken(self.changes(step), step.options["history"])

    def _events(self, step: Step) -> tuple[Event, ...]:
        [topic] = step.operands
        return tuple(
            Event(place, record.timestamp, record.key, value)
            for place, record in enumerate(self.case.records)
            if record.topic == topic
            for value in (record.parts if step.operation == "burst" else (record.value,))
        )

    def _stream(self, step: Step) -> EventStream:
        return EventStream(self._events(step))

    def _table(self, step: Step) -> Table:
        return _keep(step, self._events(step))

    _burst = _globalTable = _table  # noqa: N815 - the names of the operations

    def _filter(self, step: Step) -> EventStream:
        return EventStream(tuple(event for event in self.stream(step.operands[0]).events if is_odd(event.value)))

    def _mapValues(self, step: Step) -> EventStream:  # noqa: N802
        return self._each(step, lambda event: (event.key, None if event.value is None else f"{event.value}0"))

    def _selectKey(self, step: Step) -> EventStream:  # noqa: N802
        return self._each(step, lambda event: (head(event.value) or event.key, event.value))

    def _rekey(self, step: Step) -> EventStream:
        return self._each(step, lambda event: (event.value[-1] if event.value else event.key, event.value))

    def _repartition(self, step: Step) -> EventStream:
        return self.stream(step.operands[0])

    def _each(self, step: Step, made: Callable[[Event], tuple[str, str | None]]) -> EventStream:
        return EventStream(tuple(Event(e.place, e.timestamp, *made(e)) for e in self.stream(step.operands[0]).events))

    def _merge(self, step: Step) -> EventStream:
        one, other = (self.stream(name).events for name in step.operands)
        return EventStream(tuple(sorted((*one, *other), key=lambda event: event.place)))

    def _toTable(self, step: Step) -> Table:  # noqa: N802
        return _keep(step, self.stream(step.operands[0]).events)

    def _count(self, step: Step) -> Table:
        return self._fold(step, lambda values: str(len(values)))

    def _latest(self, step: Step) -> Table:
        return self._fold(step, lambda values: values[-1])

    def _sum(self, step: Step) -> Table:
        return self._fold(step, lambda values: str(sum(map(weight, values))))

    def _fold(self, step: Step, made: Callable[[Sequence[str]], str]) -> Table:
        events = self.stream(step.operands[0]).events

        def rows(place: int) -> Rows:
            values: dict[str, list[str]] = defaultdict(list)
            for event in events:
                if event.place <= place and event.value is not None:
                    values[event.key].append(event.value)
            return {key: made(each) for key, each in values.items()}

        return Table(rows)

    def _windows(self, step: Step) -> Table:
        size, grace = step.options["size"], step.options["grace"]
        advance = step.options.get("advance", size)
        counts, now = Counter[tuple[str, int]](), 0
        for event in self.stream(step.operands[0]).events:
            now = max(now, event.timestamp)
            first = max(0, event.timestamp - size + advance) // advance * advance
            starts = range(first, event.timestamp + 1, advance)
            counts.update((event.key, start) for start in starts if start + size > now - grace)
        is_final = step.is_final
        return _constant(
            {
                f"{key}@{start}-{start + size}": str(count)
                for (key, start), count in counts.items()
                if not is_final or start + size + grace <= now
            }
        )

    def _sessions(self, step: Step) -> Table:
        gap = step.options["size"]
        times: dict[str, list[int]] = defaultdict(list)
        for event in self.stream(step.operands[0]).events:
            times[event.key].append(event.timestamp)
        sessions = {}
        for key, each in times.items():
            session: list[int] = []
            for time in sorted(each):
                if session and time - session[-1] > gap:
                    sessions[f"{key}@{session[0]}-{session[-1]}"] = str(len(session))
                    session = []
                session.append(time)
            sessions[f"{key}@{session[0]}-{session[-1]}"] = str(len(session))
        if step.is_final:
            now = max(event.timestamp for event in self.stream(step.operands[0]).events) if sessions else 0
            closed = now - gap - step.options["grace"]
            sessions = {name: count for name, count in sessions.items() if int(name.rpartition("-")[2]) < closed}
        return _constant(sessions)

    def _slides(self, step: Step) -> Table:
        """A window ends at each record, and one begins right behind each that has others of its key within it."""
        size, now = step.options["size"], 0
        times: dict[str, list[int]] = defaultdict(list)
        for event in self.stream(step.operands[0]).events:
            if event.value is not None:
                now = max(now, event.timestamp)
                times[event.key].append(event.timestamp)
        windows = {}
        for key, each in times.items():
            for start in {start for time in each for start in (time - size, time + 1)}:
                if count := sum(start <= time <= start + size for time in each):
                    windows[key, start] = count
        return _constant(
            {
                f"{key}@{start}-{start + size}": str(count)
                for (key, start), count in windows.items()
                if not step.is_final or start + size + step.options["grace"] < now
            }
        )

    def _cogroup(self, step: Step) -> Table:
        one, other = (self.stream(name).events for name in step.operands)

        def rows(place: int) -> Rows:
            sums = Counter[str]()
            for events, times in ((one, 1), (other, 2)):
                for event in events:
                    if event.place <= place and event.value is not None:
                        sums[event.key] += times * weight(event.value)
            return {key: str(total) for key, total in sums.items()}

        return Table(rows)

    def _remember(self, step: Step) -> EventStream:
        """The records that a processor passes on: by each record, and by each punctuation all that it remembers."""
        by_place: dict[int, list[Event]] = defaultdict(list)
        for event in self.stream(step.operands[0]).events:
            by_place[event.place].append(event)
        others = {one.operands[0] for one in self.case.steps if one.makes is StepKind.GLOBAL}
        kept: dict[str, str] = {}
        found: list[Event] = []
        ticks = _Ticks(step.options["clock"], self.case.records[0].timestamp)
        for place, record in enumerate(self.case.records):
            if place in self.case.reopened:
                ticks = _Ticks(step.options["clock"], self.case.records[0].timestamp)
            for event in by_place[place]:
                value = pair(kept.pop(event.key, None), event.value)
                found.append(Event(place, event.timestamp, event.key, value))
                if event.value is not None:
                    kept[event.key] = event.value
            now = None if record.topic in others else ticks.after(record)
            if now is not None:
                found += [Event(place, now, key, f"{value}!") for key, value in sorted(kept.items())]
        return EventStream(tuple(found))

    def _suppress(self, step: Step) -> Table:
        """The rows that must have been emitted: those of the keys whose last change is old enough."""
        open_keys = self.find_held_back(step)
        rows = self.table(step.operands[0]).rows(self.last)
        return _constant({key: value for key, value in rows.items() if key not in open_keys})

    def find_held_back(self, step: Step) -> set[str]:
        """The keys of whose last change a suppression says nothing yet, or perhaps nothing."""
        table, changed, observed = self.table(step.operands[0]), dict[str, int](), 0
        before: Rows = {}
        for place, record in enumerate(self.case.records):
            rows = table.rows(place)
            keys = [key for key in before.keys() | rows.keys() if before.get(key) != rows.get(key)]
            changed |= dict.fromkeys(keys, record.timestamp)
            observed = record.timestamp if keys else observed
            before = rows
        return {key for key, at in changed.items() if at + step.options["size"] > observed}

    def _lookup(self, step: Step) -> EventStream:
        return self._look_up(step, lambda event: event.key)

    def _globalLookup(self, step: Step) -> EventStream:  # noqa: N802
        return self._look_up(step, lambda event: head(event.value))

    def _look_up(self, step: Step, key: Callable[[Event], str | None]) -> EventStream:
        stream, table = self.stream(step.operands[0]), self.table(step.operands[1])
        found = []
        for event in stream.events:
            asked = key(event)
            other = None if asked is None else table.row(event.place, asked, event.timestamp)
            if event.value is not None and (other is not None or step.options["left"]):
                found.append(Event(event.place, event.timestamp, event.key, pair(event.value, other)))
        return EventStream(tuple(found))

    def _streamJoin(self, step: Step) -> EventStream:  # noqa: N802
        size, grace, kind = (step.options[name] for name in ("size", "grace", "kind"))
        one, other = ([e for e in self.stream(name).events if e.value is not None] for name in step.operands)
        pairs = [(a, b) for a in one for b in other if a.key == b.key and abs(a.timestamp - b.timestamp) <= size]
        pairs.sort(key=lambda both: min(both, key=lambda event: event.place).timestamp)
        found = [
            Event(max(a.place, b.place), max(a.timestamp, b.timestamp), a.key, pair(a.value, b.value)) for a, b in pairs
        ]
        alone = [(1, e, pair(e.value, None)) for e in one if kind != "inner" and e not in [a for a, _ in pairs]]
        alone += [(0, e, pair(None, e.value)) for e in other if kind == "outer" and e not in [b for _, b in pairs]]
        # The store of what waits has the order of time, side (the right one first) and key.
        for _, event, value in sorted(alone, key=lambda waits: (waits[1].timestamp, waits[0], waits[1].key)):
            due = [e.place for e in (*one, *other) if e.timestamp > event.timestamp + size + grace]
            if due:
                found.append(Event(min(due), event.timestamp, event.key, value))
        # By one record: what has no match comes first, the oldest one first, and matches by the time of the other side.
        return EventStream(tuple(sorted(found, key=lambda event: (event.place, event.timestamp))))

    def _filterTable(self, step: Step) -> Table:  # noqa: N802
        return self._derive(step, lambda rows: {key: value for key, value in rows.items() if is_odd(value)})

    def _mapTable(self, step: Step) -> Table:  # noqa: N802
        return self._derive(step, lambda rows: {key: f"{value}0" for key, value in rows.items()})

    def _group(self, step: Step) -> Table:
        def group(rows: Rows) -> Rows:
            sums = Counter[str]()
            for value in rows.values():
                sums[head(value) or "-"] += weight(value)
            return {group: str(total) for group, total in sums.items()}

        return self._derive(step, group)

    def _tableJoin(self, step: Step) -> Table:  # noqa: N802
        kind = step.options["kind"]

        def join(one: Rows, other: Rows) -> Rows:
            keys = {"inner": one.keys() & other.keys(), "left": one.keys()}.get(kind, one.keys() | other.keys())
            return {key: pair(one.get(key), other.get(key)) for key in keys}

        return self._derive(step, join)

    def _foreignKeyJoin(self, step: Step) -> Table:  # noqa: N802
        def join(one: Rows, other: Rows) -> Rows:
            found = {key: other.get(head(value) or "") for key, value in one.items()}
            return {
                key: pair(one[key], match) for key, match in found.items() if match is not None or step.options["left"]
            }

        return self._derive(step, join)

    def _derive(self, step: Step, made: Callable[..., Rows]) -> Table:
        tables = [self.table(name) for name in step.operands]
        return Table(lambda place: made(*(table.rows(place) for table in tables)))


class _Ticks:
    """The punctuations of a clock of the machine, or of the time of the records, from when a topology is started."""

    def __init__(self, clock: str, begin: int) -> None:
        self.clock = clock
        self.now, self.due = (begin, begin + EVERY) if clock == "wall" else (0, 0)

    def after(self, record: InputRecord) -> int | None:
        """The time of the punctuation that a record, or an advance of the clock, gives; None for none."""
        if self.clock == "none" or (record.topic == CLOCK) != (self.clock == "wall"):
            return None
        self.now = self.now + int(record.value or 0) if self.clock == "wall" else max(self.now, record.timestamp)
        if self.now < self.due:
            return None
        self.due += ((self.now - self.due) // EVERY + 1) * EVERY
        return self.now


def _keep(step: Step, events: Sequence[Event]) -> Table:
    if step.is_versioned:
        return Versioned(events, step.options["history"])

    def rows(place: int) -> Rows:
        latest = {event.key: event.value for event in events if event.place <= place}
        return {key: value for key, value in latest.items() if value is not None}

    return Table(rows)


def _constant(rows: Rows) -> Table:
    return Table(lambda _: rows)


# --- judging ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """A difference between a topic and what it must have.

    Attributes:
        topic: of the output, which is the name of the step.
        kind: `missing`, `unexpected` or `wrong` rows or records, `twice` for a result that is final, `header` for a
            record that has not that of its cause.
        shown: the first ones, for people.
    """

    topic: str
    kind: str
    shown: str


@dataclass(frozen=True)
class JudgedCase:
    """The judgement of a case: differences, and topics that were not judged, with the reason."""

    differences: tuple[Difference, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of the differences, sorted, each once."""
        return tuple(sorted({difference.kind for difference in self.differences}))


def judge(case: Case, outputs: Mapping[str, Output], release: Release) -> JudgedCase:
    """Compare what a release emitted with what the case means.

    Args:
        case: that was run.
        outputs: the records of each topic, in its order.
        release: that ran it, since some semantics came with a release.
    """
    model, found, left_out = Model(case), [], {}
    for leaf in case.leaves:
        output = outputs.get(leaf.name, ())
        if reason := explain_undetermined(case, leaf, release):
            left_out[leaf.name] = reason
        elif leaf.makes is StepKind.STREAM:
            events = model.stream(leaf.name).events
            found += _compare_events(leaf.name, events, output) or _without_its_header(case, leaf, events, output)
        elif leaf.makes is StepKind.SUPPRESSED:
            held_back = model.find_held_back(leaf)
            output = [record for record in output if record[1] not in held_back]
            found += _compare_rows(leaf.name, model.table(leaf.name).rows(model.last), output)
        else:
            found += _compare_rows(leaf.name, model.table(leaf.name).rows(model.last), output)
            found += _twice(leaf, output)
    return JudgedCase(tuple(found), left_out)


def explain_undetermined(case: Case, leaf: Step, release: Release) -> str | None:
    """Why the output of a step is not determined; None if it is."""
    steps = case.named
    made_of = list(above(leaf, steps))
    if leaf.is_versioned and _comes_late(case, leaf):
        return "a versioned table passes on changes that come late, so the last one is not what it holds"
    if any(step.is_outer and one.is_outer for step in made_of for one in above(step, steps) if one is not step):
        return "a join of streams emits unmatched records late, so that another such join may have given up on them"
    if any(step.operation == "tableJoin" and _is_diamond(step, case.steps) for step in made_of):
        return "a record that changes both tables of a join makes it forget deletions, and pass on changes twice"
    for step in made_of:
        if not release.since(NULL_KEYS.get(step.operation, OLDEST)) and step.options["left"]:
            return f"a left join drops null foreign keys before {NULL_KEYS[step.operation]} (KIP-962)"
    return None


def _comes_late(case: Case, table: Step) -> bool:
    """Whether a record of the input is older than one before it, or a change of the table is, as by a punctuation."""
    of_stream = not table.is_source and OPERATIONS[table.operation][0] == (StepKind.STREAM,)
    changes = Model(case).changes(table) if of_stream else ()
    times = ([record.timestamp for record in case.records], [change.timestamp for change in changes])
    return any(some != sorted(some) for some in times)


def _is_diamond(step: Step, steps: Sequence[Step]) -> bool:
    named = {one.name: one for one in steps}
    one, other = (topics_of(named[name], steps) for name in step.operands)
    return not one.isdisjoint(other)


def above(step: Step, steps: Mapping[str, Step]) -> Iterable[Step]:
    """A step, and all that it is made of, by way of the steps by their names."""
    yield step
    for name in () if step.is_source else step.operands:
        yield from above(steps[name], steps)


def _last_rows(output: Output) -> Rows:
    """The rows that a table has at the end, from all its records."""
    last = {key: value for _, key, value, _ in output}
    return {key: value for key, value in last.items() if value is not None}


def _compare_rows(topic: str, must: Rows, output: Output) -> list[Difference]:
    has = _last_rows(output)
    kinds = {
        "missing": [f"{key} = {must[key]}" for key in must.keys() - has.keys()],
        "unexpected": [f"{key} = {has[key]}" for key in has.keys() - must.keys()],
        "wrong": [f"{key} = {has[key]}, not {must[key]}" for key in must.keys() & has.keys() if must[key] != has[key]],
    }
    return [Difference(topic, kind, "; ".join(sorted(rows)[:SHOWN])) for kind, rows in kinds.items() if rows]


def _compare_events(topic: str, events: Sequence[Event], output: Output) -> list[Difference]:
    must = Counter((event.timestamp, event.key, event.value) for event in events)
    has = Counter((timestamp, key, value) for timestamp, key, value, _ in output)
    kinds = {"missing": must - has, "unexpected": has - must}
    return [
        Difference(
            topic, kind, "; ".join(f"{key} = {value} at {at}" for at, key, value in sorted(records, key=str)[:SHOWN])
        )
        for kind, records in kinds.items()
        if records
    ]


def _twice(leaf: Step, output: Output) -> list[Difference]:
    counts = Counter(key for _, key, _, _ in output)
    twice = sorted(key for key, count in counts.items() if count > 1)
    return [Difference(leaf.name, "twice", "; ".join(twice[:SHOWN]))] if leaf.is_final and twice else []


def _without_its_header(case: Case, leaf: Step, events: Sequence[Event], output: Output) -> list[Difference]:
    """Results that do not carry the header of the record that gave them."""
    steps = case.named
    if any(step.operation not in WITH_HEADERS or step.has_clock for step in above(leaf, steps)):
        return []
    must = Counter[tuple[int, str, str | None, int | None]]((e.timestamp, e.key, e.value, e.place) for e in events)
    lost = sorted(
        f"{key} = {value} at {at}"
        for at, key, value, _ in must - Counter((at, key, value, place) for at, key, value, place in output)
    )
    return [Difference(leaf.name, "header", "; ".join(lost[:SHOWN]))] if lost else []


def compare(case: Case, one: Mapping[str, Output], other: Mapping[str, Output]) -> tuple[Difference, ...]:
    """Where another release differs: other rows at the end, or other records of a stream."""
    found: list[Difference] = []
    for leaf in case.leaves:
        has, had = one.get(leaf.name, ()), other.get(leaf.name, ())
        if leaf.makes is StepKind.STREAM:
            found += _compare_events(leaf.name, [Event(0, *record[:3]) for record in had], has)
        else:
            found += _compare_rows(leaf.name, _last_rows(had), has)
    return tuple(replace(difference, kind="differs") for difference in found)
