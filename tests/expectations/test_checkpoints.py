"""Every expectation is seen red once, on both engines, and the Data Docs show why without asking another host."""

import re

import pytest

from expectations import checkpoints, tables
from expectations.checkpoints import validate
from onceproof.model.json_file import read_json
from tests.expectations.conftest import HEALTHY, make_run

pytestmark = pytest.mark.gx

UNIQUE, EQUAL, GREATER = "expect_unique_values", "expect_equal_pairs", "expect_greater_pairs"
ROWS, BETWEEN = "expect_table_row_count_to_equal", "expect_table_row_count_to_be_between"
KEYS = "expect_column_unique_value_count_to_be_between"
A, C = HEALTHY["assignments"], HEALTHY["changelogs"]


def bent(assignments=A, changelogs=C):
    return {"assignments": assignments, "changelogs": changelogs}


# What is planted, and exactly the expectations that must see it.
PLANTED = {
    "an empty table of assignments": (bent(assignments=[]), {ROWS}, set()),
    "empty changelogs": (bent(changelogs=[]), set(), {BETWEEN, KEYS}),
    "a changelog of ids that lacks most keys": (bent(changelogs=[C[0], *C[4:], *[C[5]] * 9]), set(), {KEYS}),
    "an ID of two keys": (bent([*A[:3], (1, 2, 1, 1, 1, 1, 3)]), {UNIQUE, EQUAL}, set()),
    "a key of two IDs": (bent([*A, (1, 2, 5, 2, 1, 1, 3)]), {ROWS, UNIQUE, EQUAL}, set()),
    "two swapped IDs": (bent([(0, 1, 2, 0, 2, 2, 0), (0, 3, 0, 1, 1, 1, 2), *A[2:]]), {EQUAL}, set()),
    "a key that was never sent": (bent([*A[:3], (1, 2, 3, 1, 1, None, None)]), {EQUAL}, set()),
    "a lost record": (bent([(0, 1, 0, 0, 1, 2, 0), *A[1:]]), {EQUAL}, set()),
    "a record twice": (bent([(0, 1, 0, 0, 3, 2, 0), *A[1:]]), {EQUAL}, set()),
    "a counter that stood still": (bent(changelogs=[*C[:5], ("counter", 0, 0, 1, 1, 1, True, 1), C[6]]), set(), {GREATER}),
    "a counter that was deleted": (bent(changelogs=[*C[:5], ("counter", 0, 0, 1, None, 0, False, None), ("counter", 0, 0, 2, 1, None, True, 1), C[6]]), set(), {GREATER}),
    "an ID that the changelog lacks": (bent(changelogs=[("ids", 0, 1, None, None, None, True, 0), *C[1:]]), set(), {EQUAL}),
    "an ID that the output lacks": (bent(changelogs=[("ids", 0, 1, 0, 0, None, True, None), *C[1:]]), set(), {EQUAL}),
    "a counter that is not the output's": (bent(changelogs=[*C[:6], ("counter", 1, 0, 0, 0, None, True, 1)]), set(), {EQUAL}),
}  # fmt: skip


def failed(outcome):
    failures = [failure for suite in outcome.values() for failure in suite["failed"]]
    assert all(failure["floor"] is (failure["expectation"] in (BETWEEN, KEYS)) for failure in failures)
    return {name: {f["expectation"] for f in suite["failed"]} for name, suite in outcome.items()}


def check(planted, run, trial, vendor):
    _, uniqueness, consistency = planted
    outcome = validate(run, vendor)[trial]
    assert [suite["error"] for suite in outcome.values()] == [None, None]
    assert failed(outcome) == {"id_uniqueness": uniqueness, "changelog_consistency": consistency}
    assert read_json(run.validation_file(trial)) == outcome


def test_healthy_tables_pass(tmp_path, vendor):
    run, trial = make_run(tmp_path, HEALTHY)
    outcome = validate(run, vendor)[trial]
    assert all(suite["success"] for suite in outcome.values())
    assert run.data_docs.exists()


@pytest.mark.parametrize("planted", PLANTED.values(), ids=PLANTED)
def test_what_is_planted_is_seen(planted, tmp_path, vendor):
    check(planted, *make_run(tmp_path, planted[0]), vendor)


def test_a_key_that_never_came_out_is_missed_by_the_guard(tmp_path, vendor):
    run, trial = make_run(tmp_path, HEALTHY, keys=5)
    assert failed(validate(run, vendor)[trial]) == {"id_uniqueness": {ROWS}, "changelog_consistency": {KEYS}}


@pytest.mark.spark
@pytest.mark.parametrize("name", ["an ID of two keys", "a counter that stood still", "an ID that the changelog lacks"])
def test_the_engines_agree(name, tmp_path, vendor, monkeypatch, spark):
    monkeypatch.setattr(checkpoints, "PANDAS_ROWS", 0)
    monkeypatch.setattr(type(spark), "stop", lambda _: None)  # the session is shared
    check(PLANTED[name], *make_run(tmp_path, PLANTED[name][0]), vendor)


def test_an_expectation_that_cannot_be_evaluated_is_an_error(tmp_path, vendor, monkeypatch):
    run, trial = make_run(tmp_path, HEALTHY)
    whole = tables.in_pandas
    monkeypatch.setattr(tables, "in_pandas", lambda *args: whole(*args).drop(columns=["key"]))
    outcome = validate(run, vendor)[trial]["id_uniqueness"]
    assert not outcome["success"]
    assert "key" in outcome["error"]


def test_data_docs_show_the_offending_ids_and_ask_no_other_host(tmp_path, vendor):
    run, _ = make_run(tmp_path, bent([*A[:3], (1, 4711, 1, 815, 1, 1, 3)]))
    validate(run, vendor)
    pages = {page: page.read_text() for page in run.data_docs.parent.rglob("*.html")}
    [shown] = [text for page, text in pages.items() if "validations/id_uniqueness" in str(page)]
    assert "4711" in shown
    assert "815" in shown
    assert "3.3.1 × DEFAULT_CONFIG (enumerator, broker 3.9.1) trial 1" in shown
    assert run.run_id in pages[run.data_docs]
    for text in pages.values():
        assert not re.search(r"https?://", text)
        for asked in re.findall(r'(?:src|href)="([^"#?]*static/vendor[^"]*)"', text):
            assert (run.data_docs.parent / "static" / asked.partition("static/")[2]).is_file()
