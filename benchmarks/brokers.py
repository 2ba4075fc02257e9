"""Whether transactions are judged on brokers of every published release.

    .venv/bin/python benchmarks/brokers.py [--from RELEASE] [--seed N]

Runs an exactly-once trial of `enumerator` on brokers of each published release, with the newest Kafka Streams, and
prints a row per release: what was seen, how many transactions were compared with their coordinator's decisions, and the
seconds that the trial took. Ends with 1 if one shows an anomaly, is not exercised, or ends with an error.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.detection import RUN
from onceproof.lab.cluster import EmbeddedCluster
from onceproof.lab.releases import list_published
from onceproof.lab.trial import run_trial
from onceproof.model.cell import Cell, Trial
from onceproof.model.errors import OnceproofError
from onceproof.model.files import Reading
from onceproof.model.release import OLDEST, Release
from onceproof.model.run_folder import TrialFolder
from onceproof.settings import get_settings


def main() -> None:
    """Run the trials and print their rows."""
    asked = _parse_arguments()
    releases = list_published(get_settings().installation)
    print(f"{'brokers':9} {'seen':40} {'atomicity':>9} {'seconds':>8}")
    rows = [row(release, releases[-1], asked.seed) for release in releases if release.since(Release.parse(asked.first))]
    if not all(rows):
        sys.exit(1)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="first", default=str(OLDEST), metavar="RELEASE", help="the first release")
    parser.add_argument("--seed", type=int, default=3, metavar="N")
    return parser.parse_args()


def row(release: Release, streams: Release, seed: int) -> bool:
    """Run the trial on brokers of a release and print its row; whether it is exercised and shows nothing."""
    folder = Path(tempfile.mkdtemp(prefix="onceproof-brokers-"))
    trial = Trial(RUN, Cell("enumerator", "DEFAULT_CONFIG", streams, release), 1, seed)
    try:
        cluster = EmbeddedCluster.start(get_settings().installation, release, folder / "brokers")
        try:
            outcome = run_trial(trial, TrialFolder(folder / "trial"), cluster=cluster)
        finally:
            cluster.stop()
        found = Reading.read(TrialFolder(folder / "trial").reader_file)
    except OnceproofError as error:
        print(f"{release!s:9} {error}", flush=True)
        return False
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    is_fine = outcome.exercised and not found.anomalies and not outcome.void
    seen = outcome.void or ", ".join(f"{count} {name}" for name, count in found.anomalies.items()) or "no anomaly"
    seen += "" if outcome.exercised else ", not exercised"
    compared = found.promises.get("atomicity", 0)
    print(f"{release!s:9} {seen:40} {compared:9,} {outcome.seconds['total']:8.1f}", flush=True)
    return is_fine and compared > 0


if __name__ == "__main__":
    main()
