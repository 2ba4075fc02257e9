"""The page as a client gets it: found, absent, broken, behind a prefix, and refused."""

import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import replace
from datetime import UTC, datetime
from io import BytesIO
from urllib.parse import quote

import pytest
from fastapi import FastAPI, HTTPException
from fastapi.testclient import TestClient

from onceproof.model.cell import Cell, Trial
from onceproof.model.files import Reading, VerdictRow
from onceproof.model.json_file import read_json, write_json
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.model.verdict import Verdict
from onceproof.page import matrix
from onceproof.page.app import create_app
from onceproof.page.matrix import Square
from onceproof.page.runs import find_unfinished, run_of_dag_run
from onceproof.results.database import store_run
from onceproof.results.history import JudgedCell
from onceproof.results.matrix_query import DatedVerdict, KnownVerdicts
from onceproof.settings import Settings
from tests.page.conftest import (
    GREEN,
    NEWEST,
    OLDER,
    RED,
    RESTART,
    SCRIPT,
    STALE,
    TURNED,
    VERDICTS,
    WITNESS,
    age,
    make_run,
)

CELL = f"/runs/{NEWEST}/cells/{RED.key}"
TRIAL = f"/runs/{NEWEST}/trials/{RED.key}-t2"
SUITE = f"/runs/{NEWEST}/data_docs/validations/id_uniqueness/run {NEWEST}/20261120T022000.000000Z"
ALL = ("/", CELL, f"{CELL}/witnesses/1", TRIAL, f"{TRIAL}/timeline.json", f"/runs/{NEWEST}/data_docs/index.html")


def squares(text):
    """The cells of the matrix: what a screen reader says about them."""
    return re.findall(r'aria-label="([^"]+, \d+ of \d+ trials red[^"]*)"', text)


def test_the_matrix_tells_the_newest_run_and_what_it_changed(client):
    page = client.get("/")
    assert page.status_code == 200
    assert "1 cell regressed" in page.text
    assert NEWEST in page.text
    assert "newly red" in page.text
    assert sorted(squares(page.text)) == sorted(
        [
            f"{RED.title}: known, 1 of 2 trials red",
            f"{GREEN.title}: clean, 0 of 2 trials red",
            f"{TURNED.title}: regression, 1 of 2 trials red; newly red",
            f"{STALE.title}: inconclusive, 0 of 2 trials red; stale, from run {OLDER}",
            f"{RESTART.title}: avoided, 0 of 0 trials red",
        ]
    )


def test_releases_are_columns_in_order_and_restarts_come_apart(client):
    heads = re.findall(r'<th scope="col"(?: class="corner")?>([^<]+)</th>', client.get("/").text)
    first, second = heads.index("Releases of Kafka Streams"), heads.index("Restarted on another release")
    assert heads[first + 1 : second] == ["3.3.1", "3.4.1", "3.8.1", "3.10.0"]
    assert heads[second + 1] == "4.1.2 → 4.3.1"


def test_cells_that_roll_have_a_row_a_pair():
    releases = [Release(3, 9, 1), Release(4, 1, 2)]
    cells = [Cell("enumerator", "ROLLING", one, Release(3, 9, 1), Release(4, 3, 1)) for one in releases]
    cells += [replace(cells[0], variant="ROLLING_BACK"), replace(cells[0], variant="DEFAULT_CONFIG")]
    shown = {cell: Square(cell.key, "", "", Verdict.CLEAN, "", "", "", "") for cell in cells}
    plain, restarted, rolled = matrix._blocks(shown, several_brokers=False)
    assert (plain.scenarios, restarted.columns) == ({}, ["3.9.1 → 4.3.1"])
    assert rolled.columns == ["ROLLING", "ROLLING_BACK"]
    rows = [(row.name, [one.key if one else None for one in row.squares]) for row in rolled.scenarios["enumerator"]]
    assert rows == [("3.9.1 → 4.3.1", [cells[0].key, cells[2].key]), ("4.1.2 → 4.3.1", [cells[1].key, None])]


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ({"scenario": "quota"}, [STALE]),
        ({"verdict": "regression"}, [TURNED]),
        ({"broker": "3.9.1", "scenario": "crash"}, [RESTART]),
        ({"broker": "3.8.0"}, []),
        ({"only": "run", "scenario": "quota"}, []),
        ({"run": OLDER, "scenario": "crash"}, []),
        ({"run": OLDER, "scenario": "quota"}, [STALE]),
    ],
)
def test_every_view_has_a_link(client, query, shown):
    page = client.get("/", params=query).text
    assert [title.partition(":")[0] for title in squares(page)] == [cell.title for cell in shown]
    assert shown or "No cell fits these filters" in page


