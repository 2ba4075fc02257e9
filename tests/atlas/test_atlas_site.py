"""The site of the atlas: whole, escaped, the same twice, and usable in a browser from disk at two widths."""

import json
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from typer.testing import CliRunner

from onceproof import cli
from onceproof.atlas.file import write_atlas
from onceproof.model.errors import UsageError
from onceproof.model.known_issues import registry
from onceproof.model.release import Release
from onceproof.page.atlas import POLICY, Atlas, write_site
from onceproof.page.rendering import slug
from tests.page.conftest import SCRIPT
from tests.specimens.atlas import EARLIER, NOW, TIMELINE, a_cell, measured_as

RELEASES = tuple(map(Release.parse, ("3.3.2", "3.4.0", "3.4.1", "3.5.0", "4.3.1", "4.4.0")))
MEASURED = (
    measured_as("known", sentence=f"14 duplicate-id {SCRIPT}", timeline=(*TIMELINE, {**TIMELINE[0], "name": SCRIPT})),
    measured_as("clean", a_cell("3.4.1"), day=2, harness=EARLIER, machine=SCRIPT),
    measured_as("regression", a_cell("4.4.0"), sentence="Nobody knows."),
    measured_as("clean", a_cell("3.4.1 → 4.4.0", "ROLLING")),
)
ATLAS = Atlas(MEASURED, RELEASES, [one.cell for one in MEASURED], registry(), NOW, "https://atlas.example/x/")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A site with a few cells."""
    folder = tmp_path_factory.mktemp("site")
    write_site(ATLAS, folder)
    return folder


class Links(HTMLParser):
    """The addresses and ids of a page, and its scripts."""

    def __init__(self):
        super().__init__()
        self.to, self.ids, self.scripts = [], set(), 0

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.to += [found[name] for name in ("href", "src") if found.get(name)]
        self.ids |= {found["id"]} if "id" in found else set()
        self.scripts += tag == "script" and "src" not in found


def read(page):
    links = Links()
    links.feed(page.read_text())
    return links


def test_every_link_leads_to_a_page_of_the_site_or_to_a_ticket(site):
    pages = {page: read(page) for page in site.rglob("*.html")}
    assert len(pages) > len(RELEASES) + len(registry().issues)
    for page, links in pages.items():
        for url in links.to:
            if re.match(r"https://|data:", url):
                continue
            path, _, place = url.partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.is_file(), f"{page.name}: {url}"
            assert not place or place in pages[target].ids, f"{page.name}: {url}"


def test_nothing_that_was_measured_runs_in_a_page(site):
    for page in site.rglob("*.html"):
        assert read(page).scripts == 0, page
        text = page.read_text()
        assert "<script>document" not in text
        assert " style=" not in text
        assert POLICY.replace("'", "&#39;") in text
    assert "&lt;script&gt;" in (site / "releases" / "3.4.0.html").read_text()


def test_an_atlas_gives_one_site_and_old_pages_are_removed(site, tmp_path):
    write_site(ATLAS, tmp_path / "other")
    files = {file.relative_to(site): file.read_bytes() for file in site.rglob("*") if file.is_file()}
    again = {f.relative_to(tmp_path / "other"): f.read_bytes() for f in (tmp_path / "other").rglob("*") if f.is_file()}
    assert again == files
    write_site(Atlas((), RELEASES[:3], (), registry(), NOW), tmp_path / "other")
    assert not (tmp_path / "other" / "releases" / "4.4.0.html").exists()
    assert (tmp_path / "other" / "releases" / "3.4.1.html").exists()


def test_a_folder_with_something_else_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match="holds something else"):
        write_site(ATLAS, tmp_path)
    with pytest.raises(UsageError, match="is a file"):
        write_site(ATLAS, tmp_path / "mine.txt")
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


def test_a_release_says_what_is_known_measured_and_different(site):
    text = (site / "releases" / "3.4.0.html").read_text()
    assert "KAFKA-14172" in text
    assert "Nobody knows." in (site / "releases" / "4.4.0.html").read_text()
    assert "1 measured cell shows what no known issue explains" in (site / "releases" / "4.4.0.html").read_text()
    assert "by an earlier harness" in (site / "releases" / "3.4.1.html").read_text()
    assert "3.4.1-4.4.0.html" in (site / "releases" / "3.4.1.html").read_text()


def test_the_table_separates_measured_from_expected(site):
    text = (site / "index.html").read_text()
    assert 'title="3.4.0, enumerator: DEFAULT_CONFIG known (KAFKA-14172)' in text
    assert 'title="3.3.2, enumerator: not measured, and expected by the registry: KAFKA-14172' in text
    assert re.search(r'title="4\.4\.0, enumerator: DEFAULT_CONFIG regression; not measured, and expected by the', text)
    assert "4 of 4 cells are measured, from 2026-11-01 to 2026-11-02" in text


def test_an_issue_shows_the_timeline_of_a_red_trial(site):
    page = (site / "issues" / "KAFKA-14172.html").read_text()
    assert "A trial on 3.4.0" in page
    assert "came back to a thread that had held it before" in page
    assert page.count('class="return"') == 1
    assert 'class="still"' not in (site / "issues" / "KAFKA-20685.html").read_text()  # of which no red is there
    assert "timeline" not in (site / "atlas.json").read_text()


def test_an_upgrade_is_answered_from_the_atlas(site):
    text = (site / "upgrades" / "3.4.1-4.4.0.html").read_text()
    assert "what no known issue explains" in text
    assert "measured by Onceproof 0.2.0 on 2026-11-01" in text


def test_every_issue_has_a_page_and_a_name_of_its_own(site):
    names = [slug(issue.key) for issue in registry().issues]
    assert len(set(names)) == len(names)
    assert {page.stem for page in (site / "issues").iterdir()} == set(names)
    assert "onceproof trial enumerator --streams 3.4.0" in (site / "issues" / "KAFKA-14172.html").read_text()


def test_programs_and_feed_readers_read_it(site):
    answer = json.loads((site / "atlas.json").read_text())
    assert [one["verdict"] for one in answer["measurements"]] == ["known", "clean", "regression", "clean"]
    atom = "{http://www.w3.org/2005/Atom}"
    feed = ET.fromstring((site / "feed.xml").read_text())  # noqa: S314 - it is ours
    entries = feed.findall(f"{atom}entry")
    assert entries[0].findtext(f"{atom}title") == "3.4.1 enumerator DEFAULT_CONFIG: clean"  # the newest first
    ids = [entry.findtext(f"{atom}id") for entry in entries]
    assert len(set(ids)) == len(MEASURED)
    assert feed.get("{http://www.w3.org/XML/1998/namespace}base") == "https://atlas.example/x/"
    assert all(re.fullmatch(r"[\d-]+T[\d:]+\+00:00", entry.findtext(f"{atom}updated", "")) for entry in entries)


@pytest.mark.parametrize("source", ["shipped", "a file"])
def test_the_command_writes_it(tmp_path, source):
    write_atlas(tmp_path / "atlas", MEASURED)
    named = [] if source == "shipped" else ["--from", str(tmp_path / "atlas")]
    done = CliRunner().invoke(cli.app, ["atlas", "site", str(tmp_path / "site"), *named])
    assert done.exit_code == 0, done.output
    assert "MiB in all" in done.stdout
    assert (tmp_path / "site" / "index.html").is_file()


@pytest.mark.browser
@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (390, "dark")])
def test_it_is_accessible_from_disk_at_two_widths(site, tab, width, theme):
    tab.set_viewport_size({"width": width, "height": 800})
    tab.emulate_media(color_scheme=theme)
    for page in ("index.html", "releases/3.4.0.html", "issues/KAFKA-14172.html", "upgrades/3.4.1-4.4.0.html"):
        tab.goto((site / page).as_uri())
        found = Axe().run(tab, options={"preload": False})  # it would fetch the style, which nothing may
        assert found.violations_count == 0, (page, found.generate_report())
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), page
        assert tab.evaluate("getComputedStyle(document.querySelector('.top')).display") == "flex"  # it has its style


@pytest.mark.browser
def test_a_person_finds_a_release_an_issue_and_an_upgrade(site, tab):
    tab.goto((site / "index.html").as_uri())
    tab.get_by_label("Search releases, issues and upgrades").fill("3.4.0")
    tab.locator("#found").get_by_role("link", name="3.4.0", exact=True).click()
    expect(tab.get_by_role("heading", level=1)).to_have_text("Kafka Streams 3.4.0")
    tab.get_by_role("row", name="KAFKA-14172").get_by_role("link").click()
    expect(tab.get_by_text("see it yourself")).to_be_visible()
    tab.get_by_role("link", name="enumerator DEFAULT_CONFIG").first.click()
    tab.get_by_text("Evidence", exact=True).first.click()
    expect(tab.get_by_text("one key").first).to_be_visible()
    tab.get_by_role("link", name="Onceproof atlas").click()
    tab.get_by_label("Search releases, issues and upgrades").fill("3.4.1 to 4.4.0")
    tab.keyboard.press("Enter")
    expect(tab.get_by_role("heading", level=1)).to_contain_text("3.4.1 to 4.4.0")
    tab.go_back()
    tab.get_by_label("Search releases, issues and upgrades").fill("no such <b>thing</b>")
    expect(tab.get_by_role("status")).to_have_text("0 found")
