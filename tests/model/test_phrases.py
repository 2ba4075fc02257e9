"""The phrases of Kafka's logs: on lines that releases logged in real trials, and on what is left of these."""

import random
import re
from operator import attrgetter
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from onceproof.model.phrases import EVENTS, PHRASES, Phrase
from onceproof.scenarios import SCENARIOS, scenario
from tests.cases import check_each

BY_NAME = {phrase.name: phrase for phrase in PHRASES}
# Phrase, release and line, made of real trials: only application ids and UUIDs are shortened.
SPECIMENS = [
    tuple(row.split("\t", 2))
    for row in (Path(__file__).parents[1] / "specimens" / "phrases.tsv").read_text().splitlines()
]
LINES = sorted({line for _, _, line in SPECIMENS})


def phrases_in(text: str) -> set[str]:
    return {phrase.name for phrase in PHRASES if phrase.pattern.search(text)}


@check_each("name, release, line", SPECIMENS)
def test_a_phrase_is_found_in_a_releases_log_with_its_class(name: str, release: str, line: str) -> None:
    assert name in phrases_in(line), release
    logger = re.search(
        r"\((?:[\w$]+\.)+([A-Z]\w+)\)$", line
    )  # as log4j.properties has it; of an exception there is none
    assert logger is None or logger[1] in BY_NAME[name].source.split(", "), release


def test_each_phrase_that_a_trial_must_show_has_a_specimen() -> None:
    assert {phrase.name for phrase in PHRASES if phrase.shown} <= {name for name, _, _ in SPECIMENS}


def test_a_name_stands_for_one_phrase() -> None:
    assert len(BY_NAME) == len(PHRASES)


@check_each("phrase", PHRASES, named=attrgetter("name"))
def test_a_phrase_that_no_trial_must_show_says_why(phrase: Phrase) -> None:
    assert (phrase.shown is None) == bool(phrase.unshown)


@check_each("shown", [*(one.shown for one in PHRASES if one.shown), *(one.shown for one in EVENTS if one.shown)])
def test_the_trial_that_must_show_it_can_be_asked_for(shown) -> None:
    assert shown.scenario in SCENARIOS
    assert scenario(shown.scenario).variant(shown.variant)
    for name, value in shown.parameters.items():
        assert scenario(shown.scenario).settable[name].parse(str(value)) == value


@given(line=st.sampled_from(LINES), end=st.integers(0, 700), start=st.integers(0, 300))
def test_a_line_that_is_cut_off_says_nothing_else(line: str, end: int, start: int) -> None:
    assert phrases_in(line[start:end]) <= phrases_in(line)


@check_each("line", LINES)
def test_a_line_cut_off_behind_any_word_says_nothing_else(line: str) -> None:
    words = line.split(" ")
    for end in range(1, len(words)):
        assert phrases_in(" ".join(words[:end])) <= phrases_in(line)


@given(line=st.sampled_from(LINES), seed=st.integers(0, 2**32))
def test_a_line_whose_words_are_shuffled_says_nothing_else(line: str, seed: int) -> None:
    words = line.split(" ")
    random.Random(seed).shuffle(words)
    assert phrases_in(" ".join(words)) <= phrases_in(line)


@given(line=st.sampled_from(LINES), other=st.sampled_from(LINES), cut=st.integers(0, 700))
def test_two_merged_lines_say_no_more_than_both(line: str, other: str, cut: int) -> None:
    assert phrases_in(line[:cut] + "\n" + other) <= phrases_in(line) | phrases_in(other)


def test_a_phrase_names_what_it_is_about() -> None:
    line = next(line for name, _, line in SPECIMENS if name == "task-recycled")
    said = BY_NAME["task-recycled"].pattern.search(line)
    assert said is not None
    assert re.fullmatch(r"app-instance-\d+-StreamThread-\d+", said["thread"])
    assert re.fullmatch(r"\d+_\d+", said["task"])
