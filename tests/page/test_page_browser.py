"""The page as a person uses it, in a real browser."""

import shutil
from dataclasses import replace

import pytest
from axe_playwright_python.sync_playwright import Axe
from fastapi import FastAPI
from fastapi.responses import HTMLResponse
from playwright.sync_api import Page, expect

from onceproof.model.cell import Cell
from onceproof.model.files import VerdictRow
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.page.app import create_app
from onceproof.page.report import write_report
from onceproof.results.database import store_run
from onceproof.settings import Settings
from tests.page.conftest import GREEN, NEWEST, OLDER, RED, RESTART, SCRIPT, STALE, TURNED, make_run, served

pytestmark = pytest.mark.browser

AROUND = """<!DOCTYPE html><html lang="en" class="dark"><title>As Airflow does</title><link rel="icon" href="data:,">
<iframe sandbox="allow-scripts allow-same-origin allow-forms" src="onceproof/" width="900" height="600"></iframe></html>"""
CELL = f"/runs/{NEWEST}/cells/{RED.key}"


@pytest.fixture(scope="module")
def url(pristine):
    """The page over the home of specimens, behind a prefix, as in Airflow."""
    outer = FastAPI()
    outer.mount("/onceproof", create_app(Settings(home=pristine)))
    outer.add_api_route("/around", lambda: HTMLResponse(AROUND))
    with served(outer) as root:
        yield f"{root}/onceproof"


@pytest.fixture
def own_url(settings):
    """The page over the test's own home."""
    with served(create_app(settings)) as root:
        yield root


def square(tab: Page, cell):
    return tab.locator("table.matrix").get_by_role("link", name=cell.title)


def test_from_the_matrix_to_the_records_of_a_witness(tab, url):
    tab.goto(f"{url}/")
    expect(tab.get_by_role("heading", level=1)).to_contain_text("1 cell regressed")
    expect(square(tab, TURNED)).to_have_text("✘✘ 1/2Δ")
    square(tab, RED).click()
    expect(tab.get_by_role("heading", level=1)).to_contain_text("known")
    tab.get_by_text("Records around witness 1").click()
    expect(tab.locator("table", has_text="output").get_by_role("row", name="the place")).to_contain_text("0@50")
    tab.get_by_role("link", name=f"Run {NEWEST}").click()
    expect(square(tab, RED)).to_be_visible()


def test_a_filter_leaves_what_fits_and_its_link_can_be_sent(tab, url):
    tab.goto(f"{url}/")
    tab.get_by_label("scenario").select_option("quota")
    tab.get_by_role("button", name="Show").click()
    tab.wait_for_url("**/?scenario=quota")  # only what was chosen
    expect(square(tab, RED)).to_have_count(0)
    expect(square(tab, STALE)).to_contain_text("19 Nov")
    tab.get_by_role("link", name="Reset").click()
    expect(square(tab, RED)).to_be_visible()
    tab.get_by_role("link", name="1 regression").click()
    expect(tab.locator("table.matrix td.square")).to_have_count(1)
    tab.get_by_label("run", exact=True).select_option(OLDER)
    tab.get_by_label("verdict").select_option("")
    tab.get_by_role("button", name="Show").click()
    expect(tab.get_by_role("heading", level=1)).to_contain_text("1 cell is inconclusive")


def test_the_timeline_is_drawn_in_both_themes(tab, url):
    tab.emulate_media(color_scheme="light")
    tab.goto(f"{url}{CELL}")
    plot = tab.locator(".timeline .plot")
    plot.scroll_into_view_if_needed()
    expect(plot.get_by_text("instance-1").first).to_be_visible()
    expect(plot.get_by_role("button", name="Download")).to_have_count(1)
    expect(plot.get_by_role("button", name="Share")).to_have_count(0)  # it would leave the machine
    light = plot.get_by_text("instance-1").first.evaluate("text => text.style.fill")
    tab.emulate_media(color_scheme="dark")
    expect(plot.get_by_text("instance-1").first).not_to_have_css("fill", light)
    tab.get_by_role("link", name="trial 1").click()
    expect(tab.locator(".timeline .plot").get_by_text("instance-1").first).to_be_visible()


