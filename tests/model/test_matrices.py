"""The matrices as files: ours, and a team's."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from onceproof.model.errors import UsageError
from onceproof.model.known_issues import registry
from onceproof.model.matrices import MATRICES, Block, Matrix, matrix_from, parse_matrices, read_matrix
from onceproof.model.matrix import Request
from onceproof.scenarios import CATALOGUE
from onceproof.scenarios.cover import exact
from tests.published import exactly, expanded, with_release

OURS = """
[team]
description = "What our applications run on."
brokers = ["3.9.1", "4.1.2"]
trials = 3
risk = 0.1
cells = ["quota-DEFAULT_CONFIG-s3.8.1-b4.3.1", "crash-DEFAULT_CONFIG-s3.9.1-r4.3.1-b4.3.1"]

[[team.blocks]]
scenario = "crash"
variants = ["DEFAULT_CONFIG"]
streams = ["3.9.1"]
restarts = [["3.9.1", "4.1.2"]]

[[team.blocks]]
scenario = "quota"
variants = ["DEFAULT_CONFIG"]
streams = ["3.9.1"]
brokers = ["4.0.1"]
"""


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "team.toml"
    file.write_text(OURS)
    return file


def blocks_of(asked: Request) -> tuple[Block, ...]:
    """The blocks of the matrix that is asked for."""
    assert isinstance(asked.matrix, Matrix)
    return asked.matrix.blocks


def keys(request):
    return [cell.key for cell in expanded(request).cells]


def test_a_team_has_a_matrix_of_its_own(file):
    matrix = read_matrix(file)
    expansion = expanded(Request(matrix))
    assert (expansion.matrix, expansion.trials, expansion.risk) == ("team", 3, 0.1)
    assert keys(Request(matrix)) == [
        "crash-DEFAULT_CONFIG-s3.9.1-b3.9.1",
        "crash-DEFAULT_CONFIG-s3.9.1-b4.1.2",
        "crash-DEFAULT_CONFIG-s3.9.1-r4.1.2-b3.9.1",
        "crash-DEFAULT_CONFIG-s3.9.1-r4.1.2-b4.1.2",
        "crash-DEFAULT_CONFIG-s3.9.1-r4.3.1-b4.3.1",
        "quota-DEFAULT_CONFIG-s3.9.1-b4.0.1",
        "quota-DEFAULT_CONFIG-s3.8.1-b4.3.1",
    ]
    assert matrix.releases() == ["3.8.1", "3.9.1", "4.1.2", "4.3.1"]


@pytest.mark.parametrize(
    ("axes", "left"),
    [
        (
            {"scenarios": ("quota",)},
            ["quota-DEFAULT_CONFIG-s3.9.1-b4.0.1", "quota-DEFAULT_CONFIG-s3.8.1-b4.3.1"],
        ),
        (
            {"scenarios": ("quota",), "brokers": ("4.3.1",)},
            ["quota-DEFAULT_CONFIG-s3.9.1-b4.3.1", "quota-DEFAULT_CONFIG-s3.8.1-b4.3.1"],
        ),
        (
            {"restarts": ("4.3.1",), "brokers": ("4.3.1",), "scenarios": ("crash",)},
            ["crash-DEFAULT_CONFIG-s3.9.1-r4.3.1-b4.3.1"],
        ),
    ],
)
def test_a_request_leaves_those_single_cells_that_it_names(file, axes, left):
    assert keys(Request(read_matrix(file), **axes)) == left


@pytest.mark.parametrize("matrix", [*MATRICES.values(), parse_matrices(OURS, "ours")["team"]], ids=lambda m: m.name)
def test_it_travels_as_json(matrix):
    assert matrix_from(json.loads(json.dumps(matrix.to_dict())), "param") == matrix


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[team]", "[team", "is not TOML"),
        ("team", "first-look", "first-look is a matrix of Onceproof"),
        ("team", "seed", "seed is a matrix of Onceproof"),
        ("[team]", '["Our Team"]', "named with lower-case letters"),
        ("[team]", "[other]\ndescription = 'x'\ncells = ['quota-DEFAULT_CONFIG-s3.8.1-b4.3.1']\n[team]", "one matrix"),
        (
            "risk = 0.1",
            "risks = 0.1",
            r"there is no field 'risks'; did you mean risk\? Choose from name, description, blocks",
        ),
        ("risk = 0.1", 'risk = "low"', 'risk must be a number, not "low"'),
        ("trials = 3", "trials = true", "trials must be a whole number"),
        ("description =", "brief =", "there is no field 'brief'"),
        ('description = "What our applications run on."', "", "description is missing"),
        ('scenario = "crash"', "", "blocks.1.scenario is missing"),
        ('["3.9.1", "4.1.2"]]', '["3.9.1"]]', "blocks.1.restarts.1.2 is missing"),
        ('streams = ["3.9.1"]', 'streams = ["3.x"]', "'3.x' is not a Kafka release"),
        ('streams = ["3.9.1"]', 'streams = ["3.12"]', "No release of the line 3.12 is published, as tests say"),
        ('brokers = ["4.0.1"]', 'brokers = ["last-bad"]', "last-bad means nothing in quota: no known issue of brokers"),
        ('brokers = ["3.9.1", "4.1.2"]', 'brokers = ["last-bad"]', "'last-bad' is not a Kafka release"),
        ("trials = 3", 'covers = "weekly"', "covers weekly, so it has no blocks, cells and includes of its own"),
        ("trials = 3", 'includes = ["brokers"]', "brokers is computed and cannot be included; run it separately"),
        ('brokers = ["3.9.1", "4.1.2"]', 'brokers = ["latest"]', "'latest' is not a Kafka release"),
        ("quota-DEFAULT_CONFIG-s3.8.1-b4.3.1", "quota-s3.8.1", "'quota-s3.8.1' is no cell"),
        ("quota-DEFAULT_CONFIG-s3.8.1-b4.3.1", "elevator-DEFAULT_CONFIG-s3.8.1-b4.3.1", "no scenario 'elevator'"),
        ("quota-DEFAULT_CONFIG-s3.8.1-b4.3.1", "quota-FAST-s3.8.1-b4.3.1", "no variant 'FAST' of quota"),
        ('variants = ["DEFAULT_CONFIG"]', 'variants = ["FAST"]', "no variant 'FAST' of crash"),
        ("trials = 3", 'includes = ["monthly"]', "no matrix 'monthly' to include; choose from first-look, nightly"),
        ("trials = 3", 'includes = "nightly"', 'includes must be a list, not "nightly"'),
    ],
)
def test_what_is_wrong_in_a_file_is_named(file, old, new, said):
    assert old in OURS
    file.write_text(OURS.replace(old, new))
    with pytest.raises(UsageError, match=said):
        expanded(Request(read_matrix(file)))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty: write one matrix"),
        (b"team = 3", "must be a table, not 3"),
        (b"[team]\ndescription = 'x'", "has neither blocks nor cells"),
        (b"\xff", "it is not text"),
        (None, "No such file"),
    ],
)
def test_what_is_no_matrix_at_all_is_refused(file, content, said):
    file.unlink() if content is None else file.write_bytes(content)
    with pytest.raises(UsageError, match=said):
        read_matrix(file)


def test_a_matrix_may_include_others_and_has_their_cells_first(file):
    file.write_text(OURS.replace("trials = 3", 'includes = ["seed"]'))
    included = read_matrix(file)
    first_look, own = MATRICES["first-look"], parse_matrices(OURS, "ours")["team"]
    assert included.blocks == (*first_look.blocks, *own.blocks)
    assert included.cells == own.cells
    assert (included.name, included.trials, included.risk) == ("team", 1, 0.1)


def test_a_matrix_includes_only_earlier_ones_of_its_file():
    before = parse_matrices(OURS.replace("team", "one") + OURS.replace("trials = 3", 'includes = ["one"]'), "ours")
    assert before["team"].blocks == 2 * before["one"].blocks
    with pytest.raises(UsageError, match="there is no matrix 'one' to include"):
        parse_matrices(OURS.replace("trials = 3", 'includes = ["one"]') + OURS.replace("team", "one"), "ours")


def test_the_example_of_the_documentation_can_be_run(file):
    text = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
    [example] = [block for block in re.findall(r"```toml\n(.*?)```", text, re.DOTALL) if "blocks" in block]
    file.write_text(example)
    expansion = expanded(Request(read_matrix(file)))
    assert len(expansion.cells) == 28  # 16 of them only in the one that it includes
    assert not expansion.refused


def test_the_newest_release_is_in_each_of_ours():
    for name in MATRICES:
        cells = expanded(Request(name)).cells
        assert "4.4.0" in {str(release) for cell in cells for release in (cell.running, cell.broker)}, name


def test_an_included_matrix_keeps_its_brokers_unless_named(file):
    file.write_text(OURS.replace("trials = 3", 'includes = ["seed"]').replace('brokers = ["3.9.1", "4.1.2"]\n', ""))
    seeds = [cell for cell in expanded(Request(read_matrix(file))).cells if cell.scenario == "enumerator"]
    assert {str(cell.broker) for cell in seeds} == {"3.9.2"}
    own = [cell for cell in expanded(Request(read_matrix(file))).cells if str(cell.restart_on) == "4.1.2"]
    assert {str(cell.broker) for cell in own} == {"3.9.2"}  # a matrix that names none has those of 3.9


def test_a_team_may_use_words_and_cover_one_of_ours(file):
    file.write_text(
        OURS.replace('streams = ["3.9.1"]', 'streams = ["first-bad", "last-bad", "first-good", "previous"]')
    )
    assert [key for key in keys(Request(read_matrix(file), scenarios=("quota",))) if key.endswith("b4.0.1")] == [
        f"quota-DEFAULT_CONFIG-s{release}-b4.0.1" for release in ("3.0.0", "3.9.0", "3.9.1", "4.3.1")
    ]
    file.write_text("[team]\ndescription = 'x'\ncovers = 'seed'\nbrokers = ['4.2', 'newest']")
    covered = expanded(Request(read_matrix(file), scenarios=("crash",)))
    assert {str(cell.broker) for cell in covered.cells} == {"4.2.2", "4.4.0"}


def test_a_word_that_the_request_replaces_is_not_resolved():
    def ask():
        raise AssertionError("Maven is asked")

    whole = Request("first-look", ("3.4.1",), ("3.9.1",), scenarios=("enumerator",))
    assert exact(whole, ask, registry(), CATALOGUE).streams == ("3.4.1",)
    with pytest.raises(AssertionError, match="Maven is asked"):
        exact(replace(whole, streams=("previous",)), ask, registry(), CATALOGUE)


def test_the_last_bad_release_of_an_open_issue_is_the_newest():
    block = Block(
        "multirunner", ("TOPOLOGY_PAUSED",), ("first-bad", "last-bad", "first-good"), (("last-bad", "newest"),)
    )
    asked = Request(replace(MATRICES["first-look"], blocks=(block,)))
    [meant] = blocks_of(exactly(asked))
    assert (meant.streams, meant.restarts) == (("3.8.0", "4.4.0"), ())
    [meant] = blocks_of(exactly(asked, with_release("4.5.0")))
    assert meant.streams == ("3.8.0", "4.5.0")
