"""How often a trial under each fault shows a bug that is planted in addition, and that without the bug it shows
nothing.

    .venv/bin/python benchmarks/faults.py [--trials N] [--unplanted N] [--fault NAME]...

Prints two rows for each fault as they are done, with the plant and without it: trials in which the fault took effect,
that showed an anomaly, how often each anomaly was seen in a trial, and seconds of a trial, its own brokers included. A
plant is one that the recovery from the fault must hide or show; some do their harm without the fault, too.
"""

import argparse
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.detection import BROKER, HEAD, RUN, row
from onceproof.faults import FAULTS
from onceproof.model.cell import Cell, Trial
from onceproof.model.release import Release

NEWEST = Release.parse("4.3.1")
PLAIN = Cell("enumerator", "DEFAULT_CONFIG", NEWEST, BROKER)


@dataclass(frozen=True)
class Case:
    """A fault, the plant that must be seen with it, and parameters under which it can be."""

    fault: str
    plant: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    cell: Cell = PLAIN

    def trials(self, count: int, plant: str | None) -> list[Trial]:
        """So many, with seeds from 1 on; which fault it is, a variant may say."""
        own = self.parameters if self.cell.restart_on else {"fault": self.fault, **self.parameters}
        return [Trial(RUN, self.cell, number, number, own, plant) for number in range(1, count + 1)]


CASES = (
    Case("pause", "no-abort", {"pause.transaction.timeout.ms": 60_000}),
    Case("partition", "no-abort", {"partition.transaction.timeout.ms": 60_000}),
    Case("broker-kill", "offsets-behind", {"nodes": 3}),
    Case("broker-pause", "no-abort", {"nodes": 3, "broker-pause.seconds": 14.0}),
    Case("leader-election", "offsets-behind", {"nodes": 3}),
    Case("instance-kill", "restore-ends-early"),
    Case("bounce", "offsets-left-out"),
    Case("thread-removed", "offsets-left-out"),
    Case("state-lost", "restore-ends-early"),
    Case("state-restored", "restore-ends-early"),
    Case("state-copied", "restore-ends-early"),
    Case("disk-full", "restore-ends-early"),
    Case("read-only", "restore-ends-early"),
    Case(
        "rolling-bounce",
        "offsets-left-out",
        cell=Cell("enumerator", "ROLLING", Release.parse("3.9.1"), BROKER, NEWEST),
    ),
)


def main() -> None:
    """Run the trials and print what was seen."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20, metavar="N")
    parser.add_argument("--unplanted", type=int, metavar="N", help="so many trials without the plant; else as many")
    parser.add_argument("--fault", action="append", choices=FAULTS, metavar="NAME")
    asked = parser.parse_args()
    print(HEAD)
    for case in CASES:
        if asked.fault is None or case.fault in asked.fault:
            for plant, trials in ((case.plant, asked.trials), (None, asked.unplanted or asked.trials)):
                name = f"{case.cell.releases} {case.fault}{f' with {plant}' if plant else ''}"
                with tempfile.TemporaryDirectory() as folder:
                    print(row(Path(folder), name, case.trials(trials, plant)), flush=True)


if __name__ == "__main__":
    main()
