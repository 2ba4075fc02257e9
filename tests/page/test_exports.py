"""A run as other people's tools read it."""

import io
import json
import os
import re
import stat
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from rich.console import Console
from rich.markdown import Markdown
from typer.testing import CliRunner

from onceproof import cli
from onceproof.model.errors import ExitCode, UsageError
from onceproof.model.files import TrialPlan, VerdictRow
from onceproof.model.run_folder import RunFolder
from onceproof.model.verdict import Verdict
from onceproof.page.exports import annotations, report_of, vote, write_junit, write_summary
from onceproof.pipeline.run import Finished
from onceproof.settings import get_settings
from tests.commands import onceproof
from tests.page.conftest import NEWEST, SCRIPT
from tests.present import present


@pytest.fixture
def report(settings):
    return report_of(RunFolder(settings.runs / NEWEST))


def test_junit_has_a_test_case_for_each_cell(settings, report, tmp_path):
    done = onceproof(settings.home, "results", "report", "--junit", str(tmp_path / "junit.xml"))
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(rf"{tmp_path}/junit\.xml \(\d+ KiB\)\n", done.stdout)
    [suite] = ET.parse(tmp_path / "junit.xml").getroot()  # noqa: S314 - our own
    verdicts = [verdict.verdict for verdict in report.verdicts]
    assert int(suite.get("tests", "none")) == len(suite) == len(verdicts)
    wanted = {"failures": ("regression",), "skipped": ("known",), "errors": ("inconclusive", "error")}
    for attribute, of in wanted.items():
        assert int(suite.get(attribute, "none")) == sum(verdict in of for verdict in verdicts)
    assert suite.get("failures") == "1"
    failure = present(suite.find("testcase/failure"))
    assert failure.get("message", "").startswith("1 duplicate-id")
    assert SCRIPT in present(failure.text)  # as text, not as an element
    assert present(suite.find("testcase/skipped")).get("message") == "1 duplicate-id (KAFKA-14172)"


def test_what_xml_cannot_hold_is_replaced(settings, tmp_path):
    run = RunFolder(settings.runs / NEWEST)
    rows = VerdictRow.read_all(run.verdicts_file)
    spoilt = [replace(row, verdict=Verdict.ERROR, sentence="a\x00b\x1b[31m]]>") for row in rows]
    VerdictRow.write_all(run.verdicts_file, spoilt)
    write_junit(report_of(run), tmp_path / "junit.xml")
    [text, *_] = [found.text for found in ET.parse(tmp_path / "junit.xml").iter("error")]  # noqa: S314 - our own
    assert text == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}[31m]]>"


def test_the_summary_is_markdown_in_which_nothing_of_others_is(report, tmp_path):
    write_summary(report, tmp_path / "summary.md")
    text = (tmp_path / "summary.md").read_text()
    assert text.startswith("## Onceproof: ")
    assert "1 regression" in text.splitlines()[0]
    assert "<script" not in text
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + len(report.verdicts)
    assert {line.replace("\\|", "").count("|") for line in rows} == {6}
    assert "3.3.1: not in its jars" in text
    written = io.StringIO()
    Console(file=written, width=200).print(Markdown(text))
    assert "✘✘ regression" in written.getvalue()


def test_the_summary_says_once_that_a_release_did_not_qualify(report, tmp_path):
    doubtful = [replace(verdict, unqualified="4.4.0 does not qualify.") for verdict in report.verdicts]
    write_summary(replace(report, verdicts=doubtful), tmp_path / "summary.md")
    assert (tmp_path / "summary.md").read_text().count("4.4.0 does not qualify.") == 1


def test_a_vote_states_verdicts_commits_and_what_was_not_checked(settings):
    run = RunFolder(settings.runs / NEWEST)
    first = next(iter(run.trials()))
    file = run.trial(first).trial_file
    replace(TrialPlan.read(file), not_looked_at={"atomicity": "the brokers are not ours"}).write(file)
    text = onceproof(settings.home, "results", "report", "--vote").stdout
    assert text == vote(report_of(run)) + "\n"
    assert "  ✘✘ regression   " in text
    assert "Commits\n  3.3.1: not in its jars\n" in text
    assert text.endswith("Not checked\n  atomicity (1 trials): the brokers are not ours\n")


