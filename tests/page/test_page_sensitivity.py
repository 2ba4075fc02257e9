"""The tab *Sensitivity*: plants by release, survivors first, each with its timelines."""

import re
import shutil
from dataclasses import replace

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from onceproof.harness import harness_version
from onceproof.model.cell import Cell
from onceproof.model.errors import HarnessError
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.model.sensitivity import PlantedTrial
from onceproof.page.app import create_app
from onceproof.page.sensitivity import sensitivity_view
from onceproof.results.nights import NightStep, note_step, read_nights
from onceproof.results.sensitivity import store_planted
from tests.page.conftest import GREEN, NEWEST, SCRIPT, served
from tests.present import present

KEY = f"{GREEN.key}-t2"
CELL = Cell("enumerator", "DEFAULT_CONFIG", Release(4, 3, 1), Release(3, 9, 1))
FOUND = PlantedTrial(
    NEWEST, KEY, "stale-cache", CELL, "c0ffee", harness_version("enumerator"), 1, 3, True, True, {"duplicate-id": 4}
)
SURVIVOR = replace(FOUND, plant="lost-plant", trial="t3", found=False, anomalies={})
IDLE = replace(FOUND, plant="idle-plant", trial="t4", fired=0, exercised=False, found=False, anomalies={})
ONCE = replace(FOUND, plant="plant-seen-once", trial="t5")
OLD = replace(SURVIVOR, plant="old-plant", trial="t6", harness="0.0.9+00000000")
OTHER = replace(FOUND, trial="t7", cell=replace(CELL, streams=Release(3, 9, 1)))
CANNOT = replace(
    SURVIVOR, plant="record-twice", cell=replace(CELL, scenario="crash"), trial="t9", harness=harness_version("crash")
)
ALL = [CANNOT, FOUND, SURVIVOR, IDLE, ONCE, replace(ONCE, trial="t8", found=False), OLD, OTHER]


def test_releases_come_newest_first_and_survivors_before_found():
    newest, older = sensitivity_view(ALL)
    assert [(row.plant, row.state) for row in newest.rows] == [
        ("lost-plant", "survived"),
        ("plant-seen-once", "found now and then"),
        ("idle-plant", "not exercised"),
        ("stale-cache", "found"),
        ("record-twice", "cannot show"),
        ("old-plant", "survived"),  # of a harness that no longer exists
    ]
    assert (newest.release, newest.found, newest.planted) == ("4.3.1", 2, 4)
    assert (older.release, older.found, older.planted) == ("3.9.1", 1, 1)


def test_a_plant_that_shows_where_it_cannot_is_misjudged():
    [one] = sensitivity_view([replace(CANNOT, found=True)])
    assert (one.planted, one.rows[0].state) == (0, "misjudged")


def test_results_of_an_old_harness_are_shown_until_replaced():
    [one] = sensitivity_view([OLD])
    assert (one.found, one.planted, one.rows[0].is_old) == (0, 1, True)


@pytest.fixture
def planted(settings):
    store_planted([replace(one, error=SCRIPT) if one is IDLE else one for one in ALL], settings.database_url)
    run = RunFolder(settings.runs / NEWEST)
    shutil.copytree(run.trial(KEY).path, run.planted.trial(KEY).path)


def test_the_tab_leads_to_the_timeline_of_each_trial(client, planted):
    page = client.get("/sensitivity")
    assert page.status_code == 200
    assert "4.3.1: 2 of 4 planted bugs found" in page.text
    assert SCRIPT not in page.text
    assert "document.title" in page.text
    assert page.text.index("lost-plant") < page.text.index("stale-cache")
    target = present(re.search(rf'href="\./(planted/{NEWEST}/{re.escape(KEY)})"', page.text))
    trial = client.get(f"/{target[1]}")
    assert "fired 3 times: 4 duplicate-id" in trial.text
    assert "no evidence about Kafka" in trial.text
    assert client.get(f"/{target[1]}/timeline.json").json()["data"]
    assert 'href="./sensitivity"' in client.get("/").text


def test_without_a_plant_the_tab_says_how_to_come_by_one(client):
    assert "onceproof check sensitivity --streams newest" in client.get("/sensitivity").text


def test_a_trial_whose_folder_is_gone_is_told_without_a_timeline(client, planted):
    assert "there is no timeline" in client.get(f"/planted/{NEWEST}/t3").text
    assert client.get(f"/planted/{NEWEST}/t3/timeline.json").status_code == 404


@pytest.mark.parametrize("path", ["planted/none/t1", f"planted/{NEWEST}/none", f"planted/{NEWEST}/%2e%2e"])
def test_a_trial_that_was_not_planted_is_not_there(client, planted, path):
    for address in (f"/{path}", f"/{path}/timeline.json"):
        assert client.get(address).status_code == 404


def test_an_ordinary_trial_is_no_planted_one(client, planted):
    assert client.get(f"/planted/{NEWEST}/{GREEN.key}-t1").status_code == 404


@pytest.mark.browser
def test_from_the_matrix_to_the_timeline_of_a_plant(tab, settings, planted):
    with served(create_app(settings)) as root:
        tab.goto(f"{root}/")
        tab.get_by_role("link", name="Sensitivity").click()
        release = tab.get_by_role("region", name="Plants of 4.3.1")
        expect(release.get_by_role("row").nth(1)).to_contain_text("lost-plant")  # the survivor first
        release.get_by_role("row", name="stale-cache").get_by_role("link", name="trial 1").click()
        expect(tab.get_by_role("heading", level=1)).to_contain_text("stale-cache planted into 4.3.1")
        expect(tab.locator(".timeline .plot").get_by_text("instance-1").first).to_be_visible()


@pytest.mark.browser
def test_it_can_be_read_by_everybody(tab, settings, planted):
    note_step(settings.nights, a_step("tests", 1))
    with served(create_app(settings)) as root:
        for path in ("/sensitivity", f"/planted/{NEWEST}/{KEY}", "/upgrade?current=3.3.1&target=3.4.1"):
            tab.goto(f"{root}{path}")
            tab.wait_for_load_state("networkidle")
            found = Axe().run(tab).response
            assert found["passes"]
            assert [v["id"] for v in found["violations"] if v["impact"] in ("serious", "critical")] == []


def a_step(name: str, code: int) -> NightStep:
    return NightStep("0123456789ab", name, f"what it proves {SCRIPT}", "2026-11-29T04:05:06+00:00", code, 3_600)


def test_nights_of_the_checkout_are_shown_last_step_first(settings, client):
    assert "Nights" not in client.get("/sensitivity").text  # nobody ran one
    for step in (a_step("tests", 1), a_step("known", 0)):
        note_step(settings.nights, step)
    shown = client.get("/sensitivity").text
    assert SCRIPT not in shown
    rows = [" ".join(re.sub(r"<[^>]+>", " ", row).split()) for row in shown.split('id="nights"')[1].split("<tr>")[2:]]
    assert rows[0].startswith("known passed 2026-11-29 04:05 3,600 0123456789ab what it proves")
    assert rows[1].startswith("tests failed (exit code 1) 2026-11-29 04:05")


def test_a_damaged_record_of_nights_is_a_sentence(tmp_path):
    file = tmp_path / "nights.jsonl"
    note_step(file, a_step("known", 0))
    with file.open("a") as lines:
        lines.write('{"version": ')
    with pytest.raises(HarnessError, match=r"nights\.jsonl is damaged: .*Move it away"):
        read_nights(file)
