"""Topologies that are drawn, on released Kafka Streams in a JVM and without brokers.

`python -m tests.lab.test_lane` draws the snapshot anew, of which every case must be green.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from onceproof.campaigns.fuzz.fuzzing import Fuzzed, Fuzzer
from onceproof.campaigns.fuzz.grammar import BEGIN, MEMORY, ROCKSDB, VERSIONED, Case, Record, Step, draw
from onceproof.campaigns.fuzz.printing import NAME, unit_test
from onceproof.campaigns.fuzz.relational import judge
from onceproof.lab.artifacts import replay_class_path
from onceproof.lab.lane import Lane
from onceproof.model.errors import HarnessError
from onceproof.model.release import Release
from tests.conftest import HERE
from tests.lab.test_findings import compiled, joined, launcher, ran

pytestmark = pytest.mark.broker  # it needs Kafka Streams, though no broker

SNAPSHOT = Path(__file__).parents[1] / "specimens" / "drawn_cases.jsonl"
DRAWN = 60
OLDEST, BEFORE, BROUGHT, NEWEST = (Release.parse(text) for text in ("3.0.0", "3.8.1", "3.9.1", "4.4.0"))
STORE = {"store": MEMORY, "cached": False}
# A row that has a result asks for a key that is not there, and changes once more before that is answered.
SAME_KEY = Case(
    (
        Step("left", "burst", ("rows",), STORE),
        Step("right", "table", ("others",), STORE),
        Step("joined", "foreignKeyJoin", ("left", "right"), {"left": False, **STORE}),
    ),
    (
        Record("others", BEGIN, "a", "a|0"),
        Record("rows", BEGIN, "a", "a|0"),
        Record("rows", BEGIN, "a", "z|0;z|1"),
    ),
)


def snapshot() -> Iterator[Case]:
    return (Case.decoded(json.loads(line)) for line in SNAPSHOT.read_text().splitlines())


def kinds(lane: Lane, case: Case) -> tuple[str, ...]:
    answer = lane.run(case.encoded)
    assert "failed" not in answer, f"{answer['failed']}\n{case}"
    return judge(case, answer["outputs"], lane.release).kinds


@pytest.mark.parametrize("release", [OLDEST, NEWEST], ids=str)
def test_every_case_of_the_snapshot_is_green(release, tmp_path):
    with Lane(HERE, release, tmp_path / "lane.log") as lane:
        assert [str(case) for case in snapshot() if release.since(case.since) and kinds(lane, case)] == []


def test_a_stale_result_of_a_foreign_key_join_is_found_where_it_is(tmp_path):
    seen = {}
    for release in (BEFORE, BROUGHT):
        with Lane(HERE, release, tmp_path / "lane.log") as lane:
            seen[release] = kinds(lane, SAME_KEY)
    assert seen == {BEFORE: (), BROUGHT: ("unexpected",)}


def test_a_table_is_found_again_when_its_store_is_opened_again_and_history_is_not(tmp_path):
    def case(store: dict) -> Case:
        asks = Step("found", "lookup", ("stream", "table"), {"left": True})
        steps = (Step("table", "table", ("rows",), store), Step("stream", "stream", ("asked",)), asks)
        records = (("rows", 0, "a|0"), ("rows", 50, "a|1"), ("asked", 20, "x|0"))
        return Case(steps, tuple(Record(topic, BEGIN + at, "a", value) for topic, at, value in records), reopened=(2,))

    with Lane(HERE, NEWEST, tmp_path / "lane.log") as lane:
        assert kinds(lane, case({"store": ROCKSDB, "cached": False})) == ()
        assert kinds(lane, case({"store": VERSIONED})) == ("missing", "unexpected")


def test_a_topology_that_does_not_build_is_told_and_a_jvm_that_ended_is_an_error(tmp_path):
    with Lane(HERE, OLDEST, tmp_path / "lane.log") as lane:
        versioned = Case((Step("table", "table", ("rows",), {"store": VERSIONED}),), SAME_KEY.records[1:2])
        assert "versioned stores" in lane.run(versioned.encoded)["failed"]
        assert kinds(lane, SAME_KEY) == ()
    with pytest.raises(HarnessError, match="ended"):
        lane.run(SAME_KEY.encoded)


def test_a_printed_test_fails_where_the_case_is_red_and_passes_where_it_is_green(tmp_path):
    source = tmp_path / f"{NAME}.java"
    source.write_text(unit_test(SAME_KEY, "joined", "Written by hand."))
    said = {}
    for release in (BEFORE, BROUGHT):
        class_path = joined(*replay_class_path(HERE, release), *launcher())
        classes = compiled([source], class_path, tmp_path / str(release))
        [said[release]] = ran(release, classes, tmp_path / f"report {release}").values()
    assert said[BEFORE] == ""
    assert "expected: <{}> but was: <{a=a|0/a|0}>" in said[BROUGHT]


def test_every_case_of_the_snapshot_is_printed_so_that_it_compiles(tmp_path):
    sources = []
    for number, case in enumerate(snapshot()):
        sources.append(tmp_path / f"{NAME}{number}.java")
        text = unit_test(case, case.leaves[0].name, "Drawn.")
        sources[-1].write_text(text.replace(f"class {NAME} ", f"class {NAME}{number} "))
    compiled(sources, joined(*replay_class_path(HERE, NEWEST), *launcher()), tmp_path / "classes")


@pytest.mark.night
def test_fuzzing_finds_a_regression_that_nobody_told_it_of(tmp_path):
    with Lane(HERE, BROUGHT, tmp_path / "lane.log") as lane:
        state = Fuzzed(run="r", streams=str(BROUGHT), against=None, seed=1, harness="h", folder=str(tmp_path))
        found = Fuzzer(tmp_path, state, lane).fuzz(300).findings
    assert any("foreignKeyJoin" in finding.title and "unexpected" in finding.title for finding in found)


def write_snapshot(folder: Path) -> None:
    """Draw the snapshot anew, of cases that are green on the newest release and that it judges as a whole."""
    lines, number = [], 0
    with Lane(HERE, NEWEST, folder / "lane.log") as lane:
        while len(lines) < DRAWN:
            case = draw(7, number, NEWEST)
            number += 1
            answer = lane.run(case.encoded)
            judged = judge(case, answer.get("outputs", {}), NEWEST)
            if "failed" not in answer and not judged.differences and not judged.left_out:
                lines.append(json.dumps(case.encoded))
    SNAPSHOT.write_text("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        write_snapshot(Path(scratch))
