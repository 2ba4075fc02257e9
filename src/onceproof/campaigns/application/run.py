"""A user application on one release: two trials without a fault, which are the oracle, and one with it.

The first of the two goes straight on, and the second one is closed cleanly and started again. Where they differ, a
third one goes straight on, too: then those two are the oracle, and the second one is judged by it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from onceproof.campaigns.application.advice import (
    OTHER_PLANT,
    PROMISE_MORE,
    RUN_ALONE,
    STRIKE_AGAIN,
    STRIKE_HARDER,
    advice_on_red,
)
from onceproof.campaigns.application.agenda import Agenda
from onceproof.campaigns.application.brokers import ApplicationBrokers
from onceproof.campaigns.application.controls import CONTROLS, Broken, find_broken_promises, list_broken, vacuous
from onceproof.campaigns.application.early_replay import EarlyReplay, Replayed
from onceproof.campaigns.application.promises import find_excuse, is_changed_by_restart, judge_without_fault, may_cache
from onceproof.campaigns.application.side_by_side import side_by_side
from onceproof.faults import NONE
from onceproof.installation import Installation
from onceproof.lab.cluster import Cluster
from onceproof.lab.replay import replay
from onceproof.lab.trial import run_trial
from onceproof.lab.world import REAL, World
from onceproof.model.anomaly import first_of_each
from onceproof.model.application_issues import explain
from onceproof.model.cell import FAULT, MARK, OF_APPLICATION, ORACLE, Cell, Trial
from onceproof.model.errors import StoodStillError
from onceproof.model.files import Outcome, Reading, TrialPlan, since
from onceproof.model.judged import Explaining, Judgement, OnRelease, Output, PlantedControl
from onceproof.model.known_issues import registry
from onceproof.model.oracle import Oracle, Outputs
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder, TrialFolder
from onceproof.model.timeline import read_timeline
from onceproof.model.topology import CACHE_SIZES, Topology
from onceproof.readers.application import as_far_as_replayed, as_replayed, oracle_of, select_declared
from onceproof.scenarios.app import LIKE, REPLAYED, RESTART, explain_unread_stores
from onceproof.scenarios.declared import application_of

ATTEMPTS = 3  # of a trial during which the machine stands still
APART = 100  # between the numbers of one attempt and the next
SHOWN = 3  # witnesses of each anomaly
WITHOUT = 2  # trials without a fault: one goes straight on, and one is restarted
AGAIN_STRAIGHT = 50  # between the numbers of the first trial and of another one that goes straight on
WITHOUT_A_FAULT = "without a fault"


@dataclass(frozen=True)
class ReleaseTrials:
    """The trials to run on a release."""

    run: RunFolder
    cell: Cell
    first: int  # number of its first trial
    seed: int
    parameters: Mapping[str, Any]  # of the trial with the fault
    plant: str | None = None
    newest: Release | None = None  # of `replay-newest`, where an output promises it
    controls: bool = False  # whether bugs are planted afterwards, to see which promises they break
    prefix: str = MARK  # of names on its brokers

    @property
    def whole(self) -> Trial:
        """The trial with the fault, as far as it is known before there is an oracle: what all of them need is in it."""
        return self._trial(self.cell, self.first, self.parameters)

    def make_undisturbed(self, number: int, *, restart: bool = True) -> Trial:
        """A trial without the fault and the plant, but with the configuration that the fault brings with it."""
        before = replace(self.cell, restart_on=None)
        fault = self.parameters[FAULT]
        # To repeat such a trial by itself, the fault is `none` and that configuration is asked for.
        like = self.parameters.get(LIKE, NONE) if fault == NONE else fault
        parameters = {**self.parameters, FAULT: NONE, LIKE: like} | ({} if restart else {RESTART: False})
        return self._trial(before, number, parameters)

    def make_disturbed(self, oracle: str) -> Trial:
        """The trial with the fault, and the plant."""
        parameters = {**self.parameters, ORACLE: oracle}
        return self._trial(self.cell, self.first + WITHOUT, parameters, self.plant)

    def make_control(self, number: int, oracle: str, plant: str) -> Trial:
        """A control: without the fault, and with this plant."""
        without = self.make_undisturbed(number)
        return replace(without, parameters={**without.parameters, ORACLE: oracle}, plant=plant)

    def _trial(self, cell: Cell, number: int, parameters: Mapping[str, Any], plant: str | None = None) -> Trial:
        return Trial(self.run.run_id, cell, number, self.seed, parameters, plant, self.prefix)


@dataclass(frozen=True)
class _Done:
    """A trial that has ended."""

    trial: Trial
    outcome: Outcome
    found: Reading
    folder: str


def agenda_of(all_: Sequence[ReleaseTrials], report: Callable[[str], None]) -> Agenda:
    """The agenda of all trials to run."""
    fault = {asked.cell.releases: str(asked.parameters[FAULT]) for asked in all_}
    return Agenda(
        {
            asked.cell.releases: [
                *[WITHOUT_A_FAULT] * WITHOUT,
                _name_run(fault[asked.cell.releases], asked.plant),
                *(CONTROLS if asked.controls else ()),
            ]
            for asked in all_
        },
        report,
    )


def _name_run(fault: str, plant: str | None) -> str:
    """A run, for people."""
    return plant or (WITHOUT_A_FAULT if fault == NONE else fault)


def run_on_release(
    installation: Installation, asked: ReleaseTrials, brokers: ApplicationBrokers, agenda: Agenda
) -> OnRelease:
    """Run an application on a release, and say what it showed.

    Args:
        installation: what it is run with.
        asked: what is to be run.
        brokers: on which.
        agenda: takes what is under way.

    Raises:
        HarnessError: the harness failed.
        StoodStillError: the machine stood still in each attempt.
    """
    with brokers.of(asked.whole) as clusters:
        try:
            return _run_on(installation, asked, clusters, agenda)
        finally:
            agenda.over(asked.cell.releases)


def _run_on(installation: Installation, asked: ReleaseTrials, clusters: Sequence[Cluster], agenda: Agenda) -> OnRelease:
    trials, replayed = _without_fault(installation, asked, clusters, agenda)
    if any(done.found.anomalies for done in trials):
        return _on_release(asked, _worst_last(trials), "without any fault", {})
    file = str(asked.run.path / f"oracle-{asked.cell.streams}.json")
    oracle = _oracle(installation, asked, trials, replayed, agenda)
    if is_changed_by_restart(asked.run.trial(trials[0].trial), oracle):
        # Whether it is the restart, or whether they differ each time, another one that goes straight on shows.
        again = _run(asked, asked.make_undisturbed(asked.first + AGAIN_STRAIGHT, restart=False), clusters[0], agenda)
        trials = [trials[0], again, trials[1]]
        if again.found.anomalies:
            return _on_release(asked, _worst_last(trials), "without any fault", {})
        oracle = _oracle(installation, asked, trials[:2], replayed, agenda)
    oracle.write(Path(file))
    readings = judge_without_fault(asked.run, [done.trial for done in trials], oracle)
    trials = [replace(done, found=found) for done, found in zip(trials, readings, strict=True)]
    if any(done.found.anomalies for done in trials):
        return _on_release(asked, _worst_last(trials), "without any fault", {}, oracle.unreplayed)
    trials.append(_run(asked, asked.make_disturbed(file), clusters[0], agenda))
    outputs = {
        role: Output(agreed, oracle.ignored.get(role, ()), oracle.differ.get(role, ()))
        for role, agreed in oracle.agreed.items()
    }
    result = _on_release(asked, trials, "under the fault", outputs, oracle.unreplayed)
    if why := find_excuse(asked.run.trial(trials[0].trial), oracle):
        result = replace(result, reason=f"{result.reason} {why}")
    if not asked.controls or result.judgement is not Judgement.GREEN:
        return result
    made = find_broken_promises(asked.run.trial(trials[-1].trial), oracle)
    return _run_controls(asked, result, oracle, file, made, clusters[0], agenda)


def _worst_last(trials: Sequence[_Done]) -> list[_Done]:
    """Trials in the order of what they found: the last one is shown."""
    return sorted(trials, key=lambda done: sum(done.found.anomalies.values()))


def _without_fault(
    installation: Installation, asked: ReleaseTrials, clusters: Sequence[Cluster], agenda: Agenda
) -> tuple[list[_Done], Replayed]:
    """The trials without a fault, each on brokers of its own if there are enough, and their input replayed meanwhile.

    Where they take turns on the same brokers, there is no second one if the first shows an anomaly.
    """
    numbers = range(asked.first, asked.first + WITHOUT)
    lanes = [(cluster, [number]) for cluster, number in zip(clusters, numbers, strict=False)]
    if len(lanes) < WITHOUT:
        lanes = [(clusters[0], list(numbers))]
    first = asked.make_undisturbed(asked.first, restart=False)
    folders = (asked.run.trial(first), TrialFolder(asked.run.path / f"replay-{asked.cell.streams}"))
    early = EarlyReplay(installation, first, clusters[0], folders)

    def drive(lane: tuple[Cluster, list[int]], world: World) -> list[_Done]:
        cluster, again = lane
        done: list[_Done] = []
        try:
            for number in again:
                heard = early if number == asked.first else None
                trial = asked.make_undisturbed(number, restart=number != asked.first)
                done.append(_run(asked, trial, cluster, agenda, world, heard))
                if done[-1].found.anomalies:
                    break
        finally:
            if asked.first in again:
                early.run_is_over()
        return done

    replayed = Replayed(folders[1])

    def replay_beside(world: World) -> list[_Done]:
        nonlocal replayed
        if releases := _select_replayed(asked):
            replayed = early.replay(releases, world)
        return []

    works: list[Callable[[World], list[_Done]]] = [*(partial(drive, lane) for lane in lanes), replay_beside]
    found = side_by_side(works)
    return [done for lane in found for done in lane], replayed


def _select_replayed(asked: ReleaseTrials) -> set[Release]:
    """The releases that are to make something of the input."""
    declares = application_of(asked.parameters[OF_APPLICATION]).declares
    if declares.command:
        return set()
    on = zip(REPLAYED, (asked.cell.streams, asked.newest), strict=True)
    return {release for name, release in on if release is not None and declares.promises(name)}


def _run_controls(
    asked: ReleaseTrials,
    result: OnRelease,
    oracle: Oracle,
    file: str,
    made: Broken,
    cluster: Cluster,
    agenda: Agenda,
) -> OnRelease:
    """The report on a green release, with the promises that planted bugs break, and those that none does."""
    controls = []
    for number, plant in enumerate(CONTROLS, asked.first + WITHOUT + 1):
        done = _run(asked, asked.make_control(number, file, plant), cluster, agenda)
        fired = done.outcome.plant.fired if done.outcome.plant else 0
        failed = done.outcome.failed
        broken = {} if failed else list_broken(find_broken_promises(asked.run.trial(done.trial), oracle))
        controls.append(PlantedControl(plant, fired, broken, done.folder, failed))
    if all(control.says_something and not control.broke for control in controls):
        reason = f"No bug that was planted breaks any of its promises: {', '.join(CONTROLS)}."
        result = replace(result, judgement=Judgement.INCONCLUSIVE, reason=reason, advice=PROMISE_MORE)
    return replace(result, controls=tuple(controls), vacuous=vacuous(made, controls))


def _run(
    asked: ReleaseTrials,
    trial: Trial,
    cluster: Cluster,
    agenda: Agenda,
    world: World = REAL,
    early: EarlyReplay | None = None,
) -> _Done:
    """Run a trial; again, if the machine stood still.

    Then by another number: the brokers' coordinators still know what the first attempt did under its application id,
    and of its transactions the topics, which are new, would have nothing.
    """
    with agenda.doing(trial.cell.releases, _name_run(trial.parameters[FAULT], trial.plant)) as report:
        heard = early.watch_report(report) if early else report
        for attempt in range(ATTEMPTS):
            again = replace(trial, number=trial.number + attempt * APART)
            folder = asked.run.trial(again)
            outcome = run_trial(again, folder, heard, cluster=cluster, world=world)
            if outcome.void is None:
                return _Done(again, outcome, Reading.read(folder.reader_file), str(folder.path))
            report(f"attempt {attempt + 1} of {ATTEMPTS} says nothing: {outcome.void}")
    raise StoodStillError(f"The machine stood still in each of {ATTEMPTS} attempts: {outcome.void}")


def _oracle(
    installation: Installation, asked: ReleaseTrials, trials: list[_Done], replayed: Replayed, agenda: Agenda
) -> Oracle:
    folder = asked.run.trial(trials[0].trial)
    plan = TrialPlan.read(folder.trial_file)
    roles = select_declared("output", plan.roles)
    first, second = (Outputs.read(asked.run.trial(done.trial).outputs_file) for done in trials)
    oracle = oracle_of(first, second, roles)
    promised = {name for declared in roles.values() for name in declared.promises}

    def replay_on(release: Release) -> Outputs:
        if (known := replayed.of(release, folder)) is not None:
            return known
        with agenda.doing(asked.cell.releases, "replay") as report:
            report(f"on {release}")
            return replay(installation, plan, folder, release)

    oracle = with_replays(oracle, promised, (asked.cell.streams, asked.newest), replay_on)
    has_bytes = all(plan.streams_config.get(name) != "0" for name in CACHE_SIZES)  # a black box may read that, too
    if has_bytes and may_cache(Topology.read_described(read_timeline(folder.timeline)), plan.streams_config):
        oracle = as_far_as_replayed(oracle)
    return replace(oracle, as_replayed=as_replayed(oracle, roles))


def with_replays(
    oracle: Oracle,
    promised: Collection[str],
    releases: tuple[Release, Release | None],
    replay_on: Callable[[Release], Outputs],
) -> Oracle:
    """An oracle with what is replayed, as far as it is promised.

    Args:
        oracle: without it.
        promised: names of promises.
        releases: the release under test, and the newest one, which is not needed where nothing promises that.
        replay_on: replays on a release.
    """
    wanted = {name: release for name, release in zip(REPLAYED, releases, strict=True) if name in promised and release}
    of = {release: replay_on(release) for release in sorted(set(wanted.values()))}
    failed = {
        name: f"TopologyTestDriver of {release} cannot replay the input: {of[release].failed}"
        for name, release in wanted.items()
        if of[release].failed
    }
    again, newest = (of[wanted[name]] if name in wanted.keys() - failed.keys() else None for name in REPLAYED)
    return replace(oracle, replayed=again, replayed_on_newest=newest, unreplayed=failed)


def _on_release(
    asked: ReleaseTrials,
    trials: list[_Done],
    when: str,
    outputs: Mapping[str, Output],
    unreplayed: Mapping[str, str] = MappingProxyType({}),
) -> OnRelease:
    """The result of the last trial; `unreplayed` are promises that could not be judged, and why."""
    last = trials[-1]
    judgement, reason, advice = _judge(last, when, outputs)
    folder = asked.run.trial(last.trial)
    plan = TrialPlan.read(folder.trial_file)
    events = read_timeline(folder.timeline)
    explained = explain(last.trial, last.found.witnesses, events, *since(plan.streams_config, plan.later))
    issues = tuple(Explaining.of(issue) for issue in registry().issues if issue.key in explained.issues)
    result = OnRelease(
        streams=str(asked.cell.streams),
        restart_on=str(asked.cell.restart_on) if asked.cell.restart_on else None,
        judgement=judgement,
        reason=reason,
        exercised=last.outcome.exercised,
        anomalies=last.found.anomalies,
        witnesses=tuple(first_of_each(last.found.witnesses, SHOWN)),
        promises=last.found.promises,
        not_looked_at={**plan.not_looked_at, **explain_unread_stores(events), **unreplayed},
        outputs=outputs,
        records=last.found.records,
        plant=last.outcome.plant,
        fault=last.outcome.fault,
        seconds=round(sum(done.outcome.seconds["total"] for done in trials), 2),
        folders=tuple(done.folder for done in trials),
        issues=issues,
        unexplained=last.found.unexplained,
        concerned=explained.concerned,
        causes=explained.causes,
        advice=advice,
    )
    return replace(result, advice=advice_on_red(result, asked.run.run_id)) if judgement is Judgement.RED else result


def _judge(last: _Done, when: str, outputs: Mapping[str, Output]) -> tuple[Judgement, str, str]:
    """The judgement, the reason, and the next step."""
    if last.found.anomalies:
        seen = ", ".join(f"{count:,} {name}" for name, count in last.found.anomalies.items())
        return Judgement.RED, f"{seen} {when}. {last.outcome.reason}", ""
    if last.outcome.plant and not last.outcome.plant.fired:
        return Judgement.INCONCLUSIVE, f"What is planted did not fire: {last.outcome.plant.name}.", OTHER_PLANT
    if not last.outcome.exercised:
        return Judgement.INCONCLUSIVE, last.outcome.reason, STRIKE_AGAIN
    if not last.found.promises.keys() & {"differential", *REPLAYED, "unique", "deliveries"}:
        reason = (
            "Runs without a fault agree on nothing of its outputs, so nothing is promised that a fault could break: "
            f"{', '.join(outputs)}."
        )
        return Judgement.INCONCLUSIVE, reason, PROMISE_MORE
    planted = " What is planted fired, and no promise saw it." if last.outcome.plant else ""
    fault = last.outcome.fault
    had_nothing_to_lose = fault is not None and fault.observed.get("uncommitted_on_disk") is False
    return Judgement.GREEN, f"{last.outcome.reason}{planted}", STRIKE_HARDER if had_nothing_to_lose else ""


def not_run(asked: ReleaseTrials, reason: str) -> OnRelease:
    """The result on a release on which the machine stood still in each attempt: nothing is known."""
    return OnRelease(
        streams=str(asked.cell.streams),
        restart_on=str(asked.cell.restart_on) if asked.cell.restart_on else None,
        judgement=Judgement.INCONCLUSIVE,
        reason=reason,
        exercised=False,
        anomalies={},
        witnesses=(),
        promises={},
        not_looked_at={},
        outputs={},
        records=0,
        plant=None,
        fault=None,
        seconds=0.0,
        folders=(),
        advice=RUN_ALONE,
    )


def fault_of(parameters: Mapping[str, Any]) -> str:
    """The fault that is to be injected into the application: what was asked for, else what its file says."""
    return str(parameters.get(FAULT, application_of(parameters[OF_APPLICATION]).declares.fault))
