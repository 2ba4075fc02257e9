"""What each of several workers (`-n`) takes, and in which order.

Trials run on both workers at once, as in production (`settings.drive_slots`).
"""

from collections import defaultdict
from collections.abc import Mapping
from math import inf

from xdist.scheduler import LoadScopeScheduling

# Folders whose tests share what takes long to start: one worker has all of them.
SHARED = {
    "tests/spark_jobs/": "a Spark session",
    "tests/expectations/": "a Spark session",
    "tests/dags/": "an Airflow home",
}
LONG = 5.0  # seconds: of a unit that is not among the short ones, which are first


class Lanes(LoadScopeScheduling):
    """A worker takes a unit of tests after the other. xdist's own groups do not reach it with pytest 9.2."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


def unit_of(test: str) -> str:
    """The unit that a test belongs to: its file, as those share what they need, or all files that share more."""
    file = test.partition("::")[0]
    return next((unit for folder, unit in SHARED.items() if file.startswith(folder)), file)


def places(guesses: Mapping[str, float], seconds: Mapping[str, float]) -> dict[str, float]:
    """A number for each unit, by which they are sorted, from the seconds that some tests take.

    First what takes no time, to fail soon; then what takes longest, so that what is left for the end is short. Of a
    unit of which no test was ever measured, the seconds are those that are guessed for each of its tests.
    """
    measured = {unit_of(test) for test in seconds}
    takes: dict[str, float] = defaultdict(float)
    for test, guess in guesses.items():
        takes[unit_of(test)] += seconds.get(test, 0.0 if unit_of(test) in measured else guess)
    return {unit: -whole if whole >= LONG else -inf for unit, whole in takes.items()}
