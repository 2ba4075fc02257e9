"""`issue explore` as a person meets it, with searches whose answers are decreed."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from onceproof import cli
from onceproof.campaigns.search import explorer
from onceproof.campaigns.search.log import SearchRequest
from onceproof.cli import terminal
from onceproof.lab import releases
from onceproof.model.release import Release
from onceproof.settings import get_settings
from tests.specimens.files import a_bisection, a_finding, an_exploration


@pytest.fixture
def explore(tmp_path, monkeypatch):
    """Continues a search that was begun; returns what is printed, and the exit code."""
    monkeypatch.setenv("ONCEPROOF_HOME", str(tmp_path))
    get_settings.cache_clear()
    begun = SearchRequest(
        run="20260101T000000-0001",
        streams="4.3.1",
        broker="3.9.1",
        scenarios=("enumerator",),
        seed=1,
        uniform=False,
        plant=None,
        harness=explorer.search_version(["enumerator"]),
    )
    begun.write(get_settings().explorations / begun.run / "exploration.json")
    asked = []

    def run(answer, *options):
        monkeypatch.setattr(explorer.Explorer, "explore", lambda _, *how: asked.append(how) or answer)
        monkeypatch.setattr(terminal.out, "_width", 500)
        monkeypatch.setattr(releases, "list_published", lambda _: [Release.parse("4.3.0")])
        done = CliRunner().invoke(cli.app, ["issue", "explore", "--resume", "last", "--minutes", "2", *options])
        assert asked[-1][0] == 120
        return done.stdout, done.exit_code

    yield run
    get_settings.cache_clear()


def test_a_finding_is_told_with_its_command(explore):
    output, code = explore(an_exploration())
    assert code == 1
    assert "finding 1: lost-record in enumerator on Kafka Streams 4.3.1, after 96 s" in output
    assert f"  {a_finding().command}\n" in output
    assert "red in 3 of 3 trials more" in output
    assert "KAFKA-14172" in output
    assert "left out: global-join: why" in output


def test_what_was_not_shrunk_says_so(explore):
    assert "not shrunk to the end" in explore(an_exploration(findings=(a_finding(is_settled=False),)))[0]


@pytest.mark.parametrize(("exercised", "code"), [(5, 0), (0, 3)])
def test_without_a_finding_it_is_good_if_trials_were_exercised(explore, exercised, code):
    output, ended = explore(an_exploration(findings=(), exercised=exercised))
    assert ended == code
    assert "nothing that no known issue explains" in output


def test_json_is_one_object(explore):
    output, code = explore(an_exploration(), "--json")
    answer = json.loads(output)
    assert code == 1
    assert answer["findings"][0]["smallest_rate"] == {"red": 3, "counted": 3}
    assert answer["known"][0]["issues"] == ["KAFKA-14172"]


def test_a_search_that_is_under_way_can_be_told_to_bisect(explore):
    output, _ = explore(an_exploration(findings=(a_finding(releases=a_bisection()),)), "--bisect")
    assert "  The first bad release is 4.1.0, the last good one before it 4.0.1; the last bad one is 4.3.1, " in output
    [file] = get_settings().explorations.glob("*/exploration.json")
    assert SearchRequest.read(file).bisect
    assert "It is in" not in explore(an_exploration())[0]
    assert SearchRequest.read(file).bisect  # what was asked once stays asked


def test_a_planted_bug_is_not_bisected(explore):
    [file] = get_settings().explorations.glob("*/exploration.json")
    replace(SearchRequest.read(file), plant="no-abort").write(file)
    done = CliRunner().invoke(cli.app, ["issue", "explore", "--resume", "last", "--bisect"])
    assert "no-abort is only in the release that it is planted into" in str(done.exception)
