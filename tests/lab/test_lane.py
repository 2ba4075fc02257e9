"""Topologies that are drawn, on released Kafka Streams in a JVM and without brokers.

`python -m tests.lab.test_lane` draws the snapshot anew, of which every case must be green.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from docs.check_findings import compile_java, joined, launcher, run_tests
from onceproof.campaigns.fuzz.fuzzing import Fuzzed, Fuzzer, FuzzFinding
from onceproof.campaigns.fuzz.grammar import (
    BEGIN,
    MEMORY,
    NEVER,
    ROCKSDB,
    SHORT,
    VERSIONED,
    Case,
    InputRecord,
    Step,
    draw,
)
from onceproof.campaigns.fuzz.known import causes_in, explain
from onceproof.campaigns.fuzz.printing import NAME, unit_test
from onceproof.campaigns.fuzz.relational import Difference, JudgedCase, judge
from onceproof.campaigns.fuzz.tickets import try_releases
from onceproof.lab.artifacts import replay_class_path
from onceproof.lab.lane import Lane
from onceproof.model.errors import HarnessError
from onceproof.model.release import Release
from tests.conftest import HERE
from tests.published import NEWEST

pytestmark = pytest.mark.broker  # it needs Kafka Streams, though no broker

SNAPSHOT = Path(__file__).parents[1] / "specimens" / "drawn_cases.jsonl"
DRAWN = 60
OLDEST, BEFORE, BROUGHT = (Release.parse(text) for text in ("3.0.0", "3.8.1", "3.9.1"))
STORE = {"store": MEMORY, "cached": False}
# A row that has a result asks for a key that is not there, and changes once more before that is answered.
SAME_KEY = Case(
    (
        Step("left", "burst", ("rows",), STORE),
        Step("right", "table", ("others",), STORE),
        Step("joined", "foreignKeyJoin", ("left", "right"), {"left": False, **STORE}),
    ),
    (
        InputRecord("others", BEGIN, "a", "a|0"),
        InputRecord("rows", BEGIN, "a", "a|0"),
        InputRecord("rows", BEGIN, "a", "z|0;z|1"),
    ),
)


# A version comes after a later deletion of its key, and the restoration has the deletion expire before it.
REVIVED = Case(
    (
        Step("table", "table", ("rows",), {"store": VERSIONED, "history": SHORT}),
        Step("stream", "stream", ("asked",)),
        Step("found", "lookup", ("stream", "table"), {"left": True}),
    ),
    (
        InputRecord("rows", BEGIN + 10, "a", "a|0"),
        InputRecord("rows", BEGIN + 30, "a", None),
        InputRecord("rows", BEGIN + 20, "a", "a|1"),
        InputRecord("rows", BEGIN + 9_000, "b", "a|0"),
        InputRecord("asked", BEGIN + 9_000, "a", "x|0"),
    ),
    reopened=(4,),
    restored=True,
)


# The key has a later version by then, and a stream asks for the time before that.
REVIVED_BETWEEN = replace(
    REVIVED,
    records=(
        *REVIVED.records[:3],
        InputRecord("rows", BEGIN + 9_000, "a", "a|0"),
        InputRecord("asked", BEGIN + 8_990, "a", "x|0"),
    ),
)


def snapshot() -> Iterator[Case]:
    return (Case.decode(json.loads(line)) for line in SNAPSHOT.read_text().splitlines())


def kinds(lane: Lane, case: Case) -> tuple[str, ...]:
    answer = lane.run(case.encoded)
    assert "failed" not in answer, f"{answer['failed']}\n{case}"
    return judge(case, answer["outputs"], lane.release).kinds


@pytest.mark.parametrize("release", [OLDEST, NEWEST], ids=str)
def test_every_case_of_the_snapshot_is_green(release, tmp_path):
    with Lane(HERE, release, tmp_path / "lane.log") as lane:
        assert [str(case) for case in snapshot() if release.since(case.since) and kinds(lane, case)] == []


def test_a_stale_foreign_key_result_is_found_on_bad_releases(tmp_path):
    seen = {}
    for release in (BEFORE, BROUGHT):
        with Lane(HERE, release, tmp_path / "lane.log") as lane:
            seen[release] = kinds(lane, SAME_KEY)
    assert seen == {BEFORE: (), BROUGHT: ("unexpected",)}


# The foreign key of a row changes, and both are in the right table, but not in one partition.
TWO_TASKS = Case(
    (
        Step("left", "table", ("rows",), STORE),
        Step("right", "table", ("others",), STORE),
        Step("joined", "foreignKeyJoin", ("left", "right"), {"left": True, **STORE}),
    ),
    (
        InputRecord("others", BEGIN, "a", "a|1"),
        InputRecord("others", BEGIN, "b", "b|2"),
        InputRecord("rows", BEGIN, "k", "a|0"),
        InputRecord("rows", BEGIN, "k", "b|0"),
    ),
    partitions=2,
)


RED_SCHEDULE = 0  # by which the task of the old key answers last


def test_two_tasks_in_either_order_show_kafka_18713_where_it_is(tmp_path):
    seen = {}
    for release in (Release(3, 9, 0), BROUGHT):
        with Lane(HERE, release, tmp_path / "lane.log") as lane:
            seen[release] = {kinds(lane, replace(TWO_TASKS, schedule=schedule)) for schedule in range(10)}
    assert seen == {Release(3, 9, 0): {(), ("wrong",)}, BROUGHT: {()}}


def test_a_schedule_is_the_same_for_the_same_seed(tmp_path):
    with Lane(HERE, Release(3, 9, 0), tmp_path / "lane.log") as lane:
        cases = [replace(TWO_TASKS, schedule=schedule).encoded for schedule in range(10)]
        assert [lane.run(case)["outputs"] for case in cases] == [lane.run(case)["outputs"] for case in cases]


def opened_again(store: dict[str, object]) -> Case:
    """A stream looks into a table as of a time before the last change, when the table's store was opened again."""
    asks = Step("found", "lookup", ("stream", "table"), {"left": True})
    steps = (Step("table", "table", ("rows",), store), Step("stream", "stream", ("asked",)), asks)
    records = (("rows", 0, "a|0"), ("rows", 50, "a|1"), ("asked", 20, "x|0"))
    return Case(steps, tuple(InputRecord(topic, BEGIN + at, "a", value) for topic, at, value in records), reopened=(2,))


