"""How long tests take: kept in `durations.json`, by which the workers are given their files."""

import json
import os
from collections import defaultdict
from pathlib import Path

import pytest

FILE = Path(os.environ.get("ONCEPROOF_DURATIONS", Path(__file__).with_name("durations.json")))
SHORTEST = 1.0  # seconds; tests that take less are not kept


class Durations:
    """A plugin of pytest that keeps the seconds of each test, with its set-up and tear-down."""

    def __init__(self, file: Path = FILE) -> None:
        self._file = file
        self._seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up the phases of a test, whichever worker ran it."""
        self._seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self) -> None:
        """Write what was measured; a test that did not run keeps its figure."""
        kept = read(self._file) | self._seconds
        long = {test: round(seconds, 1) for test, seconds in kept.items() if seconds >= SHORTEST}
        self._file.write_text(json.dumps(dict(sorted(long.items())), indent=1) + "\n")


def read(file: Path = FILE) -> dict[str, float]:
    """Seconds by test; of a test that is missing, less than `SHORTEST`."""
    return json.loads(file.read_text()) if file.exists() else {}
