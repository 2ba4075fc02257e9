"""Runs trials with planted bugs, one after the other on brokers of their own, and says which were found."""

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from onceproof.harness import harness_version
from onceproof.installation import Installation
from onceproof.lab.cluster import Cluster, EmbeddedCluster
from onceproof.lab.trial import run_trial
from onceproof.model.cell import Cell, Trial
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.files import Outcome, Reading
from onceproof.model.json_file import write_json
from onceproof.model.known_issues import registry
from onceproof.model.plants import Claim, Plant
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder, TrialFolder
from onceproof.model.sensitivity import PlantedTrial, commit_of
from onceproof.model.verdict import by_chance


@dataclass(frozen=True)
class Planting:
    """A plant in the cell that it is tried in: it must be found there or, without a claim, cannot show."""

    plant: Plant
    cell: Cell
    claim: Claim | None

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Parameters of the scenario, in addition to the variant's."""
        return self.claim.parameters if self.claim else {}

    def is_shown_by(self, anomalies: Iterable[str], unexplained: Mapping[str, int]) -> bool:
        """Whether some of the anomalies show it: those of the promises that it must break, or any if it cannot show.

        A red that an incidental known issue explains to its last witness does not count: `unexplained` are the
        witnesses that none explains.
        """
        counted = set(anomalies) - by_chance(self.cell, unexplained, registry())
        return bool(self.claim.breaches(counted) if self.claim else counted)


def plan_trials(run_id: str, plantings: Sequence[Planting], trials: int, seed: int) -> list[tuple[Planting, Trial]]:
    """The same number of trials of each planting; `seed` is that of its first, each further one takes the next."""
    return [
        (planting, Trial(run_id, planting.cell, number, seed + turn, planting.parameters, planting.plant.name))
        for number, (planting, turn) in enumerate(product(plantings, range(trials)), 1)
    ]


def version_of(plan: Sequence[tuple[Planting, Trial]]) -> str:
    """The version of the harness for the trials of a plan."""
    return harness_version(*sorted({trial.cell.scenario for _, trial in plan}))


def try_planned(
    installation: Installation,
    run: RunFolder,
    plan: Sequence[tuple[Planting, Trial]],
    broker: Release,
    report: Callable[[str], None],
    each: Callable[[PlantedTrial], None] = lambda _: None,
    then: Callable[[EmbeddedCluster], None] = lambda _: None,
) -> list[PlantedTrial]:
    """Run the trials of a plan, except those that have already ended in this folder with this harness.

    If it is cut short, the brokers' data stays, so that a repeated call can resume.

    Args:
        installation: for the brokers.
        run: takes the trials, in its folder `planted`.
        plan: what is tried.
        broker: release of the brokers, which all share.
        report: called with what is tried and what was seen.
        each: called with each trial as soon as it has ended and the independent reader has judged it.
        then: called after the last trial, while the brokers still serve.

    Raises:
        HarnessError: the brokers could not be started, or died.
    """
    planted, tried, is_done = run.planted, [], False
    data = {"run": run.run_id, "harness": version_of(plan), "trials": [trial.to_dict() for _, trial in plan]}
    write_json(planted.run_file, data)
    folder = planted.cluster_folder(str(broker))
    has_topics = EmbeddedCluster.has_data(folder)
    if not has_topics:
        shutil.rmtree(folder, ignore_errors=True)
    cluster = EmbeddedCluster.start(installation, broker, folder)
    try:
        for planting, trial in plan:
            if has_topics and _has_ended(planted, trial):
                shown = _describe_trial(planting, trial, planted.trial(trial))
            else:
                planted.archive_attempt(trial)
                shown = _try(planting, trial, planted.trial(trial), cluster)
            each(shown)
            report(f"{planting.plant.name} in {planting.cell.scenario}: {_summary(shown)}")
            tried.append(shown)
            cluster.check_alive()
        then(cluster)
        is_done = True
    finally:
        cluster.stop(keep_data=not is_done)
    return tried


def _has_ended(planted: RunFolder, trial: Trial) -> bool:
    outcome = planted.outcome(trial)
    return outcome is not None and outcome.says_something and outcome.harness == harness_version(trial.cell.scenario)


def _try(planting: Planting, trial: Trial, folder: TrialFolder, cluster: Cluster) -> PlantedTrial:
    """One trial; its failure is recorded, so that the number of trials stays what was fixed beforehand."""
    error = None
    try:
        error = run_trial(trial, folder, cluster=cluster).void
    except (HarnessError, UsageError) as failed:
        error = str(failed)
    return _describe_trial(planting, trial, folder, error)


def _describe_trial(planting: Planting, trial: Trial, folder: TrialFolder, error: str | None = None) -> PlantedTrial:
    """The result of a trial, by the files that it left."""
    outcome = Outcome.read(folder.outcome_file) if folder.outcome_file.is_file() else None
    found = Reading.read(folder.reader_file) if error is None else None
    anomalies = found.anomalies if found else {}
    fired = outcome.plant.fired if outcome and outcome.plant else 0
    return PlantedTrial(
        run=trial.run,
        trial=trial.key,
        plant=planting.plant.name,
        cell=trial.cell,
        commit=commit_of(trial.cell, outcome.attested if outcome else {}),
        harness=harness_version(trial.cell.scenario),
        machine=(outcome and outcome.machine) or "",
        seed=trial.seed,
        fired=fired,
        exercised=fired > 0 and outcome is not None and outcome.exercised,
        found=fired > 0 and found is not None and planting.is_shown_by(anomalies, found.unexplained),
        anomalies=anomalies,
        seconds=outcome.seconds["total"] if outcome else None,
        error=error,
    )


def _summary(trial: PlantedTrial) -> str:
    """The result of one trial, as text."""
    if trial.error:
        return trial.error
    if not trial.fired:
        return "not fired"
    seen = ", ".join(f"{count:,} {name}" for name, count in trial.anomalies.items()) or "no anomaly"
    return f"fired {trial.fired:,} times, {seen}{'' if trial.exercised else ', not exercised'}"