ON_DISK, WITH_VERSIONS = {"store": ROCKSDB, "cached": False}, {"store": VERSIONED, "history": NEVER}


def test_a_reopened_store_keeps_the_table_and_not_its_history(tmp_path):
    with Lane(HERE, NEWEST, tmp_path / "lane.log") as lane:
        assert kinds(lane, opened_again(ON_DISK)) == ()
        assert kinds(lane, opened_again(WITH_VERSIONS)) == ("missing", "unexpected")


def test_a_restored_versioned_store_has_what_was_deleted(tmp_path):
    with Lane(HERE, NEWEST, tmp_path / "lane.log") as lane:
        assert kinds(lane, REVIVED) == ("missing", "unexpected")
        table = Step("table", "table", ("rows",), STORE)
        assert kinds(lane, replace(REVIVED, steps=(table, *REVIVED.steps[1:]))) == ()


@pytest.mark.parametrize("release", [OLDEST, NEWEST], ids=str)
def test_a_restored_suppression_emits_a_window_once_it_closes(release, tmp_path):
    options = {"size": 60, "grace": 0, "final": True, **STORE}
    steps = (Step("stream", "stream", ("rows",)), Step("counts", "windows", ("stream",), options))
    records = tuple(InputRecord("rows", BEGIN + at, "a", "a|0") for at in (0, 5, 100))
    with Lane(HERE, release, tmp_path / "lane.log") as lane:
        answer = lane.run(Case(steps, records, reopened=(1,), restored=True).encoded)
    assert answer["outputs"] == {"counts": [[BEGIN + 5, "a@999960-1000020", "2", 1]]}


