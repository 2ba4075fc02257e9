"""What is promised of your own application: each breach is seen, and nothing else."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onceproof.model.files import Declared, TopicPlan
from onceproof.model.oracle import Outputs
from onceproof.model.record import Record
from onceproof.readers.application import (
    as_far_as_replayed,
    as_replayed,
    check_application,
    compare_finals,
    compare_output,
    is_unstable,
    oracle_of,
    records_of,
)
from onceproof.readers.kafka import token

IN = Declared("in", "input", "string", "string")
OUT = Declared("out", "output", "string", "string", ("differential",), agreed="records")
EXACTLY = {"exactly_once": 1}
CLEAN = [("a", "1"), ("a", "2"), ("b", "1")]


def records(pairs, serde="string"):
    """Records of one partition."""
    texts = [(key.encode(), None if value is None else value.encode()) for key, value in pairs]
    return [Record(0, n, token(key, "string"), token(value, serde)) for n, (key, value) in enumerate(texts)]


def anomalies(expected, observed, declared=OUT, facts=EXACTLY, entered=()):
    roles = {"in": TopicPlan("in", 4, declared=IN), "out": TopicPlan("out", 4, declared=declared)}
    topics = {"in": records(entered), "out": records(observed), "out-oracle": records(expected)}
    return check_application(roles, topics, facts).anomalies


@pytest.mark.parametrize("agreed", ["records", "final", "keys", "nothing"])
def test_the_same_is_well_in_whatever_order_keys_come(agreed):
    assert anomalies(CLEAN, CLEAN[::-1] if agreed == "records" else CLEAN, replace(OUT, agreed=agreed)) == {}


@pytest.mark.parametrize(
    ("agreed", "observed", "anomaly"),
    [
        ("records", [("a", "1"), ("b", "1")], "lost-record"),
        ("records", [*CLEAN, ("a", "2")], "duplicate-output"),
        ("records", [*CLEAN, ("a", "9")], "unexpected-record"),
        ("records", [*CLEAN, ("c", "1")], "unexpected-record"),
        ("records", [("a", "1"), ("a", "3"), ("b", "1")], "wrong-value"),
        ("final", [("a", "2"), ("a", "1"), ("b", "1")], "wrong-value"),
        ("final", [("a", "2")], "lost-record"),
        ("keys", [("a", "7")], "lost-record"),
        ("keys", [*CLEAN, ("c", "1")], "unexpected-record"),
    ],
)
def test_each_breach_of_the_oracle_is_seen_once(agreed, observed, anomaly):
    assert anomalies(CLEAN, observed, replace(OUT, agreed=agreed)) == {anomaly: 1}


@pytest.mark.parametrize(
    ("agreed", "observed"),
    [
        ("final", [("a", "7"), ("a", "2"), ("b", "1")]),  # what came before does not matter
        ("keys", [("a", "7"), ("b", "8")]),
        ("nothing", []),
        (None, []),
    ],
)
def test_what_is_not_agreed_is_no_promise(agreed, observed):
    assert anomalies(CLEAN, observed, replace(OUT, agreed=agreed)) == {}


FINAL = replace(OUT, agreed="final")


@pytest.mark.parametrize(
    ("expected", "observed"),
    [
        ([*CLEAN, ("c", None)], CLEAN),  # a table has no such key, whether it is deleted or never was there
        (CLEAN, [*CLEAN, ("c", None)]),
        ([*CLEAN, ("c", "1"), ("c", None)], [*CLEAN, ("c", None)]),
        ([("a", None)], []),
    ],
)
@pytest.mark.parametrize("exactly", [1, 0])
def test_of_final_values_one_that_is_null_is_the_same_as_none(expected, observed, exactly):
    assert anomalies(expected, observed, FINAL, {"exactly_once": exactly}) == {}
    assert anomalies(expected, observed) != {}  # of all records it is not


@pytest.mark.parametrize(
    ("expected", "observed", "anomaly"),
    [
        ([("a", "1"), ("a", None)], [("a", "1")], "wrong-value"),  # what was deleted is there
        ([], [("a", "1")], "unexpected-record"),
        ([("a", "1")], [("a", "1"), ("a", None)], "wrong-value"),  # and the other way round
        ([("a", None), ("a", "1")], [], "lost-record"),
    ],
)
def test_a_key_with_a_final_value_differs_from_one_without(expected, observed, anomaly):
    assert anomalies(expected, observed, FINAL) == {anomaly: 1}


@pytest.mark.parametrize("promise", ["replay", "replay-newest"])
def test_a_replay_is_an_oracle_of_its_own(promise):
    promised = replace(OUT, promises=(promise,), agreed="nothing", as_replayed="records")  # whatever runs agree on
    replayed = [*CLEAN[:-1], ("b", "7")]
    others = {f"out-{name}": records(CLEAN) for name in ("oracle", "replay", "replay-newest") if name != promise}
    topics = {"out": records(CLEAN), **others, f"out-{promise}": records(replayed)}
    found = list(compare_output("out", promised, topics, at_least=False))
    assert {(one.promise, one.anomaly) for one in found} == {(promise, None), (promise, "wrong-value")}
    unknown = replace(promised, as_replayed=None)  # nobody has replayed it yet
    assert not list(compare_output("out", unknown, topics, at_least=False))


def test_at_least_once_allows_more_records_and_none_missing():
    at_least = {"exactly_once": 0}
    unique = replace(OUT, promises=("differential", "unique"))
    assert anomalies(CLEAN, [*CLEAN, ("a", "3")], unique, at_least) == {}
    assert anomalies(CLEAN, CLEAN[1:], unique, at_least) == {"lost-record": 1}


def test_a_drive_that_failed_is_not_held_against_the_oracle():
    roles = {"out": TopicPlan("out", 4, declared=OUT)}
    assert check_application(roles, {"out": []}, EXACTLY).promises == {}


def test_a_key_that_must_be_unique_and_is_not():
    assert anomalies([], CLEAN, replace(OUT, promises=("unique",))) == {"duplicate-output": 1}


def test_each_input_once():
    once = replace(OUT, promises=("each-input-once",), of="in")
    assert anomalies([], CLEAN, once, entered=CLEAN) == {}
    assert anomalies([], CLEAN[1:], once, entered=CLEAN) == {"lost-record": 1}
    assert anomalies([], [*CLEAN, ("b", "1")], once, entered=CLEAN) == {"duplicate-output": 1}


def test_a_witness_shows_key_and_values_in_readable_form():
    roles = {"out": TopicPlan("out", 4, declared=OUT)}
    topics = {"out": records(CLEAN[1:]), "out-oracle": records(CLEAN)}
    [witness] = check_application(roles, topics, EXACTLY).witnesses
    assert (witness.expected, witness.observed, witness.offsets) == ("'a': '1', '2'", "'a': '2'", ("out/0@0",))
    assert witness.key == token(b"a")


# --- timestamps and headers -----------------------------------------------------------------------------------

STAMPED = replace(OUT, compare_also=("timestamp", "headers"))


def stamped(*rows):
    """Records of the keys, values, timestamps and headers."""
    return [
        record._replace(timestamp=timestamp, headers=headers)
        for record, (_, _, timestamp, headers) in zip(records([row[:2] for row in rows]), rows, strict=True)
    ]


RUN = [("a", "1", 10, "h=01"), ("a", "2", 20, ""), ("b", "1", 10, "")]


@pytest.mark.parametrize(
    ("agreed", "row", "anomaly", "texts"),
    [
        (
            "records",
            ("a", "1", 11, "h=01"),
            "wrong-timestamp",
            ("'a': '1' at 10, '2' at 20", "'a': '1' at 11, '2' at 20"),
        ),
        ("records", ("a", "1", 10, ""), "wrong-header", None),
        ("records", ("a", "1", 11, ""), "wrong-timestamp", None),  # each key is one witness
        ("records", ("a", "3", 11, ""), "wrong-value", None),
        ("final", ("a", "1", 11, ""), None, None),  # not its last one
        ("keys", ("a", "1", 11, ""), None, None),
    ],
)
def test_timestamps_and_headers_are_compared_on_request(agreed, row, anomaly, texts):
    topics = {"out": stamped(row, *RUN[1:]), "out-oracle": stamped(*RUN)}
    seen = [
        [
            one
            for one in compare_output("out", replace(declared, agreed=agreed), topics, at_least=at_least)
            if one.anomaly
        ]
        for declared, at_least in ((STAMPED, False), (OUT, False), (STAMPED, True))
    ]
    assert [one.anomaly for one in seen[0]] == ([anomaly] if anomaly else [])
    if texts:
        assert [(one.expected, one.observed) for one in seen[0]] == [texts]
    if anomaly != "wrong-value":
        assert seen[1:] == [[], []]


def test_the_last_timestamp_of_final_values_counts_unless_null():
    declared = replace(STAMPED, agreed="final")
    for observed, anomaly in (("2", "wrong-timestamp"), (None, None)):
        topics = {"out": stamped(("a", observed, 21, "")), "out-oracle": stamped(("a", observed, 20, ""))}
        [one] = compare_output("out", declared, topics, at_least=False)
        assert one.anomaly == anomaly


@pytest.mark.parametrize(
    ("second", "also", "differ"),
    [
        (RUN[::-1], ("timestamp", "headers"), ()),
        ([("a", "1", 11, "h=01"), *RUN[1:]], ("headers",), ("timestamp",)),
        ([("a", "1", 10, "h=02"), *RUN[1:]], ("timestamp",), ("headers",)),
        ([("a", "1", 10, "h=02"), ("b", "1", 9, ""), RUN[1]], (), ("timestamp", "headers")),
        ([("a", "7", 11, "")], (), ("timestamp", "headers")),  # no value is the same
    ],
)
def test_differing_timestamps_and_headers_of_runs_are_reported(second, also, differ):
    one, other = (Outputs.of({"out": stamped(*run)}) for run in (RUN, second))
    oracle = oracle_of(one, other, {"out": STAMPED})
    assert (oracle.compare_also["out"], oracle.differ["out"]) == (also, differ)


def test_outputs_of_an_earlier_onceproof_have_neither():
    [record] = records_of(Outputs({"out": ((0, None, None),)}), "out", OUT)
    assert (record.timestamp, record.headers) == (0, "")


# --- the oracle ----------------------------------------------------------------------------------------------

PAIRS = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("123") | st.none()), max_size=12)


def outputs(pairs, serde="string"):
    return Outputs.of({"out": records(pairs, serde)})


def agreement(first, second, serde="string"):
    oracle = oracle_of(outputs(first, serde), outputs(second, serde), {"out": replace(OUT, value=serde)})
    return oracle.agreed["out"], tuple(oracle.ignored["out"])


@given(pairs=PAIRS, chaos=st.randoms())
def test_runs_agree_on_records_whatever_the_order(pairs, chaos):
    other = [*pairs]
    chaos.shuffle(other)
    assert agreement(pairs, other) == ("records", ())


@given(pairs=PAIRS)
def test_what_the_oracle_put_out_is_well(pairs):
    oracle = oracle_of(outputs(pairs), outputs(pairs), {"out": OUT})
    roles = {"out": TopicPlan("out", 4, declared=OUT)}
    topics = {"out": records(pairs), "out-oracle": records_of(oracle.outputs, "out", OUT)}
    found = check_application(roles, topics, EXACTLY)
    assert found.anomalies == {}
    assert found.promises.get("differential", 0) == len({key for key, _ in pairs})


@pytest.mark.parametrize(
    ("second", "agreed"),
    [
        ([("a", "7"), ("a", "2"), ("b", "1")], "final"),
        ([("a", "2"), ("a", "1"), ("b", "2")], "keys"),
        ([("a", "1")], "nothing"),
    ],
)
def test_runs_agree_on_less(second, agreed):
    assert agreement(CLEAN, second) == (agreed, ())


@pytest.mark.parametrize("compare", ["records", "final"])
def test_runs_agree_on_a_table_whatever_was_deleted_on_the_way(compare):
    oracle = oracle_of(outputs([*CLEAN, ("c", None)]), outputs(CLEAN), {"out": replace(OUT, compare=compare)})
    assert oracle.agreed["out"] == "final"
    oracle = oracle_of(outputs([*CLEAN, ("c", "1")]), outputs(CLEAN), {"out": replace(OUT, compare=compare)})
    assert oracle.agreed["out"] == "nothing"


@pytest.mark.parametrize("compare", ["final", "keys"])
def test_no_more_is_agreed_than_what_is_to_be_compared(compare):
    oracle = oracle_of(outputs(CLEAN), outputs(CLEAN), {"out": replace(OUT, compare=compare)})
    assert oracle.agreed["out"] == compare


def as_json(pairs, **further):
    return [(key, json.dumps({"n": value, **further})) for key, value in pairs]


def test_fields_on_which_runs_differ_are_named_and_left_out():
    first, second = as_json(CLEAN, at=1, by={"x": 1}), as_json(CLEAN, at=2, by={"x": 2})
    assert agreement(first, second, "json") == ("records", ("at", "by"))
    declared = replace(OUT, value="json", agreed="records", ignored=("at", "by"))
    oracle = oracle_of(outputs(first, "json"), outputs(second, "json"), {"out": declared})
    assert [str(record.value) for record in records_of(oracle.outputs, "out", declared)] == [
        '{"n": "1"}',
        '{"n": "2"}',
        '{"n": "1"}',
    ]


def test_fields_are_looked_for_in_last_values_too():
    first, second = as_json(CLEAN, at=1), as_json(CLEAN[1:], at=2)
    assert agreement(first, second, "json") == ("final", ("at",))


REPLAYED = replace(OUT, promises=("replay",))


@pytest.mark.parametrize(
    ("compare", "second", "level"),
    [
        ("records", CLEAN, "records"),
        ("records", CLEAN[1:], "final"),  # runs show that not all records are determined
        ("records", [("a", "9")], "final"),  # and yet the last ones are promised
        ("final", CLEAN, "final"),
        ("final", [("a", "9")], "final"),
        ("keys", [], "keys"),
    ],
)
def test_a_replay_is_compared_as_declared_whatever_runs_agree_on(compare, second, level):
    declared = {"out": replace(REPLAYED, compare=compare)}
    assert as_replayed(oracle_of(outputs(CLEAN), outputs(second), declared), declared) == {"out": level}


@pytest.mark.parametrize(
    ("second", "expected", "unstable"),
    [
        (CLEAN, {}, []),
        ([*CLEAN[1:], ("c", None)], {}, []),  # the same table
        ([*CLEAN, ("a", "9"), ("c", "1")], {}, ["'a'", "'c'"]),
        ([*CLEAN, ("b", None)], {}, ["'b'"]),
        ([*CLEAN, ("a", "9")], {"compare": "records"}, []),  # nobody has said that final values are the same
        ([*CLEAN, ("a", "9")], {"promises": ("unique",)}, []),
    ],
)
def test_declared_final_values_that_differ_are_named_with_keys(second, expected, unstable):
    declared = replace(REPLAYED, **{"compare": "final", **expected})
    oracle = oracle_of(outputs(CLEAN), outputs(second), {"out": declared})
    found = list(compare_finals(records(CLEAN), records(second), "out")) if is_unstable(oracle, "out", declared) else []
    assert sorted(one.expected.partition(":")[0] for one in found) == unstable
    assert {one.anomaly for one in found} <= {"unstable-final"}


def test_a_recorded_output_is_found_at_its_place():
    there = [replace_offset(record, 7 + n) for n, record in enumerate(records(CLEAN))]
    assert [record.offset for record in records_of(Outputs.of({"out": there}), "out", OUT)] == [7, 8, 9]


def replace_offset(record, offset):
    return record._replace(offset=offset)


EVERY = [("a", "1"), ("a", "2"), ("b", "1"), ("a", "3")]


@pytest.mark.parametrize(
    ("run", "agreed"),
    [
        ([("a", "2"), ("b", "1"), ("a", "3")], "final"),  # a cache held back that a was 1
        ([("b", "1"), ("a", "3")], "final"),
        (EVERY, "records"),  # nothing was held back
        ([("a", "1"), ("a", "2"), ("b", "1")], "records"),  # nor is what comes last
        ([("a", "2"), ("a", "1"), ("b", "1"), ("a", "3"), ("a", "3")], "records"),
        ([("a", "2"), ("a", "1"), ("a", "3"), ("b", "1"), ("b", "1")], "records"),
        ([("a", "3")], "records"),  # a key is lost
        ([("b", "2"), ("b", "1"), ("a", "3")], "records"),  # or is what it never was
        ([("b", "1"), ("a", "3"), ("c", None)], "records"),
    ],
)
@pytest.mark.parametrize("where", ["replayed", "replayed_on_newest"])
def test_two_runs_agree_by_chance_on_what_a_cache_holds_back(run, agreed, where):
    oracle = oracle_of(outputs(run), outputs(run), {"out": OUT})
    assert oracle.agreed == {"out": "records"}
    assert as_far_as_replayed(replace(oracle, **{where: outputs(EVERY)})).agreed == {"out": agreed}


@pytest.mark.parametrize(("run", "agreed"), [(EVERY, "final"), ([("a", "1"), ("b", "1")], "records")])
def test_without_a_replay_recurring_keys_may_agree_incidentally(run, agreed):
    oracle = oracle_of(outputs(run), outputs(run), {"out": OUT})
    assert as_far_as_replayed(oracle).agreed == {"out": agreed}


@pytest.mark.parametrize(("last", "agreed"), [(None, "final"), ("1", "records")])
def test_a_cache_holds_back_a_key_deleted_before_emission(last, agreed):
    oracle = replace(
        oracle_of(outputs(CLEAN), outputs(CLEAN), {"out": OUT}), replayed=outputs([*CLEAN, ("c", "0"), ("c", last)])
    )
    assert as_far_as_replayed(oracle).agreed == {"out": agreed}


@pytest.mark.parametrize("compare", ["final", "keys"])
def test_held_back_output_is_reported_within_the_level_compared(compare):
    run = [("b", "1"), ("a", "3")]
    oracle = oracle_of(outputs(run), outputs(run), {"out": replace(OUT, compare=compare)})
    assert as_far_as_replayed(replace(oracle, replayed=outputs(EVERY))).agreed == {"out": compare}
