"""Planted bugs: found by trials, and by Kafka's own integration tests of the same release with the same agent.

    .venv/bin/python benchmarks/planted.py [--streams V]... [--plant NAME]... [--minutes N] [--at-once N]
        [--results FILE]

Each plant is tried in the trials that claim to find it, on brokers of their own, and in Kafka's classes, the cheapest
first, until one finds it. A class first runs without a plant: one that is not green then is left out. It finds a plant
if that fired and a test failed, or the class hung. Each is tried once. Classes mostly wait, so some run at once.

What has not begun after N minutes is left undone. With a file of results nothing is done twice, and portions add up:
both releases, all plants:

    .venv/bin/python benchmarks/planted.py --streams 3.9.1 --streams 4.3.1 --minutes 180 --results FILE
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.kafka_tests import Ended, run_class
from onceproof.campaigns.sensitivity.plantings import Planting, plan_trials, try_planned
from onceproof.harness import harness_version
from onceproof.model.errors import UsageError
from onceproof.model.matrices import BROKER
from onceproof.model.plants import Claim, plant, plants
from onceproof.model.published import NEWEST
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.pipeline.steps import exact_releases
from onceproof.settings import get_settings

# The cheap ones first.
CLASSES = (
    "StandbyTaskEOSMultiRebalanceIntegrationTest",
    "RebalanceIntegrationTest",
    "StoreQueryIntegrationTest",
    "StandbyTaskEOSIntegrationTest",
    "RestoreIntegrationTest",
    "EosIntegrationTest",
)
# Bugs of all parts, which both sides have a chance to see, as far as they apply to a release.
PLANTS = (
    "stale-cache",
    "eviction-lost",
    "flush-skipped",
    "put-lost",
    "restore-ends-early",
    "offsets-outside-transaction",
    "offsets-ahead",
    "batch-lost",
    "record-twice",
    "record-skipped",
)
TRIALS, TESTS = "trials", "Kafka's tests"
LEAST = 60.0  # seconds that must be left for a trial to begin
HEALTHY = 1500.0  # seconds that a class gets without a plant
PATIENCE = 4  # a class hangs when it takes this many times what it takes without a plant, and a minute


@dataclass(frozen=True)
class Job:
    """A trial of a scenario or a class of Kafka's tests, with a plant or (a class only) without."""

    release: str
    side: str
    name: str
    plant: str | None = None


@dataclass(frozen=True)
class Done:
    """The result of a job: whether a bug was found (None: the harness failed), and how, with what it showed."""

    job: Job
    found: bool | None
    how: str
    seconds: float
    fired: int
    harness: str


def claims(name: str, release: str) -> list[Claim]:
    """Where trials claim to find a plant; none where a known issue of the release would hide it."""
    possible = []
    for claim in plant(name).claims:
        try:
            claim.cell(Release.parse(release), Release.parse(BROKER))
        except UsageError:
            continue
        possible.append(claim)
    return possible


def next_jobs(releases: Sequence[str], names: Sequence[str], done: Iterable[Done]) -> list[Job]:
    """What can be done next, in order; nothing if all is done. A trial runs alone."""
    known = {d.job: d for d in done}
    pairs = [(r, name) for r, name in product(releases, names) if plant(name).applies(Release.parse(r))]
    for release, name in pairs:
        if trial := first_left((Job(release, TRIALS, c.scenario, name) for c in claims(name, release)), known):
            return [trial]
    tests = {test for release, name in pairs if (test := first_left(classes(release, name, known), known))}
    return sorted(tests, key=lambda job: (CLASSES.index(job.name), job.plant or ""))


def first_left(jobs: Iterable[Job], known: Mapping[Job, Done]) -> Job | None:
    """The first job that is not done, unless an earlier one has found its plant."""
    for job in jobs:
        if job not in known:
            return job
        if job.plant and known[job].found:
            return None
    return None


def classes(release: str, name: str, known: Mapping[Job, Done]) -> Iterator[Job]:
    """The classes, each without the plant and then, if it was green, with it."""
    for test in CLASSES:
        yield (healthy := Job(release, TESTS, test))
        if not known[healthy].found:
            yield replace(healthy, plant=name)


def run_trial_of(job: Job) -> Done:
    """A trial with the plant, from brokers up to drained; a second one if the harness failed."""
    release, broker = Release.parse(job.release), Release.parse(BROKER)
    claim = next(c for c in claims(str(job.plant), job.release) if c.scenario == job.name)
    planting = Planting(plant(str(job.plant)), claim.cell(release, broker), claim)
    begin = time.monotonic()
    for seed in (1, 2):
        with tempfile.TemporaryDirectory() as folder:
            run = RunFolder(Path(folder, "20260101T000000-0000"))
            [trial] = try_planned(
                get_settings().installation, run, plan_trials(run.run_id, [planting], 1, seed), broker, lambda _: None
            )
        if trial.found or not trial.error:
            break
    found = None if trial.error and not trial.found else trial.found
    seen = ", ".join(f"{count:,} {name}" for name, count in trial.anomalies.items()) or "no anomaly"
    how = str(trial.error) if found is None else seen
    return Done(job, found, how, time.monotonic() - begin, trial.fired, trial.harness)


def run_class_of(job: Job, limit: float) -> Done:
    """A class of Kafka's tests."""
    ended = run_class(Release.parse(job.release), job.name, limit, job.plant)
    return Done(job, is_found(job, ended), summary(ended), ended.seconds, ended.fired, harness_version())


