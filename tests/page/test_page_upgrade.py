"""The page *Upgrade*: two drop-downs, and the same answer as from the command."""

import pytest

from onceproof.atlas import shipped
from onceproof.harness import harness_version
from onceproof.model.json_file import read_json, write_json
from onceproof.model.run_folder import RunFolder
from onceproof.results.database import store_run
from tests.page.conftest import NEWEST, RED, SCRIPT, TURNED

WAY = "/upgrade?current=3.3.1&target=3.4.1"


@pytest.fixture
def by_this_harness(settings):
    """The newest run, as if its trials had been driven by the present harness."""
    run = RunFolder(settings.runs / NEWEST)
    for trial in run.trials():
        outcome = run.trial(trial).outcome_file
        write_json(outcome, read_json(outcome) | {"harness": harness_version(trial.cell.scenario)})
    store_run(run, settings.database_url)


def test_an_upgrade_shows_gains_and_losses_with_links_to_cells(client, by_this_harness, monkeypatch):
    monkeypatch.setattr(shipped, "read_shipped", lambda: ())
    page = client.get(WAY)
    assert page.status_code == 200
    assert "3.3.1 to 3.4.1: something known against it" in page.text
    assert 'href="https://issues.apache.org/jira/browse/KAFKA-14172"' in page.text
    for cell in (RED, TURNED):
        assert f'href="./runs/{NEWEST}/cells/{cell.key}"' in page.text
        assert client.get(f"/runs/{NEWEST}/cells/{cell.key}").status_code == 200
    assert "(earlier harness)" not in page.text
    assert "<option selected>3.3.1</option>" in page.text
    assert "<option selected>3.4.1</option>" in page.text


def test_commands_are_code_and_what_is_missing_has_its_command(client, monkeypatch):
    monkeypatch.setattr(shipped, "read_shipped", lambda: ())
    page = client.get("/upgrade?current=4.2.1&target=4.4.0").text
    assert "<code>onceproof advise 4.2.1 4.4.0 --run</code> runs the missing cells" in page
    assert "<code>KafkaStreams.start()</code> fails" in page
    assert "`" not in page.partition("<main")[2].partition("</main>")[0]


def test_what_comes_from_a_run_is_escaped(client):
    page = client.get(WAY).text
    assert SCRIPT not in page
    assert "document.title" in page
    assert "(earlier harness)" in page  # the specimens name none


def test_the_default_is_the_newest_two_and_pages_link_there(client):
    page = client.get("/upgrade")
    assert page.status_code == 200
    assert "<h1 id=" in page.text
    assert 'href="./upgrade"' in client.get("/").text
    assert 'href="../../../upgrade"' in client.get(f"/runs/{NEWEST}/cells/{RED.key}").text


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("current=3.9.1&target=3.9.1", "3.9.1 is both releases"),
        ("current=3.9&target=4.3.1", "&#39;3.9&#39; is not a Kafka release"),
        ("current=3.9.1&target=9.9.9", "Nothing here names Kafka 9.9.9: choose one of the list"),
        (f"current=3.9.1&target={SCRIPT}", "&lt;script&gt;"),
    ],
)
def test_what_is_no_question_is_said_beside_the_drop_downs(client, query, said):
    page = client.get(f"/upgrade?{query}")
    assert page.status_code == 404
    assert said in page.text
    assert SCRIPT not in page.text
    assert "<select" in page.text