def test_a_theme_can_be_asked_for(tab, url):
    tab.emulate_media(color_scheme="light")
    tab.goto(f"{url}/?theme=dark")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(24, 24, 27)"


def test_in_a_frame_the_theme_is_the_one_around_it(tab, url):
    tab.goto(f"{url}/../around")
    body = tab.frame_locator("iframe").locator("body")
    expect(body).to_have_css("background-color", "rgb(24, 24, 27)")
    tab.evaluate("document.documentElement.className = 'light'")
    expect(body).to_have_css("background-color", "rgb(255, 255, 255)")


def test_data_docs_and_cell_lead_to_each_other(tab, url):
    tab.goto(f"{url}/runs/{NEWEST}/cells/{RESTART.key}")
    tab.get_by_role("link", name="id_uniqueness").first.click()
    expect(tab.get_by_role("heading", name="Suite id_uniqueness")).to_be_visible()
    assert tab.evaluate("document.body.dataset.drawn") == "yes"  # their own scripts run
    tab.get_by_role("link", name=f"Cell {RESTART.title}").click()
    expect(tab.get_by_role("heading", level=1)).to_contain_text("avoided")


def test_the_evidence_can_be_saved(tab, url):
    tab.goto(f"{url}{CELL}")
    with tab.expect_download() as download:
        tab.get_by_role("link", name="Download as zip").click()
    assert download.value.suggested_filename == f"{NEWEST}-{RED.key}.zip"


def test_the_command_can_be_copied(tab, url):
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab.goto(f"{url}{CELL}")
    tab.get_by_role("button", name="Copy").click()
    expect(tab.get_by_role("button", name="Copied")).to_be_visible()
    assert tab.evaluate("navigator.clipboard.readText()").startswith("onceproof trial enumerator --streams 3.3.1")


def test_without_a_clipboard_there_is_no_button(tab, url):
    tab.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    tab.goto(f"{url}{CELL}")
    expect(tab.get_by_text("onceproof trial enumerator").first).to_be_visible()
    expect(tab.get_by_role("button", name="Copy")).to_have_count(0)


@pytest.mark.parametrize("failure", ["no answer", "a refusal", "a page of somebody else"])
def test_records_that_did_not_come_can_be_asked_for_again(chromium, url, failure):
    tab = chromium.new_page()  # the browser reports the failed request as an error
    wrong = []
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    answers = {
        "no answer": lambda route: route.abort(),
        "a refusal": lambda route: route.fulfill(status=500, body="<main><p>Run x is damaged.</p></main>"),
        "a page of somebody else": lambda route: route.fulfill(body="<h1>Log in</h1>"),
    }
    tab.route("**/witnesses/1", answers[failure], times=1)
    tab.goto(f"{url}{CELL}")
    summary = tab.get_by_text("Records around witness 1")
    summary.click()
    expect(tab.get_by_text("Run x is damaged." if failure == "a refusal" else "could not be loaded")).to_be_visible()
    expect(tab.get_by_role("link", name="Show them on a page of their own")).to_be_visible()
    summary.click()
    summary.click()
    expect(tab.locator(".records table")).to_have_count(3)
    assert wrong == []
    tab.close()


def test_a_keyboard_is_enough(tab, url):
    tab.goto(f"{url}/")
    for _ in range(60):
        tab.keyboard.press("Tab")
        if (tab.evaluate("document.activeElement.getAttribute('aria-label')") or "").startswith(RED.title):
            break
    assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    tab.keyboard.press("Enter")
    expect(tab.get_by_role("heading", level=1)).to_contain_text("known")
    tab.get_by_text("Records around witness 1").focus()
    tab.keyboard.press("Enter")
    expect(tab.locator(".records table")).to_have_count(3)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("path", ["/", CELL, f"{CELL}/witnesses/1", f"/runs/{NEWEST}/trials/{RED.key}-t2", "/nothing"])
def test_nothing_serious_stands_in_anybodys_way(chromium, url, theme, path):
    context = chromium.new_context(color_scheme=theme)
    tab = context.new_page()
    tab.goto(f"{url}{path}")
    tab.wait_for_load_state("networkidle")
    for details in tab.locator("details").all():
        details.evaluate("details => { details.open = true }")
    tab.wait_for_load_state("networkidle")
    found = Axe().run(tab).response
    serious = [
        (violation["id"], [node["html"] for node in violation["nodes"]][:3])
        for violation in found["violations"]
        if violation["impact"] in ("serious", "critical")
    ]
    context.close()
    assert found["passes"]
    assert serious == []


