"""Each core validates a share of the trials: what comes of it is the same, and no process outlives the one that asked."""

import os
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import current_process, get_context

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from expectations import checkpoints
from expectations.checkpoints import validate
from onceproof.model.errors import OnceproofError
from onceproof.model.json_file import read_json, write_json
from tests.conftest import a_trial
from tests.expectations.conftest import HEALTHY, make_run
from tests.specimens.files import a_plan, an_outcome

RED = [(0, 1, 0, 0, 1, 2, 0), *HEALTHY["assignments"][1:]]  # a lost record


@pytest.fixture
def cores(monkeypatch):
    monkeypatch.setattr(checkpoints, "SHARE", 1)
    return lambda number: monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(number)))


def with_more_trials(run, number):
    """The run of a red trial, and so many more, all of them sound."""
    more = [replace(a_trial("3.3.1"), number=n) for n in range(2, number + 2)]
    write_json(run.run_file, {"trials": [*read_json(run.run_file)["trials"], *(trial.to_dict() for trial in more)]})
    for trial in more:
        plan = a_plan(trial, promises={"identities": "keys", "counters": "keys"})
        plan.write(run.trial(trial).trial_file)
        an_outcome(trial, produced=replace(an_outcome(trial).produced, keys=4)).write(run.trial(trial).outcome_file)
    for name, rows in HEALTHY.items():
        schema = pq.read_schema(run.table(name) / "part-0.parquet")
        columns = [list(column) for column in zip(*(rows * len(more)), strict=True)]
        columns.append([trial.key for trial in more for _ in rows])
        table = pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)
        pq.write_table(table, run.table(name) / "part-1.parquet")
    return [trial.key for trial in more]


def test_shares_and_one_process_say_the_same_on_the_same_pages(tmp_path, vendor, cores):
    run, red = make_run(tmp_path, HEALTHY | {"assignments": RED})
    sound = with_more_trials(run, 4)
    reported = []
    for number in (1, 3):
        cores(number)
        outcomes = validate(run, vendor)
        pages = sorted((page.parts[-4], page.name) for page in run.data_docs.parent.rglob("*.html"))
        reported.append((list(outcomes.items()), pages))
        assert {key: read_json(run.validations / f"{key}.json") for key in outcomes} == outcomes
        assert not list(run.path.glob("validated-*"))
    assert reported[0] == reported[1]
    assert [key for key, _ in reported[0][0]] == [red, *sound]
    assert [all(suite["success"] for suite in suites.values()) for _, suites in reported[0][0]] == [False] + 4 * [True]


def test_each_core_has_a_share(tmp_path, vendor, cores, monkeypatch):
    run, _ = make_run(tmp_path, HEALTHY)
    with_more_trials(run, 3)
    cores(2)
    whole = checkpoints._validate

    def note(*arguments):
        with (tmp_path / f"{os.getpid()}").open("a") as file:
            file.write(f"{arguments[3].number} ")
        return whole(*arguments)

    monkeypatch.setattr(checkpoints, "_validate", note)
    validate(run, vendor)
    noted = [file for file in tmp_path.iterdir() if file.name.isdigit()]
    assert sorted(file.read_text() for file in noted) == ["1 1 3 3 ", "2 2 4 4 "]
    assert str(os.getpid()) not in {file.name for file in noted}


@pytest.mark.parametrize("daemon", [False, True])
def test_trials_too_large_for_pandas_and_celery_have_one_process(daemon, tmp_path, vendor, cores, monkeypatch):
    run, _ = make_run(tmp_path, HEALTHY)
    with_more_trials(run, 3)
    cores(2)
    if daemon:  # as billiard's processes are
        monkeypatch.setitem(vars(current_process())["_config"], "daemon", True)
    else:
        monkeypatch.setattr(checkpoints, "PANDAS_ROWS", 0)
    asked = []
    monkeypatch.setattr(checkpoints, "_validate_trials", lambda *arguments: asked.append(arguments[-1]) or {})
    monkeypatch.setattr(checkpoints, "_require_pages", lambda *_: None)
    validate(run, vendor)
    assert [[trial.number for trial in trials] for trials in asked] == [[1, 2, 3, 4]]


def test_what_a_share_cannot_do_fails_the_whole(tmp_path, vendor, cores):
    run, _ = make_run(tmp_path, HEALTHY)
    [*_, last] = with_more_trials(run, 3)
    cores(2)
    run.trial(last).outcome_file.write_text(run.trial(last).outcome_file.read_text().replace('"produced"', '"made"'))
    with pytest.raises(OnceproofError, match="is incomplete or damaged"):
        validate(run, vendor)


def linger(pids):
    """A pool's process that waits for work, and whoever has asked for it."""
    with ProcessPoolExecutor(1, get_context("fork"), checkpoints._die_with_parent, (os.getpid(),)) as pool:
        pids.send(pool.submit(os.getpid).result())
        time.sleep(60)


def test_no_process_outlives_the_one_that_asked():
    here, there = get_context("fork").Pipe()
    process = get_context("fork").Process(target=linger, args=(there,))
    process.start()
    child = psutil.Process(here.recv())
    process.kill()
    process.join()
    child.wait(timeout=20)
    assert not child.is_running()
