"""The evidence in the package, and how it compares with what was measured here: one's own results come first."""

from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path

from onceproof.atlas.file import read_atlas
from onceproof.atlas.measurement import Measurement, is_current, standing
from onceproof.model.cell import Cell
from onceproof.model.release import Release
from onceproof.results.history import JudgedCell, JudgedRun, is_named
from onceproof.results.measured import Measured, read_measured

EVIDENCE = Path(__file__).with_name("evidence.sqlite")
SHIPPED = "shipped"  # in place of the folder of a run


@cache
def read_shipped() -> tuple[Measurement, ...]:
    """The measurements in the package.

    Raises:
        UsageError: the file is missing or damaged.
    """
    return read_atlas(EVIDENCE)


def select_cells(url: str, releases: Collection[Release], harness: Mapping[str, str]) -> list[Measured]:
    """One verdict of each cell that stays among these releases: what was measured here, else what is shipped.

    A shipped verdict takes the place of one's own where only the shipped one counts for this harness, or decides.

    Raises:
        HarnessError: the database refuses.
    """
    measured_here = {measurement.cell: measurement for measurement in read_measured(url, releases, harness)}
    there = [
        measurement
        for measurement in read_shipped()
        if {measurement.cell.streams, measurement.cell.running} <= set(releases)
    ]
    for cell, measurement in standing(there, harness).items():
        other = as_measured(measurement, harness)
        if cell not in measured_here or _weight(other) > _weight(measured_here[cell]):
            measured_here[cell] = other
    return list(measured_here.values())


def _weight(measurement: Measured) -> tuple[bool, bool]:
    return measurement.is_decided, measurement.is_current


def as_measured(measurement: Measurement, harness: Mapping[str, str]) -> Measured:
    """A measurement as the results database would give it."""
    return Measured(
        measurement.cell,
        measurement.verdict,
        measurement.sentence,
        measurement.red,
        measurement.exercised,
        measurement.excluded_rate,
        measurement.missed,
        measurement.issues,
        measurement.run,
        measurement.created,
        is_current(measurement, harness),
        measurement.summary,
    )


def count_releases() -> dict[Release, int]:
    """The releases of which cells are shipped, and how many."""
    cells: dict[Release, set[Cell]] = {}
    for measurement in read_shipped():
        for release in {measurement.cell.streams, measurement.cell.running}:
            cells.setdefault(release, set()).add(measurement.cell)
    return {release: len(of_release) for release, of_release in sorted(cells.items())}


def read_shipped_runs(text: str, stored: Collection[str]) -> list[JudgedRun]:
    """The runs whose verdicts on cells of this name (`results.history.is_named`) are shipped, as the history has them.

    Without those that are stored here.
    """
    runs: dict[tuple[str, str], list[JudgedCell]] = {}
    for measurement in read_shipped():
        if measurement.run not in stored and is_named(measurement.cell, text):
            judged = JudgedCell(
                measurement.run,
                measurement.cell,
                measurement.verdict,
                measurement.red,
                measurement.exercised,
                measurement.seconds,
                measurement.issues,
            )
            runs.setdefault((measurement.run, measurement.created), []).append(judged)
    return [JudgedRun(run, created, SHIPPED, SHIPPED, tuple(cells)) for (run, created), cells in runs.items()]