def test_an_invalid_topology_is_reported_and_a_dead_jvm_an_error(tmp_path):
    with Lane(HERE, OLDEST, tmp_path / "lane.log") as lane:
        versioned = Case(
            (Step("table", "table", ("rows",), {"store": VERSIONED, "history": NEVER}),), SAME_KEY.records[1:2]
        )
        assert "versioned stores" in lane.run(versioned.encoded)["failed"]
        assert kinds(lane, SAME_KEY) == ()
    with pytest.raises(HarnessError, match="ended"):
        lane.run(SAME_KEY.encoded)


def test_the_library_that_rocksdb_unpacks_goes_with_the_stores(tmp_path, monkeypatch):
    monkeypatch.setattr("onceproof.lab.lane.scratch_within", lambda folder: folder)
    with Lane(HERE, NEWEST, tmp_path / "lane.log") as jvm:
        kinds(jvm, opened_again(ON_DISK))
        assert unpacked_in(tmp_path)
    assert not unpacked_in(tmp_path)


def unpacked_in(folder: Path) -> list[str]:
    """The copies of RocksDB's library in the folder, while its JVM removes other folders from it."""
    files = (name for _, _, names in os.walk(folder) for name in names)
    return [name for name in files if name.startswith("librocksdbjni")]


# Each the smallest that shows its issue on the newest release.
UNCACHED = Case(
    (
        Step("table", "table", ("names",), STORE),
        Step("stream", "stream", ("rows",)),
        Step("counts", "count", ("stream",), STORE),
        Step("joined", "tableJoin", ("table", "counts"), {"kind": "inner"}),
        Step("sums", "group", ("joined",), STORE),
    ),
    tuple(InputRecord(topic, BEGIN, key, "a|0") for topic in ("names", "rows") for key in "abc"),
)
LATE = Case(
    (
        Step("left", "stream", ("rows",)),
        Step("right", "stream", ("others",)),
        Step("joined", "streamJoin", ("left", "right"), {"kind": "left", "size": 50, "grace": 0}),
    ),
    tuple(InputRecord("rows", BEGIN + at, "a", "a|0") for at in (385, 425, 430, 440, 480)),
)
# Optimized, the records are spread by the key that they have before the processor.
REKEYED = Case(
    (
        Step("stream", "stream", ("rows",)),
        Step("selected", "selectKey", ("stream",)),
        Step("rekeyed", "rekey", ("selected",)),
        Step("counts", "count", ("rekeyed",), STORE),
    ),
    tuple(InputRecord("rows", BEGIN, "a", f"{head}|1") for head in "abcd"),
    optimized=True,
    partitions=2,
)
# A row is joined with the sum of its foreign key, which comes later, and what comes of it with another table.
REJOINED = Case(
    (
        Step("table", "table", ("rows",), STORE),
        Step("others", "table", ("others",), STORE),
        Step("sums", "group", ("table",), STORE),
        Step("summed", "foreignKeyJoin", ("table", "sums"), {"left": False, **STORE}),
        Step("joined", "foreignKeyJoin", ("summed", "others"), {"left": False, **STORE}),
    ),
    (
        InputRecord("others", BEGIN, "a", "a|1"),
        InputRecord("rows", BEGIN, "a", "a|0"),
        InputRecord("rows", BEGIN, "a", "z|0"),
    ),
)
# A filter drops the change of a row that it had let through, as it would not have let the first value through.
FILTERED = Case(
    (
        Step("table", "table", ("names",), STORE),
        Step("stream", "stream", ("rows",)),
        Step("sums", "sum", ("stream",), STORE),
        Step("joined", "tableJoin", ("table", "sums"), {"kind": "left"}),
        Step("odd", "filterTable", ("joined",)),
    ),
    (InputRecord("names", BEGIN, "a", "a|0"), InputRecord("rows", BEGIN, "a", "z|0")),
)
SHARED = Case(
    (
        Step("stream", "stream", ("rows",)),
        Step("selected", "selectKey", ("stream",)),
        Step("odd", "filter", ("selected",)),
        Step("counts", "count", ("odd",), STORE),
        Step("sums", "sum", ("odd",), STORE),
    ),
    (InputRecord("rows", BEGIN, "a", "b|1"),),
    optimized=True,
)
AT_ONCE = Case(
    (
        Step("table", "table", ("rows",), {"store": VERSIONED, "history": NEVER}),
        Step("sums", "group", ("table",), STORE),
    ),
    tuple(InputRecord("rows", BEGIN + at, "a", value) for at, value in ((10, "a|0"), (10, None), (5, "a|1"))),
)


