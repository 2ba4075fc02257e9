"""Verdicts on a release say whether it qualified with this version of the harness."""

import pytest

from onceproof.harness import harness_version
from onceproof.model.cell import Cell
from onceproof.model.qualification import Qualification, QualificationPart, QualificationRow, Sight
from onceproof.model.release import Release
from onceproof.results.qualified import distinct, explain_unqualified, keep, read_kept

OLD, NEW = Release(4, 3, 1), Release(4, 4, 0)
CELL = Cell("crash", "DEFAULT_CONFIG", NEW, NEW)


def found(sight: Sight, streams: Release = NEW, harness: str = "") -> Qualification:
    rows = (
        QualificationRow(QualificationPart.PHRASE, "fenced", sight, "no log has it"),
        QualificationRow(QualificationPart.PLANT, "put-lost", sight, "did not fire"),
    )
    return Qualification(
        run="r",
        scenarios=(),
        trials=2,
        seconds=1.0,
        rows=rows,
        streams=str(streams),
        broker=str(NEW),
        harness=harness or harness_version(),
    )


@pytest.mark.parametrize(
    ("sight", "expected"),
    [
        (Sight.SEEN, ""),
        (
            Sight.MISSING,
            "4.4.0 on brokers 4.4.0 does not qualify: phrase fenced: no log has it, and 1 more; "
            "`onceproof release qualify 4.4.0 --broker 4.4.0` looks again.",
        ),
        (
            Sight.UNKNOWN,
            "4.4.0 on brokers 4.4.0 does not qualify: phrase fenced: no log has it, and 1 more; "
            "`onceproof release qualify 4.4.0 --broker 4.4.0` looks again.",
        ),
    ],
)
def test_a_verdict_says_what_the_release_lacks(tmp_path, sight, expected):
    keep(found(sight), tmp_path)
    assert explain_unqualified(tmp_path, CELL) == expected


@pytest.mark.parametrize("harness", [None, "0.0.1+00000000"])
def test_results_of_another_harness_version_do_not_count(tmp_path, harness):
    if harness:
        keep(found(Sight.SEEN, harness=harness), tmp_path)
    assert explain_unqualified(tmp_path, CELL) == (
        "It is not shown that this version of the harness sees on 4.4.0 on brokers 4.4.0: "
        "`onceproof release qualify 4.4.0 --broker 4.4.0` shows it."
    )


def test_both_releases_of_a_cell_count_and_the_last_look_does(tmp_path):
    keep(found(Sight.SEEN), tmp_path)
    keep(found(Sight.MISSING, OLD), tmp_path)
    both = Cell("crash", "DEFAULT_CONFIG", OLD, NEW, NEW)
    assert explain_unqualified(tmp_path, both).startswith("4.3.1 on brokers 4.4.0 does not qualify")
    keep(found(Sight.SEEN, OLD), tmp_path)
    assert explain_unqualified(tmp_path, both) == ""
    assert read_kept(tmp_path, OLD, NEW) == found(Sight.SEEN, OLD)


def test_of_brokers_that_are_only_claimed_nothing_can_be_said(tmp_path):
    assert explain_unqualified(tmp_path, Cell("crash", "DEFAULT_CONFIG", NEW, NEW.claimed)) == ""


def test_a_sentence_about_several_cells_is_told_once():
    assert distinct(["b", "", "a", "b"]) == ["a", "b"]


def test_releases_without_evidence_share_one_sentence(tmp_path):
    cells = [Cell("crash", "DEFAULT_CONFIG", one, NEW) for one in (OLD, NEW, Release(4, 2, 2))]
    over = Cell("crash", "DEFAULT_CONFIG", OLD, NEW, NEW)
    one, two = (explain_unqualified(tmp_path, cell) for cell in cells[:2])
    assert distinct([one]) == [one]
    where = "4.2.2 on brokers 4.4.0, 4.3.1 on brokers 4.4.0 and 4.4.0 on brokers 4.4.0"
    shared = (
        f"It is not shown that this version of the harness sees on {where}: "
        "`onceproof release qualify RELEASE --broker BROKERS` shows it."
    )
    sentences = [explain_unqualified(tmp_path, cell) for cell in (*cells, over)]
    assert distinct(sentences) == [shared]
    keep(found(Sight.MISSING), tmp_path)
    doubt = explain_unqualified(tmp_path, cells[1])
    assert distinct([*sentences[:1], *sentences[2:3], f"{one} {doubt}", doubt]) == [
        shared.replace(" and 4.4.0 on brokers 4.4.0", "").replace("4.4.0, 4.3.1", "4.4.0 and 4.3.1"),
        doubt,
    ]
    assert two in sentences