def is_found(job: Job, ended: Ended) -> bool:
    """Whether a class says that something is wrong; with a plant only if that did its harm."""
    return ended.how != "passed" and (job.plant is None or ended.fired > 0)


def summary(ended: Ended) -> str:
    """How it ended, and in which test."""
    return f"{ended.how}: {ended.failed}" if ended.failed else ended.how


def rows(releases: Sequence[str], names: Sequence[str], done: Sequence[Done]) -> Iterator[tuple[str, ...]]:
    """Release, plant, and for each side what found it and in how many seconds, including all that it tried before."""
    for release in releases:
        red = [d for d in done if d.job.release == release and d.job.plant is None and d.found]
        for name in names:
            of_plant = [d for d in done if d.job.release == release and d.job.plant == name]
            trials, tests = ([d for d in of_plant if d.job.side == side] for side in (TRIALS, TESTS))
            if of_plant:
                yield (
                    release,
                    name,
                    *outcome(trials, "claims"),
                    *outcome(tests, f"of {len(CLASSES) - len(red)} classes"),
                )


def outcome(tried: Sequence[Done], noun: str) -> tuple[str, str]:
    """The result of one side for a plant, and its seconds."""
    if not tried:
        return "not tried", ""
    seconds = f"{sum(d.seconds for d in tried):.0f}"
    if found := next((d for d in tried if d.found), None):
        return f"{found.job.name}: {found.how}", seconds
    if any(d.found is None for d in tried):
        return f"error: {tried[-1].how}", seconds
    return f"{'not found' if any(d.fired for d in tried) else 'never fired'} in {len(tried)} {noun}", seconds


def totals(release: str, done: Sequence[Done]) -> str:
    """How many plants each side found, of those that it tried, in how many seconds."""
    parts = []
    for side in (TRIALS, TESTS):
        of_side = [d for d in done if d.job.release == release and d.job.side == side and d.job.plant]
        tried, found = {d.job.plant for d in of_side}, {d.job.plant for d in of_side if d.found}
        parts.append(f"{side} found {len(found)} of {len(tried)} in {sum(d.seconds for d in of_side):.0f} s")
    return f"{release}: {', '.join(parts)}"


def read_results(file: Path | None) -> list[Done]:
    """What a file of results has."""
    if file is None or not file.is_file():
        return []
    return [Done(**{**line, "job": Job(**line["job"])}) for line in map(json.loads, file.read_text().splitlines())]


def write(file: Path, one: Done) -> None:
    """Add a result to the file."""
    with file.open("a") as results:
        results.write(json.dumps(asdict(one)) + "\n")


def show(asked: argparse.Namespace, done: Sequence[Done]) -> None:
    """Print the classes, the table and the totals."""
    console = Console(width=160)
    for release in asked.streams:
        healthy = [d for d in done if d.job.release == release and d.job.plant is None]
        console.print(
            f"{release} without a plant: " + "; ".join(f"{d.job.name} {d.how}, {d.seconds:.0f} s" for d in healthy)
        )
    table = Table("release", "plant", "found by trials", "s", "found by Kafka's tests", "s", title="Planted bugs")
    for row in rows(asked.streams, asked.plant, done):
        table.add_row(*row)
    console.print(table)
    for release in asked.streams:
        console.print(totals(release, done), markup=False)


def main() -> None:
    """Do what is left within the time, and print what is known."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", metavar="V", action="append")
    parser.add_argument("--plant", metavar="NAME", action="append", choices=plants())
    parser.add_argument("--minutes", metavar="N", type=float, default=15)
    parser.add_argument("--at-once", metavar="N", type=int, default=1)
    parser.add_argument("--results", metavar="FILE", type=Path)
    asked = parser.parse_args()
    asked.streams, asked.plant = exact_releases(asked.streams or [NEWEST]), asked.plant or list(PLANTS)
    done = read_results(asked.results)
    if not all_done(asked, done):
        print("Time is over; the same command with --results FILE continues.")
    show(asked, done)


def all_done(asked: argparse.Namespace, done: list[Done]) -> bool:
    """Do what is left, and add it to what is done; False if time ran out."""
    deadline = time.monotonic() + asked.minutes * 60
    running: dict[Future[Done | None], Job] = {}
    in_time = True
    with ThreadPoolExecutor(asked.at_once) as pool:
        while True:
            possible = [job for job in next_jobs(asked.streams, asked.plant, done) if job not in running.values()]
            for job in possible[: asked.at_once - len(running)] if in_time else ():
                running[pool.submit(run, job, list(done), deadline)] = job
            if not running:
                return in_time
            for ended in wait(running, return_when=FIRST_COMPLETED).done:
                del running[ended]
                one = ended.result()
                if one is None:
                    in_time = False
                    continue
                done.append(one)
                if asked.results:
                    write(asked.results, one)


def run(job: Job, done: Sequence[Done], deadline: float) -> Done | None:
    """Do a job; None if the remaining time was not enough."""
    left = deadline - time.monotonic()
    if left < LEAST:
        return None
    if job.side == TRIALS:
        return run_trial_of(job)
    healthy = next((d.seconds for d in done if d.job == replace(job, plant=None)), None)
    limit = HEALTHY if healthy is None else PATIENCE * healthy + 60
    one = run_class_of(job, min(limit, left))
    return None if one.how == "hung" and left < limit else one


if __name__ == "__main__":
    main()
