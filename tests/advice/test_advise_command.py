"""The command `advise`: what it says, prints and returns."""

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from onceproof import cli
from onceproof.advice import asking
from onceproof.atlas import shipped
from onceproof.atlas.file import read_atlas
from onceproof.cli import terminal
from onceproof.harness import harness_version
from onceproof.model.cell import Cell
from onceproof.model.errors import ExitCode, UsageError
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.pipeline import run as pipeline
from onceproof.results.database import store_run
from onceproof.settings import get_settings
from tests.conftest import HERE
from tests.page.conftest import SCRIPT, VERDICTS, make_run
from tests.specimens.atlas import measured_as

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


@pytest.fixture
def advise(tmp_path, monkeypatch):
    """The command, in this process, over the test's own home, with nothing in the atlas."""
    monkeypatch.setenv("ONCEPROOF_HOME", str(tmp_path))
    monkeypatch.setattr(shipped, "read_shipped", lambda: ())
    get_settings.cache_clear()
    yield lambda *arguments: CliRunner().invoke(cli.app, ["advise", *arguments])
    get_settings.cache_clear()


def test_what_is_printed_is_of_the_published_schema(advise, tmp_path):
    published = json.loads((ROOT / "docs" / "schemas" / "advise-1.json").read_text())
    done = advise("3.9.1", "4.3.1", "--json")
    assert done.exit_code == 1, done.output
    output = json.loads(done.stdout)
    Draft202012Validator(published).validate(output)
    assert (output["schema"], output["exit_code"], output["current"], output["target"]) == (1, 1, "3.9.1", "4.3.1")
    assert list(Draft202012Validator(published).iter_errors(output | {"exit_code": "1"}))
    assert not (tmp_path / "results.db").exists()  # looking creates nothing


def test_the_terminal_shows_objections_actions_and_unknowns(advise):
    done = advise("3.4.1", "3.5.0")
    assert done.exit_code == 3, done.output
    assert "3.4.1 to 3.5.0: not looked at enough.\n" in done.stdout
    assert "1 known issue applies on the way. 28 things were not checked.\n" in done.stdout
    assert "onceproof advise 3.4.1 3.5.0 --run" in done.stdout
    assert "KAFKA-17455" in done.stdout
    assert "? 3.5.0: crash. No cell was run here, and the atlas has none." in done.stdout


def test_the_readme_shows_what_is_printed(advise, monkeypatch):
    monkeypatch.setattr(shipped, "read_shipped", lambda: read_atlas(shipped.EVIDENCE))
    [shown] = re.findall(
        r"^\$ \.venv/bin/onceproof advise 3\.9\.1 4\.4\.0\n( .*?)^```", README, re.MULTILINE | re.DOTALL
    )
    printed = [_counted(line) for line in advise("3.9.1", "4.4.0").stdout.splitlines()]
    for line in shown.splitlines():
        assert line == "…" or _counted(line) in printed


def _counted(line):
    """A line without how many cells, verdicts and gaps there are, and how long they take, which further scenarios change."""
    return re.sub(r"\d+ (things|cells|minutes|verdicts)", r"some \1", line.rstrip())


def test_the_terminal_cuts_no_word_and_says_each_thing_once(advise):
    done = advise("3.9.1", "4.3.1")
    assert "…" not in done.stdout
    assert "message.timestamp.after.max.ms" in done.stdout
    assert done.stdout.count("apache/kafka#23390") == 1  # the remedy of KAFKA-21034
    assert " ".join(done.stdout.split()).count('"Tasks [-1_-1] are corrupted"') == 1  # its symptom
    assert re.search(
        r"gained +KAFKA-21034, loud *\n +symptom .*?remedy +No release has the fix", done.stdout, re.DOTALL
    )


def test_the_time_for_lacking_cells_is_said_before_the_question(advise):
    output = advise("3.9.1", "4.3.1").stdout
    assert re.search(r"--run`\s+\(\d+\s+cells,\s+about\s+\d+\s+minutes\)", output)


