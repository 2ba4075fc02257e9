"""The matrix as shown: scenario and variant down, releases across; restarts and rolling upgrades by pairs."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from onceproof.model.cell import Cell
from onceproof.model.known_issues import registry
from onceproof.model.release import Release
from onceproof.model.verdict import Verdict
from onceproof.results.history import NEW, SLOWER, CellChange
from onceproof.results.matrix_query import DatedVerdict, KnownVerdicts
from onceproof.results.table import change_line
from onceproof.scenarios import CATALOGUE

BAD = (Verdict.REGRESSION, Verdict.ERROR, Verdict.INCONCLUSIVE, Verdict.FIXED)  # not as the registry expects
PLAIN, RESTARTED, ROLLED = "Releases of Kafka Streams", "Restarted on another release", "Rolled to another release"
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True)
class Filters:
    """The selection; empty means all."""

    run: str = ""
    scenario: str = ""
    verdict: str = ""
    broker: str = ""
    only: str = ""  # `run`: only the cells of the run itself, no stale ones

    @property
    def query(self) -> dict[str, str]:
        """The query of the link to this view."""
        return {name: value for name, value in asdict(self).items() if value}


@dataclass(frozen=True)
class Square:
    """One cell of the matrix."""

    key: str
    title: str
    run: str
    verdict: Verdict
    sign: str
    rate: str
    change: str  # what changed since the last run, or nothing
    stale: str  # day of the run, if that is an older one, or nothing


@dataclass(frozen=True)
class MatrixRow:
    """A variant of a scenario, or a pair of releases; an entry for each column. `broker` only where several are."""

    name: str
    broker: str
    squares: Sequence[Square | None]


@dataclass(frozen=True)
class MatrixTable:
    """A table: its columns, and its rows by scenario."""

    title: str
    columns: Sequence[str]
    scenarios: Mapping[str, Sequence[MatrixRow]]


@dataclass(frozen=True)
class MatrixView:
    """All that the page of the matrix shows of a run."""

    run: str
    when: str
    name: str
    headline: str
    worst: Verdict  # which the headline names
    counts: Mapping[Verdict, int]
    earlier: Mapping[Verdict, int]  # how many cells that the run lacked ended badly before it
    changes: Sequence[Mapping[str, Any]]
    new_cells: int
    blocks: Sequence[MatrixTable]
    choices: Mapping[str, Sequence[str]]
    is_first: bool  # there is no earlier run to compare with


def matrix_of(known: KnownVerdicts, filters: Filters) -> MatrixView:
    """The shown part of a run, and of cells that only earlier runs had."""
    last = {cell: past[0] for cell, past in known.past.items()}
    changes = known.changes
    kinds: dict[Cell, str] = {}
    for change in changes:
        if change.kind != NEW:
            kinds.setdefault(change.now.cell, change.kind)
    shown = {cell: dated for cell, dated in last.items() if _is_wanted(dated, known, filters)}
    several = len({cell.broker for cell in last}) > 1
    squares = {cell: _square(dated, known, kinds.get(cell, "")) for cell, dated in shown.items()}
    counts = worst_first(Counter(judged.verdict for judged in known.cells))
    headline, worst = _headline(counts)
    return MatrixView(
        known.run,
        moment(known.created),
        known.matrix,
        headline,
        worst,
        counts,
        worst_first(Counter(v for v in _stale(known) if v in BAD)),
        [_change_view(change) for change in changes if change.kind != NEW],
        sum(change.kind == NEW for change in changes),
        [block for block in _blocks(squares, several) if block.scenarios],
        {
            "scenario": sorted({cell.scenario for cell in last}),
            "verdict": [str(v) for v in Verdict if v in {dated.judged.verdict for dated in last.values()}],
            "broker": [str(broker) for broker in sorted({cell.broker for cell in last})],
        },
        all(dated.judged.run == known.run for past in known.past.values() for dated in past),
    )


def _stale(known: KnownVerdicts) -> Iterable[Verdict]:
    """The last verdicts of the cells that the run itself lacks."""
    return (past[0].judged.verdict for past in known.past.values() if past[0].judged.run != known.run)


def worst_first(counts: Mapping[Verdict, int]) -> dict[Verdict, int]:
    """How many cells have each verdict, in the order in which people want to know."""
    return {verdict: counts[verdict] for verdict in Verdict if counts.get(verdict)}


def _is_wanted(dated: DatedVerdict, known: KnownVerdicts, filters: Filters) -> bool:
    judged = dated.judged
    wanted = {"scenario": judged.cell.scenario, "verdict": str(judged.verdict), "broker": str(judged.cell.broker)}
    if filters.only and judged.run != known.run:
        return False
    return all(getattr(filters, name) in ("", value) for name, value in wanted.items())


def _headline(counts: Mapping[Verdict, int]) -> tuple[str, Verdict]:
    """The run in a few words, and the verdict that they are about."""
    for verdict, one, several in (
        (Verdict.REGRESSION, "1 cell regressed", "{} cells regressed"),
        (Verdict.ERROR, "1 cell could not be tested", "{} cells could not be tested"),
        (Verdict.INCONCLUSIVE, "1 cell is inconclusive", "{} cells are inconclusive"),
        (Verdict.FIXED, "1 cell is fixed, against the registry", "{} cells are fixed, against the registry"),
    ):
        if count := counts.get(verdict, 0):
            return (one if count == 1 else several.format(count)), verdict
    if counts.get(Verdict.PROVISIONAL, 0):
        return "All as the registry of known issues expects, at a first look", Verdict.PROVISIONAL
    return "All as the registry of known issues expects", Verdict.CLEAN


def _change_view(change: CellChange) -> dict[str, object]:
    before = change.before.verdict if change.before else None
    line = change_line(change.to_dict()).removeprefix(f"{change.kind}: ")
    return {
        "kind": change.kind,
        "line": line,
        "key": change.now.cell.key,
        "verdict": str(change.now.verdict),
        "sign": change.now.verdict.sign,
        "before": "" if before is None or change.kind == SLOWER else str(before),
    }


def _square(dated: DatedVerdict, known: KnownVerdicts, change: str) -> Square:
    judged = dated.judged
    stale = "" if judged.run == known.run else day(dated.created)
    title = f"{judged.cell.title}: {judged.verdict}, {judged.red} of {judged.counted} trials red"
    blind = [issue.key for issue in registry().blind(judged.cell)]
    title += f"; blind here for what looks like {' or '.join(blind)}" if blind else ""
    title += f"; {change}" if change else ""
    title += f"; stale, from run {judged.run}" if stale else ""
    return Square(
        judged.cell.key,
        title,
        judged.run,
        judged.verdict,
        judged.verdict.sign,
        f"{judged.red}/{judged.counted}",
        change,
        stale,
    )


def _blocks(squares: Mapping[Cell, Square], several_brokers: bool) -> Iterable[MatrixTable]:
    kinds: dict[str, dict[Cell, Square]] = {title: {} for title in (PLAIN, RESTARTED, ROLLED)}
    for cell, square in squares.items():
        kinds[_kind(cell)][cell] = square
    yield _block(PLAIN, kinds[PLAIN], several_brokers, lambda cell: (cell.streams,), lambda cell: cell.variant)
    yield _block(RESTARTED, kinds[RESTARTED], several_brokers, _pair, lambda cell: cell.variant)
    yield _block(ROLLED, kinds[ROLLED], several_brokers, lambda cell: (cell.variant,), lambda cell: cell.releases)


def _kind(cell: Cell) -> str:
    if cell.restart_on is None:
        return PLAIN
    offer = CATALOGUE.get(cell.scenario)  # there may be cells of a scenario that no longer exists
    return ROLLED if offer and cell.variant in offer.rolling else RESTARTED


def _pair(cell: Cell) -> tuple[Release, ...]:
    return (cell.streams, cell.running)


def _block(
    title: str,
    squares: Mapping[Cell, Square],
    several_brokers: bool,
    column: Callable[[Cell], tuple[Any, ...]],
    row: Callable[[Cell], str],
) -> MatrixTable:
    columns = sorted({column(cell) for cell in squares})
    rows: dict[tuple[str, str, Release], dict[tuple[Any, ...], Square]] = defaultdict(dict)
    order = {scenario: number for number, scenario in enumerate(dict.fromkeys(cell.scenario for cell in squares))}
    for cell, square in squares.items():
        rows[cell.scenario, row(cell), cell.broker][column(cell)] = square
    scenarios: dict[str, list[MatrixRow]] = {scenario: [] for scenario in order}
    for (scenario, name, broker), of_row in rows.items():
        brokers = str(broker) if several_brokers else ""
        scenarios[scenario].append(MatrixRow(name, brokers, [of_row.get(key) for key in columns]))
    return MatrixTable(title, [" → ".join(map(str, key)) for key in columns], scenarios)


def format_begin(run: str) -> str:
    """When a run began, by its id, as `moment` has it."""
    return moment(datetime.strptime(run[:15], "%Y%m%dT%H%M%S").replace(tzinfo=UTC).isoformat())


def moment(created: str) -> str:
    """For example `21 Nov 2026, 14:26 UTC`."""
    return f"{day(created)} {created[:4]}, {created[11:16]} UTC"


def minute(created: str) -> str:
    """For example `21 Nov, 14:26`."""
    return f"{day(created)}, {created[11:16]}"


def day(created: str) -> str:
    """For example `21 Nov`."""
    return f"{int(created[8:10])} {MONTHS[int(created[5:7]) - 1]}"
