"""The promises of your own application, of which nothing is known except its output without a fault.

`differential`: two runs without a fault are the oracle. What they agree on (all records of a key in whatever order, the
last value of each key, or the keys alone; of JSON without the fields that differ) must be emitted under a fault, too.
What they do not agree on is no promise. Under at-least-once a key may be emitted more often, counted up to anything.

`replay`: the same of what Kafka's TopologyTestDriver makes of the same input, without brokers, threads and commits, as
far as the application says (`compare`), whatever runs agree on.
`replay-newest`: the same of that of the newest release, so that what a release always does wrong is seen, too.

Where the application says so (`compare_also`), timestamps and headers are compared as well, as far as runs without a
fault agree on them. Under at-least-once a key may be emitted again with others, so they are not.

The final values of an output are a table: a key whose last value is null is the same as one that was never emitted.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from operator import attrgetter
from typing import Any

from onceproof.model.anomaly import Comparison, Findings
from onceproof.model.files import ANSWERS, CHANGELOG, Declared, TopicPlan
from onceproof.model.oracle import Oracle, Outputs
from onceproof.model.place import Place
from onceproof.model.record import Facts, Record, Topics
from onceproof.model.serde import decode
from onceproof.readers.comparisons import by_place, findings_of, records_text
from onceproof.readers.deliveries import compare_deliveries
from onceproof.readers.kafka import token_record, without
from onceproof.readers.own_stores import compare_answers

COMPARED = ("records", "final", "keys")  # of an output, the finest first
# Of a promise: the role of what it compares with, at its end.
DIFFERENTIAL = "differential"
ORACLES = {DIFFERENTIAL: "oracle", "replay": "replay", "replay-newest": "replay-newest"}
SHOWN = 3  # values of a key that are shown
OfKey = Sequence[Record]  # in their order
ByKey = Mapping[int | None, OfKey]
# What differs where values are the same, by the name of the attribute.
DIFFERS = {"timestamp": "wrong-timestamp", "headers": "wrong-header"}
Raw = Sequence[tuple[int, bytes | None, bytes | None]]  # partition, key, value


def check_application(roles: Mapping[str, TopicPlan], topics: Topics, facts: Facts) -> Findings:
    """The promises of each output.

    Args:
        roles: of the topics; each is `declared`.
        topics: by role; `<role>-oracle` what a run without a fault emitted, where there was one, and `<role>-replay`
            what was replayed, where it was. Of a store that clients ask: `answers-<store>`, and `<store>-changelog`,
            as committed and (`-all`) with what was aborted.
        facts: `exactly_once`; `ended` as for `readers.queries`.
    """
    inputs, outputs = (
        [record for role in select_declared(plays, roles) for record in topics[role]] for plays in ("input", "output")
    )
    asked = [role.removeprefix(f"{ANSWERS}-") for role in select_declared(ANSWERS, roles)]
    comparisons = [
        *compare_outputs(roles, topics, facts).values(),
        *(
            compare_answers(
                topics[f"{ANSWERS}-{store}"],
                topics[f"{store}-{CHANGELOG}"],
                topics[f"{store}-{CHANGELOG}-all"],
                facts,
                f"{ANSWERS}-{store}",
            )
            for store in asked
        ),
    ]
    return findings_of(inputs, outputs, witness_once(chain.from_iterable(comparisons)))


def witness_once(comparisons: Iterable[Comparison]) -> Iterator[Comparison]:
    """The same comparisons, where what breaks several promises in the same way at the same place is one witness."""
    seen: set[tuple[str, int | None, str]] = set()
    for comparison in comparisons:
        found = (comparison.anomaly or "", comparison.key, comparison.place)
        yield replace(comparison, anomaly=None) if found in seen else comparison
        if comparison.anomaly is not None:
            seen.add(found)


def select_declared(plays: str, roles: Mapping[str, TopicPlan]) -> dict[str, Declared]:
    """The declarations of the topics that play `input`, or `output`, by role."""
    return {role: topic.declared for role, topic in roles.items() if topic.declared and topic.declared.plays == plays}


def compare_outputs(roles: Mapping[str, TopicPlan], topics: Topics, facts: Facts) -> dict[str, Iterator[Comparison]]:
    """The comparisons of each output, by role; arguments as of `check_application`."""
    return {
        role: compare_output(role, declared, topics, at_least=not facts["exactly_once"])
        for role, declared in select_declared("output", roles).items()
    }


def compare_output(role: str, declared: Declared, topics: Topics, *, at_least: bool) -> Iterator[Comparison]:
    """Compare an output with what is promised about it."""
    for promise, suffix in ORACLES.items():
        oracle = topics.get(f"{role}-{suffix}")
        level = declared.agreed if promise == DIFFERENTIAL else declared.as_replayed
        if promise in declared.promises and level and oracle is not None:
            also = declared.compare_also
            yield from compare_with(oracle, topics[role], promise, role, level, also, at_least=at_least)
    if "unique" in declared.promises and not at_least:
        yield from compare_unique(role, topics[role])
    if declared.of is not None:
        yield from compare_deliveries(
            topics[declared.of], topics[role], at_least=at_least, role=role, source=declared.of
        )


def compare_with(
    expected: Sequence[Record],
    observed: Sequence[Record],
    promise: str,
    role: str,
    agreed: str,
    also: Collection[str] = (),
    *,
    at_least: bool,
) -> Iterator[Comparison]:
    """For each key, its output compared with what an oracle says, as far as is `agreed`, with these attributes."""
    if agreed == "nothing":
        return
    wanted, found = _by_key(expected), _by_key(observed)
    places = {record.key: record for record in sorted(observed, key=by_place)}
    for key in wanted.keys() | found.keys():
        anomaly = _anomaly(agreed, wanted[key], found[key], at_least=at_least)
        if anomaly is None and not at_least:
            anomaly = _anomaly_of_attributes(agreed, also, wanted[key], found[key])
        record = places.get(key)
        place = str(Place(role, record.partition, record.offset)) if record else f"{role}, {key} is not there"
        shown = next((name for name in also if DIFFERS[name] == anomaly), None)
        texts = [f"{key}: {_text(agreed, records, shown)}" for records in (wanted[key], found[key])]
        yield Comparison(promise, anomaly, record.partition if record else 0, key, place, texts[0], texts[1])


def _by_key(records: Iterable[Record]) -> dict[int | None, list[Record]]:
    of: dict[int | None, list[Record]] = defaultdict(list)
    for record in sorted(records, key=by_place):
        of[record.key].append(record)
    return of


def _anomaly(agreed: str, expected: OfKey, observed: OfKey, *, at_least: bool) -> str | None:
    """The anomaly of the records of a key, as far as runs without a fault agree on them."""
    if agreed == "final":
        return _anomaly_of_table(expected, observed, at_least=at_least)
    if not observed or not expected:
        return "lost-record" if expected else "unexpected-record"
    if agreed == "keys":
        return None
    if at_least:
        return "lost-record" if len(observed) < len(expected) else None
    wanted, found = (Counter(record.value for record in records) for records in (expected, observed))
    missing, foreign = wanted - found, found - wanted
    if missing and foreign:
        return "wrong-value"
    if missing:
        return "lost-record"
    if foreign:
        return "duplicate-output" if foreign.keys() <= wanted.keys() else "unexpected-record"
    return None


def _anomaly_of_table(expected: OfKey, observed: OfKey, *, at_least: bool) -> str | None:
    """The anomaly of the last value of a key: a table has no difference between null and no value."""
    wanted, found = (records[-1].value if records else None for records in (expected, observed))
    if wanted == found:
        return None
    if not observed or not expected:
        return "lost-record" if expected else "unexpected-record"
    return None if at_least else "wrong-value"


def _anomaly_of_attributes(agreed: str, also: Collection[str], expected: OfKey, observed: OfKey) -> str | None:
    """The anomaly of records, or of final values, that are the same but for an attribute."""
    if agreed == "final":
        expected, observed = (_last_of_table(records) for records in (expected, observed))
    elif agreed != "records":
        return None
    for name in also:
        compared = attrgetter("value", name)
        if Counter(map(compared, expected)) != Counter(map(compared, observed)):
            return DIFFERS[name]
    return None


def _last_of_table(records: OfKey) -> OfKey:
    """The record that a table has of a key, if its value is not null."""
    return [record for record in records[-1:] if record.value is not None]


def _text(agreed: str, records: OfKey, attribute: str | None) -> str:
    """The records of a key for people, with the attribute that differs."""
    if not records:
        return "nothing"
    if agreed == "keys":
        return records_text(len(records))
    shown = records[-1:] if agreed == "final" else records[:SHOWN]
    more = f" and {len(records) - SHOWN} more" if agreed == "records" and len(records) > SHOWN else ""
    return ", ".join(_value_text(record, attribute) for record in shown) + more


def _value_text(record: Record, attribute: str | None) -> str:
    value = "null" if record.value is None else str(record.value)
    if attribute == "timestamp":
        return f"{value} at {record.timestamp}"
    return f"{value} with {record.headers or 'no headers'}" if attribute else value


def compare_unique(role: str, outputs: Sequence[Record]) -> Iterator[Comparison]:
    """How often each key was emitted."""
    counts = Counter(record.key for record in outputs)
    last = {record.key: record for record in sorted(outputs, key=by_place)}
    for key, count in counts.items():
        place = str(Place(role, last[key].partition, last[key].offset))
        anomaly = "duplicate-output" if count > 1 else None
        texts = (f"{key}: 1 record", f"{key}: {records_text(count)}")
        yield Comparison("unique", anomaly, last[key].partition, key, place, *texts)


def compare_finals(first: Sequence[Record], second: Sequence[Record], role: str) -> Iterator[Comparison]:
    """The keys whose final values differ in two runs without a fault, of an output that is declared to have them."""
    for comparison in compare_with(first, second, DIFFERENTIAL, role, "final", at_least=False):
        if comparison.anomaly is not None:
            yield replace(comparison, anomaly="unstable-final")


# --- the oracle ----------------------------------------------------------------------------------------------


def oracle_of(first: Outputs, second: Outputs, roles: Mapping[str, Declared]) -> Oracle:
    """The agreement of two runs without a fault, for each output.

    Raises:
        ValueError: some output is not of the serde.
    """
    agreed, ignored, also, differ = {}, {}, {}, {}
    for role, declared in roles.items():
        agreed[role], ignored[role] = _agreement(first.bytes_of(role), second.bytes_of(role), declared)
        compared = replace(declared, ignored=ignored[role])
        one, other = (_by_key(records_of(run, role, compared)) for run in (first, second))
        also[role] = _agreed_attributes(one, other, agreed[role], declared.compare_also)
        differ[role] = tuple(name for name in declared.compare_also if name not in also[role])
    return Oracle(first, agreed, ignored, also, differ)


def as_far_as_replayed(oracle: Oracle) -> Oracle:
    """An oracle that knows no more than the final values of an output whose updates a record cache holds back.

    Such a cache emits the last update of a key when there is a commit. Two runs that committed at the same records
    agree on all output, and yet by coincidence. A replay has every update: where both have some of its records
    and its last one, of each key, and not all of them, a cache did hold them back. Without a replay each output in
    which a key comes again may be one of those.
    """
    replayed = oracle.replayed or oracle.replayed_on_newest
    runs = {role: oracle.outputs.bytes_of(role) for role in oracle.agreed}
    if replayed is None:
        held_back = {role for role, run in runs.items() if len(_values_by_key(run)) < len(run)}
    else:
        held_back = {role for role, run in runs.items() if _is_held_back(run, replayed.bytes_of(role))}
    agreed = {
        role: "final" if role in held_back and level == "records" else level for role, level in oracle.agreed.items()
    }
    return replace(oracle, agreed=agreed)


def as_replayed(oracle: Oracle, roles: Mapping[str, Declared]) -> dict[str, str]:
    """How far each output must be as it is replayed, whatever runs agree on: as its application says (`compare`).

    Of all records no more than the final values: where runs do not agree on them, or a cache holds updates back.
    """
    return {
        role: "final" if declared.compare == "records" and oracle.agreed[role] != "records" else declared.compare
        for role, declared in roles.items()
    }


def is_unstable(oracle: Oracle, role: str, declared: Declared) -> bool:
    """Whether two runs without a fault differ in final values that the application says are the same."""
    compared = declared.promises and any(promise in ORACLES for promise in declared.promises)
    return bool(compared) and declared.compare == "final" and oracle.agreed[role] in ("keys", "nothing")


def _is_held_back(run: Raw, replayed: Raw) -> bool:
    some, every = _values_by_key(run), _values_by_key(replayed)
    if len(run) == len(replayed) or _table(some) != _table(every):  # all that a key was may have been held back
        return False
    return some.keys() <= every.keys() and all(_is_among(values, every[key]) for key, values in some.items())


def _is_among(some: Sequence[bytes | None], every: Sequence[bytes | None]) -> bool:
    """Whether values are among others, in their order."""
    left = iter(every)
    return all(value in left for value in some)


def oracle_records(oracle: Oracle, roles: Mapping[str, Declared]) -> dict[str, list[Record]]:
    """The oracle of each output, by the roles that `compare_output` looks for."""
    known = {"oracle": oracle.outputs, "replay": oracle.replayed, "replay-newest": oracle.replayed_on_newest}
    return {
        f"{role}-{suffix}": records_of(outputs, role, declared)
        for suffix, outputs in known.items()
        for role, declared in roles.items()
        if outputs is not None
    }


def records_of(outputs: Outputs, role: str, declared: Declared) -> list[Record]:
    """The records of an output, as a reader would read them."""
    written = outputs.bytes_of(role)
    offsets = outputs.offsets.get(role, range(len(written)))
    attributes = outputs.attributes.get(role, [(0, "")] * len(written))
    return [
        token_record(partition, offset, key, value, declared)._replace(timestamp=timestamp, headers=headers)
        for offset, (partition, key, value), (timestamp, headers) in zip(offsets, written, attributes, strict=True)
    ]


def _agreed_attributes(first: ByKey, second: ByKey, agreed: str, asked: Sequence[str]) -> tuple[str, ...]:
    """The attributes, of those that are to be compared, on which two runs agree."""
    if agreed not in ("records", "final"):
        return ()
    return tuple(
        name
        for name in asked
        if all(_anomaly_of_attributes(agreed, (name,), first[key], second[key]) is None for key in first)
    )


def _agreement(first: Raw, second: Raw, declared: Declared) -> tuple[str, tuple[str, ...]]:
    """How far two runs agree on an output: see `Declared.agreed` and `ignored`."""
    runs = [_values_by_key(run) for run in (first, second)]
    for level, chosen in (("records", _all), ("final", _table))[COMPARED.index(declared.compare) :]:
        seen = [chosen(run) for run in runs]
        if seen[0].keys() != seen[1].keys():
            continue
        if _same(*seen):
            return level, ()
        if declared.value == "json":
            fields = _differing_fields(*seen)
            masked = [{key: [_mask(v, fields) for v in values] for key, values in run.items()} for run in seen]
            if fields and _same(*masked):
                return level, tuple(sorted(fields))
    return "keys" if runs[0].keys() == runs[1].keys() else "nothing", ()


Raws = Mapping[bytes | None, Sequence[bytes | None]]  # values by key


def _values_by_key(run: Raw) -> Raws:
    values: dict[bytes | None, list[bytes | None]] = defaultdict(list)
    for _, key, value in run:
        values[key].append(value)
    return values


def _all(run: Raws) -> Raws:
    return run


def _table(run: Raws) -> Raws:
    """The last value of each key that has one: null deletes it."""
    return {key: values[-1:] for key, values in run.items() if values[-1] is not None}


def _same(first: Raws, second: Raws) -> bool:
    return all(Counter(first[key]) == Counter(second[key]) for key in first)


def _mask(value: bytes | None, fields: Collection[str]) -> bytes | None:
    return None if value is None else without(value, fields)


def _differing_fields(first: Raws, second: Raws) -> set[str]:
    """The fields of JSON objects whose values are not the same for each key."""
    objects = [
        {key: [v for v in map(_object, values) if v is not None] for key, values in run.items()}
        for run in (first, second)
    ]
    names = {name for run in objects for values in run.values() for value in values for name in value}
    first_run, second_run = objects
    return {name for name in names if _field_differs(first_run, second_run, name)}


def _object(value: bytes | None) -> dict[str, Any] | None:
    read = None if value is None else decode("json", value)
    return read if isinstance(read, dict) else None


Objects = Mapping[bytes | None, Sequence[Mapping[str, Any]]]


def _field_differs(first: Objects, second: Objects, name: str) -> bool:
    return any(Counter(_of(first[key], name)) != Counter(_of(second[key], name)) for key in first)


def _of(objects: Iterable[Mapping[str, Any]], name: str) -> Iterator[str]:
    return (repr(value.get(name)) for value in objects)
