"""The page within a real Airflow: behind its login, in its navigation, on the page of a run, in its theme."""

import json
import shutil

import httpx
import pytest
from playwright.sync_api import expect

from onceproof.pipeline.services import down, up
from onceproof.pipeline.supervisor import DAG
from onceproof.processes.waiting import await_condition
from onceproof.settings import Settings
from tests.page.conftest import NEWEST, OLDER, RED

pytestmark = [pytest.mark.system, pytest.mark.browser, pytest.mark.timeout(600)]

ANOTHER, OTHER = "bisect", "20261120T031500-cccc"  # a DAG whose runs are not judged, and one of them
CELL = f"/onceproof/runs/{NEWEST}/cells/{RED.key}"
DATA = (
    "/onceproof/",
    "/onceproof/upgrade",
    CELL,
    f"{CELL}/evidence.zip",
    f"/onceproof/runs/{NEWEST}/data_docs/index.html",
)


@pytest.fixture(scope="module")
def airflow(pristine, tmp_path_factory):
    """An Airflow over a home of specimens, which knows one run of the DAG that made one of them."""
    home = tmp_path_factory.mktemp("airflow") / "home"
    shutil.copytree(pristine, home)
    (home / "artifacts").symlink_to(Settings().artifacts)
    settings = Settings(home=home)
    running, _ = up(settings)
    try:
        with running.api() as api:
            api.trigger(DAG, OLDER, {"run": OLDER, "matrix": "seed"})
            api.fail_run(DAG, OLDER)
            await_condition(f"Airflow to read {ANOTHER}", lambda: api.last_parsed(ANOTHER), timeout=120)
            api.trigger(ANOTHER, OTHER, {"scenario": "enumerator"})
            api.fail_run(ANOTHER, OTHER)
        yield running
    finally:
        down(settings)


@pytest.fixture
def client(airflow):
    """The first request makes the server import the page, which takes a while on a machine that has just started."""
    with httpx.Client(base_url=airflow.url, timeout=120) as own:
        yield own


@pytest.fixture(scope="module")
def password(airflow):
    return json.loads(airflow.password_file.read_text())[airflow.username]


@pytest.mark.parametrize("path", DATA)
def test_without_a_login_there_is_nothing_to_see(client, path):
    refused = client.get(path, headers={"Accept": "application/json"})
    assert refused.status_code == 401
    assert "onceproof trial" not in refused.text
    sent = client.get(path, headers={"Accept": "text/html"})
    assert sent.status_code == 307
    assert sent.headers["location"] == f"/auth/login?next={path}"
    forged = client.get(path, headers={"Authorization": "Bearer e30.e30.e30"})
    assert forged.status_code == 403


def test_a_token_opens_it(airflow, client, password):
    credentials = {"username": airflow.username, "password": password}
    token = client.post("/auth/token", json=credentials).json()["access_token"]
    for path in DATA:
        assert client.get(path, headers={"Authorization": f"Bearer {token}"}).status_code == 200


def test_a_person_logs_in_and_finds_it_in_the_navigation(airflow, password, chromium):
    context = chromium.new_context(viewport={"width": 1280, "height": 800})
    context.add_cookies([{"name": "_token", "value": "e30.e30.e30", "url": airflow.url}])  # of an Airflow that is gone
    tab = context.new_page()
    tab.goto(f"{airflow.url}{CELL}?theme=dark")
    tab.get_by_label("Username").fill(airflow.username)
    tab.locator("input[type=password]").fill(password)
    tab.get_by_role("button", name="Sign in").click()
    expect(tab.get_by_role("heading", level=1)).to_contain_text("known")  # what was asked for before the login
    assert tab.url == f"{airflow.url}{CELL}?theme=dark"

    tab.goto(airflow.url)
    tab.get_by_role("link", name="Results").click()
    page = tab.frame_locator("iframe")
    expect(page.get_by_role("heading", level=1)).to_contain_text("1 cell regressed")
    page.get_by_role("link", name=RED.title).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("known")
    with context.expect_page() as opened:  # although Airflow's frame allows nothing to be opened
        page.get_by_role("link", name="KAFKA-14172").first.click()
    opened.value.close()

    tab.goto(f"{airflow.url}/dags/{DAG}/runs/{OLDER}")
    links = tab.get_by_role("link", name="Results")
    expect(links).to_have_count(2)
    links.last.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("1 cell is inconclusive")
    expect(page.locator("body")).to_have_css("background-color", "rgb(255, 255, 255)")
    tab.evaluate("localStorage.setItem('theme', 'dark')")
    tab.reload()
    expect(page.locator("body")).to_have_css("background-color", "rgb(24, 24, 27)")

    tab.goto(f"{airflow.url}/dags/{ANOTHER}/runs/{OTHER}")
    expect(links).to_have_count(2)  # before the tab is there, the last one is the navigation's
    links.last.click()
    expect(page.get_by_text(f"Only runs of the DAG {DAG} have results.")).to_be_visible()
    context.close()