def test_an_older_run_is_told_as_it_was(client):
    page = client.get("/", params={"run": OLDER}).text
    assert "1 cell is inconclusive" in page
    assert "There is no run before it to compare with." in page
    assert "newly red" not in page
    assert "stale, from" not in page


def test_a_cell_tells_verdict_arithmetic_trials_and_witnesses(client):
    page = client.get(CELL).text
    for part in (
        "1 red, 2 exercised trials; 95 % interval of the rate 9% to 91%",
        "https://issues.apache.org/jira/browse/KAFKA-14172",
        Trial(NEWEST, RED, 2, 12).command,
        "One ID was given to more than one key.",
        "output/0@50",
        f"../../../runs/{NEWEST}/cells/{RED.key}/witnesses/1",
        f"../../../runs/{NEWEST}/trials/{RED.key}-t1",
        quote(f"assignments-{RED.title} trial 2.html"),
        f"../../../runs/{OLDER}/cells/{RED.key}",
    ):
        assert part in page


def test_a_cell_tells_what_was_not_looked_at_and_why(client, settings):
    assert "Not checked" not in client.get(CELL).text
    run = RunFolder(settings.runs / NEWEST)
    first, *others = VerdictRow.read_all(run.verdicts_file)
    VerdictRow.write_all(run.verdicts_file, [replace(first, not_looked_at={"fencing": "it <needs> segments"}), *others])
    assert "Not checked: fencing, because it &lt;needs&gt; segments." in client.get(CELL).text


def test_a_cell_tells_that_its_release_did_not_qualify(client, settings):
    run = RunFolder(settings.runs / NEWEST)
    first, *others = VerdictRow.read_all(run.verdicts_file)
    VerdictRow.write_all(run.verdicts_file, [replace(first, unqualified="4.4.0 does not qualify: <b>"), *others])
    assert "4.4.0 does not qualify: &lt;b&gt;" in client.get(CELL).text


def test_a_cell_of_an_unfixed_issue_says_what_it_is_blind_for(client, settings):
    assert "Blind here" not in client.get(CELL).text
    run = RunFolder(settings.runs / NEWEST)
    first, *others = VerdictRow.read_all(run.verdicts_file)
    blind = Cell("global-join", "KILLED", Release(4, 3, 1), RED.broker)
    VerdictRow.write_all(run.verdicts_file, [replace(first, **blind.to_dict()), *others])
    text = client.get(CELL).text
    assert "Blind here" in text
    assert r"thread-died (after crash; says Tasks \[-1_-1\] are corrupted)" in text
    assert 'href="https://issues.apache.org/jira/browse/KAFKA-21034"' in text


def test_the_matrix_says_of_a_cell_what_it_is_blind_for():
    cells = [Cell("global-join", "KILLED", Release(*release), RED.broker) for release in ((4, 2, 2), (4, 3, 1))]
    created = "2026-11-20T02:15:00+00:00"
    past = {
        c: [DatedVerdict(created, JudgedCell(NEWEST, c, Verdict.KNOWN, 1, 1, None, ("KAFKA-21034",)))] for c in cells
    }
    [block] = matrix.matrix_of(KnownVerdicts(NEWEST, created, "nightly", past), matrix.Filters()).blocks
    [row] = block.scenarios["global-join"]
    blind = "; blind here for what looks like KAFKA-21034"
    assert [blind in (square.title if square else "") for square in row.squares] == [False, True]


