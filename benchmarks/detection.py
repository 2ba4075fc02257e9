"""How often a trial shows the bug where it is, and an anomaly where it is not.

    .venv/bin/python benchmarks/detection.py [TRIALS]

Prints a row per cell as it is done: trials that were exercised, that showed duplicate IDs, that showed only another
anomaly, and seconds of a trial (brokers are shared).
"""

import statistics
import sys
import tempfile
from pathlib import Path

from onceproof.lab.cluster import EmbeddedCluster
from onceproof.lab.trial import run_trial
from onceproof.model.cell import Cell, Trial
from onceproof.model.release import Release
from onceproof.model.run_folder import TrialFolder, read_json

BROKER = Release.parse("3.9.1")
CELLS = (
    ("3.3.1", "DEFAULT_CONFIG"),
    ("3.4.0", "DEFAULT_CONFIG"),
    ("3.4.1", "DEFAULT_CONFIG"),
    ("3.3.1", "CACHING_DISABLED"),
    ("3.3.1", "CACHE_SIZE_ZERO"),
)


def main() -> None:
    """Run the trials and print what was seen."""
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    head = ("streams", "variant", "exercised", "duplicates", "other", "IDs a trial", "median s")
    print("{:8} {:18} {:>10} {:>11} {:>6} {:>16} {:>9}".format(*head))
    with tempfile.TemporaryDirectory() as folder:
        cluster = EmbeddedCluster.start(BROKER, Path(folder, "cluster"))
        try:
            for streams, variant in CELLS:
                print(row(Path(folder), cluster, Cell("enumerator", variant, Release.parse(streams), BROKER), trials))
        finally:
            cluster.stop()


def row(folder: Path, cluster: EmbeddedCluster, cell: Cell, trials: int) -> str:
    """Run the trials of one cell."""
    exercised, other, duplicates, seconds = 0, 0, [], []
    for number in range(1, trials + 1):
        trial = Trial("20260101T000000-0000", cell, number, number)
        place = TrialFolder(folder / trial.key)
        outcome = run_trial(trial, place, cluster=cluster)
        exercised += outcome["exercised"]
        seconds.append(outcome["seconds"]["total"])
        anomalies = read_json(place.reader_file)["anomalies"]
        duplicates.append(anomalies.get("duplicate-id", 0))
        other += bool(anomalies) and not duplicates[-1]
    red = sum(count > 0 for count in duplicates)
    span = f"{min(duplicates):,} to {max(duplicates):,}"
    shares = f"{exercised:>4} of {trials:<3} {red:>5} of {trials:<3}"
    return f"{cell.streams!s:8} {cell.variant:18} {shares} {other:>6} {span:>16} {statistics.median(seconds):>9.1f}"


if __name__ == "__main__":
    main()
