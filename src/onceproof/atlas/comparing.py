"""The coverage of an atlas, and the differences between two of them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from onceproof.atlas.measurement import Measurement, is_current, standing
from onceproof.model.cell import Cell
from onceproof.model.release import Release
from onceproof.model.verdict import Verdict
from onceproof.results.history import CellChange, JudgedCell, compare

WORSE = ("newly red", "newly unexplained")


@dataclass(frozen=True)
class Coverage:
    """The measured cells of a release, of those that there could be, and how many have each verdict."""

    release: Release
    measured: int
    possible: int
    current: int  # of the measured ones, those of the present harness
    counts: Mapping[Verdict, int]


def differences(
    old: Iterable[Measurement], new: Iterable[Measurement], harness: Mapping[str, str]
) -> tuple[list[CellChange], list[Cell]]:
    """The changes from one atlas to another, cell by cell, the worst first; and the cells that are gone."""
    before, after = standing(old, harness), standing(new, harness)
    changes = compare(
        [_strip_seconds(measurement) for measurement in after.values()],
        {cell: [_strip_seconds(measurement)] for cell, measurement in before.items()},
    )
    return changes, [cell for cell in before if cell not in after]


def is_worse(changes: Iterable[CellChange]) -> bool:
    """Whether a cell is newly red, or its red is no longer explained."""
    return any(change.kind in WORSE for change in changes)


def _strip_seconds(measurement: Measurement) -> JudgedCell:
    """As the history has it, without seconds: two machines differ in them."""
    return JudgedCell(
        measurement.run,
        measurement.cell,
        measurement.verdict,
        measurement.red,
        measurement.exercised,
        None,
        measurement.issues,
    )


def coverage(
    measurements: Iterable[Measurement], possible: Iterable[Cell], harness: Mapping[str, str]
) -> list[Coverage]:
    """The measurements of each release, the newest first; a cell belongs to the release that runs at its end."""
    found = standing(measurements, harness)
    cells = {*possible, *found}
    number = Counter(cell.running for cell in cells)
    return [
        _measure_coverage(
            release,
            [measurement for cell, measurement in found.items() if cell.running == release],
            number[release],
            harness,
        )
        for release in sorted(number, reverse=True)
    ]


def _measure_coverage(
    release: Release, measured: list[Measurement], possible: int, harness: Mapping[str, str]
) -> Coverage:
    verdicts = Counter(measurement.verdict for measurement in measured)
    counts = {verdict: verdicts[verdict] for verdict in Verdict if verdict in verdicts}
    return Coverage(
        release, len(measured), possible, sum(is_current(measurement, harness) for measurement in measured), counts
    )
