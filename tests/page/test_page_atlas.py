"""The tab *Atlas*: the site of the shipped atlas within the page, with the page's navigation."""

import re
from urllib.parse import urljoin

import pytest

from onceproof.model.known_issues import registry
from onceproof.page.rendering import slug
from tests.page.conftest import NEWEST, RED, SCRIPT

ISSUE = "/atlas/issues/KAFKA-14172.html"


def tabs(page):
    """The titles of the navigation of a page."""
    return re.findall(r">([^<]+)</a>", page.partition('<nav class="tabs"')[2].partition("</nav>")[0])


@pytest.mark.parametrize("path", ["/", "/upgrade", f"/runs/{NEWEST}/cells/{RED.key}", "/atlas/index.html", ISSUE])
def test_all_pages_have_one_navigation_and_one_style(client, path):
    page = client.get(path).text
    assert tabs(page) == ["Upgrade", "Sensitivity", "Searches", "Applications", "Atlas"]
    assert len(re.findall(r'<link rel="stylesheet" href="[./]*/static/page\.css', page)) == 1


@pytest.mark.parametrize("path", ["/atlas/index.html", "/atlas/releases/4.4.0.html", ISSUE])
def test_every_link_leads_to_a_page(client, path):
    links = set(re.findall(r'(?:href|src)="(?!https://|data:)([^"#]+)', client.get(path).text))
    assert len(links) > 8
    for url in links:
        found = client.get(urljoin(path, url.replace("&amp;", "&")))
        assert found.status_code == 200, url


def test_upgrades_lead_to_the_page_that_has_a_filter(client):
    assert 'href="../../upgrade?current=4.3.1&amp;target=4.4.0"' in client.get("/atlas/releases/4.4.0.html").text


def test_the_search_finds_issues_and_upgrades(client):
    index = client.get("/atlas/index.js")
    assert index.headers["content-type"].startswith("text/javascript")
    assert "./issues/KAFKA-14172.html" in index.text
    assert "./../upgrade?current=4.3.1&target=4.4.0" in index.text


def test_its_address_without_a_page_leads_to_the_first_one(client):
    found = client.get("/atlas")
    assert found.status_code == 200
    assert found.url.path == "/atlas/index.html"


def test_every_known_issue_has_a_page(client):
    for issue in registry().issues:
        assert client.get(f"/atlas/issues/{slug(issue.key)}.html").status_code == 200, issue.key


@pytest.mark.parametrize("path", ["nothing.html", "../runs", "%2e%2e/%2e%2e/etc/passwd", SCRIPT])
def test_there_is_nothing_else(client, path):
    found = client.get(f"/atlas/{path}")
    assert found.status_code == 404
    assert SCRIPT not in found.text
