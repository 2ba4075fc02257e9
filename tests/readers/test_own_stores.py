"""The answers of a store of your own application: each that goes back or ahead is seen, and no other."""

import pytest

from onceproof.model.files import Declared, TopicPlan
from onceproof.model.record import Record
from onceproof.readers.application import check_application
from onceproof.readers.kafka import token
from onceproof.readers.own_stores import compare_answers

UNLIMITED = (1 << 63) - 1
ROLES = {
    "answers-counts": TopicPlan(
        "answers-counts", 4, declared=Declared("x-answers-counts", "answers", "bytes", "bytes")
    ),
    "counts-changelog": TopicPlan("counts", 4, declared=Declared("x-counts-changelog", "changelog", "bytes", "bytes")),
}
A_THEN_B_THEN_C = [(0, "A"), (1, "B"), (3, "C")]


def of(value):
    return None if value is None else token(value.encode())


def changes(values):
    return [Record(0, offset, of("key"), of(value)) for offset, value in values]


def judged(value, floor, ceiling, committed, aborted=(), ended=1):
    """The comparisons of an answer that must hold what is before the floor, and nothing from the ceiling on."""
    headers = f"floor={floor:016x} ceiling={ceiling:016x} read={0:016x} how={b'instance-1 store'.hex()}"
    topics = {
        "answers-counts": [Record(0, 0, of("key"), of(value), 0, headers)],
        "counts-changelog": changes(committed),
        "counts-changelog-all": changes(sorted([*committed, *aborted])),
    }
    found = check_application(ROLES, topics, {"exactly_once": 1, "ended": ended})
    return [one.split()[0] for one in found.anomalies], found.promises.get("queries", 0)


@pytest.mark.parametrize(
    ("value", "floor", "ceiling", "anomalies", "compared"),
    [
        ("B", 2, UNLIMITED, [], 1),  # the last one before the floor
        ("C", 2, UNLIMITED, [], 1),  # or any one after it
        ("A", 2, UNLIMITED, ["stale-answer"], 1),
        (None, 2, UNLIMITED, ["stale-answer"], 1),
        (None, 0, UNLIMITED, [], 1),  # nothing had to be there
        ("X", 2, UNLIMITED, [], 0),  # put, and never sent
        ("B", 2, 3, [], 1),
        ("A", 2, 3, ["stale-answer"], 1),
        ("C", 2, 3, ["early-answer"], 1),
        ("X", 2, 3, [], 0),  # written otherwise by its serializer
    ],
)
def test_an_answer_lies_between_its_floor_and_its_ceiling(value, floor, ceiling, anomalies, compared):
    assert judged(value, floor, ceiling, A_THEN_B_THEN_C) == (anomalies, compared)


@pytest.mark.parametrize(("value", "deleted"), [("A", False), (None, True)])
def test_a_repeated_value_may_have_been_put_and_never_sent(value, deleted):
    committed = [(0, "A"), (1, None if deleted else "A"), (2, "B")]
    assert judged(value, 3, UNLIMITED, committed) == ([], 0)
    assert judged(value, 3, 4, committed) == (["stale-answer"], 1)  # of a standby, which has what was committed


def test_an_aborted_value_may_come_from_an_active_store_only():
    committed, aborted = [(0, "A"), (5, "B")], [(2, "X")]
    assert judged("X", 1, UNLIMITED, committed, aborted) == ([], 1)
    assert judged("X", 1, 6, committed, aborted) == (["early-answer"], 1)


def test_a_witness_shows_key_and_values_in_readable_form():
    headers = f"floor={2:016x} ceiling={UNLIMITED:016x} read={0:016x} how={b'instance-1 store'.hex()}"
    answers = [Record(0, 7, token(b"key", "string"), token(b"A", "string"), 0, headers)]
    changelog = [Record(0, n, token(b"key", "string"), token(text, "string")) for n, text in enumerate((b"A", b"B"))]
    [stale] = compare_answers(answers, changelog, changelog, {}, "answers-counts")
    shown = (stale.place, stale.expected, stale.observed)
    assert shown == ("answers-counts/0@7", "'key': 'B' or later", "'key': 'A', instance-1 store")


def test_nothing_is_said_of_answers_if_the_drive_failed():
    assert judged("A", 2, UNLIMITED, A_THEN_B_THEN_C, ended=0) == ([], 0)
