"""`fuzz` as a person meets it, with fuzzings whose answers are decreed."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from onceproof import cli
from onceproof.campaigns.fuzz import verbs
from onceproof.campaigns.fuzz.fuzzing import KnownCase
from onceproof.lab import releases
from onceproof.model.release import Release
from onceproof.settings import get_settings
from tests.specimens.files import a_fuzzing


@pytest.fixture
def fuzz(tmp_path, monkeypatch):
    """Fuzzes with a decreed answer; returns what is printed, and the exit code."""
    monkeypatch.setenv("ONCEPROOF_HOME", str(tmp_path))
    monkeypatch.setattr(releases, "list_published", lambda _: [Release.parse("3.9.0"), Release.parse("3.9.1")])
    get_settings.cache_clear()

    def fuzz(*words: str, **told: object) -> tuple[str, int]:
        monkeypatch.setattr(verbs, "fuzz", lambda state, *_: replace(a_fuzzing(**told), seed=state.seed))
        done = CliRunner().invoke(cli.app, ["fuzz", *words])
        return done.output + str(done.exception or ""), done.exit_code

    yield fuzz
    get_settings.cache_clear()


def test_a_finding_is_told_with_its_folder(fuzz):
    printed, code = fuzz("--streams", "3.9.1", "--against", "3.9.0", "--seed", "5")
    assert code == 1
    assert "3.9.1 against 3.9.0, seed 5: 100 cases in 0.2 minutes, 2 red" in printed
    assert "finding 1: unexpected of burst, table, foreignKeyJoin" in printed
    assert "n0, unexpected: a = a|0/a|0" in printed
    assert "fuzzings/1/findings/1" in printed


def test_without_a_finding_it_says_so_and_what_was_not_judged(fuzz):
    printed, code = fuzz("--streams", "3.9.1", findings=(), red=0)
    assert code == 0
    assert "every case emits what its operations mean" in printed
    assert "not judged, 3 outputs: it is not determined" in printed
    assert "foreignKeyJoin  40     38      2" in printed
    assert fuzz("--streams", "3.9.1", findings=(), cases=0)[1] == 3


def test_a_known_issue_is_named_and_counted(fuzz):
    known = KnownCase(issue="KAFKA-16407", case_number=7, cases=8, after=1.5, reds=3, case="s0 = burst in0")
    printed, code = fuzz("--streams", "3.9.1", findings=(), issues=(known,))
    assert code == 0
    assert "known: KAFKA-16407 (3 red, the first one case 7, after 2 s)" in printed
    assert "every case emits what its operations mean, but for known issues" in printed


def test_json_is_one_object(fuzz):
    printed, code = fuzz("--streams", "3.9.1", "--json")
    assert (json.loads(printed.partition("\n")[0])["cases"], code) == (100, 1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "Name a release to fuzz"),
        (("--resume", "last", "--seed", "1"), "continues what was asked for then"),
        (("--resume", "last"), "There is no fuzzing last"),
        (("--streams", "3.9.1", "--against", "3.9.1"), "is both releases"),
        (("--streams", "three"), "is not a Kafka release"),
        (("--streams", "3.9.1", "--without", "join"), "There is no operation join to leave out"),
        (
            ("--streams", "3.9.1", *("--without", "stream", "--without", "table", "--without", "burst")),
            "no topology has an input",
        ),
        (("--resume", "last", "--without", "burst"), "continues what was asked for then"),
    ],
)
def test_what_cannot_be_fuzzed_is_refused(fuzz, words, said):
    printed, code = fuzz(*words)
    assert said in printed
    assert code in (1, 2)  # an error of ours ends in 2 outside of the runner
