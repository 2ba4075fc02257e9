"""Topologies that are drawn, what they mean, and a fuzzing whose release is the model itself, with or without a bug."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from onceproof.campaigns.fuzz.fuzzing import Compares, Fuzzed, Fuzzer, Nearest, read_begun
from onceproof.campaigns.fuzz.grammar import (
    BEGIN,
    BY_TASKS,
    MEMORY,
    NEVER,
    OPERATIONS,
    SOURCES,
    VERSIONED,
    Case,
    InputRecord,
    Step,
    StepKind,
    draw,
    smaller,
    topics_of,
)
from onceproof.campaigns.fuzz.printing import unit_test
from onceproof.campaigns.fuzz.relational import Model, compare, judge
from onceproof.campaigns.fuzz.tickets import try_releases
from onceproof.lab.coverage import Branch
from onceproof.model.errors import ExitCode, HarnessError, UsageError
from onceproof.model.release import Release
from tests.published import NEWEST

OLDER = Release(3, 4, 0)
STORE = {"store": MEMORY, "cached": False}


@cache
def draw_300() -> list[Case]:
    """Cases that several tests look at."""
    return [draw(1, number, NEWEST) for number in range(300)]


def a_case(*steps: Step, records: str) -> Case:
    """Records are `topic key=value at`, a line each; a value may be null."""
    read = []
    for line in records.strip().splitlines():
        topic, assigned, at = line.split()
        key, _, value = assigned.partition("=")
        read.append(InputRecord(topic, BEGIN + int(at), key, None if value == "null" else value))
    return Case(steps, tuple(read))


def meant(case: Case, name: str) -> dict[str, str]:
    """The rows in the end."""
    model = Model(case)
    return dict(model.table(name).rows(model.last))


def put_out(case: Case) -> dict[str, list[tuple[int, str, str | None, int | None]]]:
    """The outputs of a release without a bug, in the end."""
    model = Model(case)
    outputs: dict[str, list[tuple[int, str, str | None, int | None]]] = {}
    for leaf in case.leaves:
        if leaf.makes is StepKind.STREAM:
            outputs[leaf.name] = [(e.timestamp, e.key, e.value, e.place) for e in model.stream(leaf.name).events]
        else:
            outputs[leaf.name] = [
                (0, key, value, None) for key, value in model.table(leaf.name).rows(model.last).items()
            ]
    return outputs


# --- drawing ---------------------------------------------------------------------------------------------------------


def test_the_same_seed_draws_the_same_and_another_one_does_not():
    assert [draw(1, number, NEWEST) for number in range(300)] == draw_300()
    assert [draw(2, number, NEWEST) for number in range(300)] != draw_300()


def test_an_operation_that_is_left_out_is_not_drawn():
    without = ("foreignKeyJoin", "burst", "globalTable")
    drawn = {step.operation for number in range(300) for step in draw(1, number, NEWEST, without).steps}
    assert drawn == {*OPERATIONS, *SOURCES} - {*without, "globalLookup"}  # which needs a global table


def test_uniform_draws_have_all_operations():
    uniform = [draw(1, number, NEWEST, uniform=True) for number in range(300)]
    assert {step.operation for case in uniform for step in case.steps} == {*OPERATIONS, *SOURCES}
    joins, others = (
        sum(step.operation == "foreignKeyJoin" for case in cases for step in case.steps)
        for cases in (draw_300(), uniform)
    )
    assert joins > 2 * others


def test_each_operation_is_drawn_and_versions_where_supported():
    assert {step.operation for case in draw_300() for step in case.steps} == {*OPERATIONS, *SOURCES}
    assert any(step.is_versioned for case in draw_300() for step in case.steps)
    assert not any(step.is_versioned for number in range(300) for step in draw(1, number, OLDER).steps)


def test_windows_without_emit_on_close_never_close():
    before = [draw(1, number, Release(3, 2, 3)) for number in range(1500)]
    graces = {
        step.options["grace"] for case in before for step in case.steps if step.operation in ("slides", "sessions")
    }
    assert graces == {NEVER}
    assert not any(step.options.get("store") == MEMORY for case in before if case.is_on_disk for step in case.steps)
    assert not any("onClose" in step.options for case in before for step in case.steps)


def test_records_are_in_order_where_a_clock_loses_its_time():
    drawn = (draw(1, number, NEWEST) for number in range(3000))
    clocked = [case for case in drawn if any(step.options.get("clock") == "stream" for step in case.steps)]
    closed = [case for case in clocked if case.reopened]
    assert len(closed) > 5
    for case in closed:
        assert [one.timestamp for one in case.records] == sorted(one.timestamp for one in case.records)
    open_ones = [[one.timestamp for one in case.records] for case in clocked if not case.reopened]
    assert any(times != sorted(times) for times in open_ones)


def test_no_stream_looks_into_a_table_of_the_same_topic():
    drawn = [*draw_300(), *(draw(441, number, NEWEST, ("foreignKeyJoin",)) for number in (41631, 41954))]
    for case in drawn:
        for step in case.steps:
            if step.operation == "lookup":
                stream, table = (next(one for one in case.steps if one.name == name) for name in step.operands)
                assert not topics_of(stream, case.steps) & topics_of(table, case.steps), str(case)


def test_several_tasks_are_drawn_where_order_does_not_matter():
    several = [case for case in draw_300() if case.partitions > 1]
    assert len(several) > 30
    assert all(step.is_source or step.operation in BY_TASKS for case in several for step in case.steps)
    assert not any(case.reopened for case in several)


def test_a_case_of_several_tasks_shrinks_to_one_and_by_schedules():
    case = next(case for case in draw_300() if case.partitions > 1 and len(case.records) > 3)
    first, settled, *others = smaller(case)
    assert (first.partitions, first.steps, first.records) == (1, case.steps, case.records)
    assert settled == replace(case, settled=True)
    shorter = {one.schedule for one in others if len(one.records) == len(case.records) - 1}
    assert shorter == {case.schedule, 0, 1, 2, 3}


def test_a_case_with_ordered_records_keeps_the_order_when_shrunk():
    held = Step("h", "suppress", ("t",), {"size": 20})
    case = a_case(Step("t", "table", ("t",), STORE), held, records="t a=x|1 10\nt b=x|1 20\nt c=x|1 30")
    for one in smaller(case):
        times = [record.timestamp for record in one.records]
        assert times == sorted(times) or "suppress" not in one.operations


def test_a_case_is_read_back_as_it_was_written():
    for case in draw_300():
        assert Case.decode(json.loads(json.dumps(case.encoded))) == case


def test_each_smaller_case_is_valid_and_has_less():
    for case in draw_300()[:100]:
        for one in smaller(case):
            made: dict[str, StepKind] = {}
            for step in one.steps:
                assert step.is_source or all(name in made for name in step.operands), f"{case}\n\n{one}"
                made[step.name] = step.makes
            assert one.leaves
            assert all(0 < place < max(len(one.records), 1) for place in one.reopened)
            assert one != case


def test_a_reopened_case_on_disk_is_not_shrunk_into_memory():
    reopened = next(case for case in draw_300() if case.is_on_disk)
    stores = {step.options.get("store") for one in smaller(reopened) if one.reopened for step in one.steps}
    assert MEMORY not in stores


# --- what operations mean --------------------------------------------------------------------------------------------


def test_a_foreign_key_join_has_the_rows_that_match_now():
    left, right = Step("l", "burst", ("left",), STORE), Step("r", "table", ("right",), STORE)
    records = """
        right a=x|1 0
        left k=a|1 0
        left m=a|2 0
        left k=z|1;z|2 0
        left n=|3 0
    """
    inner = a_case(left, right, Step("j", "foreignKeyJoin", ("l", "r"), {"left": False, **STORE}), records=records)
    assert meant(inner, "j") == {"m": "a|2/x|1"}
    outer = a_case(left, right, Step("j", "foreignKeyJoin", ("l", "r"), {"left": True, **STORE}), records=records)
    assert meant(outer, "j") == {"k": "z|2/-", "m": "a|2/x|1", "n": "|3/-"}
    assert judge(outer, {}, OLDER).left_out == {"j": "a left join drops null foreign keys before 3.7.0 (KIP-962)"}


def test_a_stream_finds_the_row_or_the_version_of_its_time():
    records = """
        t a=x|1 0
        t a=x|2 50
        s a=y|0 20
        t a=null 60
        s a=y|1 70
    """
    stream = Step("s", "stream", ("s",))
    look = Step("f", "lookup", ("s", "t"), {"left": True})
    plain = Model(a_case(stream, Step("t", "table", ("t",), STORE), look, records=records))
    assert [event.value for event in plain.stream("f").events] == ["y|0/x|2", "y|1/-"]
    versioned = Model(
        a_case(stream, Step("t", "table", ("t",), {"store": VERSIONED, "history": NEVER}), look, records=records)
    )
    assert [event.value for event in versioned.stream("f").events] == ["y|0/x|1", "y|1/-"]


def test_a_group_is_gone_with_its_last_row():
    case = a_case(
        Step("t", "table", ("t",), STORE),
        Step("g", "group", ("t",), STORE),
        records="t a=x|1 0\nt b=x|1 0\nt c=y|1 0\nt c=null 0",
    )
    assert meant(case, "g") == {"x": str(2 * sum(map(ord, "x|1")))}


def test_windows_close_and_a_final_one_comes_once():
    options = {"size": 60, "grace": 0, "final": True, **STORE}
    windows = Step("w", "windows", ("s",), options)
    case = a_case(Step("s", "stream", ("s",)), windows, records="s a=x|1 20\ns a=x|2 90\ns a=x|3 30")
    assert meant(case, "w") == {"a@1000020-1000080": "1"}
    twice = judge(case, {"w": [(0, key, value, None) for key, value in meant(case, "w").items()] * 2}, NEWEST)
    assert twice.kinds == ("twice",)


def test_an_outer_stream_join_emits_rows_that_can_match_no_more():
    options = {"kind": "left", "size": 10, "grace": 0}
    case = a_case(
        Step("s", "stream", ("s",)),
        Step("o", "stream", ("o",)),
        Step("j", "streamJoin", ("s", "o"), options),
        records="s a=x|1 0\no a=y|1 5\ns b=x|2 20\ns a=x|3 40",
    )
    values = [(event.key, event.value) for event in Model(case).stream("j").events]
    assert values == [("a", "x|1/y|1"), ("b", "x|2/-")]  # that of 40 may still be met


def test_what_a_record_ends_in_an_outer_join_comes_oldest_first():
    options = {"kind": "outer", "size": 50, "grace": 0}
    case = a_case(
        Step("s", "stream", ("s",)),
        Step("o", "stream", ("o",)),
        Step("j", "streamJoin", ("o", "s"), options),
        Step("w", "windows", ("j",), {"size": 60, "grace": 0, "final": False, **STORE}),
        records="s a=x|1 315\no b=x|1 365\ns a=x|2 525",
    )
    assert [event.key for event in Model(case).stream("j").events] == ["a", "b"]
    assert meant(case, "w") == {"a@1000260-1000320": "1", "b@1000320-1000380": "1"}


def test_equal_ends_in_an_outer_join_come_by_side_and_key():
    case = a_case(
        Step("s", "stream", ("s",)),
        Step("o", "stream", ("o",)),
        Step("j", "streamJoin", ("s", "o"), {"kind": "outer", "size": 10, "grace": 0}),
        records="s c=x|0 50\ns a=x|1 50\no d=y|2 50\no b=y|3 50\ns a=x|4 90",
    )
    assert [event.key for event in Model(case).stream("j").events] == ["b", "d", "a", "c"]


def test_a_match_of_a_late_record_follows_the_other_sides_order():
    case = a_case(
        Step("s", "stream", ("s",)),
        Step("o", "stream", ("o",)),
        Step("j", "streamJoin", ("s", "o"), {"kind": "inner", "size": 50, "grace": NEVER}),
        records="s a=x|1 40\ns a=x|2 10\no a=y|1 30",
    )
    assert [event.value for event in Model(case).stream("j").events] == ["x|2/y|1", "x|1/y|1"]


def test_a_sliding_window_ends_at_a_record_or_begins_behind_one():
    windows = Step("w", "slides", ("s",), {"size": 60, "grace": NEVER, **STORE})
    case = a_case(Step("s", "stream", ("s",)), windows, records="s a=x|1 40\ns a=x|2 0\ns a=null 5")
    assert meant(case, "w") == {"a@999940-1000000": "1", "a@999980-1000040": "2", "a@1000001-1000061": "1"}
    closed = replace(windows, options={**windows.options, "grace": 0, "onClose": True})
    case = a_case(Step("s", "stream", ("s",)), closed, records="s a=x|1 0\ns a=x|2 40\ns a=x|3 62")
    assert meant(case, "w") == {"a@999940-1000000": "1", "a@999980-1000040": "2", "a@1000001-1000061": "1"}


def test_streams_that_are_grouped_together_are_summed_together():
    one, other = Step("s", "stream", ("s",)), Step("o", "stream", ("o",))
    case = a_case(one, other, Step("c", "cogroup", ("s", "o"), STORE), records="s a=x|1 0\no a=x|1 0\no b=x|1 0")
    assert meant(case, "c") == {"a": str(3 * sum(map(ord, "x|1"))), "b": str(2 * sum(map(ord, "x|1")))}


@pytest.mark.parametrize(
    ("clock", "told"),
    [
        ("none", []),
        ("stream", [("a", "x|1!", 0), ("a", "x|2!", 100)]),  # at the first record, and when a hundred are over
        ("wall", [("a", "x|1!", 130)]),  # not before the clock of the machine has come so far
    ],
)
def test_a_processor_remembers_and_a_clock_has_it_say_so(clock, told):
    options = {"clock": clock, **STORE}
    records = "s a=x|1 0\nclock =30 0\nclock =100 0\ns a=x|2 100\ns a=null 150"
    case = a_case(Step("s", "stream", ("s",)), Step("p", "remember", ("s",), options), records=records)
    events = [(e.key, e.value, e.timestamp - BEGIN) for e in Model(case).stream("p").events]
    assert [event for event in events if str(event[1]).endswith("!")] == told
    assert [event[1] for event in events if event not in told] == ["-/x|1", "x|1/x|2", "x|2/-"]


def test_a_processor_makes_the_last_character_of_a_value_the_key():
    records = "s a=x|1 0\ns b=|2 1\ns c=null 2"
    case = a_case(Step("s", "stream", ("s",)), Step("k", "rekey", ("s",)), records=records)
    assert [(event.key, event.value) for event in Model(case).stream("k").events] == [
        ("1", "x|1"),
        ("2", "|2"),
        ("c", None),
    ]


def test_a_suppression_must_emit_old_rows_and_may_hold_others():
    held = Step("h", "suppress", ("t",), {"size": 20})
    records = "t a=x|1 0\nt b=x|1 10\nt b=x|2 30\nt c=x|1 40"
    case = a_case(Step("t", "table", ("t",), STORE), held, records=records)
    assert meant(case, "h") == {"a": "x|1"}
    assert judge(case, {"h": [(0, "a", "x|1", None), (10, "b", "x|1", None)]}, NEWEST).kinds == ()
    assert judge(case, {"h": [(10, "b", "x|1", None)]}, NEWEST).kinds == ("missing",)


def test_a_punctuation_before_an_older_record_is_late():
    steps = (
        Step("s", "stream", ("s",)),
        Step("p", "remember", ("s",), {"clock": "wall", **STORE}),
        Step("t", "toTable", ("p",), {"store": VERSIONED, "history": NEVER}),
    )
    late = a_case(*steps, records="s b=a|0 300\nclock =100 360\ns b=a|0 360")
    assert list(judge(late, {}, NEWEST).left_out) == ["t"]
    early = a_case(*steps, records="s b=a|0 300\nclock =100 360\ns b=a|0 400")
    assert list(judge(early, {}, NEWEST).left_out) == []


@pytest.mark.parametrize(
    ("first", "second", "left_out"), [("outer", "left", ["k"]), ("inner", "left", []), ("outer", "inner", [])]
)
def test_joins_behind_unmatched_rows_of_a_join_are_left_out(first, second, left_out):
    def join(name: str, *operands: str, kind: str) -> Step:
        return Step(name, "streamJoin", operands, {"kind": kind, "size": 50, "grace": NEVER if kind == "inner" else 0})

    streams = [Step(name, "stream", (name,)) for name in "abc"]
    case = a_case(*streams, join("j", "a", "b", kind=first), join("k", "c", "j", kind=second), records="a a=a|0 0")
    assert list(judge(case, {}, NEWEST).left_out) == left_out


def test_late_versioned_changes_are_judged_by_all_records():
    table = Step("t", "table", ("t",), {"store": VERSIONED, "history": NEVER})
    late = a_case(table, records="t a=x|1 50\nt a=x|0 20")
    assert list(judge(late, {}, NEWEST).left_out or {}) == ["t"]
    assert judge(replace(late, records=late.records[:1]), {}, NEWEST).kinds == ("missing",)


@pytest.mark.parametrize(
    ("has", "kinds"),
    [
        ([(0, "a", "x|1"), (0, "b", "x|2")], ()),
        ([(0, "a", "x|9"), (0, "a", "x|1"), (0, "b", "x|2"), (0, "c", None)], ()),  # the same in the end
        ([(0, "a", "x|1")], ("missing",)),
        ([(0, "a", "x|1"), (0, "b", "x|2"), (0, "c", "x|3")], ("unexpected",)),
        ([(0, "a", "x|2"), (0, "b", "x|2")], ("wrong",)),
    ],
)
def test_a_table_is_judged_by_its_last_rows(has, kinds):
    case = a_case(Step("t", "table", ("t",), STORE), records="t a=x|1 0\nt b=x|2 0")
    assert judge(case, {"t": [(*record, None) for record in has]}, NEWEST).kinds == kinds


def test_streams_are_judged_by_all_records_and_releases_compared():
    case = a_case(Step("s", "stream", ("s",)), records="s a=x|1 0\ns a=x|1 0")
    once, twice = [(BEGIN, "a", "x|1", 0)], [(BEGIN, "a", "x|1", 0), (BEGIN, "a", "x|1", 1)]
    assert judge(case, {"s": twice}, NEWEST).kinds == ()
    assert judge(case, {"s": once}, NEWEST).kinds == ("missing",)
    assert judge(case, {"s": [*once, (BEGIN, "a", "x|1", None)]}, NEWEST).kinds == ("header",)
    assert [one.kind for one in compare(case, {"s": twice}, {"s": once})] == ["differs"]
    assert compare(case, {"s": twice}, {"s": twice}) == ()


# --- fuzzing ---------------------------------------------------------------------------------------------------------


class Meant:
    """A release that puts out what is meant, but for a bug in an operation, or for stale results of bursts."""

    def __init__(self, bug: str = "") -> None:
        self.bug = bug

    def run(self, case: Mapping[str, Any]) -> dict[str, Any]:
        one = Case.decode(case)
        if self.bug == STALE:
            return {"outputs": {**put_out(one), **_stale(one)}}
        if self.bug in one.operations and self.bug == "sessions":
            return {"failed": "StreamsException: in a processor"}
        lost = [leaf.name for leaf in one.leaves if leaf.operation == self.bug]
        return {"outputs": {topic: [] if topic in lost else output for topic, output in put_out(one).items()}}


STALE = "stale"


def _stale(case: Case) -> dict[str, list[tuple[int, str, str | None, int | None]]]:
    """Inner joins by a foreign key with one row too many, if a burst changes a row and changes it again."""
    bursts = {step.operands[0] for step in case.steps if step.operation == "burst"}
    if not any(record.topic in bursts and record.value and ";" in record.value for record in case.records):
        return {}
    joins = [leaf for leaf in case.leaves if leaf.operation == "foreignKeyJoin" and not leaf.options["left"]]
    return {join.name: [*put_out(case)[join.name], (0, "stale", "a|0/a|0", None)] for join in joins}


def fuzzed(
    tmp_path,
    bench: Meant,
    cases: int,
    other: Meant | None = None,
    state: Fuzzed | None = None,
    compares: Compares | None = None,
) -> Fuzzed:
    ticks = iter(range(10**9))
    state = state or Fuzzed(run="r", streams="4.4.0", against=None, seed=1, harness="h", folder=str(tmp_path / "r"))
    fuzzer = Fuzzer(tmp_path / "r", state, bench, other, compares, lambda _: None, lambda: next(ticks) / 1000)
    return fuzzer.fuzz(cases * 4 / 1000)


def test_a_release_without_a_bug_is_green(tmp_path):
    done = fuzzed(tmp_path, Meant(), 400)
    assert (done.red, done.findings, done.exit_code) == (0, (), ExitCode.OK)
    assert done.cases > 100


def test_searches_are_counted_by_operation_and_continue(tmp_path):
    before = fuzzed(tmp_path, Meant("filterTable"), 200)
    done = fuzzed(tmp_path, Meant("filterTable"), 200, state=read_begun(tmp_path, "last", "h"))
    drawn = [draw(1, number, NEWEST) for number in range(done.cases)]
    for name in ("foreignKeyJoin", "filterTable", "2 tasks by a schedule", "processing.guarantee=exactly_once_v2"):
        assert done.searched[name].cases == sum(name in (*case.operations, *case.settings) for case in drawn)
        assert done.searched[name].cases > before.searched[name].cases
    tasks = ("one task", "2 tasks by a schedule")
    assert [sum(done.searched[name].cases for name in tasks), done.red] == [
        done.cases,
        done.searched["filterTable"].red,
    ]
    assert 0 < done.searched["tableJoin"].judged < done.searched["tableJoin"].cases


def test_a_bug_is_found_and_shrunk_to_what_it_takes(tmp_path):
    done = fuzzed(tmp_path, Meant("filterTable"), 400)
    assert done.exit_code is ExitCode.ANOMALY
    smallest = min(done.findings, key=lambda finding: len(finding.case))
    case = Case.decode(json.loads((tmp_path / "r/findings" / str(smallest.number) / "case.json").read_text()))
    assert len(case.steps) == 2
    assert len(case.records) == 1
    assert (tmp_path / "r/findings/1/app/onceproof.toml").exists()
    assert "@Test" in (tmp_path / "r/findings/1/DrawnTopologyTest.java").read_text()


BRANCHES = tuple(Branch(at=f"Joined.process:{line}", by=by) for line, by in ((7, "red"), (8, "green"), (9, "both")))


def test_a_finding_has_its_nearest_green_case_and_its_branches(tmp_path):
    asked: list[tuple[Case, tuple[Case, ...]]] = []

    def compares(red: Case, greens: Sequence[Case]) -> tuple[int, tuple[Branch, ...]]:
        asked.append((red, tuple(greens)))
        return len(greens) - 1, BRANCHES

    done = fuzzed(tmp_path, Meant("filterTable"), 200, compares=compares)
    assert [str(red) for red, _ in asked] == [finding.case for finding in done.findings]
    bench = Meant("filterTable")
    for finding, (red, greens) in zip(done.findings, asked, strict=True):
        assert greens
        assert {judge(one, bench.run(one.encoded)["outputs"], NEWEST).kinds for one in greens} == {()}
        assert judge(red, bench.run(red.encoded)["outputs"], NEWEST).differences
        nearest = finding.nearest
        assert nearest is not None
        texts = {"-": str(red).splitlines(), "+": str(greens[-1]).splitlines()}
        assert all(line[2:] in texts[line[0]] for line in nearest.change)
        assert nearest.change
        assert nearest.branches == BRANCHES
    page = (tmp_path / "r/findings/1/finding.md").read_text()
    assert "| line of Kafka Streams 4.4.0 | runs what the other case does not |\n" in page
    assert "| `Joined.process:7` | the red case |\n| `Joined.process:8` | the green case |\n" in page
    try_releases(done, [NEWEST], lambda _: nullcontext(bench), lambda _: None)
    assert "| `Joined.process:9` | each of them |\n" in (tmp_path / "r/findings/1/ticket.md").read_text()
    assert read_begun(tmp_path, "last", "h") == done


def test_a_finding_without_a_nearest_green_case_says_why(tmp_path):
    def none(red: Case, greens: Sequence[Case]) -> None:
        assert red not in greens

    def fails(red: Case, greens: Sequence[Case]) -> None:
        raise HarnessError("JaCoCo's agent did not connect.")

    pages = {}
    for name, compares in (("none", none), ("failed", fails), ("not asked", None)):
        fuzzed(tmp_path / name, Meant("filterTable"), 100, compares=compares)
        pages[name] = (tmp_path / name / "r/findings/1/finding.md").read_text()
    assert "green cases near it, none takes another branch.\n" in pages["none"]
    assert "It was not compared with a green case: JaCoCo's agent did not connect.\n" in pages["failed"]
    assert "Branches" not in pages["not asked"]


def test_only_some_of_many_branches_are_named():
    lines = Nearest(branches=tuple(Branch(at=f"A.b:{line}", by="red") for line in range(50))).lines("4.4.0")
    assert lines[-2:] == ["| `A.b:39` | the red case |", "| and 10 more |  |"]


def test_a_known_issue_is_counted_and_is_no_finding(tmp_path):
    done = fuzzed(tmp_path, Meant(STALE), 2000)
    assert done.red > 0
    assert {one.issue for one in done.issues} <= {"KIP-213, same key (no JIRA)", "KIP-213, insert (no JIRA)"}
    assert sum(one.reds for one in done.issues) == done.red
    assert (done.findings, done.exit_code) == ((), ExitCode.OK)
    unknown = fuzzed(tmp_path / "before", Meant("foreignKeyJoin"), 400)
    assert unknown.findings
    assert unknown.issues == ()


def test_a_case_that_throws_or_differs_by_release_is_red(tmp_path):
    failed = fuzzed(tmp_path, Meant("sessions"), 400)
    assert any("failed" in finding.title for finding in failed.findings)
    differs = fuzzed(tmp_path / "other", Meant(), 400, other=Meant("filterTable"))
    assert differs.findings
    assert all(finding.title.startswith("differs") for finding in differs.findings)


def test_fuzzing_continues_only_with_the_version_that_began_it(tmp_path):
    before = fuzzed(tmp_path, Meant("filterTable"), 200)
    state = read_begun(tmp_path, "last", "h")
    assert state == before
    after = fuzzed(tmp_path, Meant("filterTable"), 200, state=state)
    assert after.cases > before.cases
    assert after.findings[: len(before.findings)]
    with pytest.raises(UsageError, match="draws or judges otherwise"):
        read_begun(tmp_path, "r", "another")
    with pytest.raises(UsageError, match="There is no fuzzing"):
        read_begun(tmp_path, "other", "h")


def test_a_finding_gets_a_ticket_with_the_releases_that_have_it(tmp_path):
    found = fuzzed(tmp_path, Meant("filterTable"), 400)
    line = [Release(3, 9, patch) for patch in range(5)]
    times: list[Release] = []

    @contextmanager
    def opened(release: Release) -> Iterator[Meant]:
        times.append(release)
        yield Meant() if release in line[:3] else Meant("filterTable")

    done = try_releases(found, [NEWEST, *line, OLDER], opened, lambda _: None)
    assert sorted(times) == [OLDER, *(line[at] for at in (0, 2, 3, 4)), NEWEST]  # each once, and one was not needed
    plain = [finding for finding in done.findings if "versioned" not in finding.case]
    red = {"3.4.0": "red", "3.9.3": "red", "3.9.4": "red", "4.4.0": "red"}
    assert plain[0].releases == {**red, "3.9.0": "green", "3.9.2": "green"}
    ticket = (tmp_path / f"r/findings/{plain[0].number}/ticket.md").read_text()
    assert "- **Affects**: 3.4.0, 3.9.3, 3.9.4, 4.4.0.\n- **Not affected**: 3.9.0, 3.9.2.\n" in ticket
    assert "| 3.9 | 3.9.2 | 3.9.3 | 3.9.4 | — |\n" in ticket
    assert all(f"- [{other.number}](../{other.number}/ticket.md)" in ticket for other in plain[1:])


def test_what_only_differs_from_another_release_gets_no_ticket(tmp_path):
    found = fuzzed(tmp_path, Meant(), 400, other=Meant("filterTable"))
    done = try_releases(found, [NEWEST], lambda _: nullcontext(Meant()), lambda _: None)
    assert done == found
    assert not list(tmp_path.rglob("ticket.md"))


def test_a_test_is_printed_for_each_case_that_can_be_drawn():
    for case in draw_300():
        for leaf in case.leaves:
            assert f'"{leaf.name}", Produced' in unit_test(case, leaf.name, "drawn")
