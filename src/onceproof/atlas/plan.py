"""The cells that an atlas can have, and those of one machine of several."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from onceproof.installation import Installation
from onceproof.lab.releases import read_remembered_releases
from onceproof.model.cell import Cell
from onceproof.model.errors import UsageError
from onceproof.model.known_issues import registry
from onceproof.model.matrices import Matrix
from onceproof.model.matrix import Request, by_registry, expand
from onceproof.model.published import Published
from onceproof.scenarios import CATALOGUE
from onceproof.scenarios.cover import exact

MATRIX = "atlas"


def possible_cells(installation: Installation) -> tuple[Cell, ...]:
    """The cells of the matrix `atlas` that can be run, by what is known to be published, without asking Maven."""
    known = read_published(installation)
    return expand(exact(Request(MATRIX), lambda: known, registry(), CATALOGUE), CATALOGUE).cells


def read_published(installation: Installation) -> Published:
    """The published releases, as far as they are known without asking Maven.

    Those of the registry are among them: only some may have been resolved here, and a matrix may name a line of which
    none was.
    """
    registered = by_registry(registry())
    remembered = read_remembered_releases(installation)
    if remembered is None:
        return registered
    return Published.of((*registered.releases, *remembered.releases), remembered.source)


@dataclass(frozen=True)
class Shard:
    """A part of a matrix for one machine of several, for example `2/5`."""

    number: int  # from 1 on
    of: int

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Read `I/N`.

        Raises:
            UsageError: it is of another form, or I is not from 1 to N.
        """
        found = re.fullmatch(r"([1-9]\d{0,3})/([1-9]\d{0,3})", text, re.ASCII)
        if found is None or int(found[1]) > int(found[2]):
            raise UsageError(f"{text!r} is no shard: write which of how many, from 1/N to N/N, for example 2/5.")
        return cls(int(found[1]), int(found[2]))

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def cells(self, cells: Sequence[Cell]) -> list[Cell]:
        """The cells of this shard, in their order; each cell is in one shard, whichever machine asks.

        A variant with its brokers is in one shard with all its releases, so that the affected ones are controls of the
        others. The largest such groups are dealt out first, each to the shard that has the least.
        """
        groups: dict[tuple[str, str, str], list[Cell]] = defaultdict(list)
        for cell in cells:
            groups[cell.scenario, cell.variant, str(cell.broker)].append(cell)
        shards: list[list[Cell]] = [[] for _ in range(self.of)]
        for name in sorted(groups, key=lambda name: (-len(groups[name]), name)):
            min(shards, key=len).extend(groups[name])
        shard = set(shards[self.number - 1])
        return [cell for cell in cells if cell in shard]


def select_shard(request: Request, shard: Shard) -> Request:
    """The request for the cells of a shard alone.

    Args:
        request: with exact releases (`scenarios.cover.exact`).
        shard: which.

    Raises:
        UsageError: as of `expand`, or the shard has no cell.
    """
    expansion = expand(request, CATALOGUE)
    cells = shard.cells(expansion.cells)
    matrix = request.matrix
    if not isinstance(matrix, Matrix) or not cells:
        raise UsageError(
            f"The shard {shard} of the matrix {expansion.matrix} has no cell: it has fewer variants than shards, so "
            "ask for fewer."
        )
    alone = replace(matrix, blocks=(), cells=tuple(cells), covers="")
    return Request(alone, trials=request.trials, budget=request.budget, risk=request.risk)
