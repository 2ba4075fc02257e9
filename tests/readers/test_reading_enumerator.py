"""The enumerator's promises on a few records: each breach is seen once, with its places and its words."""

from typing import Any

import pytest

from onceproof.model.anomaly import Witness
from onceproof.model.record import Record
from onceproof.readers.checks import CHECKS
from onceproof.readers.enumerator import check

INPUT = [(0, 0, 10, None), (0, 1, 11, None), (0, 2, 10, None), (1, 0, 20, None)]
OUTPUT = [(0, 0, 10, 0), (0, 1, 11, 2), (0, 2, 10, 0), (1, 0, 20, 1)]  # with two partitions: even, and odd
IDS = [(0, 0, 10, 0), (0, 1, 11, 2), (1, 0, 20, 1)]
COUNTER = [(0, 0, 0, 0), (0, 1, 0, 1), (1, 0, 0, 0)]  # of the partition's last ID


def judge(output=OUTPUT, ids=IDS, counter=COUNTER, entered=INPUT):
    of_role = {"input": entered, "output": output, "ids-changelog": ids, "counter-changelog": counter}
    return check({role: [Record(*row) for row in rows] for role, rows in of_role.items()}, {"partitions": 2})


def seen(name: str, **changed: Any) -> list[Witness]:
    return sorted((w for w in judge(**changed).witnesses if w.anomaly == name), key=str)


def test_nothing_is_wrong_with_what_the_enumerator_must_do():
    found = judge()
    assert found.witnesses == []
    assert (found.records, found.outputs, found.keys, found.ids) == (4, 4, 3, 3)
    assert {name: found.promises[name] for name in ("identities", "counters")} == {"identities": 3, "counters": 6}


def test_an_id_of_several_keys_is_reported_with_first_places():
    twice = [*OUTPUT[:3], (1, 0, 20, 0)]
    places = ("output/0@0", "output/1@0")
    assert seen("duplicate-id", output=twice) == [
        Witness("duplicate-id", 0, None, (0,), places, "one key", "2 keys: 10, 20")
    ]
    assert seen("wrong-id", output=twice) == []  # it has a name already
    many = [(1, n, 20 + n, 1) for n in range(7)]
    [witness] = seen("duplicate-id", output=many, ids=many)
    assert (witness.partition, witness.offsets) == (1, tuple(f"output/1@{n}" for n in range(5)))
    assert witness.observed == "7 keys: 20, 21, 22, 23, 24"


def test_a_key_with_several_ids_is_reported_with_first_places():
    other = [*OUTPUT[:2], (0, 2, 10, 4), OUTPUT[3]]
    places = ("output/0@0", "output/0@2")
    assert seen("unstable-id", output=other) == [Witness("unstable-id", 0, 10, (0, 4), places, "one ID", "2 IDs: 0, 4")]
    assert seen("wrong-id", output=other) == []


def test_an_id_that_its_key_does_not_have_by_the_replay_is_wrong():
    other = [*OUTPUT[:3], (1, 0, 20, 3)]
    assert seen("wrong-id", output=other) == [Witness("wrong-id", 1, 20, (3,), ("output/1@0",), "1", "3")]
    assert seen("wrong-id", output=[*OUTPUT, (1, 1, 99, 5)]) == []  # of a key that never came in


@pytest.mark.parametrize(
    ("values", "regressions"),
    [
        ([0, 1, 2], []),
        ([1, 1], [("more than 1", "1", 0, 1)]),
        ([2, 0, 1], [("more than 2", "0", 0, 1)]),
        ([1, None, 0, 1], [("more than 1", "nothing", 0, 1)]),  # what follows starts afresh
        ([None, 0], []),
        ([3, 2, 1], [("more than 3", "2", 0, 1), ("more than 2", "1", 1, 2)]),
    ],
)
def test_a_counter_only_grows(values, regressions):
    counter = [(1, offset, 0, value) for offset, value in enumerate(values)]
    expected = [
        Witness("counter-regression", 1, 0, (), tuple(f"counter-changelog/1@{at}" for at in places), more, value)
        for more, value, *places in regressions
    ]
    assert seen("counter-regression", counter=counter) == sorted(expected, key=str)
    both = [(0, offset, 0, value) for offset, value in enumerate([7, 8])] + counter
    assert len(seen("counter-regression", counter=both)) == len(expected)  # each partition has its own


