"""How often a trial shows the anomaly where it must, and shows none where it must not.

    .venv/bin/python benchmarks/detection.py [TRIALS [SCENARIO...]] [--only TEXT]

Prints a row per cell as it is done, or of those whose name has a text (`--only "3.9.0 scan"`): trials that were
exercised, that showed an anomaly, how often each anomaly was seen in a trial, and seconds of a trial (brokers are
shared, except by those that are about brokers). `benchmarks/faults.py` does the same for faults.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import chain
from pathlib import Path
from typing import Any

from onceproof.lab.cluster import EmbeddedCluster
from onceproof.lab.external_brokers import needs_own_cluster, own_cluster
from onceproof.lab.trial import run_alone
from onceproof.model import matrices
from onceproof.model.cell import Cell, Trial
from onceproof.model.files import Reading
from onceproof.model.release import Release
from onceproof.model.run_folder import TrialFolder
from onceproof.settings import get_settings

RUN = "20260101T000000-0000"
HEAD = f"{'cell':52} {'exercised':>10} {'red':>9} {'median s':>9} {'max s':>6}  anomalies a trial"
BROKER = Release.parse(matrices.BROKER)
CELLS = (
    ("enumerator", "DEFAULT_CONFIG", "3.3.1", None),
    ("enumerator", "DEFAULT_CONFIG", "3.4.0", None),
    ("enumerator", "DEFAULT_CONFIG", "3.4.1", None),
    ("enumerator", "CACHING_DISABLED", "3.3.1", None),
    ("enumerator", "CACHE_SIZE_ZERO", "3.3.1", None),
    ("enumerator", "DEFAULT_CONFIG", "3.4.1", "3.3.1"),
    ("multirunner", "DEFAULT_CONFIG", "3.3.1", None),
    ("multirunner", "SEED_PROGRAM", "3.3.1", None),
    ("multirunner", "SEED_PROGRAM", "3.4.1", None),
    ("multirunner", "CACHING_DISABLED", "3.3.1", None),
    ("crash", "DEFAULT_CONFIG", "4.1.2", None),
    ("crash", "ENUMERATOR", "4.1.2", None),
    ("crash", "DEFAULT_CONFIG", "4.1.2", "4.3.1"),
    ("crash", "DEFAULT_CONFIG", "3.6.2", None),
    ("crash", "DEFAULT_CONFIG", "4.3.1", None),
    ("crash", "STATE_UPDATER_DISABLED", "4.1.2", None),
    ("at-least-once", "DEFAULT_CONFIG", "4.3.1", None),
    ("at-least-once", "OUTPUT_FIRST", "4.3.1", None),
    ("at-least-once", "EXACTLY_ONCE", "4.3.1", None),
    ("at-least-once", "EXACTLY_ONCE_OUTPUT_FIRST", "4.3.1", None),
    ("quota", "DEFAULT_CONFIG", "3.8.1", None),
    ("quota", "DEFAULT_CONFIG", "4.3.1", None),
    ("quota", "LONG_TRANSACTION_TIMEOUT", "3.8.1", None),
    # A last bad release, and the first good one of its line.
    ("as-of-join", "RESTARTED", "3.5.0", None),
    ("as-of-join", "RESTARTED", "4.3.1", None),
    ("as-of-join", "REVIVED", "3.5.0", None),
    ("as-of-join", "REVIVED", "4.3.1", None),
    ("as-of-join", "DEFAULT_CONFIG", "4.3.1", None),
    ("idle-task", "DEFAULT_CONFIG", "3.9.0", None),
    ("idle-task", "DEFAULT_CONFIG", "3.9.1", None),
    ("split-batch", "DEFAULT_CONFIG", "4.1.0", None),
    ("split-batch", "DEFAULT_CONFIG", "4.1.1", None),
    ("corrupted-task", "DEFAULT_CONFIG", "3.6.1", None),
    ("corrupted-task", "DEFAULT_CONFIG", "3.6.2", None),
    ("grouped-table", "DEFAULT_CONFIG", "3.4.1", "4.3.1"),
    ("grouped-table", "UPGRADE_FROM", "3.4.1", "4.3.1"),
    ("scan", "DEFAULT_CONFIG", "3.9.0", None),
    ("scan", "DEFAULT_CONFIG", "3.9.1", None),
    ("foreign-key-join", "DEFAULT_CONFIG", "4.0.0", None),
    ("foreign-key-join", "DEFAULT_CONFIG", "4.0.1", None),
    ("foreign-key-join", "LEFT", "4.0.0", None),
    ("foreign-key-join", "LEFT", "4.0.1", None),
    ("global-join", "DEFAULT_CONFIG", "4.0.0", None),
    ("global-join", "DEFAULT_CONFIG", "4.0.1", None),
    ("global-join", "GLOBAL_STORE", "3.7.2", None),
    ("global-join", "GLOBAL_STORE", "3.8.0", None),
    ("stream-join", "DEFAULT_CONFIG", "3.4.0", None),
    ("stream-join", "DEFAULT_CONFIG", "3.4.1", None),
    ("table-join", "DEFAULT_CONFIG", "4.1.2", None),
    ("table-join", "DEFAULT_CONFIG", "4.3.1", None),
    ("punctuators", "KILLED", "4.1.2", None),
    ("punctuators", "KILLED", "4.3.1", None),
)
# Those whose culprit is a broker, the last bad one and the first good one.
OF_BROKERS = (("migration", "DEFAULT_CONFIG", "4.3.1", None), ("migration", "EXACTLY_ONCE", "4.3.1", None))
BROKERS = tuple(map(Release.parse, ("4.2.0", "4.2.1")))


def main() -> None:
    """Run the trials and print what was seen."""
    asked = _parse_arguments(sys.argv[1:])
    print(HEAD)
    with share_brokers() as (folder, cluster):
        of_brokers = chain.from_iterable(select_named(OF_BROKERS, asked.only, broker) for broker in BROKERS)
        for name, cell in chain(select_named(CELLS, asked.only), of_brokers):
            if not asked.scenarios or cell.scenario in asked.scenarios:
                drawn = [Trial(RUN, cell, number, number) for number in range(1, asked.trials + 1)]
                print(row(folder, name, drawn, None if needs_own_cluster(drawn[0]) else cluster), flush=True)


@contextmanager
def share_brokers() -> Iterator[tuple[Path, EmbeddedCluster]]:
    """A folder, and brokers for all trials."""
    with tempfile.TemporaryDirectory() as folder:
        cluster = EmbeddedCluster.start(get_settings().installation, BROKER, Path(folder, "cluster"))
        try:
            yield Path(folder), cluster
        finally:
            cluster.stop()


def select_named(
    rows: Sequence[tuple[str, str, str, str | None]], only: str, broker: Release = BROKER
) -> Iterator[tuple[str, Cell]]:
    """Cells whose name has a text, with it; a row is scenario, variant, release, and that to restart on."""
    for scenario, variant, streams, restart in rows:
        restarted = Release.parse(restart) if restart else None
        cell = Cell(scenario, variant, Release.parse(streams), broker, restarted)
        on = "" if broker == BROKER else f" on {broker}"
        if only in (name := f"{cell.releases} {scenario} {variant}{on}"):
            yield name, cell


def _parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trials", type=int, nargs="?", default=10)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO")
    parser.add_argument("--only", default="", metavar="TEXT", help="cells whose name has this text")
    return parser.parse_args(arguments)


def row(folder: Path, name: str, trials: Sequence[Trial], cluster: EmbeddedCluster | None = None) -> str:
    """Run some trials, on brokers of their own if none are given, and report what they showed.

    Those that were not exercised, or did not show what is planted, are reported on standard error as they end.
    """
    outcomes, anomalies = [], []
    for trial in trials:
        place = TrialFolder(folder / trial.key)
        brokers = nullcontext(cluster) if cluster else own_cluster(get_settings().installation, trial, place)
        outcomes.append(run_alone(trial, place, brokers))
        anomalies.append(Reading.read(place.reader_file).anomalies)
        if not outcomes[-1].exercised or (trial.plant and not anomalies[-1]):
            print(f"{trial.command}: {outcomes[-1].reason}", file=sys.stderr, flush=True)
    exercised = f"{sum(outcome.exercised for outcome in outcomes)} of {len(trials)}"
    red = f"{sum(map(bool, anomalies))} of {len(trials)}"
    seconds = [outcome.seconds["total"] for outcome in outcomes]
    times = f"{statistics.median(seconds):>9.1f} {max(seconds):>6.1f}"
    return f"{name:52} {exercised:>10} {red:>9} {times}  {'; '.join(spans(anomalies))}"


def spans(anomalies: Sequence[Mapping[str, Any]]) -> list[str]:
    """For each anomaly, the fewest and the most witnesses in a trial that showed any."""
    red = [found for found in anomalies if found]
    counts = {name: [found.get(name, 0) for found in red] for name in sorted({n for found in red for n in found})}
    return [
        f"{min(count):,} to {max(count):,} {name}" if min(count) < max(count) else f"{min(count):,} {name}"
        for name, count in counts.items()
    ]


if __name__ == "__main__":
    main()