def test_only_what_looks_like_a_key_of_jira_or_a_cve_is_a_link(client, settings):
    run = RunFolder(settings.runs / NEWEST)
    first, *others = VerdictRow.read_all(run.verdicts_file)
    VerdictRow.write_all(run.verdicts_file, [replace(first, issues=("CVE-2026-111496",)), *others])
    assert 'href="https://www.cve.org/CVERecord?id=CVE-2026-111496"' in client.get(CELL).text
    issues = ("at_least_once (documented)", "KAFKA-1/../../evil", "CVE-2026-1&x=1")
    VerdictRow.write_all(run.verdicts_file, [replace(first, issues=issues), *others])
    page = client.get(CELL).text
    assert "at_least_once (documented)" in page
    assert "issues.apache.org" not in page
    assert "www.cve.org" not in page


def test_a_green_names_the_bugs_that_it_excludes(client, settings):
    run = RunFolder(settings.runs / NEWEST)
    excluded = "1 green trial excludes, with 95 % confidence, bugs that show in 95 % of trials or more."
    rows = VerdictRow.read_all(run.verdicts_file)
    provisional = [replace(row, verdict=Verdict.PROVISIONAL, excluded_rate=0.95, arithmetic=excluded) for row in rows]
    VerdictRow.write_all(run.verdicts_file, provisional)
    page = client.get(CELL).text
    assert excluded in page
    assert '<span class="verdict provisional">' in page
    assert "✔?" in page


def test_an_older_verdict_without_an_interval_is_shown(client, settings):
    run = RunFolder(settings.runs / NEWEST)
    verdicts = [
        {
            name: value
            for name, value in verdict.items()
            if name not in ("interval", "arithmetic", "excluded_rate", "missed")
        }
        for verdict in json.loads(run.verdicts_file.read_text())
    ]
    write_json(run.verdicts_file, verdicts)
    assert "1 red, 2 exercised trials." in client.get(CELL).text


def test_the_records_around_a_witness_stand_side_by_side(client):
    page = client.get(f"{CELL}/witnesses/1").text
    assert re.findall("<caption>(.+)</caption>", page) == ["input", "output", "ids-changelog"]
    assert len(re.findall('class="place"', page)) == 1  # output/0@50
    assert len(re.findall('class="near"', page)) == 10
    assert len(re.findall('class="key"', page)) == 12  # key 7 at 7, 37, 67, 97 of each


def test_a_trial_has_a_timeline_in_either_theme(client):
    light, dark = (client.get(f"{TRIAL}/timeline.json", params={"theme": theme}).json() for theme in ("light", "dark"))
    assert light["data"]
    assert light["layout"]["font"]["color"] != dark["layout"]["font"]["color"]


def test_a_trial_tells_its_fault_with_the_proof(client):
    page = client.get(TRIAL).text
    assert "<dt>Fault</dt><dd>pause<div>stood still ms: 7091</div>" in page
    assert SCRIPT not in page


def test_a_broken_timeline_is_one_sentence_and_the_page_stands(client, settings):
    RunFolder(settings.runs / NEWEST).trial(f"{RED.key}-t2").timeline.write_text("{ torn\n{}\n")
    assert client.get(TRIAL).status_code == 200
    refused = client.get(f"{TRIAL}/timeline.json", headers={"Accept": "application/json"})
    assert refused.status_code == 500
    assert "timeline.jsonl is damaged" in refused.json()["detail"]


def test_evidence_is_an_archive_and_leaves_no_temporary_files(client, settings):
    answer = client.get(f"{CELL}/evidence.zip")
    assert answer.headers["content-disposition"] == f'attachment; filename="{NEWEST}-{RED.key}.zip"'
    assert "README.md" in zipfile.ZipFile(BytesIO(answer.content)).namelist()
    assert not (settings.runs / NEWEST / "evidence").exists()


