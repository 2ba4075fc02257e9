"""From a request and its matrix to cells."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise, product

from onceproof.model.cell import Cell
from onceproof.model.errors import UsageError, choice
from onceproof.model.known_issues import LATER, OF_BROKERS, IssueRegistry, KnownIssue
from onceproof.model.matrices import (
    DEFAULT_MATRIX,
    EACH_LINE,
    EVERY,
    FIRST_BAD,
    FIRST_GOOD,
    LAST_BAD,
    MATRICES,
    MAX_TRIALS,
    NEXT_LINE,
    Block,
    Matrix,
    rename_old,
)
from onceproof.model.published import NEWEST, Published, is_word
from onceproof.model.release import Release


@dataclass(frozen=True)
class Offer:
    """The offer of a scenario: its variants, and why a cell cannot be run, if it cannot.

    `positive_control` is the variant and the release of Kafka Streams that must be red, or the releases that it goes
    from and to; `control_broker` the release of the brokers, if they are to blame. The `rolling` variants move to
    another release while they work.
    """

    variants: tuple[str, ...]
    positive_control: tuple[str, str] | tuple[str, str, str]
    refuse: Callable[[Cell], str | None] = lambda _: None
    rolling: tuple[str, ...] = ()
    control_broker: str | None = None

    def control(self, scenario: str, broker: Release, variant: str | None = None) -> Cell:
        """The cell of the positive control, with this broker unless it has its own; in another variant, if given."""
        usual, *way = self.positive_control
        streams, *restart_on = map(Release.parse, way)
        broker = Release.parse(self.control_broker) if self.control_broker else broker
        return Cell(scenario, variant or usual, streams, broker, *restart_on)


@dataclass(frozen=True)
class Request:
    """The request of a person or the schedule; an empty axis is the matrix's own.

    `matrix` is the name of one of ours, or a matrix itself. `trials` are run of each cell, whatever they show, and up
    to `budget` if its verdict needs more; without a `budget` no more. Positive controls are run more often than that if
    greens need it. A green may miss a bug with the probability `risk`.
    """

    matrix: str | Matrix = DEFAULT_MATRIX
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


def resolve(request: Request, ask: Callable[[], Published], known: IssueRegistry) -> Request:
    """The request with exact releases in place of words, and the matrix itself in place of its name.

    Words of the matrix in whose place the request names releases are dropped.

    Args:
        request: may have words, in its axes and in its matrix.
        ask: says what is published; called once, where a word takes it, else never.
        known: says what `first-bad`, `last-bad` and `first-good` are.

    Raises:
        UsageError: an unknown matrix, or a word that means nothing.
    """
    asked = cache(ask)

    def exact(texts: Iterable[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(str(asked().resolve(text)) if is_word(text) else text for text in texts))

    def several(text: str) -> list[str]:
        found = {EVERY: lambda: asked().releases, EACH_LINE: find_asked_lines}.get(text)
        return [text] if found is None else list(map(str, found()))

    def find_asked_lines() -> tuple[Release, ...]:
        return asked().newest_of_lines

    def name_releases(texts: Iterable[str], block: Block, *, brokers: bool = False) -> tuple[str, ...]:
        each = [word for text in texts for word in several(text)]
        return exact(name for text in each for name in _resolve_words(text, block, known, brokers=brokers))

    def pair_releases(before: str, after: str, block: Block) -> Iterable[tuple[str, str]]:
        if NEXT_LINE not in (before, after):
            return product(name_releases([before], block), name_releases([after], block))
        ups = pairwise(map(str, find_asked_lines()))
        return ups if after == NEXT_LINE else ((newer, older) for older, newer in ups)

    def of(block: Block) -> Block:
        pairs = [pair for before, after in block.restarts for pair in pair_releases(before, after, block)]
        return replace(
            block,
            streams=() if request.streams else name_releases(block.streams, block),
            restarts=() if request.restarts else tuple(dict.fromkeys(pair for pair in pairs if pair[0] != pair[1])),
            brokers=() if request.brokers else name_releases(block.brokers, block, brokers=True),
        )

    for text in (*request.streams, *request.brokers, *request.restarts):
        if not is_word(text):
            Release.of_brokers(text)  # refused before Maven is asked
    matrix = matrix_of(request)
    own = exact(matrix.brokers) if matrix.covers or not request.brokers else ()
    return replace(
        request,
        matrix=replace(matrix, blocks=tuple(map(of, matrix.blocks)), brokers=own),
        streams=exact(request.streams),
        brokers=exact(request.brokers),
        restarts=exact(request.restarts),
    )


def by_registry(known: IssueRegistry) -> Published:
    """The releases that the registry names: what is known to be published, where Maven cannot be asked."""
    ends = {end for issue in known.issues for affected in issue.affected for end in affected} - {LATER}
    return Published.of(
        {*ends, *(release for issue in known.issues for release in issue.fixed)}, "the newest of the registry"
    )


def _resolve_words(text: str, block: Block, known: IssueRegistry, *, brokers: bool) -> list[str]:
    """The releases, or words for them, that a text of a block means by the registry; itself if it is none of its words.

    Of the issues that must show in one of the block's variants, or, if there is none, in its scenario.

    Raises:
        UsageError: no issue must show there.
    """
    if text not in (FIRST_BAD, LAST_BAD, FIRST_GOOD):
        return [text]
    there = [i for i in known.issues if block.scenario in i.provoked and (i.culprit == OF_BROKERS) is brokers]
    of_variants = [i for i in there if not {*i.provoked[block.scenario]}.isdisjoint(block.variants)]
    if not there:
        whose = "of brokers" if brokers else "of Kafka Streams"
        raise UsageError(f"{text} means nothing in {block.scenario}: no known issue {whose} must show there.")
    return [name for issue in of_variants or there for name in _end(issue, text)]


def _end(issue: KnownIssue, word: str) -> list[str]:
    """The release that a word means of an issue: none where it is not fixed yet."""
    last = issue.affected[-1][1]
    if word == FIRST_BAD:
        return [str(issue.affected[0][0])]
    if word == LAST_BAD:
        return [NEWEST if last == LATER else str(last)]
    return [str(min(after))] if (after := [release for release in issue.fixed if release > last]) else []


def check_all_but_releases(request: Request, catalogue: Mapping[str, Offer]) -> Expansion:
    """Check what a request asks for, but its releases, so that a bad request does not wait for the list of releases.

    Returns:
        an expansion without cells.

    Raises:
        UsageError: an unknown matrix, scenario or variant, or a number of trials out of range.
    """
    matrix = matrix_of(request)
    trials = matrix.trials if request.trials is None else request.trials
    own = max(trials, matrix.budget) if request.trials is None else trials
    budget = own if request.budget is None else request.budget
    if not 1 <= trials <= MAX_TRIALS:
        raise UsageError(f"{trials} trials cannot be run: ask for 1 to {MAX_TRIALS} a cell.")
    if not trials <= budget <= MAX_TRIALS:
        raise UsageError(f"A budget of {budget} trials is not possible: ask for {trials} to {MAX_TRIALS} a cell.")
    risk = matrix.risk if request.risk is None else request.risk
    if not 0.01 <= risk <= 0.5:
        raise UsageError(f"A risk of {risk:g} cannot be asked for: ask for 0.01 to 0.5.")
    for scenario, variants in matrix.list_named().items():
        _check_names((scenario,), variants, catalogue)
    _check_names(request.scenarios or tuple(catalogue), request.variants, catalogue)
    return Expansion(matrix.name, (), trials, budget, risk, matrix.plants, {})


def expand(request: Request, catalogue: Mapping[str, Offer]) -> Expansion:
    """Make the cells of a request, scenario by scenario, releases in order.

    Args:
        request: the axes, without words (`resolve`).
        catalogue: what can be asked of each scenario (`onceproof.scenarios.CATALOGUE`).

    Raises:
        UsageError: an unknown matrix, scenario or variant, a malformed release, a number of trials out of range,
            or no cell that can be run.
    """
    matrix, planned = matrix_of(request), check_all_but_releases(request, catalogue)
    wanted = [
        cell
        for block in _blocks(request, matrix, catalogue)
        for cell in _cells(request, block, _of_brokers(request.brokers or block.brokers or matrix.brokers))
    ]
    wanted += [cell for cell in matrix.cells if _is_asked(request, cell)]
    order = list(dict.fromkeys(cell.scenario for cell in wanted))
    wanted.sort(key=lambda cell: order.index(cell.scenario))
    asked = {cell: catalogue[cell.scenario].refuse(cell) for cell in wanted}
    cells = tuple(cell for cell, reason in asked.items() if reason is None)
    refused = {cell: reason for cell, reason in asked.items() if reason is not None}
    if not cells:
        raise UsageError(
            " ".join(f"{cell.title} cannot be run: {reason}" for cell, reason in refused.items())
            or f"The request leaves no cell of the matrix {matrix.name}: name fewer variants, or others."
        )
    return replace(planned, cells=cells, refused=refused)


def with_controls(expansion: Expansion, catalogue: Mapping[str, Offer], known: IssueRegistry) -> Expansion:
    """Add the positive controls that the cells lack, with each broker.

    A variant that a known issue concerns has its own, on the release of the scenario's control. A scenario that still
    has no affected cell gets its control.
    """
    cells = dict.fromkeys(expansion.cells)
    for scenario, broker in dict.fromkeys((cell.scenario, cell.broker) for cell in expansion.cells):
        offer = catalogue[scenario]
        to_blame = Release.parse(offer.control_broker) if offer.control_broker else broker
        own = [cell for cell in cells if cell.scenario == scenario and cell.broker in (broker, to_blame)]
        affected = {cell.variant for cell in own if known.affecting(cell)}
        for variant in dict.fromkeys(cell.variant for cell in own):
            control = offer.control(scenario, broker, variant)
            if variant not in affected and known.affecting(control) and offer.refuse(control) is None:
                cells[control] = None
                affected.add(variant)
        if not affected:
            cells[offer.control(scenario, broker)] = None
    return replace(expansion, cells=tuple(cells))


def matrix_of(request: Request) -> Matrix:
    """The matrix of a request.

    Raises:
        UsageError: there is none of this name.
    """
    wanted = request.matrix
    if isinstance(wanted, Matrix):
        return wanted
    name = rename_old(wanted)
    if name not in MATRICES:
        raise UsageError(f"There is no matrix {wanted!r}; choose from {', '.join(MATRICES)}.")
    return MATRICES[name]


def _check_names(scenarios: tuple[str, ...], variants: Iterable[str], catalogue: Mapping[str, Offer]) -> None:
    for scenario in scenarios:
        if scenario not in catalogue:
            raise UsageError(f"There is no scenario {scenario!r}; {choice(scenario, catalogue)}")
    known = {variant for scenario in scenarios for variant in catalogue[scenario].variants}
    for variant in variants:
        if variant not in known:
            raise UsageError(
                f"There is no variant {variant!r} of {', '.join(scenarios)}; {choice(variant, sorted(known))}"
            )


def _blocks(request: Request, matrix: Matrix, catalogue: Mapping[str, Offer]) -> Iterator[Block]:
    """The matrix's blocks for the requested scenarios; for one that it lacks, every variant."""
    for scenario in dict.fromkeys(request.scenarios or [block.scenario for block in matrix.blocks]):
        own = [block for block in matrix.blocks if block.scenario == scenario]
        is_named = own or any(cell.scenario == scenario for cell in matrix.cells)
        yield from own if is_named else [Block(scenario, catalogue[scenario].variants, tuple(matrix.releases()))]
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
        own = [(Release.parse(before), Release.parse(after)) for before, after in block.restarts]
        pairs += sorted(pair for pair in own if not request.streams or pair[0] in streams)
    for variant, (release, restart), broker in product(variants, pairs, brokers):
        yield Cell(block.scenario, variant, release, broker, restart)


def _is_asked(request: Request, cell: Cell) -> bool:
    """Whether a request includes a cell of the matrix: on each axis, what it names."""
    axes = (
        (request.scenarios, cell.scenario),
        (request.variants, cell.variant),
        (request.streams, str(cell.streams)),
        (request.brokers, str(cell.broker)),
        (request.restarts, str(cell.restart_on)),
    )
    return all(value in named for named, value in axes if named)


def _releases(texts: Iterable[str]) -> list[Release]:
    return sorted({Release.parse(text) for text in texts})


def _of_brokers(texts: Iterable[str]) -> list[Release]:
    return sorted({Release.of_brokers(text) for text in texts})
