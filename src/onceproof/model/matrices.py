"""Matrices as data: ours (`matrices.toml`), and those that a team writes in a file of its own."""

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator

from onceproof.model.cell import Cell
from onceproof.model.decoding import AsText, as_check, decode
from onceproof.model.errors import UsageError
from onceproof.model.known_issues import LATER, MIXED, OF_BROKERS, IssueRegistry, KnownIssue, registry
from onceproof.model.published import NEWEST, is_word
from onceproof.model.release import Release

BROKER = "3.9.2"  # of single trials: serves every Kafka Streams release from 3.0 to 4.x; 3.9.1 has KAFKA-19690
BROKERS = "3.9"  # of a matrix that names none
FIRST_BAD, LAST_BAD, FIRST_GOOD = "first-bad", "last-bad", "first-good"
EVERY, EACH_LINE, NEXT_LINE = "every", "each-line", "next-line"  # of what is published, from 3.0.0 on
OF_BLOCKS = (FIRST_BAD, LAST_BAD, FIRST_GOOD, EVERY, EACH_LINE, NEXT_LINE)
MAX_TRIALS = 100
BUDGET = 6  # trials of a cell, at most
RISK = 0.05  # that a claimed green misses a bug, at most
DEFAULT_MATRIX = "first-look"
RENAMED = {"seed": DEFAULT_MATRIX}  # as stored requests and files of teams may name a matrix
FILE = Path(__file__).with_name("matrices.toml")
INCLUDES = "includes"  # in a file, see `_Including`
NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")


def _is_relative(text: str) -> bool:
    """Whether it is a word, of what is published or of the registry."""
    return is_word(text) or text in OF_BLOCKS


@as_check
def _of_streams(text: str) -> str:
    """The same text, if it names a release or is a word."""
    return text if _is_relative(text) else str(Release.parse(text))


@as_check
def _of_brokers(text: str) -> str:
    """The same, of brokers."""
    return text if _is_relative(text) else str(Release.of_brokers(text))


@as_check
def _of_matrix(text: str) -> str:
    """The same, of brokers of a whole matrix, for which words of the registry have no meaning."""
    return text if is_word(text) else str(Release.of_brokers(text))


OfStreams = Annotated[str, AfterValidator(_of_streams)]
CellOfKey = Annotated[Cell, AsText(Cell.parse, lambda cell: cell.key)]


def _name(text: str) -> str:
    if not NAME.fullmatch(text):
        raise ValueError("a matrix is named with lower-case letters, digits and hyphens, 40 at most")
    return text


def _next_line_is_paired(block: "Block") -> "Block":
    if NEXT_LINE in chain(*(pair for pair in block.restarts if EACH_LINE not in pair), block.streams):
        raise ValueError(f"{NEXT_LINE} has a meaning only together with {EACH_LINE}, as a pair of `restarts`")
    return block


@dataclass(frozen=True)
class Block:
    """Cells of one scenario: every variant on every release, and on every pair of releases with a restart between.

    With each of the brokers; if none are given, those of the matrix. A release may be a word (`model.published`), or
    one of blocks (`OF_BLOCKS`): `model.matrix.resolve` puts exact releases in their place.
    """

    scenario: str
    variants: tuple[str, ...]
    streams: tuple[OfStreams, ...] = ()
    restarts: tuple[tuple[OfStreams, OfStreams], ...] = ()
    brokers: tuple[Annotated[str, AfterValidator(_of_brokers)], ...] = ()


@dataclass(frozen=True)
class Matrix:
    """A named set of cells: those of the blocks, and single ones; or what another matrix lacks on some brokers."""

    name: Annotated[str, AfterValidator(_name)]
    description: str
    blocks: tuple[Annotated[Block, AfterValidator(_next_line_is_paired)], ...] = ()
    cells: tuple[CellOfKey, ...] = ()
    brokers: tuple[Annotated[str, AfterValidator(_of_matrix)], ...] = (BROKERS,)
    why_brokers: str = ""  # the reason for these, the end of a sentence
    covers: str = ""  # a matrix of which it has the cells that it lacks on `brokers` (`scenarios.cover`), and no others
    trials: int = 1
    budget: int = BUDGET
    risk: float = RISK
    plants: int = 0  # tried in each scenario on each release about which too little is known; one trial of each

    def releases(self) -> list[str]:
        """All releases of Kafka Streams that it names, in release order; words are left out."""
        named = {s for block in self.blocks for s in (*block.streams, *(r for pair in block.restarts for r in pair))}
        named |= {str(release) for cell in self.cells for release in (cell.streams, cell.running)}
        return sorted((name for name in named if not _is_relative(name)), key=Release.parse)

    def list_named(self) -> dict[str, list[str]]:
        """The scenarios that it names, each with the variants."""
        variants: dict[str, list[str]] = defaultdict(list)
        for block in self.blocks:
            variants[block.scenario] += block.variants
        for cell in self.cells:
            variants[cell.scenario].append(cell.variant)
        return dict(variants)

    def to_dict(self) -> dict[str, object]:
        """The content of a file under its name; `name` is given separately."""
        blocks = [vars(block) | {"restarts": [list(pair) for pair in block.restarts]} for block in self.blocks]
        return vars(self) | {"blocks": blocks, "cells": [cell.key for cell in self.cells]}


@dataclass(frozen=True)
class _Including:
    """The fields of a table in addition to the fields of a matrix."""

    includes: tuple[str, ...] = ()  # other matrices, whose blocks and cells a matrix has before its own


