"""Known issues in what fuzzing finds red: what explains a red, and what does not."""

from collections.abc import Callable

import pytest

from onceproof.campaigns.fuzz.grammar import BEGIN, MEMORY, SHORT, VERSIONED, Case, InputRecord, Step
from onceproof.campaigns.fuzz.known import CAUSES, causes_in, explain
from onceproof.campaigns.fuzz.relational import Difference, JudgedCase, head
from onceproof.model.known_issues import registry
from onceproof.model.release import Release
from tests.published import NEWEST

BEFORE = Release(3, 8, 1)
SAME_KEY, INSERT = "KIP-213, same key (no JIRA)", "KIP-213, insert (no JIRA)"
UNCACHED, SHARED = "uncached count (no JIRA)", "shared filter (no JIRA)"
STORE = {"store": MEMORY, "cached": False}
LEFT, RIGHT = Step("l", "burst", ("rows",), STORE), Step("r", "table", ("others",), STORE)
INNER = Step("j", "foreignKeyJoin", ("l", "r"), {"left": False, **STORE})
GREEN = JudgedCase()


def red(kind: str = "unexpected", topic: str = "j", shown: str = "a = a|0/a|0") -> JudgedCase:
    return JudgedCase((Difference(topic, kind, shown),))


def rows(*values: str | None) -> tuple[InputRecord, ...]:
    return (InputRecord("others", BEGIN, "a", "a|0"), *(InputRecord("rows", BEGIN, "a", value) for value in values))


def red_if(is_red: Callable[[Case], bool], judged: JudgedCase) -> Callable[[Case], JudgedCase]:
    """A release that is red where something holds of a case."""
    return lambda case: judged if is_red(case) else GREEN


def same_key(case: Case) -> bool:
    return any(record.value == "z|0;z|1" for record in case.records)


def is_burst(case: Case) -> bool:
    return any(";" in (record.value or "") for record in case.records)


def test_causes_are_in_the_registry_and_fuzz_issues_have_a_cause():
    keys = {key for cause in CAUSES for key in cause.shows.values()}
    assert keys <= {issue.key for issue in registry().issues}
    assert keys >= {issue.key for issue in registry().issues if issue.fuzz}


def test_a_stale_result_is_known_by_what_its_updates_have_to_be():
    case = Case((LEFT, RIGHT, INNER), rows("a|0", "z|0;z|1"))
    known = explain(case, red(), causes_in(NEWEST), red_if(same_key, red()))
    assert (known.keys, known.judged, known.case.records[-1].value) == ((SAME_KEY,), GREEN, "z|1")
    inserted = Case((LEFT, RIGHT, INNER), rows("a|0", ";z|1"))
    assert explain(inserted, red(), causes_in(NEWEST), red_if(is_burst, red())).keys == (INSERT,)


def test_a_release_without_the_issue_does_not_have_it_explained():
    case = Case((LEFT, RIGHT, INNER), rows("a|0", "z|0;z|1"))
    known = explain(case, red(), causes_in(BEFORE), red_if(same_key, red()))
    assert SAME_KEY not in known.keys
    null = Case((LEFT, RIGHT, INNER), rows("|0", "a|1"))
    without_result = red_if(lambda case: any(r.value == "|0" for r in case.records), red("missing"))
    assert explain(null, red("missing"), causes_in(BEFORE), without_result).keys == ("KAFKA-16407",)
    assert explain(null, red("missing"), causes_in(NEWEST), without_result).keys == ()


def test_a_stale_result_becomes_wrong_behind_a_group():
    group = Step("g", "group", ("j",), STORE)
    again = Step("k", "foreignKeyJoin", ("r", "g"), {"left": False, **STORE})
    case, judged = Case((LEFT, RIGHT, INNER, group, again), rows("a|0", "z|0;z|1")), red("wrong", "k")
    assert explain(case, judged, causes_in(NEWEST), red_if(same_key, judged)).keys == (SAME_KEY,)


