"""Planted trials are kept apart from runs, on each database."""

from dataclasses import replace
from typing import Any

import pytest

from onceproof.model.errors import HarnessError
from onceproof.results.history import read_runs
from onceproof.results.sensitivity import read_planted_trials, store_planted
from tests.model.test_sensitivity import TRIAL

FIRST = replace(TRIAL, run="20261121T084500-3f2a", found_by=("independent", "spark"))
LATER = replace(TRIAL, run="20261122T084500-3f2a", found=False, fired=2, error="It broke.")


def test_they_add_up_and_are_in_no_run(database_url):
    store_planted([LATER], database_url)
    store_planted([FIRST, replace(FIRST, trial="t2")], database_url)
    assert read_planted_trials(database_url) == [FIRST, replace(FIRST, trial="t2"), LATER]
    assert read_planted_trials(database_url, FIRST.run) == [FIRST, replace(FIRST, trial="t2")]
    assert read_runs(database_url) == []


def test_storing_one_again_replaces_it(database_url):
    store_planted([FIRST], database_url)
    store_planted([replace(FIRST, found=False)], database_url)
    assert read_planted_trials(database_url) == [replace(FIRST, found=False)]


def test_a_batch_is_stored_as_a_whole_or_not_at_all(database_url):
    nothing: Any = None  # in a column that is never empty
    with pytest.raises(HarnessError, match="refused"):
        store_planted([FIRST, replace(LATER, plant=nothing)], database_url)
    assert read_planted_trials(database_url) == []


def test_to_look_does_not_make_a_database(tmp_path):
    assert read_planted_trials(f"sqlite:///{tmp_path}/results.db") == []
    assert list(tmp_path.iterdir()) == []
