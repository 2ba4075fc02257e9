"""Shrinks a program of multirunner by running trials of smaller ones, on brokers of its own."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from onceproof.campaigns.shrinking.reductions import Candidate, shrink, smaller
from onceproof.installation import Installation
from onceproof.lab.cluster import EmbeddedCluster
from onceproof.lab.topics import ApplicationTopics
from onceproof.lab.trial import run_trial
from onceproof.model.cell import Trial
from onceproof.model.errors import HarnessError
from onceproof.model.files import Reading
from onceproof.model.known_issues import registry
from onceproof.model.run_folder import RunFolder
from onceproof.model.verdict import sighting
from onceproof.scenarios import multirunner

RATED = 5  # trials of the smallest program, for its rate


def shrink_program(
    installation: Installation,
    run: RunFolder,
    first: Trial,
    trials: int,
    budget: float,
    report: Callable[[str], None],
) -> dict[str, Any]:
    """Reduce the program of a trial to a smallest one that is red in each of `trials` trials.

    A trial is red if it shows one of the anomalies that turned the first one red: those that a known issue shows there
    incidental count only if there were no others.

    Args:
        installation: for the brokers.
        run: takes the trials.
        first: the trial to begin with.
        trials: in which a candidate must be red; one that is not is given up at once.
        budget: seconds after which the smallest so far is taken.
        report: called with what is tried.

    Returns:
        program, parameters (all that were set), red and trials (its rate; red is 0 if the first program was not red to
        begin with), anomalies (that turned the trials of its rate red, each with their number), tried (candidates),
        seconds, command (that runs one trial of it).

    Raises:
        HarnessError: the brokers could not be started.
    """
    begin = time.monotonic()
    cluster = EmbeddedCluster.start(installation, first.cell.broker, run.path / "cluster")
    number = tried = 0
    wanted: tuple[str, ...] = ()

    def show(candidate: Candidate) -> tuple[str, ...]:
        """The anomalies that turn a trial red, of those that the first one was red for."""
        nonlocal number, wanted
        number += 1
        parameters = {**first.parameters, **candidate.parameters}
        trial = replace(first, number=number, seed=first.seed + number - 1, parameters=parameters)
        folder = run.trial(trial)
        try:
            run_trial(trial, folder, cluster=cluster)
        except HarnessError as error:  # of dozens of trials one may fail; what was found must not be lost
            report(f"not counted: {error}")
            return ()
        finally:
            topics = ApplicationTopics(cluster, trial.application_id)
            topics.delete()
            topics.close()
        found = Reading.read(folder.reader_file)
        seen = sighting(trial.cell, found.anomalies, found.unexplained, registry(), wanted or None)
        if wanted:
            return seen.red
        wanted = seen.red or seen.others
        if wanted:
            report(f"it showed {', '.join(wanted)}")
        return wanted

    def is_red(candidate: Candidate) -> bool:
        nonlocal tried
        tried += 1
        report(f"candidate {tried}: {candidate}")
        return all(show(candidate) for _ in range(trials))

    try:
        start = Candidate.of(multirunner.program_of(first), multirunner.values(first).by_name)
        if not is_red(start):
            return _result(first, start, [()] * trials, tried, begin)
        smallest = shrink(start, is_red, lambda: time.monotonic() - begin < budget, smaller)
        report(f"smallest: {smallest}, its rate")
        return _result(first, smallest, [show(smallest) for _ in range(RATED)], tried, begin)
    finally:
        cluster.stop()


def _result(
    first: Trial, candidate: Candidate, seen: Sequence[tuple[str, ...]], tried: int, begin: float
) -> dict[str, Any]:
    parameters = {**first.parameters, **candidate.parameters}
    return {
        "program": candidate.parameters["program"],
        "parameters": parameters,
        "red": sum(map(bool, seen)),
        "trials": len(seen),
        "anomalies": dict(sorted(Counter(name for names in seen for name in names).items())),
        "tried": tried,
        "seconds": round(time.monotonic() - begin, 1),
        "command": replace(first, parameters=parameters).command,
    }
