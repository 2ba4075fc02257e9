"""The page *Upgrade*: two drop-downs, a filter by features, and the same answer as from the command."""

import re

import pytest

from onceproof.atlas import shipped
from onceproof.harness import harness_version
from onceproof.model.json_file import read_json, write_json
from onceproof.model.run_folder import RunFolder
from onceproof.page.rendering import with_links
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
    assert 'href="./atlas/issues/KAFKA-14172.html"' in page.text
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


def table_of(page, name):
    """The keys of the issues of a section, in order."""
    return re.findall(
        r'<th scope="row"[^>]*><a[^>]*>([^<]*)</a>', page.partition(f'id="{name}"')[2].partition("</section>")[0]
    )


def test_each_thing_is_said_once_and_the_worst_first(client):
    page = client.get("/upgrade?current=3.9.1&target=4.3.1").text
    for said in (
        "&#34;Tasks [-1_-1] are corrupted&#34;",
        "No release has the fix (apache/kafka#23390",
        "Close the application cleanly",
    ):
        assert page.count(said) == 1, said
    keys = table_of(page, "against")
    assert keys[0] == "KAFKA-20685"  # whose damage is carried along, and data are lost
    assert "KAFKA-20685" not in table_of(page, "left")
    severities = re.findall(
        r'class="severity"[^>]*>([^<]*)<', page.partition('id="against"')[2].partition("</section>")[0]
    )
    assert severities == sorted(severities, key=["data lost", "wrong", "stuck", "loud"].index)
    assert len(severities) == len(keys)


def test_the_headline_is_one_line(client):
    [headline] = re.findall(
        r"<h1[^>]*>.*</span></span> (.*)</h1>", client.get("/upgrade?current=3.9.1&target=4.3.1").text
    )
    assert headline.endswith(", at worst data lost.")
    assert len(headline) < 80


def test_a_filter_leaves_out_what_needs_other_features(client):
    all_, own = (
        client.get(f"/upgrade?current=3.9.1&target=4.4.0{more}").text for more in ("", "&windows=false&stores=none")
    )
    gone = set(table_of(all_, "against")) - set(table_of(own, "against"))
    assert "KAFKA-20685" in gone  # which needs a store of RocksDB
    assert "Features of the application: any may be used" in all_
    assert "Features of the application: 2 stated" in own
    assert '<option value="false" selected>no</option>' in own.partition('id="by-windows"')[2].partition("</select>")[0]
    assert 'name="stores" value="none" checked>' in own
    assert "stores = []" in own
    assert "KAFKA-20685: It needs stores rocksdb" in own.partition('id="out"')[2]


def test_a_filter_without_a_choice_is_none(client):
    page = client.get("/upgrade?current=3.9.1&target=4.4.0&windows=&joins=&theme=dark")
    assert page.status_code == 200
    assert "any may be used" in page.text


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("windows=maybe", "The filter: windows cannot be &#39;maybe&#39;; write true or false."),
        ("windows=true&windows=false", "windows cannot be [True, False]"),
        ("joins=none&joins=foreign-key", "joins cannot be &#39;none&#39;"),
        ("window=true", "The filter: there is no feature &#39;window&#39;; choose from guarantee"),
        (f"guarantee={SCRIPT}", "&lt;script&gt;"),
    ],
)
def test_an_unknown_feature_or_value_is_refused(client, query, said):
    page = client.get(f"/upgrade?current=3.9.1&target=4.4.0&{query}")
    assert page.status_code == 404
    assert said in page.text
    assert SCRIPT not in page.text
    assert '<details class="features" open>' in page.text


def test_names_of_sources_are_links_within_sentences():
    addresses = {"KAFKA-1": "https://a.example/?x=1&y", "KAFKA-1, again (no JIRA)": "./b", "elsewhere": None}
    shown = str(with_links("<b> `code` KAFKA-1, again (no JIRA); KAFKA-1", addresses))
    assert shown == (
        '&lt;b&gt; <code>code</code> <a href="./b">KAFKA-1, again (no JIRA)</a>; '
        '<a href="https://a.example/?x=1&amp;y" target="_blank" rel="noopener noreferrer">KAFKA-1</a>'
    )
    assert str(with_links("<b>", {})) == "&lt;b&gt;"
