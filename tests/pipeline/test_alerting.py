"""Which cells are newly red."""

from onceproof.model.json_file import write_json
from onceproof.pipeline.alerting import newly_red
from onceproof.results.database import store_run
from onceproof.results.judging import judge_run
from onceproof.settings import get_settings
from tests.results.test_judging import UNIQUENESS_FAILED, make_run


def judged(home, streams):
    run, trial = make_run(home / "runs", streams, ["duplicate-id"], suites=UNIQUENESS_FAILED)
    judge_run(run, get_settings().database_url)
    return run, trial.cell.key


def test_a_regression_in_the_first_run_of_all_is_news(home):
    run, cell = judged(home, "3.4.1")
    assert newly_red(run) == [cell]
    store_run(run, get_settings().database_url)
    assert newly_red(run) == [cell]  # stored or not


def test_a_known_red_in_the_first_run_is_none(home):
    run, _ = judged(home, "3.3.1")
    assert newly_red(run) == []


def test_a_regression_that_an_earlier_run_had_is_none(home, tmp_path):
    first, _ = judged(home, "3.4.1")
    store_run(first, get_settings().database_url)
    again = type(first)(first.path.with_name("20261122T084500-3f2a"))
    first.path.rename(again.path)
    write_json(again.run_file, {"matrix": "seed", "created": "tomorrow", "trials": []})
    assert newly_red(again) == []
