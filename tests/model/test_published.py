"""What words for releases mean, whatever is published."""

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onceproof.model.decoding import decode
from onceproof.model.errors import UsageError
from onceproof.model.published import Published, is_word
from onceproof.model.release import BUILT, FINAL, SNAPSHOT, Release
from tests.published import NEWEST, PUBLISHED, SOURCE

TYPED = re.compile(r"""Release\(\d|["']\d+\.\d+\.\d+["']""")
NUMBER = st.integers(0, 11)
KINDS = st.sampled_from([(FINAL, ""), (FINAL, ""), (0, ""), (3, ""), (BUILT, "ab12cd3"), (SNAPSHOT, "ab12cd3")])
RELEASE = st.builds(lambda *numbers, kind: Release(*numbers, *kind), st.integers(3, 5), NUMBER, NUMBER, kind=KINDS)


def finals(releases):
    return [release for release in releases if not release.is_candidate]


@given(st.lists(RELEASE), st.randoms())
def test_words_mean_the_same_in_any_order_of_releases(releases, random):
    shuffled = [*releases, *releases]
    random.shuffle(shuffled)
    assert Published.of(shuffled, SOURCE) == Published.of(releases, SOURCE)


@given(st.lists(RELEASE).filter(finals))
def test_newest_is_final_and_nothing_final_is_newer(releases):
    newest = Published.of(releases, SOURCE).resolve("newest")
    assert newest in finals(releases)
    assert all(release <= newest for release in finals(releases))


@given(st.lists(RELEASE).filter(lambda releases: len({one.line for one in finals(releases)}) > 1))
def test_previous_is_the_newest_patch_of_the_line_before(releases):
    published = Published.of(releases, SOURCE)
    previous, newest = published.resolve("previous"), published.resolve("newest")
    assert previous < newest
    assert previous.line != newest.line
    assert previous == published.resolve(previous.line)
    assert all(one.line == newest.line for one in finals(releases) if one > previous)


@given(st.lists(RELEASE).filter(finals))
def test_a_line_is_its_newest_patch(releases):
    published = Published.of(releases, SOURCE)
    for line in {release.line for release in finals(releases)}:
        found = published.resolve(line)
        assert found.line == line
        assert found.patch == max(one.patch for one in finals(releases) if one.line == line)


@given(st.lists(RELEASE), RELEASE)
def test_an_exact_release_is_itself_published_or_not(releases, release):
    assert Published.of(releases, SOURCE).resolve(str(release)) == release


@given(st.lists(RELEASE))
def test_it_travels_as_json(releases):
    published = Published.of(releases, SOURCE)
    assert decode(Published, published.to_dict()) == published


@pytest.mark.parametrize(
    ("word", "release"),
    [("newest", "4.4.0"), ("previous", "4.3.1"), ("3.9", "3.9.2"), ("3.0", "3.0.2"), ("3.9.1", "3.9.1")],
)
def test_what_words_mean_today(word, release):
    assert str(PUBLISHED.resolve(word)) == release
    assert PUBLISHED.meaning(word) == f"{word} is {release}, as tests say"


def test_the_line_before_may_be_of_another_major_release():
    published = Published.of(map(Release.parse, ["3.9.2", "3.9.10", "4.0.0", "4.1.0-rc1", "3.8.1"]), SOURCE)
    assert str(published.resolve("newest")) == "4.0.0"
    assert str(published.resolve("previous")) == "3.9.10"


@pytest.mark.parametrize(
    ("names", "word", "said"),
    [
        (["4.4.0", "4.3.1"], "4.5", "No release of the line 4.5 is published, as tests say; choose from 4.3, 4.4."),
        (["4.5.0-rc0", "4.4.0"], "4.5", "No release of the line 4.5 is published"),
        (["4.4.0"], "previous", "4.4 is the only line"),
        (["4.4.0-rc0"], "newest", "no published release of Kafka is known"),
        (["4.4.0"], "latest", "'latest' is not a Kafka release"),
    ],
)
def test_a_word_that_means_nothing_is_one_sentence(names, word, said):
    with pytest.raises(UsageError, match=said):
        Published.of(map(Release.parse, names), SOURCE).resolve(word)


@pytest.mark.parametrize("text", ["Newest", "newest ", "4", "4.3.1", "4.3.x", "v4.3", "last-bad", "4.3\n", "\u0664.3"])
def test_what_is_no_word(text):
    assert not is_word(text)


def typed_newest(text):
    """Lines that assign a release which is written there to a name that says that it is the newest."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Assign):
            continue
        for target in node.targets:
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(target.elts, node.value.elts, strict=True))
            for name, value in pairs:
                if "newest" in ast.unparse(name).lower() and TYPED.search(ast.unparse(value)):
                    yield f"{node.lineno}: {ast.unparse(node)}"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('OLD, NEWEST = Release.parse("3.0.0"), Release.parse("4.3.1")', 1),
        ("newest = replace(cell, streams=Release(4, 3, 1))", 1),
        ('OLD, NEWEST = Release.parse("3.0.0"), PUBLISHED.resolve("newest")', 0),
        ('AFFECTED = Release.parse("4.3.1")', 0),
    ],
)
def test_a_release_that_is_typed_as_the_newest_is_seen(text, count):
    assert len(list(typed_newest(text))) == count


def test_no_test_types_which_release_is_the_newest():
    assert PUBLISHED.releases[-1] == NEWEST
    tests = Path(__file__).parents[1]
    typed = [
        f"{file.relative_to(tests)}:{line}" for file in tests.rglob("*.py") for line in typed_newest(file.read_text())
    ]
    assert typed == [], "take tests.published.NEWEST"