@pytest.mark.parametrize(
    ("case", "key"),
    [
        (SAME_KEY, "KIP-213, same key (no JIRA)"),
        (
            replace(SAME_KEY, records=(*SAME_KEY.records[:2], InputRecord("rows", BEGIN, "a", ";z|1"))),
            "KIP-213, insert",
        ),
        (AT_ONCE, "KIP-889, same time (no JIRA)"),
        (REVIVED, "KIP-889, restored (no JIRA)"),
        (REVIVED_BETWEEN, "KIP-889, restored (no JIRA)"),
        (UNCACHED, "uncached count (no JIRA)"),
        (LATE, "KAFKA-15417, late (no JIRA)"),
        (REKEYED, "KAFKA-19668"),
        (REJOINED, "KIP-213, insert (no JIRA)"),
        (replace(REJOINED, records=(InputRecord("rows", BEGIN, "b", "z|1"), *REJOINED.records)), "KIP-213, same key"),
        (FILTERED, "uncached count (no JIRA)"),
        (SHARED, "shared filter (no JIRA)"),
    ],
)
def test_a_known_issue_of_the_newest_release_is_recognised(case, key, tmp_path):
    with Lane(HERE, NEWEST, tmp_path / "lane.log") as lane:

        def run(one: Case) -> JudgedCase:
            answer = lane.run(one.encoded)
            if "failed" in answer:
                return JudgedCase((Difference(one.leaves[0].name, "failed", answer["failed"]),))
            return judge(one, answer["outputs"], NEWEST)

        known = explain(case, run(case), causes_in(NEWEST), run)
    assert [one.startswith(key) for one in known.keys] == [True]
    assert known.judged.differences == ()


def printed(case: Case, topic: str, release: Release, folder: Path) -> str:
    """The failure of its printed test on a release; an empty text if it passes."""
    source = folder / f"{NAME}.java"
    turns: list[str] = []
    if case.partitions > 1:
        with Lane(HERE, release, folder / "lane.log") as lane:
            turns = lane.run(case.encoded)["turns"]
    source.write_text(unit_test(case, topic, "Written by hand.", turns))
    class_path = joined(*replay_class_path(HERE, release), *launcher())
    classes = compile_java([source], class_path, folder / str(release))
    on = joined(classes, *replay_class_path(HERE, release), *launcher())
    [said] = run_tests(on, folder / f"report {release}", f"--scan-classpath={classes}").values()
    return said


def test_a_printed_test_fails_on_a_red_case_and_passes_on_green(tmp_path):
    assert printed(SAME_KEY, "joined", BEFORE, tmp_path) == ""
    assert "expected: <{}> but was: <{a=a|0/a|0}>" in printed(SAME_KEY, "joined", BROUGHT, tmp_path)


def test_a_printed_test_of_two_tasks_takes_their_turns(tmp_path):
    late = replace(TWO_TASKS, schedule=RED_SCHEDULE)
    assert "but was: <{k=b|0/-}>" in printed(late, "joined", Release(3, 9, 0), tmp_path)
    assert printed(late, "joined", BROUGHT, tmp_path) == ""