def test_a_range_or_head_request_for_evidence_leaves_no_file(client, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    address = f"{CELL}/evidence.zip"
    for part in ("bytes=0-9", "bytes=9999999-", "bytes=x"):
        assert client.get(address, headers={"Range": part}).status_code == 200
    made: list[object] = []
    monkeypatch.setattr("onceproof.page.tabs.answers.make_archive", lambda *_: made.append(1))
    head = client.head(address)
    assert head.status_code == 200
    assert head.headers["content-disposition"] == f'attachment; filename="{NEWEST}-{RED.key}.zip"'
    assert made == []
    assert list((tmp_path / "scratch").iterdir()) == []


def test_data_docs_and_cell_lead_to_each_other(client):
    page = client.get(quote(f"{SUITE}/assignments-{RESTART.title} trial 1.html"))
    assert page.status_code == 200
    [back] = re.findall(r'href="([^"]+)">Cell ', page.text)
    assert client.get(str(page.url.join(back))).status_code == 200
    assert str(page.url.join(back)).endswith(f"/runs/{NEWEST}/cells/{RESTART.key}")
    [matrix] = re.findall(r'href="([^"]+)">Matrix', page.text)
    assert str(page.url.join(matrix)).endswith(f"/?run={NEWEST}")
    assert client.get(f"/runs/{NEWEST}/data_docs/static/site.css").headers["content-type"].startswith("text/css")


def test_no_run_at_all_is_told_with_what_makes_one(tmp_path):
    page = TestClient(create_app(Settings(home=tmp_path))).get("/")
    assert page.status_code == 200
    assert "onceproof run" in page.text
    assert list(tmp_path.iterdir()) == []  # looking creates nothing


def test_a_run_under_way_is_told_with_its_trials(client, settings):
    run = make_run(settings.runs, "20261121T021500-cccc", {RED: "known"}, judged=False)
    run.trial(f"{RED.key}-t2").outcome_file.unlink()
    page = client.get("/").text
    assert f"Run {run.run_id} is under way: 1 of 2 trials are over." in page
    assert '<progress max="2" value="1"' in page
    assert "1 cell regressed" in page  # the last that is judged stays in sight
    own = client.get("/", params={"run": run.run_id}).text
    assert "under way" in own
    assert f"Run {run.run_id} has no verdicts yet" in own


def test_a_run_without_verdicts_is_not_shown_as_running_forever(client, settings):
    run = make_run(settings.runs, "20261121T021500-cccc", {RED: "known"}, judged=False)
    for path in run.path.rglob("*"):
        age(path, 3 * 3600)
    assert "has no verdicts and gave no sign of life for 3 h: 2 of 2 trials are over." in client.get("/").text


def test_a_vanished_draft_or_dangling_link_is_no_sign_of_life(client, settings):
    run = make_run(settings.runs, "20261121T021500-cccc", {RED: "known"}, judged=False)
    for path in run.path.rglob("*"):
        age(path, 3 * 3600)
    run.validations.mkdir()
    (run.validations / "gone.json").symlink_to("nowhere")
    (run.validations / ".draft.json.abc").write_text("{")
    assert "has no verdicts and gave no sign of life for 3 h: 2 of 2 trials are over." in client.get("/").text


def test_an_older_run_that_is_gone_on_with_is_told(client, settings):
    run = make_run(settings.runs, "20261118T021500-cccc", {RED: "known"}, judged=False)
    assert f"Run {run.run_id} is under way: 2 of 2 trials are over." in client.get("/").text
    for path in run.path.rglob("*"):
        age(path, 3 * 3600)
    assert run.run_id not in client.get("/").text


def test_regressions_since_earlier_runs_are_next_to_the_headline(client, settings):
    run = make_run(settings.runs, "20261121T021500-cccc", {GREEN: "clean"})
    store_run(run, settings.database_url)
    page = client.get("/").text
    assert "All as the registry of known issues expects" in page
    [reported] = re.findall('<p class="earlier">(.+?)</p>', page, re.DOTALL)
    assert (
        " ".join(re.sub("<[^>]+>", "", reported).split())
        == "Still from earlier runs: ✘✘ 1 regression, ? 1 inconclusive"
    )
    first, second = re.findall('href="([^"]+)"', reported)
    assert [of.partition(":")[0] for of in squares(client.get(f"/{first[2:]}".replace("&amp;", "&")).text)] == [
        TURNED.title
    ]
    assert "inconclusive" in second
    assert "Still from earlier runs" not in client.get("/", params={"run": OLDER}).text


def test_a_judged_run_that_is_not_stored_is_reported_and_shown(client, settings):
    run = make_run(settings.runs, "20261121T021500-cccc", {GREEN: "known"})
    assert f"Run {run.run_id} is judged, but it is not in the results database (yet)." in client.get("/").text
    page = client.get("/", params={"run": run.run_id})
    assert f"{GREEN.title}: known, 1 of 2 trials red; newly red" in page.text


@pytest.mark.parametrize("content", ["{ torn", "{}", "[1]", "null", '[{"cell": "x"}]'])
@pytest.mark.parametrize("damage", ["verdicts.json", "run.json"])
def test_a_damaged_run_does_not_take_the_matrix_with_it(client, settings, damage, content):
    (settings.runs / NEWEST / damage).write_text(content)
    page = client.get("/")
    assert page.status_code == 200
    assert len(squares(page.text)) == 5
    if damage == "verdicts.json":
        assert f"The verdicts in the folder of run {NEWEST} cannot be read" in page.text
    refused = client.get(CELL)
    assert refused.status_code == 500
    assert "incomplete or damaged" in refused.text
    later = make_run(settings.runs, "20261121T021500-cccc", {RED: "known"})
    (later.path / damage).write_text("{ torn")
    assert f"Run {later.run_id} is damaged: its plan or its verdicts cannot be read." in client.get("/").text


ODD_FILES = {
    "an outcome that is a list": ("outcome.json", [1, 2], CELL, 200),
    "an outcome that lacks all": ("outcome.json", {"seconds": [1]}, TRIAL, 200),
    "a count that is a text": ("reader.json", {"anomalies": {"duplicate-id": "x"}, "witnesses": []}, CELL, 200),
    "a witness without a place": (
        "reader.json",
        {"anomalies": {"duplicate-id": 1}, "witnesses": [{"anomaly": "duplicate-id", "key": 7}]},
        f"{CELL}/witnesses/1",
        404,
    ),
}


@pytest.mark.parametrize(("name", "content", "path", "status"), ODD_FILES.values(), ids=ODD_FILES)
def test_json_that_is_not_what_we_write_is_one_sentence(client, settings, name, content, path, status):
    write_json(RunFolder(settings.runs / NEWEST).trial(f"{RED.key}-t2").path / name, content)
    page = client.get(path)
    assert page.status_code == status
    assert "content-security-policy" in page.headers


@pytest.mark.parametrize("lacks", ["errors", "trials", "sentence"])
def test_a_verdict_that_lacks_something_is_one_sentence(client, settings, lacks):
    run = RunFolder(settings.runs / NEWEST)
    write_json(
        run.verdicts_file, [{n: v for n, v in one.items() if n != lacks} for one in read_json(run.verdicts_file)]
    )
    page = client.get(CELL)
    assert page.status_code == 500
    assert f"1.{lacks} is missing" in page.text


@pytest.mark.parametrize("created", [None, "x", "2026-99-99T00:00:00"])
def test_a_plan_without_a_time_is_one_sentence(client, settings, created):
    run = make_run(settings.runs, "20261121T021500-cccc", {GREEN: "clean"})
    plan = read_json(run.run_file)
    write_json(
        run.run_file, {**plan, "created": created} if created else {n: plan[n] for n in plan.keys() - {"created"}}
    )
    page = client.get("/", params={"run": run.run_id})
    assert page.status_code == 500
    assert f"Run {run.run_id} is damaged" in page.text
    assert client.get("/").status_code == 200


@pytest.mark.parametrize("path", [f"{CELL}/witnesses/1", f"{CELL}/evidence.zip"])
def test_a_table_that_is_junk_is_one_sentence(client, settings, path):
    for part in RunFolder(settings.runs / NEWEST).table("records").rglob("*.parquet"):
        part.write_bytes(b"junk" * 100)
    page = client.get(path)
    assert page.status_code == 500
    assert f"of run {NEWEST} could not be read" in page.text


def test_of_many_runs_that_are_not_stored_the_last_are_told(client, settings):
    for number in range(9):
        make_run(settings.runs, f"2026112{number}T021500-cccc", {GREEN: "clean"})
    reported = re.findall(r"Run (\S+) is judged, but", client.get("/").text)
    assert reported == [f"2026112{number}T021500-cccc" for number in (8, 7, 6, 5, 4)]


def test_a_database_that_refuses_is_one_sentence(client, settings):
    (settings.home / "results.db").write_bytes(b"no database" * 100)
    refused = client.get("/")
    assert refused.status_code == 500
    assert "The results database refused" in refused.text


def test_a_run_whose_folder_is_gone_keeps_its_verdicts(client, settings):
    (settings.runs / NEWEST).rename(settings.home / "elsewhere")
    page = client.get("/").text
    assert "was removed" in page
    assert len(squares(page)) == 5
    assert client.get(CELL).status_code == 404


def test_everything_works_behind_a_prefix(settings):
    outer = FastAPI()
    outer.mount("/air/flow", create_app(settings))
    client = TestClient(outer, headers={"Accept": "text/html"})
    todo, seen = ["/air/flow/"], set()
    while todo:
        address = todo.pop()
        if address in seen:
            continue
        seen.add(address)
        page = client.get(address)
        assert page.status_code == 200, address
        assert page.url.path.startswith("/air/flow/")
        if "text/html" in page.headers["content-type"]:
            found = re.findall(r'(?:href|src|action|data-load|data-src)="([^"#]+)"', page.text)
            todo += [
                str(page.url.join(f.replace("&amp;", "&"))) for f in found if not f.startswith(("https:", "data:"))
            ]
    assert len(seen) > 40
    assert any("data_docs" in address for address in seen)


@pytest.mark.parametrize("path", ALL)
def test_whoever_is_not_let_in_sees_nothing(settings, path):
    def nobody():
        raise HTTPException(401, "Not authenticated")

    app = create_app(settings, authorize=nobody, login="/auth/login/")
    client = TestClient(app, follow_redirects=False)
    refused = client.get(path, headers={"Accept": "application/json"})
    assert (refused.status_code, refused.json()) == (401, {"detail": "Not authenticated"})
    sent = client.get(path, headers={"Accept": "text/html"})
    assert sent.status_code == 307
    assert sent.headers["location"] == f"/auth/login/?next={quote(path)}"
    asked = client.get(f"{path}?theme=dark&x=1", headers={"Accept": "text/html", "Host": "evil.example"})
    assert asked.headers["location"] == f"/auth/login/?next={quote(f'{path}?theme=dark&x=1')}"


def test_a_token_that_is_not_ours_leads_a_browser_to_the_login(settings):
    def forged():
        raise HTTPException(403, "Invalid JWT token")

    client = TestClient(create_app(settings, authorize=forged, login="/auth/login"), follow_redirects=False)
    sent = client.get("/", headers={"Accept": "text/html"})
    assert (sent.status_code, sent.headers["location"]) == (307, "/auth/login?next=/")
    assert client.get("/", headers={"Accept": "application/json"}).status_code == 403


@pytest.mark.parametrize(
    "path", [*ALL, "/nothing", "/static/page.css", "/static/plotly.min.js", f"{CELL}/evidence.zip"]
)
def test_headers_are_strict_on_every_answer(client, path):
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert "frame-ancestors 'self'" in policy
    assert "http" not in policy
    assert "data_docs" in path or "script-src 'self';" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == ("private, max-age=31536000, immutable" if "/static/" in path else "no-store")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
@pytest.mark.parametrize("path", ["/", CELL])
def test_nothing_can_be_written(client, method, path):
    assert client.request(method, path).status_code == 405


@pytest.mark.parametrize("path", ALL)
def test_head_is_answered(client, path):
    answer = client.head(path)
    assert (answer.status_code, answer.content) == (200, b"")


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/docs",
        "/openapi.json",
        "/static/app.py",
        "/static/..%2fapp.py",
        "/runs/20261120T021500-ffff/cells/x",
        "/runs/../cells/x",
        "/runs/%2e%2e/cells/x",
        f"/runs/{NEWEST}/cells/nothing",
        f"/runs/{NEWEST}/cells/{STALE.key}",
        f"/runs/{NEWEST}/trials/..%2f{RED.key}-t1",
        f"/runs/{NEWEST}/trials/{RED.key}-t9",
        f"{CELL}/witnesses/0",
        f"{CELL}/witnesses/99",
        f"{CELL}/witnesses/²",
        f"{CELL}/witnesses/1.5",
        f"/runs/{NEWEST}/data_docs/nothing.html",
        f"/runs/{NEWEST}/data_docs/validations",
        f"/runs/{NEWEST}/data_docs/../verdicts.json",
        f"/runs/{NEWEST}/data_docs/..%2fverdicts.json",
        f"/runs/{NEWEST}/data_docs/%2e%2e/verdicts.json",
        f"/runs/{NEWEST}/data_docs/..%5cverdicts.json",
        f"/runs/{NEWEST}/data_docs//etc/passwd",
        f"/runs/{NEWEST}/data_docs/%2fetc%2fpasswd",
        f"/runs/{NEWEST}/data_docs/index.html%00.css",
        "/?run=20261120T021500-ffff",
        "/?run=..%2f..%2fetc",
        "/?dag_run=manual__2026-11-20T02:15:00%2B00:00",
    ],
)
def test_what_is_not_there_is_404(client, path):
    answer = client.get(path)
    assert answer.status_code == 404
    assert "root:" not in answer.text
    assert "sentence" not in answer.text


