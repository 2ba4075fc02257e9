"""Runs trials with planted bugs, one after the other on brokers of their own, and tells which were found."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from onceproof.harness import harness_version
from onceproof.lab.cluster import Cluster, EmbeddedCluster
from onceproof.lab.trial import run_trial
from onceproof.model.cell import Cell, Trial
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.files import Outcome, Reading
from onceproof.model.json_file import write_json
from onceproof.model.plants import Claim, Plant
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder, TrialFolder
from onceproof.model.sensitivity import PlantedTrial, commit_of


@dataclass(frozen=True)
class Planting:
    """A plant in the cell that it is tried in: where it must be found, or, without a claim, cannot show."""

    plant: Plant
    cell: Cell
    claim: Claim | None

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Of the scenario, beside the variant's."""
        return self.claim.parameters if self.claim else {}

    def shown_by(self, anomalies: Iterable[str]) -> bool:
        """Whether some of the anomalies show it: those that it must break, or any if it cannot show."""
        return bool(self.claim.breaches(anomalies) if self.claim else list(anomalies))


def try_plantings(
    run: RunFolder,
    plantings: Sequence[Planting],
    broker: Release,
    trials: int,
    seed: int,
    report: Callable[[str], None],
    then: Callable[[EmbeddedCluster], None] = lambda _: None,
) -> list[tuple[Planting, list[PlantedTrial]]]:
    """Run the same number of trials of each planting.

    Args:
        run: takes the trials, in its folder `planted`.
        plantings: what is tried.
        broker: release of the brokers, which all share.
        trials: of each planting.
        seed: of the first trial of each; each further one takes the next.
        report: called with what is tried and what was seen.
        then: called after the last trial, while the brokers still serve.

    Raises:
        HarnessError: the brokers could not be started, or died.
    """
    planned = [
        (planting, Trial(run.run_id, planting.cell, number, seed + turn, planting.parameters, planting.plant.name))
        for number, (planting, turn) in enumerate(product(plantings, range(trials)), 1)
    ]
    write_json(run.planted.run_file, {"run": run.run_id, "trials": [trial.to_dict() for _, trial in planned]})
    tried: list[PlantedTrial] = []
    cluster = EmbeddedCluster.start(broker, run.path / "cluster")
    try:
        for planting, trial in planned:
            tried.append(_try(planting, trial, run.planted.trial(trial), cluster))
            report(f"{planting.plant.name} in {planting.cell.scenario}: {_told(tried[-1])}")
            cluster.check_alive()
        then(cluster)
    finally:
        cluster.stop()
    return [(planting, tried[n * trials : (n + 1) * trials]) for n, planting in enumerate(plantings)]


def _try(planting: Planting, trial: Trial, folder: TrialFolder, cluster: Cluster) -> PlantedTrial:
    """One trial; its failure is recorded, so that the number of trials stays what was fixed beforehand."""
    begin = time.monotonic()
    outcome: Outcome | None = None
    anomalies: Mapping[str, int] = {}
    error = None
    try:
        outcome = run_trial(trial, folder, cluster=cluster)
        anomalies = Reading.read(folder.reader_file).anomalies
        error = outcome.void
    except (HarnessError, UsageError) as failed:
        error = str(failed)
        if folder.outcome_file.is_file():
            outcome = Outcome.read(folder.outcome_file)
    fired = outcome.plant.fired if outcome and outcome.plant else 0
    return PlantedTrial(
        run=trial.run,
        trial=trial.key,
        plant=planting.plant.name,
        cell=trial.cell,
        commit=commit_of(trial.cell, outcome.attested if outcome else {}),
        harness=harness_version(),
        seed=trial.seed,
        fired=fired,
        exercised=fired > 0 and outcome is not None and outcome.exercised,
        found=fired > 0 and planting.shown_by(anomalies),
        anomalies=anomalies,
        seconds=round(time.monotonic() - begin, 2),
        error=error,
    )


def _told(trial: PlantedTrial) -> str:
    """What one trial showed, for people."""
    if trial.error:
        return trial.error
    if not trial.fired:
        return "not fired"
    seen = ", ".join(f"{count:,} {name}" for name, count in trial.anomalies.items()) or "no anomaly"
    return f"fired {trial.fired:,} times, {seen}{'' if trial.exercised else ', not exercised'}"