def test_the_template_is_an_application_that_can_be_given(advise, tmp_path):
    printed = advise("--template")
    assert printed.exit_code == 0
    (tmp_path / "app.toml").write_text(
        printed.stdout.replace('guarantee = "exactly_once_v2"', 'guarantee = "at_least_once"')
    )
    done = advise("3.9.1", "4.3.1", "--application", str(tmp_path / "app.toml"), "--json")
    output = json.loads(done.stdout)
    assert output["application"]["guarantee"] == ["at_least_once"]
    assert "KAFKA-20685" in [out["what"] for out in output["left_out"]]
    against = [source["name"] for said in output["against"] for source in said["sources"]]
    # Which at_least_once has, too.
    assert against == ["KAFKA-20412", "KAFKA-12738, again (no JIRA)", "KAFKA-19939, at the start (no JIRA)"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["3.9.1"], "Name two releases"),
        (["3.9.x", "4.3.1"], "'3.9.x' is not a Kafka release"),
        (["3.9.1", "3.9.1"], "3.9.1 is both releases"),
        (["3.9.1", "4.3.1", "--application", "none.toml"], "none.toml cannot be read (No such file or directory)"),
        (["3.9.1", "4.3.1", "--html", "."], ". is a folder"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(advise, arguments, said):
    refused = advise(*arguments).exception
    assert isinstance(refused, UsageError)
    assert said in str(refused)


def test_only_for_a_release_that_nothing_names_maven_is_asked(tmp_path, monkeypatch):
    url, asked = f"sqlite:///{tmp_path}/none.db", []
    monkeypatch.setattr(asking, "list_published", lambda *_, **__: asked.append(1) or [Release.parse("4.4.0")])
    asking.check_releases([Release.parse("3.9.1"), Release.parse("4.3.1")], url, HERE)
    assert asked == []
    asking.check_releases([Release.parse("4.4.0")], url, HERE)
    with pytest.raises(UsageError, match=r"Kafka 3\.9\.11 is not published; `onceproof release list`"):
        asking.check_releases([Release.parse("3.9.11")], url, HERE)


def test_run_tells_the_time_first_then_runs_what_is_lacking(advise, monkeypatch, tmp_path):
    output, ran = [], []
    monkeypatch.setattr(
        terminal.err, "print", lambda what, **_: output.append(what if isinstance(what, str) else what.title)
    )
    before = []

    def run(request, console):
        before.append(len(output))
        ran.append(request)
        return pipeline.Finished(RunFolder(tmp_path), ExitCode.ERROR, ("Task drive failed.",))

    monkeypatch.setattr(pipeline, "run", run)
    assert advise("3.9.1", "4.3.1", "--run", "--json").exit_code == 1
    assert output[0] == "lacking: 4.3.1 × DEFAULT_CONFIG (enumerator, broker 3.9.2)"
    assert re.match(r"About \d+ minutes in all", output[before[0] - 1])
    assert output[-1].endswith("Task drive failed.")
    assert [(request.streams, request.restarts) for request in ran] == [
        (("4.3.1",), ()),
        (("3.9.1",), ("4.3.1",)),
        (("4.3.1",), ("3.9.1",)),
    ]
    assert (ran[1].scenarios, ran[1].variants) == (
        (
            *("enumerator", "crash", "multirunner", "global-join", "foreign-key-join", "stream-join"),
            *("grouped-table", "table-join", "windows", "as-of-join", "punctuators", "dead-letters"),
            *("two-topics", "interactive-queries"),
        ),
        ("DEFAULT_CONFIG", "ROLLING"),
    )
    assert (ran[2].scenarios, ran[2].variants) == (("multirunner", "dead-letters", "two-topics"), ("ROLLING",))


def test_the_page_as_a_file_is_complete_and_escapes_everything(advise, tmp_path):
    run = make_run(tmp_path / "runs", *list(VERDICTS.items())[-1])
    store_run(run, f"sqlite:///{tmp_path}/results.db")
    done = advise("3.4.0", "3.4.1", "--html", str(tmp_path / "advice.html"))
    assert done.exit_code == 1, done.output  # the specimens have a regression on 3.4.1
    text = (tmp_path / "advice.html").read_text()
    assert "3.4.0 to 3.4.1: something known against it" in text
    assert SCRIPT not in text
    assert "document.title" in text
    assert str(tmp_path) not in text
    assert "<script" not in text
    assert 'src="' not in text
    assert set(re.findall(r'href="(?!https://)([^"]*)"', text)) <= {"data:,"}
    assert '<details class="features"' not in text  # no features were given


def test_the_page_as_a_file_shows_the_features_given(advise, tmp_path):
    (tmp_path / "app.toml").write_text('windows = false\njoins = ["stream-table", "foreign-key"]\n')
    page = tmp_path / "advice.html"
    advise("3.4.0", "3.4.1", "--html", str(page), "--application", str(tmp_path / "app.toml"))
    text = page.read_text()
    assert "Features of the application: 2 stated" in text
    assert "<fieldset disabled>" in text
    assert text.count(" selected>") == 1
    assert (
        '<option value="false" selected>no</option>' in text.partition('id="by-windows"')[2].partition("</select>")[0]
    )
    assert text.count(" checked>") == 2


def test_a_fresh_machine_answers_with_what_is_shipped(advise, monkeypatch):
    cell = Cell("scan", "DEFAULT_CONFIG", Release.parse("3.5.0"), Release.parse("4.4.0"))
    current, older = harness_version("scan"), "0.0.1+00000000"
    monkeypatch.setattr(shipped, "read_shipped", lambda: (measured_as("clean", cell, harness=current),))
    output = json.loads(advise("3.4.1", "3.5.0", "--json").stdout)
    [found] = output["measured"]
    assert (found["by"], found["is_current"]) == (
        f"measured by Onceproof {current.partition('+')[0]} on 2026-11-01",
        True,
    )
    assert not [gap for gap in output["not_looked_at"] if gap["what"] == "3.5.0: scan"]
    monkeypatch.setattr(shipped, "read_shipped", lambda: (measured_as("clean", cell, harness=older),))
    printed = advise("3.4.1", "3.5.0").stdout
    assert "1 verdict is by an earlier harness" in printed
    assert "The present harness in scan. An earlier one, which may have found less, judged 1 cell." in printed
    assert "3.5.0: scan. " not in printed
    assert "measured by Onceproof 0.0.1 on 2026-11-01 (earlier harness)" in printed
