"""How long `issue explore` takes to find what is there, without a hint, compared with uniformly drawn schedules.

    .venv/bin/python benchmarks/searching.py [--target NAME]... [--seeds N] [--first SEED] [--minutes M]
        [--results FILE]

Each target is a release and what is to be found in it: a known issue that it has, or a bug that is planted. Some
are searched for in one scenario alone, where they do not show by default. A search ends when it has shown that, or
after M minutes. For each seed a search runs that begins with the defaults of each scenario, and then a uniform one;
prints a row for each target and way: searches that found it, the minutes of each (`> M`: not found) and their median,
and the same of trials, which a busy machine does not change. With a file of results, each search is appended to it, and
not made again.
"""

import argparse
import json
import math
import statistics
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from onceproof.campaigns.requests import ExploreRequest
from onceproof.campaigns.search.log import ExplorationFolder, Tried, read_lines
from onceproof.campaigns.search.verbs import ask_for, explore

HEAD = "| target | schedules | found | minutes | median | trials | median |\n|---|---|---|---|---|---|---|"


@dataclass(frozen=True)
class Target:
    """What is to be found on a release: a known issue, or a planted bug."""

    name: str
    streams: str
    scenario: str | None = None  # which alone is searched; None: all that `issue explore` searches by itself
    plant: bool = False

    def is_shown_by(self, line: Tried) -> bool:
        """Whether a trial shows it. An unknown anomaly on a release with a plant is the plant."""
        return line.is_new if self.plant else self.name in line.issues


OF_ALL = (
    Target("KAFKA-14172", "3.4.0"),
    Target("KAFKA-20685", "4.1.2"),
    Target("KAFKA-18943", "3.8.1"),
    Target("offsets-behind", "4.3.1", plant=True),
    Target("put-lost", "4.3.1", plant=True),
    Target("no-abort", "4.3.1", plant=True),
)
# None of these shows in the scenario as it is by default, with which a search begins.
OF_ONE = (
    Target("KAFKA-19943", "4.4.0", "table-join"),
    Target("KAFKA-19668", "4.4.0", "grouped-stream"),
    Target("KAFKA-18713", "3.9.0", "foreign-key-join"),
    Target("KAFKA-14864", "3.4.0", "leaks"),
    Target("KAFKA-15417", "3.4.0", "stream-join"),
    Target("KAFKA-7663", "3.7.2", "global-join"),
    Target("max.task.idle.ms=-1 (documented)", "4.4.0", "two-topics"),
    Target("KAFKA-19629", "3.9.0", "interactive-queries"),
    Target("KIP-1153 (no JIRA)", "4.4.0", "endings"),
    Target("emit-time-forgotten", "4.3.1", "windows", plant=True),
    Target("first-aggregator-for-all", "4.3.1", "windows", plant=True),
    Target("restored-window-lost", "4.3.1", "windows", plant=True),
    Target("right-window-left-out", "4.3.1", "windows", plant=True),
    Target("wait-begins-anew", "4.3.1", "windows", plant=True),
    Target("source-restored-to-end", "4.3.1", "grouped-table", plant=True),
    Target("behind-gap-lost", "4.3.1", "table-join", plant=True),
    Target("purged-too-far", "4.3.1", "table-join", plant=True),
    Target("isolation-ignored", "4.4.0", "interactive-queries", plant=True),
    Target("left-unasked", "4.3.1", "endings", plant=True),
)
TARGETS = {target.name: target for target in (*OF_ALL, *OF_ONE)}


class FoundError(Exception):
    """The search need not continue."""


@dataclass(frozen=True)
class Searched:
    """A search: after how many minutes it found its target, if it did, and its trials."""

    found: float | None
    trials: int


class Results:
    """What searches showed, in a file to which it is appended, if there is one; a line of JSON each."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        lines = file.read_text().splitlines() if file and file.exists() else ()
        answer = map(json.loads, lines)
        self._known = {frozenset(line["asked"].items()): Searched(line["found"], line["trials"]) for line in answer}

    def of(self, asked: dict[str, Any], run: Callable[[], Searched]) -> Searched:
        """That search, which is made if it is not known."""
        key = frozenset(asked.items())
        if key not in self._known:
            self._known[key] = run()
            if self._file:
                with self._file.open("a") as out:
                    out.write(json.dumps({"asked": asked, **asdict(self._known[key])}) + "\n")
        return self._known[key]


def search(target: Target, seed: int, minutes: float, *, uniform: bool) -> Searched:
    """Search until the target is found."""
    with tempfile.TemporaryDirectory() as home:
        folder = ExplorationFolder(Path(home, "20260101T000000-0001"))
        request = ExploreRequest(
            streams=(target.streams,),
            scenario=(target.scenario,) if target.scenario else (),
            seed=seed,
            bisect=False,
            uniform=uniform,
            plant=target.name if target.plant else None,
        )
        asked = ask_for(request, target.streams, folder.path.name, seed)

        def look(_phase: str) -> None:
            if any(map(target.is_shown_by, read_lines(folder.log_file))):
                raise FoundError

        with suppress(FoundError):
            explore(folder, asked, 60 * minutes, look, named=target.scenario is not None)
        lines = read_lines(folder.log_file)
        return Searched(next((line.at / 60 for line in lines if target.is_shown_by(line)), None), len(lines))


def row(target: Target, way: str, searched: Sequence[Searched], minutes: float) -> str:
    """What the searches for a target came to."""
    found = [search.found is not None for search in searched]
    taken = [minutes if search.found is None else search.found for search in searched]
    cells = [
        f"{target.name} on {target.streams}",
        way,
        f"{sum(found)}/{len(searched)}",
        *_list_values(taken, found, ".1f"),
        *_list_values([search.trials for search in searched], found, "g"),
    ]
    return f"| {' | '.join(cells)} |"


def _list_values(values: Sequence[float], found: Sequence[bool], form: str) -> tuple[str, str]:
    """The values, and their median; those without success (`> VALUE`) count as longer than any other."""
    texts = [f"{value:{form}}" if there else f"> {value:g}" for value, there in zip(values, found, strict=True)]
    ranked = sorted(value if there else math.inf for value, there in zip(values, found, strict=True))
    middle = statistics.median_high(ranked)
    return ", ".join(texts), f"> {max(values):g}" if math.isinf(middle) else f"{middle:{form}}"


def main() -> None:
    """Search, and print what was found when."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", action="append", choices=TARGETS, metavar="NAME")
    parser.add_argument("--seeds", type=int, default=5, metavar="N")
    parser.add_argument("--first", type=int, default=1, metavar="SEED")
    parser.add_argument("--minutes", type=float, default=10, metavar="M")
    parser.add_argument("--results", type=Path, metavar="FILE", help="to append to, and to continue from")
    asked = parser.parse_args()
    results = Results(asked.results)
    print(HEAD, flush=True)
    for name in asked.target or TARGETS:
        ways: dict[str, list[Searched]] = {"first": [], "uniform": []}
        for seed in range(asked.first, asked.first + asked.seeds):
            for way, searched in ways.items():
                this = {"target": name, "way": way, "seed": seed, "minutes": asked.minutes}
                run = partial(search, TARGETS[name], seed, asked.minutes, uniform=way == "uniform")
                searched.append(results.of(this, run))
        for way, searched in ways.items():
            print(row(TARGETS[name], way, searched, asked.minutes), flush=True)


if __name__ == "__main__":
    main()
