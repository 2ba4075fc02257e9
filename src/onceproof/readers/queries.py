"""The promise `queries`: the answer to an interactive query holds what it must, and nothing that it must not.

An answer says in its headers which offsets it must hold (streams_app, `QueryClient`): all committed records of the
changelog before its `floor`, none from its `ceiling` on, and what the records of the input before `read` give. The
values of a key grow, so the last one before an offset says all.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from onceproof.model.anomaly import Comparison
from onceproof.model.place import Place
from onceproof.model.record import Facts, Record, Topics
from onceproof.readers.comparisons import as_number, by_place, has_ended

ANSWERS, CHANGELOG = "answers", "last-changelog"


class KeyHistory:
    """The values of each key in a topic; of the key only, as a partition has all of its records."""

    def __init__(self, records: Sequence[Record]) -> None:
        """From the records of the topic."""
        self._offsets: dict[int | None, list[int]] = defaultdict(list)
        values: dict[int | None, list[int]] = defaultdict(list)
        for record in sorted(records, key=by_place):
            self._offsets[record.key].append(record.offset)
            values[record.key].append(as_number(record.value))
        self._greatest = {key: list(accumulate(of_key, max)) for key, of_key in values.items()}

    def before(self, key: int | None, offset: int) -> int:
        """The greatest value of a key before an offset; 0 if there is none."""
        number = bisect_left(self._offsets.get(key, ()), offset)
        return self._greatest[key][number - 1] if number else 0


def compare_queries(topics: Topics, facts: Facts) -> Iterator[Comparison]:
    """Each answer with what it must hold at least and at most.

    Args:
        topics: `input`, `last-changelog`, `answers` (value: the number that was found, 0 for none).
        facts: `ended` is 0 if the drive failed: then not all that answers may have was read.
    """
    inputs, changelog = KeyHistory(topics["input"]), KeyHistory(topics[CHANGELOG])
    put = {(record.key, record.value) for record in topics["input"]}
    for answer in sorted(topics[ANSWERS], key=by_place):
        says, key, value = headers_of(answer), answer.key, as_number(answer.value)
        least = max(changelog.before(key, number(says, "floor")), inputs.before(key, number(says, "read")))
        most = changelog.before(key, number(says, "ceiling"))
        if value and (key, value) not in put and has_ended(facts):
            yield _comparison("unexplained-answer", answer, "a value of the key", says)
        elif value < least:
            yield _comparison("stale-answer", answer, f"{least} or later", says)
        elif value > most and number(says, "ceiling") < UNLIMITED and has_ended(facts):
            yield _comparison("early-answer", answer, f"{most} or earlier", says)
        else:
            yield _comparison(None, answer, f"{least} or later", says)


UNLIMITED = (1 << 63) - 1


def headers_of(answer: Record) -> Mapping[str, str]:
    """The headers of an answer, in hexadecimal digits."""
    return {name: digits for name, _, digits in (header.partition("=") for header in answer.headers.split())}


def number(says: Mapping[str, str], name: str) -> int:
    """A header that is a number."""
    return int(says[name], 16)


def _comparison(anomaly: str | None, answer: Record, expected: str, says: Mapping[str, str]) -> Comparison:
    place = str(Place(ANSWERS, answer.partition, answer.offset))
    observed = f"{as_number(answer.value)}, {bytes.fromhex(says['how']).decode()}"
    return Comparison("queries", anomaly, answer.partition, answer.key, place, expected, observed)
