"""Known issues that a red case may show: each with what it can do, and the same case without what it needs.

A red is known only if an issue of the registry that the release has could affect the case, if that gives such a
difference, and if the case is green without what the issue needs and nothing else changed. Whatever else is red stays.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from onceproof.campaigns.fuzz.grammar import (
    BEGIN,
    CLOCK,
    LEAP,
    NEVER,
    OF_WINDOWS,
    Case,
    InputRecord,
    Step,
    redirect,
    topics_of,
    users_of,
)
from onceproof.campaigns.fuzz.relational import Difference, Event, JudgedCase, Model, above, head
from onceproof.model.known_issues import registry
from onceproof.model.release import Release

ROWS = ("missing", "unexpected", "wrong")  # kinds of differences of tables
KEEPS_ROWS = ("filterTable", "mapTable", "suppress")  # behind which a difference is of the same kind
SEGMENT = 2_000  # milliseconds, of a versioned store with so short a history: it expires as a whole
PROCESSORS = ("rekey", "remember")
INITIALIZED = ("count", "sum", "cogroup")  # aggregations that begin with a value of their own
GROUPINGS = ("toTable", "count", "latest", "sum", "windows", "slides", "sessions", "cogroup")
JOINS_OF_STREAMS = ("lookup", "streamJoin")
CHANGES_KEY = ("selectKey", "rekey")
UNBUILT = "Found a null keyChangingChild node"  # of an optimized topology
UNREGISTERED = "Timestamp is too large to be found in this segment"  # of a store that was opened again


@dataclass(frozen=True)
class IssueEffect:
    """The effect of a known issue on a case.

    Attributes:
        shows: by kind of difference, of the step that it affects itself, the key of the issue in the registry; behind
            other operations it may become any kind.
        struck: the steps among these that it can affect in this case.
        avoided: the same case without what the issue needs at these steps.
        failure: a part of the sentence with which it ends a topology; None if it ends none.
    """

    shows: Mapping[str, str]
    struck: Callable[[Case, Sequence[Step]], Sequence[Step]]
    avoided: Callable[[Case, Sequence[Step]], Case]
    failure: str | None = None

    def is_in(self, release: Release) -> bool:
        """Whether the release has one of its issues."""
        return any(issue.is_in(release) for issue in registry().issues if issue.key in self.shows.values())

    def key(self, case: Case, difference: Difference, struck: Sequence[Step]) -> str | None:
        """The issue that gives a difference of a case; None if none of it does."""
        if difference.kind == "failed":
            is_its = self.failure is not None and self.failure in difference.shown
            return next(iter(self.shows.values())) if is_its else None
        if difference.kind not in ROWS:
            return None
        leaf = next(step for step in case.leaves if step.name == difference.topic)
        if self._is_direct(case, leaf, struck):
            return self.shows.get(difference.kind)
        return self.shows.get(difference.kind, next(iter(self.shows.values())))

    @staticmethod
    def _is_direct(case: Case, leaf: Step, struck: Sequence[Step]) -> bool:
        """Whether the leaf, or the step whose rows it keeps, is affected itself, and nothing above it is."""
        named = case.named
        while leaf not in struck and leaf.operation in KEEPS_ROWS:
            leaf = named[leaf.operands[0]]
        return {step.name for step in above(leaf, named) if step in struck} == {leaf.name}


@dataclass(frozen=True)
class Explained:
    """A red, as far as known issues explain it.

    Attributes:
        keys: of the issues, each once.
        case: without what these need; the drawn one if there are none.
        judged: the judgement of that: without differences if they explain all.
    """

    keys: tuple[str, ...]
    case: Case
    judged: JudgedCase


def explain(
    case: Case, judged: JudgedCase, causes: Sequence[IssueEffect], run: Callable[[Case], JudgedCase]
) -> Explained:
    """Take known issues away from a red, one by one, and all of them together if none is enough alone.

    Args:
        case: that is red.
        judged: its judgement.
        causes: that the release has, the narrow ones first.
        run: judges another case.
    """
    found = Explained((), case, judged)
    for cause in causes:
        found = _without(cause, found, run) or found
        if not found.judged.differences:
            return found
    return _together(found, causes, run) or found


def _without(cause: IssueEffect, red: Explained, run: Callable[[Case], JudgedCase]) -> Explained | None:
    """A red without a cause; None if that explains nothing of it."""
    struck = _find_affected(cause, red.case, red.judged.differences)
    other = cause.avoided(red.case, struck) if struck else red.case
    if other == red.case:
        return None
    after = run(other)
    topics = {difference.topic for difference in after.differences}
    gone = [difference for difference in red.judged.differences if difference.topic not in topics]
    keys = [cause.key(red.case, difference, struck) for difference in gone]
    # The case without the cause must be better and nothing else: what is gone must be what the issue gives (else the
    # change hid another bug), and no other output may have become wrong (else the change made a new case).
    has_others = not topics <= {difference.topic for difference in red.judged.differences}
    if not keys or None in keys or has_others:
        return None
    return Explained(tuple(dict.fromkeys((*red.keys, *(key for key in keys if key)))), other, after)


def _together(red: Explained, causes: Sequence[IssueEffect], run: Callable[[Case], JudgedCase]) -> Explained | None:
    """A red that is green without several causes; None if it is not, or if none of them gives such a difference."""
    # Two causes may hold up each other: a row is stale by one, and what would show it is missing by the other. Then
    # neither alone makes the case any better, and only the case without both shows that nothing else is behind it.
    other, keys = red.case, dict.fromkeys(red.keys)
    left = set(red.judged.differences)
    taken = 0
    for cause in causes:
        before = _find_affected(
            cause, red.case, red.judged.differences
        )  # as one cause avoided may make way for another one
        struck = _find_affected(cause, other, red.judged.differences) if before else ()
        avoided = cause.avoided(other, struck) if struck else other
        if avoided == other:
            continue
        given = {one: key for one in red.judged.differences if (key := cause.key(red.case, one, struck))}
        other, left, taken = avoided, left - given.keys(), taken + 1
        keys |= dict.fromkeys(given.values())
    if left or taken < 2 or (judged := run(other)).differences:
        return None
    return Explained(tuple(keys), other, judged)


def _find_affected(cause: IssueEffect, case: Case, differences: Sequence[Difference]) -> Sequence[Step]:
    """The steps that a cause can affect, before what is red; all if the topology did not come to an end."""
    named = case.named
    red = {difference.topic for difference in differences if difference.kind != "failed"}
    steps = [step for name in red for step in above(named[name], named)] if red else case.steps
    return cause.struck(case, list(dict.fromkeys(steps)))


# --- joins by a foreign key ------------------------------------------------------------------------------------------


def _inner_joins(_: Case, steps: Sequence[Step]) -> Sequence[Step]:
    return [step for step in steps if step.operation == "foreignKeyJoin" and not step.options["left"]]


def _find_left_joins(case: Case, steps: Sequence[Step]) -> Sequence[Step]:
    joins = [step for step in steps if step.operation == "foreignKeyJoin" and step.options["left"]]
    return joins if case.partitions > 1 else []


def _inner_joins_of_one_record(case: Case, steps: Sequence[Step]) -> Sequence[Step]:
    """Those of which one record changes both sides."""
    named = case.named
    sides = {join: [topics_of(named[name], case.steps) for name in join.operands] for join in _inner_joins(case, steps)}
    return [join for join, (one, other) in sides.items() if one & other]


def _inner_joins_of_rows_that_go_and_come(case: Case, steps: Sequence[Step]) -> Sequence[Step]:
    """Those of whose left side one record takes a row away, and brings it again with another foreign key."""
    return _inner_joins_behind(case, steps, ("filterTable", "mapTable", "tableJoin"), go=True)


def _inner_joins_of_rows_that_change_twice(case: Case, steps: Sequence[Step]) -> Sequence[Step]:
    """Those of whose left side one record changes a row twice: its foreign key, and then something else."""
    return _inner_joins_behind(case, steps, ("mapTable", "tableJoin"), go=False)


def _inner_joins_behind(case: Case, steps: Sequence[Step], between: Collection[str], *, go: bool) -> Sequence[Step]:
    """Inner joins whose left side has the rows of a join of which one record changes both sides, one behind the other.

    Args:
        case: that has them.
        steps: among which they are.
        between: operations that may be between both joins.
        go: whether the first one has no row until the second change comes.
    """
    named, model = case.named, Model(case)

    def is_behind(step: Step) -> bool:
        if step.operation == "foreignKeyJoin" and _changes_twice(model, step, go=go):
            return True
        passed = {"foreignKeyJoin": 1}.get(step.operation, len(step.operands) if step.operation in between else 0)
        return any(is_behind(named[name]) for name in step.operands[:passed])

    return [join for join in _inner_joins(case, steps) if is_behind(named[join.operands[0]])]


def _changes_twice(model: Model, join: Step, *, go: bool) -> bool:
    """Whether one record gives a row of a join another foreign key, and then changes the row of that key."""
    left, right = (model.table(name) for name in join.operands)
    for place in range(model.last + 1):
        before, after = left.rows(place - 1), left.rows(place)
        for key in before.keys() & after.keys():
            asked = head(after[key]) or ""
            had, has = right.rows(place - 1).get(asked), right.rows(place).get(asked)
            is_gone = had is None and not join.options["left"]
            is_there = has is not None or join.options["left"]
            if head(before[key]) != asked and had != has and is_there and is_gone == go:
                return True
    return False


def _without_null_keys(case: Case, joins: Sequence[Step]) -> Case:
    """With the foreign key of no record wherever the left side has none."""
    named = case.named
    topics = set[str]().union(*(topics_of(named[join.operands[0]], case.steps) for join in joins))

    def give_key(record: InputRecord) -> InputRecord:
        if record.value is None or record.topic not in topics:
            return record
        parts = (f"z{part}" if part.startswith("|") else part for part in record.value.split(";"))
        return replace(record, value=";".join(parts))

    return replace(case, records=tuple(map(give_key, case.records)))


def _in_one_update(case: Case, _: Sequence[Step]) -> Case:
    """With the changes of a row that keep its foreign key as one."""
    # Since the fix of KAFKA-16407 such a change is answered only if there is a match. Right behind a change of the
    # foreign key, whose answer is dropped as outdated, nothing then removes the old result. The last change alone
    # leaves the same row, and no answer is dropped.

    def merge(record: InputRecord) -> InputRecord:
        parts = [] if record.value is None else record.value.split(";")
        kept = [one for one, other in pairwise(parts) if head(one) is None or head(one) != head(other)]
        return replace(record, value=";".join((*kept, parts[-1]))) if parts else record

    return replace(case, records=tuple(map(merge, case.records)))


def _one_by_one(case: Case, _: Sequence[Step]) -> Case:
    """With no update before all that the last one caused is done."""
    return replace(_apart(case, case.records), settled=case.partitions > 1)


def _apart(case: Case, records: Collection[InputRecord]) -> Case:
    """With a record for each update, where these are of bursts."""
    topics = {step.operands[0] for step in case.steps if step.operation == "burst"}
    apart = [
        [replace(one, value=part) for part in one.parts] if one.topic in topics and one in records else [one]
        for one in case.records
    ]
    reopened = tuple(sum(map(len, apart[:place])) for place in case.reopened)
    return replace(case, records=tuple(one for records in apart for one in records), reopened=reopened)


def _as_left_joins(case: Case, joins: Sequence[Step]) -> Case:
    return _with_options(case, joins, {"left": True})


def _in_one_task(case: Case, _: Sequence[Step]) -> Case:
    return replace(case, partitions=1, schedule=0, settled=False)


# --- versioned stores ------------------------------------------------------------------------------------------------


def _find_reopened(case: Case, steps: Sequence[Step]) -> Sequence[Step]:
    """Versioned tables that are opened again, and of which a late record asks for, or brings, an older version."""
    times = [record.timestamp for record in case.records]
    is_late = any(
        time < max(times[:place]) for at in case.reopened[:1] for place, time in enumerate(times) if place >= at
    )
    return [step for step in steps if step.is_versioned] if case.is_on_disk and is_late else []


def _find_restored(case: Case, steps: Sequence[Step]) -> Sequence[Step]:
    """Versioned tables of which a deletion, behind which an older version came, has expired when they are restored."""
    return [
        step
        for step in steps
        if case.restored and step.is_versioned and step.options["history"] != NEVER and _has_expired(case, step)
    ]


def _has_expired(case: Case, step: Step) -> bool:
    """Whether a table has such a deletion, whose segment has expired before it is restored, and that is still in force:
    the key has no later version, or a record asks for the time before that.
    """
    changes = [event for event in Model(case).take(step) if event.place < case.reopened[0]]
    now = max((event.timestamp for event in changes), default=BEGIN)
    # A restored batch is written as of its youngest record. The deletion has expired by then and is left out, and a
    # version that came behind it counts as the last one of its key, which never expires. Segments expire as a whole.
    first = (now - step.options["history"]) // SEGMENT * SEGMENT
    asked = [record.timestamp for record in case.records[case.reopened[0] :]]

    def is_in_force(at: int, end: Event) -> bool:
        later = [
            other.timestamp
            for place, other in enumerate(changes)
            if other.key == end.key and (other.timestamp, place) > (end.timestamp, at)
        ]
        return not later or any(end.timestamp <= time < min(later) for time in asked)

    return any(
        end.value is None
        and end.timestamp < first
        and is_in_force(place, end)
        and any(_is_behind(other, end) for other in changes[place + 1 :])
        for place, end in enumerate(changes)
    )


def _is_behind(other: Event, deletion: Event) -> bool:
    return other.key == deletion.key and other.value is not None and other.timestamp < deletion.timestamp


def _keep_open(case: Case, _: Sequence[Step]) -> Case:
    return replace(case, reopened=(), restored=False)


def _find_deleted_at_once(case: Case, steps: Sequence[Step]) -> Sequence[Step]:
    """Versioned tables with a deletion as of the time of its value, and an older version behind it."""
    found = []
    for step in steps:
        changes = Model(case).changes(step) if step.is_versioned else ()
        for place, one in enumerate(changes):
            before = [event for event in changes[:place] if event.key == one.key and event.timestamp == one.timestamp]
            late = [event for event in changes[place:] if event.key == one.key and event.timestamp < one.timestamp]
            if one.value is None and late and any(event.value is not None for event in before):
                found.append(step)
                break
    return found


def _delete_later(case: Case, tables: Sequence[Step]) -> Case:
    """With each deletion of these tables a millisecond after its value."""
    topics = set[str]().union(*(topics_of(table, case.steps) for table in tables))
    apart = _apart(case, [record for record in case.records if record.topic in topics and None in record.parts])

    def later(record: InputRecord) -> InputRecord:
        is_deletion = record.topic in topics and record.value is None
        return replace(record, timestamp=record.timestamp + 1) if is_deletion else record

    return replace(apart, records=tuple(map(later, apart.records)))


# --- others ----------------------------------------------------------------------------------------------------------


def _find_uncached(case: Case, steps: Sequence[Step]) -> Sequence[Step]:
    """Aggregations without a cache behind which a table is grouped."""
    named = case.named
    before = {one for step in steps if step.operation == "group" for one in above(step, named)}
    return [step for step in steps if step in before and _is_uncached(step)]


def _is_uncached(step: Step) -> bool:
    """Whether it is an aggregation whose first value comes with what it was initialized with as the old one."""
    return step.operation in INITIALIZED and step.options.get("cached") is False


def _filters_behind_uncached(case: Case, steps: Sequence[Step]) -> Sequence[Step]:
    """Filters of tables that take the old values of joins with uncached aggregations as they come."""
    return [step for step in steps if step.operation == "filterTable" and _first_values(case, step)]


def _first_values(case: Case, filtered: Step) -> Sequence[Step]:
    """Uncached aggregations behind which a filter meets a row that was there before theirs, with a wrong old value.

    A table with a store of its own has the old values of that, but for a join that is not cached. Without a join that
    has rows of the other side alone, there is no row before the first one of the aggregation.
    """
    named = case.named
    found = []
    waiting = [] if "store" in filtered.options else [(named[filtered.operands[0]], False)]
    while waiting:
        step, has_others = waiting.pop()
        if has_others and _is_uncached(step):
            found.append(step)
        if step.operation == "tableJoin" and not step.options.get("cached"):
            optional = {"inner": (), "left": step.operands[1:], "outer": step.operands}[step.options["kind"]]
            waiting += [(named[name], has_others or name in optional) for name in step.operands]
        elif step.operation in ("filterTable", "mapTable") and "store" not in step.options:
            waiting.append((named[step.operands[0]], has_others))
    return found


def _cache_before(case: Case, filters: Sequence[Step]) -> Case:
    return _cache(case, [one for step in filters for one in _first_values(case, step)])


def _find_shared_filters(case: Case, steps: Sequence[Step]) -> Sequence[Step]:
    """Filters behind a key that has changed and before several repartitions, where the topology is optimized."""
    named = case.named

    def has_changed_key(step: Step) -> bool:
        if step.operation in ("filter", "merge"):
            return any(has_changed_key(named[name]) for name in step.operands)
        return step.operation == "selectKey"

    filters = [step for step in steps if step.operation == "filter" and has_changed_key(step)]
    return [step for step in filters if case.optimized and _repartitions(case, step) > 1]


def _repartitions(case: Case, stream: Step) -> int:
    """How often a stream is repartitioned, as it is or filtered: for each grouping, and once for all of its joins."""
    users = users_of(stream, case.steps)
    groupings = sum(step.operation in GROUPINGS for step in users)
    is_joined = any(step.operation in JOINS_OF_STREAMS for step in users)
    return groupings + is_joined + sum(_repartitions(case, step) for step in users if step.operation == "filter")


def _filter_apart(case: Case, filters: Sequence[Step]) -> Case:
    """With such a filter for each step that reads it."""
    steps = list(case.steps)
    for one in (step for step in reversed(case.steps) if step in filters):
        place = steps.index(one)
        apart = {user.name: f"{one.name}-{user.name}" for user in users_of(one, steps)}
        steps[place : place + 1] = [replace(one, name=name) for name in apart.values()]
        steps = [redirect(step, one.name, apart.get(step.name, one.name)) for step in steps]
    return replace(case, steps=tuple(steps))


def _find_processed(case: Case, steps: Sequence[Step]) -> Sequence[Step]:
    """Processors behind a key that has changed, where the topology is optimized."""
    named = case.named
    return [
        step
        for step in (steps if case.optimized else ())
        if step.operation in PROCESSORS
        and any(one.operation in CHANGES_KEY for one in above(named[step.operands[0]], named))
    ]


def _as_written(case: Case, _: Sequence[Step]) -> Case:
    return replace(case, optimized=False)


def _cache(case: Case, steps: Sequence[Step]) -> Case:
    return _with_options(case, steps, {"cached": True})


def _late_joins(_: Case, steps: Sequence[Step]) -> Sequence[Step]:
    """Joins of streams that emit what has no match; an outer one is late where a side has nothing that waits."""
    # Since the fix of KAFKA-15417 (3.8.0) a record without a match is emitted up to a window late. At the end of a case
    # some still wait: they are late and not lost, as one more record of each stream shows (`_going_on`).
    return [step for step in steps if step.is_outer]


def _late_joins_of_windows(case: Case, steps: Sequence[Step]) -> Sequence[Step]:
    """Those with windows behind them, which take what comes late for a late record."""
    named = case.named
    windowed = {one for step in steps if step.operation in OF_WINDOWS for one in above(step, named)}
    return [join for join in _late_joins(case, steps) if join in windowed]


def _going_on(case: Case, joins: Sequence[Step]) -> Case:
    """With one more record of each stream, so late that everything that waited before it is emitted."""
    topics = sorted(set[str]().union(*(topics_of(join, case.steps) for join in joins)) - {CLOCK})
    end = max(record.timestamp for record in case.records) + LEAP
    return replace(case, records=(*case.records, *(InputRecord(topic, end, "a", "a|1") for topic in topics)))


def _as_inner_joins(case: Case, joins: Sequence[Step]) -> Case:
    return _with_options(case, joins, {"kind": "inner"})


def _with_options(case: Case, steps: Sequence[Step], options: Mapping[str, object]) -> Case:
    changed = (replace(one, options={**one.options, **options}) if one in steps else one for one in case.steps)
    return replace(case, steps=tuple(changed))


NULL_KEYS = {"missing": "KAFKA-16407", "wrong": "KAFKA-16407", "unexpected": "KAFKA-16434"}
SAME_KEY = {"unexpected": "KIP-213, same key (no JIRA)"}
INSERT = {"unexpected": "KIP-213, insert (no JIRA)"}
# The narrow ones first: the first cause that makes a case green has its key, and a wide one, such as a left join in the
# place of an inner one, would make green what a narrow one explains better.
CAUSES = (
    IssueEffect(NULL_KEYS, _inner_joins, _without_null_keys),
    IssueEffect(SAME_KEY, _inner_joins, _in_one_update),
    IssueEffect(INSERT, _inner_joins, _one_by_one),
    IssueEffect(INSERT, _inner_joins_of_one_record, _as_left_joins),
    IssueEffect(INSERT, _inner_joins_of_rows_that_go_and_come, _as_left_joins),
    IssueEffect(SAME_KEY, _inner_joins_of_rows_that_change_twice, _as_left_joins),
    IssueEffect({"wrong": "KAFKA-18713"}, _find_left_joins, _in_one_task),
    IssueEffect(dict.fromkeys(ROWS, "KIP-889, same time (no JIRA)"), _find_deleted_at_once, _delete_later),
    IssueEffect(dict.fromkeys(ROWS, "KIP-889, restored (no JIRA)"), _find_restored, _keep_open),
    IssueEffect(dict.fromkeys(ROWS, "KIP-889 (no JIRA)"), _find_reopened, _keep_open, failure=UNREGISTERED),
    IssueEffect({"failed": "shared filter (no JIRA)"}, _find_shared_filters, _filter_apart, failure=UNBUILT),
    IssueEffect(dict.fromkeys(ROWS, "KAFKA-19668"), _find_processed, _as_written, failure=UNBUILT),
    IssueEffect(dict.fromkeys(ROWS, "uncached count (no JIRA)"), _find_uncached, _cache),
    IssueEffect({"unexpected": "uncached count (no JIRA)"}, _filters_behind_uncached, _cache_before),
    IssueEffect({"missing": "KAFKA-15417, late (no JIRA)"}, _late_joins, _going_on),
    IssueEffect({"missing": "KAFKA-15417, late (no JIRA)"}, _late_joins_of_windows, _as_inner_joins),
)


def causes_in(release: Release) -> tuple[IssueEffect, ...]:
    """The causes that a release has."""
    return tuple(cause for cause in CAUSES if cause.is_in(release))