@pytest.mark.parametrize(
    "path", [f"/?scenario={'x' * 201}", f"/?{'x' * 201}=1", f"/?run={'x' * 9000}", f"/runs/{'x' * 201}/cells/y"]
)
def test_what_is_too_long_to_be_meant_is_400(client, path):
    answer = client.get(path)
    assert answer.status_code == 400
    assert len(answer.text) < 2000


@pytest.mark.parametrize("path", ["/", CELL, f"{CELL}/witnesses/1", TRIAL])
def test_html_in_what_was_recorded_is_text(client, path):
    page = client.get(path).text
    assert SCRIPT not in page
    assert path == "/" or "&lt;script&gt;" in page


def test_html_in_what_was_asked_is_text(client):
    for path in (
        f"/?scenario={quote(SCRIPT)}",
        f"/?run={quote(SCRIPT)}",
        f"/runs/{NEWEST}/cells/{quote(SCRIPT, safe='')}",
    ):
        assert SCRIPT not in client.get(path).text


@pytest.mark.parametrize(
    ("link", "path"),
    [
        ("verdicts.json", CELL),
        ("run.json", CELL),
        ("further_trials.json", CELL),
        ("trials", CELL),
        (f"trials/{RED.key}-t2", CELL),
        (f"trials/{RED.key}-t2/reader.json", CELL),
        (f"trials/{RED.key}-t2/timeline.jsonl", f"{TRIAL}/timeline.json"),
        ("tables", f"{TRIAL}/timeline.json"),
        ("tables/records", TRIAL),
        (f"trials/{RED.key}-t1/instances", f"{CELL}/evidence.zip"),
        ("tables/records", f"{CELL}/witnesses/1"),
        ("data_docs/index.html", f"/runs/{NEWEST}/data_docs/index.html"),
        ("data_docs/static", f"/runs/{NEWEST}/data_docs/static/site.css"),
        ("data_docs", f"/runs/{NEWEST}/data_docs/index.html"),
        ("", CELL),
    ],
)
def test_a_link_that_leads_out_of_the_run_is_not_followed(client, settings, link, path):
    inside, outside = settings.runs / NEWEST / link, settings.home / "outside"
    if inside.exists():
        inside.rename(outside)
    else:
        outside.mkdir()
    inside.symlink_to(outside)
    assert client.get(path).status_code == 404


