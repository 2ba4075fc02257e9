"""The net: every scenario on the newest Kafka Streams and the newest brokers, by the steps of a run.

A trial is a part of each change that could alter what it shows, and of each night (`tests.net`).

One small trial of each, two at once, next to one that mostly waits. One Spark application with the settings of
production reads them all, and so does the independent reader. What the registry explains is asserted by its key.
Some have a fault, so that most faults meet real brokers here. A few are repeated with an injected bug, which both
readers must see.
"""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from multiprocessing import get_context
from typing import Any

import pytest

from onceproof.lab.cluster import EmbeddedCluster
from onceproof.model.cell import Cell, Trial
from onceproof.model.errors import HarnessError
from onceproof.model.files import Outcome, Reading
from onceproof.model.json_file import write_json
from onceproof.model.known_issues import registry
from onceproof.model.plants import plant
from onceproof.model.published import NEWEST
from onceproof.model.run_folder import RunFolder
from onceproof.pipeline import steps
from onceproof.results.judging import collection_errors, disagreements, spark_counts
from onceproof.scenarios import SCENARIOS, app
from onceproof.scenarios.explaining import find_concerned_in
from onceproof.spark import choose_compiler, collect_and_check
from tests.conftest import HERE, UNDISTURBED, a_run_id
from tests.net import NOTED, digest_of, is_due
from tests.present import present
from tests.published import PUBLISHED

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(1800)]

RELEASE = PUBLISHED.resolve(NEWEST)
THREE = "three"  # the brokers of faults of one of several
AT_ONCE = 2  # as in production
MOST_EXERCISED = 3  # attempts of a trial that was not exercised: one that never is fails


@dataclass(frozen=True)
class Small:
    """A small trial.

    Attributes:
        scenario: its scenario.
        variant: the one that shows most in little time.
        parameters: beside the variant's.
        known: the key of the issue that explains what it shows; None if it shows nothing.
        anomalies: that it shows, if there are any; in an order, as `digest` is of what stands here.
        planted: a bug that is planted into it.
    """

    scenario: str
    variant: str = "DEFAULT_CONFIG"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    known: str | None = None
    anomalies: tuple[str, ...] = ()
    planted: str | None = None

    @property
    def fault(self) -> str:
        """Its fault."""
        return str(SCENARIOS[self.scenario].values(self.trial("", 1)).get("fault", "none"))

    def trial(self, run: str, number: int) -> Trial:
        """As one of a run."""
        cell = Cell(self.scenario, self.variant, RELEASE, RELEASE)
        return Trial(run, cell, number, 1, self.parameters, self.planted)

    @cached_property
    def digest(self) -> str:
        """A digest of what could alter how it ends."""
        return digest_of(self.scenario, f"{RELEASE} {self!r}")

    def __str__(self) -> str:
        return "-".join(filter(None, (self.scenario, self.variant, self.planted)))


# What takes longest comes first.
GREEN_OR_KNOWN = (
    Small("quota", "SHORT_REQUEST_TIMEOUT", {"seconds": 24}),
    Small("two-topics", parameters={"fault": "broker-pause", "nodes": 3}),
    Small("dead-letters", parameters={"fault": "leader-election", "nodes": 3}),
    Small("interactive-queries", "QUERY"),
    Small("leaks"),
    Small("endings"),
    Small("migration"),
    Small("enumerator", "STATE_RESTORED"),
    Small("multirunner", "SEED_PROGRAM"),
    Small("windows", parameters={"fault": "state-lost"}),
    Small("table-join", parameters={"fault": "read-only"}),
    Small("punctuators", parameters={"fault": "thread-removed"}),
    Small("stream-join", "KILLED"),
    Small("foreign-key-join", "LEFT", {"fault": "topology-pause"}),
    Small("global-join", "BOUNCED"),
    Small("as-of-join"),
    Small("grouped-table", "OPTIMIZED"),
    Small("grouped-stream"),
    Small("crash"),
    Small("corrupted-task"),
    Small(
        "at-least-once",
        known="at_least_once (documented)",
        anomalies=("changelog-output-mismatch", "false-after-true"),
    ),
    Small("scan"),
    Small("far-future"),
    Small("idle-task"),
    Small("split-batch"),
)
# A bug for code that other tests do not meet here: the moments of questions (two), stores, commits, joins.
PLANTED = (
    Small("interactive-queries", "QUERY", planted="position-shared"),
    Small("interactive-queries", planted="any-store-answers"),
    Small("foreign-key-join", planted="subscription-stays"),
    Small("idle-task", planted="idle-task-commits"),
    Small("global-join", planted="null-key-dropped"),
)
NET = (*GREEN_OR_KNOWN, *PLANTED)
FAULTS = {  # of these trials
    "bounce", "broker-pause", "instance-kill", "leader-election", "read-only", "state-lost", "state-restored",
    "thread-removed", "topology-pause",
}  # fmt: skip


def gate(trials: Iterable[Small]) -> list[Any]:
    """Trials as cases of a test: those that are not due are for the night."""
    return [
        pytest.param(small, id=str(small), marks=() if is_due(str(small), small.digest) else pytest.mark.night)
        for small in trials
    ]


@pytest.fixture(scope="module")
def net(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunFolder]:
    """The run, whose trials have ended, and which both readers have read; only what is asked for by `-k` is driven."""
    run = RunFolder(tmp_path_factory.mktemp("net") / a_run_id())
    asked = [item.callspec.params.get("small") for item in request.session.items if hasattr(item, "callspec")]
    trials = [small.trial(run.run_id, 1) for small in NET if small in asked]
    write_plan(run, trials)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(steps.OWNER_VARIABLE, str(os.getpid()))  # with which brokers die
        try:
            start_brokers(run, trials)
            steps.prepare(run)
            drive(run)
            steps.end_trials(run)
            collect_and_check(run, env=choose_compiler(len(trials)))
            yield run
        finally:
            steps.stop_clusters(run)


