"""Trials of one variant on one release after another, on the same brokers, to compare releases."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from onceproof.campaigns.bisection.boundaries import Bisection, Probe, lines_of
from onceproof.installation import Installation
from onceproof.lab.cluster import EmbeddedCluster
from onceproof.lab.external_brokers import ExternalCluster, check_access, lend, needs_own_cluster, own_cluster
from onceproof.lab.trial import run_alone, run_trial
from onceproof.model.cell import MARK, Cell, Trial
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.files import Outcome, Reading
from onceproof.model.json_file import encode, write_json
from onceproof.model.known_issues import registry
from onceproof.model.matrices import RISK
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder, TrialFolder
from onceproof.model.verdict import sighting
from onceproof.scenarios import scenario


@contextmanager
def probing(
    installation: Installation,
    run: RunFolder,
    cells: Sequence[Cell],
    seed: int,
    report: Callable[[str], None],
    anomalies: Collection[str] | None = None,
    external: ExternalCluster | None = None,
) -> Iterator[Callable[[Cell], Probe]]:
    """A function that runs a trial of a cell and says what it showed, while the brokers are up.

    Args:
        installation: for brokers of its own.
        run: takes the trials.
        cells: that may be tried, all on brokers of one release.
        seed: of the first trial; each further one takes the next.
        report: called with what is tried and what was seen.
        anomalies: that are searched for; a trial that shows others only is neither good nor bad. None: any, but for
            those that a known issue shows there incidentally (`model.verdict.sighting`).
        external: brokers to run on; None for brokers of its own.

    Raises:
        UsageError: the external brokers cannot be reached, or do not allow what the trials need.
        HarnessError: the brokers could not be started.
    """
    prefix = external.prefix if external else MARK
    started, first = None, Trial(run.run_id, cells[0], 0, seed, prefix=prefix)
    if external is None and needs_own_cluster(first):

        def run_one(trial: Trial, folder: TrialFolder) -> Outcome:
            return run_alone(trial, folder, own_cluster(installation, trial, folder))

    elif external is None:
        started = EmbeddedCluster.start(installation, cells[0].broker, run.path / "cluster")
        run_one = partial(run_trial, cluster=started)
    else:
        check_access(external, first)

        def run_one(trial: Trial, folder: TrialFolder) -> Outcome:
            return run_alone(trial, folder, lend(external, run.run_id))

    tried = 0

    def probe(cell: Cell) -> Probe:
        nonlocal tried
        tried += 1
        trial, release = Trial(run.run_id, cell, tried, seed + tried - 1, prefix=prefix), cell.streams
        folder = run.trial(trial)
        try:
            outcome = run_one(trial, folder)
        except (HarnessError, UsageError) as error:  # one release's failure does not take the others'
            report(f"trial {tried}: {release}: {error}")
            return Probe(red=False, green=False, reason=str(error))
        found = Reading.read(folder.reader_file)
        seen = sighting(cell, found.anomalies, found.unexplained, registry(), anomalies)
        if seen.others:
            is_any = anomalies is None
            why = "which a known issue shows there incidentally" if is_any else "which is not what is searched for"
            reason = f"It showed {', '.join(seen.others)}, {why}."
            report(f"trial {tried}: {release}: {reason}")
            return Probe(red=False, green=False, reason=reason)
        said = "red" if seen.red else "green" if outcome.exercised else "not exercised"
        report(f"trial {tried}: {release} {said}")
        return Probe(red=bool(seen.red), green=outcome.exercised and not seen.red, reason=outcome.reason)

    try:
        yield probe
    finally:
        if started is not None:
            started.stop()


def bisect_cell(
    installation: Installation,
    run: RunFolder,
    scenario_name: str,
    variant: str,
    releases: list[Release],
    broker: Release,
    seed: int,
    budget: int,
    report: Callable[[str], None],
    anomalies: Collection[str] | None = None,
    external: ExternalCluster | None = None,
) -> dict[str, object]:
    """Find the boundaries between good and bad releases.

    Args:
        installation: for brokers of its own.
        run: takes the trials; `bisect.json` in it is what is returned.
        scenario_name: the scenario.
        variant: its variant.
        releases: the range, all of it published.
        broker: release of the brokers.
        seed: of the first trial; each further one takes the next.
        budget: trials in all.
        report: called with what is tried and what was seen.
        anomalies: that are searched for; a trial that shows others only is neither good nor bad. None: any, but for
            those that a known issue shows there incidentally (`model.verdict.sighting`).
        external: brokers to run on; None for brokers of its own.

    Returns:
        scenario, variant, and the entries of `campaigns.bisection.boundaries.Bisected`.

    Raises:
        UsageError: the external brokers cannot be reached, or do not allow what the trials need.
        HarnessError: the brokers could not be started.
    """
    cells = {release: Cell(scenario_name, variant, release, broker) for release in releases}
    refused = {r: reason for r, cell in cells.items() if (reason := scenario(scenario_name).refuse(cell)) is not None}
    with probing(installation, run, list(cells.values()), seed, report, anomalies, external) as probe:
        search = Bisection(lines_of(releases), lambda r: probe(cells[r]), RISK, budget, unknown=refused)
        search.run()
    found = {"scenario": scenario_name, "variant": variant, **encode(search.result)}
    write_json(run.bisection_file, found)
    return found