def test_a_plan_that_is_a_link_is_not_followed(client, settings):
    run = make_run(settings.runs, "20261121T021500-cccc", {GREEN: "clean"})
    run.run_file.rename(settings.home / "outside")
    run.run_file.symlink_to(settings.home / "outside")
    page = client.get("/", params={"run": run.run_id})
    assert page.status_code == 404
    assert "is a link to somewhere else" in page.text


def test_a_folder_whose_name_is_not_a_run_is_not_shown(client, settings):
    (settings.runs / NEWEST).rename(settings.runs / "notes")
    assert client.get(f"/runs/notes/cells/{RED.key}").status_code == 404


def test_a_home_that_is_a_link_itself_is_fine(settings, tmp_path):
    (tmp_path / "linked").symlink_to(settings.home)
    client = TestClient(create_app(Settings(home=tmp_path / "linked")))
    assert client.get(CELL).status_code == 200


def test_airflows_run_leads_to_ours(client, settings):
    dag_run = "scheduled__2026-11-21T02:15:00+00:00"
    run = make_run(settings.runs, "20261121T021500-3f2a", VERDICTS[OLDER])
    write_json(run.run_file, {**read_json(run.run_file), "dag_run": dag_run})
    broken = settings.runs / "20261122T021500-3f2a" / "run.json"
    broken.parent.mkdir()
    broken.write_text("[]")
    assert run_of_dag_run(settings.runs, dag_run) == run.run_id
    assert run.run_id in client.get("/", params={"dag_run": dag_run}).text
    assert run.run_id in client.get(f"/?dag_run={dag_run}").text  # its plus sign is not encoded
    assert NEWEST in client.get("/", params={"dag_run": NEWEST}).text
    assert NEWEST in client.get("/", params={"dag_run": f"{NEWEST}.20261123T000000-abcd"}).text  # resumed


