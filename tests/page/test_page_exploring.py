"""The tab *Searches*: what was searched, what it reached over time, and its findings with their evidence."""

import json
import re
import shutil
import socket
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from onceproof.campaigns.search.explorer import Explorer, TrialBench
from onceproof.campaigns.search.log import ExplorationFolder, SearchRequest
from onceproof.campaigns.search.schedules import DrawableParameters, Grammar
from onceproof.model.cell import Trial
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.files import Outcome
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder, TrialFolder
from onceproof.page import coverage, exploring
from onceproof.page.app import create_app
from onceproof.page.exploring import find_search, search_view
from onceproof.page.report import write_search
from onceproof.settings import Settings
from tests.commands import onceproof
from tests.page.conftest import SCRIPT, make_trial, served
from tests.present import present
from tests.specimens.files import a_reading, an_outcome

SEARCH, OLDER = "20260102T000000-0001", "20260101T000000-0001"
GRAMMAR = Grammar(
    {"enumerator": DrawableParameters("enumerator", {"caching": (True, False), "stores": ("rocksdb", "in-memory")})}
)


def bench() -> TrialBench:
    """Without caching 3.3.2 and later lose a record; in memory they show a known issue; every seventh trial fails."""
    tried = count(1)

    def run(trial: Trial, folder: TrialFolder) -> Outcome:
        make_trial(RunFolder(folder.path.parents[1]), trial, is_red=False)
        if next(tried) % 7 == 0:
            raise HarnessError(f"The broker has died {SCRIPT}")
        lost = {"lost-record": 3} if trial.parameters.get("caching") is False else {}
        lost = lost if trial.cell.streams >= Release(3, 3, 2) else {}
        known = {"duplicate-id": 1} if trial.parameters.get("stores") == "in-memory" else {}
        a_reading(anomalies=known | lost, unexplained=lost).write(folder.reader_file)
        return an_outcome(trial)

    return run