def test_a_printed_test_opens_stores_again(tmp_path):
    assert printed(opened_again(ON_DISK), "found", NEWEST, tmp_path) == ""
    assert "but was: <[a = x|0/- at 1000020]>" in printed(opened_again(WITH_VERSIONS), "found", NEWEST, tmp_path)


def test_a_printed_test_restores(tmp_path):
    assert "but was: <[a = x|0/a|1 at 1009000]>" in printed(REVIVED, "found", NEWEST, tmp_path)
    table = Step("table", "table", ("rows",), STORE)
    assert printed(replace(REVIVED, steps=(table, *REVIVED.steps[1:])), "found", NEWEST, tmp_path) == ""


def a_finding(number: int, case: Case, kind: str, folder: Path) -> FuzzFinding:
    folder.mkdir()
    (folder / "case.json").write_text(json.dumps(case.encoded))
    return FuzzFinding(
        number=number,
        title="a title",
        case_number=7,
        cases=8,
        after=1.5,
        reds=1,
        differences=(Difference("joined", kind, "a = a|0/a|0"),),
        case=str(case),
        folder=str(folder),
    )


def test_findings_are_bisected_over_releases(tmp_path):
    two_tasks = replace(TWO_TASKS, schedule=RED_SCHEDULE)
    findings = (
        a_finding(1, SAME_KEY, "unexpected", tmp_path / "1"),
        a_finding(2, two_tasks, "wrong", tmp_path / "2"),
    )
    state = Fuzzed(run="r", streams="3.9.1", against=None, seed=1, harness="h", findings=findings, folder=str(tmp_path))
    line = [Release(3, 9, patch) for patch in range(3)]
    done = try_releases(state, line, lambda release: Lane(HERE, release, tmp_path / "lane.log"), lambda _: None)
    assert [finding.releases for finding in done.findings] == [
        {"3.9.0": "green", "3.9.1": "red", "3.9.2": "red"},
        {"3.9.0": "red", "3.9.1": "green", "3.9.2": "green"},
    ]
    assert "| 3.9 | 3.9.0 | 3.9.1 | 3.9.2 | — |" in (tmp_path / "1/ticket.md").read_text()
    assert "| 3.9 | — | 3.9.0 | 3.9.0 | 3.9.1 |" in (tmp_path / "2/ticket.md").read_text()


def test_every_case_of_the_snapshot_compiles_when_printed(tmp_path):
    sources = []
    for number, case in enumerate(snapshot()):
        sources.append(tmp_path / f"{NAME}{number}.java")
        text = unit_test(case, case.leaves[0].name, "Drawn.")
        sources[-1].write_text(text.replace(f"class {NAME} ", f"class {NAME}{number} "))
    compile_java(sources, joined(*replay_class_path(HERE, NEWEST), *launcher()), tmp_path / "classes")


@pytest.mark.night
def test_fuzzing_finds_a_regression_that_nobody_told_it_of(tmp_path):
    with Lane(HERE, BROUGHT, tmp_path / "lane.log") as lane:
        state = Fuzzed(run="r", streams=str(BROUGHT), against=None, seed=1, harness="h", folder=str(tmp_path))
        done = Fuzzer(tmp_path, state, lane).fuzz(300)
    assert "KIP-213, same key (no JIRA)" in {known.issue for known in done.issues}


def write_snapshot(folder: Path) -> None:
    """Draw the snapshot anew, of cases that are green on both releases and that the newest one judges as a whole."""
    lines: list[str] = []
    number = 0
    with Lane(HERE, NEWEST, folder / "lane.log") as lane, Lane(HERE, OLDEST, folder / "oldest.log") as oldest:
        while len(lines) < DRAWN:
            case = draw(7, number, NEWEST)
            number += 1
            answer = lane.run(case.encoded)
            judged = judge(case, answer.get("outputs", {}), NEWEST)
            if "failed" in answer or judged.differences or judged.left_out:
                continue
            if not OLDEST.since(case.since) or not kinds(oldest, case):
                lines.append(json.dumps(case.encoded))
    SNAPSHOT.write_text("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        write_snapshot(Path(scratch))
