"""The parser of dumps understands what real brokers of each format print, or fails: it never skips a record."""

import io
import json
import random
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onceproof.lab.log_dump import LogDump, Logs
from onceproof.lab.segments import check_complete
from onceproof.model.errors import HarnessError
from onceproof.model.record import Record
from onceproof.model.segments import LogEntry

# Of real trials, one for each format in which brokers print: the beginning of each log. Application id: `app`.
FOLDER = Path(__file__).parents[1] / "specimens" / "dumps"
DUMPS = sorted(file.stem for file in FOLDER.glob("*.txt"))
TOPICS = {"app-input": "input", "app-output": "output", "app-seen-changelog": "seen-changelog"}
TOPICS |= {"app-counter-changelog": "counter-changelog", "app-ids-changelog": "ids-changelog"}


def split(text: bytes) -> list[bytes]:
    """Lines as a file gives them: bytes of records may have other ends of lines."""
    return list(io.BytesIO(text))


@cache
def lines_of(name: str) -> tuple[bytes, ...]:
    return tuple(split((FOLDER / f"{name}.txt").read_bytes()))


def parsed(lines: tuple[bytes, ...] | list[bytes]) -> list[LogEntry] | HarnessError:
    try:
        return list(LogDump(Logs("app", TOPICS)).entries(lines))
    except HarnessError as error:
        return error


@cache
def whole(name: str) -> list[LogEntry]:
    entries = parsed(lines_of(name))
    assert isinstance(entries, list)
    return entries


def is_error_or_whole(name: str, lines: list[bytes]) -> bool:
    """Whether nothing goes unnoticed: of what is missing at the end of a log, the log's end tells."""
    dump, of_all = (LogDump(Logs("app", TOPICS)) for _ in range(2))
    list(of_all.entries(lines_of(name)))
    try:
        found = list(dump.entries(lines))
    except HarnessError:
        return True
    return found == whole(name) or any(dump.ends.get(log, 0) < end for log, end in of_all.ends.items())


@pytest.mark.parametrize("name", DUMPS)
def test_what_brokers_of_each_format_print_is_understood(name: str) -> None:
    kinds = Counter(entry.kind for entry in whole(name))
    assert {"data", "COMMIT", "position", "PrepareCommit"} <= kinds.keys()
    positions = [entry for entry in whole(name) if entry.kind == "position"]
    assert all(entry.of_role == "input" and entry.transactional for entry in positions)
    decided = {entry.of_role for entry in whole(name) if entry.kind == "PrepareCommit"}
    assert {"output", "__consumer_offsets"} <= decided


cases = st.sampled_from(DUMPS).flatmap(lambda name: st.tuples(st.just(name), st.integers(0, len(lines_of(name)) - 1)))


@given(cases, st.data())
def test_a_cut_line_is_an_error_or_lacks_nothing_that_is_read(case: tuple[str, int], data: st.DataObject) -> None:
    name, number = case
    lines = list(lines_of(name))
    lines[number] = lines[number][: data.draw(st.integers(0, len(lines[number]) - 1))]
    assert is_error_or_whole(name, split(b"".join(lines)))


@given(cases, st.data())
def test_an_unfinished_dump_is_an_error_or_ends_earlier(case: tuple[str, int], data: st.DataObject) -> None:
    name, number = case
    lines = list(lines_of(name))[: number + 1]
    lines[-1] = lines[-1][: data.draw(st.integers(0, len(lines[-1])))]
    assert is_error_or_whole(name, split(b"".join(lines)))


@given(cases)
def test_a_line_that_is_missing_is_an_error_or_was_not_read(case: tuple[str, int]) -> None:
    name, number = case
    assert is_error_or_whole(name, [line for n, line in enumerate(lines_of(name)) if n != number])


