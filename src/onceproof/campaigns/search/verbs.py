"""The verb of DAG `explore`: what is searched, how long, and a part of the search."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from onceproof.campaigns.requests import ExploreRequest
from onceproof.campaigns.search.grammar import quick
from onceproof.campaigns.search.log import Exploration, ExplorationFolder, Finding, SearchRequest
from onceproof.model.errors import UsageError
from onceproof.model.plants import plant
from onceproof.model.release import Release
from onceproof.processes.signals import end_by_sigterm
from onceproof.scenarios import scenario
from onceproof.settings import get_settings

# As in `steps`: heavy modules are imported by the verb that needs them.

SLICE = 15 * 60.0  # seconds of searching after which others that wait for the machine have their turn


def ask_for(request: ExploreRequest, streams: str, run: str, seed: int) -> SearchRequest:
    """The part of a request that is for one of its releases; `seed` is taken if it has none.

    Raises:
        UsageError: a scenario, plant or release does not exist, or it cannot be run here; nothing can be planted there.
        HarnessError: the agent does not fit the release.
    """
    from onceproof.campaigns.search.explorer import search_version
    from onceproof.lab.agent import check_plantable
    from onceproof.lab.artifacts import check_published, streams_class_path
    from onceproof.lab.java import require_java
    from onceproof.lab.releases import exact

    for name in request.scenario:
        scenario(name)
    planted = None if request.plant is None else plant(request.plant)
    installation = get_settings().installation
    [streams], [broker] = exact(installation, [streams]), exact(installation, [request.broker])
    release, brokers = Release.parse(streams), Release.parse(broker)
    require_java(installation.java, brokers.oldest_java, f"a broker of Kafka {brokers}")
    check_published(installation, {release, brokers})
    streams_class_path(installation, release)
    if planted is not None:
        check_plantable(installation, planted, release)
    scenarios = tuple(dict.fromkeys(request.scenario)) or quick()
    return SearchRequest(
        run=run,
        streams=streams,
        broker=broker,
        scenarios=scenarios,
        seed=request.seed_or(seed),
        uniform=request.uniform,
        plant=request.plant,
        harness=search_version(scenarios),
        bisect=request.bisect,
        settings=request.settings,
    )


def search_of(
    root: Path, night: str, request: ExploreRequest, streams: str, run: str, seed: int
) -> tuple[ExplorationFolder, SearchRequest]:
    """Where a night searches, and what.

    It continues the last search that a night before asked for in the same words, of this version of Onceproof; if
    there is none, or it is to begin `anew`, it is a search of its own, `run`.

    Raises:
        UsageError, HarnessError: as `ask_for` and `read_request` do.
    """
    from onceproof.campaigns.search.explorer import read_request

    searches = [ExplorationFolder(file.parent) for file in sorted(root.glob("*/nights.json"), reverse=True)]
    for folder in searches:
        if night in folder.nights and folder.asked_file.exists():
            return folder, read_request(folder)
    asked = ask_for(request, streams, run, seed)
    for folder in () if request.anew else searches:
        before = SearchRequest.read_known(folder.asked_file)
        if before and asked == replace(before, run=run, seed=before.seed if request.seed is not None else asked.seed):
            return folder, before
    return ExplorationFolder(root / run), asked


def explore(
    folder: ExplorationFolder,
    asked: SearchRequest,
    seconds: float,
    report: Callable[[str], None] = print,
    *,
    named: bool = False,
) -> Exploration:
    """Search for some time, from where the search stands; `named` scenarios are not left out.

    Raises:
        UsageError: nothing can be searched here, or another process is searching it.
        HarnessError: nothing can be run here, or the disk is full.
    """
    from onceproof.campaigns.search.explorer import Explorer, SharedBrokers, grammar_of, hold
    from onceproof.lab.releases import list_published

    if asked.bisect and asked.plant:
        raise UsageError(
            f"{asked.plant} is only in the release that it is planted into: leave out --bisect, or the plant."
        )
    installation = get_settings().installation
    grammar, left_out = grammar_of(installation, asked, named=named)
    releases = list_published(installation) if asked.bisect else ()
    bench = SharedBrokers(installation, Release.parse(asked.broker), folder.path)
    with end_by_sigterm(), hold(folder):
        asked.write(folder.asked_file)
        try:
            return Explorer(folder, asked, grammar, bench, report, releases=releases).explore(seconds, left_out)
        finally:
            bench.stop()


def seconds_left(request: ExploreRequest, spent: float, since: datetime, now: datetime) -> float:
    """How long is to be searched yet: `minutes` of searching, or else until the hour `until` has come.

    Args:
        request: that says it.
        spent: seconds of searching since it was asked for.
        since: when it was asked for.
        now: is, like `since`, of the time zone that the hour is of.

    Raises:
        UsageError: neither is given.
    """
    if request.minutes is not None:
        return float(60 * request.minutes - spent)
    if request.until is None:
        raise UsageError("Say how long is to be searched: set minutes or until.")
    hour, minute = map(int, request.until.split(":"))
    ends = since.replace(hour=hour, minute=minute, second=0, microsecond=0)
    return (ends + timedelta(days=ends <= since) - now).total_seconds()


def complaint(folder: ExplorationFolder, before: float = 0.0) -> str | None:
    """The findings of a search after the seconds `before`, in a sentence with the first command; None without any."""
    files = sorted(folder.findings.glob("*/finding.json"))
    found = [finding for finding in map(Finding.read, files) if finding.after > before]
    if not found:
        return None
    titles = "; ".join(finding.title for finding in found)
    return f"No known issue explains {titles}: {found[0].command} repeats it, and {folder.findings} has all."