def write_plan(run: RunFolder, trials: list[Trial]) -> None:
    """Write what `steps.plan` would, for trials that have parameters and plants."""
    cells = dict.fromkeys(trial.cell for trial in trials)
    write_json(
        run.run_file,
        {
            "run": run.run_id,
            "brokers": [str(RELEASE)],
            "cells": [{"key": cell.key, "title": cell.title, **cell.to_dict()} for cell in cells],
            "trials": [trial.to_dict() for trial in trials],
        },
    )


def start_brokers(run: RunFolder, trials: list[Trial]) -> None:
    """Start those that most trials share, and three for the trials that need as many."""
    steps.start_cluster(run, str(RELEASE))
    three_each = list(filter(has_three_brokers, trials))
    if three_each:
        three = EmbeddedCluster.start(HERE, RELEASE, run.cluster_folder(THREE), os.getpid(), nodes=3)
        for trial in three_each:
            write_json(run.cluster_file(trial.key), three.to_dict())


def has_three_brokers(trial: Trial) -> bool:
    """Whether its fault hits one of several brokers."""
    return SCENARIOS[trial.cell.scenario].values(trial).get("nodes") == 3


def drive(run: RunFolder) -> None:
    """Drive all trials, as tasks of their own; one that says nothing is made up for, as in a run."""
    for _ in range(UNDISTURBED):
        alone, tasks = (ProcessPoolExecutor(workers, get_context("spawn")) for workers in (1, AT_ONCE))
        try:
            waiting = alone.submit(steps.drive_waiting_cells, run)
            driven = [tasks.submit(steps.drive, run, cell["key"]) for cell in steps.cells(run)]
            list(map(told, [*driven, waiting]))
        finally:
            for pool in (alone, tasks):
                pool.shutdown(cancel_futures=True)  # what has begun ends
        trials = {trial.key: trial for trial in run.trials()}
        silent = [trial for trial in trials.values() if says_nothing(run, trial)]
        lacking = [(trial, again) for trial in silent if (again := another(trial)).key not in trials]
        if not lacking:
            return
        for trial, again in lacking:
            run.add_trial(again)
            if has_three_brokers(again):
                shutil.copy(run.cluster_file(trial.key), run.cluster_file(again.key))
        steps.prepare(run)


def says_nothing(run: RunFolder, trial: Trial) -> bool:
    """Whether the machine stood still, or was too slow for what the trial is about; one that found something counts."""
    outcome = present(run.outcome(trial))
    if outcome.void or outcome.error or outcome.exercised:
        return bool(outcome.void)
    found = Reading.read(run.trial(trial).reader_file).anomalies
    return trial.number < MOST_EXERCISED and (trial.plant is not None or not found)


def another(trial: Trial) -> Trial:
    """The one that makes up for a trial."""
    return replace(trial, number=trial.number + 1)


def told(task: Future[None]) -> str:
    """What a task ended with: that a trial has failed also stands in its outcome."""
    try:
        task.result()
    except HarnessError as error:
        return str(error)
    return ""


def last(run: RunFolder, small: Small) -> Trial:
    """The trial of the run, or the last one that made up for it."""
    first = small.trial(run.run_id, 1)
    return [trial for trial in run.trials() if (trial.cell, trial.plant) == (first.cell, first.plant)][-1]


def read(run: RunFolder, trial: Trial) -> tuple[Outcome, Reading]:
    """How a trial ended, and what the independent reader saw; both readers saw the same."""
    outcome, reading = present(run.outcome(trial)), Reading.read(run.trial(trial).reader_file)
    assert (outcome.error, outcome.void) == (None, None)
    assert collection_errors(run).get(trial.key) is None
    assert list(disagreements(outcome, reading, spark_counts(run).get(trial.key))) == []
    return outcome, reading


def test_each_scenario_has_its_trial():
    assert {small.scenario for small in GREEN_OR_KNOWN} == SCENARIOS.keys() - {app.SCENARIO.name}
    assert {small.fault for small in NET} - {"none"} == FAULTS


@pytest.mark.parametrize("small", gate(GREEN_OR_KNOWN))
def test_a_small_trial_on_the_newest_is_exercised_and_explained(net, small, record_property):
    record_property(NOTED, f"{small} {small.digest}")
    trial = last(net, small)
    outcome, reading = read(net, trial)
    assert outcome.exercised, outcome.reason
    assert (outcome.fault.name if outcome.fault else "none") == small.fault
    assert reading.unexplained == {}
    assert reading.anomalies.keys() >= set(small.anomalies)
    shown = {issue.key for issue in find_concerned_in(trial, reading.anomalies)}
    due = {small.known} if small.known else set()
    assert shown >= due
    # Others may show by chance, where the registry says so: it expects no red of them.
    assert (shown - due).isdisjoint(issue.key for issue in registry().affecting(trial.cell))
    assert shown or not reading.anomalies


@pytest.mark.parametrize("small", gate(PLANTED))
def test_both_readers_see_a_bug_that_is_planted_into_the_newest(net, small, record_property):
    record_property(NOTED, f"{small} {small.digest}")
    trial = last(net, small)
    outcome, reading = read(net, trial)
    assert present(outcome.plant).fired > 0
    assert outcome.exercised, outcome.reason
    claim = present(plant(present(small.planted)).claim(small.scenario))
    assert claim.breaches(reading.unexplained), reading.anomalies
