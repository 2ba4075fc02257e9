"""Each suite over comparisons is seen red for each anomaly that it must find, and for missing rows."""

import html
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from expectations import checkpoints
from expectations.checkpoints import validate
from expectations.suites import SUITES
from onceproof.model.json_file import write_json
from onceproof.model.promise import ANOMALIES, map_suites
from onceproof.model.run_folder import RunFolder
from tests.conftest import a_trial
from tests.specimens.files import a_plan, an_outcome

pytestmark = pytest.mark.gx

ROW = pa.schema(
    [
        ("promise", pa.string()),
        ("anomaly", pa.string()),
        ("partition", pa.int32()),
        ("key", pa.int32()),
        ("place", pa.string()),
        ("expected", pa.string()),
        ("observed", pa.string()),
        ("comparisons", pa.int64()),
        ("trial", pa.string()),
    ]
)
OVER_COMPARISONS = [name for name, suite in SUITES.items() if suite.table == "comparisons"]
SEES = map_suites()
ROWS = "expect_table_row_count_to_be_between"


BROKEN_IN = "<img src=x onerror=\"document.title='broken in'\"> & $PARAMETER ${HOME} $$ {{ 6 * 7 }}"


def make_run(home, suite, anomalies, rows=3, observed="31"):
    """A run of one trial whose suite must see `rows` rows; there are also rows of another promise."""
    trial = a_trial("3.3.1")
    run = RunFolder(home / trial.run)
    write_json(run.run_file, {"trials": [trial.to_dict()]})
    promises = {**dict.fromkeys(SUITES[suite].promises, 1), SUITES[suite].promises[0]: rows}
    a_plan(trial, promises=promises).write(run.trial(trial).trial_file)
    an_outcome(trial).write(run.trial(trial).outcome_file)
    write_json(run.table("errors.json"), {})
    promise = SUITES[suite].promises[0]
    table = [
        (promise, anomaly, 0, 4711, f"output/0@{n}", "58", observed if anomaly else "58", 1, trial.key)
        for n, anomaly in enumerate(anomalies)
    ]
    table += [(other, None, 0, 4711, "elsewhere", "1", "1", 1, trial.key) for other in SUITES[suite].promises[1:]]
    table.append(("another", next(iter(SEES[suite])), 0, 1, "elsewhere", "1", "2", 1, trial.key))
    columns = [pa.array(column, field.type) for column, field in zip(zip(*table, strict=True), ROW, strict=True)]
    run.table("comparisons").mkdir()
    pq.write_table(pa.table(columns, schema=ROW), run.table("comparisons") / "part-0.parquet")
    return run, trial.key


def failures(made: tuple[RunFolder, str], suite: str, vendor: Path) -> list[str]:
    """The descriptions of the expectations that the run's trial does not meet."""
    run, trial = made
    outcome = validate(run, vendor)[trial][suite]
    assert outcome["error"] is None
    floors = {
        expectation.description for expectation in SUITES[suite].make().expectations[: len(SUITES[suite].promises)]
    }
    assert all(failure["floor"] is (failure["description"] in floors) for failure in outcome["failed"])
    return [failure["description"] for failure in outcome["failed"]]


@pytest.mark.parametrize("suite", OVER_COMPARISONS)
def test_what_is_well_passes(suite, tmp_path, vendor):
    assert failures(make_run(tmp_path, suite, [None] * 3), suite, vendor) == []


@pytest.mark.parametrize(("suite", "anomaly"), [(s, a) for s in OVER_COMPARISONS for a in sorted(SEES[s])])
def test_each_anomaly_fails_its_own_expectation(suite, anomaly, tmp_path, vendor):
    [failure] = failures(make_run(tmp_path, suite, [None, None, anomaly]), suite, vendor)
    assert failure.endswith(f"({anomaly})")


@pytest.mark.parametrize("suite", OVER_COMPARISONS)
def test_rows_that_are_missing_are_seen(suite, tmp_path, vendor):
    [failure] = failures(make_run(tmp_path, suite, [None, None]), suite, vendor)
    assert failure == SUITES[suite].make().expectations[0].description


@pytest.mark.spark
def test_the_engines_agree(tmp_path, vendor, monkeypatch, spark):
    monkeypatch.setattr(checkpoints, "PANDAS_ROWS", 0)
    monkeypatch.setattr(type(spark), "stop", lambda _: None)  # the session is shared
    [failure] = failures(make_run(tmp_path, "store_reads", [None, None, "stale-read"]), "store_reads", vendor)
    assert failure.endswith("(stale-read)")


def test_data_docs_show_place_key_expected_and_observed(tmp_path, vendor):
    run, _ = make_run(tmp_path, "store_reads", [None, None, "stale-read"])
    validate(run, vendor)
    [page] = [p for p in run.data_docs.parent.rglob("*.html") if "validations/store_reads" in str(p)]
    for shown in ("output/0@2", "4711", "58", "31", "active, standby and active again"):
        assert shown in page.read_text()


def test_html_in_what_was_observed_is_text(tmp_path, vendor):
    run, _ = make_run(tmp_path, "store_reads", [None, None, "stale-read"], observed=BROKEN_IN)
    validate(run, vendor)
    for page in run.data_docs.parent.rglob("*.html"):
        assert "<img src=x" not in page.read_text()
    [page] = [p for p in run.data_docs.parent.rglob("*.html") if "validations/store_reads" in str(p)]
    assert html.escape(BROKEN_IN) in page.read_text()


def test_a_run_id_that_ends_like_a_time_zone_has_its_pages(tmp_path, vendor, monkeypatch):
    monkeypatch.setattr("tests.conftest.secrets.token_hex", lambda _: "3099")
    run, _ = make_run(tmp_path, "store_reads", [None, None, None])
    validate(run, vendor)
    assert run.run_id.endswith("-3099")
    assert list(run.data_docs.parent.glob("validations/**/*.html"))


def test_every_anomaly_is_seen_by_a_suite_and_explained_there():
    assert set().union(*SEES.values()) == set(ANOMALIES)
    assert SEES.keys() == SUITES.keys()