def test_html_in_what_was_recorded_does_not_run(tab, url):
    for path in ("/", CELL, f"{CELL}/witnesses/1", f"/runs/{NEWEST}/trials/{RED.key}-t2"):
        tab.goto(f"{url}{path}")
        tab.wait_for_load_state("networkidle")
        assert "broken in" not in tab.title()
    expect(tab.get_by_text(SCRIPT).first).to_be_visible()


def test_no_run_at_all(tab, tmp_path):
    with served(create_app(Settings(home=tmp_path))) as root:
        tab.goto(root)
        expect(tab.get_by_role("heading", level=1)).to_have_text("No run is judged yet")
        expect(tab.get_by_text("onceproof run")).to_be_visible()


def test_a_run_under_way(tab, settings, own_url):
    run = make_run(settings.runs, "20261121T021500-cccc", {RED: "known"}, judged=False)
    run.trial(f"{RED.key}-t2").outcome_file.unlink()
    tab.goto(own_url)
    expect(tab.get_by_role("status")).to_contain_text("is under way: 1 of 2 trials are over")
    expect(tab.get_by_role("progressbar")).to_be_visible()


def test_a_damaged_run(tab, settings, own_url):
    run = RunFolder(settings.runs / NEWEST)
    run.verdicts_file.write_text("{ torn")
    tab.goto(own_url)
    expect(tab.get_by_role("status")).to_contain_text("cannot be read")
    expect(square(tab, GREEN)).to_be_visible()


def test_a_damaged_timeline_is_told_in_its_place(chromium, settings, own_url):
    RunFolder(settings.runs / NEWEST).trial(f"{RED.key}-t2").timeline.write_text("{ torn\n{}\n")
    tab = chromium.new_page()  # the browser reports the failed request as an error
    tab.goto(f"{own_url}/runs/{NEWEST}/trials/{RED.key}-t2")
    expect(tab.locator(".timeline")).to_contain_text("timeline.jsonl is damaged in line 1")
    tab.close()


def test_a_large_matrix_keeps_its_heads_in_sight(tab, tmp_path):
    cells = {
        Cell("enumerator", f"VARIANT_{n}", Release(3, minor, 0), Release(3, 9, 1)): "clean"
        for n in range(40)
        for minor in range(20)
    }
    settings = Settings(home=tmp_path)
    run = make_run(settings.runs, NEWEST, {next(iter(cells)): "clean"})
    [verdict] = VerdictRow.read_all(run.verdicts_file)
    rows = [replace(verdict, cell=cell.key, **cell.to_dict()) for cell in cells]
    VerdictRow.write_all(run.verdicts_file, rows)
    store_run(run, settings.database_url)
    with served(create_app(settings)) as root:
        tab.set_viewport_size({"width": 1280, "height": 800})
        tab.goto(root)
        last = square(tab, list(cells)[-1])
        last.evaluate("last => last.scrollIntoView({ block: 'nearest', inline: 'nearest' })")
        expect(tab.get_by_role("columnheader", name="3.19.0")).to_be_in_viewport()
        expect(tab.get_by_role("rowheader", name="VARIANT_39")).to_be_in_viewport()
        assert tab.evaluate("document.documentElement.scrollWidth") <= 1280


def test_the_report_needs_nothing_beside_it(tab, settings, tmp_path):
    report = tmp_path / "elsewhere" / "report.html"
    report.parent.mkdir()
    write_report(RunFolder(settings.runs / NEWEST), settings.database_url, report)
    shutil.rmtree(settings.home)
    tab.goto(report.as_uri())
    expect(tab.get_by_role("heading", level=1).first).to_contain_text("1 cell regressed")
    square(tab, RED).click()
    article = tab.locator(f"[id='{RED.key}']")
    expect(article.get_by_role("heading", level=1)).to_be_in_viewport()
    expect(article.locator(".records table")).to_have_count(3)
    article.locator(".timeline").scroll_into_view_if_needed()
    expect(article.locator(".plot").get_by_text("instance-1").first).to_be_visible()
    assert "broken in" not in tab.title()