def test_of_another_dag_there_is_nothing_to_show(client):
    page = client.get("/", params={"dag": "bisect", "dag_run": NEWEST})
    assert page.status_code == 404
    assert "Only runs of the DAG regression have results" in page.text
    assert NEWEST in client.get("/", params={"dag": "regression", "dag_run": NEWEST}).text


def test_witnesses_are_numbered_as_they_are_shown(client, settings):
    folder = RunFolder(settings.runs / NEWEST).trial(f"{RED.key}-t2")
    found = [
        replace(WITNESS, anomaly=name, expected=f"{name} {n}")
        for n in (1, 2)
        for name in ("lost-record", "duplicate-id")
    ]
    anomalies = {"duplicate-id": 2, "lost-record": 2}
    reading = Reading.read(folder.reader_file)
    replace(reading, anomalies=anomalies, witnesses=tuple(found)).write(folder.reader_file)
    numbers = re.findall(r'<td class="number">(\d)</td><td><code>.+?<td>([a-z-]+ \d)</td>', client.get(CELL).text)
    shown = [("1", "duplicate-id 1"), ("2", "duplicate-id 2"), ("3", "lost-record 1"), ("4", "lost-record 2")]
    assert numbers == shown
    for number, expected in shown:
        assert f"Expected {expected};" in client.get(f"{CELL}/witnesses/{number}").text


