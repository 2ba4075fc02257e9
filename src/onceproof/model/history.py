"""The history of a table with versions, as the input makes it: what a wrong version of it may come from.

The records of the topology `as-of-join`: one with a value above 0 asks for the version of its key at its own time, one
below 0 puts the version of that number, 0 deletes the key. A result is `value << 32 | version`, 0 for none
(`readers.joins.as_of`). The numbers differ, so a version is known by its number.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from onceproof.model.anomaly import Witness

# A record of the input: partition, offset, key, value, timestamp in ms.
Input = tuple[int, int, int | None, int | None, int]
Way = Literal["ended", "too-old", "deleted"]  # how a wrong version may have come about
NONE = 0  # the number of a deletion, and of no version
ENTRIES = ("lost-entry", "wrong-entry")  # anomalies of what a store holds


class TableChange(NamedTuple):
    """A version, or a deletion (`NONE`), in the order of its table; `late`: too old to count when it came."""

    time: int
    offset: int
    number: int
    late: bool


class VersionQuestion(NamedTuple):
    """A record that asks for a version; `youngest`: the time of the table then, None without any change before."""

    time: int
    offset: int
    youngest: int | None


class History:
    """The changes of each key and the records that ask."""

    def __init__(self, inputs: Iterable[Input], retention: int) -> None:
        """Go through the input.

        Args:
            inputs: its records, in any order.
            retention: ms of the history that the table keeps.
        """
        self._retention = retention
        self._changes: dict[tuple[int, int | None], list[TableChange]] = defaultdict(list)
        self._questions: dict[tuple[int, int], VersionQuestion] = {}  # by partition and value
        self._youngest = youngest = dict[int, int]()  # of each partition
        for partition, offset, key, value, time in sorted(inputs, key=lambda record: record[:2]):
            known = youngest.get(partition)
            if value is not None and value > 0:
                self._questions[partition, value] = VersionQuestion(time, offset, known)
                continue
            late = self._is_late(time, known)
            self._changes[partition, key].append(TableChange(time, offset, -(value or NONE), late))
            if not late:
                youngest[partition] = time if known is None else max(time, known)

    def shows(self, way: str, witness: Witness, reached: int | None) -> bool:
        """Whether a wrong version may have come about in a way.

        ended: the version that was valid had ended by a change that was processed before, or was a deletion processed
            before, and there came none or an older one.
        too-old: the record that asks is older than the history, or there came what a change gives that was too old to
            count and was processed afterwards.
        deleted: the key was deleted, longer ago than the history goes back, and there came an older version.

        Of a store with the wrong versions of a key the same holds at the end, for each that is missing or too many.

        Args:
            way: how.
            witness: of a wrong value, or of wrong entries.
            reached: the first offset of its partition that was not committed when the store was opened; None if that
                is not known.
        """
        if witness.anomaly in ENTRIES:
            return self._shows_entries(way, witness, reached)
        numbers = _numbers(witness)
        question = numbers and self._questions.get((witness.partition, numbers[0]))
        if not numbers or not question:
            return False
        _, version = numbers
        before = [c for c in self._changes[witness.partition, witness.key] if c.offset < question.offset]
        counting = sorted(change for change in before if not change.late)
        past = [change for change in counting if change.time <= question.time]
        if way == "too-old":
            late = [c for c in before if c.late and c.time <= question.time and c.offset >= (reached or 0)]
            asked = past if self._is_late(question.time, question.youngest) else []
            return version in {change.number for change in (*late, *asked)}
        if not past:
            return False
        valid, older = past[-1], {change.number for change in past[:-1]}
        if way == "ended":
            ends = [*counting[len(past) :], *(past[-1:] if valid.number == NONE else ())]
            return version in older | {NONE} and any(change.offset < (reached or 0) for change in ends)
        if self._is_late(question.time, question.youngest):  # it gets the last version of all, or none
            valid, older = counting[-1], {change.number for change in counting[:-1]}
        return valid.number == NONE and version in older - {NONE} and self._is_late(valid.time, question.youngest)

    def _shows_entries(self, way: str, witness: Witness, reached: int | None) -> bool:
        """The same of the versions that a store has of a key."""
        due, held = _entries(witness.expected), _entries(witness.observed.partition(": ")[0])
        changes = self._changes[witness.partition, witness.key]
        missing, beyond = due - held, held - due
        if not beyond <= {(change.time, change.number) for change in changes}:
            return False
        opened = reached or 0
        if way == "too-old":
            late = {(change.time, change.number) for change in changes if change.late and change.offset >= opened}
            return bool(beyond) and beyond <= late and missing <= {min(due, default=None)}
        counting = sorted(change for change in changes if not change.late)

        def has_ended(time: int, number: int) -> bool:
            """Whether it ended, or is a deletion itself, by a change that was processed before."""
            ends = [change for change in counting if change.time > time or (change.time == time and number == NONE)]
            return any(change.offset < opened for change in ends)

        if way == "ended":
            return all(has_ended(*entry) for entry in missing | beyond)
        youngest, versions = self._youngest.get(witness.partition), {entry for entry in beyond if entry[1] != NONE}
        return not missing and bool(versions) and all(self._was_deleted(one, counting, youngest) for one in versions)

    def _was_deleted(self, entry: tuple[int, int], counting: Sequence[TableChange], youngest: int | None) -> bool:
        """Whether a deletion that is older than the history had ended a version before it came."""
        put = max((change.offset for change in counting if (change.time, change.number) == entry), default=-1)
        deletions = (change for change in counting if change.number == NONE and change.time > entry[0])
        return any(change.offset < put and self._is_late(change.time, youngest) for change in deletions)

    def _is_late(self, time: int, youngest: int | None) -> bool:
        return youngest is not None and time < youngest - self._retention


def _numbers(witness: Witness) -> tuple[int, int] | None:
    """The value of the record that asks, and the version that came; None of what is no such result."""
    try:
        (expected, _), (observed, version) = divmod(int(witness.expected), 2**32), divmod(int(witness.observed), 2**32)
    except ValueError:
        return None
    return (observed, version) if expected == observed > 0 else None


def _entries(text: str) -> set[tuple[int, int]]:
    """The versions in a text of the promise `entries`: when each begins, and its number."""
    if text == "nothing":
        return set()
    pairs = (entry.split(" at ") for entry in text.split(" and "))
    return {(int(time), NONE if value == "deleted" else int(value, 16)) for value, time in pairs}