@pytest.mark.parametrize(
    ("steps", "judged"),
    [
        ((LEFT, RIGHT, INNER), red("missing")),  # a stale result is never one too few
        ((LEFT, RIGHT, INNER), red("header")),
        ((LEFT, RIGHT, INNER), red("failed", shown="StreamsException: in a processor")),
        ((LEFT, RIGHT, Step("j", "foreignKeyJoin", ("l", "r"), {"left": True, **STORE})), red()),
        ((LEFT, RIGHT, Step("j", "tableJoin", ("l", "r"), {"kind": "inner", **STORE})), red()),
    ],
)
def test_what_the_issue_cannot_give_stays_red(steps, judged):
    case = Case(steps, rows("a|0", "z|0;z|1"))
    known = explain(case, judged, causes_in(NEWEST), red_if(same_key, judged))
    assert (known.keys, known.case, known.judged) == ((), case, judged)


def test_what_is_red_without_the_cause_stays_red():
    case = Case((LEFT, RIGHT, INNER), rows("a|0", "z|0;z|1"))
    assert explain(case, red(), causes_in(NEWEST), lambda _: red()).keys == ()
    group = Step("g", "group", ("l",), STORE)
    both = JudgedCase((*red().differences, *red("wrong", "g").differences))
    known = explain(
        Case((*case.steps, group), case.records),
        both,
        causes_in(NEWEST),
        lambda one: both if same_key(one) else red("wrong", "g"),
    )
    assert (known.keys, known.judged) == ((SAME_KEY,), red("wrong", "g"))
    assert not same_key(known.case)


def test_two_issues_of_one_output_explain_it_together():
    count = Step("c", "count", ("s",), STORE)
    steps = (LEFT, RIGHT, INNER, Step("s", "stream", ("other",)), count)
    case = Case((*steps, Step("t", "tableJoin", ("c", "j"), {"kind": "outer"}), Step("g", "group", ("t",), STORE)), ())
    case = Case(case.steps, rows("a|0", "z|0;z|1"))
    wrong = red("wrong", "g")

    def by_either(one: Case) -> bool:
        return same_key(one) or not next(step for step in one.steps if step.name == "c").options["cached"]

    known = explain(case, wrong, causes_in(NEWEST), red_if(by_either, wrong))
    assert set(known.keys) == {SAME_KEY, "uncached count (no JIRA)"}
    assert known.judged == GREEN


def versioned(*changes: tuple[int, str | None]) -> tuple[tuple[Step, ...], tuple[InputRecord, ...]]:
    """Changes of a key; those with a foreign key b are of another one."""
    table = Step("t", "table", ("rows",), {"store": VERSIONED, "history": SHORT})
    asks = Step("f", "lookup", ("s", "t"), {"left": True})
    records = tuple(InputRecord("rows", BEGIN + at, head(value) or "a", value) for at, value in changes)
    return (table, Step("s", "stream", ("asked",)), asks), (*records, InputRecord("asked", BEGIN + 9_000, "b", "x|0"))


def test_a_deletion_at_its_values_time_explains_late_records():
    steps, records = versioned((10, "a|0"), (10, None), (5, "a|1"))
    is_at_once = red_if(lambda case: case.records[1].timestamp == BEGIN + 10, red(topic="f"))
    known = explain(Case(steps, records), red(topic="f"), causes_in(NEWEST), is_at_once)
    assert known.keys == ("KIP-889, same time (no JIRA)",)
    steps, records = versioned((10, "a|0"), (10, None), (15, "a|1"))
    assert explain(Case(steps, records), red(topic="f"), causes_in(NEWEST), is_at_once).keys == ()


def test_a_restoration_explains_expired_deletions():
    steps, records = versioned((10, "a|0"), (30, None), (20, "a|1"), (5_000, "b|2"))
    is_restored = red_if(lambda case: case.restored, red(topic="f"))
    case = Case(steps, records, reopened=(4,), restored=True)
    assert explain(case, red(topic="f"), causes_in(NEWEST), is_restored).keys == ("KIP-889, restored (no JIRA)",)
    for changes in (
        [(10, "a|0"), (30, None), (40, "a|1"), (5_000, "b|2")],  # it came later, not late
        [(10, "a|0"), (30, None), (20, "a|1")],  # nothing has expired
        [(10, "a|0"), (30, None), (20, "a|1"), (5_000, "a|2")],  # the key has another version by then
    ):
        steps, records = versioned(*changes)
        case = Case(steps, records, reopened=(len(changes),), restored=True)
        assert explain(case, red(topic="f"), causes_in(NEWEST), is_restored).keys == ()


