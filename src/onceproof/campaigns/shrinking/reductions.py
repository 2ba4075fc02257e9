"""Reduces a program that is red to a smallest one that stays red.

Greedy, one reduction at a time, the largest first: a candidate costs trials of some ten seconds each, so the order is
what matters, and a general-purpose shrinker, which tries thousands, is no help here.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

T = TypeVar("T")
# Numbers that are halved, the most important first, and below which each of them makes no sense.
NUMBERS = {"partitions": 1, "keys": 1, "threads": 1, "records.per.step": 10, "records": 100}


@dataclass(frozen=True)
class Candidate:
    """A program, and the numbers that it runs with."""

    program: tuple[int, ...]
    numbers: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, program: list[int], parameters: Mapping[str, int]) -> "Candidate":
        """The program with those of the parameters that can be reduced."""
        return cls(tuple(program), tuple((name, int(parameters[name])) for name in NUMBERS))

    @property
    def parameters(self) -> dict[str, int | str]:
        """Parameters of a trial."""
        return {"program": " ".join(map(str, self.program)), "instances": max(self.program), **dict(self.numbers)}

    def __str__(self) -> str:
        numbers = ", ".join(f"{name} {value:,}" for name, value in self.numbers)
        return f"`{self.parameters['program']}` ({numbers})"


def smaller(candidate: Candidate) -> Iterator[Candidate]:
    """Everything that is one reduction away: fewer steps, fewer instances, smaller numbers."""
    program = candidate.program
    seen = set()
    size = max(1, len(program) // 2)
    while size:
        for at in range(len(program) - size + 1):
            shorter = _renumber((*program[:at], *program[at + size :]))
            if shorter and shorter not in seen:
                seen.add(shorter)
                yield replace(candidate, program=shorter)
        size //= 2
    for dropped in sorted(set(program), reverse=True):  # what one instance did, another may do
        for kept in sorted(set(program) - {dropped}):
            merged = _renumber(tuple(kept if number == dropped else number for number in program))
            if merged not in seen:
                seen.add(merged)
                yield replace(candidate, program=merged)
    for name, least in NUMBERS.items():
        value = dict(candidate.numbers)[name]
        for less in dict.fromkeys((least, value // 2)):
            if least <= less < value:
                yield replace(candidate, numbers=tuple({**dict(candidate.numbers), name: less}.items()))


def _renumber(program: tuple[int, ...]) -> tuple[int, ...]:
    """The same with instances numbered in the order in which they come."""
    numbers = {number: place for place, number in enumerate(dict.fromkeys(program), 1)}
    return tuple(numbers[number] for number in program)


def shrink(
    candidate: T,
    is_red: Callable[[T], bool],
    on: Callable[[], bool],
    reductions: Callable[[T], Iterable[T]],
) -> T:
    """The smallest that is found: nothing that is one reduction away is red, or `on` said to stop.

    After a reduction it continues with the next one, and comes back to those before it, which were not red of something
    larger, last.

    Args:
        candidate: is red.
        is_red: tries a candidate; called once for each.
        on: whether to continue.
        reductions: all that is one reduction away from a candidate, as `smaller`.
    """
    tried, begin = {candidate}, 0
    while True:
        there = list(reductions(candidate))
        places = range(len(there))
        for place in (*places[begin:], *places[:begin]):
            less = there[place]
            if less in tried:
                continue
            if not on():
                return candidate
            tried.add(less)
            if is_red(less):
                candidate, begin = less, place
                break
        else:
            return candidate
