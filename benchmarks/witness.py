"""Whether Kafka's TopologyTestDriver emits what our scenarios did on brokers.

    .venv/bin/python benchmarks/witness.py [--only TEXT] [--seed N]

Runs a trial of each cell with its own fault, has the driver process what was committed to the input, on the same
release and on the newest, and compares its output with what was committed to the output topic. Prints a row per cell:
how much must be alike, the keys compared, how many of them differ on each of the two releases, and the seconds that the
trial and both replays took.
"""

import argparse
import sys
import time

from benchmarks.detection import RUN, select_named, share_brokers
from onceproof.lab.cluster import EmbeddedCluster
from onceproof.lab.trial import run_trial
from onceproof.lab.witness import witness
from onceproof.model.cell import Trial
from onceproof.model.files import TrialPlan
from onceproof.model.published import NEWEST
from onceproof.model.run_folder import TrialFolder
from onceproof.pipeline.steps import read_published_here
from onceproof.scenarios import scenario
from onceproof.settings import get_settings

CELLS = (
    # Well: nothing differs on either.
    ("multirunner", "SEED_PROGRAM", "4.3.1", None),
    ("crash", "DEFAULT_CONFIG", "4.3.1", None),
    ("at-least-once", "EXACTLY_ONCE", "4.3.1", None),
    ("global-join", "DEFAULT_CONFIG", "4.3.1", None),
    ("scan", "DEFAULT_CONFIG", "4.3.1", None),
    ("stream-join", "DEFAULT_CONFIG", "4.3.1", None),
    ("split-batch", "DEFAULT_CONFIG", "4.3.1", None),
    ("corrupted-task", "DEFAULT_CONFIG", "4.3.1", None),
    ("windows", "PAUSED", "4.3.1", None),
    ("windows", "HOPPING", "3.7.2", None),  # where no thread dies after a kill (KAFKA-20808)
    ("as-of-join", "DEFAULT_CONFIG", "4.3.1", None),
    ("foreign-key-join", "DEFAULT_CONFIG", "4.3.1", None),
    ("grouped-table", "UPGRADE_FROM", "3.4.1", "4.3.1"),
    ("table-join", "DEFAULT_CONFIG", "4.3.1", None),
    ("punctuators", "KILLED", "4.3.1", None),
    # Wrong on brokers only: something differs on both.
    ("crash", "DEFAULT_CONFIG", "4.1.2", None),
    ("corrupted-task", "DEFAULT_CONFIG", "3.6.1", None),
    ("stream-join", "DEFAULT_CONFIG", "3.4.0", None),
    ("as-of-join", "RESTARTED", "4.3.1", None),
    ("windows", "LATE", "4.3.1", None),
    # Always wrong: it differs on the newest.
    ("global-join", "DEFAULT_CONFIG", "4.0.0", None),
    ("foreign-key-join", "DEFAULT_CONFIG", "4.0.0", None),
)


def main() -> None:
    """Run the trials and print what the driver says."""
    asked = _parse_arguments()
    print(f"{'cell':48} {'alike':8} {'keys':>7} {'same release':>13} {'newest':>7} {'trial s':>8} {'replays s':>10}")
    with share_brokers() as (folder, cluster):
        for name, cell in select_named(CELLS, asked.only):
            trial = Trial(RUN, cell, asked.seed, asked.seed)
            print(row(name, trial, TrialFolder(folder / trial.key), cluster), flush=True)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="TEXT", help="cells whose name has this text")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    return parser.parse_args()


def row(name: str, trial: Trial, folder: TrialFolder, cluster: EmbeddedCluster) -> str:
    """Run a trial and ask the witness; witnesses of what differs are reported on standard error."""
    outcome = run_trial(trial, folder, cluster=cluster)
    if outcome.failed:
        return f"{name:48} not compared: {outcome.failed}"
    begin = time.monotonic()
    newest = read_published_here().resolve(NEWEST)
    releases = [trial.cell.restart_on or trial.cell.streams, newest]
    reported = witness(get_settings().installation, TrialPlan.read(folder.trial_file), cluster, folder, releases)
    seconds = time.monotonic() - begin
    differing = []
    for release in releases:
        wrong = [comparison for comparison in reported[release] if comparison.anomaly]
        differing.append(f"{len(wrong):,}")
        for comparison in wrong[:2]:
            print(f"  {name}, {release}: {comparison}", file=sys.stderr)
    exercised = "" if outcome.exercised else f"  not exercised: {outcome.reason}"
    keys = f"{len(reported[newest]):,}"
    return (
        f"{name:48} {scenario(trial.cell.scenario).alike or '':8} {keys:>7} {differing[0]:>13} {differing[1]:>7} "
        f"{outcome.seconds['total']:>8.1f} {seconds:>10.1f}{exercised}"
    )


if __name__ == "__main__":
    main()
