"""The promise `queries` of your own application: the answers that clients got, compared with the store's changelog.

Nothing is known of its values but their order in the changelog, so an answer must be the last value before its `floor`,
or one from there up to its `ceiling` (see `readers.queries`). It is compared byte by byte, and nothing is said where
another answer could look the same:

- A store that is active may show what is not committed yet, and never will be if its process is killed before it sends
  that. So a value from before the floor is old only if the key never had it twice.
- A value that the changelog does not have says nothing: the serializer may write the same value otherwise.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from onceproof.model.anomaly import Comparison
from onceproof.model.place import Place
from onceproof.model.record import Facts, Record
from onceproof.readers.comparisons import by_place, has_ended, value_text
from onceproof.readers.queries import UNLIMITED, headers_of, number

Versions = Sequence[tuple[int, int | None]]  # of a key: offset and value, in their order
NONE_YET: Versions = [(-1, None)]


def compare_answers(
    answers: Sequence[Record], changelog: Sequence[Record], all_: Sequence[Record], facts: Facts, role: str
) -> Iterator[Comparison]:
    """Each answer that says something, with what it may be.

    Args:
        answers: what clients were given; the headers say what these must hold.
        changelog: of the store, as committed.
        all_: the same with what was aborted.
        facts: `ended` is 0 if the drive failed: then not all that answers may have was read, and nothing is compared.
        role: of the answers.
    """
    if not has_ended(facts):
        return
    committed, every = _versions(changelog), _versions(all_)
    for answer in sorted(answers, key=by_place):
        place = (answer.partition, answer.key)
        says = headers_of(answer)
        floor, ceiling = number(says, "floor"), number(says, "ceiling")
        limited = ceiling < UNLIMITED
        known = committed[place] if limited else every[place]
        last = _before(committed[place], floor)[-1:] or NONE_YET
        may_be = [value for _, value in (*last, *_between(known, floor, ceiling))]
        anomaly = None
        if answer.value not in may_be:
            anomaly = _late_or_early(answer.value, committed[place], every[place], floor, limited=limited)
            if anomaly is None:
                continue
        least, most = value_text(last[0][1]), value_text(may_be[-1])
        expected = (
            f"{answer.key}: {most} or earlier" if anomaly == "early-answer" else f"{answer.key}: {least} or later"
        )
        observed = f"{answer.key}: {value_text(answer.value)}, {bytes.fromhex(says['how']).decode()}"
        where = str(Place(role, answer.partition, answer.offset))
        yield Comparison("queries", anomaly, answer.partition, answer.key, where, expected, observed)


def _late_or_early(value: int | None, committed: Versions, every: Versions, floor: int, *, limited: bool) -> str | None:
    """The anomaly of an answer that is none of those that it may be; None if it says nothing."""
    if limited:  # it has what was committed, and nothing else
        if _has(value, [*NONE_YET, *_before(committed, floor)]):
            return "stale-answer"
        return "early-answer" if _has(value, every) else None
    times = sum(version == value for _, version in (*NONE_YET, *every))
    return "stale-answer" if times == 1 else None


def _versions(records: Sequence[Record]) -> Mapping[tuple[int, int | None], list[tuple[int, int | None]]]:
    """The values of each key, by partition and key."""
    versions: dict[tuple[int, int | None], list[tuple[int, int | None]]] = defaultdict(list)
    for record in sorted(records, key=by_place):
        versions[record.partition, record.key].append((record.offset, record.value))
    return versions


def _before(versions: Versions, offset: int) -> Versions:
    return versions[: bisect_left(versions, offset, key=lambda version: version[0])]


def _between(versions: Versions, first: int, end: int) -> Versions:
    begin = bisect_left(versions, first, key=lambda version: version[0])
    return versions[begin : bisect_left(versions, end, key=lambda version: version[0])]


def _has(value: int | None, versions: Sequence[tuple[int, int | None]]) -> bool:
    return any(version == value for _, version in versions)
