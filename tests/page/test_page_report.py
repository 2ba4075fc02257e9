"""The matrix in the terminal, the report as one file, the page by itself: as the command gives them."""

import os
import re
import signal
import socket
import subprocess
import sys
from dataclasses import replace

import httpx
import pytest

from onceproof.model.cell import Cell
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.files import Outcome, TrialPlan
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.page.report import write_report
from onceproof.processes.waiting import await_condition
from tests.commands import onceproof
from tests.page.conftest import GREEN, NEWEST, OLDER, RED, SCRIPT, make_run
from tests.present import present


def test_the_terminal_shows_the_same_matrix(settings):
    done = onceproof(settings.home, "results", "report")
    assert done.returncode == 0, done.stderr
    assert "1 cell regressed" in done.stdout
    assert re.search(r"3\.3\.1 +3\.4\.1 +3\.10\.0", done.stdout)
    assert re.search(r"DEFAULT_CONFIG +✘ 1/2 +✔ 0/2", done.stdout)
    assert re.search(r"CACHING_DISABLED +✘✘ 1/2 Δ", done.stdout)
    assert "Restarted on another release" in done.stdout
    assert "newly red: 3.4.1 enumerator CACHING_DISABLED" in done.stdout
    assert "quota" not in done.stdout  # not of this run
    assert "quota" in onceproof(settings.home, "results", "report", OLDER).stdout


@pytest.mark.parametrize(
    ("wanted", "said"),
    [("20261120T021500-ffff", "There is no run '20261120T021500-ffff'"), ("../x", "There is no run '../x'")],
)
def test_a_run_that_is_not_there_is_a_usage_error(settings, wanted, said):
    done = onceproof(settings.home, "results", "report", wanted)
    assert done.returncode == 2
    assert said in done.stderr


def test_the_report_is_self_contained_and_hides_the_machine(settings, tmp_path):
    run = RunFolder(settings.runs / NEWEST)
    outcome = run.trial(f"{RED.key}-t2").outcome_file
    outcome.write_text(outcome.read_text().replace("Task 0_0", f"{settings.home}/secret.txt on {socket.gethostname()}"))
    done = onceproof(settings.home, "results", "report", "--html", str(tmp_path / "report.html"))
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "report.html").read_text()
    assert str(settings.home) not in text
    assert str(settings.project) not in text
    assert f" on {socket.gethostname()}" not in text
    assert "secret.txt on [host] came back" in text
    assert SCRIPT not in text
    assert "\\u0026lt;script" in text  # a step of the timeline
    body = text.partition("</head>")[2]
    assert re.findall(r'(?:src|href)="(?!#|https://issues\.apache\.org/)[^"]*"', body) == []
    targets = set(re.findall(r'href="#([^"]+)"', body))
    assert targets == {"headline"} | {f for f in targets if f'id="{f}"' in body}
    assert len(targets) == 5


def test_the_report_hides_a_secret_wherever_it_stands(settings, tmp_path):
    run = RunFolder(settings.runs / NEWEST)
    trial, other = run.trial(f"{RED.key}-t2"), run.trial(f"{GREEN.key}-t1")
    plan = TrialPlan.read(other.trial_file)
    replace(plan, streams_config={"ssl.key.password": "tr1ckster"}).write(other.trial_file)
    reported = "It was told tr1ckster, not horses"
    replace(Outcome.read(trial.outcome_file), reason=reported).write(trial.outcome_file)
    write_report(run, settings.database_url, tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "tr1ckster" not in text
    assert "It was told ***, not horses" in text


def test_text_of_others_is_no_markup_in_the_terminal(settings):
    cell = Cell("enumerator", "[/WILD]", Release(3, 3, 1), Release(3, 9, 1))
    make_run(settings.runs, "20261121T021500-cccc", {cell: "clean"})
    done = onceproof(settings.home, "results", "report")
    assert done.returncode == 0, done.stderr
    assert "[/WILD]" in done.stdout


def test_a_report_is_written_as_a_whole_or_not_at_all(settings, tmp_path):
    run, target = RunFolder(settings.runs / NEWEST), tmp_path / "report.html"
    target.write_text("the one before")
    (run.path / "verdicts.json").write_text("{ torn")
    with pytest.raises(HarnessError):
        write_report(run, settings.database_url, target)
    assert [path.read_text() for path in tmp_path.glob("*report.html*")] == ["the one before"]
    with pytest.raises(UsageError, match="is a folder"):
        write_report(run, settings.database_url, tmp_path)


def test_a_report_of_a_run_that_is_not_stored(settings, tmp_path):
    (settings.home / "results.db").unlink()
    write_report(RunFolder(settings.runs / OLDER), settings.database_url, tmp_path / "report.html")
    assert "1 cell is inconclusive" in (tmp_path / "report.html").read_text()
    assert not (settings.home / "results.db").exists()


def test_the_page_runs_by_itself_on_loopback_and_knows_its_name(settings):
    process = subprocess.Popen(
        [sys.executable, "-m", "onceproof.cli", "page", "--port", "0"],
        env={**os.environ, "ONCEPROOF_HOME": str(settings.home), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    output = present(process.stdout)
    try:
        url = present(re.search(r"http://127\.0\.0\.1:\d+/", output.readline()))[0]
        await_condition("the page", lambda: httpx.get(url).status_code == 200, timeout=30)
        # If a name of another site led here, that site's scripts could read the page.
        assert httpx.get(url, headers={"Host": "evil.example"}).status_code == 400
        taken = onceproof(settings.home, "page", "--port", url.rpartition(":")[2].strip("/"))
        assert taken.returncode == 2
        assert "is taken: name another one with --port." in taken.stderr
        assert len(taken.stderr.strip().splitlines()) == 1
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(30) in (0, 130)
        output.close()
