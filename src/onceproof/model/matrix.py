"""The matrix as data, expanded by one function."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product

from onceproof.model.cell import Cell
from onceproof.model.errors import UsageError
from onceproof.model.release import Release

NEWEST = "4.3.1"  # the newest published release when this line was written
BROKER = "3.9.1"  # serves every Kafka Streams release from 3.0 to 4.x
MAX_TRIALS = 100


@dataclass(frozen=True)
class Matrix:
    """A named set of cells; every combination of its axes."""

    name: str
    description: str
    scenarios: Mapping[str, tuple[str, ...]]  # scenario -> variants
    streams: tuple[str, ...]
    brokers: tuple[str, ...] = (BROKER,)
    trials: int = 1


MATRICES = {
    matrix.name: matrix
    for matrix in (
        Matrix(
            "seed",
            "The seed's three configurations on a bad, a fixed and the newest release.",
            {"enumerator": ("DEFAULT_CONFIG", "CACHING_DISABLED", "NO_LAG_ACCEPTABLE")},
            ("3.3.1", "3.4.1", NEWEST),
        ),
        Matrix(
            "nightly",
            "Every variant on the last releases of the lines around the fix, and of each line since.",
            {
                "enumerator": (
                    "DEFAULT_CONFIG",
                    "REPEATED_KEYS",
                    "CACHING_DISABLED",
                    "CACHE_SIZE_ZERO",
                    "NO_LAG_ACCEPTABLE",
                )
            },
            (
                "3.3.2",
                "3.4.0",
                "3.4.1",
                "3.5.2",
                "3.6.2",
                "3.7.2",
                "3.8.1",
                "3.9.1",
                "4.0.0",
                "4.1.1",
                NEWEST,
            ),
        ),
    )
}
DEFAULT_MATRIX = "seed"


@dataclass(frozen=True)
class Request:
    """What a person or the schedule asks for; an empty axis is the matrix's own."""

    matrix: str = DEFAULT_MATRIX
    streams: tuple[str, ...] = ()
    brokers: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    trials: int | None = None


@dataclass(frozen=True)
class Expansion:
    """The cells of a request."""

    matrix: str
    cells: tuple[Cell, ...]
    trials: int


def expand(request: Request, catalogue: Mapping[str, Iterable[str]]) -> Expansion:
    """Make the cells of a request, scenario by scenario, releases in order.

    Args:
        request: the axes.
        catalogue: scenario -> all variants it has (`onceproof.scenarios.CATALOGUE`).

    Raises:
        UsageError: an unknown matrix, scenario or variant, a malformed release, a number of trials out of range,
            or no cell at all.
    """
    matrix = MATRICES.get(request.matrix)
    if matrix is None:
        raise UsageError(f"There is no matrix {request.matrix!r}; there is {', '.join(MATRICES)}.")
    trials = matrix.trials if request.trials is None else request.trials
    if not 1 <= trials <= MAX_TRIALS:
        raise UsageError(f"{trials} trials cannot be run: ask for 1 to {MAX_TRIALS} a cell.")
    streams = sorted({Release.parse(text) for text in request.streams or matrix.streams})
    brokers = sorted({Release.parse(text) for text in request.brokers or matrix.brokers})

    cells: list[Cell] = []
    for scenario, variants in _variants(request, matrix, catalogue).items():
        for variant, release, broker in product(variants, streams, brokers):
            cells.append(Cell(scenario, variant, release, broker))
    if not cells:
        raise UsageError(f"The request leaves no cell of the matrix {matrix.name}: name fewer variants, or others.")
    return Expansion(matrix.name, tuple(cells), trials)


def _variants(request: Request, matrix: Matrix, catalogue: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """Scenario -> the variants that are asked for."""
    scenarios = request.scenarios or tuple(matrix.scenarios)
    for scenario in scenarios:
        if scenario not in catalogue:
            raise UsageError(f"There is no scenario {scenario!r}; there is {', '.join(catalogue)}.")
    known = {variant for scenario in scenarios for variant in catalogue[scenario]}
    for variant in request.variants:
        if variant not in known:
            raise UsageError(
                f"There is no variant {variant!r} of {', '.join(scenarios)}; there is {', '.join(sorted(known))}."
            )
    return {
        scenario: tuple(v for v in request.variants if v in catalogue[scenario])
        if request.variants
        else tuple(matrix.scenarios.get(scenario, catalogue[scenario]))
        for scenario in dict.fromkeys(scenarios)
    }
