"""A badge: what it says of a release, as a picture and for shields.io."""

import json
import xml.etree.ElementTree as ET

import pytest
from typer.testing import CliRunner

from onceproof import cli
from onceproof.atlas import shipped
from onceproof.harness import harness_versions
from onceproof.model.errors import UsageError
from onceproof.model.known_issues import IssueRegistry, registry
from onceproof.model.release import Release
from onceproof.model.verdict import Verdict
from onceproof.page.badge import COLOURS, Badge
from onceproof.settings import get_settings
from tests.specimens.atlas import a_cell, measured_as

RELEASE, NONE = Release(3, 4, 0), IssueRegistry((), ())
KNOWN = f"{sum(issue.is_in(RELEASE) for issue in registry().issues)} known issues"


@pytest.mark.parametrize(
    ("verdicts", "known", "message", "look"),
    [
        ((), registry(), f"{KNOWN}, not measured", "known"),
        ((Verdict.KNOWN, Verdict.CLEAN), registry(), f"{KNOWN}, 1 of 2 cells green", "known"),
        ((Verdict.REGRESSION, Verdict.CLEAN), registry(), f"1 unexplained, {KNOWN}, 1 of 2 cells green", "regression"),
        ((Verdict.CLEAN, Verdict.PROVISIONAL), NONE, "0 known issues, 2 of 2 cells green", "clean"),
        ((), NONE, "0 known issues, not measured", "unknown"),
        ((Verdict.AVOIDED,), NONE, "0 known issues, 0 of 1 cells green", "unknown"),
    ],
)
def test_a_badge_says_what_is_known(verdicts, known, message, look):
    assert Badge.of(RELEASE, verdicts, known) == Badge("Kafka Streams 3.4.0", message, COLOURS[look])


def test_it_is_a_picture_and_an_endpoint():
    badge = Badge("a <b>", 'c & "d"', "#123456")
    picture = ET.fromstring(badge.svg())  # noqa: S314 - it is ours
    assert picture.get("aria-label") == 'a <b>: c & "d"'
    assert badge.endpoint() == {"schemaVersion": 1, "label": "a <b>", "message": 'c & "d"', "color": "#123456"}


@pytest.fixture
def onceproof(tmp_path, monkeypatch):
    """The command, in this process, over the test's own home, with one cell in the atlas."""
    monkeypatch.setenv("ONCEPROOF_HOME", str(tmp_path / "home"))
    cells = (
        measured_as("clean", a_cell("3.4.0", scenario="scan"), harness=harness_versions()["scan"]),
        measured_as("clean", a_cell("3.4.0", scenario="crash")),  # by an earlier harness, which counts
    )
    monkeypatch.setattr(shipped, "read_shipped", lambda: cells)
    get_settings.cache_clear()
    yield lambda *arguments: CliRunner().invoke(cli.app, ["release", "badge", *map(str, arguments)])
    get_settings.cache_clear()


def test_the_command_prints_and_writes_it(onceproof, tmp_path):
    assert onceproof("3.4.0").stdout == f"Kafka Streams 3.4.0: {KNOWN}, 2 of 2 cells green\n"
    done = onceproof("3.4.0", "--svg", tmp_path / "a.svg", "--endpoint", tmp_path / "a.json")
    assert done.exit_code == 0, done.output
    assert ET.parse(tmp_path / "a.svg").getroot().tag.endswith("svg")  # noqa: S314 - it is ours
    assert json.loads((tmp_path / "a.json").read_text())["label"] == "Kafka Streams 3.4.0"


def test_a_folder_and_what_is_no_release_are_refused(onceproof, tmp_path):
    for arguments in (["3.4.0", "--svg", tmp_path], ["3.4.0.1"]):
        assert isinstance(onceproof(*arguments).exception, UsageError)
