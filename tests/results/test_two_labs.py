"""Two installations share what they measured, night after night: nothing of either is lost, nor counted twice."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from onceproof.atlas.exporting import export
from onceproof.atlas.measurement import merge
from onceproof.model.cell import is_run_id
from onceproof.model.errors import HarnessError
from onceproof.model.identity import identity
from onceproof.model.json_file import read_json, write_json
from onceproof.model.run_folder import RunFolder
from onceproof.pipeline import steps
from onceproof.results.database import store_run
from onceproof.results.history import read_runs
from onceproof.results.judging import judge_run
from onceproof.results.sensitivity import read_planted_trials, store_planted
from onceproof.results.transfer import export_to, import_from
from onceproof.settings import get_settings
from tests.conftest import a_trial
from tests.model.test_sensitivity import TRIAL
from tests.results.test_judging import NO_DATABASE, UNIQUENESS_FAILED, add_trial

FIRST = datetime(2026, 11, 28, 2, 15, tzinfo=UTC)
NIGHTS = [FIRST + timedelta(days=day) for day in range(3)]
SHORT = "20261128T021500-24a7"  # as ids were when they came from the slot of the schedule alone


class Lab:
    """An installation with a home of its own, whose Airflow has the same schedule as all others have."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home, self._monkeypatch = home, monkeypatch

    def _enter(self) -> None:
        self._monkeypatch.setenv("ONCEPROOF_HOME", str(self.home))
        get_settings.cache_clear()

    def name(self, slot: datetime) -> str:
        """The id of the nightly of a slot."""
        self._enter()
        return steps.new_run_id(slot, f"scheduled__{slot.isoformat()}")

    def plan(self, slot: datetime, run_id: str | None = None) -> RunFolder:
        """A judged run of the nightly of a slot, of one cell and one trial."""
        self._enter()
        run = RunFolder(self.home / "runs" / (run_id or self.name(slot)))
        plan = {"matrix": "nightly", "risk": 0.25, "trials": [], **steps.origin_of_plan()}
        if run_id:  # it is of before there were ids of installations
            del plan["installation"]
        write_json(run.run_file, plan | {"created": (slot + timedelta(seconds=len(self.home.name))).isoformat()})
        add_trial(run, steps.new_trial(run, a_trial("3.3.1").cell, 1), ["duplicate-id"], suites=UNIQUENESS_FAILED)
        judge_run(run, NO_DATABASE)
        return run


@pytest.fixture
def labs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Lab, Lab]]:
    yield Lab(tmp_path / "x86", monkeypatch), Lab(tmp_path / "aarch", monkeypatch)
    get_settings.cache_clear()


def seeds(runs: list[RunFolder]) -> set[int]:
    return {trial.seed for run in runs for trial in run.trials()}


def test_three_nights_of_two_labs_are_six_independent_runs(labs, database_url):
    runs = []
    for slot in NIGHTS:
        for lab in labs:
            runs.append(lab.plan(slot))
            store_run(runs[-1], database_url)
            store_run(runs[-1], database_url)  # a task that is cleared stores it again
            store_planted([replace(TRIAL, run=runs[-1].run_id, machine=lab.home.name)], database_url)
    assert all(is_run_id(run.run_id) for run in runs)
    assert {run.id for run in read_runs(database_url)} == {run.run_id for run in runs}
    assert len(read_runs(database_url)) == len(seeds(runs)) == 6
    assert {planted.machine for planted in read_planted_trials(database_url)} == {"x86", "aarch"}
    assert len(read_planted_trials(database_url)) == 6
    assert len({(one.run, one.created) for run in runs for one in export([run]).measurements}) == 6


def test_a_repeated_plan_finds_its_run(labs):
    ids = [lab.name(FIRST) for lab in (*labs, *labs)]
    assert ids[:2] == ids[2:]
    assert len(set(ids)) == 2