def test_a_restoration_explains_reads_before_the_next_version():
    steps, records = versioned((10, "a|0"), (30, None), (20, "a|1"), (5_000, "a|2"))
    is_restored = red_if(lambda case: case.restored, red(topic="f"))
    for asked, keys in ((4_990, ("KIP-889, restored (no JIRA)",)), (5_000, ())):
        late = (*records[:-1], InputRecord("asked", BEGIN + asked, "a", "x|0"))
        case = Case(steps, late, reopened=(4,), restored=True)
        assert explain(case, red(topic="f"), causes_in(NEWEST), is_restored).keys == keys


def test_a_reopened_store_explains_only_reads_of_its_history():
    steps, records = versioned((10, "a|0"), (30, "a|1"))
    late = (*records[:-1], InputRecord("asked", BEGIN + 20, "a", "x|0"))
    is_closed = red_if(lambda case: bool(case.reopened), red(topic="f"))
    assert explain(Case(steps, late, (2,)), red(topic="f"), causes_in(NEWEST), is_closed).keys == ("KIP-889 (no JIRA)",)
    assert explain(Case(steps, records, (2,)), red(topic="f"), causes_in(NEWEST), is_closed).keys == ()


# --- joins by a foreign key of a table with what is made of it -------------------------------------------------------

TABLE, SUMS = Step("t", "table", ("rows",), STORE), Step("g", "group", ("t",), STORE)
OTHERS = Step("o", "table", ("others",), STORE)


def foreign(name: str, *operands: str, left: bool = False) -> Step:
    return Step(name, "foreignKeyJoin", operands, {"left": left, **STORE})


def rejoined(*between: Step, left: bool = False, values: tuple[str, ...] = ("a|0", "z|0")) -> Case:
    """Rows are joined with the sums of their foreign keys, and with another table."""
    last = between[-1].name if between else "m"
    steps = (TABLE, OTHERS, SUMS, foreign("m", "t", "g", left=left), *between, foreign("j", last, "o"))
    return Case(steps, rows(*values))


def is_inner(case: Case) -> bool:
    return not next(step for step in case.steps if step.name == "j").options["left"]


def behind_right_side() -> Case:
    case = rejoined()
    steps = (Step("q", "table", ("more",), STORE), foreign("p", "o", "m"), foreign("j", "p", "q"))
    return Case((*case.steps[:-1], *steps), case.records)


MAPPED, FILTERED = Step("p", "mapTable", ("m",)), Step("p", "filterTable", ("m",))


@pytest.mark.parametrize(
    ("case", "keys"),
    [
        (rejoined(), (INSERT,)),  # z has no sum until the record has gone by way of the group
        (rejoined(MAPPED), (INSERT,)),
        (rejoined(FILTERED), (INSERT,)),
        (rejoined(left=True), (SAME_KEY,)),  # z|0/- comes first
        (rejoined(MAPPED, left=True), (SAME_KEY,)),
        (rejoined(FILTERED, left=True), ()),  # it may be filtered out or not
        (rejoined(Step("p", "group", ("m",), STORE)), ()),  # of groups, neither goes and comes
        (behind_right_side(), ()),  # the foreign key is of the other side
        (rejoined(values=("z|0",)), ()),  # nothing had a result before
        (rejoined(values=("a|0", "a|1")), ()),  # the foreign key stays
    ],
)
def test_rows_change_twice_behind_a_join_with_a_derived_table(case, keys):
    assert explain(case, red(), causes_in(NEWEST), red_if(is_inner, red())).keys == keys


def test_a_row_that_finds_another_sum_at_once_changes_twice():
    case = rejoined()
    with_sum = Case(case.steps, (InputRecord("rows", BEGIN, "b", "z|1"), *case.records))
    assert explain(with_sum, red(), causes_in(NEWEST), red_if(is_inner, red())).keys == (SAME_KEY,)
    assert explain(with_sum, red(), causes_in(BEFORE), red_if(is_inner, red())).keys == ()
    assert explain(case, red("missing"), causes_in(NEWEST), red_if(is_inner, red("missing"))).keys == ()


def test_a_row_whose_other_side_stays_or_goes_changes_once():
    odd = (TABLE, OTHERS, SUMS, Step("f", "filterTable", ("g",)), foreign("m", "t", "f"), foreign("j", "m", "o"))
    goes = Case(odd, (InputRecord("rows", BEGIN, "b", "z|1"), *rows("a|0", "z|1")))
    assert explain(goes, red(), causes_in(NEWEST), red_if(is_inner, red())).keys == ()
    more = Step("q", "table", ("more",), STORE)
    steps = (TABLE, OTHERS, more, foreign("m", "t", "o"), foreign("j", "m", "q"))
    stays = Case(steps, (InputRecord("others", BEGIN, "z", "z|1"), *rows("a|0", "z|0")))
    assert explain(stays, red(), causes_in(NEWEST), red_if(is_inner, red())).keys == ()


