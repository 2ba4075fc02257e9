"""The branches by which a red case differs from a green one: what JaCoCo writes, and released Kafka Streams."""

from io import BytesIO
from pathlib import Path

import pytest

from onceproof.campaigns.fuzz import fuzzing, verbs
from onceproof.campaigns.fuzz.fuzzing import Fuzzed
from onceproof.campaigns.fuzz.grammar import BEGIN, MEMORY, Case, InputRecord, Step, nearby
from onceproof.campaigns.fuzz.relational import JudgedCase, judge
from onceproof.lab.coverage import (
    Branch,
    Watched,
    compare_lines,
    differing,
    differing_probes,
    methods_of,
    read_lines,
    read_probes,
    write_probes,
)
from onceproof.lab.lane import Lane
from onceproof.model.errors import HarnessError
from onceproof.model.release import Release
from tests.conftest import HERE

SPECIMENS = Path(__file__).parents[1] / "specimens" / "coverage"
END = b"\x20"  # behind an answer of the agent; a file has none
METHODS = {
    line: method for file in sorted(SPECIMENS.glob("*.class")) for line, method in methods_of(file.read_bytes()).items()
}


def probes(name: str) -> bytes:
    return (SPECIMENS / f"{name}.exec").read_bytes()


def lines(name: str) -> dict[tuple[str, int], tuple[int, int]]:
    return dict(read_lines((SPECIMENS / f"{name}.xml").read_text()))


def test_probes_are_read_as_written_by_agent_and_for_the_report(tmp_path):
    read = read_probes(BytesIO(probes("red") + END))
    assert {name: hit for (_, name), hit in read.items()} == {
        "sample/Sample": (False, True, True, True, False, True, True, True),
        "sample/Sample$Nested": (True, False, True),
    }
    write_probes(tmp_path / "red", read)
    written = (tmp_path / "red").read_bytes()
    assert written[5:] in probes("red")  # behind the header and the session
    assert read_probes(BytesIO(written + END)) == read


def test_many_probes_and_a_negative_checksum_are_read_as_written(tmp_path):
    many = {(-1, "a/B"): tuple(at % 3 == 0 for at in range(300)), (1, "a/C"): (True,) * 127, (2, "a/D"): (False,) * 128}
    write_probes(tmp_path / "many", many)
    assert read_probes(BytesIO((tmp_path / "many").read_bytes() + END)) == many


@pytest.mark.parametrize(
    ("answer", "said"), [(probes("red"), "ended before"), (probes("red")[:-1], "ended before"), (b"\x77", "block 0x77")]
)
def test_an_answer_that_ends_or_is_of_another_format_is_an_error(answer, said):
    with pytest.raises(HarnessError, match=said):
        read_probes(BytesIO(answer))


def test_probes_differ_where_one_of_two_cases_hit_them():
    red, green = (read_probes(BytesIO(probes(name) + END)) for name in ("red", "green"))
    assert {(name, at) for (_, name), at in differing_probes(red, green)} == {
        ("sample/Sample$Nested", 1),
        ("sample/Sample$Nested", 2),
    }
    assert differing_probes(red, red) == set()
    assert differing_probes(red, {}) == {
        (key, at) for key, hit in red.items() for at, is_hit in enumerate(hit) if is_hit
    }


def test_a_line_has_its_method_also_in_lambdas_and_constructors():
    assert {number: METHODS["sample/Sample.java", number] for number in (5, 11, 15, 18, 20)} == {
        5: "Sample.Sample",
        11: "Sample.main",
        15: "Sample.main",
        18: "Sample$Nested.Nested",
        20: "Sample$Nested.sign",
    }


def test_a_line_with_other_branches_differs_despite_equal_counts():
    red, green = lines("red"), lines("green")
    assert red["sample/Sample.java", 20] == green["sample/Sample.java", 20]
    assert compare_lines(red, green, lines("either"), METHODS) == (
        Branch(at="Sample$Nested.sign:20", by="both"),
        Branch(at="Sample$Nested.sign:23", by="red"),
        Branch(at="Sample$Nested.sign:21", by="green"),
    )
    assert compare_lines(red, red, red, METHODS) == ()


# --- on released Kafka Streams ---------------------------------------------------------------------------------------

STORE = {"store": MEMORY, "cached": False}
STEPS = (
    Step("left", "burst", ("rows",), STORE),
    Step("right", "table", ("others",), STORE),
    Step("joined", "foreignKeyJoin", ("left", "right"), {"left": False, **STORE}),
)
FOREIGN = InputRecord("others", BEGIN, "a", "a|0")
# A row without a foreign key gets one (KAFKA-16407).
NULL_KEY = Case(STEPS, (FOREIGN, InputRecord("rows", BEGIN, "a", "|0"), InputRecord("rows", BEGIN, "a", "a|1")))
# A row that has a result asks for a key that is not there, and changes once more before that is answered.
SAME_KEY = Case(STEPS, (FOREIGN, InputRecord("rows", BEGIN, "a", "a|0"), InputRecord("rows", BEGIN, "a", "z|0;z|1")))


@pytest.mark.broker  # it needs Kafka Streams, though no broker
@pytest.mark.parametrize(
    ("release", "case", "named"),
    [
        (Release(3, 8, 1), NULL_KEY, "SubscriptionSendProcessorSupplier$UnbindChangeProcessor.defaultJoinInstructions"),
        (Release(3, 9, 1), SAME_KEY, "SubscriptionJoinProcessorSupplier$1.process"),
    ],
    ids=["KAFKA-16407", "same key"],
)
def test_a_known_failure_differs_by_a_line_of_its_join(release, case, named, tmp_path):
    with Lane(HERE, release, tmp_path / "lane.log") as lane:

        def judged(one: Case) -> JudgedCase:
            return judge(one, lane.run(one.encoded)["outputs"], release)

        assert judged(case).differences
        greens = [one for one in nearby(case) if one.records and judged(one) == JudgedCase()]
    found = differing(HERE, release, case.encoded, [one.encoded for one in greens], tmp_path)
    assert found is not None
    assert named in {branch.at.rpartition(":")[0] for branch in found[1] if branch.by == "red"}


@pytest.mark.broker
def test_a_case_differs_by_nothing_from_itself(tmp_path):
    assert differing(HERE, Release(3, 8, 1), NULL_KEY.encoded, [NULL_KEY.encoded], tmp_path) is None


@pytest.mark.broker
def test_a_watched_jvm_that_ended_is_an_error(tmp_path):
    with Watched(HERE, Release(3, 8, 1), tmp_path / "lane.log") as watched:
        assert any(name.endswith("UnbindChangeProcessor") for _, name in watched.run(NULL_KEY.encoded))
    with pytest.raises(HarnessError, match="gave no answer"):
        watched.run(NULL_KEY.encoded)


@pytest.mark.broker
def test_a_finding_of_fuzzing_names_the_line_of_its_bug(tmp_path, monkeypatch):
    monkeypatch.setattr(fuzzing, "draw", lambda *_, **__: SAME_KEY)
    monkeypatch.setattr(fuzzing, "causes_in", lambda _: ())
    state = Fuzzed(run="r", streams="3.9.1", against=None, seed=1, harness="h", folder=str(tmp_path))
    [finding] = verbs.fuzz(state, 0.01, lambda _: None).findings
    assert finding.nearest is not None
    assert finding.nearest.reason is None
    assert "| `SubscriptionJoinProcessorSupplier$1.process:119` | the red case |" in (
        tmp_path / "findings/1/finding.md"
    ).read_text(encoding="utf-8")
