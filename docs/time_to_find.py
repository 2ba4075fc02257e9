"""Measures how many cases `onceproof fuzz` draws until it finds each known issue of a release, by uniform draws, too.

`python docs/time_to_find.py RELEASE...` prints a table for docs/fuzzing.md. Only cases are run that have what an issue
needs: no other one can be known to be red by it, so the number of the first one is that of a whole search.
"""

from collections.abc import Iterable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from onceproof.campaigns.fuzz.grammar import Case, draw
from onceproof.campaigns.fuzz.known import IssueEffect, causes_in, explain
from onceproof.campaigns.fuzz.relational import Difference, JudgedCase, judge
from onceproof.lab.lane import Lane
from onceproof.model.release import Release
from onceproof.settings import get_settings

NEVER = float("inf")


def could_strike(cause: IssueEffect, case: Case) -> bool:
    """Whether a case has what the cause needs."""
    struck = cause.struck(case, case.steps)
    return bool(struck) and cause.avoided(case, struck) != case


def first_reds(lane: Lane, seed: int, cases: int, *, uniform: bool) -> dict[str, int]:
    """By known issue the cases that had been drawn when the first one was red by it."""
    found: dict[str, int] = {}
    causes = causes_in(lane.release)

    def run(case: Case) -> JudgedCase:
        answer = lane.run(case.encoded)
        if "failed" in answer:
            return JudgedCase((Difference(case.leaves[0].name, "failed", answer["failed"]),))
        return judge(case, answer["outputs"], lane.release)

    for number in range(cases):
        case = draw(seed, number, lane.release, uniform=uniform)
        open_ones = (cause for cause in causes if not found.keys() >= set(cause.shows.values()))
        if any(could_strike(cause, case) for cause in open_ones) and (judged := run(case)).differences:
            for key in explain(case, judged, causes, run).keys:
                found.setdefault(key, number + 1)
    return found


def shown(found: Iterable[float]) -> str:
    """The median of all seeds, and how many of them found it."""
    cases = list(found)
    middle = f"{median(cases):,.0f}" if median(cases) < NEVER else "—"
    return f"{middle} ({sum(one < NEVER for one in cases)} of {len(cases)})"


def main(
    releases: list[str],
    seeds: Annotated[int, typer.Option(help="From 1 on.")] = 5,
    cases: Annotated[int, typer.Option(help="Of each seed, by either kind of draws.")] = 3000,
) -> None:
    """Print a row for each known issue of each release."""
    typer.echo("| failure | release | uniform draws | draws of `fuzz` |\n| -- | -- | -- | -- |")
    for release in map(Release.parse, releases):
        runs: dict[bool, list[dict[str, int]]] = {True: [], False: []}
        with TemporaryDirectory() as folder, Lane(get_settings().installation, release, Path(folder, "log")) as lane:
            for seed in range(1, seeds + 1):
                for uniform, found in runs.items():
                    found.append(first_reds(lane, seed, cases, uniform=uniform))
                    typer.echo(f"{release}, seed {seed}, {'uniform' if uniform else 'own'}: {found[-1]}", err=True)
        for key in dict.fromkeys(key for cause in causes_in(release) for key in cause.shows.values()):
            uniform, own = (shown(one.get(key, NEVER) for one in runs[kind]) for kind in (True, False))
            typer.echo(f"| {key} | {release} | {uniform} | {own} |")


if __name__ == "__main__":
    typer.run(main)