# --- the first value of an uncached aggregation ----------------------------------------------------------------------

SOURCE, ROWS_BESIDE = Step("s", "stream", ("rows",)), Step("r", "table", ("others",), STORE)
CACHED = {**STORE, "cached": True}


def filtered(
    kind: str = "outer",
    operation: str = "sum",
    operands: tuple[str, str] = ("r", "c"),
    join: dict[str, object] | None = None,
    store: dict[str, object] | None = None,
) -> Case:
    """A filter behind a join of a table with an uncached aggregation."""
    made = Step("c", operation, ("s",), STORE)
    joined = Step("t", "tableJoin", operands, {"kind": kind, **(join or {})})
    return Case((SOURCE, ROWS_BESIDE, made, joined, Step("j", "filterTable", ("t",), store or {})), rows("a|1"))


def is_uncached(case: Case) -> bool:
    return not next(step for step in case.steps if step.name == "c").options["cached"]


@pytest.mark.parametrize(
    ("case", "keys"),
    [
        (filtered(), (UNCACHED,)),
        (filtered("left"), (UNCACHED,)),
        (filtered(join=STORE), (UNCACHED,)),
        (filtered(operation="cogroup"), (UNCACHED,)),
        (filtered("inner"), ()),  # no row was there before
        (filtered("left", operands=("c", "r")), ()),
        (filtered(operation="latest"), ()),  # it begins with the first value
        (filtered(join=CACHED), ()),  # which has the old value
        (filtered(store=STORE), ()),
    ],
)
def test_a_filter_mistakes_a_first_value_that_a_join_passes_on(case, keys):
    assert explain(case, red(), causes_in(NEWEST), red_if(is_uncached, red())).keys == keys


def test_a_table_between_that_has_the_old_values_keeps_them():
    for store, keys in (({}, (UNCACHED,)), (STORE, ())):
        source, beside, made, joined, filter_ = filtered(operands=("r", "m")).steps
        steps = (source, beside, made, Step("m", "mapTable", ("c",), store), joined, filter_)
        case = Case(steps, rows("a|1"))
        assert explain(case, red(), causes_in(NEWEST), red_if(is_uncached, red())).keys == keys


def test_such_a_filter_explains_only_a_row_too_many():
    for kind in ("missing", "wrong"):
        assert explain(filtered(), red(kind), causes_in(NEWEST), red_if(is_uncached, red(kind))).keys == ()
    case = filtered()
    behind = Case((*case.steps, foreign("k", "r", "j")), case.records)
    judged = red("missing", "k")
    assert explain(behind, judged, causes_in(NEWEST), red_if(is_uncached, judged)).keys == (UNCACHED,)


# --- processors behind a key that has changed ------------------------------------------------------------------------

STREAM, SELECTED = Step("s", "stream", ("in",)), Step("k", "selectKey", ("s",))
COUNTED = Step("n", "count", ("p",), STORE)
ASKED = (InputRecord("in", BEGIN, "a", "b|1"),)


def processed(*steps: Step, optimized: bool = True) -> Case:
    return Case(steps, ASKED, optimized=optimized, partitions=2)


@pytest.mark.parametrize(
    ("case", "keys"),
    [
        (processed(STREAM, SELECTED, Step("p", "rekey", ("k",)), COUNTED), ("KAFKA-19668",)),
        (processed(STREAM, SELECTED, Step("p", "rekey", ("k",)), COUNTED, optimized=False), ()),
        (processed(STREAM, Step("p", "rekey", ("s",)), COUNTED), ()),  # no key has changed before
        (processed(STREAM, SELECTED, Step("p", "mapValues", ("k",)), COUNTED), ()),
    ],
)
@pytest.mark.parametrize(
    "judged",
    [red("wrong", "n"), red("failed", "n", "Found a null keyChangingChild node for OptimizableRepartitionNode")],
)
def test_a_processor_behind_a_changed_key_is_known_if_optimized(case, keys, judged):
    assert explain(case, judged, causes_in(NEWEST), red_if(lambda one: one.optimized, judged)).keys == keys


