"""Edges of the independent reader's rules: a first offset, a producer 0, a value of 0, two faults one after the other."""

from dataclasses import replace
from itertools import repeat

import pytest

from onceproof.model.record import Record
from onceproof.readers.answers import compare_answers
from onceproof.readers.contents import LogCheck, compare_contents
from onceproof.readers.joins import by_key, with_entries
from onceproof.readers.kafka import decode_integer
from onceproof.readers.queries import compare_queries
from onceproof.readers.segments import compare_segments
from onceproof.readers.windows import Update, Window, _hold_back
from tests.specimens.segments import HEALTHY, OUTPUT, PRODUCER


def test_a_long_is_read_as_eight_bytes():
    assert decode_integer(b"\0\0\0\1\0\0\0\2", 8) == (1 << 32) + 2


def test_a_record_of_value_0_is_no_entry_of_the_table():
    zero, asks = Record(0, 0, 5, 0), Record(0, 1, 9, 6)
    assert [record.value for record in with_entries([zero, asks], added=7)] == [0, 6 << 32]


def test_a_total_begins_with_a_result_and_has_its_time():
    deletes, left, right = (Record(0, n, 3, value, 10 + n) for n, value in enumerate((1, 2, -4)))
    assert [record.key for record in by_key([deletes], 0)] == [3]  # there never was a result
    gone = Record(0, 3, 3, 1, 50)
    *_, total = by_key([left, right, gone], 0)
    assert (total.key, total.value, total.timestamp) == (1_000_003, 0, 50)


def test_answers_without_a_request_are_shown_at_the_last_one():
    answers = [Record(0, n, 8, 1) for n in range(3)]
    [found] = compare_answers([], answers)
    assert (found.anomaly, found.place) == ("unexpected-record", "output/0@2")
    [found] = compare_answers([], answers[:1])
    assert found.place == "output/0@0"


def an_answer(value, **says):
    digits = {"how": b"store".hex()} | {name: format(number, "x") for name, number in says.items()}
    headers = " ".join(f"{name}={text}" for name, text in digits.items())
    return Record(0, 0, 1, value, headers=headers)


@pytest.mark.parametrize(
    ("ceiling", "anomaly"), [(2**63 - 1, None), (2**63 - 2, "early-answer")], ids=["no ceiling", "the greatest one"]
)
def test_an_answer_may_be_anything_only_without_a_ceiling(ceiling, anomaly):
    topics = {
        "input": [Record(0, 20, 1, 7)],
        "last-changelog": [],
        "answers": [an_answer(7, floor=0, read=0, ceiling=ceiling)],
    }
    [found] = compare_queries(topics, {"ended": 1})
    assert found.anomaly == anomaly


def test_offsets_of_an_answer_are_hexadecimal():
    changelog = [Record(0, offset, 1, offset) for offset in range(1, 20)]
    topics = {"input": changelog, "last-changelog": changelog, "answers": [an_answer(15, floor=16, read=0, ceiling=18)]}
    [found] = compare_queries(topics, {"ended": 1})
    assert (found.anomaly, found.expected) == (None, "15 or later")


def of_producer(number, entries):
    return [replace(entry, producer=number) if entry.producer == PRODUCER else entry for entry in entries]


def test_a_producer_0_is_judged_as_others_are():
    all_ = [
        [(c.promise, c.anomaly, c.place) for c in compare_segments(entries, HEALTHY.topics, "counting", HEALTHY.facts)]
        for entries in (HEALTHY.entries, of_producer(0, HEALTHY.entries))
    ]
    assert all_[0] == all_[1]


def test_next_to_a_punctuator_the_key_0_is_judged():
    """It writes keys below 0 only."""
    observed = []
    for key in (0, -1):
        strange = [record._replace(key=key) if record.offset == 0 else record for record in HEALTHY.topics[OUTPUT]]
        topics, facts = HEALTHY.topics | {OUTPUT: strange}, HEALTHY.facts | {"punctuated": 1}
        found = compare_segments(HEALTHY.entries, topics, "counting", facts)
        observed += [c.observed for c in found if c.anomaly == "torn-transaction"]
    assert observed == ["committed, 3 effects, 1 missing, 1 foreign", "committed, 2 effects, 1 missing"]


def breaches(log, inputs, written, *, exactly_once=True):
    _, *others = compare_contents(log, {"input": inputs, log.role: written}, exactly_once=exactly_once)
    return [(other.anomaly, other.key) for other in others]


def test_two_records_of_one_input_have_no_order():
    twice = LogCheck(
        "changelog", "twice", replay=lambda records: (one for record in records for one in repeat(record, 2))
    )
    [one] = inputs = [Record(0, 0, 1, 5, 10)]
    written = [one, one._replace(offset=1, timestamp=11)]
    assert breaches(twice, inputs, written) == [("wrong-timestamp", 1)]


@pytest.mark.parametrize(
    ("log", "exactly_once"),
    [
        (LogCheck("output", "output"), False),
        (LogCheck("changelog", "c", folded=True, counted=True), True),
        (LogCheck("changelog", "c", folded=True, history=True), True),
    ],
    ids=["at least once", "folded and counted elsewhere", "with a history"],
)
def test_each_of_several_records_is_named(log, exactly_once):
    inputs = [Record(0, n, key, 5, 10) for n, key in enumerate((1, 2, 3, 4))]
    # The first is lost, the others have another value.
    written = [Record(0, n, key, 6, 10) for n, key in enumerate((2, 3, 4))]
    lost = [] if log.counted else [("lost-record", 1)]
    found = breaches(log, inputs, written, exactly_once=exactly_once)
    assert sorted(found, key=str) == sorted([*lost, *(("wrong-value", key) for key in (2, 3, 4))], key=str)


def test_a_history_names_each_record_that_no_input_gave():
    inputs = [Record(0, 0, 1, 5, 10)]
    written = [Record(0, 0, 1, 7, 10), Record(0, 1, 1, 8, 10), Record(0, 2, 1, 5, 10)]
    log = LogCheck("changelog", "c", folded=True, history=True)
    assert breaches(log, inputs, written) == [("unexpected-record", 1)] * 2


def test_the_first_record_of_a_task_begins_a_wait():
    """Its offset is 0. The next update comes before the wait is over, and takes its place."""
    first, second, later = Record(0, 0, 1, 1, 0), Record(0, 1, 1, 1, 1), Record(0, 2, 2, 1, 100)
    window, made = Window(1, 0, 10), [Update(1, 0, first), Update(2, 1, second)]
    assert _hold_back([first, second, later], {window: made}, 50) == {window: [made[1]]}
    assert _hold_back([first, second], {window: made}, 0) == {window: made}


def test_a_punctuator_writes_under_keys_below_0():
    [one] = inputs = [Record(0, 0, 0, 5, 10)]
    log = LogCheck("changelog", "c", punctuated=True)
    assert breaches(log, inputs, [one, Record(0, 1, -1, 9, 11)]) == []
    assert breaches(log, inputs, [one._replace(value=6)]) == [("wrong-value", 0)]