def test_an_annotation_is_one_command_whatever_it_says(report):
    regression = next(verdict for verdict in report.verdicts if verdict.verdict == "regression")
    [line] = annotations(replace(report, verdicts=[replace(regression, sentence="50 %\n::error::forged")]))
    assert "\n" not in line
    assert line.startswith("::error title=regression%3A ")
    assert line.endswith("::50 %25%0A::error::forged")


def test_a_folder_is_no_file(report, tmp_path):
    with pytest.raises(UsageError, match="is a folder: name a file"):
        write_summary(report, tmp_path)


@pytest.fixture
def ended(settings, monkeypatch):
    """Has the next run end with an exit code."""
    monkeypatch.setenv("ONCEPROOF_HOME", str(settings.home))
    get_settings.cache_clear()
    run = RunFolder(settings.runs / NEWEST)
    yield lambda code: monkeypatch.setattr("onceproof.pipeline.run.run", lambda _, **__: Finished(run, code, ()))
    get_settings.cache_clear()


@pytest.mark.parametrize("option", ["--junit", "--summary"])
def test_a_folder_is_refused_before_a_run(tmp_path, monkeypatch, option):
    monkeypatch.setattr("onceproof.pipeline.run.run", lambda *_, **__: pytest.fail("it was run"))
    refused = CliRunner().invoke(cli.app, ["run", option, str(tmp_path)])
    assert isinstance(refused.exception, UsageError)
    assert "is a folder: name a file" in str(refused.exception)


@pytest.mark.parametrize(("code", "then"), [(ExitCode.ANOMALY, 1), (ExitCode.INCONCLUSIVE, 4), (ExitCode.OK, 4)])
def test_an_export_that_fails_hides_no_regression(ended, tmp_path, monkeypatch, code, then):
    ended(code)
    (tmp_path / "file").touch()
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    done = CliRunner().invoke(cli.app, ["run", "--json", "--junit", str(tmp_path / "file" / "onceproof.xml")])
    report = json.loads(done.stdout)
    assert (done.exit_code, report["exit_code"]) == (then, then)
    assert "onceproof.xml could not be written" in report["failures"][0]
    assert done.stderr.startswith("::error title=regression%3A ")


def test_others_may_read_what_is_exported(report, tmp_path):
    before = os.umask(0o022)
    try:
        write_junit(report, tmp_path / "onceproof.xml")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "onceproof.xml").stat().st_mode) == 0o644


def test_exports_name_the_bugs_that_a_green_excludes(settings, tmp_path):
    run = RunFolder(settings.runs / NEWEST)
    excluded = "1 green trial excludes, with 95 % confidence, bugs that show in 95 % of trials or more."
    rows = [
        replace(row, verdict=Verdict.PROVISIONAL, excluded_rate=0.95, missed=0.25, arithmetic=excluded)
        for row in VerdictRow.read_all(run.verdicts_file)
    ]
    VerdictRow.write_all(run.verdicts_file, rows)
    report = report_of(run)
    write_junit(report, tmp_path / "junit.xml")
    write_summary(report, tmp_path / "summary.md")
    cases = ET.parse(tmp_path / "junit.xml").getroot().findall("testsuite/testcase")  # noqa: S314 - our own
    outputs = [case.findtext("system-out", "") for case in cases]
    assert all(text.startswith("provisional: no anomaly at a first look") and excluded in text for text in outputs)
    for text in ((tmp_path / "summary.md").read_text(), vote(report)):
        assert "✔? provisional" in text
        assert "no anomaly; excludes bugs in ≥ 95 % of trials" in text
        assert excluded in text
        assert "clean" not in text.replace("in too few trials for clean", "")