def test_another_run_of_the_same_id_is_not_overwritten(labs, database_url):
    here, there = (lab.plan(FIRST, SHORT) for lab in labs)
    store_run(here, database_url)
    store_run(here, database_url)
    before = read_runs(database_url)
    with pytest.raises(HarnessError, match=rf"another run {SHORT}, planned at .*02:15:03.* in .*x86.*not stored"):
        store_run(there, database_url)
    assert read_runs(database_url) == before


def test_a_run_of_another_lab_in_the_same_second_is_kept(labs, database_url):
    here, there = (lab.plan(FIRST, SHORT) for lab in labs)
    for run, installation in ((here, "1" * 16), (there, "2" * 16)):
        write_json(run.run_file, read_json(run.run_file) | {"created": "now", "installation": installation})
    store_run(here, database_url)
    with pytest.raises(HarnessError, match="another run"):
        store_run(there, database_url)


@pytest.mark.parametrize("other", [{"machine": "aarch"}, {"seed": 2}, {"plant": "put-lost"}])
def test_a_bug_trial_of_another_run_with_the_same_id_is_kept(database_url, other):
    here = replace(TRIAL, run=SHORT, machine="x86")
    store_planted([here], database_url)
    with pytest.raises(HarnessError, match=rf"another trial t of a run {SHORT}, with seed 1 on x86; .* not stored"):
        store_planted([replace(here, trial="new"), replace(here, found=False, **other)], database_url)
    assert read_planted_trials(database_url) == [here]


def test_a_bug_trial_that_failed_before_its_machine_is_replaced(database_url):
    store_planted([replace(TRIAL, run=SHORT, error="No instance came up.")], database_url)
    store_planted([replace(TRIAL, run=SHORT, machine="x86")], database_url)
    assert read_planted_trials(database_url) == [replace(TRIAL, run=SHORT, machine="x86")]


def test_an_import_keeps_runs_apart_that_have_one_id(labs, database_url, tmp_path):
    here, there = labs
    urls = []
    for lab in labs:
        urls.append(f"sqlite:///{tmp_path}/{lab.home.name}.db")
        store_run(lab.plan(FIRST, SHORT), urls[-1])
        store_planted([replace(TRIAL, run=SHORT, machine=lab.home.name)], urls[-1])
        export_to(tmp_path / f"{lab.home.name}.json", urls[-1])
    counts = [import_from(tmp_path / f"{lab.home.name}.json", database_url) for lab in (here, there, here, there)]
    assert counts == [(1, 0), (1, 0), (0, 1), (0, 1)]
    runs = read_runs(database_url)
    assert {run.folder for run in runs} == {str(lab.home / "runs" / SHORT) for lab in labs}
    assert [run.id for run in runs if run.folder.startswith(str(here.home))] == [SHORT]
    assert all(is_run_id(run.id) for run in runs)
    planted = read_planted_trials(database_url)
    assert {one.machine for one in planted} == {"x86", "aarch"}
    assert [one.run for one in planted if one.machine == "x86"] == [SHORT]
    assert len(planted) == 2


def test_a_merge_of_atlases_keeps_them_apart(labs):
    found = [export([lab.plan(FIRST, SHORT)]).measurements for lab in labs]
    both = merge(*found)
    assert merge(*reversed(found), both) == both
    assert len(both) == 1  # of two reds of one cell and harness, the newest says all
    assert both[0].created == max(one.created for part in found for one in part)


def test_the_id_of_an_installation_is_made_once(tmp_path):
    with ThreadPoolExecutor(8) as many:
        ids = set(many.map(identity, [tmp_path / "home" / "installation"] * 40))
    assert len(ids) == 1
    assert ids == {identity(tmp_path / "home" / "installation")} != {identity(tmp_path / "another" / "installation")}
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["installation"]


def test_a_home_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "home").touch()
    with pytest.raises(HarnessError, match="ONCEPROOF_HOME"):
        identity(tmp_path / "home" / "installation")