@given(st.sampled_from(DUMPS), st.integers())
def test_the_order_of_fields_does_not_matter(name: str, seed: int) -> None:
    rng = random.Random(seed)

    def shuffled(value: object) -> object:
        if isinstance(value, dict):
            return {key: shuffled(value[key]) for key in rng.sample(list(value), len(value))}
        return [shuffled(one) for one in value] if isinstance(value, list) else value

    def reordered(line: bytes) -> bytes:
        found = re.fullmatch(rb"(.* key: )(\{.*\})( payload: )(\{.*\})\n", line)
        if found is None:
            return line
        key, value = (json.dumps(shuffled(json.loads(found[n])), separators=(",", ":")).encode() for n in (2, 4))
        return found[1] + key + found[3] + value + b"\n"

    assert parsed([reordered(line) for line in lines_of(name)]) == whole(name)


@pytest.mark.parametrize(
    ("expected", "other"),
    [
        (rb'"transactionStatus":"?\w+"?', b'"transactionStatus":"Prepared"'),
        (rb'"transactionStatus":"?\w+"?', b'"transactionStatus":99'),
        (rb'"transactionStatus":"?\w+"?', b'"transactionStatus":-1'),
        (rb'"transactionStatus":', b'"status":'),
        (rb'"transactionPartitions":', b'"partitions":'),
        (rb'"producerId":', b'"id":'),
        (rb'"type":"1"', b'"type":"OffsetCommit"'),
        (rb'"type":"0","data":\{"transactionalId"', b'"type":"1","data":{"transactionalId"'),
        (rb'"offset":\d+', b'"offset":null'),
        (rb'"group":', b'"groupId":'),
        (rb"state=\w+", b"state=Prepared"),
        (rb"offset_commit::", b"commit::"),
        (rb"offset=\d+,", b"offset=Optional[3],"),
        (rb"transaction_metadata::", b"transaction::"),
        (rb"endTxnMarker: COMMIT", b"endTxnMarker: PREPARED"),
        (rb"endTxnMarker: ", b"marker: "),
        (rb"baseOffset: (\d+)", rb"firstOffset: \1"),
        (rb"isTransactional: ", b"transactional: "),
        (rb"Dumping ", b"File "),
    ],
)
def test_names_that_are_not_known_are_an_error(expected: bytes, other: bytes) -> None:
    """Whatever a release prints in words of its own."""
    changed = {name: [re.sub(expected, other, line) for line in lines_of(name)] for name in DUMPS}
    concerned = [lines for name, lines in changed.items() if lines != list(lines_of(name))]
    assert concerned
    assert all(isinstance(parsed(lines), HarnessError) for lines in concerned)


def complete(entries: list[LogEntry], **changed: object) -> None:
    ends = {("output", 0): 3}
    topics = {"output": [Record(0, 1, 5, 5)]}
    check_complete(entries, ends, **{"topics": topics, "positioned": True} | changed)  # type: ignore[arg-type]


MARKER = LogEntry("COMMIT", "output", 0, 2, 2, 4, 0)
DECISION = LogEntry("PrepareCommit", "__transaction_state", 0, 0, 0, 4, 0, of_role="output", of_partition=0)
POSITION = LogEntry("position", "__consumer_offsets", 0, 0, 0, 4, 0, of_role="input", of_partition=0, position=1)


def test_logs_hold_what_was_consumed_and_what_was_committed() -> None:
    complete([MARKER, DECISION, POSITION])
    complete([], positioned=False)
    with pytest.raises(HarnessError, match="end at offset 3, but a consumer read the record at 3"):
        complete([MARKER, DECISION, POSITION], topics={"output": [Record(0, 3, 5, 5)]})
    with pytest.raises(HarnessError, match="end at offset 0, but a consumer read the record at 0"):
        complete([MARKER, DECISION, POSITION], topics={"other": [Record(0, 0, 5, 5)]})
    with pytest.raises(HarnessError, match=r"marker COMMIT at offset 2, but no record of __transaction_state"):
        complete([MARKER, POSITION])
    with pytest.raises(HarnessError, match="no record of __consumer_offsets commits a position"):
        complete([MARKER, DECISION])
