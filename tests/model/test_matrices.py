"""The matrices as files: ours, and a team's."""

import json
import re
from pathlib import Path

import pytest

from onceproof.model.errors import UsageError
from onceproof.model.matrices import MATRICES, NEWEST, matrix_from, parse_matrices, read_matrix
from onceproof.model.matrix import Request, expand
from onceproof.scenarios import CATALOGUE

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


def keys(request):
    return [cell.key for cell in expand(request, CATALOGUE).cells]


def test_a_team_has_a_matrix_of_its_own(file):
    matrix = read_matrix(file)
    expansion = expand(Request(matrix), CATALOGUE)
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
        ("team", "seed", "seed is a matrix of Onceproof"),
        ("[team]", '["Our Team"]', "named with lower-case letters"),
        ("[team]", "[other]\ndescription = 'x'\ncells = ['quota-DEFAULT_CONFIG-s3.8.1-b4.3.1']\n[team]", "one matrix"),
        ("risk = 0.1", "risks = 0.1", "there is no 'risks'; choose from name, description, blocks"),
        ("risk = 0.1", 'risk = "low"', "risk must be a number, not 'low'"),
        ("trials = 3", "trials = true", "trials must be a whole number"),
        ("description =", "brief =", "there is no 'brief'"),
        ('description = "What our applications run on."', "", "description is missing"),
        ('scenario = "crash"', "", "block: scenario is missing"),
        ('["3.9.1", "4.1.2"]]', '["3.9.1"]]', "restarts must be a list of pairs of releases"),
        ('streams = ["3.9.1"]', 'streams = ["3.9"]', "'3.9' is not a Kafka release"),
        ('brokers = ["3.9.1", "4.1.2"]', 'brokers = ["latest"]', "'latest' is not a Kafka release"),
        ("quota-DEFAULT_CONFIG-s3.8.1-b4.3.1", "quota-s3.8.1", "'quota-s3.8.1' is no cell"),
        ("quota-DEFAULT_CONFIG-s3.8.1-b4.3.1", "elevator-DEFAULT_CONFIG-s3.8.1-b4.3.1", "no scenario 'elevator'"),
        ("quota-DEFAULT_CONFIG-s3.8.1-b4.3.1", "quota-FAST-s3.8.1-b4.3.1", "no variant 'FAST' of quota"),
        ('variants = ["DEFAULT_CONFIG"]', 'variants = ["FAST"]', "no variant 'FAST' of crash"),
        ("trials = 3", 'includes = ["monthly"]', "no matrix 'monthly' to include; choose from seed, nightly"),
        ("trials = 3", 'includes = "nightly"', "includes must be a list of texts, not 'nightly'"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(file, old, new, said):
    assert old in OURS
    file.write_text(OURS.replace(old, new))
    with pytest.raises(UsageError, match=said):
        expand(Request(read_matrix(file)), CATALOGUE)


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


def test_one_may_include_others_and_has_their_cells_before_its_own(file):
    file.write_text(OURS.replace("trials = 3", 'includes = ["seed", "brokers"]'))
    included = read_matrix(file)
    seed, brokers, own = MATRICES["seed"], MATRICES["brokers"], parse_matrices(OURS, "ours")["team"]
    assert included.blocks == (*seed.blocks, *own.blocks)
    assert included.cells == (*brokers.cells, *own.cells)
    assert (included.name, included.trials, included.risk) == ("team", 1, 0.1)


def test_it_includes_what_comes_before_it_in_a_file_and_not_what_comes_after():
    before = parse_matrices(OURS.replace("team", "one") + OURS.replace("trials = 3", 'includes = ["one"]'), "ours")
    assert before["team"].blocks == 2 * before["one"].blocks
    with pytest.raises(UsageError, match="there is no matrix 'one' to include"):
        parse_matrices(OURS.replace("trials = 3", 'includes = ["one"]') + OURS.replace("team", "one"), "ours")


def test_the_example_of_the_documentation_can_be_run(file):
    text = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
    [example] = [block for block in re.findall(r"```toml\n(.*?)```", text, re.DOTALL) if "blocks" in block]
    file.write_text(example)
    expansion = expand(Request(read_matrix(file)), CATALOGUE)
    assert len(expansion.cells) == 28  # 15 of them only in the one that it includes
    assert not expansion.refused


def test_the_newest_release_is_in_each_of_ours():
    assert all(matrix.releases()[-1] >= NEWEST for matrix in MATRICES.values())