def parse_matrices(text: str, file: str, others: Mapping[str, Matrix] | None = None) -> dict[str, Matrix]:
    """Read the matrices of a file, as `matrices.toml` has them: a table each, under its name.

    Each may include `others`, and those that come before it.

    Raises:
        UsageError: it is not TOML, or not a matrix: the sentence names what is wrong, and what is possible.
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file} is not TOML: {error}.") from None
    matrices: dict[str, Matrix] = {}
    for name, table in data.items():
        if not isinstance(table, dict):
            raise UsageError(f"{file}: {name} must be a table, not {table!r}.")
        matrices[name] = matrix_from(table | {"name": name}, file, {**(others or {}), **matrices})
    return matrices


def read_matrix(file: Path) -> Matrix:
    """The one matrix of a team's file.

    Raises:
        UsageError: it cannot be read, does not hold exactly one matrix, or its name is one of ours.
    """
    try:
        matrices = parse_matrices(file.read_text(), str(file), MATRICES)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise UsageError(f"The matrix {file} cannot be read: {reason}.") from None
    if len(matrices) != 1:
        there_is = f"has {', '.join(matrices)}" if matrices else "is empty"
        raise UsageError(f"{file} {there_is}: write one matrix into a file, as a table under its name.")
    [(name, matrix)] = matrices.items()
    if name in MATRICES or name in RENAMED:
        raise UsageError(f"{file}: {name} is a matrix of Onceproof; give yours another name.")
    return matrix


def matrix_from(data: Mapping[str, Any], where: str, others: Mapping[str, Matrix] | None = None) -> Matrix:
    """Read what `Matrix.to_dict` gives; or a table that, with `includes`, names others whose cells it has, too.

    Raises:
        UsageError: it is no matrix.
    """
    where = f"{where}: {data.get('name', 'matrix')}"
    try:
        read: Matrix = decode(Matrix, {name: value for name, value in data.items() if name != INCLUDES})
        including: _Including = decode(_Including, {name: data[name] for name in (INCLUDES,) if name in data})
        included = _find_included(including.includes, others or {})
        return _check(_with(read, included, bool(data.get("brokers"))))
    except ValueError as error:
        raise UsageError(f"{where}: {error}.") from None


def _with(entries: Matrix, included: Sequence[Matrix], own_brokers: bool) -> Matrix:
    """A matrix that has the blocks and the cells of others before its own."""
    blocks = (*chain.from_iterable(_bring_brokers(matrix, own_brokers) for matrix in included), *entries.blocks)
    cells = (*chain.from_iterable(matrix.cells for matrix in included), *entries.cells)
    return replace(entries, blocks=blocks, cells=cells)


def _check(matrix: Matrix) -> Matrix:
    """The same matrix.

    Raises:
        ValueError: it has no cells, or some in addition to those that it covers.
    """
    has_some = bool(matrix.blocks or matrix.cells)
    if matrix.covers and has_some:
        raise ValueError(f"it covers {matrix.covers}, so it has no blocks, cells and includes of its own")
    if not matrix.covers and not has_some:
        raise ValueError("it has neither blocks nor cells")
    return matrix


def _bring_brokers(matrix: Matrix, own_brokers: bool) -> tuple[Block, ...]:
    """The blocks of an included matrix: with its brokers, unless the one that includes it names some."""
    return (
        matrix.blocks
        if own_brokers
        else tuple(replace(block, brokers=block.brokers or matrix.brokers) for block in matrix.blocks)
    )


def rename_old(name: str) -> str:
    """The name of a matrix of ours today."""
    return RENAMED.get(name, name)


def _find_included(included: Iterable[str], others: Mapping[str, Matrix]) -> list[Matrix]:
    names = [rename_old(name) for name in included]
    if unknown := [name for name in names if name not in others]:
        raise ValueError(f"there is no matrix {unknown[0]!r} to include; choose from {', '.join(others)}")
    if computed := [name for name in names if others[name].covers]:
        raise ValueError(f"{computed[0]} is computed and cannot be included; run it separately")
    return [others[name] for name in names]


def make_known_matrix(known: IssueRegistry) -> Matrix:
    """Each known issue on the first and the last release of each range that it affects, and where it is fixed.

    One that takes two releases is looked for on the way from these to the newest, one of brokers with the newest Kafka
    Streams. In each scenario it is looked for in the first variant that its row names, not where it is incidental.
    """
    blocks = tuple(
        Block(scenario, variants[:1], *_where(issue))
        for issue in known.issues
        for scenario, variants in issue.provoked.items()
    )
    description = "Every known issue on the first and last bad releases and the first good ones, by the registry."
    risk = 0.25  # of a first look, as that of `first-look`
    return Matrix("known", description, blocks, brokers=(NEWEST,), why_brokers="as in `nightly`", risk=risk)


def _where(issue: KnownIssue) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...], tuple[str, ...]]:
    """The releases, the pairs of releases, and the brokers on which the matrix `known` looks for an issue."""
    ends = [(str(first), NEWEST if last == LATER else str(last)) for first, last in issue.affected]
    bad = tuple(dict.fromkeys(chain.from_iterable(ends)))
    if issue.culprit == MIXED:
        return (), tuple((release, NEWEST) for release in bad), ()
    around = (*bad, *map(str, issue.fixed))
    return ((NEWEST,), (), around) if issue.culprit == OF_BROKERS else (around, (), ())


def _all() -> dict[str, Matrix]:
    known = make_known_matrix(registry())
    return {**parse_matrices(FILE.read_text(), FILE.name, {"known": known}), "known": known}


MATRICES = _all()