def mismatch(partition, key, ids, places, output, store):
    return Witness("changelog-output-mismatch", partition, key, ids, places, output, store)


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([*IDS[:2], (1, 0, 20, 3)], [mismatch(1, 20, (3, 1), ("ids-changelog/1@0", "output/1@0"), "1", "3")]),
        (IDS[:2], [mismatch(1, 20, (1,), ("output/1@0",), "1", "nothing")]),
        ([*IDS, (0, 2, 12, 4)], [mismatch(0, 12, (4,), ("ids-changelog/0@2",), "nothing", "4")]),
        ([*IDS, (1, 1, 20, None)], [mismatch(1, 20, (1,), ("ids-changelog/1@1", "output/1@0"), "1", "nothing")]),
        ([*IDS, (0, 2, 12, 4), (0, 3, 12, None)], []),  # deleted again
        ([(0, 9, 10, 0), (0, 1, 11, 2), (1, 0, 20, 1), (0, 0, 10, 6)], []),  # in the order of their places
    ],
)
def test_the_store_of_ids_has_what_came_out(ids, expected):
    assert seen("changelog-output-mismatch", ids=ids) == expected


@pytest.mark.parametrize(
    ("counter", "expected"),
    [
        ([*COUNTER[:2], (1, 0, 0, 1)], [mismatch(1, 0, (), ("counter-changelog/1@0", "output/1@0"), "0", "1")]),
        (COUNTER[:1], [(0, "1", "0"), (1, "0", "nothing")]),
        ([*COUNTER, (2, 0, 0, 5)], [mismatch(2, 0, (), ("counter-changelog/2@0",), "nothing", "5")]),
    ],
)
def test_the_counter_ends_where_the_ids_do(counter, expected):
    found = seen("changelog-output-mismatch", counter=counter)
    if isinstance(expected[0], Witness):
        assert found == expected
    else:
        assert [(w.partition, w.expected, w.observed) for w in found] == expected


def test_the_counter_is_held_against_the_highest_id_not_the_last():
    late = [(0, 0, 11, 2), (0, 1, 10, 0), (1, 0, 20, 1)]
    entered = [(0, 0, 11, None), (0, 1, 10, None), (1, 0, 20, None)]
    ids = [(0, 0, 11, 2), (0, 1, 10, 0), (1, 0, 20, 1)]
    assert seen("changelog-output-mismatch", output=late, ids=ids, entered=entered) == []
    assert {w.key for w in seen("duplicate-id", output=late, ids=ids, entered=entered)} == set()


def whole(facts=(), **other):
    """What the whole check finds, of records that have their times."""
    of_role = {"input": INPUT, "output": OUTPUT, "ids-changelog": IDS, "counter-changelog": COUNTER, **other}
    topics = {role: [Record(*row) for row in rows] for role, rows in of_role.items()}
    return CHECKS["enumerator"](topics, {"partitions": 2, "exactly_once": 1, "cached": 0, **dict(facts)}).witnesses


def test_the_whole_check_covers_the_order_and_each_changelog():
    assert whole() == []
    swapped = [OUTPUT[0], (0, 1, 10, 0), (0, 2, 11, 2), OUTPUT[3]]
    assert {w.anomaly for w in whole(output=swapped)} == {"wrong-order"}
    assert "wrong-timestamp" in {w.anomaly for w in whole(output=[*OUTPUT[:3], (1, 0, 20, 1, 77)])}
    for role, rows in (("ids-changelog", IDS), ("counter-changelog", COUNTER)):
        late = [*rows[:-1], (*rows[-1], 77)]
        [found] = whole(**{role: late})
        assert (found.anomaly, found.offsets, found.observed) == ("wrong-timestamp", (f"{role}/1@0",), "77")
        assert whole({"cached": 1}, **{role: late}) == ([found] if role == "ids-changelog" else [])


@pytest.mark.parametrize(("store", "key"), [("counter", 0), ("ids", 11)])
def test_after_a_kill_both_stores_hold_what_was_committed(store, key):
    ends = {"counter_end": 2, "ids_end": 2}
    held = {"counter-contents": [(0, 0, 0, 1)], "ids-contents": [(0, 0, 10, 0), (0, 1, 11, 2)]}
    known = {"ids-changelog": IDS[:2], "counter-changelog": COUNTER[:2], "output": OUTPUT[:3], "input": INPUT[:3]}
    assert whole(ends, **held, **known) == []
    without = [row for row in held[f"{store}-contents"] if row[2] != key]
    lost = whole(ends, **{**held, **known, f"{store}-contents": without})
    assert [(w.anomaly, w.key) for w in lost] == [("lost-state", key)]
