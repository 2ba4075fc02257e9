"""The cells that a matrix lacks for every two of its values to meet, and no more: a pairwise cover."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import groupby

from covertable import make

from onceproof.model.cell import Cell
from onceproof.model.known_issues import IssueRegistry
from onceproof.model.matrices import Matrix
from onceproof.model.matrix import Offer, Request, check_all_but_releases, expand, resolve
from onceproof.model.published import Published
from onceproof.model.release import Release

AXES = ("variant", "streams", "broker")


def exact(
    request: Request, ask: Callable[[], Published], known: IssueRegistry, catalogue: Mapping[str, Offer]
) -> Request:
    """The request as it can be expanded: with exact releases, and with the cells that a matrix computes.

    Args:
        request: may have words.
        ask: says what is published, where a word takes it.
        known: says what the words of the registry mean.
        catalogue: what can be asked of each scenario.

    Raises:
        UsageError: as `resolve` and `check_all_but_releases` do.
    """
    check_all_but_releases(request, catalogue)
    found = resolve(request, ask, known)
    matrix = found.matrix
    if not isinstance(matrix, Matrix) or not matrix.covers:
        return found
    covered = resolve(Request(matrix.covers, scenarios=request.scenarios), ask, known)
    cells = lacking(expand(covered, catalogue).cells, map(Release.of_brokers, matrix.brokers), catalogue)
    return replace(found, matrix=replace(matrix, cells=tuple(cells), covers=""))


def lacking(cells: Iterable[Cell], brokers: Iterable[Release], catalogue: Mapping[str, Offer]) -> list[Cell]:
    """A few cells that, together with the existing ones, let each variant, release and broker meet each other one.

    What fails only where three of them meet may be missed; that is the price of a tenth of the cells. Cells with a
    restart do not count, and cells that cannot be run are left out.

    Args:
        cells: those of a matrix, scenario by scenario.
        brokers: releases of brokers, in addition to those of the cells.
        catalogue: what can be asked of each scenario.
    """
    asked = list(brokers)
    groups = groupby(cells, lambda cell: cell.scenario)
    return [cell for scenario, blocks in groups for cell in _of_scenario(scenario, blocks, asked, catalogue[scenario])]


def _of_scenario(scenario: str, cells: Iterable[Cell], brokers: list[Release], offer: Offer) -> Iterator[Cell]:
    there_are = [{axis: getattr(cell, axis) for axis in AXES} for cell in cells if cell.restart_on is None]
    if not there_are:
        return
    factors = {axis: list(dict.fromkeys(row[axis] for row in there_are)) for axis in AXES}
    factors["broker"] = list(dict.fromkeys([*factors["broker"], *brokers]))
    constraint = {
        "operator": "fn",
        "requires": AXES,
        "evaluate": lambda row: offer.refuse(Cell(scenario, **row)) is None,
    }
    covering = make(factors, presets=there_are, constraints=[constraint])
    yield from (Cell(scenario, **row) for row in covering if row not in there_are)
