"""One enumerator trial, brokers up to drained, compared with Kafka's own integration test of the same scenario.

    .venv/bin/python benchmarks/trial.py [TRIALS]

The peer is StandbyTaskEOSMultiRebalanceIntegrationTest from the test jars of 3.4.1, as its authors wrote it. It came
with the fix of KAFKA-14172; it is also run on Kafka Streams 3.4.0, which has the bug.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.kafka_tests import run_class
from onceproof.lab.external_brokers import own_cluster
from onceproof.lab.trial import run_alone
from onceproof.model.cell import Cell, Trial
from onceproof.model.release import Release
from onceproof.model.run_folder import TrialFolder
from onceproof.settings import get_settings

PEER = "StandbyTaskEOSMultiRebalanceIntegrationTest"
RELEASE, BROKER = Release.parse("3.4.1"), Release.parse("3.9.1")
AFFECTED = Release.parse("3.4.0")


def ours(number: int) -> float:
    """Seconds of one trial on brokers of its own, everything included."""
    trial = Trial("20260101T000000-0000", Cell("enumerator", "DEFAULT_CONFIG", RELEASE, BROKER), number, number)
    with tempfile.TemporaryDirectory() as folder:
        begin = time.monotonic()
        place = TrialFolder(Path(folder))
        outcome = run_alone(trial, place, own_cluster(get_settings().installation, trial, place))
        seconds = time.monotonic() - begin
        assert outcome.exercised, outcome.reason
        return seconds


def peer() -> float:
    """Seconds of Kafka's own test."""
    ended = run_class(RELEASE, PEER)
    assert ended.how == "passed", ended
    return ended.seconds


def main() -> None:
    """Run both and print them side by side."""
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    mine = [ours(number) for number in range(1, trials + 1)]
    table = Table("what", "runs", "min s", "median s", "max s", title="One trial, brokers up to drained")
    for name, seconds in (("onceproof trial, 3.4.1", mine), ("Kafka's integration test, 3.4.1", [peer()])):
        figures = (min(seconds), statistics.median(seconds), max(seconds))
        table.add_row(name, str(len(seconds)), *(f"{figure:.1f}" for figure in figures))
    Console().print(table)
    print(
        f"On Kafka Streams {AFFECTED}, which has the bug, that test {run_class(RELEASE, PEER, streams=AFFECTED).how}."
    )


if __name__ == "__main__":
    main()
