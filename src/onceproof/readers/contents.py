"""The promises `output-order` and `changelog`: what the application wrote is what the replay of its input says.

Each task reads one partition of the input, so what it writes is a function of that partition's order: record by record
key, value, timestamp, headers and partition. Records are distinguished by their key and by their number among the
records of the key; under at-least-once, where a suffix may come again after a crash, by key and value. A cached store
writes what its cache holds at each flush, so its changelog is folded (a tombstone deletes) and compared key by key.
Each record of it must still be one that the key had, and under exactly-once they come in the order of the input.

One witness for each record, or key, that is not as it must be; other promises report which records of the output are
lost or come too often.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from onceproof.model.anomaly import Comparison
from onceproof.model.place import Place
from onceproof.model.record import Record, Topics
from onceproof.readers.answers import DELETE
from onceproof.readers.comparisons import as_number, by_place, records_text, value_text

Values = Callable[[int | None], int | None]
OF_HANDLER = "__streams.errors."  # the headers of an exception handler begin with it


def every(inputs: Sequence[Record]) -> Iterator[Record]:
    """Each record gives one."""
    return iter(inputs)


def first_of_key(inputs: Sequence[Record]) -> Iterator[Record]:
    """Only the first record of a key gives one."""
    seen = set()
    for record in inputs:
        if record[2] not in seen:
            seen.add(record[2])
            yield record


def select_taken(inputs: Sequence[Record]) -> Iterator[Record]:
    """Each record with a value from 0 on; the others are poison, which is skipped."""
    return (record for record in inputs if as_number(record[3]) >= 0)


def select_skipped(inputs: Sequence[Record]) -> Iterator[Record]:
    """Each record of poison."""
    return (record for record in inputs if as_number(record[3]) < 0)


def leave_unjudged(_value: int | None) -> int | None:
    """For a value that another promise judges."""
    return 0


def as_it_is(value: int | None) -> int | None:
    """For a value that is compared as it is."""
    return value


def put_or_delete(value: int | None) -> int | None:
    """For an input that puts its value, or deletes its key."""
    return None if value == DELETE else value


def version(value: int | None) -> int | None:
    """For an input that changes a table of versions: it has the version with a minus, or 0 to delete its key."""
    return -value if value else None


@dataclass(frozen=True)
class LogCheck:
    """The records of the topic of a role, as a function of the input's order.

    Attributes:
        promise: that the comparisons belong to.
        role: of the topic.
        replay: the input records that give one, in their order.
        expected: turns the value of the input into what is to be compared.
        observed: turns the written value into what is to be compared; None is as good as a tombstone.
        key: of the records, if it is not that of the input.
        folded: whether only the table that they make is compared.
        counted: whether another promise reports which records are lost or too many.
        beside: the role in which a key with too few records is reported already.
        punctuated: whether a punctuator writes as well, under keys below 0, which no input explains.
        history: whether each record of a folded log is one that an input of its key gives, in their order.
        puts: whether only what was put is compared, as a punctuator deletes it.
        handled: whether an exception handler wrote its headers behind those of the input (KIP-1034).
    """

    promise: str
    role: str
    replay: Callable[[Sequence[Record]], Iterator[Record]] = every
    expected: Values = as_it_is
    observed: Values = as_it_is
    key: int | None = None
    folded: bool = False
    counted: bool = False
    beside: str | None = None
    punctuated: bool = False
    history: bool = False
    puts: bool = False
    handled: bool = False


@dataclass(frozen=True)
class InputCause:
    """An input record, and what it gives: key, value as it is compared, and the rest (timestamp, headers)."""

    source: Record
    key: int | None
    value: int | None

    @property
    def rest(self) -> tuple[Any, ...]:
        """Timestamp and headers, as Kafka Streams hands them on."""
        return tuple(self.source[4:])


def compare_contents(log: LogCheck, topics: Topics, *, exactly_once: bool) -> Iterator[Comparison]:
    """The content of a topic, compared with what the replay of the input says: first all records together, then those
    that are not as they must be.

    The first comparison stands for as many records as there are, or should be; the others are among them.
    """
    given = list(log.replay(sorted(topics["input"], key=by_place)))
    ours = (r for r in topics[log.role] if not (log.punctuated and as_number(r[2]) < 0))
    if log.puts:
        ours = (r for r in ours if r[3] is not None)
    if log.handled:
        # A dead letter has the headers of its record, and behind them those in which the handler says what failed.
        ours = (r._replace(headers=r.headers.partition(OF_HANDLER)[0].rstrip()) for r in ours)
    written = sorted(ours, key=by_place)
    if compared := max(len(given), len(written)):
        yield Comparison(log.promise, None, 0, None, log.role, "what the replay says", "the same", compared)
    has_history = log.folded and log.history
    alike = _alike(log, given, written)  # as a rule, and quick to see
    # A wrong record on the way leaves no trace in the folded table once the next record of its key has replaced it. But
    # a reader of the changelog has seen it, as a standby that is promoted in between has. So each record is checked.
    if alike and not has_history:
        return
    causes = [InputCause(r, r[2] if log.key is None else log.key, log.expected(r[3])) for r in given]
    compare = _compare_folded if log.folded else _compare_numbered if exactly_once else _compare_repeated
    breaches = [] if alike else compare(log, causes, written)
    if has_history:
        # Where the end of a key is wrong already, the way to it is no second witness.
        texts = {breach.key for breach in breaches}
        breaches += [b for b in _find_strayed(log, causes, written, exactly_once=exactly_once) if b.key not in texts]
    if log.beside is not None:
        # An input that was never processed left neither an output nor an entry of the changelog: the output reports it.
        # What only the changelog lacks is a failure of its own.
        there, wanted = Counter(record[2] for record in topics[log.beside]), Counter(cause.key for cause in causes)
        breaches = [b for b in breaches if b.anomaly != "lost-record" or there[b.key] >= wanted[b.key]]
    yield from breaches


def _alike(log: LogCheck, given: Sequence[Record], written: Sequence[Record]) -> bool:
    """Whether everything is as it must be, record by record; of a log that is folded, key by key."""
    expected, observed, key_of = log.expected, log.observed, log.key
    if log.folded:
        wanted = {r[2]: (r[0], expected(r[3]), r[4:]) for r in given}
        found = {r[2]: (r[0], None if r[3] is None else observed(r[3]), r[4:]) for r in written}
        return wanted == found
    keys = (r[2] if key_of is None else key_of for r in given)
    return [(r[0], key, expected(r[3]), r[4:]) for r, key in zip(given, keys, strict=True)] == [
        (r[0], r[2], observed(r[3]), r[4:]) for r in written
    ]


Breaches = list[Comparison]


def _compare_numbered(log: LogCheck, causes: Sequence[InputCause], written: Sequence[Record]) -> Breaches:
    """Under exactly-once: the n-th record of a key is what its n-th cause gives."""
    # Kafka orders records within a partition only. A key that each partition has (`log.key`, as that of the counter)
    # has no n-th record in all of them together, so its records are numbered in each. Any other key that appears in a
    # second partition is misplaced, and is to be paired with its cause all the same, as `wrong-partition`.
    scope = (lambda key, partition: (key, partition)) if log.key is not None else (lambda key, _: key)
    wanted: dict[Hashable, list[InputCause]] = defaultdict(list)
    found: dict[Hashable, list[Record]] = defaultdict(list)
    for cause in causes:
        wanted[scope(cause.key, cause.source[0])].append(cause)
    for record in written:
        found[scope(record[2], record[0])].append(record)
    breaches: Breaches = []
    matched: list[tuple[Record, InputCause]] = []
    for key in wanted.keys() | found.keys():
        of_key, there = wanted.get(key, []), found.get(key, [])
        if len(of_key) != len(there):
            # Behind a gap the n-th record is no longer that of the n-th cause: pairs would blame every one that
            # follows.
            breaches += _find_miscounted(log, of_key, there)
            continue
        for record, cause in zip(there, of_key, strict=True):
            breach = _differs(log, record, cause)
            breaches += breach
            if not breach or breach[0].anomaly != "wrong-partition":
                matched.append((record, cause))
    # Keys are right by now, each by itself. The order between keys is left: records of a partition follow their causes.
    before: dict[int, InputCause] = {}
    for record, cause in sorted(matched, key=lambda pair: by_place(pair[0])):
        earlier = before.get(record[0])
        if earlier is not None and cause.source[1] < earlier.source[1]:
            breaches.append(_compare_disordered(log, record, cause, earlier.source[1]))
        before[record[0]] = cause  # also after a fall, so that one misplaced record does not blame the rest
    return breaches


def _compare_repeated(log: LogCheck, causes: Sequence[InputCause], written: Sequence[Record]) -> Breaches:
    """Under at-least-once: what was written continues what is there, or repeats some of it."""
    # Some records come again, so the number of a record within its key says nothing: its value must name its cause.
    of_key: dict[int | None, InputCause] = {}
    of_value: dict[Hashable, InputCause] = {}
    for cause in causes:
        of_key.setdefault(cause.key, cause)
        of_value[cause.key, cause.value] = cause
    breaches: Breaches = []
    misvalued: set[int | None] = set()
    matched: list[tuple[Record, InputCause]] = []
    for record in written:
        meant = of_value.get((record[2], log.observed(record[3])))
        if meant is None:
            known = of_key.get(record[2])
            if known is not None:
                misvalued.add(record[2])
                breaches.append(_wrong_value(log, record, known))
            elif not log.counted:
                breaches.append(_compare_unexpected(log, record))
            continue
        breach = _differs(log, record, meant)
        breaches += breach
        if not breach or breach[0].anomaly != "wrong-partition":
            matched.append((record, meant))
    # After a crash the application continues from an earlier position: what it writes may step back as far as it likes,
    # but forward by one only. Steps are counted among the causes that left a record at all; one that left none is lost,
    # and is reported as that, not as a gap in the order.
    there = {id(cause) for _, cause in matched}
    places: dict[int, dict[int, int]] = defaultdict(dict)  # of those that are there: partition -> offset -> number
    for cause in causes:
        if id(cause) in there:
            of_partition = places[cause.source[0]]
            of_partition[cause.source[1]] = len(of_partition)
    reached: dict[int, int] = {}
    for record, cause in matched:
        partition, offset = record[0], cause.source[1]
        last = reached.get(partition)
        numbers = places[partition]
        if numbers[offset] > (0 if last is None else numbers[last] + 1):
            breaches.append(_compare_disordered(log, record, cause, last))
        reached[partition] = offset if last is None else max(last, offset)
    # A record with a wrong value took the place of the right one: it is that one failure, and no loss in addition.
    shown = {(record[2], log.observed(record[3])) for record in written}
    lost: dict[int | None, list[InputCause]] = defaultdict(list)
    for cause in causes:
        if (cause.key, cause.value) not in shown and cause.key not in misvalued:
            lost[cause.key].append(cause)
    if not log.counted:
        breaches += [_compare_lost(log, found, found[0].source, 0) for found in lost.values()]
    return breaches


def _compare_folded(log: LogCheck, causes: Sequence[InputCause], written: Sequence[Record]) -> Breaches:
    """The tables that both add up to, key by key; a tombstone deletes."""
    wanted = {cause.key: cause for cause in causes}
    found = {record[2]: record for record in written}
    breaches: Breaches = []
    for key in wanted.keys() | found.keys():
        cause, record = wanted.get(key), found.get(key)
        is_wanted = cause is not None and cause.value is not None
        is_there = record is not None and record[3] is not None and log.observed(record[3]) is not None
        if cause is not None and record is not None and is_wanted and is_there:
            breaches += _differs(log, record, cause)
        elif log.counted:
            continue
        elif cause is not None and is_wanted:
            breaches.append(_compare_lost(log, [cause], cause.source, 0))
        elif record is not None and is_there:
            breaches.append(_compare_unexpected(log, record))
    return breaches


def _find_strayed(
    log: LogCheck, causes: Sequence[InputCause], written: Sequence[Record], *, exactly_once: bool
) -> Iterator[Comparison]:
    """The records that no input of their key gives, and, under exactly-once, those that stand behind a later one.

    Inputs that give the same cannot be distinguished: a record may come from any of them. The next value of the key,
    with a timestamp that it did not have with it, is `wrong-timestamp`.
    """
    # Equal inputs leave a doubt, which counts for Kafka: a record may be of the first of them, so the key has reached
    # no more than that; and it is out of order only if even the last of them is no later than what the key has reached.
    first: dict[Hashable, Record] = {}
    last: dict[Hashable, Record] = {}
    of_value: dict[Hashable, list[InputCause]] = defaultdict(list)  # by key and value
    for cause in causes:
        gives = (cause.key, cause.value, cause.rest)
        first.setdefault(gives, cause.source)
        last[gives] = cause.source
        of_value[cause.key, cause.value].append(cause)
    reached: dict[int | None, Record] = {}
    reached_value: dict[int | None, Record] = {}
    for record in written:
        p, offset, key, value = record[:4]
        given = (key, log.observed(value), tuple(record[4:]))
        had, behind = of_value.get(given[:2], []), reached_value.get(key)
        is_next = bool(had) and (behind is None or by_place(had[-1].source) > by_place(behind))
        if had and (behind is None or by_place(had[0].source) > by_place(behind)):
            reached_value[key] = had[0].source
        if given not in first:
            # The value is due and only its timestamp is that of another record: a cache was flushed with the context of
            # the record that was processed then (KAFKA-13522), and the value itself is right.
            place = str(Place(log.role, p, offset))
            if is_next and record[4:5] not in [cause.rest[:1] for cause in had]:
                yield _breach(log, "wrong-timestamp", p, key, place, str(had[0].rest[0]), str(record[4]))
            else:
                texts = "what the key had", value_text(log.observed(value))
                yield _breach(log, "unexpected-record", p, key, place, *texts)
            continue
        before = reached.get(key)
        if exactly_once and before is not None and by_place(last[given]) <= by_place(before):
            texts = (f"of a record behind {Place('input', *before[:2])}", f"of {Place('input', *last[given][:2])}")
            yield _breach(log, "wrong-order", p, key, str(Place(log.role, p, offset)), *texts)
        if before is None or by_place(first[given]) > by_place(before):
            reached[key] = first[given]


def _find_miscounted(log: LogCheck, wanted: Sequence[InputCause], found: Sequence[Record]) -> Breaches:
    """A key with fewer or more records than it should have; nothing if another promise reports it."""
    if log.counted:
        return []
    if len(found) < len(wanted):
        return [_compare_lost(log, wanted, wanted[0].source, len(found))]
    if not wanted:
        return [_compare_unexpected(log, found[-1])]
    p, offset, key = found[-1][:3]
    place = str(Place(log.role, p, offset))
    texts = records_text(len(wanted)), records_text(len(found))
    return [_breach(log, "duplicate-output", p, key, place, *texts)]


def _compare_lost(log: LogCheck, wanted: Sequence[InputCause], first: Record, found: int) -> Comparison:
    place = str(Place("input", first[0], first[1]))
    texts = f"{records_text(len(wanted))} in {log.role}", records_text(found)
    return _breach(log, "lost-record", first[0], wanted[0].key, place, *texts)


def _compare_unexpected(log: LogCheck, record: Record) -> Comparison:
    p, offset, key, value = record[:4]
    return _breach(log, "unexpected-record", p, key, str(Place(log.role, p, offset)), "nothing", value_text(value))


def _wrong_value(log: LogCheck, record: Record, cause: InputCause) -> Comparison:
    p, offset, key, value = record[:4]
    texts = value_text(cause.value), value_text(log.observed(value))
    return _breach(log, "wrong-value", p, key, str(Place(log.role, p, offset)), *texts)


def _differs(log: LogCheck, record: Record, cause: InputCause) -> Breaches:
    """How a record differs from what its cause gives: the first of partition, value, timestamp, headers."""
    p, offset, key, value = record[:4]
    if p != cause.source[0]:
        anomaly, texts = "wrong-partition", (f"partition {cause.source[0]}", f"partition {p}")
    elif log.observed(value) != cause.value:
        return [_wrong_value(log, record, cause)]
    elif record[4:5] != cause.rest[:1]:
        anomaly, texts = "wrong-timestamp", (str(cause.rest[0]), str(record[4]))
    elif record[5:6] != cause.rest[1:2]:
        anomaly, texts = "wrong-header", (cause.rest[1] or "no header", record[5] or "no header")
    else:
        return []
    return [_breach(log, anomaly, p, key, str(Place(log.role, p, offset)), *texts)]


def _compare_disordered(log: LogCheck, record: Record, cause: InputCause, last: int | None) -> Comparison:
    """A record that does not follow the one before, whose cause is at the offset `last`."""
    p, offset, key = record[:3]
    behind = f"of a record behind {Place('input', p, last)}" if last is not None else "of the first record"
    observed = f"of {Place('input', p, cause.source[1])}"
    return _breach(log, "wrong-order", p, key, str(Place(log.role, p, offset)), behind, observed)


def _breach(
    log: LogCheck, anomaly: str, partition: int, key: int | None, place: str, expected: str, observed: str
) -> Comparison:
    return Comparison(log.promise, anomaly, partition, key, place, expected, observed, comparisons=0)