def test_days_that_repeat_have_their_time_of_day(client, settings):
    store_run(make_run(settings.runs, "20261120T161500-cccc", {RED: "known"}), settings.database_url)
    assert re.findall('class="day">([^<]+)', client.get(CELL).text) == ["19 Nov", "20 Nov, 02:15", "20 Nov, 16:15"]


def test_only_later_runs_with_a_plan_are_unfinished(settings):

    (settings.runs / "20261121T021500-dddd").mkdir()  # of `onceproof trial`
    (settings.runs / "not a run").mkdir()
    assert find_unfinished(settings.runs, NEWEST, datetime.now(UTC)) == []
    assert [one.run for one in find_unfinished(settings.runs, OLDER, datetime.now(UTC))] == [NEWEST]


def test_the_plugin_costs_the_tasks_nothing(project, tmp_path):
    """Every process of Airflow imports it, including each task's."""
    environment = {**os.environ, "AIRFLOW_HOME": str(tmp_path), "PYTHONPATH": f"{project}/plugins:{project}/src"}
    heavy = "import sys; print([name for name in ('fastapi', 'plotly', 'pyarrow', 'pandas') if name in sys.modules])"
    loaded = [
        subprocess.run(
            [sys.executable, "-c", f"import {module}; {heavy}"], env=environment, capture_output=True, check=True
        ).stdout.splitlines()[-1]
        for module in ("airflow.plugins_manager", "onceproof_page")
    ]
    assert loaded[0] == loaded[1]
