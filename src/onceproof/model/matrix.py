"""The matrix as data, expanded by one function."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

from onceproof.model.cell import Cell
from onceproof.model.errors import UsageError
from onceproof.model.known_issues import Registry
from onceproof.model.release import Release

NEWEST = "4.3.1"  # the newest published release when this line was written
BROKER = "3.9.1"  # serves every Kafka Streams release from 3.0 to 4.x
MAX_TRIALS = 100
BUDGET = 6  # trials of a cell, at most
RISK = 0.05  # that a green which is claimed misses a bug, at most


@dataclass(frozen=True)
class Block:
    """Cells of one scenario: every variant on every release, and on every pair of releases with a restart between."""

    scenario: str
    variants: tuple[str, ...]
    streams: tuple[str, ...]
    restarts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Matrix:
    """A named set of cells."""

    name: str
    description: str
    blocks: tuple[Block, ...]
    brokers: tuple[str, ...] = (BROKER,)
    trials: int = 1
    budget: int = BUDGET
    risk: float = RISK
    plants: int = 0  # tried in each scenario on each release of which too little is known; one trial of each

    def releases(self) -> list[str]:
        """All releases of Kafka Streams that it names, in release order."""
        named = {s for block in self.blocks for s in (*block.streams, *(r for pair in block.restarts for r in pair))}
        return sorted(named, key=Release.parse)


MATRICES = {
    matrix.name: matrix
    for matrix in (
        Matrix(
            "seed",
            "The seeds: the enumerator's three configurations on a bad, a fixed and the newest release, and of each "
            "other scenario a cell that must be red and one that must not.",
            (
                Block(
                    "enumerator",
                    ("DEFAULT_CONFIG", "CACHING_DISABLED", "NO_LAG_ACCEPTABLE"),
                    ("3.3.1", "3.4.1", NEWEST),
                ),
                Block("multirunner", ("SEED_PROGRAM",), ("3.3.1", "3.4.1")),
                Block("crash", ("DEFAULT_CONFIG",), ("4.1.2", NEWEST)),
                Block("quota", ("DEFAULT_CONFIG",), ("3.8.1", NEWEST)),
                Block("at-least-once", ("DEFAULT_CONFIG", "EXACTLY_ONCE"), (NEWEST,)),
            ),
            risk=0.25,  # of a first look: one trial of each control and of each cell
        ),
        Matrix(
            "nightly",
            "Every variant of every scenario on the releases around its fix and on each line since, and restarts on "
            "another release.",
            (
                Block(
                    "enumerator",
                    (
                        "DEFAULT_CONFIG",
                        "REPEATED_KEYS",
                        "THIRD_INSTANCE",
                        "CACHING_DISABLED",
                        "CACHE_SIZE_ZERO",
                        "NO_LAG_ACCEPTABLE",
                    ),
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
                Block(
                    "enumerator",
                    ("DEFAULT_CONFIG",),
                    (),
                    (("3.3.2", "3.4.1"), ("3.4.1", "3.3.2"), ("3.9.1", NEWEST), ("4.1.2", NEWEST)),
                ),
                Block(
                    "multirunner",
                    (
                        "DEFAULT_CONFIG",
                        "SEED_PROGRAM",
                        "ROCKSDB",
                        "AT_LEAST_ONCE",
                        "STAYING_IN_GROUP",
                        "CACHING_DISABLED",
                        "NO_STANDBY",
                    ),
                    ("3.3.2", "3.4.0", "3.4.1", "3.9.1", "4.1.2", NEWEST),
                ),
                Block(
                    "crash",
                    (
                        "DEFAULT_CONFIG",
                        "ENUMERATOR",
                        "SHORT_COMMIT_INTERVAL",
                        "ROCKSDB_OWN_MEMORY",
                        "DYNAMIC_MEMBERSHIP",
                        "TIMESTAMPED",
                        "PUNCTUATOR",
                        "TWO_KILLS",
                        "DURING_RESTORATION",
                        "STATE_UPDATER_DISABLED",
                    ),
                    ("3.6.2", "3.7.2", "3.8.1", "3.9.1", "4.1.2", "4.2.0", NEWEST),
                ),
                Block(
                    "crash",
                    ("DEFAULT_CONFIG", "ENUMERATOR"),
                    (),
                    (
                        ("3.6.2", "4.1.2"),
                        ("3.6.2", NEWEST),
                        ("3.9.1", "3.6.2"),
                        ("3.9.1", "4.1.2"),
                        ("4.1.2", NEWEST),
                        ("4.2.0", "4.1.2"),
                        ("4.2.0", NEWEST),
                    ),
                ),
                Block(
                    "quota",
                    ("DEFAULT_CONFIG", "SHORT_REQUEST_TIMEOUT", "SLEEP_25", "SLEEP_30", "LONG_TRANSACTION_TIMEOUT"),
                    ("3.7.2", "3.8.1", "3.9.0", "3.9.1", "4.0.0", "4.1.2", NEWEST),
                ),
                Block(
                    "at-least-once",
                    (
                        "DEFAULT_CONFIG",
                        "OUTPUT_FIRST",
                        "DELETE_DOWNSTREAM",
                        "EXACTLY_ONCE",
                        "EXACTLY_ONCE_OUTPUT_FIRST",
                        "REBALANCE",
                        "EXACTLY_ONCE_REBALANCE",
                    ),
                    ("3.4.1", "3.9.1", "4.1.2", NEWEST),
                ),
                Block(
                    "global-join",
                    ("DEFAULT_CONFIG", "AT_LEAST_ONCE", "NO_NULL_KEY"),
                    ("3.7.0", "3.9.2", "4.0.0", "4.0.1", NEWEST),
                ),
            ),
            plants=2,
        ),
    )
}
DEFAULT_MATRIX = "seed"


@dataclass(frozen=True)
class Offer:
    """What can be asked of a scenario: its variants, and why a cell cannot be run, if it cannot.

    `control` is the variant and the release of Kafka Streams that must be red.
    """

    variants: tuple[str, ...]
    control: tuple[str, str]
    refuse: Callable[[Cell], str | None] = lambda _: None


@dataclass(frozen=True)
class Request:
    """What a person or the schedule asks for; an empty axis is the matrix's own.

    `trials` are run of each cell, whatever they show; up to `budget` of those whose verdict needs more of them. A green
    may miss a bug with the probability `risk`.
    """

    matrix: str = DEFAULT_MATRIX
    streams: tuple[str, ...] = ()
    brokers: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    trials: int | None = None
    restarts: tuple[str, ...] = ()
    budget: int | None = None
    risk: float | None = None


@dataclass(frozen=True)
class Expansion:
    """The cells of a request, and those that were left out, each with the reason."""

    matrix: str
    cells: tuple[Cell, ...]
    trials: int
    budget: int
    risk: float
    plants: int
    refused: Mapping[Cell, str]


def expand(request: Request, catalogue: Mapping[str, Offer]) -> Expansion:
    """Make the cells of a request, scenario by scenario, releases in order.

    Args:
        request: the axes.
        catalogue: what can be asked of each scenario (`onceproof.scenarios.CATALOGUE`).

    Raises:
        UsageError: an unknown matrix, scenario or variant, a malformed release, a number of trials out of range,
            or no cell that can be run.
    """
    matrix = MATRICES.get(request.matrix)
    if matrix is None:
        raise UsageError(f"There is no matrix {request.matrix!r}; there is {', '.join(MATRICES)}.")
    trials = matrix.trials if request.trials is None else request.trials
    budget = max(trials, matrix.budget) if request.budget is None else request.budget
    if not 1 <= trials <= MAX_TRIALS:
        raise UsageError(f"{trials} trials cannot be run: ask for 1 to {MAX_TRIALS} a cell.")
    if not trials <= budget <= MAX_TRIALS:
        raise UsageError(f"A budget of {budget} trials is not possible: ask for {trials} to {MAX_TRIALS} a cell.")
    risk = matrix.risk if request.risk is None else request.risk
    if not 0.01 <= risk <= 0.5:
        raise UsageError(f"A risk of {risk:g} cannot be asked for: ask for 0.01 to 0.5.")
    _check_names(request, catalogue)
    brokers = _releases(request.brokers or matrix.brokers)
    asked = {
        cell: catalogue[block.scenario].refuse(cell)
        for block in _blocks(request, matrix, catalogue)
        for cell in _cells(request, block, brokers)
    }
    cells = tuple(cell for cell, reason in asked.items() if reason is None)
    refused = {cell: reason for cell, reason in asked.items() if reason is not None}
    if not cells:
        raise UsageError(
            " ".join(f"{cell.title} cannot be run: {reason}" for cell, reason in refused.items())
            or f"The request leaves no cell of the matrix {matrix.name}: name fewer variants, or others."
        )
    return Expansion(matrix.name, cells, trials, budget, risk, matrix.plants, refused)


def with_controls(expansion: Expansion, catalogue: Mapping[str, Offer], known: Registry) -> Expansion:
    """Add the positive controls that the cells lack, with each broker.

    A variant that a known issue concerns has its own, on the release of the scenario's control. A scenario that has no
    affected cell even so gets its control.
    """
    cells = dict.fromkeys(expansion.cells)
    for scenario, broker in dict.fromkeys((cell.scenario, cell.broker) for cell in expansion.cells):
        usual, release = catalogue[scenario].control
        own = [cell for cell in cells if (cell.scenario, cell.broker) == (scenario, broker)]
        affected = {cell.variant for cell in own if known.affecting(cell)}
        for variant in dict.fromkeys(cell.variant for cell in own):
            control = Cell(scenario, variant, Release.parse(release), broker)
            if variant not in affected and known.affecting(control) and catalogue[scenario].refuse(control) is None:
                cells[control] = None
                affected.add(variant)
        if not affected:
            cells[Cell(scenario, usual, Release.parse(release), broker)] = None
    return replace(expansion, cells=tuple(cells))


def _check_names(request: Request, catalogue: Mapping[str, Offer]) -> None:
    for scenario in request.scenarios:
        if scenario not in catalogue:
            raise UsageError(f"There is no scenario {scenario!r}; there is {', '.join(catalogue)}.")
    scenarios = request.scenarios or tuple(catalogue)
    known = {variant for scenario in scenarios for variant in catalogue[scenario].variants}
    for variant in request.variants:
        if variant not in known:
            raise UsageError(
                f"There is no variant {variant!r} of {', '.join(scenarios)}; there is {', '.join(sorted(known))}."
            )


def _blocks(request: Request, matrix: Matrix, catalogue: Mapping[str, Offer]) -> Iterator[Block]:
    """The matrix's blocks of the scenarios that are asked for; of one that it has not, every variant."""
    for scenario in dict.fromkeys(request.scenarios or [block.scenario for block in matrix.blocks]):
        own = [block for block in matrix.blocks if block.scenario == scenario]
        yield from own or [Block(scenario, catalogue[scenario].variants, tuple(matrix.releases()))]
        for variant in request.variants:
            if variant in catalogue[scenario].variants and not any(variant in block.variants for block in own):
                named = {release for block in own for release in block.streams}
                yield Block(scenario, (variant,), tuple(named))


def _cells(request: Request, block: Block, brokers: Iterable[Release]) -> Iterator[Cell]:
    variants = [v for v in block.variants if v in request.variants or not request.variants]
    streams = _releases(request.streams or block.streams)
    if request.restarts:
        pairs: list[tuple[Release, Release | None]] = list(product(streams, _releases(request.restarts)))
    else:
        pairs = [(release, None) for release in streams]
        own = [(Release.parse(one), Release.parse(other)) for one, other in block.restarts]
        pairs += sorted(pair for pair in own if not request.streams or pair[0] in streams)
    for variant, (release, restart), broker in product(variants, pairs, brokers):
        yield Cell(block.scenario, variant, release, broker, restart)


def _releases(texts: Iterable[str]) -> list[Release]:
    return sorted({Release.parse(text) for text in texts})