# --- filters behind a key that has changed ---------------------------------------------------------------------------

UNBUILT = red("failed", "n", "Found a null keyChangingChild node for OptimizableRepartitionNode")
FILTER, OTHER_COUNT = Step("p", "filter", ("k",)), Step("n2", "count", ("p",), STORE)
OTHER_STREAM, MERGED = Step("o", "stream", ("other",)), Step("m", "merge", ("k", "o"))
LOOKED_UP = (Step("t", "table", ("others",), STORE), Step("f", "lookup", ("p", "t"), {"left": False}))


def is_shared(case: Case) -> bool:
    """Whether two steps go on with one filter, and the topology is optimized."""
    users = [name for step in case.steps for name in step.operands]
    return case.optimized and any(users.count(step.name) > 1 for step in case.steps if step.operation == "filter")


@pytest.mark.parametrize(
    ("case", "keys"),
    [
        (processed(STREAM, SELECTED, FILTER, COUNTED, OTHER_COUNT), (SHARED,)),
        (processed(STREAM, SELECTED, FILTER, COUNTED, *LOOKED_UP), (SHARED,)),
        (
            processed(
                STREAM, SELECTED, FILTER, COUNTED, Step("q", "filter", ("p",)), Step("m", "count", ("q",), STORE)
            ),
            (SHARED,),
        ),
        (
            processed(STREAM, SELECTED, Step("q", "filter", ("k",)), Step("p", "filter", ("q",)), COUNTED, OTHER_COUNT),
            (SHARED,),
        ),
        (
            processed(STREAM, SELECTED, OTHER_STREAM, MERGED, Step("p", "filter", ("m",)), COUNTED, OTHER_COUNT),
            (SHARED,),
        ),
        (processed(STREAM, SELECTED, FILTER, COUNTED, OTHER_COUNT, optimized=False), ()),
        (processed(STREAM, Step("p", "filter", ("s",)), COUNTED, OTHER_COUNT), ()),  # no key has changed
        (processed(STREAM, SELECTED, FILTER, *LOOKED_UP, Step("f2", "lookup", ("p", "t"), {"left": True})), ()),
        (processed(STREAM, SELECTED, FILTER, COUNTED, Step("v", "mapValues", ("p",))), ()),
    ],
)
def test_a_filter_behind_a_key_repartitioned_twice_is_known(case, keys):
    assert explain(case, UNBUILT, causes_in(NEWEST), red_if(is_shared, UNBUILT)).keys == keys


def test_what_does_not_build_with_separate_filters_stays_red():
    case = processed(STREAM, SELECTED, FILTER, COUNTED, OTHER_COUNT)
    known = explain(case, UNBUILT, causes_in(NEWEST), red_if(lambda one: one.optimized, UNBUILT))
    assert (known.keys, known.judged) == ((), UNBUILT)
    other = red("failed", "n", "StreamsException: in a processor")
    assert explain(case, other, causes_in(NEWEST), red_if(is_shared, other)).keys == ()


# --- joins of streams that come late ---------------------------------------------------------------------------------


def joined_streams(kind: str) -> Case:
    steps = (Step("l", "stream", ("in",)), Step("r", "stream", ("others",)))
    join = Step("j", "streamJoin", ("l", "r"), {"kind": kind, "size": 50, "grace": 0})
    return Case((*steps, join), (InputRecord("in", BEGIN, "a", "a|0"),))


def ends_early(case: Case) -> bool:
    return len(case.records) == 1


@pytest.mark.parametrize(
    ("join", "anomaly", "release", "keys"),
    [
        ("left", "missing", NEWEST, ("KAFKA-15417, late (no JIRA)",)),
        ("inner", "missing", NEWEST, ()),  # nothing waits
        ("left", "unexpected", NEWEST, ()),
        ("left", "missing", Release(3, 7, 2), ()),
    ],
)
def test_a_stream_join_that_waits_too_long_lacks_later_results(join, anomaly, release, keys):
    judged = red(anomaly)
    assert explain(joined_streams(join), judged, causes_in(release), red_if(ends_early, judged)).keys == keys


def test_what_comes_late_comes_in_the_end():
    judged = red("missing")
    assert explain(joined_streams("left"), judged, causes_in(NEWEST), lambda _: judged).keys == ()