def search(explorations, name: str, minutes: float) -> ExplorationFolder:
    """One of trials that take half a minute each."""
    folder = ExplorationFolder(explorations / name)
    asked = SearchRequest(
        run=name,
        streams="3.4.0",
        broker="3.9.1",
        scenarios=("enumerator",),
        seed=1,
        uniform=False,
        plant=None,
        harness="h",
    )
    asked.write(folder.asked_file)
    clock = count(step=15)
    releases = [Release.parse(text) for text in ("3.3.1", "3.3.2", "3.4.0", "3.4.1")]
    Explorer(folder, asked, GRAMMAR, bench(), lambda _: None, lambda: next(clock), releases).explore(60 * minutes)
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two searches, made once."""
    explorations = tmp_path_factory.mktemp("made") / "explorations"
    search(explorations, OLDER, 2)
    search(explorations, SEARCH, 60)
    return explorations


@pytest.fixture
def searched(made, settings):
    shutil.copytree(made, settings.explorations)
    return ExplorationFolder(settings.explorations / SEARCH)


def test_searches_come_newest_first_with_what_they_found(client, searched):
    page = client.get("/explorations").text
    assert page.index(SEARCH) < page.index(OLDER)
    assert "2 Jan 2026, 00:00 UTC" in page
    assert f'<a class="red" href="./explorations/{SEARCH}/findings/1">lost-record in enumerator' in page
    assert "KAFKA-14172" in page
    assert 'href="./explorations"' in client.get("/").text


def test_without_a_search_the_tab_says_how_to_come_by_one(client):
    assert "onceproof issue explore --streams newest" in client.get("/explorations").text


def test_a_search_shows_coverage_findings_and_commands_of_trials(client, searched):
    page = client.get(f"/explorations/{SEARCH}").text
    lines = [json.loads(line) for line in searched.log_file.read_text().splitlines()]
    reached = sum(line["gained"] for line in lines)
    assert f"{len(lines)} trials in" in page
    assert f"reached {reached} marks and pairs" in page
    assert "1 finding</h1>" in page
    assert "Known issues met: KAFKA-14172" in page
    assert f"onceproof issue explore --resume {SEARCH}" in page
    assert all(f"<code>{line['command']}</code>" in page for line in lines)
    assert SCRIPT not in page
    assert "The broker has died &lt;script" in page
    kept = {line["number"] for line in lines if line["folder"]}
    linked = set(map(int, re.findall(rf'href="\.\./explorations/{SEARCH}/trials/(\d+)"', page)))
    assert linked == kept != set()


def test_what_was_reached_is_drawn_over_time(client, searched, settings):
    drawn = client.get(f"/explorations/{SEARCH}/coverage.json").json()["data"]
    lines = find_search(settings.explorations, SEARCH).lines
    reached, *trials = drawn
    assert reached["y"][0] == 0
    assert reached["y"][-1] == sum(line.gained for line in lines)
    assert reached["x"][-1] == lines[-1].at / 60
    assert {trace["name"]: len(trace["x"]) for trace in trials} == {
        state: n for state in coverage.LOOKS if (n := sum(exploring.state_of(line) == state for line in lines))
    }
    assert {"unexplained", "known issue", "green", "says nothing"} <= {trace["name"] for trace in trials}
    assert not any("<script" in text for trace in trials for text in trace["hovertext"])
    dark = client.get(f"/explorations/{SEARCH}/coverage.json?theme=dark").json()
    assert dark["data"][0]["line"] != reached["line"]


def test_a_search_that_has_just_begun_is_drawn_too(client, searched):
    searched.log_file.unlink()
    shutil.rmtree(searched.findings)
    assert "no findings</h1>" in client.get(f"/explorations/{SEARCH}").text
    assert client.get(f"/explorations/{SEARCH}/coverage.json").json()["data"][0]["y"] == [0]


def test_a_finding_shows_its_command_releases_and_evidence(client, searched, settings):
    found = find_search(settings.explorations, SEARCH).findings[1]
    page = client.get(f"/explorations/{SEARCH}/findings/1").text
    assert "<h1>lost-record in enumerator on Kafka Streams 3.4.0</h1>" in page
    assert f"<code>{found.command}</code>" in page
    assert present(found.releases).summary in page
    assert "The first bad release is 3.3.2, the last good one before it 3.3.1" in page
    assert '<th scope="row">3.3</th><td>3.3.1</td><td>3.3.2</td>' in page
    [number] = set(re.findall(r"/trials/(\d+)/timeline.json", page))
    assert client.get(f"/explorations/{SEARCH}/trials/{number}/timeline.json").json()["data"]
    trial = client.get(f"/explorations/{SEARCH}/trials/{number}").text
    assert "3 lost-record" in trial
    assert f"{SCRIPT}" not in trial
    assert f'href="../../../explorations/{SEARCH}/findings/1"' in trial
    assert "Suites" not in trial


def test_what_was_not_bisected_says_how(client, searched):
    file = next(searched.findings.glob("*/finding.json"))
    file.write_text(json.dumps(json.loads(file.read_text()) | {"releases": None}))
    assert (
        f"onceproof issue explore --resume {SEARCH} --bisect" in client.get(f"/explorations/{SEARCH}/findings/1").text
    )


def test_evidence_that_was_removed_is_told(client, searched):
    shutil.rmtree(searched.path / "trials")
    page = client.get(f"/explorations/{SEARCH}/findings/1")
    assert "What it left was removed." in page.text
    assert "timeline.json" not in page.text


@pytest.mark.parametrize(
    "path",
    [
        "20260103T000000-0001",
        "none",
        "%2e%2e",
        f"{SEARCH}?page=0",
        f"{SEARCH}?page=2",
        f"{SEARCH}?page=x",
        f"{SEARCH}/findings/2",
        f"{SEARCH}/findings/x",
        f"{SEARCH}/trials/1",  # its line is all there is
        f"{SEARCH}/trials/9999",
        f"{SEARCH}/trials/%2e%2e",
        f"{SEARCH}/trials/1/timeline.json",
        f"{SEARCH}/findings/1/finding.json",
    ],
)
def test_what_is_not_there_is_not_found(client, searched, path):
    assert client.get(f"/explorations/{path}").status_code == 404


def test_a_run_is_no_search(client, searched, settings):
    (settings.explorations / "20260103T000000-0001").mkdir()
    assert client.get("/explorations/20260103T000000-0001").status_code == 404
    assert "20260103T000000-0001" not in client.get("/explorations").text


def test_links_to_elsewhere_are_not_followed(client, searched, settings, tmp_path):
    outside = tmp_path / "outside"
    shutil.copytree(searched.path, outside)
    number = next(line.number for line in find_search(settings.explorations, SEARCH).lines if line.folder)
    for file in (searched.path / "trials").glob(f"*-t{number}/timeline.jsonl"):
        file.unlink()
        file.symlink_to(outside / "exploration.jsonl")
    assert client.get(f"/explorations/{SEARCH}/trials/{number}").status_code == 404
    assert client.get(f"/explorations/{SEARCH}/trials/{number}/timeline.json").status_code == 404
    searched.log_file.unlink()
    searched.log_file.symlink_to(outside / "exploration.jsonl")
    assert client.get(f"/explorations/{SEARCH}").status_code == 404
    shutil.rmtree(searched.path)
    searched.path.symlink_to(outside)
    assert client.get(f"/explorations/{SEARCH}").status_code == 404
    assert SEARCH not in client.get("/explorations").text


def test_a_damaged_search_is_told_and_the_others_are_shown(client, searched):
    searched.log_file.write_text(searched.log_file.read_text() + '{"number": "x"}\n')
    page = client.get(f"/explorations/{SEARCH}")
    assert page.status_code == 500
    assert "exploration.jsonl is damaged in line" in page.text
    page = client.get("/explorations")
    assert page.status_code == 200
    assert f"The search {SEARCH} cannot be shown" in page.text
    assert f"explorations/{OLDER}" in page.text


def test_a_line_that_is_being_written_is_left_alone(client, searched):
    with searched.log_file.open("a") as file:
        file.write('{"number": 99, "purp')
    before = searched.log_file.read_bytes()
    assert client.get(f"/explorations/{SEARCH}").status_code == 200
    assert searched.log_file.read_bytes() == before


def test_what_is_added_to_a_search_is_seen(client, searched, settings):
    before = len(find_search(settings.explorations, SEARCH).lines)
    last = json.loads(searched.log_file.read_text().splitlines()[-1])
    with searched.log_file.open("a") as file:
        file.write(json.dumps(last | {"number": before + 1}) + "\n")
    assert len(find_search(settings.explorations, SEARCH).lines) == before + 1


def test_many_trials_have_pages(searched, settings, monkeypatch):
    monkeypatch.setattr(exploring, "SHOWN", 10)
    one = find_search(settings.explorations, SEARCH)
    views: list[dict[str, Any]] = [search_view(one, "1")]
    pages = views[0]["pages"]
    views += (search_view(one, str(page)) for page in range(2, pages + 1))
    shown = [line["number"] for view in views for line in view["lines"]]
    assert pages > 1
    assert shown == list(range(len(one.lines), 0, -1))


# --- as one file ---------------------------------------------------------------------------------------------


def written(settings: Settings, target: Path) -> str:
    write_search(find_search(settings.explorations, SEARCH), target)
    return target.read_text()


def test_a_search_in_one_file_is_complete_and_self_contained(settings, searched, tmp_path):
    one = find_search(settings.explorations, SEARCH)
    text = written(settings, tmp_path / "search.html")
    body = text.partition("</head>")[2]
    found = one.findings[1]
    assert "1 finding</h1>" in body
    assert "Known issues met: KAFKA-14172" in body
    assert all(f"<code>{line.command}</code>" in body for line in one.lines)
    assert f'<dd class="command"><code>{found.command}</code>' in body
    assert present(found.releases).summary in body
    assert '<th scope="row">3.3</th><td>3.3.1</td><td>3.3.2</td>' in body
    assert body.count("3 lost-record") > 1  # of the trial that shows it, and of its line
    assert re.findall(r'(?:src|href)="(?!#|https://issues\.apache\.org/)[^"]*"', body) == []
    targets = set(re.findall(r'href="#([^"]+)"', body))
    assert targets == {"search", "finding-1"} == {name for name in targets if f'id="{name}"' in body}
    assert len(set(re.findall(r' id="([^"]+)"', body))) == len(re.findall(r' id="([^"]+)"', body))
    light, timeline = re.findall(r'<script type="application/json" class="light">(.*?)</script>', body)
    reached = json.loads(light)["data"][0]
    assert reached["y"][-1] == sum(line.gained for line in one.lines)
    assert "instance-1" in timeline
    assert body.count('class="dark"') == 2


def test_a_search_in_one_file_tells_nothing_of_the_machine(settings, searched, tmp_path):
    reported = f"{settings.home}/secret.txt on {socket.gethostname()}, password=horses"
    lines = [json.loads(line) for line in searched.log_file.read_text().splitlines()]
    failed = next(line for line in lines if line["error"])
    failed["error"] = reported
    searched.log_file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    number = find_search(settings.explorations, SEARCH).findings[1].folder
    outcome = searched.path / number / "outcome.json"
    outcome.write_text(outcome.read_text().replace("Task 0_0", f"horses {settings.home}/x").replace("7091", '"horses"'))
    done = onceproof(settings.home, "results", "report", SEARCH, "--html", str(tmp_path / "search.html"))
    assert done.returncode == 0, done.stderr
    assert "KiB" in done.stdout
    text = (tmp_path / "search.html").read_text()
    assert str(settings.home) not in text
    assert f" on {socket.gethostname()}" not in text
    assert "horses" not in text
    assert "secret.txt on [host], password=***" in text
    assert "*** [home]/x came back" in text
    assert SCRIPT not in text
    assert "The broker has died &lt;script" in text


def test_a_search_without_a_finding_in_one_file(settings, searched, tmp_path):
    searched.log_file.unlink()
    shutil.rmtree(searched.findings)
    text = written(settings, tmp_path / "search.html")
    assert "no findings</h1>" in text
    assert 'id="finding-1"' not in text


def test_evidence_that_is_gone_or_damaged_is_told_in_one_file(settings, searched, tmp_path):
    folder = searched.path / find_search(settings.explorations, SEARCH).findings[1].folder
    timeline = folder / "timeline.jsonl"
    timeline.write_text("{ torn\n{}\n")
    text = written(settings, tmp_path / "search.html")
    assert re.search(r'<p class="faint">\[run\]/trials/[^<]*timeline.jsonl[^<]*</p>', text)
    timeline.unlink()
    timeline.symlink_to(searched.log_file)
    assert "3 lost-record" in written(settings, tmp_path / "search.html")
    shutil.rmtree(folder)
    assert "What it left was removed." in written(settings, tmp_path / "search.html")


def test_a_damaged_search_is_not_written_and_the_old_file_stays(settings, searched, tmp_path):
    target = tmp_path / "search.html"
    target.write_text("the one before")
    searched.log_file.write_text(searched.log_file.read_text() + '{"number": "x"}\n')
    with pytest.raises(HarnessError, match="is damaged in line"):
        written(settings, target)
    assert [path.read_text() for path in tmp_path.glob("*search.html*")] == ["the one before"]


def test_a_search_is_not_written_over_a_folder(settings, searched, tmp_path):
    with pytest.raises(UsageError, match="is a folder"):
        written(settings, tmp_path)


def test_the_command_prints_a_search(settings, searched):
    done = onceproof(settings.home, "results", "report", SEARCH)
    assert done.returncode == 0, done.stderr
    assert "finding 1: lost-record in enumerator on Kafka Streams 3.4.0" in done.stdout
    assert "KAFKA-14172" in done.stdout
    done = onceproof(settings.home, "results", "report", SEARCH, "--vote")
    assert done.returncode == 2
    assert f"{SEARCH} is a search, which has no verdicts" in done.stderr


@pytest.mark.browser
def test_one_file_is_drawn_without_anything_beside_it(tab, settings, searched, tmp_path):
    file = tmp_path / "search.html"
    written(settings, file)
    shutil.rmtree(settings.home)
    tab.goto(file.as_uri())
    expect(tab.locator("#search .plot").get_by_text("marks and pairs reached")).to_be_visible()
    tab.get_by_role("region", name="Findings").get_by_role("link").click()
    finding = tab.locator("#finding-1")
    expect(finding.get_by_role("heading", level=1)).to_be_in_viewport()
    finding.locator(".timeline").scroll_into_view_if_needed()
    expect(finding.locator(".plot").get_by_text("instance-1").first).to_be_visible()
    assert "broken in" not in tab.title()
    found = Axe().run(tab).response
    assert [v["id"] for v in found["violations"] if v["impact"] in ("serious", "critical")] == []


@pytest.mark.browser
def test_from_the_matrix_to_the_evidence_of_a_finding(tab, settings, searched):
    with served(create_app(settings)) as root:
        tab.goto(f"{root}/")
        tab.get_by_role("link", name="Searches").click()
        tab.get_by_role("link", name=SEARCH).click()
        expect(tab.locator(".timeline .plot").get_by_text("marks and pairs reached")).to_be_visible()
        tab.get_by_role("region", name="Findings").get_by_role("link").click()
        expect(tab.get_by_role("heading", level=1)).to_contain_text("lost-record in enumerator")
        expect(tab.locator(".timeline .plot").get_by_text("instance-1").first).to_be_visible()


@pytest.mark.browser
def test_it_can_be_read_by_everybody(tab, settings, searched):
    with served(create_app(settings)) as root:
        for path in ("", f"/{SEARCH}", f"/{SEARCH}/findings/1"):
            tab.goto(f"{root}/explorations{path}")
            tab.wait_for_load_state("networkidle")
            found = Axe().run(tab).response
            assert found["passes"]
            assert [v["id"] for v in found["violations"] if v["impact"] in ("serious", "critical")] == []
